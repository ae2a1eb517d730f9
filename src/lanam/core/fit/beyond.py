"""Beyond the data: functions run out, and their bands grow at the rate of the prior (method.md).

The tangent features of a network run on along its last slope, which no row supports. So a term's function
is held at its value at the edge of the data along every numeric column: the increments from there have mean
zero and the prior's variance,

    Var[f(x) - f(edge)] = sum_p (J_p(x) - J_p(edge))^2 / lambda_p,

as one further coordinate for each side of each column. A function of one column that is straight over the
data goes on along its line for half of the data's range. No row lies there: nothing else changes.

Of very many groups with curves the rarest share an entry, to which the prior of one group is added
likewise, and surfaces have that of their prior at places without data. An interaction is shrunk in cells
without data where its prior variance is out of proportion to the response's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, State, TermState
from lanam.core.rows.statistics import output_places
from lanam.core.terms.knots import LINEAR, SMOOTH, Categories, Knots
from lanam.core.terms.spatial import SpatialTerm
from lanam.core.terms.term import MixedTerm, SmoothTerm, Term, main_effects

#: A function is straight if this fraction of its variance over the data, or less, is not along a line; in
#: proportion, it goes on along the line.
_BENT = 0.05
#: How far it goes on, in ranges of the data.
_STRAIGHT_ON = 0.5
#: An interaction's largest prior standard deviation where no data is, in those of the response.
_LARGEST = 2.0


def run_out(
    problem: Problem, state: State, solution: Solution, curved: Collection[int] = ()
) -> Solution:
    """The solution with functions that run out beyond the data.

    Those of ``curved`` columns, which are convex or concave, go on at their last slope: held at their last
    value, they would not be.
    """
    largest = _LARGEST * _response_spread(problem, state, solution)
    straight_on = main_effects(problem.terms, curved)
    fitted = zip(problem.terms, state.terms, solution.means, solution.tables, strict=True)
    terms = [
        _at_last_slope(*each)
        if k in straight_on
        else _extended(*each, problem.data_mass[k], largest)
        for k, each in enumerate(fitted)
    ]
    n_outputs = problem.likelihood.n_outputs
    widths = [table.shape[1] for table in solution.tables]
    wider = [widths[k] + terms[k].increments.shape[1] for k in range(len(terms))]
    places = _old_places(widths, wider, n_outputs)
    covariance = np.eye((sum(wider) + 1) * n_outputs)
    covariance[np.ix_(places, places)] = solution.covariance
    levels = solution.levels
    if levels is not None:
        coupling = np.zeros((len(levels.coupling), len(covariance)))
        coupling[:, places] = levels.coupling
        levels = replace(levels, coupling=coupling)
    return replace(
        solution,
        means=tuple(term.mean for term in terms),
        tables=tuple(np.hstack([term.table, term.increments]) for term in terms),
        covariance=covariance,
        levels=levels,
    )


def _response_spread(problem: Problem, state: State, solution: Solution) -> float:
    """The response's standard deviation on the predictor's scale, as if terms were independent."""
    by_term = zip(problem.data_mass, solution.means, strict=True)
    explained = sum(np.max(mass @ np.square(mean), initial=0.0) for mass, mean in by_term)
    return float(np.sqrt(explained + state.noise))


def _old_places(widths: list[int], wider: list[int], n_outputs: int) -> IntArray:
    """Indices of the earlier coordinates among the new ones, in their order."""
    before, after = output_places(widths, n_outputs), output_places(wider, n_outputs)
    starts = np.cumsum([0, *wider])
    kept = [start + np.arange(width) for start, width in zip(starts, widths, strict=False)]
    columns = np.concatenate([*kept, starts[-1:]]).astype(np.intp)
    places = np.empty(before.size, dtype=np.intp)
    places[before] = after[:, columns]
    return places


@dataclass(frozen=True)
class _Extended:
    """A term's mean (B,) or (B, M), its table (B, r), and standard deviations of increments (B, sides)."""

    mean: Array
    table: Array
    increments: Array


