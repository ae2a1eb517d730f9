"""Columns and a response to terms, positions and units."""

import numpy as np
import pytest

from lanam.core.fit.prepare import prepare
from lanam.core.inference.options import Options
from lanam.core.model.fitted import CONSTANT, DUPLICATE
from lanam.core.rows import reading
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close

GAUSSIAN, BERNOULLI = LIKELIHOODS["gaussian"], LIKELIHOODS["bernoulli"]


def units(y, weight=None, likelihood=GAUSSIAN):
    y = np.asarray(y, dtype=float)
    return in_memory.units(y, np.ones(len(y)) if weight is None else weight, likelihood)


class TestUnits:
    def test_a_gaussian_response_is_standard(self):
        rng = np.random.default_rng(0)
        y, weight = rng.normal(7.0, 3.0, 50), rng.uniform(0.5, 2.0, 50)
        found = units(y, weight)
        assert found.shift == pytest.approx(np.average(y, weights=weight))
        standard = found.standard(y)
        assert np.average(standard, weights=weight) == pytest.approx(0.0, abs=1e-12)
        assert np.average(standard**2, weights=weight) == pytest.approx(1.0)
        assert_close(found.shift + found.scale * standard, y, "rounding")
        assert found.total_weight == pytest.approx(weight.sum())

    def test_evidence_is_of_the_response_in_its_own_unit(self):
        y = np.array([1.0, 4.0, 2.0])
        found = units(y)
        assert found.log_evidence(-5.0) == pytest.approx(-5.0 - 3.0 * np.log(y.std()))

    @pytest.mark.parametrize("scale", [2.0**-500, 2.0**500, 1e-150, 1e150])
    def test_any_scale(self, scale):
        y = np.array([1.0, 4.0, 2.0, -3.0])
        found = units(y * scale)
        assert_close(found.standard(y * scale), units(y).standard(y), "rounding")
        assert found.scale / scale == pytest.approx(y.std())

    @pytest.mark.parametrize("value", [0.0, 5.0, -1e200, 0.1])
    def test_a_constant_response_is_all_shift(self, value):
        y = np.full(7, value)
        found = units(y)
        assert found.shift == pytest.approx(value)
        np.testing.assert_allclose(found.standard(y), 0.0, atol=1e-3)
        assert 0.0 < found.scale < 1e-8 * max(abs(value), 1.0)

    def test_a_bernoulli_response_stays_as_it_is(self):
        y = np.array([0.0, 1.0, 1.0])
        found = units(y, likelihood=BERNOULLI)
        assert found.standard(y) is y
        assert (found.shift, found.scale) == (0.0, 1.0)
        assert found.log_evidence(-2.0) == -2.0


class TestPrepare:
    def example(self, options=Options()):  # noqa: B008
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal(40), rng.integers(0, 5, 40).astype(float)
        columns = np.column_stack([a, np.full(40, 2.0), b, a, b])
        return columns, in_memory.prepared(
            columns, rng.standard_normal(40), np.ones(40), GAUSSIAN, options
        )

    def test_constant_and_duplicate_columns_get_no_term(self):
        _, found = self.example()
        assert [term.features[0] for term in found.terms] == [0, 2]
        assert found.unused == {1: CONSTANT, 3: DUPLICATE, 4: DUPLICATE}
        assert set(found.levels) == {0, 2}

    def test_rows_read_their_own_values(self):
        columns, found = self.example()
        for term, position in zip(found.terms, found.rows.positions, strict=True):
            read = reading.read(position, term.entries.values)
            assert_close(read, columns[:, term.features[0]], "single precision")
        assert found.rows.sizes == tuple(len(term.entries) for term in found.terms)

    def test_levels_are_the_columns_values(self):
        columns, found = self.example()
        np.testing.assert_array_equal(found.levels[2].values, np.arange(5.0))
        np.testing.assert_array_equal(found.levels[0].values, np.sort(columns[:, 0]))

    def test_options_reach_the_terms(self):
        options = Options(
            hidden_sizes=(3, 2),
            activation="tanh",
            init_scales=(2.0,),
            prior_groups="network",
            max_knots=10,
        )
        _, found = self.example(options)
        term = found.terms[0]
        assert term.architecture.hidden_sizes == (3, 2)
        assert term.architecture.activation == "tanh"
        assert term.architecture.scales == (2.0,)
        assert term.group_index.max() == 0
        assert len(term.entries) <= 10 + 8

    def test_columns_that_differ_in_one_value_are_two(self):
        rng = np.random.default_rng(0)
        a = rng.standard_normal(40)
        b = a.copy()
        b[17] += 1e-9
        found = in_memory.prepared(np.column_stack([a, b]), a, np.ones(40), GAUSSIAN, Options())
        assert len(found.terms) == 2


class TestSummary:
    def prepared(self, **options):
        columns, seen = np.column_stack([np.arange(30.0), np.r_[np.nan, np.ones(29)]]), []
        tables = in_memory.tables(columns, np.arange(30.0), np.ones(30))
        found = prepare(tables, GAUSSIAN, Options(**options), on_summary=seen.append)
        return found, seen

    def test_it_is_shown_whole(self):
        _, (seen,) = self.prepared(interactions=0)
        assert seen.n_rows == 30
        assert len(seen.columns[0].distribution.values) == 30

    def test_distributions_are_kept_for_pairs_only(self):
        for interactions, n_values in ((0, 0), ((), 0), (1, 30), ("auto", 30)):
            found, _ = self.prepared(interactions=interactions)
            assert len(found.summary.columns[0].distribution.values) == n_values
            assert found.summary.missing_columns == (1,)


class TestCopies:
    """Values that recur in copies of rows only have no level effects."""

    def rows(self, n=200):
        rng = np.random.default_rng(0)
        columns = np.column_stack([rng.standard_normal(n), rng.integers(0, 12, n)])
        return columns, rng.standard_normal(n)

    def levels(self, columns, y, weight):
        return set(
            in_memory.prepared(columns, y, weight, LIKELIHOODS["gaussian"], Options()).levels
        )

    def test_rows_that_differ_have_levels(self):
        columns, y = self.rows()
        assert self.levels(columns, y, np.ones(200)) == {0, 1}

    def test_a_bootstrap_keeps_those_of_values_that_recur(self):
        columns, y = self.rows()
        drawn = np.random.default_rng(1).integers(0, 200, 200)
        assert self.levels(columns[drawn], y[drawn], np.ones(200)) == {1}

    def test_weights_are_copies(self):
        columns, y = self.rows()
        assert self.levels(columns, y, np.full(200, 3.0)) == {1}
