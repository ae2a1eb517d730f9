"""Totals over rows are the same in memory, in chunks, and in threads."""

import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from lanam.core.fit import assembly, first_stage, interactions
from lanam.core.fit.prepare import rows_of, summarise
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.selection import null_evidence, null_fit
from lanam.core.noise import missingness
from lanam.core.paper import kron
from lanam.core.rows import cross_tables, quadratics, reading, statistics
from lanam.core.rows import located as core_rows
from lanam.core.rows.located import Rows, StreamedRows
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import ArrayTables, EncodedRows
from lanam.core.terms.knots import Grid, choose_categories, locate, place_knots, place_levels
from lanam.core.terms.networks import Architecture
from lanam.core.terms.term import LevelTerm, SmoothTerm
from tests.core.in_chunks import CUTS, Chunks, cut
from tests.core.in_memory import entry_weights, row_quadratic, table_quadratic
from tests.likelihoods import find_likelihood
from tests.oracles import assert_close

N_ROWS = 401
N_LEVELS = (-1, -1, 5, -1)
LIKELIHOODS = ["gaussian", "bernoulli", "poisson", "softmax"]


@pytest.fixture(params=LIKELIHOODS)
def name(request):
    return request.param


def made_up(name, seed=0):
    """Continuous, discrete and categorical columns with missing values; a response, and weights."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack(
        [
            rng.standard_normal(N_ROWS),
            rng.integers(0, 7, N_ROWS) * 0.3,
            rng.integers(0, 5, N_ROWS),
            rng.exponential(size=N_ROWS),
        ]
    )
    columns[rng.uniform(size=columns.shape) < 0.1] = np.nan
    columns[:, 1] = np.nan_to_num(columns[:, 1])
    response = {
        "gaussian": lambda: rng.normal(3.0, 2.0, N_ROWS),
        "bernoulli": lambda: rng.integers(0, 2, N_ROWS).astype(float),
        "poisson": lambda: rng.poisson(1.5, N_ROWS).astype(float),
        "softmax": lambda: rng.integers(0, 3, N_ROWS).astype(float),
    }[name]()
    return EncodedRows(columns, response, rng.uniform(0.3, 3.0, N_ROWS))


class Example:
    """The same rows in memory and in chunks, and tables to interpolate."""

    def __init__(self, name, how="odd ones"):
        self.likelihood = find_likelihood(name, 3)
        self.table = made_up(name)

        tables = ArrayTables(self.table)
        self.summary, self.units = summarise(tables, self.likelihood, Options(), N_LEVELS)
        self.chunks = cut(how, self.table.columns, self.table.response, self.table.weight)
        known = [own.distribution for own in self.summary.columns]
        few, many = place_knots(known[1], 20), place_knots(known[0], 9)
        codes = self.summary.columns[2]
        self.codes = choose_categories(codes.mass)
        network, joint = (Architecture(n, (3,), "gelu", (1.0,)) for n in (1, 2))
        self.terms = (
            SmoothTerm((0,), many, network, "layer"),
            SmoothTerm((1,), few, network, "layer"),
            LevelTerm((2,), self.codes),
            SmoothTerm((0, 1), Grid((many, few)), joint, "layer"),
        )
        self.in_memory = Rows.of(self.table, self.terms, self.units)
        self.streamed = rows_of(self.chunks, self.terms, self.units, self.summary)
        assert isinstance(self.streamed, StreamedRows)
        rng = np.random.default_rng(1)
        n_outputs = self.likelihood.n_outputs
        more = () if n_outputs == 1 else (n_outputs,)
        self.values = tuple(
            0.3 * rng.standard_normal((size, *more)) for size in self.in_memory.sizes
        )
        self.intercept = 0.2 if n_outputs == 1 else 0.2 * rng.standard_normal(n_outputs)
        self.tables = tuple(rng.standard_normal((size, 2)) for size in self.in_memory.sizes)
        self.point = (self.likelihood, self.values, self.intercept)

    def both(self, missing_noise=None):
        """Rows in memory, and in chunks."""
        rows = (self.in_memory, self.streamed)
        if missing_noise is None:
            return rows
        return tuple(one.with_missing_noise(missing_noise) for one in rows)


@pytest.fixture(params=list(CUTS))
def example(request, name):
    return Example(name, request.param)


def assert_same(found, expected):
    """Nested arrays and numbers are equal up to the order of summation."""
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        # Sums that cancel leave rounding errors.
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape
        size = max(np.abs(expected).max(initial=0.0), 1.0)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * size)


def number_of_parts(parts):
    """A job: the number of parts, and of their rows."""
    sizes = [len(part) for part in parts]
    return np.array(len(sizes)), np.array(sizes)


def in_order(parts):
    """A job: the responses, concatenated."""
    return (np.concatenate([part.y for part in parts]),)


def joined(first, second):
    return tuple(map(np.concatenate, zip(first, second, strict=True)))


class TestChunks:
    def test_attributes(self, example):
        in_memory, streamed = example.both()
        assert len(streamed) == len(in_memory) == N_ROWS
        assert streamed.n_columns == in_memory.n_columns == 4
        assert streamed.sizes == in_memory.sizes
        assert streamed.missing_columns == in_memory.missing_columns == (0, 2, 3)
        assert streamed.count == pytest.approx(in_memory.count, rel=1e-14)
        assert streamed.missing_noise is in_memory.missing_noise is None
        assert streamed.log_precision == in_memory.log_precision == 0.0

    def test_every_row_occurs_once_and_in_order(self, example):
        for rows in example.both():
            (found,) = rows.total(in_order, joined)
            np.testing.assert_array_equal(found, example.in_memory.y)

    def test_parts_are_located_as_the_whole(self, example):
        (found,) = example.streamed.total(_positions, joined)
        (expected,) = _positions([example.in_memory])
        np.testing.assert_array_equal(found, expected)

    def test_weights_and_likelihoods(self, example):
        found, expected = (
            (
                entry_weights(rows),
                statistics.log_likelihood(rows, *example.point),
                statistics.fit_intercept_only(rows, example.likelihood),
                null_fit(rows, example.likelihood),
                null_evidence(rows, example.likelihood),
            )
            for rows in example.both()[::-1]
        )
        assert_same(found, expected)

    def test_quadratics(self, example):
        found, expected = (
            _results(row_quadratic(rows, *example.point), example) for rows in example.both()[::-1]
        )
        assert_same(found, expected)

    @pytest.mark.parametrize("kept", [(3, 0), (2,), ()])
    def test_subsets_of_terms(self, example, kept):
        tables, values = ([whole[k] for k in kept] for whole in (example.tables, example.values))
        for change in (lambda own, rows: own.keep_terms(kept), _fresh(kept)):
            found, expected = (
                change(row_quadratic(rows, *example.point), rows).normal_equations(tables)
                for rows in example.both()[::-1]
            )
            assert_same(found, expected)
        few, point = example.streamed.keep_terms(kept), (example.likelihood, values)
        expected = statistics.log_likelihood(
            example.in_memory.keep_terms(kept), *point, example.intercept
        )
        assert_same(statistics.log_likelihood(few, *point, example.intercept), expected)

    def test_additional_terms(self, example):
        entries = place_levels(example.summary.columns[3].distribution, 1000, 30)
        more = [LevelTerm((3,), entries)]
        wide, expected = (rows.with_terms(more) for rows in example.both()[::-1])
        assert wide.sizes == expected.sizes == (*example.in_memory.sizes, len(entries))
        assert_same(entry_weights(wide), entry_weights(expected))
        assert_same(
            entry_weights(wide)[-1],
            reading.spread(
                locate(entries, (3,), example.table.columns), example.table.weight, len(entries)
            ),
        )

    def test_level_sums(self, example):
        candidates = [
            LevelTerm((k,), place_levels(example.summary.columns[k].distribution, 1000, 30))
            for k in (1, 3)
        ]
        shape = (len(candidates[1].entries), *np.shape(example.intercept))
        n_before = len(example.terms)
        learned = {n_before + 1: np.random.default_rng(2).standard_normal(shape)}
        found, expected = (
            rows.with_terms(candidates).total(
                core_job(first_stage._level_sums, Around(*example.point), learned, n_before)
            )
            for rows in example.both()[::-1]
        )
        assert_same(found, expected)

    def test_importances(self, example):
        def importances(rows, values):
            return assembly._importances(_problem(example, rows, range(4)), values)

        in_memory, streamed = example.both()
        # A function may change its sign between two entries: then importances at the entries are larger.
        found, expected = (importances(rows, example.values) for rows in (streamed, in_memory))
        assert (np.array(found) >= np.array(expected) - 1e-12).all()
        assert found[2] == pytest.approx(expected[2])
        positive = [np.abs(own) for own in example.values]
        assert_same(importances(streamed, positive), importances(in_memory, positive))

    def test_the_constant_model_needs_no_pass(self, example):
        in_memory, streamed = example.both()
        assert streamed.null is None
        made = _problem(example, streamed, range(4)).rows
        expected = statistics.null_log_likelihood(in_memory, example.likelihood)
        assert made.null == pytest.approx(expected, rel=1e-12)
        for own in (made.keep_terms([0]), made.with_terms(example.terms[:1])):
            assert own.null == made.null
            assert_same(statistics.null_log_likelihood(own, example.likelihood), expected)
        unread = replace(made, tables=None)
        assert_same(null_fit(unread, example.likelihood), null_fit(in_memory, example.likelihood))
        assert_same(
            null_evidence(unread, example.likelihood), null_evidence(in_memory, example.likelihood)
        )
        # Other row precisions invalidate it.
        assert made.with_missing_noise(np.ones(4)).null is None

    def test_cells_of_pairs(self, example):
        pairs, codes = [(0, 1), (0, 2), (2, 3)], {2: example.codes}
        binned = interactions.bin_columns(example.summary, pairs, codes)
        cells = {feature: (own.entries, own.number) for feature, own in binned.items()}
        job = core_job(interactions._cell_sums_of_rows, Around(*example.point), cells, pairs)
        found, expected = (rows.total(job) for rows in example.both()[::-1])
        assert_same(found, expected)
        slope, curvature = Around(*example.point).derivatives(example.in_memory)
        for (first, second), (seen, pull) in zip(pairs, found, strict=True):
            size = binned[first].n_cells * binned[second].n_cells
            assert len(seen) == len(pull) == size
            own = statistics.own_curvature(curvature).reshape(N_ROWS, -1)
            assert_close(seen.sum(axis=0), own.sum(axis=0), "rounding")
            assert_close(pull.sum(axis=0), slope.reshape(N_ROWS, -1).sum(axis=0), "rounding")

    def test_kronecker_factors(self, example):
        # Kronecker factors are those of single columns.
        own = [0, 1]
        found, expected = (_kron(example, rows.keep_terms(own), own) for rows in example.both())
        assert_same(found, expected)


def _results(quadratic, example, tables=None):
    """All results of a quadratic."""
    tables = example.tables if tables is None else tables
    results = [
        quadratic.normal_equations(tables),
        quadratic.entry_curvature(),
        quadratic.total_curvature,
        quadratic.constant,
    ]
    if isinstance(quadratic, quadratics.RowQuadratic):
        results.append(quadratic.value)
    if example.likelihood.n_outputs == 1:
        results.append(quadratic.level_equations(2, tables))
    return results


def _fresh(kept):
    """The quadratic of fewer terms, expanded again around their values."""

    def make(quadratic, rows):
        around = quadratic.around
        values = [around.values[k] for k in kept]
        return row_quadratic(rows.keep_terms(kept), around.likelihood, values, around.intercept)

    return make


def _positions(parts):
    """A job: the positions of all rows in all terms' tables."""
    return (
        np.concatenate(
            [
                np.column_stack(
                    [
                        reading.read(position, np.arange(float(size)))
                        for position, size in zip(part.positions, part.sizes, strict=True)
                    ]
                )
                for part in parts
            ]
        ),
    )


