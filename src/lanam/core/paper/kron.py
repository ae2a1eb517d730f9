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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, sum_by
from lanam.core.inference import evidence
from lanam.core.inference.posterior import Determinant, Functions, Solution, of_regression
from lanam.core.inference.problem import UNSEEN_PRECISION, Problem, Regression, State
from lanam.core.terms import networks
from lanam.core.terms.linearise import centred
from lanam.core.terms.term import LevelTerm, MixedTerm, Term

#: Directions of the function's posterior below this fraction of the largest are dropped.
_FACTOR_TOLERANCE = 1e-6

#: Eigenvalues and eigenvectors of a positive semi-definite factor.
Spectrum = tuple[Array, Array]


def _spectrum(matrix: Array) -> Spectrum:
    """Eigendecomposition without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors


@dataclass(frozen=True)
class TensorBlock:
    """The curvature ``left kron right / total`` of one tensor, and its derivative at the entries."""

    left: Spectrum
    right: Spectrum
    total: float
    activations: Array
    signals: Array
    group: int

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues (fan_in, fan_out) of the block at unit noise."""
        return np.outer(self.left[0], self.right[0]) / self.total


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
        ratio = self.eigenvalues / (noise * precision[self.groups])
        effective = sum_by(self.groups, ratio / (1.0 + ratio), len(precision))
        return float(np.log1p(ratio).sum()), effective

    def factor_table(self, term: Term, precision: Array, mass: Array, noise: float = 1.0) -> Array:
        """A table ``F`` (B, r) with ``F F'`` the posterior covariance of the centred function."""
        parts = []
        for tensor in self.tensors:
            posterior = 1.0 / (tensor.eigenvalues / noise + precision[tensor.group])
            # The Jacobian in the tensor's eigenvectors.
            activations = tensor.activations @ tensor.left[1]
            signals = tensor.signals @ tensor.right[1]
            part = activations[:, :, None] * signals[:, None, :] * np.sqrt(posterior)
            parts.append(part.reshape(len(part), -1))
        factor = centred(term, np.concatenate(parts, axis=1), mass)
        size, vectors = np.linalg.eigh(factor @ factor.T)
        # The tolerance is that of singular values.
        keep = size > _FACTOR_TOLERANCE**2 * size[-1]
        return np.asarray(vectors[:, keep] * np.sqrt(size[keep]))


def block(term: Term, expansion: Array, weight: Array, curvature: Array) -> KronBlock:
    """The curvature of a term at ``expansion``; ``weight`` and ``curvature`` are sums per entry."""
    tensors, start = [], 0
    for activations, signals, through in _outer_factors(term, expansion):
        size = activations.shape[1] * signals.shape[1]
        groups = np.unique(term.group_index[start : start + size])
        assert len(groups) == 1, "Kronecker factors need one prior precision per tensor"
        left = _spectrum(activations.T @ (activations * weight[:, None]))
        right = _spectrum(signals.T @ (signals * curvature[:, None]))
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
    if isinstance(term, MixedTerm):
        raise ValueError(
            "curvature='kron' has no form for pairs with categories or missing values: set "
            "curvature='exact', or interactions=0"
        )
    sweep = networks.trace(term.architecture, expansion, term.entries.network_inputs)
    # A missing value passes through no layer: its effect is independent.
    n_missing = int(term.has_missing)

    def padded(values: Array) -> Array:
        return np.pad(values, ((0, n_missing), (0, 0)))

    at_knots = padded(ones[n_missing:])
    for activations, signals in zip(sweep.activations, sweep.signals, strict=False):
        yield padded(activations), padded(signals), at_knots
        yield at_knots, padded(signals), at_knots
    yield padded(sweep.activations[-1]), at_knots, at_knots
    if term.has_missing:
        yield ones, ones - at_knots, ones


def blocks(problem: Problem, state: State) -> tuple[KronBlock, ...]:
    """Every term's curvature at its expansion point."""
    total = problem.rows.count
    curvatures = problem.quadratic(state).entry_curvature()
    return tuple(
        block(term, term_state.expansion, mass * total, curvature)
        for term, term_state, mass, curvature in zip(
            problem.terms, state.terms, problem.data_mass, curvatures, strict=True
        )
    )


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
        """Factor tables with unit covariance."""
        kron_blocks, precisions = blocks(problem, state), [term.precision for term in state.terms]
        columns = zip(kron_blocks, problem.terms, precisions, problem.data_mass, strict=True)
        tables = tuple(
            kron.factor_table(term, precision, mass, state.noise)
            for kron, term, precision, mass in columns
        )
        covariance = np.eye(sum(table.shape[1] for table in tables) + 1)
        seen = problem.quadratic(state).total_curvature / state.noise
        covariance[-1, -1] = 1.0 / (seen + evidence.INTERCEPT_PRECISION)
        measured = list(map(KronBlock.measure, kron_blocks, precisions, repeat(state.noise)))
        effective = tuple(float(edf.sum()) for _, edf in measured)
        return Functions(tables, covariance, effective, tuple(log_det for log_det, _ in measured))

    def determinant(self, problem: Problem, state: State) -> Determinant:
        """The determinant around trained networks."""
        kron_blocks = blocks(problem, state)
        ends = np.cumsum([len(term.precision) for term in state.terms])[:-1]

        def determinant(log_precision: Array, noise: float) -> tuple[float, Array]:
            precisions = np.split(np.exp(log_precision), ends)
            measured = map(KronBlock.measure, kron_blocks, precisions, repeat(noise))
            log_dets, edf = zip(*measured, strict=True)
            return sum(log_dets), np.concatenate(edf)

        return determinant
