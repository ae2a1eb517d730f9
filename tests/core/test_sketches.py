"""Sketches do not depend on chunks and their order, up to the error that they state."""

import struct
from functools import reduce
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanam.core.rows import sketches
from lanam.core.rows.sketches import (
    EXACT_VALUES,
    PRECISION,
    count_distinct,
    distribution,
    estimate_distinct,
    from_arrays,
    hash_rows,
    hash_values,
    merge,
    merge_counts,
    sign_codes,
    sign_levels,
    sign_numbers,
    sketch_column,
    to_arrays,
)
from lanam.core.rows.tables import add
from lanam.core.terms.knots import place_knots, place_levels, summarise, weighted_quantiles

#: Standard error of the estimated number of distinct values.
RELATIVE_ERROR = (EXACT_VALUES - 2) ** -0.5

#: Tolerance for another order of summation.
ROUNDING = 1e-11


def sketch(column, weight=None):
    column = np.asarray(column, dtype=float)
    return sketch_column(column, np.ones(len(column)) if weight is None else weight)


def chunks(column, weight, cuts):
    return [
        sketch_column(*chunk)
        for chunk in zip(np.split(column, cuts), np.split(weight, cuts), strict=True)
    ]


def chain(parts):
    return reduce(merge, parts)


def backwards(parts):
    return reduce(lambda later, earlier: merge(earlier, later), parts[::-1])


def tree(parts):
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return merge(tree(parts[:half]), tree(parts[half:]))


MERGES = pytest.mark.parametrize("merged", [chain, backwards, tree])


def shares(values, weight, at, side):
    """The fraction of the weight up to (or below) some values, by sorting."""
    order = np.argsort(values)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return below[np.searchsorted(values[order], at, side=side)] / below[-1]


def realised_error(own, column, weight):
    """The largest difference between the cumulative fractions of the column and of the points."""
    present = ~np.isnan(column)
    column, weight = column[present], weight[present]
    at = np.unique(np.concatenate([column, own.points]))
    return max(
        np.abs(shares(column, weight, at, side) - shares(own.points, own.mass, at, side)).max()
        for side in ("left", "right")
    )


