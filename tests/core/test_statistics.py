"""Sums over rows against loops over rows, in every form and with every chunk size."""

from dataclasses import replace

import numpy as np
import pytest

from lanam.core.rows import cross_tables, equations, quadratics, reading, statistics
from lanam.core.rows.statistics import Around, Rows
from lanam.core.terms.knots import (
    Grid,
    Position,
    place_knots,
    place_levels,
    summarise,
)
from lanam.core.terms.term import LevelTerm
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import (
    all_entries_matrix,
    assert_close,
    entry_matrix,
    interpolation_matrix,
    multilinear,
)

SIZES = (6, 4, 5)


def example(likelihood="gaussian", n=50, seed=0):
    """Interpolated, exact and interpolated positions; some rows at the last entry."""
    rng = np.random.default_rng(seed)

    def between(size):
        index = rng.integers(0, size - 1, n).astype(np.int16)
        fraction = rng.uniform(size=n).astype(np.float32)
        fraction[:3] = [0.0, 1.0, 0.5]
        index[1] = size - 2
        return Position(index, ((1, fraction),))

    on_one = Position(rng.integers(0, SIZES[1], n).astype(np.int16))
    y = rng.standard_normal(n)
    if likelihood == "bernoulli":
        y = (y > 0.0).astype(float)
    positions = (between(SIZES[0]), on_one, between(SIZES[2]))
    rows = Rows(positions, SIZES, y, rng.uniform(0.2, 3.0, n))
    values = [rng.standard_normal(size) for size in SIZES]
    tables = [
        rng.standard_normal((size, width)) for size, width in zip(SIZES, (3, 2, 1), strict=True)
    ]
    return rows, values, tables


@pytest.fixture(params=["gaussian", "bernoulli"])
def name(request):
    return request.param


@pytest.fixture(params=[1, 7, 50])
def _chunks(request, monkeypatch):
    monkeypatch.setattr(statistics, "CHUNK_ROWS", request.param)
    monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", request.param)
    monkeypatch.setattr(cross_tables, "_TABLE_CHUNK_ROWS", request.param)


class TestReading:
    @pytest.mark.parametrize("term", range(3))
    def test_read_is_a_loop_over_rows(self, term):
        rows, values, tables = example()
        weights = interpolation_matrix(rows.positions[term], SIZES[term])
        assert_close(
            reading.read(rows.positions[term], values[term]), weights @ values[term], "rounding"
        )
        assert_close(
            reading.read(rows.positions[term], tables[term]), weights @ tables[term], "rounding"
        )

    @pytest.mark.parametrize("term", range(3))
    def test_reading_does_not_modify_the_table(self, term):
        rows, values, _ = example()
        before = values[term].copy()
        reading.read(rows.positions[term], values[term])
        np.testing.assert_array_equal(values[term], before)

    @pytest.mark.parametrize("term", range(3))
    def test_spread_is_its_transpose(self, term):
        rows, _, _ = example()
        weights = interpolation_matrix(rows.positions[term], SIZES[term])
        found = reading.spread(rows.positions[term], rows.y, SIZES[term])
        assert_close(found, weights.T @ rows.y, "rounding")

    def test_predict_sums_the_terms(self):
        rows, values, _ = example()
        expected = all_entries_matrix(rows) @ np.concatenate([*values, [0.7]])
        assert_close(statistics.predict(rows, values, 0.7), expected, "rounding")
        part = statistics.predict(rows.part(slice(10, 20)), values, 0.7)
        assert_close(part, expected[10:20], "rounding")

    def test_design_matrix(self):
        rows, _, tables = example()
        parts = [
            interpolation_matrix(p, n) @ table
            for p, n, table in zip(rows.positions, SIZES, tables, strict=True)
        ]
        expected = np.hstack([*parts, np.ones((len(rows), 1))])
        assert_close(reading.Design(tables).of(rows), expected, "rounding")


