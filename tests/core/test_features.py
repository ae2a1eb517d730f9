"""Features of infinitely wide networks: the limit of finite ones, without random numbers."""

import numpy as np
import pytest

from lanam.core.terms import features, networks
from lanam.core.terms.networks import Architecture

POINTS = np.linspace(-2.5, 2.5, 41)


def kernel(tables):
    return [table @ table.T for table in tables]


def drawn_kernels(architecture, n_units, seed):
    """Kernels of the tensors of one band's random units, averaged."""
    rng = np.random.default_rng(seed)
    (scale,) = architecture.scales
    slope = rng.uniform(-scale, scale, n_units)
    kink = rng.uniform(-4.0, 4.0, n_units)
    value, derivative = networks.ACTIVATIONS[architecture.activation](
        slope * (POINTS[:, None] - kink)
    )
    of_bias = derivative @ derivative.T
    return [np.outer(POINTS, POINTS) * of_bias, of_bias, value @ value.T]


@pytest.mark.parametrize("activation", ["gelu", "tanh", "relu", "silu"])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_they_are_the_limit_of_wide_networks(activation, scale):
    architecture = Architecture(1, None, activation, (scale,))
    found = kernel(features.tangent_features([POINTS], architecture))
    for drawn, limit in zip(drawn_kernels(architecture, 60_000, 0), found, strict=True):
        # Up to a factor, which the prior precision absorbs.
        drawn = drawn / np.trace(drawn)
        limit = limit / np.trace(limit)
        np.testing.assert_allclose(limit, drawn, atol=0.05 * np.diag(drawn).max())


@pytest.mark.parametrize("n_points", [1, 2, 5, 41, 300])
def test_counts_are_those_of_the_features(n_points):
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))
    points = np.linspace(-2.0, 2.0, n_points)
    tables = features.tangent_features([points], architecture)
    assert features.counts([n_points], architecture) == [table.shape[1] for table in tables]
    assert all(len(table) == n_points >= table.shape[1] for table in tables)


def test_fewer_points_see_the_same_kernel():
    architecture = Architecture(1, None, "gelu", (1.0, 4.0))
    everywhere = kernel(features.tangent_features([POINTS], architecture))
    few = kernel(features.tangent_features([POINTS[::8]], architecture))
    for one, other in zip(few, everywhere, strict=True):
        np.testing.assert_allclose(one, other[::8, ::8], atol=1e-10 * np.abs(other).max())


def test_a_finer_design_has_the_same_kernel(monkeypatch):
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))
    tables = kernel(features.tangent_features([POINTS], architecture))
    monkeypatch.setattr(features, "RESOLUTION", 2)
    finer = kernel(features.tangent_features([POINTS], architecture))
    for one, other in zip(tables, finer, strict=True):
        one, other = one / np.trace(one), other / np.trace(other)
        np.testing.assert_allclose(one, other, atol=0.01 * np.diag(other).max())


def test_beyond_their_table_they_are_straight():
    architecture = Architecture(1, None, "gelu", (1.0, 4.0))
    points = np.array([6.0, 7.0, 8.0, 9.0, 40.0])
    # The first group has another factor, the input itself.
    for table in features.tangent_features([points], architecture)[2:]:
        slope = np.diff(table[:4], axis=0)
        np.testing.assert_allclose(slope[1:], slope[:-1], atol=1e-9 * np.abs(table).max())


class TestProducts:
    architecture = Architecture(2, None, "gelu", (1.0, 4.0))

    def test_counts(self):
        points = [np.linspace(-2.0, 2.0, 6), np.linspace(-1.0, 3.0, 20)]
        tables = features.product_features(points, self.architecture)
        counts = features.counts([6, 20], self.architecture)
        assert counts == [table.shape[1] for table in tables]
        assert all(len(table) == 120 for table in tables)

    def test_they_are_products_without_constants(self):
        points = [np.linspace(-2.0, 2.0, 5), np.linspace(-1.0, 3.0, 7)]
        for table in features.product_features(points, self.architecture):
            grid = table.reshape(5, 7, -1)
            largest = np.abs(grid).max()
            np.testing.assert_allclose(grid.mean(axis=0), 0.0, atol=1e-9 * largest)
            np.testing.assert_allclose(grid.mean(axis=1), 0.0, atol=1e-9 * largest)
            singular = np.linalg.svd(np.moveaxis(grid, 2, 0), compute_uv=False)
            np.testing.assert_allclose(singular[:, 1:], 0.0, atol=1e-9 * largest)

    def test_the_largest_come_first(self):
        points = [np.linspace(-2.0, 2.0, 12)] * 2
        for table in features.product_features(points, self.architecture):
            size = np.linalg.norm(table, axis=0)
            assert np.all(np.diff(size) <= 1e-9 * size[0])

    def test_of_three_columns(self):
        points = [np.linspace(-2.0, 2.0, 4)] * 3
        architecture = Architecture(3, None, "gelu", (1.0,))
        (table,) = features.product_features(points, architecture)
        assert table.shape == (64, features.counts([4, 4, 4], architecture)[0])
