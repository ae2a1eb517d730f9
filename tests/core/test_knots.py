"""Placement of knots and levels, and positions of rows among them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lanam.core.terms.knots import (
    MARGINS,
    Grid,
    Levels,
    locate,
    place_knots,
    place_levels,
    power_of_two_scale,
    standard_inputs,
    summarise,
    weighted_quantiles,
)
from tests.oracles import repeated_quantiles

LARGEST = np.finfo(float).max


def knots_of(column, max_knots=256, weight=None):
    column = np.asarray(column, dtype=float)
    return place_knots(
        summarise(column, np.ones(len(column)) if weight is None else weight), max_knots
    )


def levels_of(column, max_levels=300, n_bins=20, weight=None):
    column = np.asarray(column, dtype=float)
    weight = np.ones(len(column)) if weight is None else weight
    return place_levels(summarise(column, weight), max_levels, n_bins)


class TestScale:
    @pytest.mark.parametrize("largest", [1e-300, 0.75, 1.0, 3.0, 1e300, LARGEST])
    def test_is_a_power_of_two_that_brings_the_column_to_one(self, largest):
        scale = power_of_two_scale(np.array([-largest, largest / 2, 0.0]))
        assert np.frexp(scale)[0] == 0.5
        assert 1.0 <= largest / scale < 2.0

    def test_of_zeros(self):
        assert power_of_two_scale(np.zeros(3)) == 1.0
        assert power_of_two_scale(np.empty(0)) == 1.0

    def test_of_subnormal_numbers_is_a_valid_divisor(self):
        scale = power_of_two_scale(np.array([5e-324]))
        assert scale > 0.0
        assert np.isfinite(1.0 / scale)


class TestQuantiles:
    @pytest.mark.parametrize("seed", range(5))
    def test_a_weight_is_a_repetition(self, seed):
        rng = np.random.default_rng(seed)
        values = np.sort(rng.standard_normal(12))
        repetitions = rng.integers(1, 5, 12)
        levels = np.linspace(0.0, 1.0, 9)
        expected = repeated_quantiles(values, repetitions, levels)
        weighted = weighted_quantiles(values, repetitions.astype(float), levels)
        np.testing.assert_array_equal(weighted, expected)
        repeated = np.repeat(values, repetitions)
        plain = weighted_quantiles(repeated, np.ones(len(repeated)), levels)
        np.testing.assert_array_equal(plain, expected)

    def test_a_level_that_is_reached_exactly_counts(self):
        # 0.1 + 0.1 + 0.1 is above 0.3 and ten times 0.1 below 1 in floats.
        found = weighted_quantiles(np.arange(10.0), np.full(10, 0.1), np.array([0.3, 0.7, 1.0]))
        np.testing.assert_array_equal(found, [2.0, 6.0, 9.0])

    def test_values_without_weight_are_no_inner_quantiles(self):
        found = weighted_quantiles(
            np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0]), np.array([0.5, 0.6])
        )
        np.testing.assert_array_equal(found, [1.0, 3.0])


def test_a_distribution_is_the_sorted_counts():
    rng = np.random.default_rng(0)
    column, weight = rng.integers(-3, 4, 50) * 0.7, rng.uniform(0.5, 2.0, 50)
    distribution = summarise(column, weight)
    values = np.unique(column)
    np.testing.assert_array_equal(distribution.values * distribution.scale, values)
    np.testing.assert_allclose(distribution.mass, [weight[column == v].sum() for v in values])
    plain = summarise(column, np.full(50, 2.0))
    np.testing.assert_allclose(plain.mass, [2.0 * (column == v).sum() for v in values])


class TestKnots:
    def test_few_values_are_knots_themselves(self):
        column = np.array([3.0, -1.0, 0.1, 0.1, 7.3, 3.0])
        knots = knots_of(column)
        np.testing.assert_array_equal(knots.values[knots.inside], np.unique(column))
        position = knots.locate(column)
        assert position.steps == ()
        np.testing.assert_array_equal(knots.values[position.index], column)

    def test_many_values_are_cut_to_the_budget_and_the_ends_stay(self):
        column = np.random.default_rng(0).standard_normal(1000)
        knots = knots_of(column, max_knots=32)
        inside = knots.values[knots.inside]
        assert 20 <= len(inside) <= 32
        assert inside[0] == column.min()
        assert inside[-1] == column.max()
        assert len(knots) == len(inside) + 8

    def test_half_of_the_knots_are_where_the_data_is(self):
        # 90% of the rows in a tenth of the range.
        rng = np.random.default_rng(0)
        column = np.r_[rng.uniform(0, 0.1, 900), rng.uniform(0, 1, 100)]
        knots = knots_of(column, max_knots=100)
        assert np.mean(knots.values[knots.inside] < 0.1) > 0.45
        # The other half is even in the network's input, which bounds the distances.
        inputs = knots.inputs[knots.inside]
        assert np.diff(inputs).max() <= 1.001 * (inputs[-1] - inputs[0]) / 49

    def test_no_two_knots_nearly_coincide(self):
        # Each step is an equal part of a mixture: at most twice that part of the range, and
        # narrow only where there is as much data. Here the data's distribution is known: normal.
        column = np.random.default_rng(0).standard_normal(2000)
        knots = knots_of(column, max_knots=41)
        inputs = knots.inputs[knots.inside]
        assert len(inputs) == 41
        below = np.searchsorted(np.sort(column), knots.values[knots.inside]) / 2000
        evenly = (inputs - inputs[0]) / (inputs[-1] - inputs[0])
        # The empirical distribution jumps at every row, by a twentieth of a step.
        np.testing.assert_allclose(np.diff(below + evenly), 2.0 / 40, atol=2e-3)
        assert np.diff(evenly).max() <= 2.0 / 40 + 1e-9
        assert np.diff(evenly).min() > 0.2 / 40

    def test_margins_reach_beyond_the_data_by_its_range(self):
        column = np.random.default_rng(0).uniform(0.0, 10.0, 400)
        values = knots_of(column).values
        # A uniform column's ends are within two standard deviations; beyond, steps grow.
        assert values[0] <= -9.0
        assert values[-1] >= 19.0
        assert (np.diff(values) > 0.0).all()

    def test_network_inputs_are_standardised(self):
        column = np.random.default_rng(0).normal(50.0, 4.0, 500)
        knots = knots_of(column, max_knots=500)
        inputs = np.interp(column, knots.values, knots.inputs)
        assert np.mean(inputs) == pytest.approx(0.0, abs=0.02)
        assert np.std(inputs) == pytest.approx(1.0, abs=0.05)
        # Linear within two deviations, logarithmic beyond.
        shown = knots.inputs[np.abs(knots.inputs) < 2.0]
        standard = (knots.values[np.abs(knots.inputs) < 2.0] - column.mean()) / column.std()
        np.testing.assert_allclose(shown, standard, atol=1e-9)
        far = (knots.values[-1] - column.mean()) / column.std()
        assert knots.inputs[-1] == pytest.approx(2.0 + np.log1p(far - 2.0))

    @pytest.mark.parametrize("max_knots", [16, 256, 2000])
    @pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-307, 1.0])
    def test_any_scale(self, scale, max_knots):
        column = np.random.default_rng(0).standard_normal(300) * scale
        knots = knots_of(column, max_knots)
        inside = knots.values[knots.inside]
        assert inside[0] == column.min()
        assert inside[-1] == column.max()
        assert np.isfinite(knots.values).all()
        assert (np.diff(knots.points) > 0.0).all()
        plain = knots_of(column / scale, max_knots)
        # The scale is no power of two, so columns and knots differ by their rounding.
        np.testing.assert_allclose(knots.inputs, plain.inputs, atol=1e-6)

    @pytest.mark.parametrize("offset", [1e6, 1e15])
    def test_a_column_far_from_zero(self, offset):
        column = offset + np.arange(500.0)
        knots = knots_of(column, 64)
        assert (np.diff(knots.points) > 0.0).all()
        assert knots.values[knots.inside][0] == column.min()
        assert knots.values[knots.inside][-1] == column.max()

    @pytest.mark.parametrize("outlier", [1e3, 1e9, 1e100, 1e200, 1e300])
    def test_an_outlier_leaves_the_rest_resolved(self, outlier):
        column = np.random.default_rng(0).standard_normal(300)
        column[0] = outlier
        knots = knots_of(column)
        assert np.isfinite(knots.points).all()
        assert np.isfinite(knots.inputs).all()
        assert (np.diff(knots.points) > 0.0).all()
        assert knots.values[knots.inside][-1] == outlier
        # The inputs of the others are as without it, from about -3 to 3.
        bulk = np.interp(np.sort(column)[:-1], knots.values, knots.inputs)
        assert bulk[-1] - bulk[0] > 4.0
        position = knots.locate(column)
        assert position.index.max() < len(knots)

    @pytest.mark.parametrize("unit", [1.0, 1e-15, 1e-16, 1e-300])
    def test_an_outlier_beyond_all_units(self, unit):
        column = np.random.default_rng(0).standard_normal(300) * unit
        column[0] = LARGEST
        knots = knots_of(column)
        assert np.isfinite(knots.points).all()
        assert np.isfinite(knots.inputs).all()
        assert (np.diff(knots.points) > 0.0).all()
        assert knots.values[knots.inside][-1] == LARGEST
        assert knots.locate(column).index[0] == knots.locate(column).index.max()

    def test_heavy_tails_on_both_sides(self):
        column = np.random.default_rng(0).standard_cauchy(2000)
        knots = knots_of(column, 128)
        assert (np.diff(knots.points) > 0.0).all()
        assert np.mean(np.abs(knots.values) < 5.0) > 0.4

    def test_weights_are_repetitions(self):
        rng = np.random.default_rng(0)
        column, repetitions = rng.standard_normal(100), rng.integers(1, 4, 100)
        weighted = knots_of(column, 40, repetitions.astype(float))
        repeated = knots_of(np.repeat(column, repetitions), 40)
        np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-12)
        np.testing.assert_allclose(weighted.inputs, repeated.inputs, rtol=1e-9, atol=1e-12)

    def test_a_constant_column_has_none(self):
        assert knots_of(np.full(5, 3.0)) is None

    def test_two_values(self):
        knots = knots_of([0.0, 1.0, 1.0])
        np.testing.assert_array_equal(knots.values[knots.inside], [0.0, 1.0])
        assert len(knots) == 10

    def test_quantile_inputs(self):
        knots = knots_of(np.random.default_rng(0).standard_normal(100))
        inside = knots.inputs[knots.inside]
        found = knots.quantile_input(np.array([0.0, 0.5, 1.0]))
        middle = 0.5 * (inside[49] + inside[50])
        np.testing.assert_allclose(found, [inside[0], middle, inside[-1]])


class TestLocate:
    def test_a_loop_over_rows(self):
        rng = np.random.default_rng(0)
        knots = knots_of(rng.standard_normal(300), 20)
        column = rng.standard_normal(50) * 3.0
        position = knots.locate(column)
        ((stride, fractions),) = position.steps
        assert stride == 1
        for value, index, fraction in zip(column, position.index, fractions, strict=True):
            value = min(max(value, knots.values[0]), knots.values[-1])
            left, right = knots.values[index], knots.values[index + 1]
            assert left <= value <= right
            assert (1 - fraction) * left + fraction * right == pytest.approx(value, abs=1e-6)

    def test_values_beyond_the_outermost_knots_are_clipped(self):
        knots = knots_of(np.random.default_rng(0).standard_normal(300), 20)
        position = knots.locate(np.array([-1e300, 0.0, 1e300]))
        last = len(knots) - 1
        ((_, fraction),) = position.steps
        assert position.index[0] + fraction[0] == 0.0
        assert position.index[2] + fraction[2] == last
        assert 0.0 < position.index[1] + fraction[1] < last

    def test_rows_of_a_position(self):
        knots = knots_of(np.random.default_rng(0).standard_normal(300), 20)
        whole = knots.locate(np.linspace(-1, 1, 11))
        part = whole.rows(slice(3, 6))
        np.testing.assert_array_equal(part.index, whole.index[3:6])
        np.testing.assert_array_equal(part.steps[0][1], whole.steps[0][1][3:6])
        assert knots_of([0.0, 1.0]).locate(np.array([0.0])).rows(slice(0, 1)).steps == ()

    def test_indices_of_large_tables_do_not_wrap(self):
        column = np.arange(40_000.0)
        knots = knots_of(column, 50_000)
        np.testing.assert_array_equal(knots.values[knots.locate(column).index], column)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40),
    st.sampled_from([4, 5, 16, 256]),
)
@example([-1.7976931348622355e308, -1.7976931348622357e308], 4)  # margins lost to rounding
def test_any_numeric_column(values, max_knots):
    column = np.array(values)
    distribution = summarise(column, np.ones(len(column)))
    knots = place_knots(distribution, max_knots)
    if len(distribution.values) == 1:
        assert knots is None
        return
    assert np.isfinite(knots.points).all()
    assert np.isfinite(knots.inputs).all()
    assert (np.diff(knots.points) > 0.0).all()
    # Two values may have the same network input.
    assert (np.diff(knots.inputs) >= 0.0).all()
    inside = knots.points[knots.inside]
    assert inside[0] == distribution.values[0]
    assert inside[-1] == distribution.values[-1]
    position = knots.locate(column)
    place = position.index + sum(fraction for _, fraction in position.steps)
    assert (place >= 0.0).all()
    assert (place <= len(knots) - 1).all()
    levels = place_levels(distribution, 10, 5)
    assert levels.locate(column).index.max() <= len(levels) - 2
    assert np.isfinite(levels.values).all()


class TestBinsBesideASpike:
    """A value as heavy as a bin has its own bin, and the others are still split."""

    @pytest.mark.parametrize("spike", [0.0, 0.5, 9.0])
    @pytest.mark.parametrize("share", [0.2, 0.93, 0.995])
    def test_a_spike_has_its_own_bin(self, spike, share):
        rng = np.random.default_rng(0)
        column = np.where(rng.random(20_000) < share, spike, rng.uniform(0.0, 1.0, 20_000))
        levels = levels_of(column, 12, 12)
        index = levels.locate(column).index
        own = set(index[column == spike].tolist())
        assert len(own) == 1
        assert not own & set(index[column != spike].tolist())
        others = np.bincount(index[column != spike], minlength=len(levels))
        others = others[others > 0]
        # The spike takes one bin, whatever its weight.
        assert len(others) >= 10
        assert others.max() < 3.0 * others.mean()

    def test_two_spikes(self):
        column = np.r_[np.zeros(500), np.ones(400), np.linspace(-1.0, 2.0, 101)]
        levels = levels_of(column, 12, 12)
        index = levels.locate(column).index
        assert np.unique(index[column == 0.0]) != np.unique(index[column == 1.0])
        assert len(np.unique(index)) >= 11

    def test_only_spikes(self):
        column = np.repeat(np.arange(13.0), [100] * 11 + [1, 1])
        levels = levels_of(column, 12, 12)
        assert len(np.unique(levels.locate(column).index)) == 12

    def test_without_a_spike_bins_are_quantiles(self):
        column = np.random.default_rng(1).standard_normal(1000)
        levels = levels_of(column, 12, 12)
        wanted = repeated_quantiles(np.sort(column), np.ones(1000, int), np.arange(1, 12) / 12)
        np.testing.assert_allclose(levels.edges * levels.scale, wanted)


class TestLevels:
    def test_few_values_are_levels(self):
        column = np.array([0.3, 5.0, 0.3, -2.0])
        levels = levels_of(column)
        assert levels.exact
        np.testing.assert_array_equal(levels.values, [-2.0, 0.3, 5.0])
        assert len(levels) == 4
        np.testing.assert_array_equal(levels.locate(column).index, [1, 2, 1, 0])

    def test_unseen_values_have_the_last_entry(self):
        levels = levels_of([-2.0, 0.3, 5.0])
        unseen = np.array([-3.0, 0.0, 0.3001, 6.0, 1e300])
        np.testing.assert_array_equal(levels.locate(unseen).index, 3)

    def test_adjacent_floats_are_levels_of_their_own(self):
        """Their midpoint is rounded to one of them."""
        column = 1e15 + np.arange(6) / 8.0
        np.testing.assert_array_equal(levels_of(column).locate(column).index, np.arange(6))

    def test_many_values_share_bins(self):
        rng = np.random.default_rng(0)
        column, weight = rng.standard_normal(1000), rng.uniform(0.5, 1.5, 1000)
        levels = levels_of(column, 300, 20, weight)
        assert not levels.exact
        assert len(levels.points) == 20
        index = levels.locate(column).index
        edges = np.r_[-np.inf, levels.edges * levels.scale, np.inf]
        for k in range(20):
            members = (column >= edges[k]) & (column < edges[k + 1])
            np.testing.assert_array_equal(index == k, members)
            middle = np.average(column[members], weights=weight[members])
            assert levels.values[k] == pytest.approx(middle)
            # Bins hold equal weight up to a row or two at their edges.
            assert weight[members].sum() == pytest.approx(weight.sum() / 20, abs=3.0)

    def test_no_training_row_has_the_entry_of_unseen_values(self):
        column = np.random.default_rng(0).standard_normal(1000)
        for levels in (levels_of(column, 300), levels_of(column, 1000)):
            assert levels.locate(column).index.max() == len(levels) - 2

    def test_a_value_with_most_of_the_weight_gets_one_bin(self):
        column = np.r_[np.zeros(900), np.arange(1.0, 101.0)]
        levels = levels_of(column, 50, 10)
        assert isinstance(levels, Levels)
        index = levels.locate(column).index
        assert len(np.unique(index[:900])) == 1
        assert np.bincount(index, minlength=len(levels.points)).min() > 0

    @pytest.mark.parametrize("scale", [1e300, 1e-300])
    def test_any_scale(self, scale):
        column = np.array([1.0, 2.5, 1.0, -0.5]) * scale
        levels = levels_of(column)
        np.testing.assert_array_equal(levels.values, np.unique(column))
        np.testing.assert_array_equal(levels.locate(column).index, [1, 2, 1, 0])


def test_standard_inputs_are_the_network_inputs_at_the_values():
    rng = np.random.default_rng(0)
    column = np.r_[rng.normal(50.0, 4.0, 40), 50.0, 90.0, 1e4]
    distribution = summarise(column, np.ones(43))
    knots = place_knots(distribution, 100)
    np.testing.assert_array_equal(standard_inputs(distribution), knots.inputs[knots.inside])
    # The input of an outlier is logarithmic.
    assert standard_inputs(distribution)[-1] < 12.0


def test_margins_can_be_chosen():
    column = np.random.default_rng(0).uniform(size=300)
    distribution = summarise(column, np.ones(300))
    inner = place_knots(distribution, 20).inside
    assert (inner.start, inner.stop) == (len(MARGINS), len(place_knots(distribution, 20)) - 4)
    knots = place_knots(distribution, 20, np.array([0.2, 1.0]))
    inside = knots.points[knots.inside]
    beyond = (knots.points - inside[-1])[knots.inside.stop :] / (inside[-1] - inside[0])
    np.testing.assert_allclose(beyond, [0.2, 1.0])
    before = (inside[0] - knots.points)[: knots.inside.start] / (inside[-1] - inside[0])
    np.testing.assert_allclose(before, [1.0, 0.2])


class TestGrid:
    def grid(self):
        rng = np.random.default_rng(0)
        return Grid((knots_of(rng.standard_normal(200), 9), knots_of(rng.integers(0, 3, 50))))

    def test_entries_are_all_pairs_of_knots_in_row_major_order(self):
        grid = self.grid()
        assert grid.shape == (len(grid.axes[0]), len(grid.axes[1]))
        assert len(grid) == grid.shape[0] * grid.shape[1]
        expected = [(a, b) for a in grid.axes[0].inputs for b in grid.axes[1].inputs]
        np.testing.assert_array_equal(grid.network_inputs, expected)
        assert grid.axes[0].network_inputs.shape == (len(grid.axes[0]), 1)

    def test_rows_at_knots_are_at_one_entry(self):
        grid = self.grid()
        pairs = [(a, b) for a in grid.axes[0].values for b in grid.axes[1].values]
        position = grid.locate(*np.array(pairs).T)
        assert position.steps == ()
        np.testing.assert_array_equal(position.index, np.arange(len(grid)))

    def test_rows_are_between_four_entries(self):
        grid = self.grid()
        rng = np.random.default_rng(1)
        first, second = rng.standard_normal(40), rng.uniform(-1.0, 3.0, 40)
        position = grid.locate(first, second)
        (stride, down), (one, right) = position.steps
        assert (stride, one) == (grid.shape[1], 1)
        for i in range(40):
            row, column = divmod(int(position.index[i]), grid.shape[1])
            across, along = float(down[i]), float(right[i])
            x, y = grid.axes[0].values, grid.axes[1].values
            assert (1 - across) * x[row] + across * x[row + 1] == pytest.approx(first[i], abs=1e-5)
            assert (1 - along) * y[column] + along * y[column + 1] == pytest.approx(
                second[i], abs=1e-5
            )

    def test_rows_of_a_position(self):
        position = self.grid().locate(np.linspace(-1, 1, 11), np.linspace(0, 2, 11) + 0.1)
        part = position.rows(slice(3, 6))
        np.testing.assert_array_equal(part.index, position.index[3:6])
        for (stride, own), (whole_stride, whole) in zip(part.steps, position.steps, strict=True):
            assert stride == whole_stride
            np.testing.assert_array_equal(own, whole[3:6])
        exact = self.grid().locate(np.linspace(-1, 1, 11), np.ones(11)).rows(slice(2, 4))
        ((stride, across),) = exact.steps
        assert stride > 1
        assert len(across) == 2

    def test_large_grids_do_not_wrap(self):
        axes = [knots_of(np.arange(float(n)), 1000) for n in (300, 200)]
        grid = Grid(tuple(axes))
        assert len(grid) > np.iinfo(np.int16).max
        first, second = np.array([0.0, 299.0]), np.array([0.0, 199.0])
        index = grid.locate(first, second).index
        np.testing.assert_array_equal(index, [4 * 208 + 4, 303 * 208 + 203])

    def test_a_term_uses_its_columns(self):
        grid = self.grid()
        columns = np.random.default_rng(2).uniform(0.0, 2.0, (20, 4))
        found = locate(grid, (3, 1), columns)
        expected = grid.locate(columns[:, 3], columns[:, 1])
        np.testing.assert_array_equal(found.index, expected.index)
        np.testing.assert_array_equal(found.steps[0][1], expected.steps[0][1])
        single = locate(grid.axes[0], (2,), columns)
        np.testing.assert_array_equal(single.index, grid.axes[0].locate(columns[:, 2]).index)
