"""Response families, one file each: what y may be, how it is fitted, and what is predicted of it."""

from __future__ import annotations

from lanam.errors import InputError
from lanam.families.base import Encoding, Family, Statistics
from lanam.families.bernoulli import BernoulliFamily
from lanam.families.gaussian import GaussianFamily, NoiseFamily
from lanam.families.labels import ClassFamily
from lanam.families.poisson import PoissonFamily
from lanam.families.softmax import SoftmaxFamily

__all__ = [
    "BERNOULLI",
    "FAMILIES",
    "GAUSSIAN",
    "NOISE",
    "POISSON",
    "SOFTMAX",
    "ClassFamily",
    "Encoding",
    "Family",
    "Statistics",
    "find_family",
    "numeric_families",
]

GAUSSIAN, POISSON = GaussianFamily(), PoissonFamily()
BERNOULLI, SOFTMAX = BernoulliFamily(), SoftmaxFamily()
NOISE = NoiseFamily()

#: Every family by the tag that fitted models and files have; a new one is added here.
FAMILIES: dict[str, Family] = {
    family.name: family for family in (GAUSSIAN, POISSON, BERNOULLI, SOFTMAX, NOISE)
}


def find_family(tag: str) -> Family:
    """The family of a fitted model.

    Raises
    ------
    ValueError
        If there is none of this name.

    Examples
    --------
    >>> find_family("poisson").link.name
    'log'
    >>> find_family("gamma")
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: likelihood='gamma' is not known: choose 'gaussian' or 'poisson'
    """
    if isinstance(tag, str) and tag in FAMILIES:
        return FAMILIES[tag]
    *names, last = map(repr, numeric_families())
    listed = " or ".join([", ".join(names), last])
    raise InputError("{given} is not known", f"choose {listed}", argument="likelihood", value=tag)


def numeric_families() -> tuple[str, ...]:
    """The names that a regressor's ``likelihood`` may be."""
    return tuple(
        name
        for name, family in FAMILIES.items()
        if not isinstance(family, ClassFamily) and family is not NOISE
    )
