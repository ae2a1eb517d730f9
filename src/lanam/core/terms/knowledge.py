"""What is known of the columns before the data: one frozen value, from the parameters to the terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lanam.core.terms.constraints import Constraint


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge of columns, which are indices.

    Everything is a tuple: checkpoints compare its text.
    """

    #: columns of cyclic quantities, with their periods
    cyclic: tuple[tuple[int, float], ...] = ()
    #: columns whose main effects are straight lines
    linear: tuple[int, ...] = ()
    #: columns of categories of which neighbours are alike
    ordered: tuple[int, ...] = ()
    #: columns whose main effects are never dropped
    keep: tuple[int, ...] = ()
    #: pairs of columns that are never tried, the smaller index first
    excluded: tuple[tuple[int, int], ...] = ()
    #: columns whose curves, or lines, differ between groups, with the column that has the groups or, where
    #: it is numeric, multiplies the curve
    by: tuple[tuple[int, int], ...] = ()
    slopes: tuple[tuple[int, int], ...] = ()
    #: monotone, convex and concave columns
    constraints: tuple[Constraint, ...] = ()
    #: pairs of columns that are coordinates, with one surface and no curves, the smaller index first
    spatial: tuple[tuple[int, int], ...] = ()

    @cached_property
    def periods(self) -> Mapping[int, float]:
        """The periods of cyclic columns."""
        return dict(self.cyclic)

    @cached_property
    def grouped(self) -> frozenset[tuple[int, int]]:
        """The pairs of columns with curves or lines by group, the smaller index first."""
        return frozenset((min(pair), max(pair)) for pair in (*self.by, *self.slopes))

    @cached_property
    def curved(self) -> frozenset[int]:
        """Convex and concave columns, which have no interactions."""
        return frozenset(each.feature for each in self.constraints if each.curved)

    @cached_property
    def constrained(self) -> frozenset[int]:
        """Columns with constraints, which have no per-value effects and no interactions of three."""
        return frozenset(each.feature for each in self.constraints)

    def excludes(self, columns: tuple[int, ...]) -> bool:
        """Whether an interaction of these columns is never tried."""
        bound = self.curved if len(columns) == 2 else self.constrained
        pairs = (set(columns).issuperset(pair) for pair in self.excluded)
        return any(pairs) or not bound.isdisjoint(columns)

    def of_noise(self) -> Knowledge:
        """What of it holds for a model of the noise: the shapes of columns."""
        return Knowledge(self.cyclic, self.linear, self.ordered)


#: Where nothing is known.
NOTHING = Knowledge()
