"""The prior of the regression's coordinates as a function of its hyperparameters (method.md 8).

With the tables fixed, changing group ``g``'s prior variance by a factor ``rho_g`` changes the coordinates'
prior covariance to ``W_d = sum_g rho_g V_g' V_g``, term by term. Several outputs have the same prior each:
``I x W_d``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from lanam.core.arrays import Array, IntArray, slices, sum_by
from lanam.core.inference.covariance import Covariance

_MIRROR_BLOCK = 128

#: Matrices of this width or wider are factored one by one, which costs less than their inverses in a batch.
_ALONE = 32

#: Terms are padded to multiples of this many coordinates if they are more than a few.
_PADDING = 8
_FEW_TERMS = 16


def inverse_and_log_det(matrix: Array) -> tuple[Array, float]:
    """Inverse and log-determinant of a positive definite matrix by one Cholesky factorisation."""
    if len(matrix) == 0:
        return matrix, 0.0
    # LAPACK's order is column by column: the transpose of a symmetric matrix needs no reordering.
    factor, info = lapack.dpotrf(matrix.T, lower=1, clean=0)
    if info != 0:
        raise np.linalg.LinAlgError("the posterior precision is not positive definite")
    log_det = 2.0 * float(np.log(np.diag(factor)).sum())
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    _mirror(inverse)
    return inverse.T, log_det


def _mirror(matrix: Array) -> None:
    """Copy the lower triangle to the upper one, by blocks that stay in the cache."""
    for start in range(0, len(matrix), _MIRROR_BLOCK):
        stop = start + _MIRROR_BLOCK
        block = np.tril(matrix[start:stop, start:stop])
        matrix[start:stop, start:stop] = block + np.tril(block, -1).T
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T


def conditioned(covariance: Array, known: slice) -> tuple[Array, float]:
    """The covariance given some coordinates, and the log-determinant of theirs."""
    precision, log_det = inverse_and_log_det(covariance[known, known])
    explained = covariance[:, known] @ precision @ covariance[known]
    return np.subtract(covariance, explained, out=explained), log_det


def block_inverse(matrix: Array, blocks: Iterable[slice]) -> tuple[Array, float]:
    """Inverses of diagonal blocks, and the sum of their log-determinants."""
    inverse, total = np.zeros_like(matrix), 0.0
    for block in blocks:
        inverse[block, block], log_det = inverse_and_log_det(matrix[block, block])
        total += log_det
    return inverse, total


@dataclass(frozen=True)
class RareLevels:
    """The coordinates of a term's other levels and of its rare ones, a row per output.

    A level of one or two rows explains their errors by itself: a gross one would raise the variance that
    all levels share. So a group's variance is tuned by its other levels, as if rare ones had free effects.
    """

    others: IntArray
    rare: IntArray

    def sums(self, mean: Array, variance: Array, common: Array, rho: float) -> tuple[float, float]:
        """Effective degrees of freedom and energy of the other levels.

        Of their contrasts, with ``P = I - 11'/K``: what they have in common is confounded with the rare
        levels' mean. ``tr(P (I - S / rho))`` and ``m' P m / rho``, with the levels' posterior ``variance``
        and the variance of the other levels' sum, ``common`` ``1' S 1``, for each output. A single other
        level has no contrast: rare levels alone do not determine their variance, which falls to zero.
        """
        effects, size = mean[self.others], self.others.shape[1]
        if size == 1:
            return float(len(self.others)), 0.0
        energy = float(np.square(effects - effects.mean(axis=1, keepdims=True)).sum())
        spread = float(variance[self.others].sum() - common.sum() / size)
        return len(self.others) * (size - 1) - spread / rho, energy / rho

    def own(self, mean: Array, information: Array, rho: float, noise: float) -> Array:
        """What the rare levels' own estimates add to evidence, squared residuals and degrees of freedom.

        With the ``information`` ``n_k / noise`` on level ``k``, its effect is the estimate ``e_k`` from its
        rows times ``rho n_k / (noise + rho n_k)``. The log-density is ``log N(e_k; 0, rho + noise / n_k)``,
        here of ``sqrt(n_k) e_k``: its unit is the response's, whatever the tables were made for.
        Their squared residuals (in units of the noise) are by ``n_k (e_k - effect)^2 / noise`` larger than
        with a free effect, and have by ``noise / (noise + rho n_k)`` more degrees of freedom.
        """
        information, effect = information[self.rare] / noise, self._effects(mean)
        variance = rho + 1.0 / information
        estimate = effect * variance / rho
        log_density = -0.5 * (
            np.square(estimate) / variance + np.log(noise * (1.0 + rho * information))
        )
        squares = information * np.square(estimate - effect)
        freedom = 1.0 / (1.0 + rho * information)
        return np.array([log_density.sum(), squares.sum(), freedom.sum()])

    def own_gain(self, mean: Array, information: Array, rho: float) -> float:
        """What the rare levels' effects add to the evidence, for likelihoods without noise.

        The log-density of ``own`` beside that at ``rho = 0``, which does not depend on hyperparameters.
        Nothing is divided by the information: rows of a certain class have none, and estimates of an
        improbable class have no bound.
        """
        information = information[self.rare]
        squares = np.square(self._effects(mean)) * (information + 1.0 / rho)
        return float(0.5 * (squares - np.log1p(rho * information)).sum())

    def _effects(self, mean: Array) -> Array:
        """The rare levels' effects, beside the mean of the others."""
        return np.asarray(mean[self.rare] - mean[self.others].mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class Prior:
    """How the coordinates' prior covariance depends on the groups' variances.

    ``widths`` are the terms' numbers of coordinates, all outputs one after another; ``group_grams`` are
    those of one output. Terms with one group have ``W = rho I``.
    """

    widths: tuple[int, ...]
    group_grams: tuple[Array, ...]
    #: levels with too few rows to determine the variance of their group, by the group
    rare: Mapping[int, RareLevels] = field(default_factory=dict)
    n_outputs: int = 1
    #: groups without a tuning penalty: those of terms whose precisions many groups of rows share
    exempt: frozenset[int] = frozenset()

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each term's coordinates."""
        return slices(self.widths)

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Each term's groups."""
        return slices(map(len, self.group_grams))

    @property
    def n_groups(self) -> int:
        """Number of groups of all terms."""
        return sum(map(len, self.group_grams))

    @cached_property
    def plain(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Coordinates of terms with one group, and their groups."""
        columns, groups = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for block, group, grams in zip(self.blocks, self.groups, self.group_grams, strict=True):
            if len(grams) == 1:
                columns.append(np.arange(block.start, block.stop))
                groups.append(np.full(block.stop - block.start, group.start))
        return np.concatenate(columns), np.concatenate(groups)

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The terms with several groups; those of similar widths are padded to one shape."""
        terms = [k for k, grams in enumerate(self.group_grams) if len(grams) > 1]
        width = {k: self.widths[k] // self.n_outputs for k in terms}
        step = _PADDING if len(terms) > _FEW_TERMS else max(width.values(), default=1)
        size = {k: -(-width[k] // max(step, 1)) for k in terms}
        return tuple(
            Batch.of(self, [k for k in terms if size[k] == similar])
            for similar in sorted(set(size.values()))
            if similar > 0
        )

    def times(self, blocks: Sequence[Array], diagonal: Array, vector: Array) -> Array:
        """A block-diagonal matrix times a vector over all coordinates.

        Its padded ``blocks`` of each batch are those of the terms with several groups: of all outputs, or
        of each if they are smaller. Elsewhere it is ``diagonal``.
        """
        result = diagonal * vector
        for batch, block in zip(self.batches, blocks, strict=True):
            batch.put(result, batch.product(block, batch.of_vector(vector)))
        return np.asarray(result)

    def precision(self, log_rho: Array) -> PriorPrecision:
        """``W^-1`` and ``log |W|`` at the given changes of the groups' variances."""
        rho = np.append(np.exp(log_rho), 0.0)
        _, plain_groups = self.plain
        covariance = tuple(batch.covariance(rho) for batch in self.batches)
        inverses = tuple(_inverses(blocks) for blocks in covariance)
        log_det = -sum(float(logs.sum()) for _, logs in inverses) * self.n_outputs
        plain = 1.0 / rho[plain_groups]
        return PriorPrecision(self, rho, log_det, tuple(inverse for inverse, _ in inverses), plain)


def _inverses(matrices: Array) -> tuple[Array, Array]:
    """Inverses of positive definite matrices (D, r, r), and the log-determinants of these."""
    if matrices.shape[-1] < _ALONE:
        root = np.linalg.cholesky(matrices)
        log_det = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(np.linalg.inv(matrices)), -log_det
    found = [inverse_and_log_det(matrix) for matrix in matrices]
    return np.stack([inverse for inverse, _ in found]), -np.array([log for _, log in found])


@dataclass(frozen=True)
class Batch:
    """Terms with several groups, padded to one shape for batched operations.

    Their Gram matrices (D, G, r, r) and groups (D, G) are those of each output; padded groups are -1. Their
    ``blocks`` of coordinates are of all outputs.
    """

    grams: Array
    groups: NDArray[np.intp]
    blocks: tuple[slice, ...]
    n_outputs: int

    @classmethod
    def of(cls, prior: Prior, terms: Sequence[int]) -> Batch:
        """Some of the prior's terms."""
        n_groups = max(len(prior.group_grams[k]) for k in terms)
        width = max(prior.group_grams[k].shape[1] for k in terms)
        grams = np.zeros((len(terms), n_groups, width, width))
        groups = np.full((len(terms), n_groups), -1)
        for i, k in enumerate(terms):
            of_term, group = prior.group_grams[k], prior.groups[k]
            size = of_term.shape[1]
            grams[i, : len(of_term), :size, :size] = of_term
            groups[i, : len(of_term)] = np.arange(group.start, group.stop)
        return cls(grams, groups, tuple(prior.blocks[k] for k in terms), prior.n_outputs)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """All coordinates (D, outputs, r); padding is -1."""
        columns = np.full((len(self.blocks), self.n_outputs, self.grams.shape[-1]), -1)
        for own, block in zip(columns, self.blocks, strict=True):
            coordinates = np.arange(block.start, block.stop).reshape(self.n_outputs, -1)
            own[:, : coordinates.shape[1]] = coordinates
        return columns

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which padded coordinates are real."""
        return self.columns >= 0

    @cached_property
    def parts(self) -> tuple[tuple[slice, ...], ...]:
        """The coordinates of every output of each term."""
        sizes = [(block.stop - block.start) // self.n_outputs for block in self.blocks]
        return tuple(
            tuple(slice(start, start + size) for start in range(block.start, block.stop, size))
            for block, size in zip(self.blocks, sizes, strict=True)
        )

    def covariance(self, rho: Array) -> Array:
        """Each term's ``W``; padding is the identity."""
        n_terms, n_groups, width, _ = self.grams.shape
        flat = self.grams.reshape(n_terms, n_groups, -1)
        covariance = (rho[self.groups][:, None] @ flat).reshape(n_terms, width, width)
        padding = np.arange(width)
        covariance[:, padding, padding] += ~self.seen[:, 0]
        return np.asarray(covariance)

    def of_vector(self, vector: Array) -> Array:
        """The terms' coordinates of a vector (D, outputs, r); padding is zero."""
        return np.where(self.seen, vector[self.columns], 0.0)

    def put(self, vector: Array, values: Array) -> None:
        """Set the terms' coordinates of a vector."""
        vector[self.columns[self.seen]] = values[self.seen]

    def product(self, matrices: Array, vectors: Array) -> Array:
        """Matrices of each term times vectors (D, outputs, r)."""
        if matrices.shape[-1] == vectors.shape[-1]:  # symmetric, and the same for all outputs
            return np.asarray(vectors @ matrices)
        flat = matrices @ vectors.reshape(len(vectors), -1, 1)
        return np.asarray(flat.reshape(vectors.shape))

    def add_to(self, matrix: Array, own: Array) -> None:
        """Add each output's blocks (D, r, r) to a matrix of all coordinates."""
        for block, parts in zip(own, self.parts, strict=True):
            for part in parts:
                size = part.stop - part.start
                matrix[part, part] += block[:size, :size]

    def sums(self, covariance: Covariance) -> Array:
        """Sums of all outputs' diagonal blocks (D, r, r); padding is zero."""
        result = np.zeros((len(self.blocks), *self.grams.shape[2:]))
        for own, parts in zip(result, self.parts, strict=True):
            for part in parts:
                size = part.stop - part.start
                own[:size, :size] += covariance.block(part)
        return result

    def of_matrix(self, matrix: Array) -> Array:
        """The terms' diagonal blocks (D, outputs, r, outputs, r) of a matrix; padding is zero."""
        width, n_outputs = self.grams.shape[-1], self.n_outputs
        blocks = np.zeros((len(self.blocks), n_outputs, width, n_outputs, width))
        for own, block in zip(blocks, self.blocks, strict=True):
            size = (block.stop - block.start) // n_outputs
            whole = matrix[block, block].reshape(n_outputs, size, n_outputs, size)
            own[:, :size, :, :size] = whole
        return blocks

    def traces(self, rho: Array, matrices: Array) -> Array:
        """``rho_g tr(M_g A)`` of every group for symmetric matrices of the terms."""
        n_terms, n_groups, _, _ = self.grams.shape
        flat = self.grams.reshape(n_terms, n_groups, -1) @ matrices.reshape(n_terms, -1, 1)
        return np.asarray(rho[self.groups] * flat[:, :, 0])


@dataclass(frozen=True)
class Alone:
    """The terms with several groups, each as if it were the only one.

    ``effective`` has their groups' edf, zero for the others; ``covariance`` is that of the posterior of all
    outputs, padded (D, r, r), of each batch. ``log_det`` is ``sum_d log |I + G_d W_d / noise|`` over the
    terms with a tuning penalty, and ``penalised`` its gradient in log variances: their part of
    ``effective``.
    """

    effective: Array
    covariance: tuple[Array, ...]
    log_det: float
    penalised: Array


@dataclass(frozen=True)
class PriorPrecision:
    """``W^-1`` in parts: padded blocks of one output, and the diagonal of terms with one group.

    ``log_det_networks`` is ``log |W|`` of the terms with several groups.
    """

    prior: Prior
    rho: Array
    log_det_networks: float
    inverse: tuple[Array, ...]
    plain: Array

    @property
    def log_det_covariance(self) -> float:
        """``log |W|``."""
        return self.log_det_networks - float(np.log(self.plain).sum())

    def add_to(self, matrix: Array) -> None:
        """Add ``W^-1`` to the leading coordinates of ``matrix``."""
        for batch, inverse in zip(self.prior.batches, self.inverse, strict=True):
            batch.add_to(matrix, inverse)
        plain_columns, _ = self.prior.plain
        matrix[plain_columns, plain_columns] += self.plain

    def alone(self, gram: Array, noise: float = 1.0) -> Alone:
        """The posterior of each term with several groups if it were the only one.

        ``gram`` is the Gram matrix of all coordinates at unit noise.
        """
        effective = np.zeros(self.prior.n_groups + 1)
        log_det, posteriors = self.log_det_networks, list[Array]()
        for batch, inverse in zip(self.prior.batches, self.inverse, strict=True):
            precision = batch.of_matrix(gram) / noise
            shape = precision.shape
            for output in range(batch.n_outputs):
                precision[:, output, :, output] += inverse
            posterior, logs = _inverses(precision.reshape(len(precision), shape[1] * shape[2], -1))
            posteriors.append(posterior)
            log_det -= float(logs.sum())
            exempt = [int(groups[0]) in self.prior.exempt for groups in batch.groups]
            if any(exempt):
                log_det += float(logs[exempt].sum())
                log_det += batch.n_outputs * float(np.linalg.slogdet(inverse[exempt])[1].sum())
            summed = np.einsum("dkikj->dij", posterior.reshape(shape))
            gain = batch.n_outputs * inverse - inverse @ summed @ inverse
            effective[batch.groups] += batch.traces(self.rho, gain)
        penalised = effective[:-1].copy()
        penalised[list(self.prior.exempt)] = 0.0
        return Alone(effective[:-1], tuple(posteriors), log_det, penalised)

    def energy(self, mean: Array) -> Array:
        """``lambda_g ||theta_g||^2`` of each group: ``rho_g q' M_g q`` with ``q = W^-1 m``."""
        plain_columns, plain_groups = self.prior.plain
        squares = np.square(mean[plain_columns]) * self.plain
        energy = sum_by(plain_groups, squares, self.prior.n_groups + 1)
        for batch, inverse in zip(self.prior.batches, self.inverse, strict=True):
            pull = batch.product(inverse, batch.of_vector(mean))
            energy[batch.groups] += batch.traces(self.rho, pull.transpose(0, 2, 1) @ pull)
        return energy[:-1]

    def effective(self, covariance: Covariance) -> Array:
        """Effective degrees of freedom of each group (MacKay's gamma).

        ``rho_g tr(M_g C)`` with ``C = W^-1 - W^-1 S W^-1``.
        """
        plain_columns, plain_groups = self.prior.plain
        effective = np.zeros(self.prior.n_groups + 1)
        if len(plain_columns):
            shrunk = 1.0 - covariance.variances()[plain_columns] * self.plain
            effective = sum_by(plain_groups, shrunk, self.prior.n_groups + 1)
        for batch, inverse in zip(self.prior.batches, self.inverse, strict=True):
            gain = batch.n_outputs * inverse - inverse @ batch.sums(covariance) @ inverse
            effective[batch.groups] += batch.traces(self.rho, gain)
        return effective[:-1]
