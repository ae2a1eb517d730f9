"""Response families, one file each: checks and encoding of y, likelihood, predictive distribution."""

from __future__ import annotations

from lanam.errors import InputError, choose
from lanam.families.base import Encoding, Family, Statistics
from lanam.families.bernoulli import BernoulliFamily
from lanam.families.gaussian import GaussianFamily, NoiseFamily
from lanam.families.labels import ClassFamily
from lanam.families.poisson import PoissonFamily
from lanam.families.softmax import SoftmaxFamily
from lanam.families.survival import SurvivalFamily

__all__ = [
    "BERNOULLI",
    "FAMILIES",
    "GAUSSIAN",
    "NOISE",
    "POISSON",
    "SOFTMAX",
    "SURVIVAL",
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

#: Of an estimator of its own.
SURVIVAL = SurvivalFamily()

#: Families by their tag in fitted models and files; a new one is added here.
FAMILIES: dict[str, Family] = {
    family.name: family for family in (GAUSSIAN, POISSON, BERNOULLI, SOFTMAX, SURVIVAL, NOISE)
}


def find_family(tag: str) -> Family:
    """The family with a tag, or an error that lists them.

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
    raise InputError(
        "{given} is not known", choose(*numeric_families()), argument="likelihood", value=tag
    )


def numeric_families() -> tuple[str, ...]:
    """The values of a regressor's ``likelihood``."""
    return tuple(
        name
        for name, family in FAMILIES.items()
        if not isinstance(family, ClassFamily) and family not in (NOISE, SURVIVAL)
    )
