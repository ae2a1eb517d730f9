"""What the estimators promise: predictions, bands, terms, weights, names, messages."""

import subprocess
import sys
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from scipy.stats import gamma, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import fitting
from lanam.errors import InputWarning

NAMES = ["a", "b", "noise"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(200, 3)), columns=NAMES)
    y = 3.0 + np.sin(2 * X["a"]) + 0.5 * X["b"] + 0.2 * rng.standard_normal(200)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def labels(data):
    rng = np.random.default_rng(2)
    odds = 2.0 * np.sin(2 * data[0]["a"]) + data[0]["b"]
    return np.where(rng.uniform(size=200) < expit(odds), "yes", "no")


@pytest.fixture(scope="module")
def regressor(data):
    return LANAMRegressor(random_state=0).fit(*data)


@pytest.fixture(scope="module")
def classifier(data, labels):
    return LANAMClassifier(random_state=0).fit(data[0], labels)


def test_import_is_quick_because_scikit_learn_waits():
    code = "import sys, lanam; sys.exit('sklearn' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names():
    import lanam

    assert set(lanam.__all__) <= set(dir(lanam))
    with pytest.raises(AttributeError, match="no attribute 'LANAMTransformer'"):
        _ = lanam.LANAMTransformer


def noise_precisions(df):
    """Points and weights of a gamma distribution of mean one: a fine trapezoidal rule in logarithms."""
    points = np.exp(np.sqrt(2.0 / df) * np.linspace(-10.0, 10.0, 401))
    weights = points * gamma.pdf(points, 0.5 * df, scale=2.0 / df)
    return points, weights / weights.sum()


def by_precision(model, X):
    """Means and standard deviations of observations given the noise precision, and its weights."""
    assert 50.0 < model._model.noise_df < 200.0  # uncertain: about as many as rows
    mean = model.predict(X)
    lower, upper = model.predict_interval(X, coverage=0.8, kind="mean").T
    np.testing.assert_allclose(lower + upper, 2.0 * mean)
    of_mean = (upper - lower) / (2.0 * norm.ppf(0.9))
    precisions, weights = noise_precisions(model._model.noise_df)
    variance = of_mean[:, None] ** 2 + model.noise_std_**2 / precisions
    return mean[:, None], np.sqrt(variance), weights


