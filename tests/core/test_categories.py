"""Categorical columns: closed-form random effects, invariance to names, rare and unseen categories."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.inference import posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State
from lanam.core.model import scoring
from lanam.core.model.fitted import ACTIVE, CONSTANT, DUPLICATE
from lanam.core.terms.knots import Categories
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import DensePosterior, assert_close, entry_matrix

QUICK = Options(hidden_sizes=(12,), pair_hidden_sizes=(12,), level_effects=False)


def fit(columns, y, n_levels, weight=None, likelihood="gaussian", options=QUICK, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, seed, n_levels)


def term_of(model, *features):
    """The active term over some columns."""
    (term,) = [t for t in model.terms if t.features == features and t.active]
    return term


# entries


class TestEntries:
    def test_codes_missing_and_unseen_values(self):
        entries = in_memory.place_categories(np.array([0.0, 2.0, 1.0]), np.ones(3), 3)
        assert len(entries) == 5
        rows = np.array([2.0, 0.0, np.nan, -1.0, 3.0, 1e300, -np.inf])
        position = entries.locate(rows)
        np.testing.assert_array_equal(position.index, [2, 0, 3, 4, 4, 4, 4])
        assert position.steps == ()

    def test_the_most_frequent_of_many_categories_have_an_entry(self):
        column = np.repeat(np.arange(5.0), [3, 9, 1, 7, 5])
        entries = in_memory.place_categories(column, np.ones(25), 5, 3)
        assert entries.n_own == 3
        # In the order of their codes; the others share the entry of unseen ones.
        np.testing.assert_array_equal(entries.entry_of, [4, 0, 4, 1, 2])
        assert len(entries) == 5

    def test_frequency_is_by_weight(self):
        column = np.repeat(np.arange(3.0), [5, 4, 3])
        weight = np.repeat([1.0, 2.0, 3.0], [5, 4, 3])
        np.testing.assert_array_equal(
            in_memory.place_categories(column, weight, 3, 2).entry_of, [3, 0, 1]
        )

    def test_ties_are_broken_by_code_in_any_order_of_rows(self):
        # With two entries, and the three categories after the most frequent one equally frequent.
        for most in range(4):
            column = np.repeat(np.arange(4.0), [6 if k == most else 4 for k in range(4)])
            own = sorted({most, 1 if most == 0 else 0})
            for order in (
                np.arange(18),
                np.arange(18)[::-1],
                np.random.default_rng(0).permutation(18),
            ):
                entries = in_memory.place_categories(column[order], np.ones(18), 4, 2)
                assert entries.n_own == 2
                np.testing.assert_array_equal(entries.entry_of[own], [0, 1])
                assert (np.delete(entries.entry_of, own) == 3).all()

    def test_ties_of_all_categories(self):
        entries = in_memory.place_categories(np.tile(np.arange(30.0), 5), np.ones(150), 30, 24)
        assert (entries.entry_of < 24).sum() == 24

    def test_missing_values_and_invalid_codes_do_not_count(self):
        column = np.array([0.0, 0.0, 1.0, np.nan, np.nan, np.nan, -1.0, -1.0])
        np.testing.assert_array_equal(
            in_memory.place_categories(column, np.ones(8), 2, 1).entry_of, [0, 2]
        )

    def test_in_a_pair_only_the_most_frequent_have_an_entry(self):
        # Categories with 1, 2, ..., 40 rows: the last 24 have their own entry in a grid.
        column = np.repeat(np.arange(40.0), np.arange(1, 41))
        columns = np.column_stack([column, np.arange(len(column)) % 7])
        weight, alone = np.ones(len(column)), Categories(np.arange(40), 40)
        (grid,) = in_memory.place_grids(columns, weight, [(0, 1)], {0: alone})
        assert grid.shape[0] == 24 + 2
        assert (grid.axes[0].entry_of[:16] == 25).all()
        np.testing.assert_array_equal(grid.axes[0].entry_of[16:], np.arange(24))
        # With few categories all have one.
        (grid,) = in_memory.place_grids(
            columns % 20, weight, [(0, 1)], {0: Categories(np.arange(20), 20)}
        )
        assert grid.shape[0] == 20 + 2


class TestPrepare:
    def made(self, columns, n_levels):
        y = np.random.default_rng(0).standard_normal(len(columns))
        weight = np.ones(len(y))
        return in_memory.prepared(columns, y, weight, LIKELIHOODS["gaussian"], Options(), n_levels)

    def test_columns_of_codes_have_categories_and_no_levels(self):
        rng = np.random.default_rng(1)
        columns = np.column_stack([rng.standard_normal(30), rng.integers(0, 3, 30)])
        found = self.made(columns, [-1, 5])
        assert [term.kind for term in found.terms] == ["smooth", "categorical"]
        assert set(found.categories) == {1}
        assert set(found.levels) == {0}
        assert len(found.categories[1]) == 5 + 2

    def test_one_category_is_constant_unless_some_are_missing(self):
        columns = np.zeros((30, 2))
        columns[:5, 1] = np.nan
        found = self.made(columns, [1, 1])
        assert found.unused == {0: CONSTANT}
        assert [term.features for term in found.terms] == [(1,)]

    def test_numbers_are_no_duplicate_of_equal_codes(self):
        codes = np.random.default_rng(1).integers(0, 3, 30).astype(float)
        columns = np.column_stack([codes, codes])
        assert self.made(columns, [-1, 3]).unused == {}
        assert self.made(columns, [3, -1]).unused == {}
        assert self.made(columns, [3, 3]).unused == {1: DUPLICATE}

    def test_each_kind_has_its_own_duplicates(self):
        codes = np.random.default_rng(1).integers(0, 3, 30).astype(float)
        columns = np.column_stack([codes] * 4)
        assert self.made(columns, [-1, 3, 3, -1]).unused == {2: DUPLICATE, 3: DUPLICATE}


# closed form


def regression_of(columns, y, weight, n_levels, precision, noise):
    """A problem of one column of codes at given hyperparameters, in the response's units."""
    prepared = in_memory.prepared(columns, y, weight, LIKELIHOODS["gaussian"], QUICK, n_levels)
    problem = Problem.of(prepared.terms, prepared.rows, prepared.units.likelihood)
    rng = np.random.default_rng(0)
    known = tuple(
        replace(problem.initial_term(k, rng), precision=np.array([precision]))
        for k in range(len(problem.terms))
    )
    return prepared, problem, State(known, 0.0, noise)


