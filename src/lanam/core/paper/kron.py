"""Kronecker-factored curvature, layer by layer: the paper's choice (section 3.1; KFAC).

With a layer's inputs ``a_n`` (activations) and signals ``g_n`` (derivatives of the output in its
pre-activations), a row's Jacobian in the weights is the outer product ``a_n g_n'``. The tensor's
Gauss-Newton matrix, a sum over rows of ``gamma_n (a_n a_n') kron (g_n g_n')``, is replaced by

    H = A kron B / N,   A = sum_n w_n a_n a_n',   B = sum_n gamma_n g_n g_n',   N = sum_n w_n,

in the order of the flat parameter vector, with ``w_n`` the rows' weights and ``gamma_n`` the
likelihood's curvature times ``w_n``. ``H`` is exact for biases (inputs of 1), for output weights (signals
of 1) where the likelihood's curvature is constant (Gaussian noise), and for a single row. Tensors and terms
are independent of each other.

Rows are summed at the entries of a term's table, which is exact where every row is at an entry. The
factors are those of the network itself; the variance is that of the function centred over the data, so
that credible bands are comparable with those of exact curvature. Eigenvectors diagonalise ``H + Lambda``
only if a tensor has one prior precision, which excludes several bands of scales in the first layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.inference import evidence
from lanam.core.inference.posterior import Determinant, Functions, Solution, of_regression
from lanam.core.inference.problem import UNSEEN_PRECISION, Problem, Regression, State
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals
from lanam.core.terms import networks
from lanam.core.terms.linearise import centred
from lanam.core.terms.term import LevelTerm, SmoothTerm, Term

#: Directions of the function's posterior below this fraction of the largest are dropped.
_FACTOR_TOLERANCE = 1e-6

#: Eigenvalues and eigenvectors of a positive semi-definite factor.
Spectrum = tuple[Array, Array]


@dataclass(frozen=True)
class Factor:
    """A positive semi-definite matrix, of which the evidence needs the eigenvalues only."""

    matrix: Array

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues, none of them negative."""
        if self._diagonal:
            return np.array(self.matrix.diagonal())
        return np.asarray(np.maximum(np.linalg.eigvalsh(self.matrix), 0.0))

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors."""
        if self._diagonal:
            return self.eigenvalues, np.eye(len(self.matrix))
        values, vectors = np.linalg.eigh(self.matrix)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def _diagonal(self) -> bool:
        """As that of effects of categories, of which there may be many."""
        return bool(np.count_nonzero(self.matrix) == np.count_nonzero(self.matrix.diagonal()))


@dataclass(frozen=True)
class TensorBlock:
    """The curvature ``left kron right / total`` of one tensor, and its derivative at the entries."""

    left: Factor
    right: Factor
    total: float
    activations: Array
    signals: Array
    group: int

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues (fan_in, fan_out) of the block at unit noise."""
        return np.outer(self.left.eigenvalues, self.right.eigenvalues) / self.total


@dataclass(frozen=True)
class KronBlock:
    """A term's curvature ``H`` at unit noise; its posterior is ``Sigma = (H / noise + Lambda)^-1``.

    The argument ``precision`` has one value per prior group of the term.
    """

    tensors: tuple[TensorBlock, ...]

    @cached_property
    def eigenvalues(self) -> Array:
        """All eigenvalues of ``H``."""
        return np.concatenate([tensor.eigenvalues.ravel() for tensor in self.tensors])

    @cached_property
    def groups(self) -> NDArray[np.intp]:
        """The prior group of every eigenvalue."""
        sizes = [tensor.eigenvalues.size for tensor in self.tensors]
        return np.repeat([tensor.group for tensor in self.tensors], sizes)

    def measure(self, precision: Array, noise: float = 1.0) -> tuple[float, Array]:
        """``log |H / noise + Lambda| - log |Lambda|``, and every group's part of tr ``H / noise Sigma``."""
        return _determinant(self.eigenvalues, self.groups, np.log(precision), noise)

    def factor_table(self, term: Term, precision: Array, mass: Array, noise: float = 1.0) -> Array:
        """A table ``F`` (B, r) with ``F F'`` the posterior covariance of the centred function."""
        parts = []
        for tensor in self.tensors:
            (left, of_left), (right, of_right) = tensor.left.spectrum, tensor.right.spectrum
            curvature = np.outer(left, right) / (tensor.total * noise)
            posterior = 1.0 / (curvature + precision[tensor.group])
            # The Jacobian in the tensor's eigenvectors.
            activations, signals = tensor.activations @ of_left, tensor.signals @ of_right
            part = activations[:, :, None] * signals[:, None, :] * np.sqrt(posterior)
            parts.append(part.reshape(len(part), -1))
        factor = centred(term, np.concatenate(parts, axis=1), mass)
        size, vectors = np.linalg.eigh(factor @ factor.T)
        # The tolerance is that of singular values.
        keep = size > _FACTOR_TOLERANCE**2 * size[-1]
        return np.asarray(vectors[:, keep] * np.sqrt(size[keep]))