class TestPredictions:
    def test_terms_and_intercept_sum_to_the_prediction(self, regressor, data):
        terms = regressor.predict_terms(data[0])
        assert terms.shape == (200, len(regressor.terms_))
        np.testing.assert_allclose(
            regressor.intercept_ + terms.sum(axis=1), regressor.predict(data[0]), rtol=1e-12
        )

    def test_terms_are_centred_over_the_training_data(self, regressor, data):
        # Knots are read with single-precision fractions.
        np.testing.assert_allclose(regressor.predict_terms(data[0]).mean(axis=0), 0.0, atol=1e-6)

    def test_terms_that_are_off_contribute_nothing(self, regressor, data):
        off = [not term.active for term in regressor.terms_]
        assert off[2]  # the column of noise
        means, stds = regressor.predict_terms(data[0], return_std=True)
        assert (means[:, off] == 0.0).all()
        assert (stds[:, off] == 0.0).all()
        assert (stds[:, np.logical_not(off)] > 0.0).all()

    def test_std_includes_the_noise(self, regressor, data):
        mean, std = regressor.predict(data[0], return_std=True)
        np.testing.assert_array_equal(mean, regressor.predict(data[0]))
        draws = regressor.sample(data[0], n_samples=4000, random_state=0)
        # Standard deviations of 4000 draws are known to about one per cent each.
        expected = np.sqrt(draws.var(axis=0) + regressor.noise_std_**2)
        np.testing.assert_allclose(std, expected, rtol=0.02)

    def test_the_noise_is_found(self, regressor):
        assert regressor.noise_std_ == pytest.approx(0.2, rel=0.15)

    def test_intervals_are_quantiles(self, regressor, data):
        mean, stds, weights = by_precision(regressor, data[0])
        for coverage in (0.8, 0.99):
            interval = regressor.predict_interval(data[0], coverage=coverage)
            tail = 0.5 * (1.0 - coverage)
            for end, probability in zip(interval.T, (tail, 1.0 - tail), strict=True):
                found = norm.cdf(end[:, None], mean, stds) @ weights
                np.testing.assert_allclose(found, probability, rtol=1e-8)

    def test_the_interval_of_the_mean_leaves_out_the_noise(self, regressor, data):
        mean, std = regressor.predict(data[0], return_std=True)
        narrow = regressor.predict_interval(data[0], kind="mean")
        # The variance of Student's t is larger than its scale.
        df = regressor._model.noise_df
        of_mean = np.sqrt(std**2 - regressor.noise_std_**2 * df / (df - 2.0))
        np.testing.assert_allclose(narrow, np.column_stack(norm.interval(0.95, mean, of_mean)))
        draws = regressor.sample(data[0], n_samples=4000, random_state=0)
        np.testing.assert_allclose(of_mean, draws.std(axis=0), rtol=0.06)
        wide = regressor.predict_interval(data[0])
        assert (wide[:, 0] < narrow[:, 0]).all()
        assert (wide[:, 1] > narrow[:, 1]).all()

    def test_bands_widen_beyond_the_data(self, regressor):
        rows = np.array([[1.9, 0.0, 0.0], [2.5, 0.0, 0.0], [4.0, 0.0, 0.0]])
        _, std = regressor.predict(pd.DataFrame(rows, columns=NAMES), return_std=True)
        assert std[0] < std[1] < std[2]

    def test_draws_have_the_posteriors_mean(self, regressor, data):
        draws = regressor.sample(data[0], n_samples=2000, random_state=0)
        error = draws.std(axis=0) / np.sqrt(2000)
        assert (np.abs(draws.mean(axis=0) - regressor.predict(data[0])) < 5 * error).all()

    def test_draws_follow_the_random_state(self, regressor, data):
        def draw(seed):
            return regressor.sample(data[0], n_samples=3, random_state=seed)

        np.testing.assert_array_equal(draw(1), draw(1))
        assert (draw(1) != draw(2)).any()
        assert (draw(None) != draw(None)).any()
        np.testing.assert_array_equal(
            draw(np.random.default_rng(5)), draw(np.random.default_rng(5))
        )

    def test_log_likelihood_is_the_mean_log_density(self, regressor, data):
        mean, stds, weights = by_precision(regressor, data[0])
        density = np.log(norm.pdf(data[1][:, None], mean, stds) @ weights)
        assert regressor.log_likelihood(*data) == pytest.approx(density.mean())
        weight = np.arange(200.0)
        weighted = regressor.log_likelihood(*data, sample_weight=weight)
        assert weighted == pytest.approx(np.average(density, weights=weight))

    @pytest.mark.parametrize("coverage", [0.0, 1.0, 95])
    def test_coverage_must_be_a_probability(self, regressor, data, coverage):
        with pytest.raises(ValueError, match="between 0 and 1"):
            regressor.predict_interval(data[0], coverage=coverage)

    def test_kinds_of_intervals(self, regressor, classifier, data):
        with pytest.raises(ValueError, match="'response' or 'mean'"):
            regressor.predict_interval(data[0], kind="noise")
        with pytest.raises(ValueError, match="the interval of the probability"):
            classifier.predict_interval(data[0], kind="response")


