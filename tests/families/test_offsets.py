"""Offsets: a known part of the link, in every family that has one link."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.plot import plot_local

N = 500


def problem(name, seed=0):
    """Rows whose link has a known part as large as the unknown one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(-2.0, 2.0, N), "b": rng.normal(size=N)})
    known = rng.normal(size=N)
    f = np.sin(2.0 * X["a"].to_numpy()) + known
    mean = np.exp(f)
    y = {
        "gaussian": lambda: f + 0.3 * rng.normal(size=N),
        "student": lambda: f + 0.3 * rng.standard_t(4.0, N),
        "lognormal": lambda: np.exp(f + 0.3 * rng.normal(size=N)),
        "gamma": lambda: mean * rng.gamma(4.0, size=N) / 4.0,
        "poisson": lambda: rng.poisson(3.0 * mean),
        "negative_binomial": lambda: rng.poisson(3.0 * mean * rng.gamma(4.0, size=N) / 4.0),
        "bernoulli": lambda: rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-2.0 * f)),
    }[name]()
    scale = 2.0 if name == "bernoulli" else 1.0
    return X, np.asarray(y, dtype=float), scale * known, scale * (f - known)


NAMES = ("gaussian", "student", "lognormal", "gamma", "poisson", "negative_binomial", "bernoulli")


def estimator(name):
    options = {"interactions": 0, "random_state": 0}
    if name == "bernoulli":
        return LANAMClassifier(**options)
    return LANAMRegressor(likelihood=name, **options)


@pytest.fixture(scope="module", params=NAMES)
def fitted(request):
    X, y, known, _ = problem(request.param)
    return estimator(request.param).fit(X, y, offset=known)


def mean_of(model, X, offset):
    if isinstance(model, LANAMClassifier):
        return model.predict_proba(X, offset=offset)[:, 1]
    return model.predict(X, offset=offset)


def test_the_unknown_part_is_learned(fitted):
    X, _, _, f = problem(fitted.family_.name)
    found = fitted.predict_terms(X).sum(axis=1)
    rmse = np.sqrt(np.mean(((found - found.mean()) - (f - f.mean())) ** 2))
    assert rmse < (0.5 if fitted.family_.name == "bernoulli" else 0.15)  # a class says little
    assert fitted.terms_[0].importance > 3.0 * fitted.terms_[1].importance


def test_predictions_follow_the_offset(fitted):
    X, y, known, _ = problem(fitted.family_.name, 1)
    assert np.corrcoef(mean_of(fitted, X, known), y)[0, 1] > 0.5
    without = mean_of(fitted, X, None)
    np.testing.assert_allclose(mean_of(fitted, X, np.zeros(N)), without)
    if fitted.family_.link.name == "log":
        np.testing.assert_allclose(mean_of(fitted, X, known), np.exp(known) * without, rtol=1e-6)
    if fitted.family_.link.name == "identity":
        np.testing.assert_allclose(mean_of(fitted, X, known), known + without)


def test_scores_need_it(fitted, tmp_path):
    X, y, known, _ = problem(fitted.family_.name, 1)
    with pytest.raises(ValueError, match=r"fitted with an offset, and these rows have none"):
        fitted.log_likelihood(X, y)
    again = lanam.load(fitted.save(tmp_path / "model.lanam"))
    with pytest.raises(ValueError, match=r"pass theirs as offset="):
        again.score(X, y)
    assert again.log_likelihood(X, y, offset=known) > again.log_likelihood(X, y, offset=0.0)
    interval = fitted.predict_interval(X, coverage=0.9, offset=known)
    assert (interval[:, 0] <= interval[:, 1]).all()
    fitted.sample(X[:5], n_samples=3, random_state=0, offset=known[:5])