def _extended(
    term: Term,
    estimate: TermState,
    mean: Array,
    table: Array,
    data_mass: Array,
    largest: float,
) -> _Extended:
    shape = tuple(len(axis) for axis in term.entries.axes)
    # A period has no outside, and a line goes on.
    numeric = [
        k
        for k, axis in enumerate(term.entries.axes)
        if isinstance(axis, Knots) and axis.course == SMOOTH
    ]
    features = estimate.jacobian.reshape(*shape, -1)
    # A line has no cells to be shrunk in: it would not be one.
    straight = any(isinstance(axis, Knots) and axis.course == LINEAR for axis in term.entries.axes)
    is_interaction = isinstance(term, SmoothTerm) and term.joint and not straight
    varies = bool(numeric) or is_interaction
    scale = 1.0 / np.sqrt(estimate.precision[term.group_index]) if varies else np.empty(0)
    # Where every output has a network of its own, increments are their mean.
    n_networks = features.shape[-1] // max(len(scale), 1)
    scale = np.tile(scale, n_networks) / np.sqrt(max(n_networks, 1))
    held = [values.reshape(*shape, -1) for values in (mean, table, data_mass)]
    sides = list[Array]()
    for k in numeric:
        knots = term.entries.axes[k]
        assert isinstance(knots, Knots)
        edge = _edges(knots)
        at_edge = np.take(features, edge, axis=k)
        size = np.sqrt(np.einsum("...p,p->...", np.square(features - at_edge), np.square(scale)))
        features, held = at_edge, [np.take(values, edge, axis=k) for values in held]
        sides += [_one_side(size, k, knots, side).reshape(-1, 1) for side in (-1, 1)]
    mean, table, mass = (
        values.reshape(before.shape)
        for values, before in zip(held, (mean, table, data_mass), strict=True)
    )
    if is_interaction:
        variance = np.einsum("...p,p->...", np.square(features), np.square(scale)).ravel()
        mean, table, lost = _in_proportion(
            mean, table, np.where(mass > 0.0, 0.0, variance), largest
        )
        sides += [lost]
    sides += _other_groups(term, estimate)
    if isinstance(term, SpatialTerm):
        sides.append(_unseen_places(term, estimate, [table, *sides], data_mass))
    increments = np.hstack(sides) if sides else np.empty((len(table), 0))
    if numeric and isinstance(term.entries, Knots) and isinstance(term, SmoothTerm):
        return _straight_on(term.entries, data_mass, _Extended(mean, table, increments))
    return _Extended(mean, table, increments)


def _in_proportion(
    mean: Array, table: Array, variance: Array, largest: float
) -> tuple[Array, Array, Array]:
    """Mean and table (B, r) of prior variance ``largest^2`` at most, and new deviations (B, 0 or 1).

    An interaction of columns that are nearly on a line is small on it once it is pure, and its prior, which
    is tuned there, very large elsewhere. The prior ``variance`` beyond ``largest^2`` counts as noise: with
    ``c = largest^2 / variance`` the function is ``c`` times what was extrapolated, with a deviation of
    variance ``(1 - c) largest^2``.
    """
    too_large = variance > largest**2
    if not too_large.any():
        return mean, table, np.empty((len(table), 0))
    share = np.ones_like(variance)
    share[too_large] = largest**2 / variance[too_large]
    lost = largest * np.sqrt(1.0 - share)[:, None]
    return (share * mean.T).T, share[:, None] * table, lost


def _other_groups(term: Term, estimate: TermState) -> list[Array]:
    """The prior's deviations of one group (B, q), where groups share an entry because they are many.

    What they have in common is known, and nothing of each of them.
    """
    if not isinstance(term, MixedTerm) or not term.grouped:
        return []
    pooled = [
        k
        for k, axis in enumerate(term.entries.axes)
        if isinstance(axis, Categories) and bool((axis.entry_of == axis.n_own + 1).any())
    ]
    if not pooled:
        return []
    shape = term.entries.shape
    features = term.jacobian(estimate.expansion)
    features = features / np.sqrt(estimate.precision[term.group_index])
    others = np.indices(shape)[pooled[0]].ravel() == shape[pooled[0]] - 1
    own = np.flatnonzero(np.any(features[others] != 0.0, axis=0))
    return [features[:, own] * others[:, None]]