def core_job(function, *given):
    """A job as the core creates it."""
    return core_rows.partial(function, *given)


def _problem(example, rows, own):
    terms = [example.terms[k] for k in own]
    return Problem.of(terms, rows, example.likelihood)


def _kron(example, rows, own):
    problem, rng = _problem(example, rows, own), np.random.default_rng(0)
    known = tuple(
        replace(
            problem.initial_term(number, rng),
            values=example.values[k],
            # Every output has a network.
            expansion=np.tile(problem.terms[number].initial(rng), example.likelihood.n_outputs),
        )
        for number, k in enumerate(own)
    )
    found = kron.KronCurvature().functions(problem, State(known, example.intercept, 0.7))
    n_outputs = example.likelihood.n_outputs
    # Of the functions: the coordinates of several outputs may be others.
    tables = [np.kron(np.eye(n_outputs), table) for table in found.tables]
    tables = block_diag(*tables, np.eye(n_outputs))
    return tables @ found.covariance @ tables.T


class TestGaussian:
    """Statistics of Gaussian responses only."""

    @pytest.fixture(params=list(CUTS))
    def example(self, request):
        return Example("gaussian", request.param)

    @pytest.mark.parametrize(
        ("kept", "largest", "form"),
        [
            # all entries; those with rows; neither
            ((0, 1, 2), 600e6, cross_tables.TableQuadratic),
            ((0, 1, 2, 3), 600e6, cross_tables.TableQuadratic),
            ((0, 1, 2, 3), 0.0, quadratics.RowQuadratic),
        ],
    )
    def test_the_quadratic_is_computed_once(self, example, kept, largest, form):
        (weights, null, found), (own, own_null, expected) = (
            quadratics.weights_and_quadratic(rows.keep_terms(kept), example.likelihood, largest)
            for rows in example.both()[::-1]
        )
        assert_same(null, own_null)
        assert type(found) is type(expected) is form
        assert_same(weights, own)
        tables = [example.tables[k] for k in kept]
        assert_same(_results(found, example, tables), _results(expected, example, tables))

    def test_cross_tables(self, example):
        found, expected = (table_quadratic(rows, *example.point) for rows in example.both()[::-1])
        assert_same(_results(found, example), _results(expected, example))

    def test_variance_sums_of_missing_values(self, example):
        coefficients = np.array([0.5, 0.3, 2.0, 0.1])
        job = core_job(missingness._variance_sums, Around(*example.point), (0, 2, 3), coefficients)
        found, expected = (rows.total(job) for rows in example.both()[::-1])
        assert_same(found, expected)

    def test_rows_with_missing_noise(self, example):
        noise = np.array([0.5, 0.0, 2.0, 1.0])
        in_memory, streamed = example.both(noise)
        assert streamed.missing_noise is noise
        assert streamed.log_precision == pytest.approx(in_memory.log_precision, rel=1e-12)
        assert in_memory.log_precision < -10.0
        found, expected = (
            (
                statistics.log_likelihood(rows, *example.point),
                entry_weights(rows),
                _results(row_quadratic(rows, *example.point), example),
                _results(table_quadratic(rows, *example.point), example),
                null_fit(rows, example.likelihood),
                null_evidence(rows, example.likelihood),
            )
            for rows in (streamed, in_memory)
        )
        assert_same(found, expected)
        # It survives changes of the terms.
        for change in (lambda r: r.keep_terms([0]), lambda r: r.with_terms(example.terms[:1])):
            assert change(streamed).missing_noise is noise
            assert_same(change(streamed).log_precision, in_memory.log_precision)

    def test_fit_missingness_noise(self, example):
        state = State(tuple(_Known(own) for own in example.values), 0.2, 0.5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(missingness, "_LEAST_GAIN", -1e9)
            found, expected = (
                missingness.fit_missingness_noise(_problem(example, rows, range(4)), state)
                for rows in example.both()[::-1]
            )
        assert_same(found[0].rows.missing_noise, expected[0].rows.missing_noise)
        assert expected[0].rows.missing_noise.max() > 0.0
        assert found[1].noise == pytest.approx(expected[1].noise, rel=1e-10)


class _Known:
    def __init__(self, values):
        self.values = values


def test_pearson_sum():
    example = Example("poisson")
    job = core_job(first_stage._pearson_sum, Around(*example.point))
    found, expected = (rows.total(job) for rows in example.both()[::-1])
    assert_same(found, expected)


class TestThreads:
    @pytest.fixture(autouse=True)
    def _few_rows_a_thread(self, monkeypatch):
        monkeypatch.setattr(core_rows, "_ROWS_PER_THREAD", 20)

    def shared(self, example, n_threads=3):
        return replace(example.in_memory, n_threads=n_threads)

    @pytest.mark.parametrize(
        ("n_threads", "least", "parts"),
        [(1, 20, 1), (3, 20, 3), (100, 20, 20), (3, 201, 1), (3, 200, 2), (3, 500, 1)],
    )
    def test_each_thread_has_enough_rows(self, n_threads, least, parts, monkeypatch):
        monkeypatch.setattr(core_rows, "_ROWS_PER_THREAD", least)
        rows = self.shared(Example("gaussian"), n_threads)
        n_parts, sizes = rows.total(number_of_parts, _counted, heavy=True)
        assert n_parts == len(sizes) == parts
        assert sizes.sum() == N_ROWS
        assert sizes.max() - sizes.min() <= 1

    def test_a_job_of_short_steps_uses_one_thread(self):
        n_parts, _ = self.shared(Example("gaussian")).total(number_of_parts, _counted)
        assert n_parts == 1

    def test_parts_run_in_different_threads(self):
        wait, seen = threading.Barrier(3), set()

        def job(parts):
            wait.wait(timeout=30.0)  # all three are under way at once
            seen.add(threading.get_ident())
            return (np.array(float(len(list(parts)))),)

        self.shared(Example("gaussian")).total(job, heavy=True)
        assert len(seen) == 3
        assert threading.get_ident() not in seen

    def test_rows_stay_in_order(self):
        example = Example("gaussian")
        (found,) = self.shared(example).total(in_order, joined, heavy=True)
        np.testing.assert_array_equal(found, example.in_memory.y)

    def test_an_error_in_a_thread_is_raised(self):
        def job(parts):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.shared(Example("gaussian")).total(job, heavy=True)

    def test_all_totals(self, name):
        example = Example(name)
        found, expected = (
            (
                entry_weights(rows),
                statistics.log_likelihood(rows, *example.point),
                statistics.fit_intercept_only(rows, example.likelihood),
                _results(row_quadratic(rows, *example.point), example),
                assembly._importances(_problem(example, rows, range(4)), example.values),
            )
            for rows in (self.shared(example), example.in_memory)
        )
        assert_same(found, expected)

    def test_totals_of_gaussian_responses(self):
        example, noise = Example("gaussian"), np.array([0.5, 0.0, 2.0, 1.0])
        job = core_job(missingness._variance_sums, Around(*example.point), (0, 2, 3), np.ones(4))
        found, expected = (
            (
                _results(table_quadratic(rows.with_missing_noise(noise), *example.point), example),
                statistics.log_likelihood(rows.with_missing_noise(noise), *example.point),
                rows.total(job),
            )
            for rows in (self.shared(example), example.in_memory)
        )
        assert_same(found, expected)

    def test_derived_rows_keep_the_number_of_threads(self):
        example = Example("gaussian")
        rows = Rows.of(example.table, example.terms, example.units, n_threads=3)
        more = rows.with_terms(example.terms[:1]).keep_terms([0]).with_missing_noise(np.ones(4))
        for own in (rows, more):
            assert own.total(number_of_parts, _counted, heavy=True)[0] == 3


def _counted(first, second):
    return first[0] + second[0], np.append(first[1], second[1])


class TestParts:
    def test_a_slice_of_rows(self):
        rows = Example("gaussian").in_memory.with_missing_noise(np.array([0.5, 0.0, 2.0, 1.0]))
        part = rows.part(slice(30, 77))
        assert len(part) == 47
        assert part.sizes == rows.sizes
        for field in ("y", "weight", "precision", "columns", "information"):
            np.testing.assert_array_equal(getattr(part, field), getattr(rows, field)[30:77])
        for one, whole, size in zip(part.positions, rows.positions, rows.sizes, strict=True):
            table = np.random.default_rng(0).standard_normal(size)
            np.testing.assert_array_equal(
                reading.read(one, table), reading.read(whole, table)[30:77]
            )

    @pytest.mark.parametrize(("size", "sizes"), [(500, [401]), (401, [401]), (200, [200, 200, 1])])
    def test_parts_of_bounded_size(self, size, sizes):
        rows = Example("gaussian").in_memory
        parts = list(rows.parts(size))
        assert [len(part) for part in parts] == sizes
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), rows.y)

    def test_rows_of_a_table(self):
        example = Example("gaussian")
        rows, table = example.in_memory, example.table
        mean = np.average(table.response, weights=table.weight)
        spread = np.sqrt(np.average((table.response - mean) ** 2, weights=table.weight))
        assert_close(rows.y, (table.response - mean) / spread, "rounding")
        assert rows.weight is table.weight
        assert rows.count == pytest.approx(table.weight.sum())
        assert rows.sizes == tuple(len(term.entries) for term in example.terms)


def test_streamed_rows_can_be_pickled():
    example = Example("gaussian")
    rows = example.streamed.with_missing_noise(np.array([0.5, 0.0, 2.0, 1.0]))
    again = pickle.loads(pickle.dumps(rows))
    assert_same(entry_weights(again), entry_weights(rows))


def test_a_total_reads_the_chunks_once():
    """Each total goes over the chunks once."""
    example, passes = Example("gaussian"), []

    class Counted(Chunks):
        def chunks(self):
            passes.append(1)
            return super().chunks()

    counted = Counted(example.chunks.table, example.chunks.ends)
    rows = replace(example.streamed, tables=counted)
    problem = _problem(example, rows.keep_terms([0, 1, 2]), range(3))
    null_evidence(problem.rows, example.likelihood)
    assembly._importances(problem, example.values[:3])
    assert len(passes) == 1
    made = row_quadratic(rows, *example.point)
    made.constant, made.value, made.total_curvature, made.entry_curvature()
    assert len(passes) == 2
    made.normal_equations(example.tables)
    assert len(passes) == 3
