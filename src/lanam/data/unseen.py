"""What new values are that the training data did not have: counted, and said in one warning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lanam.data.errors import shown
from lanam.errors import warn_user

#: How many columns a warning names before it only counts them, and how many levels.
_MAX_WARNED = 10
_MAX_LEVELS = 3


@dataclass(frozen=True)
class UnseenValues:
    """What a column of new rows holds that the training data did not."""

    name: str
    n_rows: int
    n_unseen: int = 0
    examples: tuple[object, ...] = ()
    n_missing: int = 0

    def __str__(self) -> str:
        parts = []
        if self.n_unseen:
            listed = ", ".join(map(shown, self.examples[:_MAX_LEVELS]))
            more = ", ..." if len(self.examples) > _MAX_LEVELS else ""
            are = "is a level" if self.n_unseen == 1 else "are levels"
            parts.append(
                f"{self.n_unseen} of {self.n_rows} values {are} that the training data did not "
                f"have ({listed}{more}): they get a new level's mean effect and its wider band"
            )
        if self.n_missing:
            are = "is" if self.n_missing == 1 else "are"
            parts.append(
                f"{self.n_missing} of {self.n_rows} values {are} missing, and none was in the "
                "training data: they get the mean effect of a level not seen, and its wider band"
            )
        return f"column {self.name!r}: " + "; ".join(parts)


class NewValuesWarning(UserWarning):
    """New rows hold what the training data did not; ``unseen`` says what, one record a column."""

    def __init__(self, unseen: Sequence[UnseenValues]) -> None:
        self.unseen = tuple(unseen)
        parts = [str(each) for each in unseen[:_MAX_WARNED]]
        if len(unseen) > _MAX_WARNED:
            parts.append(f"and the same in {len(unseen) - _MAX_WARNED} more columns")
        super().__init__("\n".join(parts))


def add_up(unseen: Sequence[UnseenValues], n_rows: int) -> tuple[UnseenValues, ...]:
    """What the parts of a table with so many rows hold, as of the whole table: one record a column.

    Examples
    --------
    >>> parts = [
    ...     UnseenValues("city", 10, 1, ("Oslo",)),
    ...     UnseenValues("city", 10, 2, ("Bern", "Oslo")),
    ... ]
    >>> print(*add_up(parts, 30))
    column 'city': 3 of 30 values are levels that the training data did not have ('Oslo', 'Bern'): ...
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


#: Where unseen values of this thread go instead of a warning. Python's own way to catch warnings is not for
#: several threads.
_COLLECTED: ContextVar[list[UnseenValues] | None] = ContextVar("unseen", default=None)


@contextmanager
def collect_unseen() -> Iterator[list[UnseenValues]]:
    """Collect what would be a warning each, for `add_up`; each thread its own.

    Examples
    --------
    >>> with collect_unseen() as found:
    ...     warn_of([UnseenValues("city", 10, 1, ("Oslo",))])
    >>> found[0].examples
    ('Oslo',)
    """
    found: list[UnseenValues] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def warn_of(unseen: Sequence[UnseenValues]) -> None:
    """One warning for whatever the training data did not have, at the user's line."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected += unseen
    elif unseen:
        warn_user(NewValuesWarning(unseen))