@pytest.mark.usefixtures("_chunks")
class TestSums:
    def test_entry_sums(self):
        rows, _, _ = example()
        found = statistics.entry_sums(rows, rows.weight)
        expected = all_entries_matrix(rows)[:, :-1].T @ rows.weight
        assert_close(np.concatenate(found), expected, "rounding")
        assert [len(part) for part in found] == list(SIZES)

    def test_log_likelihood(self, name):
        rows, values, _ = example(name)
        f = all_entries_matrix(rows) @ np.concatenate([*values, [0.3]])
        expected = sum(
            w * LIKELIHOODS[name].log_prob(y, f)
            for w, y, f in zip(rows.weight, rows.y, f, strict=True)
        )
        found = statistics.log_likelihood(rows, LIKELIHOODS[name], values, 0.3)
        assert_close(found, expected, "rounding")

    def test_derivatives(self, name):
        rows, values, _ = example(name)
        slope, curvature = Around(LIKELIHOODS[name], values, 0.3).derivatives(rows)
        f = all_entries_matrix(rows) @ np.concatenate([*values, [0.3]])
        assert_close(slope, rows.weight * LIKELIHOODS[name].gradient(rows.y, f), "rounding")
        assert_close(curvature, rows.weight * LIKELIHOODS[name].curvature(f), "rounding")

    @pytest.mark.parametrize("form", [in_memory.row_quadratic, in_memory.table_quadratic])
    def test_both_forms_are_the_dense_sums(self, name, form):
        rows, values, tables = example(name)
        likelihood = LIKELIHOODS[name]
        entries = all_entries_matrix(rows)
        f = entries @ np.concatenate([*values, [0.3]])
        gamma = rows.weight * likelihood.curvature(f)
        pseudo = rows.weight * likelihood.gradient(rows.y, f) + gamma * f
        dense = np.zeros((sum(SIZES) + 1, 7))
        corner = [0, 0]
        for table in [*tables, np.ones((1, 1))]:
            dense[
                corner[0] : corner[0] + table.shape[0], corner[1] : corner[1] + table.shape[1]
            ] = table
            corner = [corner[0] + table.shape[0], corner[1] + table.shape[1]]
        design = entries @ dense

        quadratic = form(rows, likelihood, values, 0.3)
        gram, target = quadratic.normal_equations(tables)
        assert_close(gram, design.T @ np.diag(gamma) @ design, "rounding")
        assert_close(target, design.T @ pseudo, "rounding")
        found = np.concatenate(quadratic.entry_curvature())
        assert_close(found, entries[:, :-1].T @ gamma, "rounding")
        # It has the log-likelihood's value, gradient and curvature where it is expanded.
        value = quadratic.constant + pseudo @ f - 0.5 * f @ (gamma * f)
        assert_close(value, rows.weight @ likelihood.log_prob(rows.y, f), "rounding")
        assert_close(quadratic.total_curvature, gamma.sum(), "rounding")
        if not likelihood.quadratic:
            assert_close(quadratic.value, value, "rounding")
        assert quadratic.is_around(values)
        assert not quadratic.is_around([*values[:2], values[2].copy()])
        assert not quadratic.is_around(values[:2])

    def test_a_quadratic_at_other_values(self, name):
        rows, values, _ = example(name)
        likelihood, rng = LIKELIHOODS[name], np.random.default_rng(5)
        made = in_memory.table_quadratic(rows, likelihood, values, 0.3)
        slope, gamma = Around(likelihood, values, 0.3).derivatives(rows)
        here = statistics.predict(rows, values, 0.3)
        other = [rng.standard_normal(size) for size in SIZES]
        step = statistics.predict(rows, other, -0.7) - here
        value = statistics.log_likelihood(rows, likelihood, values, 0.3)
        expected = value + slope @ step - 0.5 * gamma @ step**2
        assert_close(made.of(other, -0.7), expected, "rounding")
        moved = made.moved_to(other)
        assert moved.is_around(other)
        assert not moved.is_around(values)
        assert moved.of(other, -0.7) == made.of(other, -0.7)

    @pytest.mark.parametrize("form", [in_memory.row_quadratic, in_memory.table_quadratic])
    @pytest.mark.parametrize("kept", [[0, 2], [1], []])
    def test_subsets_of_terms(self, name, form, kept):
        rows, values, tables = example(name)
        whole = form(rows, LIKELIHOODS[name], values, 0.3)
        part = whole.keep_terms(kept)
        own = [tables[k] for k in kept]
        columns = np.concatenate([np.arange(6).reshape(-1)[s] for s in _columns(kept)] + [[6]])
        gram, target = whole.normal_equations(tables)
        small_gram, small_target = part.normal_equations(own)
        assert_close(small_gram, gram[np.ix_(columns, columns)], "rounding")
        assert_close(small_target, target[columns], "rounding")
        assert part.constant == whole.constant
        for k, found in zip(kept, part.entry_curvature(), strict=True):
            assert_close(found, whole.entry_curvature()[k], "rounding")


