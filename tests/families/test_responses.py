"""Amounts, heavy tails and counts in clusters, through everything that a family is asked for."""

import warnings

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMRegressor
from lanam.families import FAMILIES
from lanam.metrics import coverage_report
from tests.report.pages import Page

N = 700
NAMES = ("lognormal", "student", "gamma", "tweedie", "negative_binomial", "binomial")
#: What a row is counted over, of the families that have such.
GIVEN = {"tweedie": {"exposure": 2.0}, "binomial": {"trials": 8}}
#: The parameters that the data have, by the names of ``family_parameters_``.
KNOWN = {
    "student": {"scale": 0.4, "degrees_of_freedom": 4.0},
    "gamma": {"shape": 2.5},
    "negative_binomial": {"dispersion": 0.7},
    "tweedie": {"dispersion": 1.5, "power": 1.6},
}


def tweedie(rng, mean, exposure, dispersion=1.5, power=1.6):
    """Sums of a Poisson number of Gamma amounts."""
    rate = exposure * mean ** (2.0 - power) / (dispersion * (2.0 - power))
    number, shape = rng.poisson(rate), (2.0 - power) / (power - 1.0)
    scale = dispersion * (power - 1.0) * mean ** (power - 1.0)
    return np.where(number > 0, rng.gamma(np.maximum(number, 1) * shape) * scale, 0.0)


def given(model):
    return GIVEN.get(model.family_.name, {})


