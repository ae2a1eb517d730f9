"""Response families compared by log evidence: the table that users see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanam.data import make_frame

#: Evidences that differ by less are equal: a negative binomial without dispersion is Poisson's.
_EQUAL = 0.1


@dataclass(frozen=True, eq=False)
class FamilyScores:
    """Response families that suit the target, best first, compared by log evidence on one scale.

    Attributes
    ----------
    rows
        One record per family with ``family``, ``log_evidence`` (of the fit without interactions, with what
        noise that depends on columns gains) and ``chosen``.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 1))
    >>> y = np.exp(X[:, 0]) * rng.gamma(4.0, size=300) / 4.0
    >>> model = LANAMRegressor(likelihood="auto").fit(X, y)
    >>> model.family_scores_.rows[0]["family"], model.family_.name
    ('gamma', 'gamma')
    """

    rows: tuple[dict[str, Any], ...]
    backend: str | None = None

    @classmethod
    def of(cls, scores: Sequence[tuple[str, float]], backend: str | None = None) -> FamilyScores:
        """The table of families' names and scores, simplest first; of equal ones the first is chosen."""
        best = max(evidence for _, evidence in scores)
        chosen = next((score for score in scores if score[1] > best - _EQUAL), scores[0])
        ranked = [chosen, *sorted((s for s in scores if s is not chosen), key=lambda s: -s[1])]
        keys = ("family", "log_evidence", "chosen")
        rows = [
            dict(zip(keys, (*score, not place), strict=True)) for place, score in enumerate(ranked)
        ]
        return cls(tuple(rows), backend)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> dict[str, Any]:
        return self.rows[position]

    @property
    def scores(self) -> list[tuple[str, float]]:
        """Names and log evidences."""
        return [(row["family"], row["log_evidence"]) for row in self.rows]

    def to_frame(self) -> Any:
        """One row per family, as a frame of the library the model was fitted with."""
        columns = {key: [row[key] for row in self.rows] for key in self.rows[0]}
        return make_frame(columns, self.backend)

    def words(self) -> str:
        """The choice in one line."""
        name = f"likelihood {self.rows[0]['family']}, by log evidence"
        if len(self.rows) == 1:
            return f"likelihood {self.rows[0]['family']}: the only one that suits y"
        less = self.rows[0]["log_evidence"] - self.rows[1]["log_evidence"]
        return f"{name} ({self.rows[1]['family']} has {less:.1f} nats less)"

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.scores)
        lines = [f"{'family':<{width}}  log evidence"]
        for row in self.rows:
            mark = "  chosen" if row["chosen"] else ""
            lines.append(f"{row['family']:<{width}}  {row['log_evidence']:12.1f}{mark}")
        return "\n".join(lines)

    __repr__ = __str__
