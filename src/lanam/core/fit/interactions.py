"""Scores of candidate interactions (method.md 6; paper, section 3.2.3, appendix A.2).

All are computed after the first stage, for every pair, without fitting one.

- ``evidence``: the log evidence gain of a joint term, in closed form, on the residuals of the first stage.
  It detects any interaction, with or without main effects, and its unit is nats.
- ``mutual_information``: between the posteriors of the two columns' effects, and ``evidence_gain``: the
  gain of the paper's evidence bound if the pair's blocks were joint. Both are the paper's, and both
  measure confounding of the two effects, not residual structure. They exist for the effects' output
  multipliers (the last layer) and for all parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.blas import limited_threads
from lanam.core.fit.prepare import Pair, pair_levels
from lanam.core.inference.evidence import INTERCEPT_PRECISION, marginal_precision
from lanam.core.inference.prior import inverse_and_log_det
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.reading import read
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

#: Cells of a numeric column in the scores.
_N_BINS = 12

#: Length scales of the kernels, in units of a column's spread, and candidate prior variances, in
#: units of the response's (on the link scale).
_LENGTHS = (0.5, 1.0, 2.0)
_VARIANCES = np.array([1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0])

#: Directions of a product of two kernels below this fraction of the largest are omitted, and a column has
#: at most this many.
_SMALLEST_DIRECTION = 3e-3
_MAX_DIRECTIONS = 6


def all_pairs(features: Sequence[int]) -> list[Pair]:
    """Every pair of different columns, the smaller index first."""
    return list(combinations(sorted(features), 2))


def score(
    kind: str,
    problem: Problem,
    state: State,
    summary: DataSummary,
    pairs: Sequence[Pair],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
    *,
    trained: bool = False,
) -> Array:
    """Nonnegative scores of ``pairs``; larger ones are more likely to interact.

    ``categories`` are the categorical columns. Effects of ``trained`` networks are multiplied as they are.
    """
    if kind == "evidence":
        binned = bin_columns(summary, pairs, categories)
        cells = {feature: (column.entries, column.number) for feature, column in binned.items()}
        job = partial(_cell_sums_of_rows, problem.around(state), cells, pairs)
        sums = problem.rows.total(job)
        return evidence_scores(binned, pairs, [total / state.noise for total in sums])
    full = kind.endswith("_full")
    effects = (
        multipliers(problem, state) if trained and not full else joint_precision(problem, state)
    )
    if not full and not trained:
        effects = effects.last_layer()
    measure = gain_scores if kind.startswith("evidence_gain") else information_scores
    return measure(effects, pairs)


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
    pairs: Sequence[Pair],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
) -> dict[int, Binned]:
    """The columns of some pairs, binned."""
    features = sorted({feature for pair in pairs for feature in pair})
    # Many small matrices: one BLAS thread is fastest.
    with limited_threads(1):
        return {
            feature: _bin(summary.columns[feature], coded=feature in categories)
            for feature in features
        }


def evidence_scores(
    binned: Mapping[int, Binned], pairs: Sequence[Pair], sums: Sequence[Array]
) -> Array:
    """Log evidence gain of a joint term, maximised over its length scale and variance.

    ``sums`` are, for each pair, curvature and gradient of the log-likelihood in its cells at the first
    stage's prediction, in units of the noise (2, cells, outputs); gains are summed over outputs. The joint
    term is a Gaussian process: a product of two kernels on the grid of cells, without main effects.
    Categories and missing values are cells without neighbours.
    """
    with limited_threads(1):
        gains = [
            sum(
                _evidence_gain(binned[i], binned[j], *of_output)
                for of_output in zip(curvature.T, gradient.T, strict=True)
            )
            for (i, j), (curvature, gradient) in zip(pairs, sums, strict=True)
        ]
    return np.array(gains, dtype=float)


Cells = Mapping[int, tuple[Levels | Categories, IntArray]]


def _cell_sums_of_rows(
    around: Around, cells: Cells, pairs: Sequence[Pair], parts: Iterable[Rows]
) -> Totals:
    def of(part: Rows) -> Totals:
        gradient, curvature = around.derivatives(part)
        curvature = statistics.own_curvature(curvature)
        if part.repeats is None:
            return cell_sums(part.columns, gradient, curvature, cells, pairs)
        # Pairs of a subject's own columns need only its sums.
        own = [pair for pair in pairs if not part.varies(pair)]
        varying = [pair for pair in pairs if part.varies(pair)]
        subjects = part.columns, part.repeats.sum(gradient), part.repeats.sum(curvature)
        rows = part.all_columns({k for pair in varying for k in pair}), gradient, curvature
        sums = dict(zip(own, cell_sums(*subjects, cells, own), strict=True))
        sums |= zip(varying, cell_sums(*rows, cells, varying), strict=True)
        return tuple(sums[pair] for pair in pairs)

    return added(parts, 8 * statistics.CHUNK_ROWS, of)


def cell_sums(
    columns: Array, gradient: Array, curvature: Array, cells: Cells, pairs: Sequence[Pair]
) -> Totals:
    """Sums of curvature and gradient in the cells of some pairs: (2, cells, outputs) each."""
    cell = {}
    for feature in {feature for pair in pairs for feature in pair}:
        entries, number = cells[feature]
        cell[feature] = number[entries.locate(columns[:, feature]).index]
    size = {feature: int(number.max()) + 1 for feature, (_, number) in cells.items()}
    outputs = [np.atleast_2d(values.T) for values in (curvature, gradient)]
    totals = []
    for first, second in pairs:
        joint = cell[first] * np.int32(size[second]) + cell[second]
        n_cells = size[first] * size[second]
        sums = [[sum_by(joint, output, n_cells) for output in values] for values in outputs]
        totals.append(np.swapaxes(np.array(sums), 1, 2))
    return tuple(totals)


def _bin(column: ColumnSummary, *, coded: bool) -> Binned:
    distribution = column.distribution
    if coded:
        entries = pair_levels(column)
        mass = sum_by(entries.entry_of, column.mass, len(entries))
        mass[entries.n_own] = distribution.missing
        return _binned(entries, mass, np.empty(0))
    cells = place_levels(distribution, _N_BINS, _N_BINS)
    cell_of_value = cells.locate(distribution.values * distribution.scale).index
    mass = sum_by(cell_of_value, distribution.mass, len(cells))
    inputs = distribution.mass * column.inputs
    n_points = len(cells.points)
    centres = sum_by(cell_of_value, inputs, n_points)[:n_points] / mass[:n_points]
    if cells.missing:
        mass[n_points] = distribution.missing
    return _binned(cells, mass, centres)


def _binned(entries: Levels | Categories, mass: Array, centres: Array) -> Binned:
    """Entries with a ``mass`` as cells; the first have ``centres``, the others no neighbours."""
    n_cells = len(mass)
    seen = np.flatnonzero(mass)
    density = mass[seen] / mass.sum()
    number = np.maximum(np.cumsum(mass > 0.0) - 1, 0).astype(np.int32)
    kernels = []
    for length in _LENGTHS:
        kernel = np.eye(n_cells)
        near = np.exp(-0.5 * np.square((centres[:, None] - centres) / length))
        kernel[: len(centres), : len(centres)] = near
        # Cells without neighbours have directions of their own.
        most = _MAX_DIRECTIONS + len(seen) - len(centres)
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


def _evidence_gain(first: Binned, second: Binned, curvature: Array, gradient: Array) -> float:
    shape = (first.n_cells, second.n_cells)
    products = []
    for left, left_size, right, right_size in zip(
        first.directions, first.sizes, second.directions, second.sizes, strict=True
    ):
        size = np.outer(left_size, right_size)
        keep = size > _SMALLEST_DIRECTION * size.max(initial=0.0)
        product = left[:, None, :, None] * right[None, :, None, :]
        products.append(product.reshape(len(curvature), *size.shape)[:, keep])
    # Purified for all length scales at once.
    pure = purify(np.concatenate(products, axis=1), curvature / curvature.sum(), shape)
    ends = np.cumsum([product.shape[1] for product in products])
    tables = np.split(pure, ends[:-1], axis=1)
    return max(_best_gain(t.T @ (t * curvature[:, None]), t.T @ gradient) for t in tables)


def _best_gain(gram: Array, target: Array) -> float:
    """``1/2 t' (G + I/v)^-1 t - 1/2 log |I + v G|``, maximised over ``v``."""
    size, vectors = np.linalg.eigh(gram)
    shrunk = 1.0 + _VARIANCES[:, None] * np.maximum(size, 0.0)
    fit = _VARIANCES[:, None] * np.square(vectors.T @ target) / shrunk
    return float((0.5 * (fit - np.log(shrunk))).sum(axis=1).max(initial=0.0))


