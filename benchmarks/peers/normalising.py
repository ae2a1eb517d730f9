"""Columns towards a standard normal: logarithm, affine, sinh-arcsinh, as in Lu, Boukouvalas & Hensman."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

SAMPLE = 1000  # quantiles that stand for a column; four numbers need no more
MARGIN = 0.5  # below one, where the logarithm ends


Warp = Callable[[np.ndarray], np.ndarray]


def standardising(column: np.ndarray) -> Warp:
    """Mean zero, variance one."""
    mean, std = float(column.mean()), float(column.std())
    return lambda values: (values - mean) / std


def normalising(column: np.ndarray) -> Warp:
    """The map of greatest likelihood: z = sinh(tail (arcsinh(location + scale log x) + skew)) is N(0, 1).

    x is measured from one standard deviation below the least value (the authors: one unit of the column).
    Values further than MARGIN standard deviations beyond the training rows count as just so far; the
    authors allow none, but then a row a little outside is predicted with the certainty of the end (naval).
    """
    sample = np.quantile(column, (np.arange(SAMPLE) + 0.5) / SAMPLE)
    lower, std = float(column.min()), float(column.std())

    def logarithm(values: np.ndarray) -> np.ndarray:
        return np.log1p((values - lower) / std)

    start = logarithm(sample)
    mean, spread = float(start.mean()), float(start.std())
    centred = (start - mean) / spread

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        location, log_scale, skew, log_tail = parameters
        scale, tail = np.exp(log_scale), np.exp(log_tail)
        affine = location + scale * centred
        root = np.sqrt(1 + affine**2)
        bent = np.arcsinh(affine) + skew
        z, slope = np.sinh(tail * bent), np.cosh(tail * bent)
        value = np.mean(z**2) / 2 - np.mean(np.log(slope)) - log_scale - log_tail
        value += np.mean(np.log(root))
        by_inner = z * slope - z / slope  # by tail * bent
        by_affine = by_inner * tail / root + affine / root**2
        gradient = [
            by_affine.mean(),
            np.mean(by_affine * scale * centred) - 1,
            np.mean(by_inner) * tail,
            np.mean(by_inner * bent) * tail - 1,
        ]
        return float(value), np.array(gradient)

    bounds = [(-3, 3), (-2, 2), (-3, 3), (-1.5, 1.5)]
    found = minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds)
    location, log_scale, skew, log_tail = found.x

    upper = float(column.max())

    def forward(values: np.ndarray) -> np.ndarray:
        inside = np.clip(values, lower - MARGIN * std, upper + MARGIN * std)
        affine = location + np.exp(log_scale) * (logarithm(inside) - mean) / spread
        return np.sinh(np.exp(log_tail) * (np.arcsinh(affine) + skew))

    return forward
