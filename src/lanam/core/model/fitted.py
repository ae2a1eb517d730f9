"""What a fit leaves behind: tables, and the posterior of their coordinates (method.md 3).

The function of term ``d`` is ``mean_d + table_d z_d`` at its entries, with all ``z`` and the
intercept's error jointly ``N(0, root root')``. Everything is on the link scale, in the response's
own units. Scoring is looking up; no network is needed any more.

With several classes a term has a function for each: ``mean_d`` has a column a class, and the functions
are ``mean_d + table_d [z_d1, z_d2, ...] Q'`` with coordinates ``z_dk`` for each of the outputs, of which
there is one less than classes, and their ``contrasts`` ``Q``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Intercept, slices
from lanam.core.model.mixtures import NoiseShape
from lanam.core.terms.knots import Entries, Grid, Knots
from lanam.core.terms.networks import Architecture

ACTIVE = "active"
SWITCHED_OFF = "switched off: evidence"
CONSTANT = "switched off: constant column"
EMPTY = "switched off: no values"
DUPLICATE = "switched off: same values as another column"


@dataclass(frozen=True)
class ScoredPair:
    """A pair of columns that might interact: its score, and whether it is in the model or why not."""

    features: tuple[int, int]
    score: float
    status: str


@dataclass(frozen=True)
class FittedTerm:
    """One term of the sum.

    Attributes
    ----------
    kind
        ``"smooth"`` (a feature network), ``"categorical"`` (an effect per level), ``"level"`` (an effect
        per value of a numeric column), ``"pair"`` (a joint term of two columns, without what either
        says alone) or ``"interaction"`` (of more, without what fewer of them say).
    features
        Column indices.
    entries
        Where the table's rows stand; None for a constant or empty column.
    share
        Share of the data's weight at each entry, summing to one: means over it are means over
        the data.
    mean, table
        Posterior mean at the entries (B,), or (B, C) with several classes, and the coordinates' table
        (B, r).
    status
        ``"active"`` or why it was switched off; a term that is off has zero mean and no coordinates.
    importance
        Mean absolute contribution over the data, and over the classes where there are several.
    effective_parameters
        How many parameters the data determined.
    evidence
        By how much the log evidence would fall without the term; for one that was switched off,
        what it had when it was.
    precision
        Prior precision of each group of parameters.
    coupling, own_variance
        Of a column of very many categories, whose levels have no coordinates of their own: their errors
        are ``coupling`` (B, R + 1) times those of all of the model's coordinates, and independent ones
        of this variance (B,). Otherwise None.
    expansion, architecture
        Parameters at which the network was linearised, and what network it is; empty and None for
        levels.
    edited
        Whether each entry (B,) was changed by hand after the fit; None where none was.
    """

    kind: str
    features: tuple[int, ...]
    entries: Entries | None
    share: Array
    mean: Array
    table: Array
    status: str
    importance: float = 0.0
    effective_parameters: float = 0.0
    evidence: float = 0.0
    precision: Array = field(default_factory=lambda: np.empty(0))
    expansion: Array = field(default_factory=lambda: np.empty(0))
    architecture: Architecture | None = None
    coupling: Array | None = None
    own_variance: Array | None = None
    edited: NDArray[np.bool_] | None = None

    @property
    def active(self) -> bool:
        """Whether the term contributes."""
        return self.status == ACTIVE

    @property
    def joint(self) -> bool:
        """Whether the term is of several columns."""
        return len(self.features) > 1

    def unknown(self, columns: Array) -> NDArray[np.bool_]:
        """Rows of ``columns`` (n, D) with a missing value where the data had none."""
        axes = self.entries.axes if isinstance(self.entries, Knots | Grid) else ()
        result = np.zeros(len(columns), dtype=bool)
        for feature, axis in zip(self.features, axes, strict=False):
            if not axis.missing:
                result |= np.isnan(columns[:, feature])
        return result


@dataclass(frozen=True)
class FittedModel:
    """A fitted additive model.

    Attributes
    ----------
    likelihood
        ``"gaussian"``, ``"bernoulli"``, ``"poisson"`` or ``"softmax"``; ``"log-variance"`` of a noise.
    intercept
        The mean link-scale prediction over the training data; of each class where there are several.
    terms
        In a fixed order: the smooth term of every column and level terms, active or not, then the
        active pairs.
    root
        Lower triangular factor ``F`` (R + 1, R + 1) of the posterior covariance ``F F'`` of the active
        terms' coordinates, in order, and of the intercept, last. Block-diagonal where the posterior
        is. Each of several outputs has its coordinates in every term, one output after the other, and
        its intercept.
    noise_variance
        Variance of the Gaussian noise; of counts, by how much their variance exceeds their mean; 0 for
        classes.
    log_evidence
        Of the response in its own units.
    history
        One record an iteration.
    stop_reason
        ``"converged"``, or what else ended the fit.
    pairs
        Every pair of columns with its score and why it is in or out, best first; empty where none
        was asked for.
    gap_variance
        What every column adds to the variance of the Gaussian noise where it is missing (D,), or None.
    contrasts
        ``Q`` (C, C - 1) where there are several classes, otherwise None.
    noise
        Where the noise differs from row to row: the logarithm of its variance, without what gaps add, in
        units of ``noise_variance``, a model of its own. None where it does not.
    shape
        Of noise that is not Gaussian: its distribution in units of its standard deviation in the row.
    """

    likelihood: str
    intercept: Intercept
    terms: tuple[FittedTerm, ...]
    root: Array
    noise_variance: float
    log_evidence: float
    history: tuple[dict[str, Any], ...] = ()
    stop_reason: str = "converged"
    pairs: tuple[ScoredPair, ...] = ()
    contrasts: Array | None = None
    gap_variance: Array | None = None
    noise: FittedModel | None = None
    shape: NoiseShape | None = None

    @property
    def n_outputs(self) -> int:
        """How many functions a term has coordinates for."""
        return 1 if self.contrasts is None else self.contrasts.shape[1]

    @property
    def converged(self) -> bool:
        """Whether the evidence had stopped rising when the fit ended."""
        return self.stop_reason == "converged"

    @property
    def n_iter(self) -> int:
        """Number of linearisations."""
        return len(self.history)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each term's rows in ``root`` and ``covariance``."""
        return slices(term.table.shape[1] * self.n_outputs for term in self.terms)

    @cached_property
    def block_covariances(self) -> tuple[Array, ...]:
        """Posterior covariance of each term's coordinates."""
        own = (self.root[block, : block.stop] for block in self.blocks)
        return tuple(rows @ rows.T for rows in own)

    @cached_property
    def covariance(self) -> Array:
        """Posterior covariance (R + 1, R + 1) of all coordinates."""
        return np.asarray(self.root @ self.root.T)