class TestClassifier:
    def test_labels_come_back(self, classifier, data, labels):
        assert list(classifier.classes_) == ["no", "yes"]
        assert set(classifier.predict(data[0])) == {"no", "yes"}
        assert classifier.score(data[0], labels) > 0.75

    def test_probabilities_follow_the_decision(self, classifier, data):
        probability = classifier.predict_proba(data[0])
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        np.testing.assert_allclose(expit(classifier.decision_function(data[0])), probability[:, 1])
        chosen = classifier.classes_[probability.argmax(axis=1)]
        np.testing.assert_array_equal(chosen, classifier.predict(data[0]))

    def test_doubt_moves_probabilities_to_one_half(self, classifier, data):
        link = classifier.intercept_ + classifier.predict_terms(data[0]).sum(axis=1)
        corrected = np.abs(classifier.predict_proba(data[0])[:, 1] - 0.5)
        assert (corrected < np.abs(expit(link) - 0.5)).all()

    def test_sampled_probabilities_agree_with_draws_of_functions(self, classifier, data):
        sampled = classifier.predict_proba(data[0], method="mc", n_samples=4000)[:, 1]
        draws = classifier.sample(data[0], n_samples=4000, random_state=1)
        error = np.sqrt(2.0) * draws.std(axis=0) / np.sqrt(4000)
        assert (np.abs(sampled - draws.mean(axis=0)) < 5 * error).all()

    def test_probit_is_close_to_sampling(self, classifier, data):
        probit = classifier.predict_proba(data[0])
        sampled = classifier.predict_proba(data[0], method="mc", n_samples=4000)
        # MacKay's approximation itself is good to about a hundredth.
        np.testing.assert_allclose(probit, sampled, atol=0.02)

    def test_sampling_is_repeatable_and_does_not_depend_on_the_batch(self, classifier, data):
        sampled = classifier.predict_proba(data[0], method="mc")
        np.testing.assert_array_equal(sampled, classifier.predict_proba(data[0], method="mc"))
        part = classifier.predict_proba(data[0][50:60], method="mc")
        np.testing.assert_allclose(part, sampled[50:60], rtol=1e-12)
        other = classifier.predict_proba(data[0], method="mc", random_state=1)
        assert (other != sampled).any()

    def test_intervals_of_the_probability_are_quantiles_of_draws(self, classifier, data):
        interval = classifier.predict_interval(data[0], coverage=0.8)
        draws = classifier.sample(data[0], n_samples=4000, random_state=0)
        np.testing.assert_allclose(interval, np.quantile(draws, [0.1, 0.9], axis=0).T, atol=0.02)

    def test_log_likelihood_is_the_mean_log_probability(self, classifier, data, labels):
        probability = classifier.predict_proba(data[0])
        own = probability[np.arange(200), (labels == "yes").astype(int)]
        assert classifier.log_likelihood(data[0], labels) == pytest.approx(np.log(own).mean())

    def test_unknown_labels(self, classifier, data):
        with pytest.raises(ValueError, match="'maybe', which was not among"):
            classifier.log_likelihood(data[0], np.full(200, "maybe"))

    def test_unknown_method(self, classifier, data):
        with pytest.raises(ValueError, match="choose 'probit' or 'mc'"):
            classifier.predict_proba(data[0], method="laplace")

    @pytest.mark.parametrize("values", [(False, True), (-1, 1), (7.0, 9.0), ("b", "a")])
    def test_any_two_labels_will_do(self, classifier, data, labels, values):
        renamed = np.where(labels == "yes", *values[::-1])
        model = LANAMClassifier(random_state=0).fit(data[0], renamed)
        first = sorted(values)[0]
        column = list(model.classes_).index(values[1])
        assert model.classes_[0] == first
        np.testing.assert_allclose(
            model.predict_proba(data[0])[:, column],
            classifier.predict_proba(data[0])[:, 1],
            # Swapped classes turn every sign, and a fit from random weights is not symmetric.
            atol=1e-9 if column == 1 else 0.1,
        )


class TestColumnsByName:
    def test_order_of_columns_does_not_matter_at_prediction(self, regressor, data):
        np.testing.assert_array_equal(
            regressor.predict(data[0][["noise", "b", "a"]]), regressor.predict(data[0])
        )

    @pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
    def test_frames_of_every_library_fit_alike(self, regressor, data, convert):
        frame = convert(data[0])
        model = LANAMRegressor(random_state=0).fit(frame, data[1])
        assert list(model.feature_names_in_) == NAMES
        np.testing.assert_array_equal(model.predict(frame), regressor.predict(data[0]))
        # A model fitted with one library predicts for frames of another.
        np.testing.assert_array_equal(model.predict(data[0]), regressor.predict(data[0]))

    def test_arrays_and_lists_fit_as_frames_do(self, regressor, data):
        X = data[0].to_numpy()
        for table in (X, X.tolist(), np.asfortranarray(X)):
            model = LANAMRegressor(random_state=0).fit(table, data[1])
            assert not hasattr(model, "feature_names_in_")
            assert [term.name for term in model.terms_[:3]] == ["x0", "x1", "x2"]
            np.testing.assert_allclose(model.predict(X), regressor.predict(data[0]), rtol=1e-9)

    def test_targets_and_weights_of_every_library(self, data):
        weight = np.arange(200) % 3 + 1.0
        small = {"hidden_sizes": (8,), "interactions": 0, "random_state": 0}
        expected = LANAMRegressor(**small).fit(*data, sample_weight=weight)
        for convert in (pd.Series, pl.Series, pa.array, list):
            model = LANAMRegressor(**small)
            model.fit(data[0], convert(data[1]), sample_weight=convert(weight))
            np.testing.assert_array_equal(model.predict(data[0]), expected.predict(data[0]))

    def test_a_missing_column_is_named(self, regressor, data):
        with pytest.raises(ValueError, match="yet now missing:\n- b"):
            regressor.predict(data[0][["a", "noise"]])

    def test_an_extra_column_is_ignored(self, regressor, data):
        with pytest.warns(InputWarning, match="not fitted with, which are ignored: 'extra'"):
            prediction = regressor.predict(data[0].assign(extra=1.0))
        np.testing.assert_array_equal(prediction, regressor.predict(data[0]))

    def test_an_array_for_a_model_with_names_is_taken_by_position(self, regressor, data):
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            prediction = regressor.predict(data[0].to_numpy())
        np.testing.assert_array_equal(prediction, regressor.predict(data[0]))

    def test_numbered_columns_are_taken_by_position(self, data):
        X = data[0].set_axis([1990, 1991, 1992], axis=1)
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        assert [term.name for term in model.terms_[:3]] == ["1990", "1991", "1992"]
        assert not hasattr(model, "feature_names_in_")


