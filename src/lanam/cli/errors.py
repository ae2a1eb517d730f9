"""Errors of the command line, and the library's messages in terms of flags."""

from __future__ import annotations

from functools import cache

from lanam.data.errors import AS_MISSING
from lanam.errors import Line, Message, MessageFormat, Setting


class CLIError(Exception):
    """An error in data, a model or a file, in one line."""

    exit_code = 1


class UsageError(CLIError):
    """An error in how the command was called."""

    exit_code = 2


class Interrupted(BaseException):
    """A signal to stop.

    Not a ``KeyboardInterrupt``, on which fits keep the best model so far: a command leaves nothing
    unfinished behind.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(f"stopped by signal {signal}")
        self.exit_code = 128 + signal


#: Words in the library's messages that only Python users understand, and their replacements.
_WORDS = {
    ", or pass calibrated=False for the model's own": "",
    "Input X": "the table",
    "X": "the table",
    "by ": "",
    "dispersion_ and predict(X, return_std=True)": "lanam predict --std",
    "exposure=...": "--exposure",
    "exposure=1.0": "--exposure 1",
    "fit(X, events, exposure=hours)": "--exposure hours",
    "held_out=True": "lanam fit --test-share 0.2",
    "interval=0.95": "--interval 0.95",
    "likelihood='binomial'": "--likelihood binomial",
    "likelihood='gamma'": "--likelihood gamma",
    "likelihood='gaussian'": "--task regression",
    "likelihood='lognormal'": "--likelihood lognormal",
    "likelihood='negative_binomial'": "--likelihood negative_binomial",
    "likelihood='poisson'": "--task counts",
    "likelihood='tweedie'": "--likelihood tweedie",
    "offset=0.0": "--offset 0",
    "offset=...": "--offset",
    "model.save(path)": "lanam fit",
    "noise='constant'": "--noise constant",
    "pass": "use",
    "pass another delimiter to csv_files": "use another --delimiter",
    "pass overwrite=True": "use --force",
    "pass variance=False": "use --no-variance",
    "proba=True": "--proba",
    "set likelihood='binomial'": "use --likelihood binomial",
    "set likelihood='poisson'": "use --task counts",
    "std=True": "--std",
    "trials=...": "--trials",
    "use solver='gauss-newton' and curvature='exact', the defaults": "leave out --paper",
    "with missing values": "with empty cells",
}

#: Remedies by argument, where the library's names an argument that has no flag.
_REMEDIES = {"max_iter": "Raise {argument}."}


class _Flags(MessageFormat):
    """Wording of messages for the command line: flags in place of arguments."""

    def __init__(self, flags: dict[str, str]) -> None:
        self._flags = flags

    def word(self, name: str) -> str:
        return self._flags.get(name) or _WORDS.get(name, name)

    def setting(self, setting: Setting) -> str:
        usual = super().setting(setting)
        if usual in _WORDS or setting.argument not in self._flags:
            return _WORDS.get(usual, usual)
        value = setting.value
        text = ",".join(map(repr, value)) if isinstance(value, list) else str(value)
        return f"{self._flags[setting.argument]} {text}"

    def example(self, line: Line, column: str | None) -> str:
        if line.what == "leave out":
            return f", for example with --drop {column!r}"
        if line.what.endswith(AS_MISSING):
            return f", for example with --missing={line.what.removesuffix(AS_MISSING)}"
        in_file = line.what in ("to numbers", "to text", "blanks and case", "large integers")
        return " in the file" if in_file or line.what.endswith(" as text") else ""

    def remedy(self, message: Message) -> str:
        usual = super().remedy(message)
        return _REMEDIES.get(message.argument or "", usual) if usual else ""

    def note(self, line: Line) -> str:
        return ""


@cache
def _wording() -> _Flags:
    from lanam.cli.requests import FLAGS  # needs typer, which may not be installed

    return _Flags(FLAGS)


def in_flags(error: BaseException) -> str:
    """A message of the library, with flags in place of arguments."""
    return error.formatted(_wording()) if isinstance(error, Message) else str(error)


def one_line(error: BaseException) -> str:
    r"""The message of any error in one line.

    Examples
    --------
    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: No such file or directory'
    >>> one_line(ValueError("two\n  lines"))
    'two lines'
    """
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns, or a smaller --block-size"
    if isinstance(error, UnicodeEncodeError):  # an argument with other bytes, see os.fsencode
        text = f"{error.object!r} is not encoded in UTF-8: write it in UTF-8, or use other words"
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    else:
        text = in_flags(error) or type(error).__name__
    return " ".join(text.split())
