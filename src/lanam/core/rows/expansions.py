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
from lanam.core.rows.statistics import CHUNK_ROWS, curved, predict


@dataclass(frozen=True)
class Expansion:
    """The quadratic of some rows: ``pseudo_response`` is ``h``, ``curvature`` is ``gamma``.

    With several outputs the first has a column each, the second a matrix a row.
    """

    pseudo_response: Array
    curvature: Array
    constant: float
    value: float


@dataclass(frozen=True)
class Around:
    """The point that the log-likelihood is expanded around."""

    likelihood: Likelihood
    values: tuple[Array, ...]
    intercept: Intercept

    def predict(self, part: Rows) -> Array:
        """The link-scale prediction of some rows."""
        return predict(part, self.values, self.intercept)

    def slopes(self, part: Rows, f: Array | None = None) -> tuple[Array, Array]:
        """Slope and curvature of every row's weighted log-likelihood, or at another prediction ``f``."""
        f = self.predict(part) if f is None else f
        slope, curvature = self.likelihood.slope(part.y, f), self.likelihood.curvature(f)
        # Weights are a row's, whatever it has.
        return (slope.T * part.information).T, (curvature.T * part.information).T

    def expand(self, part: Rows) -> Expansion:
        """The quadratic of some rows: a second-order expansion of their weighted log-likelihood."""
        # One that is exact is the same wherever it is made.
        exact = self.likelihood.quadratic
        f = np.zeros(len(part)) if exact else self.predict(part)
        slope, curvature = self.slopes(part, f)
        value = float(part.information @ self.likelihood.log_prob(part.y, f))
        bent = curved(curvature, f)
        constant = value - float(np.vdot(f, slope)) - 0.5 * float(np.vdot(f, bent))
        return Expansion(slope + bent, curvature, constant, value)

    def expand_all(self, part: Rows) -> Expansion:
        """The same for many rows."""
        made = [self.expand(chunk) for chunk in part.parts(CHUNK_ROWS)]
        return Expansion(
            np.concatenate([one.pseudo_response for one in made]),
            np.concatenate([one.curvature for one in made]),
            sum(one.constant for one in made),
            sum(one.value for one in made),
        )


def same_arrays(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether these are the very same arrays."""
    return len(first) == len(second) and all(map(operator.is_, first, second))