@pytest.mark.usefixtures("given_hyperparameters")
class TestClosedForm:
    def test_is_the_ridge_regression_on_indicators(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 5, 90).astype(float)
        codes[rng.uniform(size=90) < 0.1] = np.nan
        # A sixth category without rows.
        y, weight = rng.standard_normal(90), rng.uniform(0.5, 2.0, 90)
        y = y + np.nan_to_num(codes)
        prepared, problem, state = regression_of(codes[:, None], y, weight, [6], 3.0, 0.4)
        found = posterior.ExactCurvature().solution(problem, state)
        indicators = entry_matrix(prepared.categories[0], codes)
        share = weight @ indicators / weight.sum()
        table = np.eye(8) - share
        standard = (y - np.average(y, weights=weight)) / prepared.units.scale
        dense = DensePosterior(indicators @ table, np.full(8, 3.0), standard, weight, 0.4)
        assert_close(found.means[0], table @ dense.mean[:-1], "conditioning")
        assert_close(found.evidence, dense.log_evidence, "conditioning")
        covariance = table @ dense.covariance[:-1, :-1] @ table.T
        made = found.tables[0] @ found.covariance[:-1, :-1] @ found.tables[0].T
        assert_close(made, covariance, "conditioning")
        # A category without rows and any unseen one have the same, largest variance.
        assert found.means[0][5] == pytest.approx(found.means[0][7])
        sd = np.sqrt(np.diag(made))
        assert sd[5] == pytest.approx(sd[7])
        assert (np.delete(sd, [5, 7]) < sd[7]).all()

    def test_shrinks_group_means_as_textbooks_do(self):
        # With n rows per category: (mean of the category - mean of all) n / (n + noise * precision).
        rng = np.random.default_rng(1)
        codes = np.repeat(np.arange(7.0), 5)
        y = rng.standard_normal(7)[codes.astype(int)] + rng.standard_normal(35)
        prepared, problem, state = regression_of(codes[:, None], y, np.ones(35), [7], 2.0, 0.5)
        found = posterior.ExactCurvature().solution(problem, state)
        standard = (y - y.mean()) / prepared.units.scale
        expected = standard.reshape(7, 5).mean(axis=1) * 5.0 / (5.0 + 0.5 * 2.0)
        assert_close(found.means[0][:7], expected, "conditioning")


