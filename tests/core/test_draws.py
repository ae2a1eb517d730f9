"""Draws of a term's function: its joint distribution, in any coordinates and chunks."""

from __future__ import annotations

import numpy as np
import pytest

from lanam.core.model import draws
from lanam.core.model.draws import JointRoot

N_DRAWS = 20_000


def a_root(n_classes=1, rank=4, own=False):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(9, 3))
    factors = rng.normal(size=(n_classes, 3, rank))
    return JointRoot(table, factors, rng.uniform(0.5, 2.0, 9) if own else None)


def covariance_of(root):
    """The joint covariance (C * B, C * B), densely."""
    rows = np.concatenate([root.table @ factor for factor in root.factors])
    own = 0.0 if root.own_variance is None else np.diag(root.own_variance)
    return rows @ rows.T + own


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_they_have_the_joint_covariance(n_classes, rank):
    root = a_root(n_classes, rank)
    sample = root.draws(N_DRAWS).reshape(-1, N_DRAWS)
    expected = covariance_of(root)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(np.cov(sample) / scale, expected / scale, atol=0.04)
    # All are in the span of the root's columns.
    rows = np.concatenate([root.table @ factor for factor in root.factors])
    np.testing.assert_allclose(rows @ np.linalg.pinv(rows) @ sample, sample, atol=1e-9)


def test_independent_parts_of_entries():
    root = a_root(own=True)
    expected = covariance_of(root)
    np.testing.assert_allclose(np.cov(root.draws(N_DRAWS)[0]), expected, atol=0.05 * expected.max())


@pytest.mark.parametrize("n_classes", [1, 3])
def test_coordinates_do_not_matter(n_classes):
    """Eigenvectors turned around, or mixed where their eigenvalues are equal, give the same draws."""
    root, rng = a_root(n_classes), np.random.default_rng(2)
    inner, outer = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (3, 4))
    turned = JointRoot(root.table @ inner, inner.T @ root.factors @ outer)
    np.testing.assert_allclose(turned.draws(50), root.draws(50), atol=1e-10)
    flipped = JointRoot(root.table * [1, -1, 1], root.factors * np.array([[1], [-1], [1]]))
    np.testing.assert_allclose(flipped.draws(50), root.draws(50), atol=1e-12)


def test_rounding_is_no_direction():
    root, rng = a_root(), np.random.default_rng(3)
    noisy = JointRoot(root.table, np.concatenate([root.factors, 1e-9 * root.factors], axis=2))
    np.testing.assert_allclose(noisy.draws(50), root.draws(50), atol=1e-7)
    shaken = JointRoot(root.table + 1e-13 * rng.normal(size=(9, 3)), root.factors)
    np.testing.assert_allclose(shaken.draws(50), root.draws(50), atol=1e-10)


@pytest.mark.parametrize("own", [False, True])
def test_chunks_and_entries(own, monkeypatch):
    root = a_root(own=own)
    at_once = root.draws(50)
    monkeypatch.setattr(draws, "_CHUNK_VALUES", 1)
    np.testing.assert_allclose(root.draws(50), at_once, atol=1e-12)
    some = root.at(np.array([4, 2]))
    np.testing.assert_allclose(
        covariance_of(some), covariance_of(root)[np.ix_([4, 2], [4, 2])], atol=1e-12
    )


def test_a_certain_function_has_no_deviations():
    root = JointRoot(np.zeros((4, 2)), np.ones((1, 2, 2)))
    np.testing.assert_array_equal(root.draws(7), np.zeros((1, 4, 7)))
