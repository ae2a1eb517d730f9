"""Features of infinitely wide networks: the limit of finite ones, without random numbers."""

import numpy as np
import pytest

from lanam.core.rows.reading import read
from lanam.core.terms import features, networks
from lanam.core.terms.knots import LINEAR, Distribution, Knots, place_circle, place_line
from lanam.core.terms.networks import Architecture

POINTS = np.linspace(-2.5, 2.5, 41)


def axes(*points):
    """Axes whose knots have these network inputs."""
    return [Knots(each, each, 1.0, slice(0, len(each))) for each in points]


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
    found = kernel(features.tangent_features(axes(POINTS), architecture))
    for drawn, limit in zip(drawn_kernels(architecture, 60_000, 0), found, strict=True):
        # Up to a factor, which the prior precision absorbs.
        drawn = drawn / np.trace(drawn)
        limit = limit / np.trace(limit)
        np.testing.assert_allclose(limit, drawn, atol=0.05 * np.diag(drawn).max())


@pytest.mark.parametrize("n_points", [1, 2, 5, 41, 300])
def test_counts_are_those_of_the_features(n_points):
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))
    points = np.linspace(-2.0, 2.0, n_points)
    tables = features.tangent_features(axes(points), architecture)
    assert features.counts(axes(points), architecture) == [table.shape[1] for table in tables]
    assert all(len(table) == n_points >= table.shape[1] for table in tables)


def test_fewer_points_see_the_same_kernel():
    architecture = Architecture(1, None, "gelu", (1.0, 4.0))
    everywhere = kernel(features.tangent_features(axes(POINTS), architecture))
    few = kernel(features.tangent_features(axes(POINTS[::8]), architecture))
    for one, other in zip(few, everywhere, strict=True):
        np.testing.assert_allclose(one, other[::8, ::8], atol=1e-10 * np.abs(other).max())


def test_a_finer_design_has_the_same_kernel(monkeypatch):
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))
    tables = kernel(features.tangent_features(axes(POINTS), architecture))
    monkeypatch.setattr(features, "RESOLUTION", 2)
    finer = kernel(features.tangent_features(axes(POINTS), architecture))
    for one, other in zip(tables, finer, strict=True):
        one, other = one / np.trace(one), other / np.trace(other)
        np.testing.assert_allclose(one, other, atol=0.01 * np.diag(other).max())


def test_beyond_their_table_they_are_straight():
    architecture = Architecture(1, None, "gelu", (1.0, 4.0))
    points = np.array([6.0, 7.0, 8.0, 9.0, 40.0])
    # The first group has another factor, the input itself.
    for table in features.tangent_features(axes(points), architecture)[2:]:
        slope = np.diff(table[:4], axis=0)
        np.testing.assert_allclose(slope[1:], slope[:-1], atol=1e-9 * np.abs(table).max())


class TestProducts:
    architecture = Architecture(2, None, "gelu", (1.0, 4.0))

    def test_counts(self):
        points = [np.linspace(-2.0, 2.0, 6), np.linspace(-1.0, 3.0, 20)]
        tables = features.product_features(axes(*points), self.architecture)
        counts = features.counts(axes(*points), self.architecture)
        assert counts == [table.shape[1] for table in tables]
        assert all(len(table) == 120 for table in tables)

    def test_they_are_products_without_constants(self):
        points = [np.linspace(-2.0, 2.0, 5), np.linspace(-1.0, 3.0, 7)]
        for table in features.product_features(axes(*points), self.architecture):
            grid = table.reshape(5, 7, -1)
            largest = np.abs(grid).max()
            np.testing.assert_allclose(grid.mean(axis=0), 0.0, atol=1e-9 * largest)
            np.testing.assert_allclose(grid.mean(axis=1), 0.0, atol=1e-9 * largest)
            singular = np.linalg.svd(np.moveaxis(grid, 2, 0), compute_uv=False)
            np.testing.assert_allclose(singular[:, 1:], 0.0, atol=1e-9 * largest)

    def test_the_largest_come_first(self):
        points = [np.linspace(-2.0, 2.0, 12)] * 2
        for table in features.product_features(axes(*points), self.architecture):
            size = np.linalg.norm(table, axis=0)
            assert np.all(np.diff(size) <= 1e-9 * size[0])

    def test_of_three_columns(self):
        points = [np.linspace(-2.0, 2.0, 4)] * 3
        architecture = Architecture(3, None, "gelu", (1.0,))
        (table,) = features.product_features(axes(*points), architecture)
        assert table.shape == (64, features.counts(axes(*points), architecture)[0])


