"""What goes wrong, in one line that a person can act on."""

from __future__ import annotations

import re


class Complaint(Exception):
    """An error in data, a model or a file, said in one line."""

    exit_code = 1


class Misuse(Complaint):
    """An error in how the command was called."""

    exit_code = 2


class Interrupted(BaseException):
    """The process was asked to stop.

    Not a ``KeyboardInterrupt``: fits keep the best model so far on that, and a command leaves nothing
    unfinished behind.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(f"stopped by signal {signal}")
        self.exit_code = 128 + signal


#: What the library's messages call arguments and lines of Python, and what they are here.
_FLAGS = (
    (r"`X = X\.drop_columns\(\"(.*?)\"\)`", r"--drop '\1'"),
    (r": convert it, for example with `X = [^`]*`", ": convert it in the file"),
    (r", for example with `X = [^`]*`", ""),
    (r"\bpass csv_files", "say csv_files"),
    (r"(?:by )?csv_files\(path, missing=\[(.*?)\]\)", r"--missing \1"),
    (r"(?:by )?csv_files\(path, (\w+)='(.*?)'\)", r"--\1 \2"),
    (r"\bpass another delimiter to csv_files", "say another --delimiter"),
    (r"\b(delimiter|decimal|encoding)=('.*?') ", r"--\1 \2 "),
    (r"\braise block_size\b", "raise --block-size"),
    (r"\bcategorical_features=\[(.*?)\]", r"--categorical \1"),
    (r"name it in categorical_features", "name it in --categorical"),
    (r"\bcategorical_features\b", "--categorical"),
    (r"\bpass overwrite=True\b", "say --force"),
    (r"written by model\.save\(path\)", "written by lanam fit"),
    (r"\bmax_iter=(\d+)", r"--max-iter \1"),
    (
        r"\bRaise max_iter to train on, or raise tol=[^ ]+ to call this converged",
        "Raise --max-iter",
    ),
    (r"\bset likelihood='poisson'", "say --task counts"),
    (r"\blikelihood='gaussian'", "--task regression"),
    (r"\bsample_weight\b", "--weight"),
    (r"\binterval=0\.95\b", "--interval 0.95"),
    (r"\b(std|proba|terms)=True\b", r"--\1"),
    (r"\bnoise='constant'", "--noise constant"),
    (r"\bn_jobs=", "--jobs "),
    (r"\bmemory='([^']*)'", r"--memory \1"),
    (r"\bInput X contains\b", "the table contains"),
    (r"\bwhich X does not have\b", "which the table does not have"),
)


def in_flags(message: str) -> str:
    """A message of the library in the words of the command line.

    Examples
    --------
    >>> in_flags('Leave it out, for example with `X = X.drop_columns("notes")`, or combine levels')
    "Leave it out, for example with --drop 'notes', or combine levels"
    >>> in_flags("model.lanam is there already: pass overwrite=True to replace it, or another name")
    'model.lanam is there already: say --force to replace it, or another name'
    """
    for pattern, words in _FLAGS:
        message = re.sub(pattern, words, message)
    return message


def one_line(error: BaseException) -> str:
    r"""An error as one line.

    Examples
    --------
    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: No such file or directory'
    >>> one_line(ValueError("two\n  lines"))
    'two lines'
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory: use fewer rows or columns, or a smaller --block-size"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    else:
        text = str(error) or type(error).__name__
    return " ".join(in_flags(text).split())