# --- the paper's scores -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Effects:
    """The joint posterior of all effects; ``blocks[d]`` are column ``d``'s coordinates.

    The last coordinates are the intercepts.
    """

    precision: Array
    mean: Array
    blocks: dict[int, IntArray]

    def last_layer(self) -> Effects:
        """The posterior of one multiplier per column, of its whole effect."""
        n_terms = sum(map(len, self.blocks.values()))
        n_free = len(self.precision) - n_terms
        project = np.zeros((len(self.precision), len(self.blocks) + n_free))
        project[n_terms:, len(self.blocks) :] = np.eye(n_free)
        for k, block in enumerate(self.blocks.values()):
            project[block, k] = self.mean[block]
        blocks = {feature: np.array([k]) for k, feature in enumerate(self.blocks)}
        return Effects(project.T @ self.precision @ project, np.ones(project.shape[1]), blocks)


def joint_precision(problem: Problem, state: State) -> Effects:
    """The Laplace posterior of all main effects, dense (paper, appendix A.2)."""
    linear = Regression.of(problem, state)
    precision = marginal_precision(linear.model, linear.start)
    coordinates = np.arange(linear.model.intercepts.start)
    blocks: dict[int, IntArray] = {}
    for term, block in zip(problem.terms, linear.model.prior.blocks, strict=True):
        places = coordinates[block]
        if len(term.features) == 1 and len(places):
            feature = term.features[0]
            blocks[feature] = np.concatenate([blocks.get(feature, places[:0]), places])
    return Effects(precision, linear.solve().mean, blocks)


