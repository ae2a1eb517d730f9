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


class InteractionRow(TypedDict):
    """The record of a candidate interaction."""

    rank: int
    pair: str
    order: int
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    score: float
    status: str


@dataclass(frozen=True, eq=False)
class InteractionScores:
    """All pairs of columns and the likely triples, ranked by how likely they interact.

    Attributes
    ----------
    rows
        One record per interaction, best first, with the keys ``rank``, ``pair`` (``"a x b"``, or ``"a x b x
        c"``), ``order`` (its number of columns), ``features`` and ``feature_names`` (its columns, by index
        and by name), ``score`` and ``status``: ``"active"`` if the interaction is in the model, or why it
        is not. Of triples only those are listed whose score is promising, or that were tried.
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

    rows: tuple[InteractionRow, ...]
    score: str
    names: tuple[str, ...]
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[InteractionRow]:
        return iter(self.rows)

    def __getitem__(self, position: int) -> InteractionRow:
        return self.rows[position]

    @property
    def active(self) -> tuple[InteractionRow, ...]:
        """The interactions in the model."""
        return tuple(row for row in self.rows if row["status"] == ACTIVE)

    def of_order(self, order: int) -> tuple[InteractionRow, ...]:
        """The interactions of ``order`` columns: 2 for pairs, 3 for triples."""
        return tuple(row for row in self.rows if row["order"] == order)

    def matrix(self) -> Array:
        """Scores of pairs as a symmetric matrix over the columns, with NaN on the diagonal."""
        result = np.full((len(self.names), len(self.names)), np.nan)
        for row in self.of_order(2):
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
        """One row per interaction, as a frame of the library the model was fitted with.

        Its columns are ``first``, ``second`` and, if there are triples, ``third``.
        """
        names = [row["feature_names"] for row in self.rows]
        orders = range(max((row["order"] for row in self.rows), default=2))
        sides = zip(("first", "second", "third"), orders, strict=False)
        columns: dict[str, list[Any]] = {
            "rank": [row["rank"] for row in self.rows],
            **{
                side: [(*of_row, None)[min(k, len(of_row))] for of_row in names]
                for side, k in sides
            },
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
        room = WIDTH - 22 - max(map(len, statuses), default=0)  # for all names
        most_names = max((row["order"] for row in shown), default=2)
        names = [name for row in shown for name in row["feature_names"]]
        sides = dict(zip(names, cut(names, max(room // most_names, _LEAST_NAME)), strict=True))
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


def describe_interactions(
    model: FittedModel, schema: Schema, score: str, of: int | None = None
) -> InteractionScores:
    """The scored interactions of a fitted model by their columns' names; or those ``of`` one column."""
    pairs = [pair for pair in model.scored if of is None or of in pair.features]
    names = [tuple(schema.names[feature] for feature in pair.features) for pair in pairs]
    rows = tuple(
        InteractionRow(
            rank=rank,
            pair=term_name(feature_names, schema.names),
            order=len(pair.features),
            features=pair.features,
            feature_names=feature_names,
            score=pair.score,
            status=pair.status,
        )
        for rank, (pair, feature_names) in enumerate(zip(pairs, names, strict=True), start=1)
    )
    return InteractionScores(rows, score, schema.names, schema.backend)