def test_files(fitted, tmp_path):
    pytest.importorskip("pyarrow")
    name = fitted.family_.name
    X, y, known, _ = problem(name)
    file = str(tmp_path / "rows.parquet")
    X.assign(y=y, known=known).to_parquet(file)
    model = estimator(name).fit(file, target="y", offset="known")
    assert model.log_evidence_ == pytest.approx(fitted.log_evidence_, rel=1e-4, abs=0.05)
    assert model.log_likelihood(file, "y", offset="known") == pytest.approx(
        fitted.log_likelihood(X, y, offset=known), abs=1e-3
    )
    model.predict_files(file, tmp_path / "out.parquet", offset="known")
    written = pd.read_parquet(tmp_path / "out.parquet")["prediction"]
    if name != "bernoulli":
        np.testing.assert_allclose(written, model.predict(X, offset=known), rtol=1e-6)


def test_of_counts_it_is_the_logarithm_of_the_exposure():
    rng = np.random.default_rng(0)
    x, hours = rng.uniform(-1.0, 1.0, N), rng.uniform(0.2, 4.0, N)
    y = rng.poisson(hours * np.exp(1.0 + np.sin(3.0 * x)))
    for name in ("poisson", "negative_binomial"):
        options = {"likelihood": name, "interactions": 0, "level_effects": False, "random_state": 0}
        exposed = LANAMRegressor(**options).fit(x[:, None], y, exposure=hours)
        shifted = LANAMRegressor(**options).fit(x[:, None], y, offset=np.log(hours))
        np.testing.assert_allclose(
            exposed.predict(x[:9, None], exposure=hours[:9]),
            shifted.predict(x[:9, None], offset=np.log(hours[:9])),
            rtol=0.02,
        )


def test_explanations_of_rows_have_the_offset(fitted):
    X, _, known, _ = problem(fitted.family_.name)
    local = fitted.explain_local(X[:3], offset=known[:3])
    plain = fitted.explain_local(X[:3])
    assert plain.offset is None
    np.testing.assert_allclose(local.prediction, plain.prediction + known[:3])
    np.testing.assert_allclose(local.prediction_std, plain.prediction_std)
    if fitted.family_.name != "lognormal":  # whose mean has the noise, too
        np.testing.assert_allclose(local.response, mean_of(fitted, X[:3], known[:3]))
    frame = local.to_frame()
    parts = frame[frame["row"] == 0].set_index("term")["contribution"]
    assert parts["(offset)"] == known[0]
    assert parts.drop("(prediction)").sum() == pytest.approx(parts["(prediction)"])
    assert "(offset)" not in set(plain.to_frame()["term"])
    shap = local.to_shap()
    np.testing.assert_allclose(shap.base_values + shap.values.sum(axis=1), local.prediction)
    text = plot_local(local).get_title(loc="left")
    assert "offset" in text
    assert local.data(0)["extra"]["names"] == ["Intercept", "Offset"]
    one = fitted.explain_local(X[:1], offset=0.7)
    assert "(offset)" in str(one)
    plt.close("all")


def test_a_constant_offset_moves_the_intercept_only():
    X, y, _, _ = problem("gamma")
    usual = estimator("gamma").fit(X, y)
    moved = estimator("gamma").fit(X, y, offset=2.0)
    assert moved.intercept_ == pytest.approx(usual.intercept_ - 2.0, abs=1e-4)
    np.testing.assert_allclose(moved.predict_terms(X), usual.predict_terms(X), atol=1e-3)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (np.zeros(3), r"offset must be one number, or one per row"),
        (np.full(N, np.nan), r"offset contains NaN"),
        ("known", r"offset names the column 'known'"),
    ],
)
def test_offsets_that_are_none(offset, words):
    X, y, _, _ = problem("gaussian")
    with pytest.raises(ValueError, match=words):
        LANAMRegressor().fit(X, y, offset=offset)


def test_several_classes_have_none():
    X, _, known, _ = problem("gaussian")
    with pytest.raises(ValueError, match="would move the logits of all classes alike"):
        LANAMClassifier().fit(X, np.arange(N) % 3, offset=known)
