"""Errors and warnings with fields: what is wrong, of which argument or column, and what to do.

A message is written once. What Python and the command line call differently stands in braces, as in
``"{sample_weight} is zero for every row"``: Python says the words themselves, and whoever else speaks to a
user looks them up (`Speech`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self, TypeVar


@dataclass(frozen=True)
class Line:
    """A line of Python that mends a column: what it does, and the code, if there is any."""

    what: str
    code: str


@dataclass(frozen=True)
class Setting:
    """An argument with a value, perhaps of a function that is called with a path."""

    argument: str
    value: object
    call: str = ""


class Speech(Formatter):
    """How messages are worded: here as Python's, by others in their own words."""

    def word(self, name: str) -> str:
        """An argument, or what else stands in braces."""
        return name

    def setting(self, setting: Setting) -> str:
        """An argument and its value."""
        said = f"{setting.argument}={setting.value!r}"
        return f"{setting.call}(path, {said})" if setting.call else said

    def example(self, line: Line, column: str | None) -> str:
        """A line of code, after what it does; perhaps nothing."""
        return f", for example with `{line.code}`" if line.code else ""

    def remedy(self, message: Message) -> str:
        """What to do, with braces."""
        return message._remedy

    def note(self, line: Line) -> str:
        """What ``X`` is in a line of code for a table that is in chunks."""
        return " (X being the table with these rows)" if line.code else ""

    def get_field(self, name: str, _: Sequence[Any], fields: Mapping[str, Any]) -> tuple[Any, str]:
        """What stands for a name in braces: a field of the message, or a word of ours."""
        found = fields[name] if name in fields else self.word(name)
        return (self.setting(found) if isinstance(found, Setting) else found), name


PYTHON = Speech()


def choose(*choices: object) -> str:
    """The remedy for a value that is none of some choices.

    Examples
    --------
    >>> choose("gelu", "relu", "tanh")
    "choose 'gelu', 'relu' or 'tanh'"
    """
    *others, last = map(repr, choices)
    return f"choose {', '.join(others)} or {last}" if others else f"choose {last}"


class Message(Exception):
    """What errors and warnings with fields have in common.

    Parameters
    ----------
    problem : str
        What is wrong. Braces hold fields by name (``{column!r}``), or words that others have their own
        for; ``{given}`` is the argument with its value, ``{example}`` the line of code.
    remedy : str, default=""
        What to do, in the same way; a sentence of its own if it begins with a capital letter.
    argument, value
        The argument at fault, and what it was.
    column : str, default=None
        The column of the table.
    row : int, default=None
        The row, counted from 0.
    line : Line, default=None
        The line of Python that mends it.
    **more
        Further fields of this message.

    Examples
    --------
    >>> problem, remedy = "column {column!r} has a gap in row {row}", "fill it{example}"
    >>> fill = Line("fill", "X = X.fillna(0)")
    >>> error = InputError(problem, remedy, column="age", row=3, line=fill)
    >>> error
    InputError("column 'age' has a gap in row 3: fill it, for example with `X = X.fillna(0)`")
    >>> print(error.located("in a.parquet: ", 100))
    in a.parquet: column 'age' has a gap in row 103: fill it, ... (X being the table with these rows)
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        argument: str | None = None,
        value: object = None,
        column: str | None = None,
        row: int | None = None,
        line: Line | None = None,
        **more: object,
    ) -> None:
        super().__init__()
        self._problem, self._remedy, self._where, self._more = problem, remedy, "", more
        self.argument, self.value = argument, value
        self.column, self.row, self.line = column, row, line
        self.args = (self.said(),)

    def said(self, speech: Speech = PYTHON) -> str:
        """The message in somebody's words."""
        problem = self._fill(self._problem, speech)
        remedy = self._fill(speech.remedy(self), speech)
        between = "" if not remedy else ". " if remedy[0].isupper() else ": "
        note = speech.note(self.line) if self._where and self.line is not None else ""
        return f"{self._where}{problem}{between}{remedy}{note}"

    @property
    def remedy(self) -> str:
        """What to do."""
        return self._fill(self._remedy, PYTHON)

    def _fill(self, text: str, speech: Speech) -> str:
        fields = {"value": self.value, "column": self.column, "row": self.row, **self._more}
        if self.argument is not None:
            fields["argument"] = speech.word(self.argument)
            fields["given"] = Setting(self.argument, self.value)
        if self.line is not None:
            fields["example"] = speech.example(self.line, self.column)
        return speech.vformat(text, (), fields)

    def located(self, where: str, first_row: int = 0) -> Self:
        """The same with where it is before it; in a chunk of a table, whose first row has this number."""
        if self._where:  # whoever was nearer knows better
            return self
        row = None if self.row is None else self.row + first_row
        return _again(type(self), {**self.__dict__, "row": row, "_where": where})

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.__dict__)


_Kind = TypeVar("_Kind", bound=Message)


def _again(kind: type[_Kind], fields: dict[str, Any]) -> _Kind:
    """A message by its fields: what it is pickled as."""
    message = kind.__new__(kind)
    message.__dict__.update(fields)
    message.args = (message.said(),)
    return message


class InputError(Message, ValueError):
    """An argument or a table that cannot be used; its fields say which, and what to do."""


class InputTypeError(Message, TypeError):
    """The same where values are of a kind that no argument takes."""


class InputWarning(Message, UserWarning):
    """An argument or a table that is not what one expects."""


class FileThereError(Message, FileExistsError):
    """A file that is there already, and was not to be replaced."""


def located(error: Exception, where: str, first_row: int = 0) -> Message:
    """An error with where it is before it; in a chunk of a table, whose first row has this number."""
    if isinstance(error, Message):
        return error.located(where, first_row)
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind("{message}", message=str(error)).located(where)


#: Whose frames may lie between the user's line and ours: who calls us, and who wraps our methods.
_BETWEEN = [
    "lanam",
    "sklearn",
    "joblib",
    "narwhals",
    "pandas",
    "polars",
    "dask",
    "contextlib",
    "functools",
]


def warn_user(warning: Warning) -> None:
    """Warn at the user's line, however many of ours and of others are between."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