def block(term: Term, expansion: Array, weight: Array, curvature: Array) -> KronBlock:
    """The curvature of a term at ``expansion``; ``weight`` and ``curvature`` are sums per entry."""
    tensors, start = list[TensorBlock](), 0
    for activations, signals, through in _outer_factors(term, expansion):
        size = activations.shape[1] * signals.shape[1]
        groups = np.unique(term.group_index[start : start + size])
        assert len(groups) == 1, "Kronecker factors need one prior precision per tensor"
        left = Factor(activations.T @ (activations * weight[:, None]))
        right = Factor(signals.T @ (signals * curvature[:, None]))
        if tensors and tensors[-1].signals is signals:  # those of a layer's weights and biases
            right = tensors[-1].right
        total = float(weight @ through[:, 0])
        tensors.append(TensorBlock(left, right, total, activations, signals, int(groups[0])))
        start += size
    return KronBlock(tuple(tensors))


def _outer_factors(term: Term, expansion: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Factors (B, fan_in), (B, fan_out) of every tensor's Jacobian, and (B, 1) the entries that use it."""
    ones = np.ones((len(term.entries), 1))
    if isinstance(term, LevelTerm):
        yield ones, np.eye(len(term.entries)), ones
        return
    assert isinstance(term, SmoothTerm), "with factored curvature a joint term has one network"
    sweep = networks.trace(term.architecture, expansion, term.entries.network_inputs)
    # A missing value passes through no layer: its effect is independent.
    n_missing = int(term.has_missing)

    def padded(values: Array) -> Array:
        return np.pad(values, ((0, n_missing), (0, 0))) if n_missing else values

    at_knots = padded(ones[n_missing:])
    for activations, signals in zip(sweep.activations, sweep.signals, strict=False):
        signals = padded(signals)
        yield padded(activations), signals, at_knots
        yield at_knots, signals, at_knots
    yield padded(sweep.activations[-1]), at_knots, at_knots
    if term.has_missing:
        yield ones, ones - at_knots, ones


def blocks(problem: Problem, state: State) -> tuple[KronBlock, ...]:
    """The curvature of every term's outputs, each by itself, at their expansion points."""
    total, n_outputs = problem.rows.count, problem.likelihood.n_outputs
    curvatures = _entry_curvatures(problem, state)
    terms = zip(problem.terms, state.terms, problem.data_mass, curvatures, strict=True)
    return tuple(
        block(term, expansion, mass * total, curvature)
        for term, estimate, mass, of_outputs in terms
        for expansion, curvature in zip(
            estimate.expansion.reshape(n_outputs, -1), of_outputs.T, strict=True
        )
    )


def _entry_curvatures(problem: Problem, state: State) -> list[Array]:
    """Sums of every output's curvature per table entry (B, K), one array per term."""
    if problem.likelihood.n_outputs == 1:
        return [sums[:, None] for sums in problem.quadratic(state).entry_curvature()]
    return list(problem.rows.total(partial(_curvature_sums, problem.around(state))))


def _curvature_sums(around: Around, parts: Iterable[Rows]) -> Totals:
    def of(part: Rows) -> Totals:
        outputs = statistics.own_curvature(around.derivatives(part)[1]).T
        sums = [statistics.entry_sums(part, of_output) for of_output in outputs]
        return tuple(np.column_stack(of_term) for of_term in zip(*sums, strict=True))

    return added(parts, statistics.CHUNK_ROWS, of)


def _intercept_covariance(problem: Problem, state: State) -> Array:
    """The posterior covariance of the intercepts, independent of all terms."""
    (seen,) = problem.rows.total(partial(_total_curvature, problem.around(state)))
    prior = evidence.INTERCEPT_PRECISION * np.eye(len(seen))
    return np.asarray(np.linalg.inv(seen / state.noise + prior))


def _total_curvature(around: Around, parts: Iterable[Rows]) -> Totals:
    """The sum over rows of their curvature, one matrix in the outputs."""

    def of(part: Rows) -> Totals:
        return (np.atleast_2d(around.derivatives(part)[1].sum(axis=0)),)

    return added(parts, statistics.CHUNK_ROWS, of)


def _in_common(tables: Sequence[Array]) -> tuple[Array, Array]:
    """One table ``T`` of several outputs' functions ``F_k``, and the covariance of all coordinates.

    With ``[F_1, F_2, ...] = U S V'``, ``T = U S`` and ``F_k = T V_k'``.
    """
    if len(tables) == 1:
        return tables[0], np.eye(tables[0].shape[1])
    left, size, right = np.linalg.svd(np.hstack(tables), full_matrices=False)
    keep = size > _FACTOR_TOLERANCE * size[0]
    parts = np.split(right[keep], np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)
    covariance = block_diag(*(part @ part.T for part in parts))
    # No coordinate may be without any variance, as one that another output alone needs.
    return left[:, keep] * size[keep], covariance + _FACTOR_TOLERANCE**2 * np.eye(len(covariance))


class KronCurvature:
    """Kronecker-factored blocks per term, and an independent intercept."""

    factored: ClassVar[bool] = True

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The tuned regression's mean with Kronecker-factored covariances and determinants.

        Precisions and the terms' log evidence gains are those of exact curvature.
        """
        linear = Regression.of(problem, state, UNSEEN_PRECISION)
        tuned, factored = linear.solve(), self.functions(problem, state)
        occam = float(tuned.energy.sum()) + sum(factored.log_dets)
        return replace(
            of_regression(linear, tuned),
            tables=factored.tables,
            covariance=factored.covariance,
            evidence=tuned.log_likelihood - 0.5 * occam,
            effective=factored.effective,
        )

    def functions(self, problem: Problem, state: State) -> Functions:
        """Factor tables with independent coordinates; several outputs of a term share a table."""
        tables, covariances, effective, log_dets = [], [], [], []
        for term, estimate, mass, outputs in zip(
            problem.terms, state.terms, problem.data_mass, _by_term(problem, state), strict=True
        ):
            prior = estimate.precision, mass, state.noise
            table, covariance = _in_common([kron.factor_table(term, *prior) for kron in outputs])
            measured = [kron.measure(estimate.precision, state.noise) for kron in outputs]
            tables.append(table)
            covariances.append(covariance)
            effective.append(sum(float(edf.sum()) for _, edf in measured))
            log_dets.append(sum(log_det for log_det, _ in measured))
        whole = block_diag(*covariances, _intercept_covariance(problem, state))
        return Functions(tuple(tables), whole, tuple(effective), tuple(log_dets))

    def determinant(self, problem: Problem, state: State) -> Determinant:
        """The determinant around trained networks."""
        groups, starts = [], np.cumsum([0, *(len(term.precision) for term in state.terms)])
        eigenvalues = []
        for start, outputs in zip(starts, _by_term(problem, state), strict=False):
            eigenvalues += [kron.eigenvalues for kron in outputs]
            groups += [start + kron.groups for kron in outputs]
        return partial(_determinant, np.concatenate(eigenvalues), np.concatenate(groups))


def _by_term(problem: Problem, state: State) -> list[tuple[KronBlock, ...]]:
    """The blocks of every term's outputs."""
    found, n_outputs = blocks(problem, state), problem.likelihood.n_outputs
    return [found[start : start + n_outputs] for start in range(0, len(found), n_outputs)]


def _determinant(
    eigenvalues: Array, groups: IntArray, log_precision: Array, noise: float
) -> tuple[float, Array]:
    """``log |H / noise + Lambda| - log |Lambda|``, and every group's part of tr ``H / noise Sigma``."""
    ratio = eigenvalues / (noise * np.exp(log_precision)[groups])
    effective = sum_by(groups, ratio / (1.0 + ratio), len(log_precision))
    return float(np.log1p(ratio).sum()), effective
