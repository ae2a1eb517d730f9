"""Likelihoods with parameters of their own, and their distributions by scipy at values of the link."""

import numpy as np
from scipy import stats

from lanam.families.gamma import Gamma, GammaOverLink
from lanam.families.negative_binomial import NegativeBinomial, NegativeBinomialOverLink
from lanam.families.student import StudentT


def _gamma(f, shape):
    return stats.gamma(shape, scale=np.exp(f) / shape)


def _negative_binomial(f, dispersion):
    return stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * np.exp(f)))


#: A likelihood, its distribution by scipy, and observations.
CASES = {
    "gamma": (Gamma(2.3), lambda f: _gamma(f, 2.3), np.array([0.01, 0.4, 1.0, 6.0, 90.0])),
    "negative_binomial": (
        NegativeBinomial(0.6),
        lambda f: _negative_binomial(f, 0.6),
        np.array([0.0, 1.0, 2.0, 7.0, 60.0]),
    ),
    "student": (
        StudentT(0.7, 4.5),
        lambda f: stats.t(4.5, loc=f, scale=0.7),
        np.array([-9.0, -0.3, 0.0, 1.1, 30.0]),
    ),
}

#: The mixture over the link, by means and variances of the link.
MIXTURES = {
    "gamma": lambda mean, variance: GammaOverLink(mean, variance, 2.3),
    "negative_binomial": lambda mean, variance: NegativeBinomialOverLink(mean, variance, 0.6),
}