# fits


def shop_data(likelihood="gaussian", seed=0):
    """Categories of very different frequency, a curve, and their interaction."""
    rng = np.random.default_rng(seed)
    n = 600
    codes = rng.choice(8, n, p=[0.3, 0.25, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01])
    other = rng.integers(0, 4, n)
    x = rng.uniform(-2.0, 2.0, n)
    f = rng.standard_normal(8)[codes] + np.sin(2.0 * x) + 0.8 * rng.standard_normal(8)[codes] * x
    f += 0.8 * rng.standard_normal((8, 4))[codes, other]
    columns = np.column_stack([codes, x, other]).astype(float)
    if likelihood == "gaussian":
        return columns, f + 0.5 * rng.standard_normal(n)
    return columns, (rng.uniform(size=n) < expit(2.0 * f)).astype(float)


N_LEVELS = (8, -1, 4)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("asked", [0, ((0, 2),), ((0, 1),)], ids=["alone", "cells", "curves"])
@pytest.mark.usefixtures("lossless")
def test_names_of_categories_do_not_matter(likelihood, asked):
    columns, y = shop_data(likelihood)
    # Missing values keep their entry whatever the codes are.
    columns[::17, 0] = np.nan
    options = replace(QUICK, interactions=asked)
    order = np.random.default_rng(5).permutation(8)
    gone = np.isnan(columns[:, 0])
    renamed = columns.copy()
    renamed[~gone, 0] = order[columns[~gone, 0].astype(int)]
    before, after = (fit(c, y, N_LEVELS, None, likelihood, options) for c in (columns, renamed))
    # Sums and factorisations in another order, over the passes of a fit.
    assert after.log_evidence == pytest.approx(before.log_evidence, abs=1e-4)
    np.testing.assert_allclose(
        scoring.link_moments(after, renamed), scoring.link_moments(before, columns), atol=1e-4
    )
    permuted = np.concatenate([order, [8, 9]])
    np.testing.assert_allclose(term_of(after, 0).mean[permuted], term_of(before, 0).mean, atol=1e-4)
    if asked:
        old, new = (term_of(model, *asked[0]) for model in (before, after))
        shape = old.entries.shape
        assert shape[0] == 10
        found = new.mean.reshape(shape)[permuted]
        np.testing.assert_allclose(found, old.mean.reshape(shape), atol=1e-4)


@pytest.fixture(scope="module")
def model():
    columns, y = shop_data()
    # The rows of the last category have weight zero; one more category has no rows.
    weight = np.where(columns[:, 0] == 7.0, 0.0, 1.0)
    return fit(columns, y, (9, -1, 4), weight)


