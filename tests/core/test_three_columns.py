"""Joint terms of three columns, in everything that uses grids."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from lanam.core.fit.joint import joint_term
from lanam.core.inference.options import Options
from lanam.core.paper.objective import interpolation
from lanam.core.rows import reading, statistics
from lanam.core.rows.located import Rows
from lanam.core.terms.knots import Grid, Knots, locate, place_knots, summarise
from lanam.core.terms.linearise import TRIPLE_TOLERANCE, compress, initial_precision, tangent
from lanam.core.terms.purity import purify
from lanam.core.terms.term import MixedTerm, SmoothTerm
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import (
    additive_design,
    all_entries_matrix,
    assert_close,
    conditional_means,
    differences,
    entry_matrix,
    interpolation_matrix,
    multilinear,
    network_value,
)

RNG = np.random.default_rng
N = 120
OPTIONS = Options(pair_hidden_sizes=(7,), pair_init_scales=(1.0, 4.0))

#: Columns with rows between or at knots, with missing values, or of codes.
KINDS = [
    ("many", "many", "many"),
    ("many", "few", "many"),
    ("few", "few", "few"),
    ("codes", "many", "missing"),
    ("missing", "missing", "codes"),
    ("codes", "codes", "codes"),
]
MIXED = [kinds for kinds in KINDS if not set(kinds) <= {"many", "few"}]


def axis_of(kind, rng):
    """A column, and its entries."""
    if kind == "codes":
        column = rng.integers(0, 3, N).astype(float)
        column[:3] = [np.nan, 3.0, -1.0]
        return column, in_memory.place_categories(column, np.ones(N), 3)
    column = rng.integers(0, 4, N) * 0.7 if kind == "few" else rng.standard_normal(N)
    if kind == "missing":
        column[rng.uniform(size=N) < 0.2] = np.nan
    entries = place_knots(summarise(column, np.ones(N)), 4, np.array([0.2]))
    column[3:6] = [1e9, -1e9, 1e9]
    return column, entries


def grid_of(kinds, seed=0):
    """A grid, and the rows of its columns."""
    columns, axes = zip(
        *(axis_of(kind, RNG(seed + k)) for k, kind in enumerate(kinds)), strict=True
    )
    return Grid(axes), np.column_stack(columns)


def share_of(grid, columns):
    return reading.spread(grid.locate(*columns.T), np.full(len(columns), 1 / N), len(grid))


@pytest.mark.parametrize("kinds", KINDS)
class TestReading:
    def test_is_the_product_with_interpolation_weights(self, kinds):
        grid, columns = grid_of(kinds)
        assert len(grid) == np.prod(grid.shape)
        position = locate(grid, (2, 0, 1), columns[:, [1, 2, 0]])
        table = RNG(1).standard_normal((len(grid), 2))
        weights = entry_matrix(grid, *columns.T)
        assert_close(reading.read(position, table), weights @ table, "single precision")
        found = reading.read(position, table[:, 0])
        assert_close(found, weights @ table[:, 0], "single precision")
        part = reading.read(position.rows(slice(20, 50)), table)
        np.testing.assert_array_equal(part, reading.read(position, table)[20:50])

    def test_strides_are_those_of_interpolated_axes(self, kinds):
        grid, columns = grid_of(kinds)
        strides = (grid.shape[1] * grid.shape[2], grid.shape[2], 1)
        between = [kind in ("many", "missing") for kind in kinds]
        expected = [stride for stride, own in zip(strides, between, strict=True) if own]
        assert [stride for stride, _ in grid.locate(*columns.T).steps] == expected

    def test_spreading_is_its_transpose(self, kinds):
        grid, columns = grid_of(kinds)
        position = grid.locate(*columns.T)
        weights = interpolation_matrix(position, len(grid))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        value = RNG(2).standard_normal(N)
        assert_close(reading.spread(position, value, len(grid)), weights.T @ value, "rounding")

    def test_sums_over_rows_are_those_of_dense_matrices(self, kinds):
        grid, columns = grid_of(kinds)
        other, other_columns = grid_of(("few", "many"), seed=7)
        positions = (grid.locate(*columns.T), other.locate(*other_columns.T))
        sizes = (len(grid), len(other))
        rng = RNG(4)
        rows = Rows(positions, sizes, rng.uniform(size=N).round(), rng.uniform(0.2, 3.0, N))
        tables = [rng.standard_normal((size, 2)) for size in sizes]
        entries = all_entries_matrix(rows)
        both = np.block(
            [[tables[0], np.zeros((sizes[0], 2))], [np.zeros((sizes[1], 2)), tables[1]]]
        )
        design = np.column_stack([entries[:, :-1] @ both, np.ones(N)])
        assert_close(reading.Design(tables).of(rows), design, "rounding")
        likelihood, zeros = LIKELIHOODS["bernoulli"], [np.zeros(size) for size in sizes]
        gamma = rows.weight * likelihood.curvature(np.zeros(N))
        made = in_memory.table_quadratic(rows, likelihood, zeros, 0.0)
        assert_close(made.normal_equations(tables)[0], design.T * gamma @ design, "rounding")


def test_reading_is_trilinear():
    grid, columns = grid_of(("many", "few", "many"))
    table = RNG(1).standard_normal(grid.shape)
    expected = multilinear([axis.values for axis in grid.axes], table, *columns.T)
    found = reading.read(grid.locate(*columns.T), table.ravel())
    assert_close(found, expected, "single precision")


def test_batches_of_the_papers_solver_interpolate_in_the_same_way():
    grid, columns = grid_of(("many", "many", "few"))
    other, other_columns = grid_of(("many", "many", "many"), seed=5)
    positions = (grid.locate(*columns.T), other.locate(*other_columns.T))
    rows = Rows(positions, (len(grid), len(other)), np.zeros(N), np.ones(N))
    places = np.split(np.arange(len(grid) + len(other)), [len(grid)])
    values = [RNG(k).standard_normal(len(one)) for k, one in enumerate((grid, other))]
    weights = interpolation(rows, places, len(grid) + len(other) + 1)
    found = weights @ np.append(np.concatenate(values), 0.7)
    assert_close(found, statistics.predict(rows, values, 0.7), "single precision")


# pure


SHAPE = (4, 3, 5)


def full():
    return RNG(0).uniform(0.1, 1.0, SHAPE)


def with_empty_cells():
    return np.where(RNG(5).uniform(size=SHAPE) < 0.15, 0.0, full())


def with_empty_margins():
    """Entries without data, and entries of two columns without data together."""
    cells = full()
    cells[0] = cells[:, :, 4] = cells[1, 2] = cells[2, :, 1] = cells[:, 0, 3] = 0.0
    return cells


@pytest.fixture(params=[full, with_empty_cells, with_empty_margins])
def share(request):
    cells = request.param()
    return (cells / cells.sum()).ravel()


class TestPurity:
    def test_the_pure_part_has_no_mean_along_any_axis(self, share):
        table = 10.0 + RNG(1).standard_normal((len(share), 3))
        found = purify(table, share, SHAPE)
        np.testing.assert_allclose(conditional_means(found, share, SHAPE), 0.0, atol=1e-11)
        assert (share @ found**2 > 0.01).all()

    def test_functions_of_two_columns_are_removed(self, share):
        table = 10.0 + RNG(1).standard_normal((len(share), 3))
        taken = table - purify(table, share, SHAPE)
        design = additive_design(SHAPE)
        fitted = design @ np.linalg.lstsq(design, taken, rcond=1e-13)[0]
        assert_close(taken, fitted, "rounding")

    def test_functions_of_fewer_columns_have_no_pure_part(self, share):
        design = additive_design(SHAPE)
        sums = design @ RNG(2).standard_normal((design.shape[1], 4))
        np.testing.assert_allclose(purify(sums, share, SHAPE), 0.0, atol=1e-11)

    def test_without_data_the_marginal_distribution_is_used(self, share):
        found = purify(RNG(1).standard_normal((len(share), 1)), share, SHAPE).reshape(SHAPE)
        cells = share.reshape(SHAPE)
        for axis in range(3):
            others = tuple(k for k in range(3) if k != axis)
            own = cells.sum(axis=others)
            empty = cells.sum(axis=axis) == 0.0
            means = np.tensordot(np.moveaxis(found, axis, -1), own, axes=1)
            np.testing.assert_allclose(means[empty], 0.0, atol=1e-11)

    def test_the_order_of_the_columns_does_not_matter(self, share):
        table = RNG(1).standard_normal(len(share))
        expected = purify(table[:, None], share, SHAPE).reshape(SHAPE)
        for order in itertools.permutations(range(3)):
            turned = [array.reshape(SHAPE).transpose(order).ravel() for array in (table, share)]
            found = purify(turned[0][:, None], turned[1], tuple(SHAPE[k] for k in order))
            back = found.reshape([SHAPE[k] for k in order]).transpose(np.argsort(order))
            assert_close(back, expected, "rounding")


# terms


class TestTerms:
    def test_the_network_has_three_inputs(self):
        grid, _ = grid_of(("many", "few", "many"))
        term = joint_term((0, 1, 2), grid, OPTIONS)
        assert isinstance(term, SmoothTerm)
        assert (term.kind, term.joint, term.architecture.n_inputs) == ("interaction", True, 3)
        expansion = term.initial(RNG(0))
        points = list(itertools.product(*(axis.inputs for axis in grid.axes)))[::9]

        def values(theta):
            return [network_value((7,), "gelu", theta, point) for point in points]

        found = term.jacobian(expansion)[::9]
        assert_close(found, differences(values, expansion), "finite differences")

    @pytest.mark.parametrize("kinds", KINDS)
    def test_tangent_features_are_pure(self, kinds):
        grid, columns = grid_of(kinds)
        term = joint_term((0, 1, 2), grid, OPTIONS)
        share = share_of(grid, columns)
        jacobian = tangent(term, term.initial(RNG(0)), share)
        assert jacobian.shape == (len(grid), len(term.group_index))
        size = np.abs(jacobian).max()
        means = conditional_means(jacobian, share, grid.shape)
        np.testing.assert_allclose(means / size, 0.0, atol=1e-10)

    @pytest.mark.parametrize("kinds", KINDS)
    def test_compression_keeps_the_prior(self, kinds):
        grid, columns = grid_of(kinds)
        term = joint_term((0, 1, 2), grid, OPTIONS)
        share = share_of(grid, columns)
        jacobian = tangent(term, term.initial(RNG(0)), share)
        precision = initial_precision(term, jacobian, share, 0.1)
        assert len(precision) == term.group_index.max() + 1
        phi = jacobian / np.sqrt(precision[term.group_index])
        made = compress(term, jacobian, precision, N * share)
        np.testing.assert_allclose(
            made.basis.T @ made.basis, np.eye(made.basis.shape[1]), atol=1e-9
        )
        left = np.sqrt(N * share)[:, None] * (phi - made.table @ made.basis.T)
        # Each dropped direction is below the tolerance.
        assert np.linalg.norm(left, 2) ** 2 < 1.1 * TRIPLE_TOLERANCE

    @pytest.mark.parametrize("kinds", MIXED)
    def test_levels_have_functions_of_the_other_columns(self, kinds):
        grid, _ = grid_of(kinds)
        term = joint_term((0, 1, 2), grid, OPTIONS)
        assert isinstance(term, MixedTerm)
        jacobian = term.jacobian(term.initial(RNG(0))).reshape(*grid.shape, -1)
        smooth = [k for k, axis in enumerate(grid.axes) if isinstance(axis, Knots)]
        start = 0
        for n_own in range(len(smooth), -1, -1):
            for own in itertools.combinations(smooth, n_own):
                others = [k for k in range(3) if k not in own]
                levels = [np.arange(len(grid.axes[k]))[-grid.axes[k].n_single :] for k in others]
                if any(grid.axes[k].n_single == 0 for k in others):
                    continue
                for level in itertools.product(*levels):
                    # One block per combination: zero at all other entries of the other columns,
                    # and where one of its own columns is missing.
                    outside = np.ones(grid.shape, dtype=bool)
                    here = [slice(None)] * 3
                    for k in own:
                        here[k] = slice(len(grid.axes[k].points))
                    for k, entry in zip(others, level, strict=True):
                        here[k] = entry
                    outside[tuple(here)] = False
                    width = _width(grid, own)
                    block = jacobian[..., start : start + width]
                    assert not block[outside].any()
                    assert block[~outside].any(axis=0).all()
                    start += width
        assert start == jacobian.shape[-1]


def _width(grid, own):
    """The number of features of a network at each combination of the other columns' levels."""
    bands = np.bincount(replace(OPTIONS.architecture(2), n_inputs=max(len(own), 1)).band_index)
    if not own:
        return 1
    if len(own) == 3:
        return int(bands.sum())
    n_points = np.prod([len(grid.axes[k].points) for k in own])
    return int(np.minimum(bands, min(6 ** len(own), n_points)).sum())
