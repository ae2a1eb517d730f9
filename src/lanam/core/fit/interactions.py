"""Scores of candidate interactions (method.md 6).

All are computed after the first stage, for every candidate, without fitting one.

- ``evidence``: the log evidence gain of a joint term, in closed form, on the residuals of the first stage.
  It detects any interaction, with or without effects of fewer columns, and its unit is nats.
- ``mutual_information`` and ``evidence_gain`` are the paper's, of pairs (``effect_scores.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.blas import limited_threads
from lanam.core.fit import effect_scores
from lanam.core.fit.joint import Interaction, joint_levels
from lanam.core.inference.problem import Problem, State
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.summaries import ColumnSummary, DataSummary
from lanam.core.rows.tables import Totals
from lanam.core.terms.knots import (
    NO_CATEGORIES,
    Categories,
    Levels,
    place_levels,
)
from lanam.core.terms.purity import purify

#: Cells of a numeric column in the scores of pairs and of triples, of which there are more.
_N_BINS = {2: 12, 3: 6}

#: Length scales of the kernels, in units of a column's spread, and candidate prior variances, in
#: units of the response's (on the link scale).
_LENGTHS = (0.5, 1.0, 2.0)
_VARIANCES = np.array([1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0])

#: Directions of a product of two kernels below this fraction of the largest are omitted, and a column has
#: at most this many.
_SMALLEST_DIRECTION = 3e-3
_MAX_DIRECTIONS = 6


#: Of more triples than these, those are scored in full for which the products of some directions of each
#: numeric column, at the middle length scale, gain most, or this much.
_FEW = 200
_SMOOTH_DIRECTIONS = 3
_SMOOTH_LENGTH = 1
_LEAST_SMOOTH_GAIN = 0.5


@dataclass(frozen=True)
class _Resolution:
    """Cells of a numeric column, length scales, and the most directions of a column."""

    n_bins: int
    lengths: tuple[float, ...]
    max_directions: int


#: For structure of pairs that is finer than what they are searched for with.
_FINE = _Resolution(24, (0.1, 0.25), 14)


def all_of_order(features: Sequence[int], order: int) -> list[Interaction]:
    """All sets of ``order`` different columns, the smaller indices first."""
    return list(combinations(sorted(features), order))


def score(
    kind: str,
    problem: Problem,
    state: State,
    summary: DataSummary,
    candidates: Sequence[Interaction],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
    *,
    trained: bool = False,
) -> Array:
    """Nonnegative scores of ``candidates`` of one order; larger ones are more likely to interact.

    ``categories`` are the categorical columns. Effects of ``trained`` networks are multiplied as they are.
    """
    if kind != "evidence":
        return effect_scores.score(kind, problem, state, candidates, trained=trained)
    binned = bin_columns(summary, candidates, categories)
    return _scores(binned, problem, state, candidates)


def fine_scores(
    problem: Problem,
    state: State,
    summary: DataSummary,
    pairs: Sequence[Interaction],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
) -> Array:
    """The evidence scores of structure of ``pairs`` that is finer than what they are searched for with."""
    if not pairs:
        return np.empty(0)
    return _scores(bin_columns(summary, pairs, categories, _FINE), problem, state, pairs)


def _scores(
    binned: Mapping[int, Binned],
    problem: Problem,
    state: State,
    candidates: Sequence[Interaction],
) -> Array:
    cells = {feature: (column.entries, column.number) for feature, column in binned.items()}
    sums = problem.rows.total(partial(_cell_sums_of_rows, problem.around(state), cells, candidates))
    return evidence_scores(binned, candidates, [total / state.noise for total in sums])


# --- evidence ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Binned:
    """A column in few cells, and for each length scale a kernel's directions.

    ``number[entry]`` is the cell of an entry among the ``n_cells`` that have rows. ``directions[l]``
    (cells, r) are scaled so that ``directions @ directions.T`` is the kernel, orthogonal to constants under
    the data; ``sizes[l]`` are their prior variances over the data.
    """

    entries: Levels | Categories
    number: IntArray
    n_cells: int
    directions: tuple[Array, ...]
    sizes: tuple[Array, ...]


def bin_columns(
    summary: DataSummary,
    candidates: Sequence[Interaction],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
    resolution: _Resolution | None = None,
) -> dict[int, Binned]:
    """The columns of some candidates, binned."""
    features = sorted({feature for candidate in candidates for feature in candidate})
    order = max(map(len, candidates), default=2)
    cells = resolution or _Resolution(_N_BINS[order], _LENGTHS, _MAX_DIRECTIONS)
    # Many small matrices: one BLAS thread is fastest.
    with limited_threads(1):
        return {
            feature: _bin(summary.columns[feature], order, cells, coded=feature in categories)
            for feature in features
        }


def evidence_scores(
    binned: Mapping[int, Binned], candidates: Sequence[Interaction], sums: Sequence[Array]
) -> Array:
    """Log evidence gain of a joint term, maximised over its length scale and variance.

    ``sums`` are, for each candidate, curvature and gradient of the log-likelihood in its cells at the first
    stage's prediction, in units of the noise (2, cells, outputs); gains are summed over outputs. The joint
    term is a Gaussian process: a product of kernels on the grid of cells, without effects of fewer columns.
    Categories and missing values are cells without neighbours.
    """

    def total(gain: Callable[[Sequence[Binned], Array, Array], float], k: int) -> float:
        columns, (curvature, gradient) = [binned[one] for one in candidates[k]], sums[k]
        outputs = zip(curvature.T, gradient.T, strict=True)
        return sum(gain(columns, *of_output) for of_output in outputs)

    gains = np.zeros(len(candidates))
    with limited_threads(1):
        chosen = range(len(candidates))
        if len(candidates) > _FEW and len(candidates[0]) > 2:
            smooth = np.array([total(_smooth_gain, k) for k in chosen])
            best = np.argsort(-smooth, kind="stable")
            chosen = best[: max(_FEW, int((smooth >= _LEAST_SMOOTH_GAIN).sum()))].tolist()
        for k in chosen:
            gains[k] = total(_evidence_gain, k)
    return gains


Cells = Mapping[int, tuple[Levels | Categories, IntArray]]


def _cell_sums_of_rows(
    around: Around, cells: Cells, candidates: Sequence[Interaction], parts: Iterable[Rows]
) -> Totals:
    def of(part: Rows) -> Totals:
        gradient, curvature = around.derivatives(part)
        curvature = statistics.own_curvature(curvature)
        if part.repeats is None:
            return cell_sums(part.columns, gradient, curvature, cells, candidates)
        # Interactions of a subject's own columns need only its sums.
        own = [candidate for candidate in candidates if not part.varies(candidate)]
        varying = [candidate for candidate in candidates if part.varies(candidate)]
        subjects = part.columns, part.repeats.sum(gradient), part.repeats.sum(curvature)
        rows = part.all_columns({k for one in varying for k in one}), gradient, curvature
        sums = dict(zip(own, cell_sums(*subjects, cells, own), strict=True))
        sums |= zip(varying, cell_sums(*rows, cells, varying), strict=True)
        return tuple(sums[candidate] for candidate in candidates)

    return added(parts, 8 * statistics.CHUNK_ROWS, of)


def cell_sums(
    columns: Array,
    gradient: Array,
    curvature: Array,
    cells: Cells,
    candidates: Sequence[Interaction],
) -> Totals:
    """Sums of curvature and gradient in the cells of some candidates: (2, cells, outputs) each."""
    cell = {}
    for feature in {feature for candidate in candidates for feature in candidate}:
        entries, number = cells[feature]
        cell[feature] = number[entries.locate(columns[:, feature]).index]
    size = {feature: int(number.max()) + 1 for feature, (_, number) in cells.items()}
    outputs = [np.atleast_2d(values.T) for values in (curvature, gradient)]
    totals = []
    for first, *others in candidates:
        joint, n_cells = cell[first], size[first]
        for other in others:
            joint = joint * np.int32(size[other]) + cell[other]
            n_cells *= size[other]
        sums = [[sum_by(joint, output, n_cells) for output in values] for values in outputs]
        totals.append(np.swapaxes(np.array(sums), 1, 2))
    return tuple(totals)


def _bin(column: ColumnSummary, order: int, resolution: _Resolution, *, coded: bool) -> Binned:
    distribution = column.distribution
    if coded:
        entries = joint_levels(column, order)
        mass = sum_by(entries.entry_of, column.mass, len(entries))
        mass[entries.n_own] = distribution.missing
        return _binned(entries, mass, np.empty(0), resolution)
    cells = place_levels(distribution, resolution.n_bins, resolution.n_bins)
    cell_of_value = cells.locate(distribution.values * distribution.scale).index
    mass = sum_by(cell_of_value, distribution.mass, len(cells))
    inputs = distribution.mass * column.inputs
    n_points = len(cells.points)
    centres = sum_by(cell_of_value, inputs, n_points)[:n_points] / mass[:n_points]
    if cells.missing:
        mass[n_points] = distribution.missing
    return _binned(cells, mass, centres, resolution)


def _binned(
    entries: Levels | Categories, mass: Array, centres: Array, resolution: _Resolution
) -> Binned:
    """Entries with a ``mass`` as cells; the first have ``centres``, the others no neighbours."""
    n_cells = len(mass)
    seen = np.flatnonzero(mass)
    density = mass[seen] / mass.sum()
    number = np.maximum(np.cumsum(mass > 0.0) - 1, 0).astype(np.int32)
    kernels = []
    for length in resolution.lengths:
        kernel = np.eye(n_cells)
        near = np.exp(-0.5 * np.square((centres[:, None] - centres) / length))
        kernel[: len(centres), : len(centres)] = near
        # Cells without neighbours have directions of their own.
        most = resolution.max_directions + len(seen) - len(centres)
        kernels.append(_kernel_directions(kernel[np.ix_(seen, seen)], density, most))
    directions, sizes = zip(*kernels, strict=True)
    return Binned(entries, number, len(seen), directions, sizes)


def _kernel_directions(kernel: Array, density: Array, most: int) -> tuple[Array, Array]:
    mean = kernel @ density
    kernel = kernel - np.outer(mean, mean) / (density @ mean)
    root = np.sqrt(density)
    size, vectors = np.linalg.eigh(root[:, None] * kernel * root)
    size, vectors = size[::-1][:most], vectors[:, ::-1][:, :most]
    keep = size > _SMALLEST_DIRECTION * size[0]
    return vectors[:, keep] / root[:, None] * np.sqrt(size[keep]), size[keep]


def _evidence_gain(columns: Sequence[Binned], curvature: Array, gradient: Array) -> float:
    products = [_products(columns, k) for k in range(len(columns[0].directions))]
    shape = tuple(column.n_cells for column in columns)
    # Purified for all length scales at once.
    pure = purify(np.concatenate(products, axis=1), curvature / curvature.sum(), shape)
    ends = np.cumsum([product.shape[1] for product in products])
    tables = np.split(pure, ends[:-1], axis=1)
    return max(_best_gain(t.T @ (t * curvature[:, None]), t.T @ gradient) for t in tables)


def _smooth_gain(columns: Sequence[Binned], curvature: Array, gradient: Array) -> float:
    """The gain of the smoothest products alone, not purified: little work for each of many triples."""
    table = np.ones((1, 1))
    for column in columns:
        most = None if isinstance(column.entries, Categories) else _SMOOTH_DIRECTIONS
        directions = column.directions[_SMOOTH_LENGTH][:, :most]
        product = table[:, None, :, None] * directions[None, :, None, :]
        table = product.reshape(len(table) * len(directions), -1)
    return _best_gain(table.T @ (table * curvature[:, None]), table.T @ gradient)


def _products(columns: Sequence[Binned], length: int) -> Array:
    """Products of the columns' directions at the cells of their grid, without negligible ones."""
    values, sizes = np.ones((1, 1)), np.ones(1)
    for column in columns:
        directions = column.directions[length]
        product = values[:, None, :, None] * directions[None, :, None, :]
        values = product.reshape(len(values) * len(directions), -1)
        sizes = np.multiply.outer(sizes, column.sizes[length]).ravel()
    return values[:, sizes > _SMALLEST_DIRECTION * sizes.max(initial=0.0)]


def _best_gain(gram: Array, target: Array) -> float:
    """``1/2 t' (G + I/v)^-1 t - 1/2 log |I + v G|``, maximised over ``v``."""
    size, vectors = np.linalg.eigh(gram)
    shrunk = 1.0 + _VARIANCES[:, None] * np.maximum(size, 0.0)
    fit = _VARIANCES[:, None] * np.square(vectors.T @ target) / shrunk
    return float((0.5 * (fit - np.log(shrunk))).sum(axis=1).max(initial=0.0))
