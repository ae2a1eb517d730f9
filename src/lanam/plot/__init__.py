"""Plots of explanations and of calibration, with matplotlib.

They only take explanations and curves, so that everything shown is available as data. All are legible
without colours.
"""

from lanam.plot.adequacy import plot_adequacy
from lanam.plot.bars import plot_importance
from lanam.plot.calibration import plot_calibration, plot_retention
from lanam.plot.derivative import plot_derivative
from lanam.plot.interactions import plot_interaction, plot_interaction_matrix
from lanam.plot.local import plot_local
from lanam.plot.shapes import plot_shapes
from lanam.plot.survival import plot_survival

__all__ = [
    "plot_adequacy",
    "plot_calibration",
    "plot_derivative",
    "plot_importance",
    "plot_interaction",
    "plot_interaction_matrix",
    "plot_local",
    "plot_retention",
    "plot_shapes",
    "plot_survival",
]
