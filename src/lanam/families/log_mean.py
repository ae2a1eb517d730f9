"""Families whose mean is the exponential of a sum of terms."""

from __future__ import annotations

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel
from lanam.families.base import Family, NewRows
from lanam.families.links import LOG


class LogMeanFamily(Family):
    """The mean of y is its exposure times the exponential of the link."""

    link = LOG
    positive = True

    def mean(self, mean: Array, variance: Array) -> Array:
        """That of a log-normal variate."""
        return self.link.inverse(mean + 0.5 * variance)

    def response(self, link: Array, exposure: Array) -> Array:
        return self.link.inverse(np.log(exposure) + link)

    def predict(self, model: FittedModel, rows: NewRows) -> Array:
        mean, variance = rows.moments(model)
        return self.response(mean + 0.5 * variance, rows.exposure)
