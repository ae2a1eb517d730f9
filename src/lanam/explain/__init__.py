"""A fitted model in the user's words and units: plain data, to print, to draw, to send elsewhere.

Everything is on the link scale, on which terms add up: the target's own unit for a regressor, the
logarithm of the rate for counts, log-odds for a classifier, and one score a class where there are more
than two: arrays then have the classes as one more, last axis, and a term's scores sum to zero over it.

What is in a table's cell is a number, a level or nothing, and so a term says more than a curve: what
a missing value adds, and what a level adds that the training data did not have. With these, a
model's contributions and predictions can be read off an explanation alone:

- a number reads a term of one column at its ``values``, linearly in between and the outermost beyond; a
  level, or a single value of a ``"level"`` term, reads its own entry;
- a missing value reads ``missing_mean`` and, where that is None, ``unseen_mean``;
- any other level reads ``unseen_mean``, rare ones that are not among ``values`` too;
- a pair's tables have a row for each of ``values`` and then for each of ``others``, which are
  ``"(missing)"`` and ``"(other levels)"``, and columns alike; a missing value of a column
  without the entry makes the pair add zero, with ``unseen_std``.

So can bands: ``mean`` plus and minus so many times ``std``, the quantile of a normal distribution at each
place by itself, and that of ``largest_deviations`` for a whole function. What two places have to do with
each other is only known to the model, which ``difference``, ``differences`` and ``evaluate`` ask.
"""

from lanam.explain.bands import require_coverage
from lanam.explain.differences import Compared, Contrast, Difference
from lanam.explain.draws import importance_std
from lanam.explain.portable import PortableModel, explain_portable
from lanam.explain.rows import LocalExplanation, explain_local
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
    "Compared",
    "Contrast",
    "Difference",
    "GlobalExplanation",
    "LocalExplanation",
    "PortableModel",
    "Shape",
    "Surface",
    "SurfaceAxis",
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
]
