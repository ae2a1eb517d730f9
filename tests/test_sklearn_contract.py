"""scikit-learn's own checks, and what its users do with an estimator."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.estimator_checks import parametrize_with_checks

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival


class TimesOnly(LANAMSurvival):
    """Survival with numbers as the target, which the checks pass: times, all with an event."""

    def fit(self, X, y=None, sample_weight=None):
        if y is None:
            return super().fit(X)
        return super().fit(X, **self._outcome(y), sample_weight=sample_weight)

    def score(self, X, y):
        return super().score(X, **self._outcome(y))

    def _outcome(self, y):
        time = column_or_1d(y, warn=True).astype(float)
        return {"event": np.ones(len(time)), "time": time - np.nanmin(time, initial=0.0) + 1.0}


# The checks fit little data sets of noise, on which a fit need not converge; a warning about that
# is right, and not what they test. `check_array_api_input` runs where SCIPY_ARRAY_API=1 is set and
# skips itself otherwise; nothing else is left out.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([LANAMRegressor(), LANAMClassifier(), TimesOnly()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(120, 3)), columns=["a", "b", "c"])
    y = np.sin(2 * X["a"]) + 0.5 * X["b"] + 0.1 * rng.standard_normal(120)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def regressor(data):
    return LANAMRegressor(random_state=0).fit(*data)


@pytest.fixture(scope="module")
def classifier(data):
    X, y = data
    return LANAMClassifier(random_state=0).fit(X, np.where(y > 0, "yes", "no"))


@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_a_pickled_model_predicts_the_same(name, data, request):
    model = request.getfixturevalue(name)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))
    np.testing.assert_array_equal(
        again.predict_interval(data[0], kind="mean"), model.predict_interval(data[0], kind="mean")
    )
    assert str(again.summary()) == str(model.summary())


def test_joblib_keeps_a_model(regressor, data, tmp_path):
    joblib.dump(regressor, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict(data[0]), regressor.predict(data[0]))


def test_clone_keeps_every_argument_and_forgets_the_fit(data):
    model = LANAMRegressor(
        interactions=[("a", "b")],
        interaction_score="evidence_gain",
        level_effects=False,
        hidden_sizes=[8, 4],
        pair_hidden_sizes=[4, 2],
        activation="tanh",
        init_scales=(1.0, 2.0),
        prior_groups="network",
        posterior="block",
        evidence_update="gradient",
        max_knots=32,
        max_iter=7,
        tol=0.5,
        n_restarts=2,
        random_state=3,
        verbose=1,
    )
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.hidden_sizes == [8, 4]
    assert again.interactions == [("a", "b")]
    with pytest.raises(NotFittedError):
        again.predict(data[0])


def test_the_same_random_state_gives_the_same_fit(regressor, data):
    again = LANAMRegressor(random_state=0).fit(*data)
    np.testing.assert_array_equal(again.predict(data[0]), regressor.predict(data[0]))


def test_a_pipeline_hands_names_on(data):
    X, y = data
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"), LANAMRegressor(random_state=0)
    ).fit(X, y)
    assert list(pipeline[-1].feature_names_in_) == ["a", "b", "c"]
    assert [term.feature_names for term in pipeline[-1].terms_[:3]] == [("a",), ("b",), ("c",)]
    assert pipeline.score(X, y) > 0.9


def test_columns_from_a_transformer_of_columns(data):
    X, y = data
    transform = make_column_transformer(
        (StandardScaler(), ["b"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="polars")
    pipeline = make_pipeline(transform, LANAMRegressor(random_state=0)).fit(X, y)
    assert list(pipeline[-1].feature_names_in_) == ["b", "a", "c"]


def test_sample_weight_through_a_pipeline(data):
    X, y = data
    weight = np.arange(len(y)) % 3
    direct = LANAMRegressor(random_state=0).fit(X, y, sample_weight=weight)
    pipeline = make_pipeline("passthrough", LANAMRegressor(random_state=0))
    pipeline.fit(X, y, lanamregressor__sample_weight=weight)
    np.testing.assert_array_equal(pipeline.predict(X), direct.predict(X))


def test_grid_search_over_lanams_own_score(data):
    search = GridSearchCV(
        LANAMRegressor(noise="constant", random_state=0),
        {"hidden_sizes": [(2,), (64,)], "level_effects": [False]},
        scoring=lambda model, X, y: model.log_likelihood(X, y),
        cv=3,
    ).fit(*data)
    assert search.best_estimator_.converged_
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_over_interactions(data):
    X, y = data
    y = y + X["a"] * X["c"]
    search = GridSearchCV(
        LANAMRegressor(noise="constant", random_state=0),
        {"interactions": [0, np.int64(1), "auto", [("a", "c")], np.array([["a", "b"]])]},
        cv=2,
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[[1, 2, 3]].min() > scores[[0, 4]].max() + 0.1
    assert any(term.name == "a x c" and term.active for term in search.best_estimator_.terms_)


def test_cross_val_score_of_the_classifier(data):
    X, y = data
    scores = cross_val_score(
        LANAMClassifier(random_state=0), X, y > 0, cv=3, scoring="neg_log_loss"
    )
    # The base rate alone scores -log 2.
    assert scores.mean() > -0.4


def test_an_estimator_that_failed_to_fit_is_not_fitted(data):
    model = LANAMRegressor()
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(data[0], np.full(len(data[0]), np.nan))
    with pytest.raises(NotFittedError):
        model.predict(data[0])
    with pytest.raises(NotFittedError):
        model.summary()


def test_a_fit_that_fails_does_not_leave_the_one_before(data):
    model = LANAMRegressor(random_state=0).fit(*data)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(data[0][["a", "b"]], np.full(len(data[0]), np.nan))
    with pytest.raises(NotFittedError):
        model.predict(data[0])