def leaf_number(value):
    """The rank of a float among all floats."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return (1 << 64) - 1 - bits if bits >> 63 else bits + (1 << 63)


def rank_error(own):
    """The largest rank error of any quantile, as a fraction of the weight.

    Within a bucket, the side of its rows is unknown; for all other buckets it is known. The error is the
    weight of a node and all nodes above it.
    """
    if own.exact:
        return 0.0
    buckets = own.level > 0
    level, mass = own.level[buckets], own.mass[buckets]
    first = sketches._first_leaf(own.points[buckets], level)
    last = first | ~sketches._upper_bits(level)
    by_end = np.argsort(last)
    ended = np.concatenate([[0.0], np.cumsum(mass[by_end])])
    around = np.cumsum(mass) - ended[np.searchsorted(last[by_end], first)]
    return float(around.max()) / own.mass.sum()


def slow_error(own):
    """The weight of all buckets around any value that is within one."""
    buckets = [
        (leaf_number(point) >> int(level) << int(level), int(level), mass)
        for point, level, mass in zip(own.points, own.level, own.mass, strict=True)
        if level > 0
    ]
    around = [
        sum(mass for first, level, mass in buckets if first <= place < first + (1 << level))
        for place, _, _ in buckets
    ]
    return max(around, default=0.0) / own.mass.sum()


def assert_same(first, second):
    """Equality up to the order of summation."""
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_allclose(first.mass, second.mass, rtol=ROUNDING)
    np.testing.assert_array_equal(first.level, second.level)
    assert first.n_rows == second.n_rows
    assert first.missing == pytest.approx(second.missing, rel=ROUNDING)
    np.testing.assert_array_equal(first.hashes, second.hashes)


SIZE = 60_000


def hard_cases():
    rng = np.random.default_rng(8)
    normal = rng.standard_normal(SIZE)
    equal = np.ones(SIZE)
    step = np.arange(SIZE)
    share = rng.random(SIZE)
    return {
        "normal": (normal, equal),
        "lognormal": (np.exp(2.0 * normal), equal),
        "cauchy": (rng.standard_cauchy(SIZE), equal),
        "sorted": (np.sort(normal), equal),
        "reversed": (np.sort(normal)[::-1], equal),
        "sawtooth": (step % 7001 + 1e-7 * step, equal),
        "narrowing": (5.0 + normal * 0.5 ** (step // 2000), equal),
        "widening": (5.0 + normal * 0.5 ** (step[::-1] // 2000), equal),
        "drifting": (normal + 50.0 * step / SIZE, equal),
        "zipf weights": (normal, rng.zipf(1.5, SIZE).astype(float)),
        "tiny and huge weights": (normal, rng.pareto(0.5, SIZE) + 1e-6),
        "atoms": (np.where(share < 0.3, np.floor(1000.0 * normal), 1000.0 * normal), equal),
        "near atoms": (np.where(share < 0.7, step % 900 + 1e-9 * normal, 900.0 * share), equal),
        "missing": (np.where(share < 0.2, np.nan, normal), equal),
        "huge": (1e300 * normal, equal),
        "tiny": (1e-300 * normal, equal),
        "all magnitudes": (normal * 10.0 ** rng.integers(-307, 307, SIZE), equal),
    }


CASES = hard_cases()
hard = pytest.mark.parametrize("name", CASES)


def uneven_cuts(size, seed=0):
    """Chunks of very different sizes, some of them empty."""
    rng = np.random.default_rng(seed)
    own = np.sort(rng.integers(0, size, 16))
    return np.concatenate([[0, 3], own, own[-1:], [size]])


class TestExact:
    @pytest.mark.parametrize("n_distinct", [1, 2, 1000, 4096, EXACT_VALUES])
    @MERGES
    def test_distinct_values_and_their_weights(self, n_distinct, merged):
        rng = np.random.default_rng(1)
        values = rng.standard_normal(n_distinct)
        column = np.concatenate([values, rng.choice(values, 20_000)])
        weight = rng.gamma(1.0, size=len(column))
        own = merged(chunks(column, weight, uneven_cuts(len(column))))
        distinct, inverse = np.unique(column, return_inverse=True)
        np.testing.assert_array_equal(own.points, distinct)
        np.testing.assert_allclose(own.mass, np.bincount(inverse, weights=weight), rtol=ROUNDING)
        assert own.exact
        assert rank_error(own) == 0.0
        assert own.n_distinct == n_distinct
        assert len(own.hashes) == 0
        assert own.n_rows == len(column)
        assert_same(own, sketch_column(column, weight))

    def test_one_more_value_is_not(self):
        column = np.random.default_rng(2).standard_normal(EXACT_VALUES + 1)
        half = len(column) // 2
        for own in (sketch(column), merge(sketch(column[:half]), sketch(column[half:]))):
            assert not own.exact
            assert rank_error(own) > 0.0
            assert len(own.points) <= EXACT_VALUES
            assert own.n_distinct == pytest.approx(len(column), rel=4 * RELATIVE_ERROR)

    @given(
        st.lists(
            st.lists(
                st.tuples(
                    st.sampled_from([-0.0, 0.0, 1.0, -1e300, 5e-324, 1e-300, 3.5, np.nan]),
                    st.sampled_from([0.5, 1.0, 1e-9, 1e9]),
                ),
                max_size=6,
            ),
            min_size=1,
            max_size=6,
        )
    )
    @settings(max_examples=100, deadline=None)
    def test_as_columns_in_memory_are_summarised(self, parts):
        rows = np.array([row for part in parts for row in part]).reshape(-1, 2)
        split = [np.array(part, dtype=float).reshape(-1, 2) for part in parts]
        for merged in (chain, backwards, tree):
            own = distribution(merged([sketch_column(*part.T) for part in split]))
            if len(rows) == 0:
                assert len(own.values) == 0
                assert (own.missing, own.scale) == (0.0, 1.0)
                continue
            expected = summarise(*rows.T)
            np.testing.assert_array_equal(own.values, expected.values)
            assert not np.signbit(own.values[own.values == 0.0]).any()
            np.testing.assert_allclose(own.mass, expected.mass, rtol=ROUNDING)
            assert own.scale == expected.scale
            assert own.missing == pytest.approx(expected.missing, rel=ROUNDING)


class TestEmptyChunks:
    @pytest.mark.parametrize("column", [[], [np.nan, np.nan]])
    def test_an_empty_sketch_has_no_values(self, column):
        own = sketch(column)
        assert (own.n_rows, own.mass.sum(), own.missing) == (0, 0.0, len(column))
        assert own.exact
        assert own.n_distinct == rank_error(own) == 0.0
        assert place_knots(distribution(own), 256) is None
        assert distribution(own).missing == len(column)

    def test_merging_an_empty_sketch_changes_nothing(self):
        column = np.random.default_rng(4).standard_normal(EXACT_VALUES + 5)
        full = sketch(column)
        for own in (merge(full, sketch([])), merge(sketch([]), full)):
            assert_same(own, full)
        assert merge(sketch([np.nan]), full).missing == 1.0
        assert merge(sketch([np.nan]), sketch([np.nan] * 2)).missing == 3.0

    def test_missing_weight_is_counted(self):
        own = sketch([np.nan, 1.0, np.nan, 2.0], np.array([0.5, 1.0, 0.25, 3.0]))
        assert own.missing == 0.75
        assert own.mass.sum() == 4.0
        assert own.n_rows == 2


class TestRankError:
    @hard
    @MERGES
    def test_is_bounded_and_small(self, name, merged):
        column, weight = CASES[name]
        own = merged(chunks(column, weight, uneven_cuts(SIZE)))
        assert not own.exact
        assert 0.0 < rank_error(own) <= PRECISION * (1.0 + ROUNDING)
        assert realised_error(own, column, weight) <= rank_error(own) + ROUNDING
        assert len(own.points) <= EXACT_VALUES
        assert own.mass.sum() == pytest.approx(weight[~np.isnan(column)].sum(), rel=ROUNDING)
        assert own.missing == weight[np.isnan(column)].sum()
        assert own.points.min() == np.nanmin(column)
        assert own.points.max() == np.nanmax(column)

    # In units of 1e307, small numbers underflow.
    @pytest.mark.parametrize("name", sorted(CASES.keys() - {"all magnitudes"}))
    def test_of_quantiles(self, name):
        column, weight = CASES[name]
        own = chain(chunks(column, weight, uneven_cuts(SIZE)))
        points = distribution(own)
        levels = np.linspace(0.001, 0.999, 333)
        found = weighted_quantiles(points.values, points.mass, levels) * points.scale
        present = ~np.isnan(column)
        column, weight = column[present], weight[present]
        tolerance = rank_error(own) + ROUNDING
        assert np.all(shares(column, weight, found, "left") <= levels + tolerance)
        assert np.all(shares(column, weight, found, "right") >= levels - tolerance)

    @pytest.mark.parametrize("name", ["normal", "narrowing", "atoms", "zipf weights"])
    def test_is_the_weight_of_buckets_around_a_value(self, name):
        column, weight = CASES[name]
        with mock.patch.multiple(sketches, EXACT_VALUES=512, PRECISION=1.0 / 64.0):
            own = chain(chunks(column, weight, uneven_cuts(SIZE)))
        assert len(own.points) > 50
        assert rank_error(own) == pytest.approx(slow_error(own), rel=1e-9)

    def test_does_not_grow_with_the_number_of_chunks(self):
        rng = np.random.default_rng(5)
        column = rng.standard_normal(400 * 400)
        with mock.patch.multiple(sketches, EXACT_VALUES=128, PRECISION=1.0 / 16.0):
            own = chain([sketch(part) for part in column.reshape(400, 400)])
            assert rank_error(own) <= 1.0 / 16.0 + ROUNDING
        assert realised_error(own, column, np.ones(len(column))) <= rank_error(own)

    def test_holds_for_means_that_round_to_zero(self):
        # Means are computed in units of the largest value, in which small ones underflow.
        column = np.array([-1e300, -3e-320, -1e-320, 1e-320, 3e-320, 1e300])
        with mock.patch.multiple(sketches, EXACT_VALUES=4, PRECISION=0.35):
            own = sketch(column)
        np.testing.assert_array_equal(np.sign(own.points), [-1.0, -1.0, 0.0, 1.0])
        assert rank_error(own) == pytest.approx(2.0 / 6.0)

    def test_holds_for_the_largest_numbers(self):
        # The weighted mean of two equal values may round up.
        largest = 1.7976931348623155e308
        weight = np.array([1.0, 0.01])
        own = merge(sketch([largest, -largest]), sketch_column(np.full(2, largest), weight))
        np.testing.assert_array_equal(own.points, [-largest, largest])
        np.testing.assert_allclose(own.mass, [1.0, 2.01], rtol=1e-15)

    def test_holds_for_buckets_of_all_numbers_below_zero(self):
        column = np.array([-1e300, -1e200, -1.0, -1e-300, 1.0, 2.0])
        with mock.patch.multiple(sketches, EXACT_VALUES=5, PRECISION=0.55):
            own = sketch(column)
        assert own.points.min() == -1e300
        assert own.points.max() == 2.0
        assert np.average(own.points, weights=own.mass) == pytest.approx(column.mean(), rel=1e-12)

    @given(
        st.lists(
            st.lists(
                st.tuples(
                    st.one_of(
                        st.floats(allow_nan=False, allow_infinity=False),
                        st.integers(-20, 20).map(float),
                        st.integers(-300, 300).map(lambda power: -(2.0**power)),
                    ),
                    st.sampled_from([1.0, 1.0, 1.0, 0.01, 30.0]),
                ),
                max_size=40,
            ),
            min_size=1,
            max_size=12,
        ),
        st.sampled_from([chain, backwards, tree]),
        st.sampled_from([4, 8, 24]),
    )
    @settings(max_examples=100, deadline=None)
    def test_holds_for_any_chunks_of_a_small_sketch(self, parts, merged, limit):
        # So small that its limits are reached, and raised, all the time.
        split = [np.array(part, dtype=float).reshape(-1, 2) for part in parts]
        with mock.patch.multiple(sketches, EXACT_VALUES=limit, PRECISION=1.0 / 8.0):
            own = merged([sketch_column(*part.T) for part in split])
        column, weight = np.concatenate(split).T
        assert len(own.points) <= limit
        if len(column) == 0:
            return
        assert own.exact == (len(np.unique(column)) <= limit)
        assert rank_error(own) == pytest.approx(slow_error(own), abs=1e-12)
        assert realised_error(own, column, weight) <= rank_error(own) + 1e-12
        assert own.mass.sum() == pytest.approx(weight.sum(), rel=1e-12)
        assert own.points.min() == column.min()
        assert own.points.max() == column.max()
        ends = np.array([column.min(), column.max()]) / own.scale
        np.testing.assert_array_equal(distribution(own).values[[0, -1]], ends)

    def test_exceeds_the_bound_only_where_buckets_do_not_suffice(self):
        # Clusters that are heavy and far narrower than the distances between them, at every scale.
        rng = np.random.default_rng(6)
        column = 1.0 + rng.random(4000) * 0.5 ** rng.integers(0, 45, 4000)
        with mock.patch.multiple(sketches, EXACT_VALUES=64, PRECISION=1.0 / 60.0):
            own = sketch(column)
        assert len(own.points) <= 64
        assert rank_error(own) > 1.0 / 60.0
        assert realised_error(own, column, np.ones(4000)) <= rank_error(own)


class TestPoints:
    @hard
    def test_have_the_columns_moments(self, name):
        column, weight = CASES[name]
        own = chain(chunks(column, weight, uneven_cuts(SIZE)))
        points = distribution(own)
        present = ~np.isnan(column)
        column, weight = column[present] / own.scale, weight[present]
        mean = np.average(column, weights=weight)
        variance = np.average((column - mean) ** 2, weights=weight)
        spread = np.sqrt(variance)
        assert np.average(points.values, weights=points.mass) == pytest.approx(
            mean, abs=1e-11 * spread
        )
        # The variance within buckets is lost: little of it, unless few rows determine it.
        below = np.average((points.values - mean) ** 2, weights=points.mass) / variance
        outliers = name in ("cauchy", "lognormal", "zipf weights", "all magnitudes")
        assert (0.5 if outliers else 0.999) < below < 1.0 + 1e-10

    @hard
    def test_are_distinct_and_ascending(self, name):
        column, weight = CASES[name]
        own = chain(chunks(column, weight, uneven_cuts(SIZE)))
        points = distribution(own)
        assert np.all(np.diff(points.values) > 0.0)
        assert np.all(points.mass > 0.0)
        assert points.scale == summarise(column, weight).scale
        assert points.values[0] * points.scale == np.nanmin(column)
        assert points.values[-1] * points.scale == np.nanmax(column)

    @MERGES
    def test_a_heavy_row_has_its_own_point(self, merged):
        rng = np.random.default_rng(7)
        column = rng.standard_normal(SIZE)
        weight = np.ones(SIZE)
        heavy = np.array([5, SIZE // 2, SIZE - 9])
        weight[heavy] = [300.0, 1000.0, 1e5]
        own = merged(chunks(column, weight, uneven_cuts(SIZE)))
        for row in heavy:
            (place,) = np.flatnonzero((own.points == column[row]) & (own.level == 0))
            assert own.mass[place] == weight[row]

    def test_a_frequent_value_has_its_own_point(self):
        rng = np.random.default_rng(8)
        column = np.where(rng.random(SIZE) < 0.4, 0.0, rng.standard_normal(SIZE))
        own = chain(chunks(column, np.ones(SIZE), uneven_cuts(SIZE)))
        (place,) = np.flatnonzero((own.points == 0.0) & (own.level == 0))
        assert own.mass[place] == pytest.approx(np.sum(column == 0.0), abs=PRECISION * SIZE)

    @pytest.mark.parametrize("name", ["normal", "lognormal", "atoms", "zipf weights"])
    def test_place_knots_and_levels_like_the_column(self, name):
        column, weight = CASES[name]
        points = distribution(chain(chunks(column, weight, uneven_cuts(SIZE))))
        whole = summarise(column, weight)
        own, expected = (place_knots(each, 256) for each in (points, whole))
        assert (own.inside, own.scale) == (expected.inside, expected.scale)
        # Knots are half by rank, half by distance: neither moves far.
        np.testing.assert_allclose(own.inputs, expected.inputs, atol=0.01 * np.ptp(own.inputs))
        edges = place_levels(points, 1000, 150).edges * points.scale
        ranks = shares(column, weight, edges, "right")
        wanted = place_levels(whole, 1000, 150).edges * whole.scale
        if len(edges) == len(wanted):
            np.testing.assert_allclose(ranks, shares(column, weight, wanted, "right"), atol=0.002)
        else:
            assert name == "zipf weights"


class TestChunks:
    def test_a_weight_is_a_repetition(self):
        rng = np.random.default_rng(9)
        column = rng.standard_normal(40_000)
        times = rng.integers(1, 4, len(column))
        weighted = sketch_column(column, times.astype(float))
        repeated = sketch(np.repeat(column, times))
        np.testing.assert_allclose(weighted.points, repeated.points, rtol=1e-12)
        np.testing.assert_array_equal(weighted.mass, repeated.mass)
        assert repeated.n_rows == times.sum()

    def test_order_of_rows_does_not_matter(self):
        rng = np.random.default_rng(10)
        column, weight = rng.standard_normal(40_000), rng.gamma(1.0, size=40_000)
        order = rng.permutation(len(column))
        first, second = sketch_column(column, weight), sketch_column(column[order], weight[order])
        assert_same(first, second)

    def test_merging_is_commutative(self):
        rng = np.random.default_rng(11)
        one, two = sketch(rng.standard_normal(50_000)), sketch(rng.standard_exponential(30_000))
        assert_same(merge(one, two), merge(two, one))

    def test_arguments_are_not_modified(self):
        rng = np.random.default_rng(12)
        column, weight = rng.standard_normal(20_000), rng.gamma(1.0, size=20_000)
        copies = column.copy(), weight.copy()
        own = sketch_column(column, weight)
        before = [array.copy() for array in to_arrays(own)]
        merge(own, sketch(column + 1.0))
        np.testing.assert_array_equal(column, copies[0])
        np.testing.assert_array_equal(weight, copies[1])
        for array, copy in zip(to_arrays(own), before, strict=True):
            np.testing.assert_array_equal(array, copy)

    def test_columns_of_a_table_need_not_be_contiguous(self):
        table = np.random.default_rng(13).standard_normal((20_000, 3))
        assert_same(sketch(table[:, 1]), sketch(table[:, 1].copy()))


class TestArrays:
    @pytest.mark.parametrize("size", [0, 10, 50_000])
    def test_round_trip(self, size):
        column = np.append(np.random.default_rng(14).standard_normal(size), np.nan)
        own = sketch(column)
        arrays = to_arrays(own)
        assert len(arrays) == 5
        assert all(array.dtype == np.float64 and array.ndim == 1 for array in arrays)
        back = from_arrays(arrays)
        assert_same(back, own)
        assert back.level.dtype == own.level.dtype
        other = sketch([3.0, 4.0])
        assert_same(merge(back, other), merge(own, other))
        assert sum(array.nbytes for array in arrays) < 1e6

    def test_sketches_stay_below_a_megabyte(self):
        arrays = to_arrays(chain([sketch(CASES[name][0]) for name in CASES]))
        assert sum(array.nbytes for array in arrays) < 1e6


class TestDistinctCount:
    @pytest.mark.parametrize("n_distinct", [0, 1, 5000, EXACT_VALUES - 1])
    def test_is_exact_for_few(self, n_distinct):
        rng = np.random.default_rng(15)
        values = np.arange(float(n_distinct))
        column = np.concatenate([values, rng.choice(values, 100_000) if n_distinct else []])
        own = count_distinct(hash_values(column))
        assert estimate_distinct(own) == n_distinct

    @pytest.mark.parametrize("n_distinct", [EXACT_VALUES + 1, 60_000, 500_000])
    @pytest.mark.parametrize("copies", [1, 3])
    def test_is_close_for_many(self, n_distinct, copies):
        column = np.tile(np.arange(n_distinct) * 0.01, copies)
        own = count_distinct(hash_values(column))
        assert estimate_distinct(own) == pytest.approx(n_distinct, rel=3.0 * RELATIVE_ERROR)

    def test_has_the_stated_standard_error(self):
        rng = np.random.default_rng(16)
        with mock.patch.object(sketches, "EXACT_VALUES", 64):
            counts = [count_distinct(hash_values(rng.random(6400))) for _ in range(500)]
            off = np.array([estimate_distinct(own) / 6400.0 - 1.0 for own in counts])
            stated = (sketches.EXACT_VALUES - 2) ** -0.5
        assert np.std(off) == pytest.approx(stated, rel=0.12)
        assert abs(np.mean(off)) < 4.0 * stated / np.sqrt(len(off))

    def test_does_not_depend_on_the_chunks(self):
        hashes = hash_values(np.random.default_rng(17).integers(0, 70_000, 150_000) * 1.5)
        whole = count_distinct(hashes)
        parts = [count_distinct(part) for part in np.split(hashes, uneven_cuts(len(hashes)))]
        for merged in (reduce(merge_counts, parts), reduce(merge_counts, parts[::-1])):
            np.testing.assert_array_equal(merged, whole)

    def test_a_sketch_counts_its_values(self):
        column = np.random.default_rng(18).integers(0, 90_000, 120_000) * 0.125
        own = chain(chunks(column, np.ones(len(column)), uneven_cuts(len(column))))
        expected = count_distinct(hash_values(column))
        np.testing.assert_array_equal(own.hashes, expected)
        assert own.n_distinct == estimate_distinct(expected)


class TestHashes:
    def test_are_splitmix64_of_the_bits(self):
        # splitmix64 of the bits, in Python's integers.
        def slow(value):
            (number,) = struct.unpack("<Q", struct.pack("<d", value))
            number = (number + 0x9E3779B97F4A7C15) % 2**64
            number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
            return number ^ (number >> 31)

        column = np.append(np.random.default_rng(19).standard_normal(40_000), [0.0, 1e300, -5.0])
        expected = [slow(value) for value in column]
        np.testing.assert_array_equal(hash_values(column), np.array(expected, dtype=np.uint64))

    def test_of_equal_values_are_equal(self):
        other = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
        column = np.array([0.0, -0.0, np.nan, -np.nan, other])
        own = hash_values(column)
        assert own[0] == own[1]
        assert own[2] == own[3] == own[4] != own[0]
        for rows in hash_rows(column[:, None], np.zeros(5)):
            assert rows[0] == rows[1]
            assert rows[2] == rows[3] == rows[4] != rows[0]

    def test_different_rows_have_different_hashes(self):
        row = np.array([[1.0, 2.0, 2.0]])
        swapped = np.array([[2.0, 1.0, 2.0]])
        assert hash_rows(row, np.zeros(1))[1] != hash_rows(swapped, np.zeros(1))[1]
        for k in range(2):
            assert hash_rows(row, np.zeros(1))[k] != hash_rows(row, np.ones(1))[k]
            assert hash_rows(row, np.zeros(1))[k] != hash_rows(row[:, :2], np.zeros(1))[k]
        table = np.stack(np.meshgrid(*[np.arange(40.0)] * 3), axis=-1).reshape(-1, 3)
        assert len(np.unique(hash_rows(table, np.zeros(len(table)))[1])) == 40**3

    def test_the_first_does_not_depend_on_the_order_of_columns(self):
        table = np.random.default_rng(4).standard_normal((50, 4))
        first, second = hash_rows(table, np.arange(50.0))
        turned = hash_rows(table[:, [2, 0, 3, 1]], np.arange(50.0))
        np.testing.assert_array_equal(turned[0], first)
        assert np.all(turned[1] != second)
        assert len(np.unique(first)) == 50

    def test_of_rows_do_not_depend_on_their_neighbours(self):
        rng = np.random.default_rng(20)
        table, response = rng.standard_normal((40_000, 3)), rng.standard_normal(40_000)
        order = rng.permutation(len(table))
        hashes = hash_rows(table, response)
        shuffled, single = (
            hash_rows(table[order], response[order]),
            hash_rows(table[17:18], response[17:18]),
        )
        for k in range(2):
            np.testing.assert_array_equal(hashes[k][order], shuffled[k])
            assert hashes[k][17] == single[k][0]


class TestSignatures:
    @pytest.fixture
    def table(self):
        """A numeric column, its duplicate, and copies that differ in one row or in the order of two."""
        rng = np.random.default_rng(21)
        column = np.round(rng.standard_normal(5000), 1)
        column[rng.random(5000) < 0.1] = np.nan
        once, swapped = column.copy(), column.copy()
        once[4321] += 1.0
        first, second = np.flatnonzero(column == 0.5)[0], np.flatnonzero(column == -0.5)[0]
        swapped[[first, second]] = column[[second, first]]
        return np.column_stack([column, column, once, swapped, np.where(column == 0, -0.0, column)])

    @staticmethod
    def by_chunks(sign, columns, row_hash, seed):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(columns))
        parts = np.split(order, uneven_cuts(len(columns), seed))
        totals = [
            tuple(sign(column[part], row_hash[part]) for column in columns.T) for part in parts
        ]
        return reduce(add, totals)

    def test_of_numeric_columns_are_equal_for_duplicates_only(self, table):
        _, rows = hash_rows(table, np.arange(5000.0))
        column, copy, once, swapped, zeros = self.by_chunks(sign_numbers, table, rows, 0)
        assert column.shape == (1,)
        assert column.dtype == np.uint64
        assert column == copy == zeros
        assert len({int(each[0]) for each in (column, once, swapped)}) == 3
        again = self.by_chunks(sign_numbers, table, rows, 1)
        assert (column, once) == (again[0], again[2])

    def test_of_codes_depend_on_the_partition_only(self):
        rng = np.random.default_rng(22)
        codes = rng.integers(0, 9, 5000).astype(float)
        codes[rng.random(5000) < 0.1] = np.nan
        gone = np.isnan(codes)
        renamed = np.where(gone, np.nan, rng.permutation(12)[np.where(gone, 0, codes).astype(int)])
        named = np.where(gone, 9.0, codes)
        once = codes.copy()
        once[77] = (np.nan_to_num(codes[77]) + 1.0) % 9.0
        joined = np.where(codes == 3.0, 4.0, codes)
        table = np.column_stack([codes, renamed, named, once, joined])
        _, rows = hash_rows(table, np.zeros(5000))

        def sign(column, row_hash):
            return sign_codes(column, row_hash, 12)

        sums = self.by_chunks(sign, table, rows, 0)
        assert all(each.shape == (12,) and each.dtype == np.uint64 for each in sums)
        own, other_codes, missing_is_a_level, differs, coarser = map(sign_levels, sums)
        assert own == other_codes
        assert len({own, missing_is_a_level, differs, coarser}) == 4
        assert [sign_levels(each) for each in self.by_chunks(sign, table, rows, 1)][:2] == [own] * 2
        assert sign_levels(sign_codes(codes, rows, 9)) == own

    def test_invalid_codes_are_missing(self):
        rows = hash_values(np.arange(4.0))
        first = sign_codes(np.array([0.0, 1.0, np.nan, np.nan]), rows, 2)
        second = sign_codes(np.array([0.0, 1.0, -1.0, 2.0]), rows, 2)
        np.testing.assert_array_equal(first, second)