def _columns(kept):
    return [[slice(0, 3), slice(3, 5), slice(5, 6)][k] for k in kept]


def test_the_gaussian_quadratic_is_exact_around_any_point():
    rows, values, tables = example()
    at_zero = in_memory.row_quadratic(rows, LIKELIHOODS["gaussian"], [0.0 * v for v in values], 0.0)
    elsewhere = in_memory.row_quadratic(rows, LIKELIHOODS["gaussian"], values, 0.3)
    for found, expected in zip(
        elsewhere.normal_equations(tables), at_zero.normal_equations(tables), strict=True
    ):
        assert_close(found, expected, "rounding")
    assert elsewhere.constant == pytest.approx(at_zero.constant)


@pytest.mark.parametrize(
    ("n", "unread", "largest", "form"),
    [
        # 15 entries and the intercept, more than twice as many rows
        (50, 0, 8 * 16**2, cross_tables.TableQuadratic),
        (50, 0, 8 * 16**2 - 1, quadratics.RowQuadratic),
        (33, 0, 600e6, cross_tables.TableQuadratic),
        (32, 0, 600e6, quadratics.RowQuadratic),
        # Entries without rows do not count.
        (50, 100, 600e6, cross_tables.TableQuadratic),
        (50, 100, 8 * 16**2, cross_tables.TableQuadratic),
        (50, 100, 8 * 16**2 - 1, quadratics.RowQuadratic),
        (50, 2, 600e6, cross_tables.TableQuadratic),
    ],
)
def test_the_form_is_chosen_by_the_number_of_rows_and_the_memory(n, unread, largest, form):
    likelihood = LIKELIHOODS["gaussian"]
    rows, values, tables = example(n=n)
    rows = replace(rows, sizes=(*SIZES[:2], SIZES[2] + unread))
    values[2] = np.concatenate([values[2], np.zeros(unread)])
    tables[2] = np.concatenate([tables[2], np.ones((unread, 1))])
    weights, null, made = quadratics.weights_and_quadratic(rows, likelihood, largest)
    assert null == pytest.approx(statistics.null_log_likelihood(rows, likelihood))
    assert isinstance(made, form)
    for found, expected in zip(weights, statistics.entry_sums(rows, rows.weight), strict=True):
        assert_close(found, expected, "rounding")
    # The Gaussian quadratic is the same around any point.
    expected = in_memory.row_quadratic(rows, likelihood, values, 0.3)
    for one, other in zip(
        made.normal_equations(tables), expected.normal_equations(tables), strict=True
    ):
        assert_close(one, other, "rounding")
    for one, other in zip(made.entry_curvature(), expected.entry_curvature(), strict=True):
        assert_close(one, other, "rounding")
    assert made.constant == pytest.approx(expected.constant)
    if form is cross_tables.TableQuadratic:
        assert [len(seen) for seen in made.seen] == list(SIZES)


def test_other_likelihoods_are_expanded_on_demand():
    rows, _, _ = example("bernoulli")
    weights, null, made = quadratics.weights_and_quadratic(rows, LIKELIHOODS["bernoulli"])
    share = np.average(rows.y, weights=rows.weight)
    expected = rows.weight @ np.where(rows.y > 0.0, np.log(share), np.log1p(-share))
    assert null == pytest.approx(expected)
    assert made is None
    for found, expected in zip(weights, statistics.entry_sums(rows, rows.weight), strict=True):
        assert_close(found, expected, "rounding")


