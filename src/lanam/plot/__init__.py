"""Drawings of explanations and of calibration, with matplotlib.

They take explanations and curves and nothing else, so whatever can be drawn can also be had as data.
All can be read without colours.
"""

from lanam.plot.calibration import plot_calibration
from lanam.plot.importance import plot_importance
from lanam.plot.local import plot_local
from lanam.plot.matrix import plot_interaction_matrix
from lanam.plot.pairs import plot_interaction
from lanam.plot.retention import plot_retention
from lanam.plot.shapes import plot_shapes

__all__ = [
    "plot_calibration",
    "plot_importance",
    "plot_interaction",
    "plot_interaction_matrix",
    "plot_local",
    "plot_retention",
    "plot_shapes",
]
