"""Missing values: a separate effect where the data has some, the prior's where it has none."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import CONSTANT, DUPLICATE, EMPTY
from lanam.core.terms.knots import Knots, place_knots, place_levels, summarise
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close

QUICK = Options(hidden_sizes=(12,), pair_hidden_sizes=(12,), level_effects=False)


def fit(columns, y, weight=None, likelihood="gaussian", options=QUICK, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, seed)


def missing_rows(rng, n, share):
    """Rows without a value."""
    return rng.uniform(size=n) < share


# entries


class TestEntries:
    def test_a_distribution_excludes_them(self):
        column = np.array([3.0, np.nan, 1.0, 3.0, np.nan])
        weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
        found = summarise(column, weight)
        expected = summarise(column[[0, 2, 3]], weight[[0, 2, 3]])
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.mass, expected.mass)
        assert found.scale == expected.scale
        assert found.missing == 7.0
        assert expected.missing == 0.0

    def test_knots_have_one_more_entry(self):
        rng = np.random.default_rng(0)
        column = rng.standard_normal(100)
        missing = missing_rows(rng, 100, 0.3)
        with_missing = np.where(missing, np.nan, column)
        plain = place_knots(summarise(column[~missing], np.ones((~missing).sum())), 20)
        found = place_knots(summarise(with_missing, np.ones(100)), 20)
        np.testing.assert_array_equal(found.points, plain.points)
        assert len(found) == len(plain) + 1
        position = found.locate(with_missing)
        assert (position.index[missing] == len(plain)).all()
        assert (position.steps[0][1][missing] == 0.0).all()
        np.testing.assert_array_equal(
            position.index[~missing], plain.locate(column[~missing]).index
        )
        # Where the data had none, they are at a knot, and predictions account for it.
        assert (plain.locate(with_missing).index[missing] == 0).all()

    def test_levels_have_an_entry_before_that_of_unseen_values(self):
        column = np.array([1.0, np.nan, 2.0, 2.0])
        levels = place_levels(summarise(column, np.ones(4)), 100, 5)
        assert len(levels) == 4
        rows = np.array([1.0, 2.0, np.nan, 7.0])
        np.testing.assert_array_equal(levels.locate(rows).index, [0, 1, 2, 3])
        # Without missing values in the data, a missing value is an unseen one.
        plain = place_levels(summarise(column[[0, 2]], np.ones(2)), 100, 5)
        np.testing.assert_array_equal(plain.locate(rows).index, [0, 1, 2, 2])
        binned = place_levels(summarise(np.append(np.arange(50.0), np.nan), np.ones(51)), 10, 5)
        assert not binned.exact
        assert binned.locate(np.array([np.nan])).index[0] == len(binned) - 2

    def test_missing_values_of_weight_zero_do_not_count(self):
        column = np.array([1.0, 2.0, np.nan])
        assert not place_knots(summarise(column, np.array([1.0, 1.0, 0.0])), 9).missing

    def test_one_value_and_missing_ones(self):
        knots = place_knots(summarise(np.array([5.0, np.nan, 5.0]), np.ones(3)), 9)
        assert knots.missing
        np.testing.assert_array_equal(knots.values[knots.inside], [5.0])
        assert (np.diff(knots.values) > 0.0).all()
        np.testing.assert_array_equal(
            knots.locate(np.array([5.0, np.nan])).index, [knots.inside.start, len(knots) - 1]
        )


class TestPrepare:
    def made(self, columns):
        y = np.random.default_rng(9).standard_normal(len(columns))
        return in_memory.prepared(columns, y, np.ones(len(y)), LIKELIHOODS["gaussian"], Options())

    def test_empty_columns_and_one_value_with_missing_ones(self):
        columns = np.full((40, 3), 2.0)
        columns[:, 0] = np.nan
        columns[::3, 2] = np.nan
        found = self.made(columns)
        assert found.unused == {0: EMPTY, 1: CONSTANT}
        assert [term.features for term in found.terms] == [(2,)]
        assert found.terms[0].has_missing

    def test_two_empty_columns(self):
        found = self.made(np.full((40, 2), np.nan))
        assert set(found.unused) == {0, 1}
        assert found.unused[0] == EMPTY
        assert found.terms == ()

    def test_duplicates_have_the_same_missing_values(self):
        rng = np.random.default_rng(0)
        column = np.where(missing_rows(rng, 40, 0.3), np.nan, rng.standard_normal(40))
        other_gap = column.copy()
        other_gap[np.flatnonzero(~np.isnan(column))[0]] = np.nan
        found = self.made(np.column_stack([column, column, other_gap]))
        assert found.unused == {1: DUPLICATE}

    def test_all_nans_are_missing(self):
        rng = np.random.default_rng(0)
        missing = missing_rows(rng, 40, 0.3)
        column = rng.standard_normal(40)
        columns = np.column_stack(
            [np.where(missing, sign * np.nan, column) for sign in (1.0, -1.0)]
        )
        columns[missing, 1] = -np.float64("nan")
        assert np.signbit(columns[missing, 1]).all()
        assert self.made(columns).unused == {1: DUPLICATE}

    def test_rows_with_different_missing_values_are_distinct(self):
        # 60 rows, each twice; in one of the two the first column is missing.
        rng = np.random.default_rng(1)
        columns = np.repeat(rng.standard_normal((60, 2)), 2, axis=0)
        y = np.repeat(rng.standard_normal(60), 2)
        weight = np.ones(120)

        def levels(columns):
            return set(
                in_memory.prepared(columns, y, weight, LIKELIHOODS["gaussian"], Options()).levels
            )

        assert levels(columns) == set()
        columns[::2, 0] = np.nan
        assert levels(columns) == {0, 1}


# fits


class TestEffect:
    def data(self, effect, likelihood="gaussian", n=800, seed=0):
        rng = np.random.default_rng(seed)
        columns = rng.standard_normal((n, 2))
        missing = missing_rows(rng, n, 0.25)
        columns[missing, 0] = np.nan
        f = 0.5 * columns[:, 1] + effect * missing
        if likelihood == "gaussian":
            return columns, f + 0.5 * rng.standard_normal(n), missing
        return columns, (rng.uniform(size=n) < expit(f)).astype(float), missing

    @pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
    def test_informative_missingness_is_found(self, likelihood):
        columns, y, missing = self.data(1.5, likelihood)
        model = fit(columns, y, likelihood=likelihood)
        term = model.terms[0]
        assert term.active
        assert term.entries.missing
        mean, variance = scoring.entry_moments(model, 0)
        sd = np.sqrt(variance[-1])
        # Centred: missing values are 0.75 times the effect above the mean, the others 0.25 below.
        expected = 1.5 * (1.0 - missing.mean())
        assert abs(mean[-1] - expected) < 3.0 * sd
        others = scoring.term_means(model, columns)[~missing, 0]
        assert others.mean() == pytest.approx(-1.5 * missing.mean(), abs=0.2)
        assert np.ptp(others) < (0.3 if likelihood == "gaussian" else 0.75)
        # With Gaussian noise the standard deviation is that of the difference of two means.
        if likelihood == "gaussian":
            n_missing, n_present = missing.sum(), (~missing).sum()
            textbook = 0.5 * (1.0 - missing.mean()) * np.sqrt(1.0 / n_missing + 1.0 / n_present)
            assert sd == pytest.approx(textbook, rel=0.1)

    def test_values_missing_at_random_have_no_effect(self):
        rng = np.random.default_rng(2)
        n = 800
        columns = rng.standard_normal((n, 1))
        y = np.sin(2.0 * columns[:, 0]) + 0.3 * rng.standard_normal(n)
        columns[missing_rows(rng, n, 0.25), 0] = np.nan
        model = fit(columns, y)
        mean, variance = scoring.entry_moments(model, 0)
        assert abs(mean[-1]) < 3.0 * np.sqrt(variance[-1])
        assert abs(mean[-1]) < 0.15
        # The curve is found as well.
        x = np.linspace(-1.5, 1.5, 30)[:, None]
        assert np.corrcoef(scoring.link_mean(model, x), np.sin(2.0 * x[:, 0]))[0, 1] > 0.95

    def test_a_constant_column_with_missing_values(self):
        rng = np.random.default_rng(3)
        missing = missing_rows(rng, 300, 0.4)
        columns = np.where(missing, np.nan, 7.0)[:, None]
        y = 2.0 * missing + 0.5 * rng.standard_normal(300)
        model = fit(columns, y)
        assert (model.terms[0].precision > 1e-12).all()
        found, variance = scoring.link_moments(model, np.array([[np.nan], [7.0]]))
        np.testing.assert_allclose(found, [y[missing].mean(), y[~missing].mean()], atol=0.05)
        counts = np.array([missing.sum(), (~missing).sum()])
        np.testing.assert_allclose(np.sqrt(variance), 0.5 / np.sqrt(counts), rtol=0.2)

    def test_an_empty_column_takes_any_value(self):
        columns, y, _ = self.data(1.0)
        wide = np.column_stack([columns, np.full(len(y), np.nan)])
        model = fit(wide, y)
        assert model.terms[2].status == EMPTY
        assert model.log_evidence == pytest.approx(fit(columns, y).log_evidence)
        rows = np.column_stack([columns[:5], np.arange(5.0)])
        assert_close(scoring.link_mean(model, rows), scoring.link_mean(model, wide[:5]), "rounding")

    def test_missing_values_are_not_imputed(self):
        # All rows with a missing value have the same contribution, and the
        # knots do not depend on them.
        columns, y, missing = self.data(1.5)
        model = fit(columns, y)
        contribution = scoring.term_means(model, columns)[missing, 0]
        assert np.ptp(contribution) == 0.0
        assert contribution[0] == model.terms[0].mean[-1]
        moved = columns.copy()
        moved[:, 0] = 1e3 * columns[:, 0] + 5e4
        again = fit(moved, y)
        found = scoring.term_means(again, moved)[missing, 0]
        np.testing.assert_allclose(found, contribution, atol=0.01)

    def test_level_effects_of_a_column_with_missing_values(self):
        rng = np.random.default_rng(4)
        level = rng.integers(0, 40, 1200)
        missing = missing_rows(rng, 1200, 0.2)
        columns = np.where(missing, np.nan, level)[:, None]
        effect = np.where(missing, 3.0, rng.standard_normal(40)[level])
        y = effect + 0.3 * rng.standard_normal(1200)
        model = fit(columns, y, options=replace(QUICK, level_effects=True))
        assert {t.kind for t in model.terms if t.active} >= {"level"}
        found = scoring.link_mean(model, np.array([[np.nan], [3.0], [17.0]]))
        expected = [y[missing].mean(), *(y[(level == k) & ~missing].mean() for k in (3, 17))]
        np.testing.assert_allclose(found, expected, atol=0.15)


class TestAtPredictionOnly:
    """Columns that are complete in the training data."""

    @pytest.fixture(params=["joint", "block"])
    def model(self, request):
        rng = np.random.default_rng(5)
        columns = rng.standard_normal((500, 3))
        y = 100.0 + 10.0 * (np.sin(columns[:, 0]) + columns[:, 0] * columns[:, 1])
        y += 3.0 * rng.standard_normal(500)
        options = replace(QUICK, interactions=((0, 1),), posterior=request.param)
        return fit(columns, y, options=options)

    def rows(self):
        rows = np.random.default_rng(6).standard_normal((6, 3))
        rows[0, 0] = rows[1, 1] = rows[2, 0] = rows[2, 1] = rows[3, 2] = np.nan
        return rows

    def unknown(self, model, rows):
        """Which contributions are of a missing value, and the variance over the data of each term."""
        active = [t.active for t in model.terms]
        missing = np.array(
            [[np.isnan(row[list(t.features)]).any() for t in model.terms] for row in rows]
        )
        spread = []
        for k, term in enumerate(model.terms):
            mean, variance = scoring.entry_moments(model, k)
            spread.append(sum(term.data_mass * (mean**2 + variance)) if term.active else 0.0)
        return missing & active, np.array(spread)

    def test_the_example_has_a_column_and_a_pair(self, model):
        active = {t.features for t in model.terms if t.active}
        assert {(0,), (0, 1)} <= active
        assert not any(axis.missing for t in model.terms for axis in t.entries.axes)
        assert all(isinstance(axis, Knots) for t in model.terms for axis in t.entries.axes)

    def test_means_are_zero(self, model):
        rows = self.rows()
        missing, _ = self.unknown(model, rows)
        found = scoring.term_means(model, rows)
        assert (found[missing] == 0.0).all()
        active = np.array([t.active for t in model.terms])
        assert (found[:, active][~missing[:, active]] != 0.0).all()
        total = model.intercept + found.sum(axis=1)
        assert_close(scoring.link_mean(model, rows), total, "rounding")
        assert_close(scoring.link_moments(model, rows)[0], total, "rounding")

    def test_variances_are_those_over_the_data(self, model):
        rows = self.rows()
        missing, spread = self.unknown(model, rows)
        found = scoring.term_variances(model, rows)
        expected = np.broadcast_to(spread, found.shape)
        assert_close(found[missing], expected[missing], "rounding")
        # With all values missing, a row has these variances and the intercept's.
        nothing = np.full((1, 3), np.nan)
        expected = spread.sum() + model.covariance[-1, -1]
        assert_close(scoring.link_moments(model, nothing)[1], [expected], "rounding")

    def test_the_other_terms_keep_their_variances(self, model):
        # A missing value adds to the variance of the other terms on the link scale.
        rows = self.rows()
        missing, spread = self.unknown(model, rows)
        found = scoring.link_moments(model, rows)[1]
        for i in range(len(rows)):
            known = np.ones(len(model.covariance), dtype=bool)
            for k, block in enumerate(model.blocks):
                known[block] = not missing[i, k]
            part = known[:-1]
            design = np.ones(len(model.covariance))
            for k, (term, block) in enumerate(zip(model.terms, model.blocks, strict=True)):
                if term.active and not missing[i, k]:
                    own = [rows[i : i + 1, f] for f in term.features]
                    design[block] = scoring.read(term.entries.locate(*own), term.table)[0]
            design[:-1][~part] = 0.0
            expected = design @ model.covariance @ design + spread[missing[i]].sum()
            assert found[i] == pytest.approx(expected, rel=1e-6)

    def test_draws_have_these_moments(self, model):
        rows = self.rows()
        mean, variance = scoring.link_moments(model, rows)
        n = 20_000
        draws = scoring.sample_links(model, rows, n, np.random.default_rng(7))
        # Four standard errors of a mean, and of a variance.
        assert (np.abs(draws.mean(axis=0) - mean) < 4.0 * np.sqrt(variance / n)).all()
        assert (np.abs(draws.var(axis=0) / variance - 1.0) < 4.0 * np.sqrt(2.0 / n)).all()

    def test_chunks_of_rows_do_not_matter(self, model, monkeypatch):
        rows = self.rows()
        whole = [scoring.link_moments(model, rows), scoring.term_variances(model, rows)]
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", 2)
        parts = [scoring.link_moments(model, rows), scoring.term_variances(model, rows)]
        for a, b in zip(whole, parts, strict=True):
            assert_close(a, b, "rounding")
