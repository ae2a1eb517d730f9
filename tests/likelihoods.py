"""The likelihoods of all families, for tests of the core."""

from lanam.families import BERNOULLI, GAUSSIAN, POISSON, find_family

LIKELIHOODS = {family.name: family.likelihood() for family in (GAUSSIAN, BERNOULLI, POISSON)}


def find_likelihood(name, n_classes):
    """The likelihood of a family; only that of several classes needs to know how many there are."""
    return find_family(name).likelihood(n_classes)
