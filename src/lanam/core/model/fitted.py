"""The result of a fit: tables, and the posterior of their coordinates (method.md 3).

The function of term ``d`` is ``mean_d + table_d z_d`` at its entries, with all ``z`` and the
intercept's error jointly ``N(0, L L')``. Everything is on the link scale, in the response's
units. Predictions are lookups; the networks are no longer needed.

With several classes a term has one function per class: ``mean_d`` has a column per class, and the functions
are ``mean_d + table_d [z_d1, z_d2, ...] Q'`` with coordinates ``z_dk`` for each output, one fewer than
classes, and their ``contrasts`` ``Q``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Intercept, slices
from lanam.core.model.mixtures import NoiseShape
from lanam.core.terms.knots import Entries, Grid, Knots
from lanam.core.terms.networks import Architecture

if TYPE_CHECKING:
    from lanam.core.model.constrained import ConstrainedPosterior

ACTIVE = "active"
UNSUPPORTED = "dropped: not supported by the data"
CONSTANT = "dropped: constant column"
EMPTY = "dropped: no values"
DUPLICATE = "dropped: same values as another column"
#: of a column that has no curve, because a surface has its effect
COORDINATE = "left out: a coordinate of a surface"
#: of a pair that was not to be tried
EXCLUDED = "left out: excluded"


@dataclass(frozen=True)
class ScoredInteraction:
    """A candidate interaction with its score, and its status: active, or why not."""

    features: tuple[int, ...]
    score: float
    status: str

    def rank(self) -> tuple[float, int]:
        """Sort key: the best first, of equal ones pairs before triples."""
        return -self.score, len(self.features)


@dataclass(frozen=True)
class FittedTerm:
    """One term of the sum: a table of ``B`` entries with ``r`` coordinates."""

    #: "smooth" (a feature network), "categorical" (an effect per category), "level" (an effect per value of
    #: a numeric column), "pair" (a joint term of two columns, without their main effects), "interaction"
    #: (of more columns, without the effects of fewer) or "spatial" (a surface of two coordinates, with
    #: their main effects)
    kind: str
    #: column indices
    features: tuple[int, ...]
    #: the values of the table's rows; None for a constant or empty column
    entries: Entries | None
    #: proportion of the data's weight at each entry
    data_mass: Array
    #: posterior mean (B,), or (B, C) for several classes, and the coordinates' table (B, r)
    mean: Array
    table: Array
    #: "active", or why it was dropped; a dropped term has zero mean and no coordinates
    status: str
    #: mean absolute contribution over the data and the classes
    importance: float = 0.0
    effective_parameters: float = 0.0
    #: log evidence gain of the term; of a dropped one, when it was dropped
    evidence: float = 0.0
    #: prior precision of each parameter group
    precision: Array = field(default_factory=lambda: np.empty(0))
    #: parameters at which the network was linearised, and its architecture; empty and None for levels
    expansion: Array = field(default_factory=lambda: np.empty(0))
    architecture: Architecture | None = None
    #: for a high-cardinality column, whose categories have no coordinates of their own: their errors are
    #: ``coupling`` (B, R + 1) times those of all coordinates, and independent ones of variance (B,)
    coupling: Array | None = None
    own_variance: Array | None = None
    #: of a dropped column, the variance at its entries that the data leave possible
    dropped_variance: Array | None = None
    #: the entries (B,) edited after the fit; None for none
    edited: NDArray[np.bool_] | None = None

    @property
    def active(self) -> bool:
        """Whether the term contributes."""
        return self.status == ACTIVE

    @property
    def joint(self) -> bool:
        """Whether it is a term of several columns."""
        return len(self.features) > 1

    def unknown(self, columns: Array) -> NDArray[np.bool_]:
        """Rows of ``columns`` (n, D) with a missing value in a column that had none in training."""
        axes = self.entries.axes if isinstance(self.entries, Knots | Grid) else ()
        result = np.zeros(len(columns), dtype=bool)
        for feature, axis in zip(self.features, axes, strict=False):
            if not axis.missing:
                result |= np.isnan(columns[:, feature])
        return result


@dataclass(frozen=True)
class Diagnostics:
    """How far the rows of a fit, of many those sampled, determine it.

    Attributes
    ----------
    saturation
        Effective degrees of freedom per row.
    influence
        The largest Cook's distance: the mean square change of all predictions when one row is left out,
        in units of their mean variance.
    influential
        The index of that row among those sampled.
    separated
        Whether a threshold of its score separates every class from the others.
    close_calls
        Columns of the terms whose log evidence gain is within one nat of their threshold.
    pair_thresholds
        The lowest and the highest log evidence gain that was asked of an interaction, if any was tried.
    """

    saturation: float
    influence: float
    influential: int
    separated: bool
    close_calls: tuple[tuple[int, ...], ...] = ()
    pair_thresholds: tuple[float, ...] = ()


@dataclass(frozen=True)
class FittedModel:
    """A fitted additive model with ``R`` coordinates."""

    #: the family's tag; "log-variance" of a noise model
    likelihood: str
    #: mean link-scale prediction over the training data, of each of several classes
    intercept: Intercept
    #: the term of each column and level terms, active or not, then the active joint terms
    terms: tuple[FittedTerm, ...]
    #: lower triangular factor ``L`` (R + 1, R + 1) of the posterior covariance ``L L'`` of all coordinates,
    #: in the order of the active terms, and of the intercept; block-diagonal where the posterior is. Within
    #: a term, the coordinates of several outputs follow each other; there is one intercept per output
    cov_cholesky: Array
    #: variance of Gaussian noise; dispersion of counts and amounts; 0 for classes
    noise_variance: float
    #: of the response in its own units
    log_evidence: float
    #: one record per iteration
    history: tuple[dict[str, Any], ...] = ()
    stop_reason: str = "converged"
    #: all scored interactions, best first; empty if none were requested
    scored: tuple[ScoredInteraction, ...] = ()
    #: ``Q`` (C, C - 1) for several classes
    contrasts: Array | None = None
    #: Gaussian noise variance added by a missing value of each column (D,)
    missing_variance: Array | None = None
    #: for heteroscedastic noise, a model of its log variance relative to ``noise_variance``, without the
    #: part of missing values
    noise: FittedModel | None = None
    #: the residual distribution if it is not Gaussian, in units of the row's noise
    shape: NoiseShape | None = None
    #: degrees of freedom of Gaussian noise: its variance is about ``noise_df / chi^2`` times the estimate
    noise_df: float = math.inf
    #: the likelihood's own parameters that were learned, such as the shape of Gamma distributions
    parameters: tuple[float, ...] = ()
    #: how far the rows determine the fit; None for models from files
    diagnostics: Diagnostics | None = None
    #: the posterior of the coordinates under constraints, of which ``cov_cholesky`` has the covariance
    constrained: ConstrainedPosterior | None = None

    @property
    def n_outputs(self) -> int:
        """Number of functions per term with coordinates of their own."""
        return 1 if self.contrasts is None else self.contrasts.shape[1]

    @property
    def used(self) -> frozenset[int]:
        """The columns on which predictions depend: those of active terms, also of the noise model."""
        used = {feature for term in self.terms if term.active for feature in term.features}
        if self.missing_variance is not None:
            used |= set(np.flatnonzero(self.missing_variance).tolist())
        return frozenset(used if self.noise is None else used | self.noise.used)

    @property
    def converged(self) -> bool:
        """Whether the evidence had converged."""
        return self.stop_reason == "converged"

    @property
    def n_iter(self) -> int:
        """Number of linearisations."""
        return len(self.history)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each term's rows in ``cov_cholesky`` and ``covariance``."""
        return slices(term.table.shape[1] * self.n_outputs for term in self.terms)

    @cached_property
    def block_covariances(self) -> tuple[Array, ...]:
        """Posterior covariance of each term's coordinates."""
        factors = (self.cov_cholesky[block, : block.stop] for block in self.blocks)
        return tuple(rows @ rows.T for rows in factors)

    @cached_property
    def covariance(self) -> Array:
        """Posterior covariance (R + 1, R + 1) of all coordinates."""
        return np.asarray(self.cov_cholesky @ self.cov_cholesky.T)


def importance_at(term: FittedTerm, data_mass: Array, mean: Array) -> float:
    """Mean absolute contribution of a changed term: the fit's, times the ratio of those at the entries."""

    def at_entries(mass: Array, mean: Array) -> float:
        return float((mass @ np.abs(mean.reshape(len(mean), -1))).mean())

    before = at_entries(term.data_mass, term.mean)
    return at_entries(data_mass, mean) * (term.importance / before if before > 0.0 else 1.0)