def hours(n=24, period=24.0, missing=0.0):
    values = np.arange(n) * (period / n)
    return Distribution(values, np.ones(n), 1.0, missing)


class TestCircle:
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))

    def test_they_are_the_limit_of_wide_networks(self):
        """Of units of the position on a circle, in place of a number."""
        (scale,), n_units = (4.0,), 60_000
        architecture = Architecture(1, None, "gelu", (scale,))
        rng = np.random.default_rng(0)
        knots = place_circle(hours(), 24.0, 256)
        direction = rng.uniform(0.0, 2.0 * np.pi, n_units)
        reach = np.sqrt(2.0) * np.cos(knots.inputs[:, None] - direction)
        slope, kink = rng.uniform(-scale, scale, n_units), rng.uniform(-1.0, 1.0, n_units)
        units = networks.ACTIVATIONS["gelu"](slope * (reach - np.sqrt(2.0) * kink))
        for unit, table in zip(
            units[::-1], features.tangent_features([knots], architecture), strict=True
        ):
            # Constants are left out: they are the intercept's.
            drawn, limit = (values - values[:-1].mean(axis=0) for values in (unit, table))
            drawn, limit = drawn @ drawn.T, limit @ limit.T
            drawn, limit = drawn / np.trace(drawn), limit / np.trace(limit)
            np.testing.assert_allclose(limit, drawn, atol=0.05 * np.diag(drawn).max())

    def test_counts_are_those_of_the_features(self):
        for knots in (place_circle(hours(), 24.0, 256), place_circle(hours(300), 24.0, 64)):
            tables = features.tangent_features([knots], self.architecture)
            counts = features.counts([knots], self.architecture)
            assert counts == [table.shape[1] for table in tables]

    def test_both_ends_are_one_point(self):
        knots = place_circle(hours(), 24.0, 256)
        for table in features.tangent_features([knots], self.architecture):
            np.testing.assert_array_equal(table[0], table[-1])

    def test_it_has_no_beginning(self):
        """The kernel depends on the distance along the circle only."""
        knots = place_circle(hours(), 24.0, 256)
        for table in features.tangent_features([knots], self.architecture):
            kernel = (table @ table.T)[:-1, :-1]
            for shift in (1, 7):
                np.testing.assert_allclose(np.roll(kernel, shift, axis=(0, 1)), kernel, atol=1e-9)


class TestPlaces:
    def test_values_are_knots_and_the_period_is_whole(self):
        knots = place_circle(hours(), 24.0, 256)
        np.testing.assert_array_equal(knots.points, np.arange(25.0))
        assert knots.inside == slice(0, 25)

    def test_hours_without_data_have_knots(self):
        office = Distribution(np.arange(8.0, 18.0), np.ones(10), 1.0)
        knots = place_circle(office, 24.0, 256)
        assert (knots.points[0], knots.points[-1]) == (0.0, 24.0)
        assert np.diff(knots.points).max() <= 1.0 + 1e-9

    def test_data_on_both_sides_of_a_multiple(self):
        nights = Distribution(np.arange(20.0, 30.0), np.ones(10), 1.0)
        knots = place_circle(nights, 24.0, 256)
        assert (knots.points[0], knots.points[-1]) == (20.0, 44.0)

    def test_many_values(self):
        knots = place_circle(hours(2000), 24.0, 64)
        assert len(knots) == 64
        np.testing.assert_allclose(np.diff(knots.points), 24.0 / 63.0)

    def test_whole_periods_do_not_matter(self):
        knots = place_circle(hours(missing=1.0), 24.0, 256)
        values = np.array([0.0, 3.25, 23.5, 24.0, np.nan])
        at = knots.locate(values)
        for periods in (-2, 1, 1000):
            moved = knots.locate(values + periods * 24.0)
            table = np.sin(knots.inputs)
            table = np.append(table, 5.0)
            np.testing.assert_allclose(read(moved, table), read(at, table), atol=1e-6)

    def test_constant_columns_have_none(self):
        once = Distribution(np.array([3.0]), np.ones(1), 1.0)
        assert place_circle(once, 24.0, 256) is None
        assert place_line(once) is None


def test_a_line_is_one_feature():
    values = np.sort(np.random.default_rng(0).exponential(size=500))
    knots = place_line(Distribution(values, np.ones(500), 1.0))
    assert knots.course == LINEAR
    architecture = Architecture(1, None, "gelu", (1.0, 4.0, 16.0))
    (table,) = features.tangent_features([knots], architecture)
    assert features.counts([knots], architecture) == [1]
    slopes = np.diff(table[:, 0]) / np.diff(knots.points)
    np.testing.assert_allclose(slopes, slopes[0])
