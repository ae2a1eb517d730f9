"""Terms and their unit in words, for drawings and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanam.explain.terms import Term
from lanam.text import cut, shorten

#: Names that have a line each are cut to this many characters, and each of the two names of a pair; and
#: the name of a class.
MAX_LONG_NAME = 40
_MAX_SIDE = 20
_MAX_CLASS = 24


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, cut; of a pair each of its two."""
    singles = [term.name for term in terms if term.kind != "pair"]
    columns = [name for term in terms if term.kind == "pair" for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, _MAX_SIDE), strict=True))
    return [
        " x ".join(sides[name] for name in term.feature_names)
        if term.kind == "pair"
        else short[term.name]
        for term in terms
    ]


def unit_of(explanation: Any) -> str:
    """What the contributions of an explanation, of a model or of rows, add to."""
    classes = explanation.classes
    if explanation.link == "logit":
        return f"log-odds of {shorten(str(classes[1]), _MAX_CLASS)}" if classes else "log-odds"
    if explanation.link == "softmax":
        return "score of each class"
    words = {"log": "log rate", "log-variance": "log noise variance"}
    return words.get(explanation.link, "prediction")
