"""Counts: rates, exposures, weights, quantiles of new counts, messages."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from scipy.stats import norm, poisson
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import r2_score

from lanam import LANAMRegressor, coverage_report
from lanam.families import POISSON, Encoding
from lanam.metrics import retention_of


def counts_model(**options):
    return LANAMRegressor(likelihood="poisson", random_state=0, **options)


def make(n_rows, seed=0, base=0.5):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(n_rows, 3)), columns=["a", "b", "noise"])
    hours = rng.uniform(0.2, 5.0, size=n_rows)
    rate = np.exp(base + np.sin(2 * X["a"]) + 0.3 * X["b"]).to_numpy()
    return X, hours, rate, rng.poisson(hours * rate)


@pytest.fixture(scope="module")
def data():
    return make(600)


@pytest.fixture(scope="module")
def fresh():
    return make(4000, seed=1)


@pytest.fixture(scope="module")
def model(data):
    X, hours, _, y = data
    return counts_model().fit(X, y, exposure=hours)


def new_rates(model, X, hours, n_samples):
    """Draws of the rates of new counts: those of the mean, and what counts vary beyond Poisson."""
    draws = model.sample(X, n_samples=n_samples, random_state=0, exposure=hours)
    variance = np.log1p((model.dispersion_ - 1.0) / model.predict(X, exposure=hours))
    normal = np.random.default_rng(1).standard_normal(draws.shape)
    return draws * np.exp(np.sqrt(variance) * normal - 0.5 * variance)


def log_rate(model, X):
    return model.intercept_ + model.predict_terms(X).sum(axis=1)


class TestRates:
    def test_the_functions_are_found_on_the_log_scale(self, model, fresh):
        X, _, rate, _ = fresh
        assert [term.active for term in model.terms_[:3]] == [True, True, False]
        error = log_rate(model, X) - np.log(rate)
        # 600 rows with some 3000 events.
        assert np.sqrt(np.mean(error**2)) < 0.1

    def test_without_columns_that_matter_it_is_the_events_by_the_hours(self):
        rng = np.random.default_rng(0)
        hours, weight = rng.uniform(0.5, 2.0, size=200), rng.uniform(0.5, 2.0, size=200)
        y = rng.poisson(3.0 * hours)
        X = np.zeros((200, 1))
        model = counts_model().fit(X, y, sample_weight=weight, exposure=hours)
        rate = (weight @ y) / (weight @ hours)
        # The core stops within 1e-8 of its optimum.
        assert model.intercept_ == pytest.approx(np.log(rate), abs=1e-8)
        # The dispersion is Pearson's statistic by the degrees of freedom.
        expected = rate * hours
        dispersion = weight @ ((y - expected) ** 2 / expected) / (weight.sum() - 1.0)
        assert model.dispersion_ == pytest.approx(dispersion, rel=1e-6)
        # The posterior of the logarithm is as narrow as the events are many.
        interval = np.log(model.predict_interval(X[:1], coverage=0.5, kind="mean"))
        spread = norm.ppf(0.75) * np.sqrt(dispersion / (weight @ y))
        # The dispersion is estimated, the variance of its logarithm 2 by the sum of the weights.
        spread *= np.sqrt(1.0 + 0.5 / weight.sum())
        # (That variance is from the deviance.)
        np.testing.assert_allclose(
            interval[0], np.log(rate) + spread * np.array([-1.0, 1.0]), rtol=1e-5
        )
        # With a flat prior of the intercept the evidence is the likelihood at its best, with the
        # deviance divided by its own dispersion (extended quasi-likelihood).
        deviance = 2.0 * (xlogy(y, y / expected) - y + expected)
        dispersion = weight @ deviance / (weight.sum() - 1.0)
        expected = weight @ (
            poisson.logpmf(y, rate * hours)
            + 0.5 * deviance * (1.0 - 1.0 / dispersion)
            - 0.5 * np.log(dispersion)
        )
        assert model.log_evidence_ == pytest.approx(expected, rel=1e-9)
        assert model.history_[-1]["log_evidence"] == pytest.approx(expected, rel=1e-9)

    def test_a_log_linear_rate_is_that_of_scikit_learns_regression(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(2000, 2))
        hours = rng.uniform(0.5, 2.0, size=2000)
        y = rng.poisson(hours * np.exp(1.0 + X[:, 0] - 0.5 * X[:, 1]))
        linear = PoissonRegressor(alpha=0.0).fit(X, y / hours, sample_weight=hours)
        model = counts_model().fit(X, y, exposure=hours)
        # Bands of the log rate are about 0.03 wide; curves may bend within them.
        ratio = model.predict(X) / linear.predict(X)
        assert np.sqrt(np.mean(np.log(ratio) ** 2)) < 0.02

    def test_terms_and_intercept_sum_to_the_log_rate_and_variance_lifts_the_mean(self, model, data):
        X, hours, _, _ = data
        draws = model.sample(X, n_samples=4000, random_state=0, exposure=hours)
        mean = model.predict(X, exposure=hours)
        error = draws.std(axis=0) / np.sqrt(4000)
        assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
        assert (mean > hours * np.exp(log_rate(model, X))).all()

    def test_large_counts(self):
        X, hours, rate, y = make(400, base=11.0)
        model = counts_model().fit(X, y, exposure=hours)
        np.testing.assert_allclose(model.predict(X), rate, rtol=0.01)

    @pytest.mark.parametrize(
        "options",
        [
            {"posterior": "block"},
            {"posterior": "block", "curvature": "kron"},
            {"posterior": "block", "curvature": "kron", "solver": "adam", "max_iter": 5},
            {"evidence_update": "gradient"},
        ],
    )
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_papers_variants_know_counts(self, data, fresh, options):
        X, hours, _, y = data
        model = counts_model(interactions=0, **options).fit(X[:300], y[:300], exposure=hours[:300])
        X, _, rate, _ = fresh
        # All find the same functions, some less well.
        assert np.corrcoef(log_rate(model, X), np.log(rate))[0, 1] > 0.95

    def test_pairs_of_columns(self):
        rng = np.random.default_rng(0)
        X, hours = rng.uniform(-2, 2, size=(500, 3)), rng.uniform(0.5, 2.0, size=500)
        y = rng.poisson(hours * np.exp(1.0 + 0.4 * X[:, 0] * X[:, 2]))
        at_once = counts_model().fit(X, y, exposure=hours)
        later = counts_model(interactions=0).fit(X, y, exposure=hours)
        main = later.log_evidence_
        later.add_interactions(X, y, exposure=hours)
        for model in (at_once, later):
            assert [t.name for t in model.terms_ if t.kind == "pair"] == ["x0 x x2"]
            assert model.log_evidence_ > main + 50.0
            evidences = [record["log_evidence"] for record in model.history_]
            assert max(np.abs(np.diff(evidences))) < 500.0  # all of the counts, none of the core's
        np.testing.assert_allclose(later.predict(X), at_once.predict(X), rtol=0.1)


class TestExposure:
    def test_its_unit_moves_the_intercept_and_nothing_else(self, model, data):
        X, hours, _, y = data
        minutes = counts_model().fit(X, y, exposure=60.0 * hours)
        assert minutes.intercept_ == pytest.approx(model.intercept_ - np.log(60.0), rel=1e-9)
        assert minutes.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-9)
        assert minutes.n_iter_ == model.n_iter_
        np.testing.assert_allclose(minutes.predict_terms(X), model.predict_terms(X), atol=1e-7)
        for kind in ("response", "mean"):
            np.testing.assert_allclose(
                minutes.predict_interval(X, kind=kind, exposure=60.0 * hours),
                model.predict_interval(X, kind=kind, exposure=hours),
                rtol=1e-6,
            )

    def test_an_hour_can_be_two_halves(self, data):
        # Events of Poisson's process can be split: only the ways to share them out are lost.
        X, hours, _, y = data
        X, hours, y = X[:200], hours[:200], y[:200]
        first = np.random.default_rng(0).binomial(y, 0.3)
        whole = counts_model(interactions=0).fit(X, y, exposure=hours)
        parts = counts_model(interactions=0).fit(
            pd.concat([X, X]), np.r_[first, y - first], exposure=np.r_[0.3 * hours, 0.7 * hours]
        )
        np.testing.assert_allclose(log_rate(parts, X), log_rate(whole, X), atol=0.02)

    def test_one_number_for_all_rows(self, data):
        X, _, _, y = data
        one, all_rows = counts_model(interactions=0), counts_model(interactions=0)
        one.fit(X, y, exposure=2)
        all_rows.fit(X, y, exposure=np.full(len(y), 2.0))
        np.testing.assert_array_equal(one.predict(X), all_rows.predict(X))
        np.testing.assert_allclose(one.predict(X, exposure=np.float32(2.0)), 2.0 * one.predict(X))

    def test_without_any_it_is_one(self, data):
        X, _, _, y = data
        none, one = counts_model(interactions=0).fit(X, y), counts_model(interactions=0)
        one.fit(X, y, exposure=1.0)
        assert none.log_evidence_ == one.log_evidence_
        np.testing.assert_array_equal(none.predict(X), one.predict(X))

    def test_a_weight_is_a_repetition(self, data):
        X, hours, _, y = data
        X, hours, y = X[:150], hours[:150], y[:150]
        weight = np.arange(150) % 3
        weighted = counts_model(interactions=0).fit(X, y, sample_weight=weight, exposure=hours)
        again = np.repeat(np.arange(150), weight)
        repeated = counts_model(interactions=0).fit(X.iloc[again], y[again], exposure=hours[again])
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-6)
        np.testing.assert_allclose(log_rate(weighted, X), log_rate(repeated, X), atol=1e-3)

    def test_the_core_is_given_the_total_weight_that_there_was(self):
        rng = np.random.default_rng(0)
        y, weight = rng.poisson(2.0, size=30).astype(float), rng.uniform(0.5, 2.0, size=30)
        rows = y, weight, rng.uniform(1e3, 1e5, size=30)
        rate, mass = POISSON.encoding(POISSON.statistics(*rows)).response(*rows)[:2]
        assert mass.sum() == pytest.approx(weight.sum())
        np.testing.assert_allclose(rate * mass, y * weight)

    def test_back_and_forth_is_the_same_model(self, model):
        seen = Encoding(POISSON, log_unit=3.0, constant=-100.0)
        again = seen.to_user(seen.to_core(model._model))
        assert again.intercept == pytest.approx(model.intercept_)
        assert again.log_evidence == pytest.approx(model.log_evidence_)
        moved = seen.to_user(model._model)
        assert moved.intercept == pytest.approx(model.intercept_ - 3.0)
        assert moved.history[0]["log_evidence"] == model.history_[0]["log_evidence"] - 100.0


class TestNewCounts:
    def test_intervals_hold_as_many_new_counts_as_they_say(self, model, fresh):
        X, hours, _, y = fresh
        for coverage in (0.5, 0.9):
            interval = model.predict_interval(X, coverage=coverage, exposure=hours)
            lower, upper = interval.T
            np.testing.assert_array_equal(interval, np.floor(interval))
            within = ((lower <= y) & (y <= upper)).mean()
            assert within > coverage - 0.02
            # What whole numbers add is half of the mass at either end.
            _, std = model.predict(X, return_std=True, exposure=hours)
            inner = ((lower < y) & (y < upper)).mean()
            assert inner < coverage + 0.02
            assert np.corrcoef(upper - lower, std)[0, 1] > 0.95

    def test_large_counts_have_intervals_of_the_coverage(self):
        X, hours, _, y = make(600, base=4.0)
        model = counts_model().fit(X, y, exposure=hours)
        X, hours, _, y = make(4000, seed=1, base=4.0)
        lower, upper = model.predict_interval(X, coverage=0.9, exposure=hours).T
        # The share of 4000 is known to 0.005, and the bounds belong to the interval.
        assert ((lower <= y) & (y <= upper)).mean() == pytest.approx(0.91, abs=0.02)

    def test_the_standard_deviation_is_that_of_new_counts(self, model, fresh):
        X, hours, _, y = fresh
        mean, std = model.predict(X, return_std=True, exposure=hours)
        np.testing.assert_array_equal(mean, model.predict(X, exposure=hours))
        assert (std > np.sqrt(mean)).all()
        assert np.mean(((y - mean) / std) ** 2) == pytest.approx(1.0, abs=0.1)

    def test_quantiles_are_those_of_counts_drawn_from_drawn_rates(self, model, fresh):
        X, hours = fresh[0][:20], fresh[1][:20]
        rng = np.random.default_rng(0)
        draws = rng.poisson(new_rates(model, X, hours, 20_000))
        found = model.predict_quantile(X, (0.1, 0.5, 0.9), exposure=hours)
        assert found.shape == (20, 3)
        for column, probability in zip(found.T, (0.1, 0.5, 0.9), strict=True):
            # The smallest count with the probability, up to the error of 20000 draws.
            assert ((draws <= column).mean(axis=0) > probability - 0.015).all()
            assert ((draws < column).mean(axis=0) < probability + 0.015).all()

    def test_intervals_are_quantiles(self, model, data):
        X, hours, _, _ = data
        np.testing.assert_array_equal(
            model.predict_interval(X, coverage=0.9, exposure=hours),
            model.predict_quantile(X, (0.05, 0.95), exposure=hours),
        )

    def test_quantiles_of_the_mean_are_those_of_draws(self, model, data):
        X, hours = data[0][:20], data[1][:20]
        draws = model.sample(X, n_samples=20_000, random_state=0, exposure=hours)
        expected = np.quantile(draws, [0.05, 0.95], axis=0).T
        found = model.predict_interval(X, coverage=0.9, kind="mean", exposure=hours)
        np.testing.assert_allclose(found, expected, rtol=0.02)

    def test_log_likelihood_is_the_density_averaged_over_draws(self, model, fresh):
        X, hours, y = fresh[0][:300], fresh[1][:300], fresh[3][:300]
        expected = np.log(poisson.pmf(y, new_rates(model, X, hours, 4000)).mean(axis=0))
        weight = np.arange(300) % 2
        found = model.log_likelihood(X, y, exposure=hours)
        assert found == pytest.approx(expected.mean(), abs=2e-3)
        half = model.log_likelihood(X, y, sample_weight=weight, exposure=hours)
        assert half == pytest.approx(expected[1::2].mean(), abs=2e-3)

    def test_score_is_of_the_counts(self, model, fresh):
        X, hours, _, y = fresh
        expected = r2_score(y, model.predict(X, exposure=hours))
        assert model.score(X, y, exposure=hours) == expected
        assert model.score(X, y, exposure=1.0) < expected

    def test_there_is_no_noise_of_one_size(self, model):
        assert np.isnan(model.noise_std_)
        assert "noise" not in str(model.summary()).splitlines()[1]
        assert model.summary().to_dict()["noise_std"] is None


def clustered(mean, rng):
    """Counts of clusters: their variance is three times their mean."""
    return rng.negative_binomial(mean / 2.0, 1.0 / 3.0)


@pytest.fixture(scope="module")
def clusters():
    X, hours, rate, _ = make(1000, base=2.0)
    y = clustered(hours * rate, np.random.default_rng(2))
    return counts_model().fit(X, y, exposure=hours)


class TestDispersion:
    def test_it_is_found(self, clusters, model):
        # The deviance of 1000 counts knows it to about a twentieth, and is a little high.
        assert clusters.dispersion_ == pytest.approx(3.0, rel=0.15)
        assert model.dispersion_ == pytest.approx(1.0, abs=0.2)
        assert clusters.summary().to_dict()["dispersion"] == clusters.dispersion_

    def test_new_counts_lie_in_their_intervals_all_the_same(self, clusters):
        X, hours, rate, _ = make(4000, seed=3, base=2.0)
        y = clustered(hours * rate, np.random.default_rng(4))
        for coverage in (0.5, 0.9, 0.95):
            lower, upper = clusters.predict_interval(X, coverage=coverage, exposure=hours).T
            # Both bounds belong to the interval, by which it holds a little more.
            assert coverage - 0.02 < ((lower <= y) & (y <= upper)).mean() < coverage + 0.07
        mean, std = clusters.predict(X, return_std=True, exposure=hours)
        assert np.mean(((y - mean) / std) ** 2) == pytest.approx(1.0, abs=0.15)
        density = clusters.log_likelihood(X, y, exposure=hours)
        assert density > poisson.logpmf(y, mean).mean() + 0.3

    def test_bands_of_the_rate_cover_it(self, clusters):
        X, _, rate, _ = make(4000, seed=3, base=2.0)
        lower, upper = clusters.predict_interval(X, kind="mean").T
        # Rows share three functions, so the share that is covered varies much.
        assert ((lower < rate) & (rate < upper)).mean() > 0.85

    def test_noise_makes_no_terms(self, clusters):
        assert [term.name for term in clusters.terms_ if term.active] == ["a", "b"]

    @pytest.mark.parametrize(
        "options",
        [
            {"posterior": "block"},
            {"posterior": "block", "curvature": "kron"},
            {"evidence_update": "gradient"},
        ],
    )
    def test_the_papers_variants_find_it(self, options):
        X, hours, rate, _ = make(1000, base=2.0)
        y = clustered(hours * rate, np.random.default_rng(2))
        model = counts_model(interactions=0, **options).fit(X, y, exposure=hours)
        assert model.dispersion_ == pytest.approx(3.0, rel=0.2)

    def test_counts_that_vary_less_are_poissons(self):
        X = np.linspace(-1.0, 1.0, 300)[:, None]
        model = counts_model().fit(X, np.round(20.0 * np.exp(X[:, 0])))
        assert model.dispersion_ == 1.0

    def test_numbers_have_none(self, data):
        X, _, rate, _ = data
        model = LANAMRegressor(interactions=0, random_state=0).fit(X[:100], rate[:100])
        assert np.isnan(model.dispersion_)


class TestQuantilesOfNumbers:
    def test_they_include_the_noise(self, data):
        X, _, rate, _ = data
        y = rate + np.random.default_rng(0).standard_normal(len(rate))
        model = LANAMRegressor(random_state=0).fit(X, y)
        mean, std = model.predict(X, return_std=True)
        expected = norm.ppf([0.2, 0.7], mean[:, None], std[:, None])
        np.testing.assert_allclose(model.predict_quantile(X, [0.2, 0.7]), expected)
        np.testing.assert_allclose(model.predict_quantile(X, 0.5)[:, 0], mean)
        with pytest.raises(ValueError, match="between 0 and 1, and one is"):
            model.predict_quantile(X, [0.5, 95])
        for method in (model.predict, model.predict_interval, model.predict_quantile, model.sample):
            with pytest.raises(ValueError, match="exposure is for counts, and"):
                method(X, exposure=2.0)


class TestMessages:
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 1, -2, 3], "negative values: 1 of 4, the first, -2, in row 3"),
            ([0, 1, 0.5, 3], "not whole numbers: 1 of 4.* pass the counts as y .* exposure"),
            ([0, 0, 0, 0], "zero in every row .* Gather rows until there is an event"),
            ([0, 1, np.nan, 3], "Input y contains NaN"),
            ([0, 1, np.inf, 3], "Input y contains infinity"),
        ],
    )
    def test_targets_that_are_no_counts(self, y, message):
        with pytest.raises(ValueError, match=message):
            counts_model().fit(np.arange(4.0)[:, None], y)

    def test_events_in_rows_that_do_not_count(self):
        with pytest.raises(ValueError, match="zero in every row with a positive weight"):
            counts_model().fit(np.arange(4.0)[:, None], [0, 0, 0, 5], sample_weight=[1, 1, 1, 0])

    @pytest.mark.parametrize(
        ("exposure", "message"),
        [
            (
                [1.0, 2.0, 0.0, 1.0],
                "1 of 4 values are not, the first, 0, in row 3 .counting from 1.. Leave out",
            ),
            ([1.0, -2.0, 0.0, 1.0], "2 of 4 values are not, the first, -2, in row 2"),
            ([1.0, np.nan, 1.0, 1.0], "Input exposure contains NaN"),
            ([1.0, np.inf, 1.0, 1.0], "Input exposure contains infinity"),
            ([1.0, 2.0], r"X has 4 rows, and exposure has the shape \(2,\)"),
            (np.ones((4, 1)), r"exposure has the shape \(4, 1\)"),
            (-1.0, "4 of 4 values are not"),
            ([1.0, 1e200, 1.0, 1.0], "change its unit"),
        ],
    )
    def test_exposures_that_are_none(self, exposure, message):
        X = np.arange(4.0)[:, None]
        with pytest.raises(ValueError, match=message):
            counts_model().fit(X, [0, 1, 2, 3], exposure=exposure)

    def test_exposures_of_new_rows_are_checked_too(self, model, data):
        X, hours, _, y = data
        for method in (model.predict, model.predict_interval, model.predict_quantile, model.sample):
            with pytest.raises(ValueError, match="exposure must be positive"):
                method(X, exposure=0.0)
            with pytest.raises(ValueError, match="one number, or one per row"):
                method(X[:3], exposure=hours)
        with pytest.raises(ValueError, match="values that are not whole"):
            model.log_likelihood(X, y + 0.5, exposure=hours)

    def test_numbers_have_no_exposure(self, data):
        X, hours, _, y = data
        with pytest.raises(ValueError, match="set likelihood='poisson', or leave exposure out"):
            LANAMRegressor().fit(X, y, exposure=hours)


def test_changing_the_argument_does_not_change_a_fitted_model(model, data):
    X, hours, _, _ = data
    before = model.predict(X, exposure=hours)
    model.set_params(likelihood="gaussian")
    try:
        np.testing.assert_array_equal(model.predict(X, exposure=hours), before)
    finally:
        model.set_params(likelihood="poisson")


def test_counts_through_a_pipeline_and_a_frame_of_contributions(data):
    X, hours, _, y = data
    model = counts_model(interactions=0).set_output(transform="polars")
    terms = model.fit_transform(X, y, exposure=hours)
    assert terms.columns == list(model.get_feature_names_out())
    np.testing.assert_array_equal(terms.to_numpy(), model.predict_terms(X))


def clone_of(model):
    return pickle.loads(pickle.dumps(model))


CALLS = {
    "score": lambda model, X, y, **more: model.score(X, y, **more),
    "log_likelihood": lambda model, X, y, **more: model.log_likelihood(X, y, **more),
    "predict_cdf": lambda model, X, y, **more: model.predict_cdf(X, y, **more),
    "calibrate": lambda model, X, y, **more: clone_of(model).calibrate(X, y, **more),
    "add_interactions": lambda model, X, y, **more: clone_of(model).add_interactions(
        X, y, 0, **more
    ),
    "coverage_report": coverage_report,
    "retention_of": retention_of,
}


class TestForgottenExposure:
    """Counts over years against rates of a year would say that the model is all wrong."""

    @pytest.mark.parametrize("name", CALLS)
    def test_it_is_refused_where_counts_are_given(self, model, fresh, name):
        X, hours, _, y = (part[:50] for part in fresh)
        call = CALLS[name]
        with pytest.raises(
            ValueError, match=r"fitted with an exposure.*exposure=\.\.\., or exposure=1"
        ):
            call(model, X, y)
        call(model, X, y, exposure=hours)
        call(model, X, y, exposure=1.0)

    def test_it_is_refused_in_a_report(self, model, fresh, tmp_path):
        X, _, _, y = (part[:50] for part in fresh)
        with pytest.raises(ValueError, match="fitted with an exposure"):
            model.report(tmp_path / "report.html", X, y)
        assert not list(tmp_path.iterdir())
        model.report(tmp_path / "report.html", X)  # rates

    def test_rates_are_predicted_without(self, model, fresh):
        X = fresh[0][:5]
        np.testing.assert_array_equal(model.predict(X), model.predict(X, exposure=1.0))

    def test_models_without_one_need_none(self, fresh):
        X, _, _, y = (part[:200] for part in fresh)
        for exposure in (None, 1.0, np.ones(200)):
            counts_model().fit(X, y, exposure=exposure).score(X, y)
        again = counts_model().fit(X, y, exposure=2.0)
        for copied in (again, pickle.loads(pickle.dumps(again)), again.edit_term("a", "zero")):
            with pytest.raises(ValueError, match="fitted with an exposure"):
                copied.score(X, y)
        again.fit(X, y).score(X, y)