def multipliers(problem: Problem, state: State) -> Effects:
    """The last layer of trained networks: the posterior of one multiplier per column, of its whole effect.

    Their prior is standard normal, as in the paper's public code: small effects have little information.
    """
    n_outputs = problem.likelihood.n_outputs
    features = sorted({term.features[0] for term in problem.terms if len(term.features) == 1})
    number = {feature: k for k, feature in enumerate(features)}
    places = [number.get(term.features[0], -1) if not term.joint else -1 for term in problem.terms]
    (seen,) = problem.rows.total(partial(_multiplier_sums, problem.around(state), places))
    precision = seen / state.noise
    precision += np.diag(np.r_[np.ones(len(features)), np.full(n_outputs, INTERCEPT_PRECISION)])
    blocks = {feature: np.array([k]) for feature, k in number.items()}
    return Effects(precision, np.ones(len(precision)), blocks)


def _multiplier_sums(around: Around, places: Sequence[int], parts: Iterable[Rows]) -> Totals:
    """The curvature in the multipliers and, last, in the outputs' intercepts."""
    n_outputs, n_columns = around.likelihood.n_outputs, max(places, default=-1) + 1

    def of(part: Rows) -> Totals:
        curvature = around.derivatives(part)[1].reshape(len(part), n_outputs, n_outputs)
        design = np.zeros((len(part), n_outputs, n_columns + n_outputs))
        design[:, :, n_columns:] = np.eye(n_outputs)
        for position, values, place in zip(part.positions, around.values, places, strict=True):
            if place >= 0:
                design[:, :, place] += read(position, values).reshape(len(part), n_outputs)
        bent = np.einsum("nkl,nlj->nkj", curvature, design)
        return (np.tensordot(design, bent, axes=((0, 1), (0, 1))),)

    return added(parts, statistics.CHUNK_ROWS, of)


def information_scores(effects: Effects, pairs: Sequence[Pair]) -> Array:
    """Mutual information of two effects' posteriors (paper, eq. mi_param).

    ``1/2 log (|S_d| |S_d'| / |S_dd'|)`` with ``S`` the joint posterior covariance; for multipliers
    ``-1/2 log(1 - corr^2)``.
    """
    covariance, _ = inverse_and_log_det(effects.precision)
    return 0.5 * _log_det_ratios(covariance, effects.blocks, pairs)


def gain_scores(effects: Effects, pairs: Sequence[Pair]) -> Array:
    """Gain of the evidence bound if two blocks were joint (paper, eq. interaction_gain)."""
    return _log_det_ratios(effects.precision, effects.blocks, pairs)


def _log_det_ratios(matrix: Array, blocks: dict[int, IntArray], pairs: Sequence[Pair]) -> Array:
    """``log |A_d| + log |A_d'| - log |A_dd'|`` of a positive definite ``A``; 0 where a block is empty.

    With ``A_d = L_d L_d'`` it is ``-log |I - C C'|`` for ``C = L_d^-1 A_dd' L_d'^-T``, whose singular
    values are the canonical correlations.
    """
    half = {
        feature: np.linalg.inv(np.linalg.cholesky(matrix[np.ix_(block, block)]))
        for feature, block in blocks.items()
    }
    ratios = np.zeros(len(pairs))
    for k, (i, j) in enumerate(pairs):
        if i in blocks and j in blocks:
            coupling = half[i] @ matrix[np.ix_(blocks[i], blocks[j])] @ half[j].T
            correlation = np.linalg.svd(coupling, compute_uv=False)
            # Rounding may give a correlation of one, where the information is infinite.
            ratios[k] = -np.log1p(-np.minimum(np.square(correlation), 1.0 - 1e-15)).sum()
    return ratios
