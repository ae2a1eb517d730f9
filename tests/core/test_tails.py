"""Gross errors: found by what other rows predict, without weight for the mean, part of the noise."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm

from lanam import LANAMRegressor
from lanam.core.model.mixtures import GAUSSIAN
from lanam.core.noise.tails import LocalNoise, Residuals, fit_tails

pd = pytest.importorskip("pandas", reason="tables of these tests are frames")


def _residuals(values, weight=None, prediction=None, variance=None):
    zeros, ones = np.zeros(len(values)), np.ones(len(values))
    given = (prediction, variance, ones, weight)
    defaults = (zeros, zeros, ones, ones)
    return Residuals(values, *(d if g is None else g for g, d in zip(given, defaults, strict=True)))


def _with_errors(n=300, n_errors=15, size=40.0, seed=0):
    values = np.random.default_rng(seed).standard_normal(n)
    values[:n_errors] += size
    return values


class TestTails:
    def test_gross_errors_have_no_weight(self):
        residuals = _residuals(_with_errors())
        tails = fit_tails(residuals)
        reliability, _ = tails.reliability(residuals)
        assert reliability[:15].max() < 0.005
        assert np.sort(reliability[15:])[5] > 0.8
        assert tails.noise == pytest.approx(1.0, rel=0.15)
        assert tails.probabilities[0] == pytest.approx(0.95, abs=0.01)

    def test_gaussian_residuals_have_no_errors(self):
        for seed in range(10):
            tails = fit_tails(_residuals(_with_errors(n_errors=0, seed=seed)))
            assert tails.probabilities[0] > 0.98

    def test_many_large_residuals_are_no_errors(self):
        tails = fit_tails(_residuals(_with_errors(n_errors=100)))
        assert tails.too_many
        assert tails.probabilities[0] == pytest.approx(0.8)

    def test_the_density_is_that_of_the_mixture(self):
        rng = np.random.default_rng(1)
        residuals = _residuals(_with_errors(size=12.0), variance=rng.uniform(0.0, 2.0, 300))
        tails = fit_tails(residuals)
        widths = np.append(1.0, 6.0 * 2.0 ** np.arange(0.0, 8.1, 0.5))
        stds = np.sqrt(tails.noise * widths**2 + residuals.variance[:, None])
        density = norm.pdf(residuals.values[:, None], 0.0, stds) @ tails.probabilities
        assert tails.log_likelihood(residuals) == pytest.approx(np.log(density).sum())

    def test_the_offset_bounds_the_log_likelihood(self):
        residuals = _residuals(_with_errors(size=12.0))
        tails = fit_tails(residuals)
        reliability, offset = tails.reliability(residuals)
        squares = reliability * residuals.values**2 / tails.noise
        weighted = -0.5 * (squares + np.log(2.0 * np.pi * tails.noise)) + offset
        # Without uncertain predictions the bound is tight.
        assert weighted.sum() == pytest.approx(tails.log_likelihood(residuals))

    def test_a_weight_is_a_repetition(self):
        values, often = _with_errors(), np.random.default_rng(1).integers(1, 3, 300)
        weighted = fit_tails(_residuals(values, often.astype(float)))
        repeated = fit_tails(_residuals(np.repeat(values, often)))
        assert repeated.noise == pytest.approx(weighted.noise)
        np.testing.assert_allclose(repeated.probabilities, weighted.probabilities, atol=1e-9)

    def test_an_uncertain_prediction_is_no_error(self):
        values = _with_errors(n_errors=1)
        variance = np.append(900.0, np.zeros(299))
        sure, unsure = _residuals(values), _residuals(values, variance=variance)
        assert fit_tails(sure).reliability(sure)[0][0] < 0.01
        assert fit_tails(unsure).reliability(unsure)[0][0] > 0.5

    def test_noise_that_grows_with_the_prediction_has_no_errors(self):
        rng = np.random.default_rng(0)
        prediction = np.linspace(0.0, 1.0, 1200)
        values = np.where(prediction > 0.9, 3.0, 1.0) * rng.standard_normal(1200)
        residuals = _residuals(values, prediction=prediction)
        local = LocalNoise.of(residuals)
        assert np.exp(local.log_factors[-1]) == pytest.approx(9.0, rel=0.5)
        assert fit_tails(residuals).reliability(residuals)[0][-60:].mean() > 0.9

    def test_the_noise_of_new_observations_has_them(self):
        residuals = _residuals(_with_errors(size=30.0))
        tails = fit_tails(residuals)
        factor, shape = tails.shape(GAUSSIAN, tails.noise, 300.0)
        assert factor * tails.noise == pytest.approx(np.mean(residuals.values**2), rel=0.1)
        assert shape.weights @ (shape.means**2 + shape.stds**2) == pytest.approx(1.0)

    @pytest.mark.parametrize("size", [1e-12, 1.0, 1e8])
    def test_exact_fits_to_most_rows(self, size):
        values = np.zeros(100)
        values[:3] = size
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            reliability, offset = fit_tails(_residuals(values)).reliability(_residuals(values))
        assert np.isfinite(reliability).all()
        assert np.isfinite(offset).all()


def _data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 40, (n, 3)) / 20.0 - 1.0, columns=["a", "b", "c"])
    truth = np.sin(3.0 * X["a"]) + X["b"]
    return X, truth.to_numpy(), truth.to_numpy() + 0.2 * rng.standard_normal(n)


def _contaminated(y, n_errors=15):
    wrong = y.copy()
    wrong[:n_errors] += 15.0 * y.std() * np.where(np.arange(n_errors) % 3, 1.0, -1.0)
    return wrong


def _fit(X, y, **options):
    return LANAMRegressor(**{"interactions": 0, "random_state": 0, "n_jobs": 1} | options).fit(X, y)


def _error(model, X, truth):
    return np.sqrt(np.mean(np.square(model.predict(X) - truth)))


@pytest.fixture(scope="module")
def robust():
    X, _, y = _data()
    return _fit(X, _contaminated(y))


class TestFits:
    def test_errors_mostly_on_one_side_are_errors_if_far_out_on_both(self):
        X, truth, y = _data()
        wrong = y.copy()
        wrong[:30] += 15.0 * y.std() * np.where(np.arange(30) % 5, 1.0, -1.0)
        model = _fit(X, wrong)
        assert _error(model, X, truth) < 1.2 * _error(_fit(X, y), X, truth)
        assert model.noise_std_ > 5.0 * 0.2  # they are part of the noise of new observations

    def test_large_responses_on_one_side_count_for_the_mean(self):
        X, _, y = _data()
        losses = y.copy()
        losses[:20] += 40.0 * np.random.default_rng(0).exponential(size=20)
        assert _fit(X, losses).predict(X).mean() == pytest.approx(losses.mean(), rel=1e-3)

    def test_errors_beside_noise_that_differs(self):
        # Between 0.5 and 1 the noise is many times larger: by the other rows' noise, errors are too many.
        rng = np.random.default_rng(3)
        X = rng.uniform(0.0, 1.0, (250, 2))
        truth = 60.0 * np.maximum(X[:, 0] - 0.5, 0.0) ** 2
        y = truth * np.exp(0.1 * rng.standard_normal(250)) + 0.05 * rng.standard_normal(250)
        distance = rng.uniform(10.0, 20.0, 25) * rng.choice([-1.0, 1.0], 25)
        y[:25] = y.mean() + distance * y.std()
        assert _error(_fit(X, y), X, truth) < 0.05 * truth.std()

    def test_gross_errors_hardly_move_the_mean(self, robust):
        X, truth, y = _data()
        clean, plain = _fit(X, y), _fit(X, _contaminated(y), noise="constant")
        assert _error(robust, X, truth) < 1.2 * _error(clean, X, truth)
        assert _error(plain, X, truth) > 4.0 * _error(robust, X, truth)
        assert robust.log_evidence_ > plain.log_evidence_ + 100.0
        # Bands are those of a fit without errors.
        widths = [
            model.predict_interval(X, coverage=0.5) @ [-1.0, 1.0] for model in (robust, clean)
        ]
        assert widths[0].mean() < 1.3 * widths[1].mean()

    def test_the_noise_of_new_observations_has_them(self, robust):
        X, truth, y = _data()
        assert robust.noise_std_ == pytest.approx(np.std(_contaminated(y) - truth), rel=0.25)
        fresh, _, clean = _data(4000, seed=1)
        assert robust.log_likelihood(fresh, clean) > _fit(X, y).log_likelihood(fresh, clean) - 0.1
        lower, upper = robust.predict_interval(fresh, coverage=0.8).T
        assert abs(np.mean((lower <= clean) & (clean <= upper)) - 0.84) < 0.05

    def test_gaussian_noise_is_left_as_it_is(self):
        for seed in range(3):
            X, _, y = _data(seed=seed)
            assert "errors" not in {record["stage"] for record in _fit(X, y).history_}

    def test_a_category_of_one_row_does_not_explain_its_error(self):
        X, truth, y = _data(n=400)
        X = X.assign(kind=np.resize(["u", "v", "w"], 400))
        X.loc[0, "kind"] = "alone"
        y[0] += 100.0
        model = _fit(X, y)
        assert _error(model, X.iloc[1:], truth[1:]) < 0.1
        assert abs(model.predict(X.iloc[:1])[0] - truth[0]) < 2.0

    def test_pairs_are_found_beside_errors(self):
        X, truth, y = _data(n=500)
        product = 2.0 * (X["a"] * X["b"]).to_numpy()
        model = _fit(X, _contaminated(y + product), interactions="auto")
        assert {term.features for term in model.terms_ if term.kind == "pair"} == {(0, 1)}
        assert _error(model, X, truth + product) < 0.12

    def test_added_pairs_keep_the_weights(self, robust):
        X, truth, y = _data()
        model = pickle.loads(pickle.dumps(robust)).add_interactions(X, _contaminated(y))
        assert _error(model, X, truth) < 1.3 * _error(robust, X, truth)
        assert model.noise_std_ == pytest.approx(robust.noise_std_, rel=0.1)

    def test_rows_in_files_and_in_another_order(self, robust, tmp_path):
        X, _, y = _data()
        table = X.assign(y=_contaminated(y))
        table.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
        options = {"interactions": 0, "random_state": 0, "n_jobs": 1}
        from_file = LANAMRegressor(**options).fit(str(tmp_path / "rows.parquet"), target="y")
        shuffled = table.sample(frac=1.0, random_state=0)
        in_order = _fit(shuffled[X.columns], shuffled["y"].to_numpy())
        for other in (from_file, in_order):
            np.testing.assert_allclose(other.predict(X), robust.predict(X), rtol=1e-6, atol=1e-6)
            assert other.noise_std_ == pytest.approx(robust.noise_std_, rel=1e-6)
            assert other.log_evidence_ == pytest.approx(robust.log_evidence_, rel=1e-7)

    def test_a_unit_of_the_response_changes_nothing(self, robust):
        X, _, y = _data()
        scaled = _fit(X, 1000.0 * _contaminated(y) + 5.0)
        np.testing.assert_allclose(scaled.predict(X), 1000.0 * robust.predict(X) + 5.0, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_skewed_noise_keeps_its_mean(seed):
    """The rows of a long tail are not errors: predictions are those of the plain fit."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(800, 1))
    y = X[:, 0] + rng.exponential(size=800)
    own, plain = (LANAMRegressor(interactions=0, **options).fit(X, y) for options in ({}, CONSTANT))
    np.testing.assert_allclose(own.predict(X), plain.predict(X))


CONSTANT = {"noise": "constant"}
