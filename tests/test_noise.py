"""Noise whose size differs from row to row: found where it is, and all that is predicted knows of it."""

from __future__ import annotations

import json
import pickle
import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy.stats import norm
from sklearn.base import clone

from lanam import LANAMClassifier, LANAMRegressor
from lanam.data import NewValuesWarning
from lanam.plot import plot_importance, plot_shapes

#: Fits of these are fast, and two threads would not make them faster.
QUICK = {"interactions": 0, "hidden_sizes": (16,), "random_state": 0, "n_jobs": 1}


def two_columns(n_rows, seed=0):
    """Noise that grows with the first column, by a factor of about seven, and not with the second."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n_rows, 2)), columns=["loud", "calm"])
    scale = np.exp(X["loud"]).to_numpy()
    y = np.sin(3 * X["loud"]) + X["calm"] + scale * rng.standard_normal(n_rows)
    return X, y.to_numpy(), scale


def table(n_rows, seed=0, gaps=0.0):
    """Noise by a category, and gaps in a column that matters."""
    rng = np.random.default_rng(seed)
    sensor = rng.choice(["old", "new", "lab"], n_rows)
    scale = np.select([sensor == "old", sensor == "new"], [1.5, 0.5], 0.2)
    X = pd.DataFrame({"sensor": sensor.astype(object), "heat": rng.normal(size=n_rows)})
    y = X["heat"].to_numpy() + scale * rng.standard_normal(n_rows)
    X.loc[rng.random(n_rows) < gaps, "heat"] = np.nan
    return X, y, scale


def fit(X, y, **options):
    weight = options.pop("sample_weight", None)
    return LANAMRegressor(**QUICK | options).fit(X, y, sample_weight=weight)


def noisy_columns(model):
    return [term.name for term in model.noise_terms_ if term.active]


@pytest.fixture(scope="module")
def numbers():
    X, y, _ = two_columns(600)
    return fit(X, y)


@pytest.fixture(scope="module")
def mixed():
    X, y, _ = table(600)
    return fit(X, y)


class TestFound:
    def test_by_a_number(self, numbers):
        assert noisy_columns(numbers) == ["loud"]
        X, _, scale = two_columns(2000, seed=1)
        np.testing.assert_allclose(numbers.predict_noise(X), scale, rtol=0.25)

    def test_by_a_category(self, mixed):
        sensor, heat = mixed.noise_terms_
        assert sensor.importance > 10.0 * heat.importance
        rows = pd.DataFrame({"sensor": ["old", "new", "lab"], "heat": 0.0})
        np.testing.assert_allclose(mixed.predict_noise(rows), [1.5, 0.5, 0.2], rtol=0.2)

    def test_the_mean_is_that_of_constant_noise(self, numbers):
        X, y, _ = two_columns(600)
        constant = fit(X, y, noise="constant")
        np.testing.assert_array_equal(numbers.predict(X), constant.predict(X))
        assert numbers.noise_std_ == constant.noise_std_
        assert numbers.log_evidence_ == constant.log_evidence_
        bands = [model.predict_interval(X, kind="mean") for model in (numbers, constant)]
        np.testing.assert_array_equal(*bands)

    @pytest.mark.parametrize(
        "draw",
        [lambda rng, n: rng.standard_normal(n), lambda rng, n: rng.standard_t(3, n)],
        ids=["gaussian", "heavy tails"],
    )
    def test_not_where_it_is_not(self, draw):
        # Sixteen random units find noise in a quarter of heavy tails, the default networks in a tenth.
        found = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, size=(300, 5))
            y = np.sin(3 * X[:, 0]) + X[:, 1] + draw(rng, 300)
            found += bool(fit(X, y, hidden_sizes="auto").noise_terms_)
        assert found <= 1

    @pytest.mark.parametrize(
        "options",
        [
            {"noise": "constant"},
            {"solver": "adam", "level_effects": False, "max_iter": 2},
            {"curvature": "kron", "posterior": "block"},
        ],
        ids=["by argument", "adam", "kron"],
    )
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_constant(self, options):
        X, y, _ = two_columns(300)
        model = fit(X, y, **options)
        assert model.noise_terms_ == ()
        np.testing.assert_array_equal(model.predict_noise(X), model.noise_std_)

    def test_an_argument_that_is_not_known(self):
        X, y, _ = two_columns(100)
        with pytest.raises(
            ValueError, match="noise='some' is not known: choose 'auto' or 'constant'"
        ):
            fit(X, y, noise="some")

    def test_a_response_without_noise(self):
        X, _, _ = two_columns(200)
        assert fit(X, 2.0 * X["calm"]).noise_terms_ == ()

    def test_few_rows(self):
        X, y, _ = two_columns(40)
        assert fit(X, y).noise_terms_ == ()


class TestPredictions:
    def test_all_have_the_same_noise(self, numbers):
        X, y, _ = two_columns(50, seed=2)
        mean, std = numbers.predict(X, return_std=True)
        lower, upper = numbers.predict_interval(X, 0.9, kind="mean").T
        of_mean = (upper - lower) / (2.0 * norm.ppf(0.95))
        np.testing.assert_allclose(std**2, of_mean**2 + numbers.predict_noise(X) ** 2)
        interval = numbers.predict_interval(X, 0.9)
        np.testing.assert_allclose(interval, norm.ppf([0.05, 0.95], mean[:, None], std[:, None]))
        np.testing.assert_allclose(numbers.predict_quantile(X, (0.05, 0.95)), interval)
        np.testing.assert_allclose(numbers.predict_cdf(X, y), norm.cdf(y, mean, std))
        likelihood = norm.logpdf(y, mean, std).mean()
        assert numbers.log_likelihood(X, y) == pytest.approx(likelihood, rel=1e-12)

    def test_calibrated_intervals_are_wider_where_it_is_loud(self):
        X, y, _ = two_columns(600)
        model = fit(X[:400], y[:400]).calibrate(X[400:], y[400:])
        _, std = model.predict(X, return_std=True)
        width = np.diff(model.predict_interval(X, 0.9))[:, 0]
        own = np.diff(model.predict_interval(X, 0.9, calibrated=False))[:, 0]
        assert np.ptp(width / std) < 1e-9
        assert np.ptp(width / own) < 1e-9
        assert width.max() > 4.0 * width.min()

    @pytest.mark.parametrize(("noise", "holds"), [("auto", True), ("constant", False)])
    def test_quiet_and_loud_rows_are_covered_alike(self, numbers, noise, holds):
        model = numbers if noise == "auto" else fit(*two_columns(600)[:2], noise=noise)
        X, y, scale = two_columns(4000, seed=1)
        lower, upper = model.predict_interval(X, coverage=0.9).T
        inside = (lower <= y) & (y <= upper)
        loud = scale > np.median(scale)
        shares = np.array([inside[loud].mean(), inside[~loud].mean()])
        assert (np.abs(shares - 0.9) < 0.03).all() == holds

    def test_missing_values_are_noise_too(self):
        X, y, _ = table(900, gaps=0.2)
        model = fit(X, y)
        assert "sensor" in noisy_columns(model)
        assert model.missing_noise_std_[1] > 0.5
        known, gone = (
            model.predict_noise(pd.DataFrame({"sensor": ["lab", "old"], "heat": heat}))
            for heat in ([0.0, 0.0], [np.nan, np.nan])
        )
        assert (gone > known).all()
        assert known[1] > 3.0 * known[0]
        X, y, _ = table(4000, seed=1, gaps=0.2)
        lower, upper = model.predict_interval(X, coverage=0.9).T
        inside = (lower <= y) & (y <= upper)
        gap = X["heat"].isna().to_numpy()
        assert abs(inside[gap].mean() - 0.9) < 0.06
        assert abs(inside[~gap].mean() - 0.9) < 0.06

    def test_a_level_that_is_new(self, mixed):
        rows = pd.DataFrame({"sensor": ["none", "lab"], "heat": 0.0})
        with pytest.warns(NewValuesWarning, match="'none'"):
            new, lab = mixed.predict_noise(rows)
        assert new > lab

    def test_counts_have_none(self):
        X, _, _ = two_columns(200)
        counts = np.random.default_rng(0).poisson(3.0, 200)
        model = fit(X, counts, likelihood="poisson")
        assert model.noise_terms_ == ()
        for method in (model.explain_noise, lambda: model.predict_noise(X)):
            with pytest.raises(ValueError, match="the noise of counts follows from their rate"):
                method()


class TestSameData:
    def test_the_order_of_rows(self, numbers, mixed):
        order = np.random.default_rng(3).permutation(600)
        for model, make in ((numbers, two_columns), (mixed, table)):
            X, y, _ = make(600)
            other = fit(X.iloc[order], y[order])
            assert noisy_columns(model)
            np.testing.assert_allclose(other.predict_noise(X), model.predict_noise(X), rtol=1e-6)

    def test_weights_are_repeated_rows(self):
        X, y, _ = two_columns(400)
        weight = np.random.default_rng(0).integers(0, 3, 400)
        rows = np.repeat(np.arange(400), weight)
        weighted, repeated = fit(X, y, sample_weight=weight), fit(X.iloc[rows], y[rows])
        assert "loud" in noisy_columns(weighted)
        np.testing.assert_allclose(repeated.predict_noise(X), weighted.predict_noise(X), rtol=1e-6)

    def test_the_unit_of_the_response(self, numbers):
        X, y, _ = two_columns(600)
        scaled = fit(X, 1000.0 * y + 5.0)
        noise = 1000.0 * numbers.predict_noise(X)
        np.testing.assert_allclose(scaled.predict_noise(X), noise, rtol=1e-6)

    def test_from_a_file(self, numbers, mixed, tmp_path):
        for model, make in ((numbers, two_columns), (mixed, table)):
            X, y, _ = make(600)
            X.assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=100)
            streamed = LANAMRegressor(**QUICK).fit(str(tmp_path / "rows.parquet"), target="y")
            assert noisy_columns(streamed) == noisy_columns(model)
            noise = model.predict_noise(X)
            np.testing.assert_allclose(streamed.predict_noise(X), noise, rtol=1e-6)

    def test_the_same_random_state_pickled_and_cloned(self, numbers):
        X, y, _ = two_columns(600)
        noise = numbers.predict_noise(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(numbers)).predict_noise(X), noise)
        constant = clone(numbers).set_params(noise="constant")
        assert clone(constant).noise == "constant"
        np.testing.assert_array_equal(clone(numbers).fit(X, y).predict_noise(X), noise)


class TestPairs:
    def test_what_pairs_explain_is_no_longer_noise(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.uniform(-1, 1, size=(500, 3)), columns=["a", "b", "c"])
        y = 2.0 * X["a"] * X["b"] + 0.2 * np.exp(X["c"]) * rng.standard_normal(500)
        model = fit(X, y.to_numpy())
        assert {"a", "b"} <= set(noisy_columns(model))  # their product, larger where they are
        model.add_interactions(X, y.to_numpy(), [("a", "b")])
        assert noisy_columns(model) == ["c"]

    def test_no_pair_leaves_the_noise_as_it_was(self, numbers):
        X, y, _ = two_columns(600)
        noise = numbers.predict_noise(X)
        same = pickle.loads(pickle.dumps(numbers)).add_interactions(X, y)
        assert not any(term.kind == "pair" for term in same.terms_)
        np.testing.assert_allclose(same.predict_noise(X), noise, rtol=1e-6)


class TestExplained:
    def test_terms_add_up_to_the_logarithm_of_the_variance(self, numbers):
        noise = numbers.explain_noise()
        assert noise.link == "log-variance"
        assert [term.name for term in noise.active] == ["loud"]
        assert [term.name for term in noise] == [term.name for term in numbers.noise_terms_]
        loud = np.linspace(-3, 3, 13)
        X = pd.DataFrame({"loud": loud, "calm": 0.0})
        # Beyond the data the noise is what it is at their edge.
        with pytest.warns(UserWarning, match="outside the range of the training data"):
            mean, _ = noise.evaluate("loud", loud)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            std = numbers.predict_noise(X)
        np.testing.assert_allclose(np.exp(noise.intercept + mean), std**2)
        assert np.ptp(std[-3:]) == 0.0

    def test_as_data(self, numbers, mixed):
        for model in (numbers, mixed):
            noise = model.explain_noise()
            facts = json.loads(noise.to_json())
            assert facts == noise.to_dict()
            assert facts["link"] == "log-variance"
            frame = noise.to_frame(coverage=0.9)
            assert set(frame["term"]) == {term.name for term in noise}
            active = frame[(frame["term"] == noise.active[0].name) & frame["inside"]]
            assert (active["lower"] < active["mean"]).all()
            assert (active["simultaneous_upper"] > active["upper"]).all()

    def test_differences(self, mixed):
        noise = mixed.explain_noise()
        difference = noise.difference("sensor", "old", "lab")
        assert difference.ratio == pytest.approx((1.5 / 0.2) ** 2, rel=0.4)
        low, high = difference.ratio_interval
        assert low < difference.ratio < high
        assert "changes the logarithm of the noise's variance by" in str(difference)
        assert f"variance ratio {difference.ratio:.1f}" in str(difference)
        contrast = noise.differences("sensor", "lab").to_frame()
        assert (contrast["mean"] >= 0.0).all()

    def test_drawn(self, numbers, mixed):
        matplotlib.use("Agg")
        (ax,) = plot_shapes(numbers.explain_noise(), simultaneous=True)
        assert ax.get_xlabel() == "loud"
        words = " ".join(text.get_text() for text in ax.figure.findobj(Text)).split()
        assert "contribution to the log noise variance" in " ".join(words)
        ax, *_ = plot_shapes(mixed.explain_noise())
        assert ax.get_xlabel() == "sensor"
        bars = plot_importance(mixed.explain_noise())
        assert "log noise variance" in bars.get_xlabel()
        matplotlib.pyplot.close("all")

    def test_interpretml(self, mixed):
        noise = mixed.explain_noise()
        assert noise.data()["names"] == ["sensor", "heat"]
        assert noise.selector["Name"].tolist() == ["sensor", "heat"]
        assert noise.data(0)["type"] == "univariate"

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"noise": "constant"}, "it was fitted with noise='constant'"),
            ({"curvature": "kron", "posterior": "block"}, "the paper's, support no other"),
            ({}, "heteroscedastic noise did not improve the cross-validated"),
        ],
    )
    def test_nothing_to_explain(self, options, why):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(200, 2))
        model = fit(X, X[:, 0] + rng.standard_normal(200), **options)
        with pytest.raises(ValueError, match=f"is homoscedastic: .*{why}"):
            model.explain_noise()

    def test_classifiers_have_no_noise(self):
        assert not hasattr(LANAMClassifier(), "explain_noise")
        assert not hasattr(LANAMClassifier(), "predict_noise")

    def test_explaining_warns_of_nothing(self, mixed):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mixed.explain_noise().to_frame()