class TestWeights:
    def test_a_weight_of_two_is_the_row_twice(self, data):
        X, y = data[0][:80], data[1][:80]
        weight = np.arange(80) % 3
        weighted = LANAMRegressor(random_state=0).fit(X, y, sample_weight=weight)
        repeated = LANAMRegressor(random_state=0).fit(
            X.loc[X.index.repeat(weight)], np.repeat(y, weight)
        )
        # A fit of many steps multiplies rounding.
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, abs=1e-4)

    def test_rows_of_no_weight_leave_no_trace(self, data):
        X, y = data[0].copy(), data[1].copy()
        X.iloc[0, 0], y[0] = 1e6, -1e6
        weight = np.ones(200)
        weight[0] = 0.0
        with_row = LANAMRegressor(random_state=0).fit(X, y, sample_weight=weight)
        without = LANAMRegressor(random_state=0).fit(X[1:], y[1:])
        np.testing.assert_array_equal(with_row.predict(X[1:]), without.predict(X[1:]))
        assert not with_row.explain_global()["a"].inside[-1]

    def test_a_class_of_no_weight_is_no_class(self, data, labels):
        weight = (labels == "yes").astype(float)
        with pytest.raises(ValueError, match="one class only"):
            LANAMClassifier().fit(data[0], labels, sample_weight=weight)

    def test_one_number_weighs_all_rows(self, data):
        small = {"hidden_sizes": (8,), "interactions": 0, "random_state": 0}
        one = LANAMRegressor(**small).fit(*data, sample_weight=2.0)
        many = LANAMRegressor(**small).fit(*data, sample_weight=np.full(200, 2.0))
        np.testing.assert_array_equal(one.predict(data[0]), many.predict(data[0]))


