"""What new values are that the training data did not have: counted, and said in one warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanam.data.refusals import shown

#: How many columns a warning names before it only counts them, and how many levels.
_MAX_WARNED = 10
_MAX_LEVELS = 3


@dataclass(frozen=True)
class Surprise:
    """What a column of new rows holds that the training data did not."""

    name: str
    n_rows: int
    n_unseen: int = 0
    examples: tuple[Any, ...] = ()
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


def warn_of(surprises: Sequence[Surprise]) -> None:
    """One warning for whatever the training data did not have, at the user's line."""
    if not surprises:
        return
    parts = [str(surprise) for surprise in surprises[:_MAX_WARNED]]
    if len(surprises) > _MAX_WARNED:
        parts.append(f"and the same in {len(surprises) - _MAX_WARNED} more columns")
    warnings.warn("\n".join(parts), UserWarning, stacklevel=_users_level())


def _users_level() -> int:
    """How far up the user's line is from the caller: past lanam's frames and scikit-learn's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in ("lanam", "sklearn")
