"""Unseen categories and missing values in new rows: counted, and reported in one warning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lanam.data.errors import shown
from lanam.errors import warn_user
from lanam.text import printable

#: How many columns a warning names, and how many values of each.
_MAX_WARNED = 10
_MAX_VALUES = 3


@dataclass(frozen=True)
class UnseenValues:
    """Values in a column of new rows that the training data did not have."""

    name: str
    n_rows: int
    n_unseen: int = 0
    examples: tuple[object, ...] = ()
    n_missing: int = 0

    def __str__(self) -> str:
        parts = []
        if self.n_unseen:
            listed = ", ".join(map(shown, self.examples[:_MAX_VALUES]))
            more = ", ..." if len(self.examples) > _MAX_VALUES else ""
            are = "is an unseen category" if self.n_unseen == 1 else "are unseen categories"
            parts.append(
                f"{self.n_unseen} of {self.n_rows} values {are} ({listed}{more}): predicted with the mean "
                "effect of a category and a wider credible interval"
            )
        if self.n_missing:
            are = "is" if self.n_missing == 1 else "are"
            parts.append(
                f"{self.n_missing} of {self.n_rows} values {are} missing, and none was in the training "
                "data: predicted with the column's mean effect and a wider credible interval"
            )
        return f"column {self.name!r}: " + "; ".join(parts)


class NewValuesWarning(UserWarning):
    """New rows have values that the training data did not; ``unseen`` has a record per column."""

    def __init__(self, unseen: Sequence[UnseenValues]) -> None:
        self.unseen = tuple(unseen)
        parts = [str(each) for each in unseen[:_MAX_WARNED]]
        if len(unseen) > _MAX_WARNED:
            parts.append(f"and the same in {len(unseen) - _MAX_WARNED} more columns")
        super().__init__(printable("\n".join(parts)))


def merge_unseen(unseen: Sequence[UnseenValues], n_rows: int) -> tuple[UnseenValues, ...]:
    """Sum the records of the chunks of a table with ``n_rows`` rows: one record per column.

    Examples
    --------
    >>> parts = [
    ...     UnseenValues("city", 10, 1, ("Oslo",)),
    ...     UnseenValues("city", 10, 2, ("Bern", "Oslo")),
    ... ]
    >>> print(*merge_unseen(parts, 30))
    column 'city': 3 of 30 values are unseen categories ('Oslo', 'Bern'): predicted with the mean ...
    """
    found: dict[str, UnseenValues] = {}
    for part in unseen:
        so_far = found.get(part.name, UnseenValues(part.name, n_rows))
        found[part.name] = UnseenValues(
            part.name,
            n_rows,
            so_far.n_unseen + part.n_unseen,
            tuple(dict.fromkeys(so_far.examples + part.examples)),
            so_far.n_missing + part.n_missing,
        )
    return tuple(found.values())


#: Collects the unseen values of this thread instead of a warning; ``warnings.catch_warnings`` is not
#: thread-safe.
_COLLECTED: ContextVar[list[UnseenValues] | None] = ContextVar("unseen", default=None)


@contextmanager
def collect_unseen() -> Iterator[list[UnseenValues]]:
    """Collect unseen values of this thread for `merge_unseen`, instead of warning of each.

    Examples
    --------
    >>> with collect_unseen() as found:
    ...     warn_unseen([UnseenValues("city", 10, 1, ("Oslo",))])
    >>> found[0].examples
    ('Oslo',)
    """
    found: list[UnseenValues] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def warn_unseen(unseen: Sequence[UnseenValues]) -> None:
    """One warning for all unseen values, at the user's line."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected += unseen
    elif unseen:
        warn_user(NewValuesWarning(unseen))
