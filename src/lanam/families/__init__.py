"""Response families, one file each: checks and encoding of y, likelihood, predictive distribution."""

from __future__ import annotations

from lanam.errors import InputError, choose
from lanam.families.base import Encoding, Family, Statistics
from lanam.families.bernoulli import BernoulliFamily
from lanam.families.binomial import BinomialFamily
from lanam.families.gamma import GammaFamily
from lanam.families.gaussian import AnyFamily, GaussianFamily, NoiseFamily
from lanam.families.labels import ClassFamily
from lanam.families.lognormal import LognormalFamily
from lanam.families.negative_binomial import NegativeBinomialFamily
from lanam.families.ordinal import OrdinalFamily
from lanam.families.poisson import PoissonFamily
from lanam.families.softmax import SoftmaxFamily
from lanam.families.student import StudentFamily
from lanam.families.survival import SurvivalFamily
from lanam.families.tweedie import TweedieFamily

__all__ = [
    "ANY",
    "AUTO",
    "BERNOULLI",
    "BINOMIAL",
    "FAMILIES",
    "GAMMA",
    "GAUSSIAN",
    "LOGNORMAL",
    "NEGATIVE_BINOMIAL",
    "NOISE",
    "ORDINAL",
    "POISSON",
    "SOFTMAX",
    "STUDENT",
    "SURVIVAL",
    "TWEEDIE",
    "ClassFamily",
    "Encoding",
    "Family",
    "Statistics",
    "find_family",
    "find_numeric_family",
    "numeric_families",
]

GAUSSIAN, LOGNORMAL, STUDENT = GaussianFamily(), LognormalFamily(), StudentFamily()
GAMMA, TWEEDIE, BINOMIAL = GammaFamily(), TweedieFamily(), BinomialFamily()
POISSON, NEGATIVE_BINOMIAL = PoissonFamily(), NegativeBinomialFamily()
BERNOULLI, SOFTMAX, ORDINAL = BernoulliFamily(), SoftmaxFamily(), OrdinalFamily()
NOISE = NoiseFamily()

#: Of an estimator of its own.
SURVIVAL = SurvivalFamily()

#: The value of ``likelihood`` that leaves the family to the evidence, and a family that takes all
#: arguments.
AUTO = "auto"
ANY = AnyFamily()

#: Families by their tag in fitted models and files; a new one is added here.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *(GAUSSIAN, LOGNORMAL, STUDENT, GAMMA, TWEEDIE, POISSON, NEGATIVE_BINOMIAL, BINOMIAL),
        *(BERNOULLI, SOFTMAX, ORDINAL, SURVIVAL, NOISE),
    )
}


def find_family(tag: str) -> Family:
    """The family with a tag, or an error that lists them.

    Examples
    --------
    >>> find_family("poisson").link.name
    'log'
    >>> find_family("cauchy")
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: likelihood='cauchy' is not known: choose 'gaussian', 'lognormal', ...
    """
    return _find(tag, tuple(FAMILIES))


def find_numeric_family(tag: str) -> Family:
    """The family of a regressor's ``likelihood``: of numbers, and of no other estimator.

    Examples
    --------
    >>> find_numeric_family("survival")
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: likelihood='survival' is not known: choose 'gaussian', 'lognormal', ...
    """
    family = FAMILIES.get(tag) if isinstance(tag, str) else None
    if family is not None and family.link.classes:
        remedy = "use LANAMClassifier, or {likelihood='gaussian'} for numbers"
        raise InputError("{given} is for classes", remedy, argument="likelihood", value=tag)
    return _find(tag, numeric_families())


def _find(tag: str, tags: tuple[str, ...]) -> Family:
    if isinstance(tag, str) and tag in tags:
        return FAMILIES[tag]
    raise InputError(
        "{given} is not known",
        choose(*numeric_families(), AUTO),
        argument="likelihood",
        value=tag,
    )


def numeric_families() -> tuple[str, ...]:
    """The values of a regressor's ``likelihood``."""
    return tuple(
        name
        for name, family in FAMILIES.items()
        if not isinstance(family, ClassFamily) and family not in (NOISE, SURVIVAL)
    )
