"""What goes wrong, in one line that a person can act on."""

from __future__ import annotations

from lanam.errors import Line, Message, Setting, Speech


class CLIError(Exception):
    """An error in data, a model or a file, said in one line."""

    exit_code = 1


class UsageError(CLIError):
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


#: Arguments of the library, and what they are here.
FLAGS = {
    "block_size": "--block-size",
    "categorical_features": "--categorical",
    "coverage": "--interval",
    "decimal": "--decimal",
    "delimiter": "--delimiter",
    "drop": "--drop",
    "encoding": "--encoding",
    "exposure": "--exposure",
    "interactions": "--interactions",
    "max_iter": "--max-iter",
    "memory": "--memory",
    "missing": "--missing",
    "n_jobs": "--jobs",
    "sample_weight": "--weight",
    "target": "--target",
}

#: Other words of Python in its messages.
_WORDS = {
    ", or pass calibrated=False for the model's own": "",
    "Input X": "the table",
    "X": "the table",
    "by ": "",
    "dispersion_ and predict(X, return_std=True)": "lanam predict --std",
    "exposure=...": "--exposure",
    "exposure=1.0": "--exposure 1",
    "fit(X, events, exposure=hours)": "--exposure hours",
    "interval=0.95": "--interval 0.95",
    "likelihood='gaussian'": "--task regression",
    "likelihood='poisson'": "--task counts",
    "model.save(path)": "lanam fit",
    "noise='constant'": "--noise constant",
    "pass": "say",
    "pass another delimiter to csv_files": "say another --delimiter",
    "pass overwrite=True": "say --force",
    "pass variance=False": "say --no-variance",
    "proba=True": "--proba",
    "set likelihood='poisson'": "say --task counts",
    "std=True": "--std",
}

#: What to do about an argument, where the library's remedy is an argument that is no flag.
_REMEDIES = {"max_iter": "Raise {argument}."}


class _Flags(Speech):
    """The library's messages in the words of the command line."""

    def word(self, name: str) -> str:
        return FLAGS.get(name) or _WORDS.get(name, name)

    def setting(self, setting: Setting) -> str:
        if setting.argument not in FLAGS:
            usual = super().setting(setting)
            return _WORDS.get(usual, usual)
        value = setting.value
        said = ",".join(map(repr, value)) if isinstance(value, list) else str(value)
        return f"{FLAGS[setting.argument]} {said}"

    def example(self, line: Line, column: str | None) -> str:
        if line.what == "leave out":
            return f", for example with --drop {column!r}"
        return " in the file" if line.what in ("to numbers", "to text") else ""

    def remedy(self, message: Message) -> str:
        usual = super().remedy(message)
        return _REMEDIES.get(message.argument or "", usual) if usual else ""

    def note(self, line: Line) -> str:
        return ""


_FLAG_WORDS = _Flags()


def in_flags(error: BaseException) -> str:
    """A message of the library in the words of the command line.

    Examples
    --------
    >>> from lanam.errors import InputError
    >>> in_flags(InputError("{argument} is zero for every row", argument="sample_weight"))
    '--weight is zero for every row'
    """
    return error.said(_FLAG_WORDS) if isinstance(error, Message) else str(error)


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
        text = in_flags(error) or type(error).__name__
    return " ".join(text.split())
