"""Draws of a term's function from its joint posterior, the same wherever and however it was fitted.

With ``K`` the posterior covariance of the function's values at all entries, a draw is

    f = mean + K^(1/2) z,        z ~ N(0, I) at the entries, from a generator with a fixed seed,

with the symmetric root, which is unique. Another root ``A`` with ``A A' = K``, such as a Cholesky factor
in the coordinates of the tables, would give other draws whenever rounding turns an eigenvector around. It
need not be formed: ``K^(1/2) z = A w`` with ``w = (A'A)^(-1/2) A' z``, standard normal as ``z`` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel

#: Directions with less than this fraction of the largest variance are rounding.
_NEGLIGIBLE = 1e-10

#: Numbers per chunk of entries.
_CHUNK_VALUES = 1 << 20


@dataclass(frozen=True)
class JointRoot:
    """A root of the joint posterior covariance of a term's function at its ``B`` entries.

    The errors of output ``c`` are ``table @ factors[c]`` times standard normal numbers that all outputs
    share, plus independent ones of variance ``own_variance``.
    """

    table: Array
    #: (C, r, k) with C = 1 unless there are several classes
    factors: Array
    own_variance: Array | None = None
    #: of a function that obeys constraints, draws of its coordinates (r, M), which no root makes
    projected: Array | None = None

    def at(self, entries: slice | NDArray[np.int_] | NDArray[np.bool_]) -> JointRoot:
        """The same at some of the entries."""
        own = self.own_variance
        return replace(
            self,
            table=self.table[entries],
            own_variance=None if own is None else own[entries],
        )

    @property
    def free(self) -> JointRoot:
        """The same without constraints: bands are of its width."""
        return replace(self, projected=None)

    def std(self) -> Array:
        """Standard deviations (C, B)."""
        variances = np.square(self.table @ self.factors).sum(axis=2)
        own = 0.0 if self.own_variance is None else self.own_variance
        return np.asarray(np.sqrt(variances + own))

    def draws(self, n_draws: int) -> Array:
        """Deviations (C, B, n_draws) of draws of the whole function from its mean.

        Under constraints there are as many as were projected.
        """
        parts = [deviations for _, deviations in self.in_chunks(n_draws)]
        return np.concatenate(parts, axis=1)

    def in_chunks(self, n_draws: int) -> Iterator[tuple[slice, Array]]:
        """The same in chunks of entries."""
        rng = np.random.default_rng(0)
        if self.projected is None:
            coordinates = self.factors @ self.normals(n_draws, rng)
        else:
            coordinates, n_draws = self.projected[None], self.projected.shape[1]
        for part in self._chunks(n_draws):
            deviations = self.table[part] @ coordinates
            if self.own_variance is not None:
                own_std = np.sqrt(self.own_variance[part])[:, None]
                deviations += own_std * rng.standard_normal(deviations.shape)
            yield part, deviations

    def normals(self, n_draws: int, rng: np.random.Generator) -> Array:
        """``w`` (k, n_draws), with stratified norms."""
        n_outputs = len(self.factors)
        products = np.zeros((n_outputs, self.table.shape[1], n_draws))
        for part in self._chunks(n_draws):
            table = self.table[part]
            normals = rng.standard_normal((len(table), n_outputs, n_draws))  # whatever the chunks
            products += table.T @ normals.transpose(1, 0, 2)
        gram = self.table.T @ self.table
        variances, vectors = np.linalg.eigh((self.factors.mT @ gram @ self.factors).sum(axis=0))
        kept = variances > _NEGLIGIBLE * variances[-1]
        vectors = vectors[:, kept]
        projected = (self.factors.mT @ products).sum(axis=0)
        standard = (vectors.T @ projected) / np.sqrt(variances[kept])[:, None]
        return np.asarray(vectors @ with_stratified_norms(standard))

    def _chunks(self, n_draws: int) -> Iterator[slice]:
        size = max(_CHUNK_VALUES // (n_draws * len(self.factors)), 1)
        for start in range(0, len(self.table), size):
            yield slice(start, start + size)


def joint_root(model: FittedModel, index: int) -> JointRoot:
    """The root of an active term."""
    term = model.terms[index]
    if term.coupling is None:
        # A square factor of the term's own covariance: fewer columns than that of the whole model.
        block = model.cov_cholesky[model.blocks[index]]
        table, root = term.table, np.asarray(np.linalg.qr(block.T, mode="r")).T
    else:
        table, root = term.coupling, model.cov_cholesky
    contrasts = np.ones((1, 1)) if model.contrasts is None else model.contrasts
    outputs = root.reshape(contrasts.shape[1], table.shape[1], root.shape[1])
    factors = np.asarray(np.tensordot(contrasts, outputs, axes=1))
    projected = None
    if model.constrained is not None:
        projected = model.constrained.deviations_of(model.blocks[index])
    return JointRoot(table, factors, term.own_variance, projected)


def with_stratified_norms(draws: Array) -> Array:
    """Standard normal draws (k, n_draws), rescaled to norms that are evenly spaced quantiles.

    It reduces the variance of the limits of bands; in one dimension they are exact.

    Examples
    --------
    >>> import numpy as np
    >>> draws = with_stratified_norms(np.random.default_rng(0).standard_normal((1, 1000)))
    >>> round(float(np.quantile(np.abs(draws), 0.95)), 2)
    1.96
    """
    size, n_draws = draws.shape
    if not size:
        return draws
    places = (np.arange(n_draws) + 0.5) / n_draws
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * size, places))
    return np.asarray(draws * (lengths / np.linalg.norm(draws, axis=0)))
