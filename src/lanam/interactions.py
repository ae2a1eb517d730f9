"""Candidate interactions by name: their scores, and why each is in the model or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.fitted import ACTIVE, UNSUPPORTED, FittedModel
from lanam.data import Schema, make_frame
from lanam.text import WIDTH, cut, printable, term_name

#: Limits of the printed table: rows, and the least number of characters that a column's name is cut to.
_MAX_PRINTED = 20
_LEAST_NAME = 14


class PairRow(TypedDict):
    """The record of a candidate interaction."""

    rank: int
    pair: str
    features: tuple[int, int]
    feature_names: tuple[str, ...]
    score: float
    status: str


@dataclass(frozen=True, eq=False)
class InteractionScores:
    """All pairs of columns, ranked by how likely they interact.

    Attributes
    ----------
    rows
        One record per pair, best first, with the keys ``rank``, ``pair`` (``"a x b"``), ``features`` and
        ``feature_names`` (its columns, by index and by name), ``score`` and ``status``: ``"active"`` if
        the interaction is in the model, or why it is not.
    score
        The kind of score; ``"evidence"`` is the log evidence gain in nats.
    names
        The columns' names, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=300)
    >>> scores = LANAMRegressor(random_state=0).fit(X, y).interaction_scores_
    >>> [(row["pair"], row["status"]) for row in scores][0]
    ('x0 x x2', 'active')
    >>> scores.matrix().shape
    (3, 3)
    """

    rows: tuple[PairRow, ...]
    score: str
    names: tuple[str, ...]
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[PairRow]:
        return iter(self.rows)

    def __getitem__(self, position: int) -> PairRow:
        return self.rows[position]

    @property
    def active(self) -> tuple[PairRow, ...]:
        """The interactions in the model."""
        return tuple(row for row in self.rows if row["status"] == ACTIVE)

    def matrix(self) -> Array:
        """Scores as a symmetric matrix over the columns, with NaN on the diagonal."""
        result = np.full((len(self.names), len(self.names)), np.nan)
        for row in self.rows:
            first, second = row["features"]
            result[first, second] = result[second, first] = row["score"]
        return result

    def to_dict(self) -> dict[str, object]:
        """The table as plain data, ready for JSON."""
        pairs = [
            {**row, "features": list(row["features"]), "feature_names": list(row["feature_names"])}
            for row in self.rows
        ]
        return {"score": self.score, "names": list(self.names), "pairs": pairs}

    def to_frame(self) -> Any:
        """One row per pair, as a frame of the library the model was fitted with."""
        names = [row["feature_names"] for row in self.rows]
        columns: dict[str, list[Any]] = {
            "rank": [row["rank"] for row in self.rows],
            "first": [first for first, _ in names],
            "second": [second for _, second in names],
            "score": [row["score"] for row in self.rows],
            "status": [row["status"] for row in self.rows],
        }
        return make_frame(columns, self.backend)

    def __str__(self) -> str:
        if not self.rows:
            return "no interactions were scored"
        lines = self.lines(_MAX_PRINTED)
        head = f"{len(self)} interactions by {self.score}, {len(self.active)} active"
        return printable("\n".join([head, *lines]))

    __repr__ = __str__

    def lines(self, most: int) -> list[str]:
        """The table's first lines, and how many more there are."""
        shown = self.rows[:most]
        statuses = [_brief_status(row["status"]) for row in shown]
        room = WIDTH - 22 - max(map(len, statuses), default=0)  # for two names
        names = [name for row in shown for name in row["feature_names"]]
        sides = dict(zip(names, cut(names, max(room // 2, _LEAST_NAME)), strict=True))
        pairs = [
            term_name([sides[name] for name in row["feature_names"]], self.names) for row in shown
        ]
        width = max((len(pair) for pair in pairs), default=0)
        lines = [
            f"{row['rank']:>4}  {pair:<{width}}  {row['score']:>9.3g}  {status}"
            for row, pair, status in zip(shown, pairs, statuses, strict=True)
        ]
        rest = self.rows[most:]
        if rest:
            active = sum(row["status"] == ACTIVE for row in rest)
            lines.append(
                f"      and {len(rest)} more, {active} of them active (interaction_scores_)"
            )
        return lines


def _brief_status(status: str) -> str:
    """A status without the words that its figures repeat.

    Examples
    --------
    >>> _brief_status("dropped: not supported by the data (log evidence gain 3.6, threshold 5.8)")
    'dropped: log evidence gain 3.6, threshold 5.8'
    """
    return status.replace(f"{UNSUPPORTED} (", "dropped: ").removesuffix(")")


def describe_pairs(
    model: FittedModel, schema: Schema, score: str, of: int | None = None
) -> InteractionScores:
    """The scored pairs of a fitted model by their columns' names; or those ``of`` one column."""
    pairs = [pair for pair in model.pairs if of is None or of in pair.features]
    names = [tuple(schema.names[feature] for feature in pair.features) for pair in pairs]
    rows = tuple(
        PairRow(
            rank=rank,
            pair=term_name(feature_names, schema.names),
            features=pair.features,
            feature_names=feature_names,
            score=pair.score,
            status=pair.status,
        )
        for rank, (pair, feature_names) in enumerate(zip(pairs, names, strict=True), start=1)
    )
    return InteractionScores(rows, score, schema.names, schema.backend)
