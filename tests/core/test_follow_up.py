"""Rows of follow-up: the likelihood of the times, and sums over rows that repeat a subject's columns."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from lanam.core.fit import interactions
from lanam.core.fit.joint import joint_terms
from lanam.core.fit.prepare import prepare
from lanam.core.inference.options import Options
from lanam.core.rows import cross_tables, follow_up, quadratics, statistics
from lanam.core.rows.follow_up import FollowUp, FollowUpTables, Timeline
from lanam.core.rows.located import Rows
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import ArrayTables, EncodedRows
from lanam.core.terms.repeats import Repeats
from lanam.families.survival import PiecewiseExponential
from tests.core.in_chunks import Chunks, cut
from tests.oracles import assert_close

N = 211
N_LEVELS = (-1, 4, -1)


@pytest.fixture(scope="module")
def subjects():
    """Two columns, one with categories and one with missing values; entry, exit, and two causes."""
    rng = np.random.default_rng(0)
    entry = rng.choice([0.0, 0.3], N)
    end = entry + rng.exponential(size=N) + 0.01
    columns = np.column_stack([rng.normal(size=N), rng.integers(0, 4, N), entry, end])
    columns[rng.uniform(size=N) < 0.1, 0] = np.nan
    return EncodedRows(columns, rng.integers(0, 3, N).astype(float), rng.uniform(0.5, 2.0, N))


@pytest.fixture(scope="module")
def tables(subjects):
    timeline = FollowUp.of(ArrayTables(subjects)).timeline(7)
    return FollowUpTables(ArrayTables(subjects), timeline, 1.0)


@pytest.fixture(scope="module")
def located(tables):
    """All rows as they are made, those with all columns, and values at the terms' entries."""
    prepared = prepare(tables, PiecewiseExponential(), Options(interactions="auto"), N_LEVELS)
    pairs = joint_terms(prepared.summary, [(0, 2), (1, 2)], Options(), prepared.categories)
    terms = (*prepared.terms, *pairs)
    (made,) = tables.timeline.rows(tables.subjects.table, 1.0)
    owner = made.repeats.owner
    columns = np.column_stack([made.columns[owner], made.times])
    plain = EncodedRows(columns, made.response, made.weight)
    rng = np.random.default_rng(1)
    values = tuple(0.3 * rng.normal(size=len(term.entries)) for term in terms)
    around = Around(PiecewiseExponential(), values, -0.4)
    return [Rows.of(rows, terms, prepared.units) for rows in (made, plain)], around, prepared


def total(rows, job):
    return rows.total(job)


class TestTimeline:
    def test_time_at_risk_is_that_of_each_interval(self, tables, subjects):
        entry, end = subjects.columns[:, -2:].T
        edges, at_risk = tables.timeline.edges, tables.timeline.at_risk(entry, end)
        for row in (0, 7, 50):
            for j, (first, last) in enumerate(pairwise(edges)):
                inside = max(min(end[row], last) - max(entry[row], first), 0.0)
                assert at_risk[row, j] == pytest.approx(inside)
        assert_close(at_risk.sum(axis=1), end - entry, "rounding")

    def test_intervals_have_about_as_many_events(self, subjects):
        found = FollowUp.of(ArrayTables(replace(subjects, weight=np.ones(N))))
        timeline = found.timeline(7)
        assert timeline.n_events.sum() == (subjects.response > 0).sum()
        assert timeline.n_events.max() - timeline.n_events.min() <= 2

    def test_few_events_have_few_intervals(self):
        columns = np.column_stack([np.zeros(5), np.arange(1.0, 6.0)])
        one = EncodedRows(columns, np.array([1.0, 1, 1, 0, 0]), np.ones(5))
        assert len(FollowUp.of(ArrayTables(one)).timeline()) == 1

    def test_an_event_at_an_edge_belongs_to_the_interval_before(self):
        timeline = Timeline(np.array([0.0, 1.0, 2.0]), 1.0, np.ones(2))
        at_edge = EncodedRows(np.array([[0.0, 1.0]]), np.ones(1), np.ones(1))
        (rows,) = timeline.rows(at_edge, 1.0)
        assert rows.response.tolist() == [1.0]
        assert rows.times.tolist() == [0.5]

    def test_chunks_give_the_same_intervals(self, subjects):
        whole = FollowUp.of(ArrayTables(subjects)).timeline()
        chunks = cut("many", subjects.columns, subjects.response, subjects.weight)
        found = FollowUp.of(chunks).timeline()
        np.testing.assert_array_equal(found.edges, whole.edges)
        assert found.unit == pytest.approx(whole.unit)


