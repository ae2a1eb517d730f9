"""Terms and their unit in words, for drawings and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lanam.explain.terms import Term
from lanam.explain.values import Labels
from lanam.families import Family
from lanam.text import cut

#: Names that have a line each are cut to this many characters, and each of the two names of a pair.
MAX_LONG_NAME = 40
_MAX_SIDE = 20


class Explained(Protocol):
    """What has contributions: a model's explanation, or that of some rows."""

    @property
    def family(self) -> Family:
        """The response family."""

    @property
    def classes(self) -> Labels:
        """A classifier's labels."""


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, cut; of a pair each of its two."""
    singles = [term.name for term in terms if not term.joint]
    columns = [name for term in terms if term.joint for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, _MAX_SIDE), strict=True))
    return [
        " x ".join(sides[name] for name in term.feature_names) if term.joint else short[term.name]
        for term in terms
    ]


def unit_of(explanation: Explained) -> str:
    """What the contributions of an explanation, of a model or of rows, add to."""
    return explanation.family.words.unit_of(explanation.classes)
