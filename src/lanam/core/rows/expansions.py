"""The log-likelihood as a quadratic in the prediction (method.md 2c).

All that a fit needs of the data is

    log p(y | f) ~ constant + h' f - 1/2 f' diag(gamma) f,

exact and made once for a Gaussian likelihood, made anew around each new prediction for others. With
``f = Z z``, ``Z = [W_1 T_1, ..., W_D T_D, 1]``, that is ``Z' diag(gamma) Z`` and ``Z' h``, in two forms
with one interface (``quadratics.py``, ``cross_tables.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.located import Rows
from lanam.core.rows.statistics import CHUNK_ROWS, curved, predict, weighted_slopes


@dataclass(frozen=True)
class Expansion:
    """The quadratic of some rows: ``pseudo_response`` is ``h``, ``curvature`` is ``gamma``.

    With several outputs the first has a column each, the second a matrix a row.
    """

    pseudo_response: Array
    curvature: Array
    constant: float
    value: float


def expand(likelihood: Likelihood, y: Array, weight: Array, f: Array) -> Expansion:
    """Second-order expansion of the weighted log-likelihood around the prediction ``f``."""
    slope, curvature = weighted_slopes(likelihood, y, weight, f)
    value = float(weight @ likelihood.log_prob(y, f))
    bent = curved(curvature, f)
    constant = value - float(np.vdot(f, slope)) - 0.5 * float(np.vdot(f, bent))
    return Expansion(slope + bent, curvature, constant, value)


@dataclass(frozen=True)
class Around:
    """The point that the log-likelihood is expanded around."""

    likelihood: Likelihood
    values: tuple[Array, ...]
    intercept: Intercept

    def expand(self, part: Rows) -> Expansion:
        """The quadratic of some rows."""
        # One that is exact is the same wherever it is made.
        exact = self.likelihood.quadratic
        f = np.zeros(len(part)) if exact else predict(part, self.values, self.intercept)
        return expand(self.likelihood, part.y, part.information, f)

    def expand_all(self, part: Rows) -> Expansion:
        """The same for many rows."""
        made = [self.expand(piece) for piece in part.parts(CHUNK_ROWS)]
        return Expansion(
            np.concatenate([one.pseudo_response for one in made]),
            np.concatenate([one.curvature for one in made]),
            sum(one.constant for one in made),
            sum(one.value for one in made),
        )


def same_arrays(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether these are the very same arrays."""
    return len(first) == len(second) and all(map(operator.is_, first, second))
