"""Explanations of fitted models: plain data in the units of the columns.

Everything is on the link scale, on which contributions are additive: the target's unit for a regressor,
the log of the rate for counts, log-odds for two classes, and centred logits for more than two: arrays
then have the classes as an additional last axis, over which contributions sum to zero.

Contributions and predictions can be computed from an explanation alone:

- a univariate term is interpolated linearly between its ``values``, and constant beyond them; a category,
  or a single value of a ``"level"`` term, has its own entry;
- a missing value has ``missing_mean`` or, if that is None, ``unseen_mean``;
- unseen categories, and rare ones that are not among ``values``, have ``unseen_mean``;
- the tables of an interaction have an entry for each of ``values``, then for each of ``others``, which are
  ``"(missing)"`` and ``"(other levels)"``, along every axis; a missing value without an entry contributes
  zero, with ``unseen_std``.

Credible bands are ``mean`` plus and minus a multiple of ``std``: the normal quantile pointwise, the
quantile of ``largest_deviations`` for the whole function. Joint distributions of several values need the
model: ``difference``, ``differences`` and ``evaluate``.
"""

from lanam.explain.answers import Answers, Crossings, Derivative, Extremum
from lanam.explain.bands import importance_std, require_coverage
from lanam.explain.curves import SurvivalCurves
from lanam.explain.differences import Compared, Contrast, Difference
from lanam.explain.portable import PortableModel, explain_portable
from lanam.explain.printed import response_words, row_text
from lanam.explain.rows import LocalExplanation, explain_local
from lanam.explain.shape_tests import ShapeTest, shape_test
from lanam.explain.tables import describe_terms
from lanam.explain.terms import (
    MISSING,
    OTHER_LEVELS,
    Shape,
    Surface,
    SurfaceAxis,
    TabulatedTerm,
    Term,
)
from lanam.explain.values import class_labels, plain
from lanam.explain.whole import GlobalExplanation, explain_global

__all__ = [
    "MISSING",
    "OTHER_LEVELS",
    "Answers",
    "Compared",
    "Contrast",
    "Crossings",
    "Derivative",
    "Difference",
    "Extremum",
    "GlobalExplanation",
    "LocalExplanation",
    "PortableModel",
    "Shape",
    "ShapeTest",
    "Surface",
    "SurfaceAxis",
    "SurvivalCurves",
    "TabulatedTerm",
    "Term",
    "class_labels",
    "describe_terms",
    "explain_global",
    "explain_local",
    "explain_portable",
    "importance_std",
    "plain",
    "require_coverage",
    "response_words",
    "row_text",
    "shape_test",
]