class TestContributionsAsFrames:
    def test_transform_is_predict_terms(self, regressor, data):
        np.testing.assert_array_equal(
            regressor.transform(data[0]), regressor.predict_terms(data[0])
        )

    @pytest.mark.parametrize(("name", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
    def test_a_frame_of_the_library_that_was_asked_for(self, regressor, data, name, kind):
        X = data[0].set_index(np.arange(1000, 1200))
        again = copy(regressor).set_output(transform=name)
        frame = again.transform(X)
        assert isinstance(frame, kind)
        assert list(frame.columns) == [term.name for term in regressor.terms_]
        np.testing.assert_array_equal(frame.to_numpy(), regressor.predict_terms(X))
        if name == "pandas":
            assert list(frame.index) == list(X.index)
        assert isinstance(again.predict(X), np.ndarray)

    def test_a_classifiers_contributions_too(self, data, labels):
        model = LANAMClassifier(interactions=0, random_state=0).set_output(transform="pandas")
        frame = model.fit_transform(data[0], labels)
        assert list(frame.columns) == NAMES
        log_odds = model.intercept_ + frame.sum(axis=1).to_numpy()
        np.testing.assert_array_equal(model.predict(data[0]) == "yes", log_odds > 0.0)

    def test_names_are_distinct(self, data):
        X, y = data
        X = X[["a", "b"]].assign(**{"a x b": X["noise"]})
        model = LANAMRegressor(interactions=[(0, 1)], random_state=0).fit(X, y + X["a"] * X["b"])
        assert [term.name for term in model.terms_] == ["a", "b", "a x b", "a x b (interaction)"]
        assert list(model.get_feature_names_out()) == [term.name for term in model.terms_]

    def test_names_of_other_columns(self, regressor):
        assert list(regressor.get_feature_names_out(NAMES))[:3] == NAMES
        with pytest.raises(ValueError, match="input_features should have length equal"):
            regressor.get_feature_names_out(["a"])
        with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
            regressor.get_feature_names_out(["a", "noise", "b"])


class TestArguments:
    @pytest.mark.parametrize(
        ("argument", "value", "message"),
        [
            ("interactions", "all", "interactions='all' is not known: use 'auto', how many"),
            ("interactions", [("a", "nois")], "the column 'nois'.* did you mean 'noise'"),
            ("interaction_score", "shap", "'evidence', .* or 'evidence_gain_full'"),
            ("interaction_score", None, "interaction_score=None is not known"),
            ("likelihood", "cauchy", "choose 'gaussian', 'lognormal'"),
            ("level_effects", True, "choose 'auto' or False"),
            ("level_effects", 0, "choose 'auto' or False"),
            ("activation", "sine", "choose 'gelu', 'relu', 'tanh' or 'silu'"),
            ("prior_groups", "weight", "choose 'layer' or 'network'"),
            ("posterior", "full", "choose 'joint' or 'block'"),
            ("curvature", "diag", "choose 'exact' or 'kron'"),
            ("curvature", "kron", "set posterior='block'"),
            ("solver", "sgd", "choose 'gauss-newton' or 'adam'"),
            ("evidence_update", "em", "choose 'mackay' or 'gradient'"),
            ("categorical_features", ["z"], "categorical_features names the column 'z'"),
            ("categorical_features", "all", "use 'auto', or a list of names or indices"),
            ("hidden_sizes", 64, "a sequence of layer widths"),
            ("hidden_sizes", (), "a sequence of layer widths"),
            ("hidden_sizes", (64, 0), "integer of at least 1"),
            (
                "pair_hidden_sizes",
                (2.5,),
                "every entry of pair_hidden_sizes=2.5 must be an integer",
            ),
            (
                "pair_hidden_sizes",
                64,
                "pair_hidden_sizes=64 must be 'auto' or a sequence of layer widths",
            ),
            ("init_scales", "steep", "must be 'auto' or a sequence of positive numbers"),
            ("init_scales", (1.0, -1.0), "must be 'auto' or a sequence of positive numbers"),
            ("max_knots", 1, "max_knots=1 must be an integer of at least 16"),
            ("max_iter", 0, "max_iter=0 must be an integer of at least 1"),
            ("max_iter", True, "must be an integer"),
            ("tol", -1.0, "tol=-1.0 must be a finite number"),
            ("tol", np.nan, "must be a finite number"),
            ("n_restarts", 0, "n_restarts=0 must be an integer of at least 1"),
        ],
    )
    def test_values_that_do_not_exist(self, data, argument, value, message):
        with pytest.raises(ValueError, match=message):
            LANAMRegressor(**{argument: value}).fit(*data)

    def test_kronecker_factors_need_one_precision_a_tensor(self, data):
        kron = {"curvature": "kron", "posterior": "block", "init_scales": (1.0, 4.0)}
        with pytest.raises(ValueError, match="init_scales='auto', prior_groups='network'"):
            LANAMRegressor(**kron).fit(*data)
        LANAMRegressor(prior_groups="network", random_state=0, **kron).fit(*data)

    @pytest.mark.parametrize("nothing", [(), [], None, 0, np.int64(0), set(), np.empty((0, 2))])
    def test_no_interactions_can_be_said_in_many_ways(self, data, nothing):
        model = LANAMRegressor(interactions=nothing, max_iter=1, tol=1e6)
        with pytest.warns(ConvergenceWarning):
            model.fit(*data)
        assert len(model.interaction_scores_) == 0
        assert all(term.kind != "pair" for term in model.terms_)

    def test_the_classifier_has_no_likelihood_of_numbers(self):
        with pytest.raises(ValueError, match="choose 'categorical' or 'ordinal'"):
            LANAMClassifier(likelihood="gaussian").fit([[0.0], [1.0]], [0, 1])

    @pytest.mark.parametrize(
        ("arguments", "field", "expected"),
        [
            ({}, "init_scales", (1.0, 4.0, 16.0)),
            ({"solver": "adam"}, "init_scales", (1.0,)),
            ({"init_scales": [2]}, "init_scales", (2.0,)),
            ({"level_effects": False}, "level_effects", False),
            ({}, "level_effects", True),
            ({"hidden_sizes": [np.int64(3), 2]}, "hidden_sizes", (3, 2)),
            ({"max_knots": 50}, "max_knots", 50),
            ({"posterior": "block", "curvature": "kron"}, "curvature", "kron"),
            ({"posterior": "block", "curvature": "kron"}, "init_scales", (1.0,)),
            ({}, "interactions", "auto"),
            ({"interactions": None}, "interactions", 0),
            ({"interactions": np.int64(2)}, "interactions", 2),
            ({"interactions": [("noise", "a")]}, "interactions", ((0, 2),)),
            ({}, "interaction_score", "evidence"),
            ({"interaction_score": "evidence_gain"}, "interaction_score", "evidence_gain"),
            ({"pair_hidden_sizes": [4, 4]}, "pair_hidden_sizes", (4, 4)),
            ({}, "pair_init_scales", (1.0, 4.0)),
            ({"solver": "adam"}, "pair_init_scales", (1.0,)),
            ({"init_scales": [2]}, "pair_init_scales", (2.0,)),
        ],
    )
    def test_what_reaches_the_core(self, data, monkeypatch, arguments, field, expected):
        seen = {}

        def stop(tables, likelihood, options, *_, **__):
            seen["options"] = options
            raise RuntimeError("far enough")

        monkeypatch.setattr(fitting, "fit", stop)
        with pytest.raises(RuntimeError, match="far enough"):
            LANAMRegressor(**arguments).fit(*data)
        assert getattr(seen["options"], field) == expected


class TestTalking:
    def test_not_converging_is_a_warning_and_a_field(self, data):
        model = LANAMRegressor(max_iter=2, random_state=0)
        with pytest.warns(
            ConvergenceWarning, match="Raise max_iter to train longer, or raise tol"
        ) as told:
            model.fit(*data)
        assert told[0].filename == __file__  # the user's line, not ours
        assert not model.converged_
        assert "NOT converged" in str(model.summary())
        assert np.isfinite(model.predict(data[0])).all()

    def test_interrupting_keeps_the_best_so_far(self, data, monkeypatch):
        whole = LANAMRegressor(random_state=0).fit(*data)

        def fit(tables, likelihood, options, *more, **keywords):
            def interrupt(record):
                if record["iteration"] == 2:
                    raise KeyboardInterrupt

            options = replace(options, on_iteration=interrupt)
            return original(tables, likelihood, options, *more, **keywords)

        original = fitting.fit
        monkeypatch.setattr(fitting, "fit", fit)
        model = LANAMRegressor(random_state=0)
        with pytest.warns(ConvergenceWarning, match="interrupted after 2 iterations"):
            model.fit(*data)
        assert not model.converged_
        assert model.n_iter_ == 2 < whole.n_iter_
        assert np.isfinite(model.predict(data[0], return_std=True)).all()

    def test_history_has_a_record_an_iteration(self, regressor):
        assert len(regressor.history_) == regressor.n_iter_
        assert [record["iteration"] for record in regressor.history_] == list(
            range(1, regressor.n_iter_ + 1)
        )
        assert {"log_evidence", "noise_std", "n_active", "stage"} <= regressor.history_[0].keys()

    def test_progress_goes_to_standard_error(self, data, capsys):
        LANAMRegressor(random_state=0, verbose=1).fit(*data)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("lanam  columns: ")
        assert err.splitlines()[1].startswith("lanam  iteration 1 (")
        assert "log evidence" in err
        assert "noise sd" in err
        assert "terms 3" in err

    def test_silence_by_default(self, data, capsys):
        LANAMRegressor(random_state=0).fit(*data)
        assert capsys.readouterr() == ("", "")


def test_attributes_of_a_fit(regressor, classifier):
    assert regressor.n_features_in_ == 3
    assert len(regressor.interaction_scores_) == 3
    assert np.isfinite(regressor.log_evidence_)
    assert regressor.intercept_ == pytest.approx(3.0, abs=0.3)
    assert not hasattr(classifier, "noise_std_")
    term = regressor.terms_[0]
    assert (term.name, term.kind, term.features) == ("a", "smooth", (0,))
    assert term.active
    assert term.status == "active"
    assert term.importance > regressor.terms_[2].importance == 0.0
    assert term.evidence > 10.0
    assert 1.0 < term.effective_parameters < 30.0


class TestFeatureImportances:
    def test_interactions_are_split_between_their_columns(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(200, 3))
        y = X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=200)
        model = LANAMRegressor(interactions=[(0, 1)], noise="constant").fit(X, y)
        first, second, pair = (
            sum(term.importance for term in model.terms_ if term.features == features)
            for features in ((0,), (1,), (0, 1))
        )
        total = sum(term.importance for term in model.terms_)
        assert total == pytest.approx(first + second + pair)  # the third column was dropped
        expected = np.array([first + pair / 2, second + pair / 2, 0.0]) / total
        np.testing.assert_allclose(model.feature_importances_, expected)

    def test_scikit_learn_selects_by_them(self, regressor, data):
        selector = SelectFromModel(regressor, prefit=True, threshold="0.5*mean").fit(*data)
        assert selector.get_feature_names_out(NAMES).tolist() == ["a", "b"]

    def test_without_active_terms_all_are_zero(self):
        X = np.random.default_rng(0).normal(size=(60, 2))
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, np.tile([1.0, -1.0], 30))
        assert model.feature_importances_.tolist() == [0.0, 0.0]

    def test_they_are_learned(self):
        assert not hasattr(LANAMRegressor(), "feature_importances_")