class TestLevels:
    def test_rare_categories_shrink_more(self):
        # One category with a thousand rows and one with three, with the same mean.
        rng = np.random.default_rng(0)
        codes = np.repeat(np.arange(12.0), [300, 3] + [50] * 10)
        effect = np.concatenate([[1.0, 1.0], rng.standard_normal(10)])
        noise = rng.standard_normal(len(codes))
        # The noise of a category has mean zero, so that the difference is shrinkage.
        for level in range(12):
            noise[codes == level] -= noise[codes == level].mean()
        model = fit(codes[:, None], effect[codes.astype(int)] + noise, [12])
        mean, variance = scoring.entry_moments(model, 0)
        # Categories are shrunk to the effect of an unseen one.
        frequent, rare = mean[:2] - mean[-1]
        assert 0.0 < rare < 0.95 * frequent
        assert variance[1] > 10.0 * variance[0]

    def test_unseen_categories_have_the_prior_mean_and_the_widest_band(self, model):
        rows = np.column_stack([[-1.0, 9.0, 1e6, 8.0], np.zeros(4), np.zeros(4)])
        position = [t.features for t in model.terms].index((0,))
        mean = scoring.term_means(model, rows)[:, position]
        variance = scoring.term_variances(model, rows)[:, position]
        np.testing.assert_allclose(mean, mean[0], atol=1e-12)
        np.testing.assert_allclose(variance, variance[0])
        entry_mean, entry_variance = scoring.entry_moments(model, position)
        assert entry_mean[-1] == mean[0]
        seen = entry_variance[:7]
        assert (seen < 0.5 * variance[0]).all()
        # An unseen category is drawn from the prior: its effect is zero before centring, which
        # shifts it by the mean of the seen ones (method.md 5), and within their range.
        assert np.abs(mean[0]) < np.abs(entry_mean[:7]).max()
        # Its variance is that of the prior, plus that of the mean.
        prior = model_variance(model, position)
        assert prior < variance[0] < 2.0 * prior

    def test_a_category_of_weight_zero_is_an_unseen_one(self, model):
        rows = np.column_stack([[7.0, 8.0, -1.0], np.zeros(3), np.zeros(3)])
        mean, variance = scoring.link_moments(model, rows)
        np.testing.assert_allclose(mean, mean[-1])
        np.testing.assert_allclose(variance, variance[-1])

    def test_rows_of_weight_zero_have_no_effect(self, model):
        columns, y = shop_data()
        kept = columns[:, 0] != 7.0
        without = fit(columns[kept], y[kept], (9, -1, 4))
        # The values of their other columns still are among the knots.
        assert without.log_evidence == pytest.approx(model.log_evidence, abs=1e-3)

    def test_missing_values_at_prediction_only_are_an_unseen_category(self, model):
        rows = np.column_stack([[np.nan, -1.0], np.zeros(2), np.zeros(2)])
        mean, variance = scoring.link_moments(model, rows)
        assert mean[0] == pytest.approx(mean[1])
        assert variance[0] == pytest.approx(variance[1])

    def test_a_weight_is_a_repetition(self):
        columns, y = shop_data()
        often = np.random.default_rng(1).integers(1, 4, len(y))
        weighted = fit(columns, y, N_LEVELS, often.astype(float))
        twice = np.repeat(columns, often, axis=0), np.repeat(y, often)
        repeated = fit(*twice, N_LEVELS)
        assert repeated.log_evidence == pytest.approx(weighted.log_evidence, abs=1e-4)
        a, b = (scoring.link_moments(model, columns) for model in (weighted, repeated))
        np.testing.assert_allclose(a, b, atol=1e-5)

    def test_categories_without_an_effect_are_dropped(self):
        rng = np.random.default_rng(3)
        columns = np.column_stack([rng.integers(0, 10, 400), rng.standard_normal(400)])
        model = fit(columns, columns[:, 1] + rng.standard_normal(400), [10, -1])
        (term,) = [t for t in model.terms if t.features == (0,)]
        assert term.kind == "categorical"
        assert term.status != ACTIVE
        assert isinstance(term.entries, Categories)


def model_variance(model, position):
    """Prior variance of a category's effect in the response's units."""
    term = model.terms[position]
    # In the core's units the table is that of centred indicators over the root of the precision.
    scale = np.abs(term.table).max() * np.sqrt(term.precision[0])
    return scale**2 / term.precision[0]
