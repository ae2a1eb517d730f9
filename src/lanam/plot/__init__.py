"""Drawings of explanations, with matplotlib.

They take explanations and nothing else, so whatever can be drawn can also be had as data.
"""

from lanam.plot.importance import plot_importance
from lanam.plot.local import plot_local
from lanam.plot.matrix import plot_interaction_matrix
from lanam.plot.pairs import plot_interaction
from lanam.plot.shapes import plot_shapes

__all__ = [
    "plot_importance",
    "plot_interaction",
    "plot_interaction_matrix",
    "plot_local",
    "plot_shapes",
]