@pytest.mark.parametrize("use", [LANAMClassifier, LANAMClassifier().set_params])
def test_class_weight_is_answered(use):
    with pytest.raises(TypeError, match="not an option of lanam") as caught:
        use(class_weight="balanced")
    error = caught.value
    assert str(error).startswith("class_weight='balanced' is not an option of lanam")
    assert error.argument == "class_weight"
    assert "lower the threshold" in error.remedy
    assert "sample_weight" in error.remedy


def test_level_effects_have_terms_of_their_own():
    rng = np.random.default_rng(0)
    recipe = rng.integers(0, 200, 2000)
    X = pd.DataFrame({"recipe": recipe.astype(float)})
    y = rng.normal(0.0, 1.0, 200)[recipe] + 0.1 * rng.standard_normal(2000)
    model = LANAMRegressor(random_state=0).fit(X, y)
    level = model.terms_[-1]
    assert (level.name, level.kind, level.feature_names) == (
        "recipe (levels)",
        "level",
        ("recipe",),
    )
    assert model.score(X, y) > 0.95
    smooth = LANAMRegressor(level_effects=False, random_state=0).fit(X, y)
    assert all(term.kind == "smooth" for term in smooth.terms_)


def test_numpys_own_values_are_as_good_as_plain_ones(data):
    X, y = data
    plain = LANAMRegressor(
        activation="relu", level_effects=False, hidden_sizes=(8,), random_state=0
    ).fit(X, y)
    numpys = LANAMRegressor(
        activation=np.str_("relu"),
        level_effects=np.False_,
        hidden_sizes=np.array([8]),
        random_state=0,
    ).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), numpys.predict(X))


def test_levels_are_found_again_in_single_precision():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, 2000)
    X = 0.1 * level[:, None]
    y = rng.normal(0.0, 1.0, 40)[level] + 0.1 * rng.standard_normal(2000)
    model = LANAMRegressor(random_state=0).fit(X, y)
    assert any(term.kind == "level" and term.active for term in model.terms_)
    np.testing.assert_allclose(model.predict(X.astype(np.float32)), model.predict(X), atol=0.01)
    between = model.predict_terms(X[:1] + 0.05)
    assert between[0, [term.kind == "level" for term in model.terms_]] == pytest.approx(
        [0.0], abs=0.1
    )