def test_adding_and_removing_terms():
    rows, values, _ = example()
    small = rows.keep_terms([2, 0])
    expected = statistics.predict(rows, [values[0], 0.0 * values[1], values[2]], 0.0)
    assert_close(statistics.predict(small, [values[2], values[0]], 0.0), expected, "rounding")
    # A column whose levels are at the second term's positions.
    column = np.linspace(-1.0, 2.0, SIZES[1])[rows.positions[1].index]
    levels = place_levels(summarise(column, np.ones(len(rows))), SIZES[1], SIZES[1])
    assert len(levels) == SIZES[1] + 1  # one more for all other values
    small = replace(small, columns=np.column_stack([np.zeros(len(rows)), column]))
    wide = small.with_terms([LevelTerm((1,), levels)])
    assert wide.sizes == (5, 6, SIZES[1] + 1)
    found = statistics.predict(wide, [values[2], values[0], np.append(values[1], 9.0)], 0.0)
    assert_close(found, statistics.predict(rows, values, 0.0), "rounding")


# grids


def grid_example(values=("many", "many"), n=60, seed=0):
    """A grid with margins, and rows at knots, between them, or beyond them in either column."""
    rng = np.random.default_rng(seed)
    kinds = {"many": lambda: rng.standard_normal(n), "few": lambda: rng.integers(0, 4, n) * 0.7}
    columns = np.column_stack([kinds[kind]() for kind in values])
    axes = [place_knots(summarise(column, np.ones(n)), 7) for column in columns.T]
    return Grid(tuple(axes)), columns


#: Which columns have knots at all of their values.
KINDS = [("many", "many"), ("few", "many"), ("many", "few"), ("few", "few")]


