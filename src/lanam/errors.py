"""Errors with fields: what is wrong, of which argument or column, in which row, and what to do.

A message is written once. What Python and the command line call differently stands in braces, as in
``"{sample_weight} is zero for every row"``: Python says the words themselves, and whoever else speaks to a
user looks them up (`Speech`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Line:
    """A line of Python that mends a column: what it does, and the code."""

    what: str
    code: str


class Speech:
    """How messages are worded: here as Python's, by others in their own words."""

    def word(self, name: str) -> str:
        """An argument, or what else stands in braces."""
        return name

    def given(self, argument: str, value: object) -> str:
        """An argument and its value."""
        return f"{argument}={value!r}"

    def example(self, line: Line, column: str | None) -> str:
        """A line of code, after what it does; perhaps nothing."""
        return f", for example with `{line.code}`" if line.code else ""

    def about(self, line: Line) -> str:
        """What ``X`` is in a line of code, where the user's table is in pieces."""
        return " (X being the table with these rows)" if line.code else ""


PYTHON = Speech()


class _Marks(dict[str, Any]):
    """What stands in the braces of a message: fields, and otherwise words."""

    def __init__(self, fields: dict[str, Any], speech: Speech) -> None:
        super().__init__(fields)
        self.speech = speech

    def __missing__(self, mark: str) -> str:
        return self.speech.word(mark)


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
    >>> error = InputError(
    ...     "column {column!r} has a gap in row {row}",
    ...     "fill it{example}",
    ...     column="age",
    ...     row=3,
    ...     line=Line("fill", "X = X.fillna(0)"),
    ... )
    >>> error
    InputError("column 'age' has a gap in row 3: fill it, for example with `X = X.fillna(0)`")
    >>> print(error.located("in a.parquet: ", 100))
    in a.parquet: column 'age' has a gap in row 103: fill it, ... (X being the table with these rows)
    """

    argument: str | None
    column: str | None
    row: int | None

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
        # As it is written: exceptions are pickled as their arguments, and what they hold.
        super().__init__(problem)
        self._problem, self._remedy, self._where, self._more = problem, remedy, "", more
        self.argument, self.value, self.column, self.row, self.line = (
            argument,
            value,
            column,
            row,
            line,
        )

    def said(self, speech: Speech = PYTHON) -> str:
        """The message in somebody's words."""
        remedy = self._fill(self._remedy, speech)
        between = "" if not remedy else ". " if remedy[0].isupper() else ": "
        about = speech.about(self.line) if self._where and self.line is not None else ""
        return f"{self._where}{self._fill(self._problem, speech)}{between}{remedy}{about}"

    @property
    def remedy(self) -> str:
        """What to do."""
        return self._fill(self._remedy, PYTHON)

    def located(self, where: str, first_row: int = 0) -> Self:
        """The same with where it is before it; in a piece of a table, whose first row has this number."""
        located = copy.copy(self)
        located._where = where
        located.row = None if self.row is None else self.row + first_row
        return located

    def _fill(self, text: str, speech: Speech) -> str:
        fields = {"value": self.value, "column": self.column, "row": self.row, **self._more}
        if self.argument is not None:
            fields["argument"] = speech.word(self.argument)
            fields["given"] = speech.given(self.argument, self.value)
        if self.line is not None:
            fields["example"] = speech.example(self.line, self.column)
        return text.format_map(_Marks(fields, speech))

    def __str__(self) -> str:
        return self.said()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class InputError(Message, ValueError):
    """An argument or a table that cannot be used; its fields say which, and what to do."""


class InputTypeError(Message, TypeError):
    """The same where values are of a kind that no argument takes."""


class FileThereError(Message, FileExistsError):
    """A file that is there already, and was not to be replaced."""


def located(error: Exception, where: str, first_row: int = 0) -> Exception:
    """An error with where it is before it; in a piece of a table, whose first row has this number."""
    if isinstance(error, Message):
        return error.located(where, first_row)
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    return kind("{message}", message=str(error)).located(where)