def _unseen_places(
    term: SpatialTerm, estimate: TermState, known: Sequence[Array], data_mass: Array
) -> Array:
    """Standard deviations (B, 1) of what a surface's prior has where no data is, beyond what is ``known``.

    Features are of places with data, and say little of the others.
    """
    prior = term.prior_variance(estimate.precision)
    missing = prior - sum(np.square(part).sum(axis=1) for part in known)
    return np.sqrt(np.maximum(np.where(data_mass > 0.0, 0.0, missing), 0.0))[:, None]


def _at_last_slope(term: Term, estimate: TermState, mean: Array, table: Array) -> _Extended:
    """A function that goes on along its last slope on either side, with increments along a line, too."""
    knots = term.entries
    assert isinstance(knots, Knots)
    scale = 1.0 / np.sqrt(estimate.precision[term.group_index])
    n_points, inside = len(knots.points), knots.inside
    lines, increments = np.eye(len(knots)), np.zeros((len(knots), 2))
    ends = (
        (slice(0, inside.start), inside.start, 1),
        (slice(inside.stop, n_points), inside.stop - 1, -1),
    )
    for side, (beyond, end, inward) in enumerate(ends):
        distance = knots.points[beyond] - knots.points[end]
        step = knots.points[end + inward] - knots.points[end]
        lines[beyond] = 0.0
        lines[beyond, end] = 1.0 - distance / step
        lines[beyond, end + inward] = distance / step
        if len(distance):
            size = np.linalg.norm(
                (estimate.jacobian[beyond] - estimate.jacobian[end]) * scale, axis=1
            )
            increments[beyond, side] = np.abs(distance) * np.max(size / np.abs(distance))
    return _Extended(lines @ mean, lines @ table, increments)


def _edges(knots: Knots) -> IntArray:
    """Each entry's nearest one within the data; that of missing values is itself."""
    index = np.arange(len(knots))
    n_points = len(knots.points)
    index[:n_points] = np.clip(index[:n_points], knots.inside.start, knots.inside.stop - 1)
    return index


def _one_side(size: Array, axis: int, knots: Knots, side: int) -> Array:
    """Standard deviations of increments on one side of the data, which never fall with the distance."""
    beyond = np.arange(knots.inside.stop, len(knots.points))
    if side < 0:
        beyond = np.arange(knots.inside.start - 1, -1, -1)
    result, values = np.zeros_like(size), np.moveaxis(size, axis, 0)
    for place, largest in zip(beyond, accumulate(values[beyond], np.maximum), strict=True):
        np.moveaxis(result, axis, 0)[place] = largest
    return result


def _straight_on(knots: Knots, data_mass: Array, term: _Extended) -> _Extended:
    """A function of one column, along its line as far as it is straight over the data.

    With ``c`` from 0 (bent) to 1 (straight) the line adds ``c`` times its slope, and increments have
    ``1 - c^2`` of the prior's variance up to where the line ends, beyond it all that is new.
    """
    points, inside = knots.points, knots.inside
    mass, low, high = data_mass[: len(points)], points[inside.start], points[inside.stop - 1]
    total = float(mass.sum())
    centred = points - float(mass @ points) / total if total else np.zeros_like(points)
    squares = float(mass @ np.square(centred))
    if not squares:
        return term
    slope = (mass * centred) / squares
    values = term.mean[: len(points)].reshape(len(points), -1)
    values = values - mass @ values / total
    bent = values - np.outer(centred, slope @ values)
    variance = float((mass @ np.square(values)).sum())
    share = float((mass @ np.square(bent)).sum()) / variance if variance else 1.0
    straight = max(0.0, 1.0 - share / _BENT)
    reach = _STRAIGHT_ON * (high - low)
    distance = points - np.clip(points, low, high)
    line = np.zeros(len(term.mean))
    line[: len(points)] = straight * np.clip(distance, -reach, reach)
    slope = np.append(slope, np.zeros(len(term.mean) - len(points)))
    at_end = np.array(
        [
            np.interp(end, points, term.increments[: len(points), k])
            for k, end in enumerate((low - reach, high + reach))
        ]
    )
    new = np.maximum(term.increments - at_end, 0.0)
    variance_left = (1.0 - straight**2) * np.square(term.increments) + straight**2 * new**2
    return _Extended(
        term.mean + (line[:, None] * (slope @ term.mean)).reshape(term.mean.shape),
        term.table + np.outer(line, slope @ term.table),
        np.sqrt(variance_left),
    )