@pytest.mark.parametrize("kinds", KINDS)
class TestGrids:
    def test_reading_is_bilinear(self, kinds):
        grid, columns = grid_example(kinds)
        table = np.random.default_rng(1).standard_normal(grid.shape)
        expected = multilinear([axis.values for axis in grid.axes], table, *columns.T)
        position = grid.locate(*columns.T)
        strides = [stride for stride, _ in position.steps]
        assert (grid.shape[1] in strides) == (kinds[0] == "many")
        assert (1 in strides) == (kinds[1] == "many")
        assert_close(reading.read(position, table.ravel()), expected, "single precision")
        # several tables at once
        both = np.column_stack([table.ravel(), -2.0 * table.ravel()])
        found = reading.read(position, both)
        assert_close(
            found, np.column_stack([expected, np.multiply(-2.0, expected)]), "single precision"
        )

    def test_extrapolation_is_constant(self, kinds):
        grid, columns = grid_example(kinds)
        far = np.array([[-1e9, 0.0], [1e9, 0.0], [0.0, -1e9], [0.0, 1e9], [1e9, 1e9], [-1e9, 1e9]])
        rows = np.vstack([far, 3.0 * columns])
        table = np.random.default_rng(1).standard_normal(grid.shape)
        expected = multilinear([axis.values for axis in grid.axes], table, *rows.T)
        found = reading.read(grid.locate(*rows.T), table.ravel())
        assert_close(found, expected, "single precision")
        assert found[4] == pytest.approx(table[-1, -1], rel=1e-6)
        assert found[5] == pytest.approx(table[0, -1], rel=1e-6)

    def test_reading_does_not_modify_the_table(self, kinds):
        grid, columns = grid_example(kinds)
        table = np.random.default_rng(1).standard_normal(len(grid))
        before = table.copy()
        reading.read(grid.locate(*columns.T), table)
        np.testing.assert_array_equal(table, before)

    def test_spread_is_its_transpose(self, kinds):
        grid, columns = grid_example(kinds)
        # Including rows at the last knots of the grid.
        columns = np.vstack([columns, [[1e9, 1e9], [1e9, 0.1], [0.1, 1e9], [-1e9, -1e9]]])
        position = grid.locate(*columns.T)
        weights = interpolation_matrix(position, len(grid))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        value = np.random.default_rng(2).standard_normal(len(columns))
        before = value.copy()
        found = reading.spread(position, value, len(grid))
        assert_close(found, weights.T @ value, "rounding")
        np.testing.assert_array_equal(value, before)
        table = np.random.default_rng(3).standard_normal((len(grid), 2))
        assert_close(reading.read(position, table), weights @ table, "rounding")

    @pytest.mark.parametrize("chunk", [7, 60])
    def test_cross_tables_with_terms_of_every_kind(self, kinds, chunk, monkeypatch):
        monkeypatch.setattr(statistics, "CHUNK_ROWS", chunk)
        monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", chunk)
        grid, columns = grid_example(kinds)
        other, other_columns = grid_example(seed=5)
        column = other_columns[:, 0]
        knots = place_knots(summarise(column, np.ones(60)), 5)
        levels = place_levels(summarise(columns[:, 0].round(), np.ones(60)), 100, 5)
        positions = (
            knots.locate(column),
            levels.locate(columns[:, 0].round()),
            grid.locate(*columns.T),
            other.locate(*other_columns.T),
        )
        rng = np.random.default_rng(4)
        sizes = tuple(len(entries) for entries in (knots, levels, grid, other))
        weight = rng.uniform(0.2, 3.0, 60)
        rows = Rows(positions, sizes, (rng.uniform(size=60) < 0.5).astype(float), weight)
        values = [rng.standard_normal(size) for size in sizes]
        likelihood = LIKELIHOODS["bernoulli"]
        entries = all_entries_matrix(rows)
        f = entries @ np.concatenate([*values, [0.3]])
        gamma = weight * likelihood.curvature(f)
        pseudo = weight * likelihood.gradient(rows.y, f) + gamma * f
        dense = entries.T @ np.diag(gamma) @ entries

        made = in_memory.table_quadratic(rows, likelihood, values, 0.3)
        # Entries without rows are dropped, and there are some.
        read = np.flatnonzero(entries.any(axis=0))
        assert len(read) < entries.shape[1]
        starts = np.cumsum([0, *sizes])
        kept = [start + own for start, own in zip(starts, made.seen, strict=False)]
        np.testing.assert_array_equal(np.concatenate([*kept, [starts[-1]]]), read)
        ends = np.cumsum([0, *(len(own) for own in made.seen), 1])
        small = dense[np.ix_(read, read)]
        for j in range(5):
            for k in range(j, 5):
                block = slice(ends[j], ends[j + 1]), slice(ends[k], ends[k + 1])
                np.testing.assert_allclose(made.cross[block], small[block], atol=1e-12)
        assert_close(made.pseudo, (entries.T @ pseudo)[read], "rounding")
        assert_close(np.concatenate(made.entry_curvature()), dense[:-1, -1], "rounding")
        tables = [rng.standard_normal((size, 2)) for size in sizes]
        by_rows = in_memory.row_quadratic(rows, likelihood, values, 0.3).normal_equations(tables)
        for found, expected in zip(made.normal_equations(tables), by_rows, strict=True):
            assert_close(found, expected, "rounding")


# missing values and categories


def axis_example(kind, rng, n=80):
    """A column and its entries: knots between or at its values, with or without missing ones, or codes."""
    if kind == "codes":
        column = rng.choice(9, n, p=np.arange(1, 10) / 45.0).astype(float)
        # Rare categories, missing values and invalid codes have the last entries.
        column[:6] = [np.nan, np.nan, -1.0, 9.0, 0.0, 8.0]
        return column, in_memory.place_categories(column, (column < 9.0) * 1.0, 9, 6)
    column = rng.standard_normal(n) if kind.startswith("many") else rng.integers(0, 4, n) * 0.7
    if kind.endswith("missing"):
        column[rng.uniform(size=n) < 0.2] = np.nan
        column[:2] = np.nan
    entries = place_knots(summarise(column, np.ones(n)), 6, np.array([0.2]))
    # Rows at the outermost knots, next to the entry of missing values.
    column[4:7] = [1e9, -1e9, 1e9]
    return column, entries


