"""Ordered categories: a random walk along their ranks, beside a line."""

import numpy as np
import pytest

from lanam.core.terms.knots import Categories, choose_categories
from lanam.core.terms.linearise import centred
from lanam.core.terms.term import OrderedTerm


def term(n):
    return OrderedTerm((0,), Categories(np.arange(n), n, ordered=True))


def test_the_walk_has_independent_steps():
    """The covariance of the walk's group is that of cumulative sums of independent steps."""
    n = 6
    ordered = term(n)
    walk = ordered.jacobian(np.empty(0))[:n, ordered.group_index == 1]
    steps = np.diff(walk @ walk.T, axis=0)
    np.testing.assert_allclose(np.diff(steps, axis=1), np.eye(n - 1), atol=1e-12)


def test_the_line_is_straight():
    ordered = term(5)
    line = ordered.jacobian(np.empty(0))[:5, ordered.group_index == 0]
    np.testing.assert_allclose(np.diff(line, n=2, axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_missing_and_unseen_values_vary_like_categories(n):
    """By the mean variance of the others, independently of them and of each other."""
    table = term(n).jacobian(np.empty(0))
    covariance = table @ table.T
    np.testing.assert_allclose(covariance[n:, :n], 0.0)
    assert covariance[n, n + 1] == 0.0
    typical = np.diag(covariance)[:n].mean()
    np.testing.assert_allclose(np.diag(covariance)[n:], typical)


def test_none_is_pooled():
    entries = choose_categories(np.arange(30.0), 5, ordered=True)
    assert len(entries) == 32
    assert entries.ordered
    assert len(choose_categories(np.arange(30.0), 5)) == 7


def test_it_is_centred_over_the_data():
    ordered, mass = term(4), np.array([0.1, 0.2, 0.3, 0.4, 0.0, 0.0])
    table = centred(ordered, ordered.jacobian(np.empty(0)), mass)
    np.testing.assert_allclose(mass @ table, 0.0, atol=1e-12)