def problem(name, n_rows=N, seed=0):
    """Two relevant columns and one that is not, one of them with missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(-2.0, 2.0, n_rows),
            "b": rng.choice(["p", "q", "r"], n_rows),
            "c": rng.normal(size=n_rows),
        }
    )
    f = 0.8 + np.sin(2.0 * X["a"].to_numpy()) + (X["b"] == "q").to_numpy() * 0.7
    X.loc[rng.uniform(size=n_rows) < 0.05, "c"] = np.nan
    mean = np.exp(f)
    y = {
        "lognormal": lambda: np.exp(f + 0.5 * rng.normal(size=n_rows)),
        "student": lambda: f + 0.4 * rng.standard_t(4.0, n_rows),
        "gamma": lambda: mean * rng.gamma(2.5, size=n_rows) / 2.5,
        "negative_binomial": lambda: rng.poisson(mean * rng.gamma(1.0 / 0.7, size=n_rows) * 0.7),
        "tweedie": lambda: tweedie(rng, mean, 2.0),
        "binomial": lambda: rng.binomial(8, 1.0 / (1.0 + np.exp(-f))),
    }[name]()
    return X, np.asarray(y, dtype=float), f


@pytest.fixture(scope="module", params=NAMES)
def fitted(request):
    X, y, _ = problem(request.param)
    model = LANAMRegressor(likelihood=request.param, interactions=0, random_state=0)
    return model.fit(X, y, **GIVEN.get(request.param, {}))


def test_the_functions_and_parameters(fitted):
    name = fitted.family_.name
    X, _, f = problem(name)
    found = fitted.intercept_ + fitted.predict_terms(X).sum(axis=1)
    assert np.sqrt(np.mean((found - f) ** 2)) < 0.15
    active = {term.name for term in fitted.terms_ if term.active}
    assert active == {"a", "b"}
    for parameter, value in KNOWN.get(name, {}).items():
        # Degrees of freedom are hardly determined by few rows.
        slack = 0.6 if parameter == "degrees_of_freedom" else 0.2
        assert abs(np.log(fitted.family_parameters_[parameter] / value)) < slack
    assert set(fitted.family_parameters_) == set(KNOWN.get(name, {}))


def test_predictions(fitted):
    X, y, _ = problem(fitted.family_.name, 3000, 1)
    mean, std = fitted.predict(X, return_std=True, **given(fitted))
    np.testing.assert_allclose(mean, fitted.predict(X, **given(fitted)), rtol=1e-6)
    # The mean of 700 counts in clusters has a standard error of 4%.
    assert mean.mean() == pytest.approx(y.mean(), rel=0.1)
    assert np.square((y - mean) / std).mean() == pytest.approx(1.0, abs=0.35)
    for coverage in (0.5, 0.9):
        lower, upper = fitted.predict_interval(X, coverage=coverage, **given(fitted)).T
        inside = ((lower <= y) & (y <= upper)).mean()
        # Both ends of an interval count where there is an atom.
        atoms = fitted.family_.discrete or fitted.family_.name == "tweedie"
        assert coverage - 0.04 < inside < (1.0 if atoms else coverage + 0.04)
    median = fitted.predict_quantile(X[:50], 0.5, **given(fitted))[:, 0]
    assert (fitted.predict_cdf(X[:50], median, **given(fitted)) >= 0.5 - 1e-9).all()
    low, high = fitted.predict_interval(X, kind="mean", coverage=0.95, **given(fitted)).T
    assert ((low <= mean) & (mean <= high)).all()
    draws = fitted.sample(X[:20], n_samples=300, random_state=0, **given(fitted))
    np.testing.assert_allclose(draws.mean(axis=0), mean[:20], rtol=0.05)


def test_better_than_the_gaussian_by_evidence_and_on_new_rows(fitted):
    X, y, _ = problem(fitted.family_.name)
    new, target, _ = problem(fitted.family_.name, 2000, 1)
    gaussian = LANAMRegressor(interactions=0, noise="constant", random_state=0).fit(X, y)
    if fitted.family_.name != "binomial":  # of which eight trials are nearly Gaussian
        assert fitted.log_evidence_ > gaussian.log_evidence_ + 10.0
    score = fitted.log_likelihood(new, target, **given(fitted))
    assert score > gaussian.log_likelihood(new, target)


def test_explanations_read_as_ratios(fitted):
    said = str(fitted.explain_global().difference("a", 1.0, 0.0))
    assert ("ratio" in said) == (fitted.family_.link.name != "identity")
    X = problem(fitted.family_.name)[0].iloc[:5]
    local = fitted.explain_local(X)
    np.testing.assert_allclose(
        local.prediction, fitted.intercept_ + fitted.predict_terms(X).sum(axis=1)
    )
    assert str(fitted.summary())
    assert 0.1 < fitted.history_[-1]["deviance_explained"] < 0.9


def test_saved_and_loaded(fitted, tmp_path):
    X = problem(fitted.family_.name)[0].iloc[:50]
    again = lanam.load(fitted.save(tmp_path / "model.lanam"))
    assert again.family_parameters_ == fitted.family_parameters_
    for coverage in (0.5, 0.9):
        np.testing.assert_array_equal(
            again.predict_interval(X, coverage=coverage, **given(fitted)),
            fitted.predict_interval(X, coverage=coverage, **given(fitted)),
        )
    assert str(again.summary()) == str(fitted.summary())


def test_calibration_and_report(fitted, tmp_path):
    name = fitted.family_.name
    X, y, _ = problem(name, 600, 2)
    report = coverage_report(fitted, X, y, **given(fitted))
    assert report.scores["nll"] == pytest.approx(-fitted.log_likelihood(X, y, **given(fitted)))
    page = Page.read(fitted.report(tmp_path / "report.html", X[:100], y[:100], **given(fitted)))
    scripted = name in ("lognormal", "student")
    assert all((level["z_new"] is not None) == scripted for level in page.data["levels"])
    loaded = lanam.load(fitted.save(tmp_path / "model.lanam")).calibrate(X, y, **given(fitted))
    lower, upper = loaded.predict_interval(X, coverage=0.8, **given(fitted)).T
    assert ((lower <= y) & (y <= upper)).mean() >= 0.8


def test_exports(fitted):
    import sqlite3

    X = problem(fitted.family_.name)[0].iloc[:40]
    with sqlite3.connect(":memory:") as database:
        X.assign(id=range(len(X))).to_sql("rows", database, index=False)
        query = fitted.export(None, to="sql", table="rows", keep=["id"])
        result = pd.read_sql(query, database).sort_values("id")
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(result["prediction"], mean, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(result["observation_variance"]), std, rtol=1e-5)
    head = fitted.export(None, to="csv").splitlines()[0]
    factor = fitted.family_.words.factor
    assert bool(factor and factor in head) == (fitted.family_.link.name != "identity")


def test_onnx(fitted):
    onnxruntime = pytest.importorskip("onnxruntime")

    X = problem(fitted.family_.name)[0].iloc[:40]
    session = onnxruntime.InferenceSession(fitted.export(None, to="onnx"))
    feed = {
        "a": X["a"].to_numpy(),
        "b": X["b"].to_numpy(dtype=object),
    }
    names = [one.name for one in session.get_outputs()]
    result = dict(zip(names, session.run(None, feed), strict=True))
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(result["prediction"].ravel(), mean, rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(result["observation_variance"].ravel()), std, rtol=1e-4)


def test_files(fitted, tmp_path):
    pytest.importorskip("pyarrow")
    name = fitted.family_.name
    X, y, _ = problem(name)
    for part in range(2):
        rows = slice(part * N // 2, (part + 1) * N // 2)
        X[rows].assign(y=y[rows]).to_parquet(tmp_path / f"part-{part}.parquet")
    model = LANAMRegressor(likelihood=name, interactions=0, random_state=0)
    model.fit(str(tmp_path / "*.parquet"), target="y", **given(fitted))
    assert model.log_evidence_ == pytest.approx(fitted.log_evidence_, rel=1e-4)
    assert model.log_likelihood(str(tmp_path / "*.parquet"), "y", **given(fitted)) == pytest.approx(
        fitted.log_likelihood(X, y, **given(fitted)), abs=1e-3
    )


def test_rows_in_another_order_and_weights(fitted):
    name = fitted.family_.name
    X, y, _ = problem(name, 200)
    order = np.random.default_rng(0).permutation(len(y))
    options = {"likelihood": name, "interactions": 0, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows determine the fit
        usual = LANAMRegressor(**options).fit(X, y, **given(fitted))
        again = LANAMRegressor(**options).fit(X.iloc[order], y[order], **given(fitted))
        weighted = LANAMRegressor(**options, level_effects=False).fit(
            X, y, np.full(200, 2.0), **given(fitted)
        )
        twice = LANAMRegressor(**options, level_effects=False)
        twice.fit(pd.concat([X, X]), np.tile(y, 2), **given(fitted))
    assert again.log_evidence_ == pytest.approx(usual.log_evidence_, abs=1e-3)
    assert weighted.log_evidence_ == pytest.approx(twice.log_evidence_, abs=0.1)


def test_pairs():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (800, 3))
    mean = np.exp(2.0 * X[:, 0] * X[:, 1])
    model = LANAMRegressor(likelihood="gamma", random_state=0)
    model.fit(X, mean * rng.gamma(3.0, size=800) / 3.0)
    assert [t.name for t in model.terms_ if t.active and t.kind == "pair"] == ["x0 x x1"]
    fewer = LANAMRegressor(likelihood="gamma", interactions=0, random_state=0)
    fewer.fit(X, mean * rng.gamma(3.0, size=800) / 3.0)
    parameter = fewer.family_parameters_["shape"]
    again = fewer.add_interactions(X, mean * rng.gamma(3.0, size=800) / 3.0)
    assert again.family_parameters_["shape"] > 1.2 * parameter


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("gamma", [1.0, 0.0, 2.0], r"zero or negative: 1 of 3, the first, 0, in row 2 .*tweedie"),
        ("lognormal", [1.0, 2.0, -3.0], r"zero or negative: 1 of 3, the first, -3, in row 3"),
        ("negative_binomial", [1.0, 2.5, 3.0], r"not whole numbers: 1 of 3, the first, 2.5"),
        ("negative_binomial", [1.0, -2.0, 3.0], r"negative values: 1 of 3"),
        ("negative_binomial", [0.0, 0.0, 0.0], r"zero in every row"),
        ("tweedie", [0.0, 0.0, 0.0], r"zero in every row"),
        ("tweedie", [1.0, -1.0, 0.0], r"negative values: 1 of 3, the first, -1"),
        (
            "binomial",
            [0.0, 2.0, 1.0],
            r"more successes than trials in 1 rows, the first, 2 of 1 in row 2",
        ),
        ("binomial", [0.0, 0.5, 1.0], r"pass the number of successes as y, and that of the trials"),
    ],
)
def test_targets_that_a_family_cannot_have(name, y, words):
    with pytest.raises(ValueError, match=words):
        LANAMRegressor(likelihood=name).fit([[0.0], [1.0], [2.0]], y)


def test_every_numeric_family_has_words():
    for family in FAMILIES.values():
        assert family.words.scale
        assert (family.words.ratio != "") == (family.link.name in ("log", "logit", "log-variance"))


def test_the_power_may_be_given():
    X, y, _ = problem("tweedie", 400)
    options = {"likelihood": "tweedie", "interactions": 0, "random_state": 0}
    free = LANAMRegressor(**options).fit(X, y, exposure=2.0)
    given = LANAMRegressor(**options, tweedie_power=1.3).fit(X, y, exposure=2.0)
    assert given.family_parameters_["power"] == pytest.approx(1.3)
    assert given.log_evidence_ < free.log_evidence_
    with pytest.raises(ValueError, match=r"tweedie_power=2.5 must be 'auto' or a number from 1.01"):
        LANAMRegressor(**options, tweedie_power=2.5).fit(X, y)


def test_exposures_divide_the_dispersion():
    """Two halves of a year are a year, on average."""
    rng = np.random.default_rng(0)
    exposure, x = rng.uniform(0.1, 3.0, 3000), rng.uniform(-1.0, 1.0, 3000)
    y = tweedie(rng, np.exp(1.0 + np.sin(3.0 * x)), exposure)
    model = LANAMRegressor(likelihood="tweedie", interactions=0, random_state=0)
    model.fit(x[:, None], y, exposure=exposure)
    assert model.family_parameters_["power"] == pytest.approx(1.6, abs=0.03)
    assert model.family_parameters_["dispersion"] == pytest.approx(1.5, rel=0.1)
    lower, upper = model.predict_interval(x[:, None], coverage=0.9, exposure=exposure).T
    assert 0.87 < ((lower <= y) & (y <= upper)).mean() < 0.96


def test_trials_are_rows_of_single_ones():
    rng = np.random.default_rng(0)
    X, trials = rng.integers(0, 5, (300, 1)).astype(float), rng.integers(1, 6, 300)
    y = rng.binomial(trials, 1.0 / (1.0 + np.exp(1.0 - 0.5 * X[:, 0])))
    options = {"interactions": 0, "level_effects": False, "random_state": 0}
    model = LANAMRegressor(likelihood="binomial", **options).fit(X, y, trials=trials)
    single = np.concatenate(
        [np.r_[np.ones(k), np.zeros(n - k)] for k, n in zip(y, trials, strict=True)]
    )
    classes = lanam.LANAMClassifier(**options).fit(np.repeat(X, trials, axis=0), single)
    np.testing.assert_allclose(model.predict(X[:9]), classes.predict_proba(X[:9])[:, 1], atol=2e-3)
    with pytest.raises(ValueError, match="fitted with trials, and y has successes without them"):
        model.log_likelihood(X, y)
    with pytest.raises(ValueError, match="exposure is for counts"):
        model.predict(X, exposure=2.0)


def test_plots_of_logarithms_have_a_scale_in_percent(fitted):
    pytest.importorskip("matplotlib")
    from lanam.plot import plot_shapes

    axes = plot_shapes(fitted.explain_global())
    right = [child for child in axes[0].child_axes if child.get_ylabel() == ""]
    assert bool(right) == fitted.family_.link.relative
    if right:
        axes[0].figure.canvas.draw()
        shown = right[0].yaxis.get_major_formatter()(0.1, 0)
        assert shown == "+11%"
        assert "in percent" in axes[0].figure.get_supylabel()