AXES = ["many", "few", "many, missing", "few, missing", "codes"]


def level_example(rng, n=80):
    column = rng.integers(0, 5, n) * 0.7
    column[rng.uniform(size=n) < 0.2] = np.nan
    entries = place_levels(summarise(column, np.ones(n)), 100, 5)
    column[7:9] = [99.0, np.nan]
    return column, entries


class TestEveryKindOfEntry:
    @pytest.mark.parametrize("first", AXES)
    @pytest.mark.parametrize("second", [None, *AXES])
    def test_reading_and_spreading(self, first, second):
        rng = np.random.default_rng(0)
        columns, axes = zip(
            *(axis_example(kind, rng) for kind in (first, second) if kind), strict=True
        )
        entries = axes[0] if second is None else Grid(tuple(axes))
        position = entries.locate(*columns)
        last = second or first
        strides = [stride for stride, _ in position.steps]
        assert (1 in strides) == last.startswith("many")
        if second is not None:
            assert (len(axes[1]) in strides) == first.startswith("many")
        weights = entry_matrix(entries, *columns)
        assert weights.shape == (80, len(entries))
        table = rng.standard_normal((len(entries), 2))
        assert_close(reading.read(position, table), weights @ table, "single precision")
        found = reading.read(position, table[:, 0])
        assert_close(found, weights @ table[:, 0], "single precision")
        value = rng.standard_normal(80)
        found = reading.spread(position, value, len(entries))
        assert_close(found, weights.T @ value, "single precision")

    def test_missing_values_are_not_interpolated(self):
        rng = np.random.default_rng(1)
        column, knots = axis_example("many, missing", rng)
        gone = np.isnan(column)
        at_knots = np.append(rng.standard_normal(len(knots) - 1), 0.0)
        read = reading.read(knots.locate(column), at_knots)
        assert (read[gone] == 0.0).all()
        only_missing = np.append(np.zeros(len(knots) - 1), 1.0)
        np.testing.assert_array_equal(reading.read(knots.locate(column), only_missing), gone)

    @pytest.mark.parametrize("chunk", [9, 80])
    @pytest.mark.parametrize("form", [in_memory.row_quadratic, in_memory.table_quadratic])
    def test_normal_equations(self, form, chunk, monkeypatch):
        monkeypatch.setattr(statistics, "CHUNK_ROWS", chunk)
        monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", chunk)
        rng = np.random.default_rng(2)
        known = [axis_example(kind, rng) for kind in AXES]
        made = [((column,), axis) for column, axis in [*known, level_example(rng)]]
        for i, j in [(0, 2), (2, 3), (2, 4), (4, 2), (4, 4), (3, 4), (1, 3)]:
            made.append(((known[i][0], known[j][0]), Grid((known[i][1], known[j][1]))))
        weights = [entry_matrix(entries, *columns) for columns, entries in made]
        sizes = tuple(len(entries) for _, entries in made)
        y, weight = rng.standard_normal(80), rng.uniform(0.2, 3.0, 80)
        positions = tuple(entries.locate(*columns) for columns, entries in made)
        rows = Rows(positions, sizes, (y > 0.0).astype(float), weight)
        values = [rng.standard_normal(size) for size in sizes]
        likelihood = LIKELIHOODS["bernoulli"]
        f = np.hstack(weights) @ np.concatenate(values) + 0.3
        gamma = weight * likelihood.curvature(f)
        pseudo = weight * likelihood.gradient(rows.y, f) + gamma * f
        tables = [rng.standard_normal((size, 2)) for size in sizes]
        design = np.hstack(
            [*(w @ t for w, t in zip(weights, tables, strict=True)), np.ones((80, 1))]
        )

        quadratic = form(rows, likelihood, values, 0.3)
        gram, target = quadratic.normal_equations(tables)
        assert_close(gram, design.T @ (gamma[:, None] * design), "single precision")
        assert_close(target, design.T @ pseudo, "single precision")
        for found, own in zip(quadratic.entry_curvature(), weights, strict=True):
            assert_close(found, own.T @ gamma, "single precision")