class TestLikelihood:
    def test_it_is_the_density_of_the_times(self, tables, subjects, located):
        """Of events ``log h - H``, of others ``-H``, with hazards in the user's unit of time."""
        (made, _), around, _ = located
        value = statistics.log_likelihood(made, around.likelihood, around.values, around.intercept)
        hazard = np.exp(around.predict(made)) / tables.timeline.unit
        timeline, expected = tables.timeline, 0.0
        entry, end = subjects.columns[:, -2:].T
        for row in range(N):
            own = np.flatnonzero(made.repeats.owner == row)
            at_risk = timeline.at_risk(entry[row : row + 1], end[row : row + 1])[0]
            log_density = -hazard[own] @ at_risk[at_risk > 0.0]
            if subjects.response[row] == 1.0:
                log_density += np.log(hazard[own[-1]])
            expected += subjects.weight[row] * log_density
        assert value + tables.constant == pytest.approx(expected, rel=1e-10)


class TestRepeatedRows:
    """Sums over rows that keep a subject's columns once are those over rows with all columns."""

    def test_the_likelihood_and_its_sums_at_entries(self, located):
        (made, plain), around, _ = located
        quadratic, expected = (quadratics.row_quadratic(rows, around) for rows in (made, plain))
        assert quadratic.value == pytest.approx(expected.value, rel=1e-12)
        for found, other in zip(
            quadratic.entry_curvature(), expected.entry_curvature(), strict=True
        ):
            assert_close(found, other, "rounding")

    def test_normal_equations(self, located):
        (made, plain), around, _ = located
        rng = np.random.default_rng(2)
        tables = [rng.normal(size=(size, 3)) for size in made.sizes]
        kept = [3, 0, 1, 4]  # in another order, and without the time itself
        for terms in (range(len(tables)), kept):
            own = [tables[k] for k in terms]
            gram, target = (
                quadratics.row_quadratic(rows, around).keep_terms(list(terms)).normal_equations(own)
                for rows in (made, plain)
            )
            assert_close(gram[0], target[0], "rounding")
            assert_close(gram[1], target[1], "rounding")

    def test_equations_of_levels(self, located):
        (made, plain), around, _ = located
        tables = [np.ones((size, 2)) for size in made.sizes]
        found, expected = (
            quadratics.row_quadratic(rows, around).level_equations(1, tables)
            for rows in (made, plain)
        )
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, "rounding")

    @pytest.mark.parametrize("size", [None, 100])
    def test_cross_tables(self, located, size, monkeypatch):
        (made, plain), around, _ = located
        if size is not None:  # parts that cut subjects in two
            monkeypatch.setattr(cross_tables, "_TABLE_CHUNK_ROWS", size)
            monkeypatch.setattr(cross_tables, "_ROWS_PER_SUBJECT", 1)
        (found, weights), (expected, others) = (
            cross_tables.summed(rows, around) for rows in (made, plain)
        )
        assert_close(np.triu(found.cross), np.triu(expected.cross), "rounding")
        assert_close(found.pseudo, expected.pseudo, "rounding")
        for one, other in zip(weights, others, strict=True):
            assert_close(one, other, "rounding")

    def test_cells_of_pairs(self, located):
        (made, plain), around, prepared = located
        pairs = [(0, 1), (0, 2), (1, 2)]
        binned = interactions.bin_columns(prepared.summary, pairs, prepared.categories)
        cells = {feature: (own.entries, own.number) for feature, own in binned.items()}
        job = partial(interactions._cell_sums_of_rows, around, cells, pairs)
        for one, other in zip(made.total(job), plain.total(job), strict=True):
            assert_close(one, other, "rounding")

    def test_parts_and_masks(self, located):
        (made, plain), around, _ = located
        mask = np.arange(len(made)) % 3 > 0
        for rows in (slice(5, 90), mask):
            assert_close(
                around.predict(made.part(rows)), around.predict(plain.part(rows)), "rounding"
            )

    def test_sums_by_subject(self):
        repeats = Repeats(np.array([0, 0, 1, 2, 2, 2]))
        np.testing.assert_array_equal(repeats.sum(np.arange(6.0)), [1.0, 2.0, 12.0])


def test_threads_do_not_matter(tables, monkeypatch):
    monkeypatch.setattr(follow_up, "_SUBJECTS", 50)
    threaded = replace(tables, n_threads=3)
    assert threaded.constant == pytest.approx(tables.constant, rel=1e-12)
    assert threaded.n_rows == tables.n_rows


class TestSummary:
    def test_the_sample_has_all_rows_of_its_subjects(self, tables, located):
        _, _, prepared = located
        sample, n_rows = prepared.summary.sample, prepared.rows.n_rows
        assert sample.columns.shape == (n_rows, 3)
        assert sample.weight.sum() == pytest.approx(prepared.summary.total_weight)

    def test_of_chunks_it_is_the_same(self, tables, subjects):
        chunks = cut("odd ones", subjects.columns, subjects.response, subjects.weight)
        assert isinstance(chunks, Chunks)
        streamed = replace(tables, subjects=chunks)
        assert streamed.constant == pytest.approx(tables.constant)
        found, expected = (own.summarise(N_LEVELS, 100, 1) for own in (streamed, tables))
        assert found.n_rows == expected.n_rows == N
        assert found.spread.mean == pytest.approx(expected.spread.mean)
        assert len(found.columns) == len(expected.columns) == 3
