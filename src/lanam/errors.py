"""Errors and warnings with fields: the problem, the argument or column, and the remedy.

A message is written once. Words that differ between Python and the command line stand in braces, as in
``"{sample_weight} is zero for every row"``: Python uses the words themselves, other front ends replace them
(`MessageFormat`).
"""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from types import FrameType
from typing import Any, Self, TypeVar

from lanam.text import printable


@dataclass(frozen=True)
class Line:
    """Python code that fixes a column, and a key for what it does; "" for no code."""

    what: str
    code: str


@dataclass(frozen=True)
class Setting:
    """An argument with a value, perhaps of a function that is called with a path."""

    argument: str
    value: object
    call: str = ""


class MessageFormat(Formatter):
    """Formats messages for Python; subclasses format them for other front ends."""

    def word(self, name: str) -> str:
        """An argument, or other words in braces."""
        return name

    def setting(self, setting: Setting) -> str:
        """An argument and its value."""
        text = f"{setting.argument}={setting.value!r}"
        return f"{setting.call}(path, {text})" if setting.call else text

    def example(self, line: Line, column: str | None) -> str:
        """The code that fixes a column, appended to the remedy."""
        return f", for example with `{line.code}`" if line.code else ""

    def remedy(self, message: Message) -> str:
        """The remedy, with braces."""
        return message._remedy

    def note(self, line: Line) -> str:
        """The meaning of ``X`` in the code, for a table in chunks."""
        return " (X being the table with these rows)" if line.code else ""

    def get_field(self, name: str, _: Sequence[Any], fields: Mapping[str, Any]) -> tuple[Any, str]:
        """The replacement of a name in braces: a field of the message, or a word."""
        value = fields[name] if name in fields else self.word(name)
        return (self.setting(value) if isinstance(value, Setting) else value), name


PYTHON = MessageFormat()


def choose(*choices: object) -> str:
    """The remedy for a value that is none of the choices.

    Examples
    --------
    >>> choose("gelu", "relu", "tanh")
    "choose 'gelu', 'relu' or 'tanh'"
    """
    *others, last = map(repr, choices)
    return f"choose {', '.join(others)} or {last}" if others else f"choose {last}"


def numbered(row: int, after: str = "") -> str:
    """The number of a row in messages, by its index: rows of data are counted from one everywhere.

    Examples
    --------
    >>> numbered(6), numbered(6, " after the header")
    ('7 (counting from 1)', '7 (counting from 1 after the header)')
    """
    return f"{row + 1} (counting from 1{after})"


class Message(Exception):
    """Base of errors and warnings with fields.

    Braces in ``problem`` and ``remedy`` hold fields by name (``{column!r}``) or words of the front end;
    ``{given}`` is the argument with its value, ``{example}`` the code of ``line``. A remedy that begins
    with a capital letter is a sentence of its own. ``row`` is an index; in words rows are counted from 1.

    Examples
    --------
    >>> problem, remedy = "column {column!r} has a missing value in row {row}", "fill it{example}"
    >>> fill = Line("fill", "X = X.fillna(0)")
    >>> error = InputError(problem, remedy, column="age", row=3, line=fill)
    >>> print(error)
    column 'age' has a missing value in row 4 (counting from 1): fill it, for example with ...
    >>> print(error.located("in a.parquet: ", 100))
    in a.parquet: column 'age' has a missing value in row 104 (counting from 1): fill it, ...
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
        **fields: Any,
    ) -> None:
        super().__init__()
        self._problem, self._remedy, self._where, self._fields = problem, remedy, "", fields
        self.argument, self.value = argument, value
        self.column, self.row, self.line = column, row, line
        self.args = (self.formatted(),)

    def formatted(self, style: MessageFormat = PYTHON) -> str:
        """The message as a front end words it."""
        problem = self._fill(self._problem, style)
        remedy = self._fill(style.remedy(self), style)
        between = "" if not remedy else ". " if remedy[0].isupper() else ": "
        note = style.note(self.line) if self._where and self.line is not None else ""
        return printable(f"{self._where}{problem}{between}{remedy}{note}")

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self._fill(self._remedy, PYTHON)

    def _fill(self, text: str, style: MessageFormat) -> str:
        row = None if self.row is None else numbered(self.row)
        fields = {"value": self.value, "column": self.column, "row": row}
        fields |= self._fields
        if self.argument is not None:
            fields["argument"] = style.word(self.argument)
            fields["given"] = Setting(self.argument, self.value)
        if self.line is not None:
            fields["example"] = style.example(self.line, self.column)
        return style.vformat(text, (), fields)

    def located(self, where: str, first_row: int = 0) -> Self:
        """The message, prefixed by its location; ``first_row`` is the number of a chunk's first row."""
        if self._where:  # the innermost location is the most precise
            return self
        row = None if self.row is None else self.row + first_row
        return _again(type(self), {**self.__dict__, "row": row, "_where": where})

    def in_row(self, row: int) -> Self:
        """The message about another row: that of the table from which its rows were taken."""
        return _again(type(self), {**self.__dict__, "row": row})

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.__dict__)


_Kind = TypeVar("_Kind", bound=Message)


def _again(kind: type[_Kind], fields: dict[str, Any]) -> _Kind:
    """A message by its fields, as pickle restores it."""
    message = kind.__new__(kind)
    message.__dict__.update(fields)
    message.args = (message.formatted(),)
    return message


class InputError(Message, ValueError):
    """An argument or a table that cannot be used; its fields name it and the remedy."""


class MissingColumnsError(InputError):
    """New rows that lack columns with which the model was fitted.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from lanam import LANAMRegressor
    >>> X = pd.DataFrame({"age": np.arange(20.0), "bmi": np.tile([20.0, 25.0], 10)})
    >>> model = LANAMRegressor(interactions=0).fit(X, np.arange(20.0))
    >>> try:
    ...     model.predict(X.rename(columns={"bmi": "BMI"}))
    ... except MissingColumnsError as error:
    ...     print(error.columns, error.similar)
    ('bmi',) {'bmi': ['BMI']}
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._fields["columns"])

    @property
    def similar(self) -> dict[str, list[str]]:
        """For some of them, similar names of other columns."""
        return dict(self._fields["similar"])


class InputTypeError(Message, TypeError):
    """An argument or a table of a type that cannot be used."""


class InputWarning(Message, UserWarning):
    """An argument or a table that is probably a mistake."""


class FitWarning(Message, UserWarning):
    """A fit that its rows hardly determine."""


class WaitWarning(FitWarning):
    """A fit that takes long; shown before it starts."""


class FileThereError(Message, FileExistsError):
    """A file that exists already and must not be replaced."""


def located(error: Exception, where: str, first_row: int = 0) -> Message:
    """Any error as a message with its location, see `Message.located`."""
    if isinstance(error, Message):
        return error.located(where, first_row)
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind("{message}", message=str(error)).located(where)


#: Folders of Python and of installed packages.
_LIBRARIES = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def warn_user(warning: Warning) -> None:
    """Warn at the user's line, however many frames of libraries lie between.

    If there is none, as in a worker process, no line is shown.
    """
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and _is_library(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_library(frame: FrameType) -> bool:
    """Whether code belongs to this library, to another or to Python."""
    if frame.f_globals.get("__name__", "").split(".")[0] == "lanam":
        return True
    return frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen "))
