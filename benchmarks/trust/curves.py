"""A fitted function at the rows, with its bands, and how it compares with the truth there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cells import Row
from benchmarks.data.problems import AdditiveProblem
from benchmarks.metrics import rmse
from benchmarks.recovery import band_coverage

ROUNDING = 1e-12  # a band of width zero must still hold the number it states


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation of a function at each row, and a simultaneous 95% half-width."""

    mean: np.ndarray
    std: np.ndarray
    half_width: float


def own_curves(model: Any, X: np.ndarray) -> list[Curve]:
    """The curve of every column of a lanam model without interactions and per-value effects."""
    shapes = {shape.features[0]: shape for shape in model.explain_global().shapes}
    return [
        Curve(
            np.interp(X[:, d], shapes[d].values, shapes[d].mean),
            np.interp(X[:, d], shapes[d].values, shapes[d].std),
            float(shapes[d].half_width(0.95, simultaneous=True)),
        )
        for d in range(X.shape[1])
    ]


def against_truth(problem: AdditiveProblem, curves: list[Curve]) -> Row:
    """By function: pointwise coverage, whether the simultaneous band holds, RMSE and mean width."""
    row: Row = {}
    for d, curve in enumerate(curves):
        truth = problem.effects[:, d]
        off = np.abs(truth - curve.mean)
        row[f"coverage_f{d}"] = band_coverage(truth, curve.mean, curve.std)
        row[f"whole_f{d}"] = float(np.all(off <= curve.half_width * curve.std + ROUNDING))
        row[f"rmse_f{d}"] = rmse(truth, curve.mean)
        row[f"std_f{d}"] = float(curve.std.mean())
    for figure in ("coverage", "whole", "rmse", "std"):
        row[figure] = float(np.mean([row[f"{figure}_f{d}"] for d in range(len(curves))]))
    return row
