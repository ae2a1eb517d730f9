"""More than two classes: probabilities, terms, bands, labels, and what a class more must not break."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from lanam import LANAMClassifier
from lanam.families import SOFTMAX

LABELS = np.array(["bus", "car", "walk"])


def classes_model(**options):
    return LANAMClassifier(random_state=0, **options)


def draw(scores, rng):
    """The number of a class for each row, with softmax's probabilities."""
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def truth(X):
    """Additive scores of three classes, which sum to zero over them."""
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    scores = np.column_stack([2.0 * np.sin(2 * a), b, 0.5 - 0.5 * a * a])
    return scores - scores.mean(axis=1, keepdims=True)


def make(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(n_rows, 3)), columns=["a", "b", "noise"])
    return X, draw(truth(X), rng)


@pytest.fixture(scope="module")
def data():
    X, number = make(600)
    return X, LABELS[number]


@pytest.fixture(scope="module")
def model(data):
    return classes_model().fit(*data)


class TestProbabilities:
    def test_they_are_near_the_truth(self, model):
        X, _ = make(2000, seed=1)
        error = model.predict_proba(X) - softmax(truth(X), axis=1)
        # 600 rows know a probability to some hundredths; the shares of the classes alone to 0.3.
        assert np.sqrt(np.mean(error**2)) < 0.08

    def test_rows_sum_to_one(self, model, data):
        for method in ("probit", "mc"):
            probability = model.predict_proba(data[0], method=method)
            assert probability.shape == (600, 3)
            np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)

    def test_all_ways_to_ask_for_the_class_agree(self, model, data):
        probability, decision = model.predict_proba(data[0]), model.decision_function(data[0])
        np.testing.assert_allclose(np.exp(decision), probability)
        chosen = LABELS[probability.argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(data[0]), chosen)
        assert model.score(data[0], data[1]) == (chosen == data[1]).mean()

    def test_probit_is_close_to_sampling(self, model, data):
        sampled = model.predict_proba(data[0], method="mc", n_samples=4000)
        # The approximation itself is good to about a hundredth.
        np.testing.assert_allclose(model.predict_proba(data[0]), sampled, atol=0.02)

    def test_sampling_agrees_with_draws_of_functions(self, model, data):
        sampled = model.predict_proba(data[0], method="mc", n_samples=4000)
        draws = model.sample(data[0], n_samples=4000, random_state=1)
        assert draws.shape == (4000, 600, 3)
        np.testing.assert_allclose(draws.sum(axis=2), 1.0)
        error = np.sqrt(2.0) * draws.std(axis=0) / np.sqrt(4000)
        assert (np.abs(sampled - draws.mean(axis=0)) < 5 * error).all()

    def test_sampling_is_repeatable_and_does_not_depend_on_the_batch(
        self, model, data, monkeypatch
    ):
        sampled = model.predict_proba(data[0], method="mc", n_samples=100)
        interval = model.predict_interval(data[0], n_samples=100)
        monkeypatch.setattr("lanam.classifier._CHUNK_VALUES", 3 * 100 * 7)
        np.testing.assert_allclose(
            model.predict_proba(data[0], method="mc", n_samples=100), sampled, rtol=1e-9
        )
        np.testing.assert_allclose(
            model.predict_interval(data[0][5:9], n_samples=100), interval[5:9], rtol=1e-9
        )
        other = model.predict_proba(data[0], method="mc", n_samples=100, random_state=1)
        assert (other != sampled).any()

    def test_draws_have_the_covariance_they_should(self):
        rng = np.random.default_rng(0)
        factor = rng.normal(size=(2, 3, 2))  # singular, as covariances of classes are
        factor -= factor.mean(axis=1, keepdims=True)
        covariance = factor @ factor.transpose(0, 2, 1)
        mean = rng.normal(size=(2, 3))
        normal = rng.standard_normal((200_000, 3))
        links = np.log(SOFTMAX.draw(mean, covariance, normal))
        for k in range(2):
            own = links[k] - links[k].mean(axis=1, keepdims=True)
            np.testing.assert_allclose(own.mean(axis=0), mean[k] - mean[k].mean(), atol=0.02)
            np.testing.assert_allclose(np.cov(own.T), covariance[k], rtol=0.02, atol=0.02)

    def test_intervals_are_quantiles_of_draws(self, model, data):
        interval = model.predict_interval(data[0], coverage=0.8, n_samples=4000)
        assert interval.shape == (600, 3, 2)
        draws = model.sample(data[0], n_samples=4000, random_state=1)
        expected = np.moveaxis(np.quantile(draws, [0.1, 0.9], axis=0), 0, -1)
        np.testing.assert_allclose(interval, expected, atol=0.02)
        with pytest.raises(ValueError, match="the interval of the probability"):
            model.predict_interval(data[0], kind="response")

    def test_log_likelihood_is_the_mean_log_probability(self, model, data):
        own = model.predict_proba(data[0])[np.arange(600), np.searchsorted(LABELS, data[1])]
        assert model.log_likelihood(*data) == pytest.approx(np.log(own).mean())
        weight = np.arange(600) % 3
        weighted = model.log_likelihood(*data, sample_weight=weight)
        assert weighted == pytest.approx(np.average(np.log(own), weights=weight))
        with pytest.raises(ValueError, match="'boat', which was not among"):
            model.log_likelihood(data[0], np.full(600, "boat"))

    def test_linear_scores_are_those_of_scikit_learns_regression(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(3000, 2))
        y = draw(X @ np.array([[1.5, 0.0, -1.5], [0.0, 1.0, -1.0]]), rng)
        linear = LogisticRegression(C=np.inf).fit(X, y)
        found = classes_model().fit(X, y)
        # Bands of a probability are about 0.03 wide; curves may bend within them.
        difference = found.predict_proba(X) - linear.predict_proba(X)
        assert np.sqrt(np.mean(difference**2)) < 0.02

    def test_without_columns_that_matter_they_are_the_shares(self):
        y = np.repeat([3, 5, 7], [10, 20, 30])
        found = classes_model().fit(np.zeros((60, 1)), y)
        link = np.log([1 / 6, 2 / 6, 3 / 6])
        # The core stops within 1e-8 of its optimum.
        np.testing.assert_allclose(found.intercept_, link - link.mean(), atol=1e-7)

    def test_iris(self):
        X, y = load_iris(return_X_y=True)
        assert cross_val_score(classes_model(), X, y, cv=5).mean() > 0.93


class TestTerms:
    def test_they_sum_to_the_scores(self, model, data):
        scores = model.intercept_ + model.predict_terms(data[0]).sum(axis=1)
        probability = softmax(scores, axis=1)
        draws = model.sample(data[0], n_samples=2000, random_state=0)
        # The scores of a probability are its logarithm, measured from their mean over the classes.
        links = np.log(draws) - np.log(draws).mean(axis=2, keepdims=True)
        error = links.std(axis=0) / np.sqrt(2000)
        assert (np.abs(links.mean(axis=0) - scores) < 5 * error).all()
        # Without the posterior's spread; with it they move towards each other.
        doubt = -(probability * np.log(probability)).sum(axis=1)
        more = model.predict_proba(data[0])
        assert (-(more * np.log(more)).sum(axis=1) > doubt).mean() > 0.95

    def test_they_sum_to_zero_over_the_classes(self, model, data):
        terms = model.predict_terms(data[0])
        assert terms.shape == (600, len(model.terms_), 3)
        np.testing.assert_allclose(terms.sum(axis=2), 0.0, atol=1e-12)
        assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)
        # And to zero over the training data, read with single-precision fractions.
        np.testing.assert_allclose(terms.mean(axis=0), 0.0, atol=1e-5)

    def test_a_column_that_brings_nothing_is_off_for_all_classes_at_once(self, model, data):
        assert [term.active for term in model.terms_[:3]] == [True, True, False]
        means, stds = model.predict_terms(data[0], return_std=True)
        assert stds.shape == means.shape
        assert (means[:, 2] == 0.0).all()
        assert (stds[:, 2] == 0.0).all()
        assert (stds[:, :2] > 0.0).all()

    def test_bands_cover_the_truth(self):
        within = []
        fresh, _ = make(1000, seed=99)
        for seed in range(8):
            X, y = make(1000, seed=seed)
            found = classes_model(interactions=0).fit(X, y)
            local = found.explain_local(fresh)
            error = np.abs(local.prediction - truth(fresh))
            within.append((error < 1.96 * local.prediction_std).mean())
        # Eight fits of few functions: their mean is known to some hundredths.
        assert np.mean(within) == pytest.approx(0.95, abs=0.05)

    def test_transform_has_a_column_a_term_and_class(self, model, data):
        terms = model.predict_terms(data[0])
        again = pickle.loads(pickle.dumps(model)).set_output(transform="pandas")
        frame = again.transform(data[0])
        assert list(frame.columns[:4]) == ["a [bus]", "a [car]", "a [walk]", "b [bus]"]
        np.testing.assert_array_equal(frame["b [walk]"], terms[:, 1, 2])
        assert list(frame.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(model.transform(data[0]), frame.to_numpy())

    def test_pairs_of_columns(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, size=(600, 3))
        product = X[:, 0] * X[:, 2]
        y = draw(np.column_stack([product, -product, np.zeros(600)]), rng)
        at_once = classes_model().fit(X, y)
        later = classes_model(interactions=0).fit(X, y)
        main = later.log_evidence_
        later.add_interactions(X, y)
        for found in (at_once, later):
            assert [t.name for t in found.terms_ if t.kind == "pair"] == ["x0 x x2"]
            assert found.log_evidence_ > main + 50.0
            np.testing.assert_allclose(found.predict_terms(X).sum(axis=2), 0.0, atol=1e-10)
        np.testing.assert_allclose(later.predict_proba(X), at_once.predict_proba(X), atol=0.05)
        surface = at_once.explain_global()["x0 x x2"]
        assert surface.mean.shape == (*surface.density.shape, 3)

    def test_pairs_are_learned_from_rows_of_all_classes(self, data):
        X, y = data
        found = classes_model(interactions=0).fit(X, y)
        weight = np.where(y == "walk", 0.0, 1.0)
        with pytest.raises(ValueError, match="no row of the class 'walk' with a positive weight"):
            found.add_interactions(X, y, sample_weight=weight)
        with pytest.raises(ValueError, match="'boat', which was not among"):
            found.add_interactions(X, np.where(y == "walk", "boat", y))


class TestExplanations:
    def test_shapes_have_a_function_a_class(self, model):
        explanation = model.explain_global()
        assert explanation.classes == tuple(LABELS.tolist())
        assert explanation.link == "softmax"
        shape = explanation["a"]
        assert shape.mean.shape == shape.std.shape == (len(shape.values), 3)
        frame = explanation.to_frame()
        assert set(frame["class"]) == set(LABELS)

    def test_rows_taken_apart(self, model, data):
        X = data[0][:5]
        local = model.explain_local(X)
        assert local.classes == tuple(LABELS.tolist())
        np.testing.assert_allclose(local.contributions, model.predict_terms(X))
        np.testing.assert_allclose(
            local.intercept + local.contributions.sum(axis=1), local.prediction
        )
        np.testing.assert_allclose(local.response, model.predict_proba(X))
        assert len(local.to_frame()) == 5 * (len(model.terms_) + 2) * 3

    def test_summary_names_the_classes(self, model):
        assert "3 classes: bus, car, walk" in str(model.summary())
        assert model.summary().to_dict()["classes"] == LABELS.tolist()

    def test_a_drawing(self, model):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from lanam.plot import plot_shapes

        axes = np.ravel(plot_shapes(model.explain_global()))
        assert len(axes) >= 2
        matplotlib.pyplot.close("all")


class TestInvariances:
    def test_names_and_order_of_classes(self, model, data):
        X, y = data
        renamed = pd.Series(y).map({"bus": 9, "car": 2, "walk": 4}).to_numpy()
        other = classes_model().fit(X, renamed)
        order = [2, 0, 1]  # where 9, 2 and 4 stand
        assert list(other.classes_) == [2, 4, 9]
        # The classes' scores are turned in their space, in which fits stop within their tolerance.
        np.testing.assert_allclose(
            other.predict_proba(X)[:, order], model.predict_proba(X), atol=1e-4
        )
        assert other.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-2)

    def test_names_in_the_same_order_change_nothing(self, model, data):
        X, y = data
        renamed = np.searchsorted(LABELS, y) - 1
        other = classes_model().fit(X, renamed)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))

    def test_a_weight_is_a_repetition(self, data):
        X, y = data[0][:200], data[1][:200]
        weight = np.arange(200) % 3
        again = np.repeat(np.arange(200), weight)
        weighted = classes_model(interactions=0).fit(X, y, sample_weight=weight)
        repeated = classes_model(interactions=0).fit(X.iloc[again], y[again])
        # A fit of many steps multiplies rounding.
        np.testing.assert_allclose(
            weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5, atol=1e-8
        )
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, abs=1e-4)

    def test_two_classes_are_not_three_with_one_unseen(self, data):
        X, y = data
        weight = np.where(y == "walk", 0.0, 1.0)
        found = classes_model(interactions=0).fit(X, y, sample_weight=weight)
        assert list(found.classes_) == ["bus", "car"]
        assert found.predict_proba(X).shape == (600, 2)
        assert isinstance(found.intercept_, float)

    def test_pickle_and_clone(self, model, data):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(data[0]), model.predict_proba(data[0]))
        assert clone(model).get_params() == model.get_params()


class TestLabels:
    @pytest.fixture(scope="class")
    @staticmethod
    def few():
        X, number = make(150)
        return X, number

    @pytest.mark.parametrize(
        ("values", "classes"),
        [
            (["x", "y", "z"], ["x", "y", "z"]),
            ([7, -1, 3], [-1, 3, 7]),
            ([2.0, 0.0, 1.0], [0.0, 1.0, 2.0]),
            (np.array([5, 6, 7], dtype=object), [5, 6, 7]),
            (np.array(["x", "y", "z"], dtype=object), ["x", "y", "z"]),
        ],
    )
    def test_any_will_do(self, few, values, classes):
        X, number = few
        found = classes_model(interactions=0).fit(X, np.asarray(values)[number])
        assert found.classes_.tolist() == classes
        assert set(found.predict(X)) <= set(classes)
        assert np.mean(found.predict(X) == np.asarray(values)[number]) > 0.5

    @pytest.mark.parametrize(
        "convert",
        [
            pd.Series,
            pd.Categorical,
            lambda labels: pd.Series(labels, dtype="string"),
            lambda labels: pd.Series(pd.Categorical(labels, ["walk", "car", "bus"], ordered=True)),
            pl.Series,
            lambda labels: pl.Series(labels).cast(pl.Categorical),
            lambda labels: pa.array(labels).dictionary_encode(),
            list,
        ],
    )
    def test_of_every_library(self, few, convert):
        X, number = few
        expected = classes_model(interactions=0).fit(X, LABELS[number])
        found = classes_model(interactions=0).fit(X, convert(LABELS[number].tolist()))
        assert found.classes_.tolist() == LABELS.tolist()
        np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.array(["a", 1, 2], dtype=object), r"mixes text and other labels.*str\(label\)"),
            (np.array(["a", None, "b"], dtype=object), "Input y contains NaN"),
            ([0.1, 0.2, 0.3], "Unknown label type: continuous"),
        ],
    )
    def test_what_is_refused(self, few, values, message):
        X, number = few
        with pytest.raises(ValueError, match=message):
            classes_model().fit(X, np.asarray(values)[number])


class TestHardCases:
    def test_a_class_of_one_row(self, data):
        X, y = data[0][:150], data[1][:150].copy()
        y[0] = "boat"
        found = classes_model(interactions=0).fit(X, y)
        assert list(found.classes_) == ["boat", "bus", "car", "walk"]
        share = found.predict_proba(X)[:, 0].mean()
        assert 0.0 < share < 0.05

    def test_classes_of_very_different_size(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(3000, 2))
        y = draw(np.column_stack([3.0 * X[:, 0], np.zeros(3000), np.full(3000, -6.0)]), rng)
        assert 0 < (y == 2).sum() < 30
        found = classes_model().fit(X, y)
        # The mean probability of a class is its share where the likelihood is at its best.
        shares = np.bincount(y) / 3000
        np.testing.assert_allclose(found.predict_proba(X).mean(axis=0), shares, atol=0.005)

    def test_more_classes_than_rows_of_each(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 2))
        y = np.arange(40) % 12
        found = classes_model(interactions=0).fit(X, y)
        probability = found.predict_proba(X)
        assert probability.shape == (40, 12)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)

    def test_classes_that_columns_tell_apart(self):
        X = np.linspace(-1.0, 1.0, 90)[:, None]
        y = np.repeat([0, 1, 2], 30)
        found = classes_model().fit(X, y)
        assert found.score(X, y) > 0.95
        assert np.isfinite(found.decision_function(1e3 * X)).all()

    def test_one_row_a_class(self):
        found = classes_model().fit(np.arange(3.0)[:, None], [0, 1, 2])
        np.testing.assert_allclose(found.predict_proba([[1.0]]).sum(), 1.0)

    def test_categories_and_gaps(self):
        rng = np.random.default_rng(0)
        city = rng.integers(0, 4, size=800)
        gap = rng.random(800) < 0.2
        X = pd.DataFrame(
            {
                "city": np.array(["Rome", "Bonn", "Oslo", "Bern"])[city],
                "age": np.where(gap, np.nan, rng.uniform(size=800)),
            }
        )
        scores = np.column_stack([1.5 * (city == 0), 1.5 * gap, np.zeros(800)])
        y = LABELS[draw(scores, rng)]
        found = classes_model(interactions=0).fit(X, y)
        shapes = found.explain_global()
        cities = dict(zip(shapes["city"].values, shapes["city"].mean, strict=True))
        assert cities["Rome"].argmax() == 0
        assert cities["Rome"][0] > 0.5
        assert shapes["age"].missing_mean.argmax() == 1
        new = pd.DataFrame({"city": ["Paris"], "age": [None]}).astype({"age": float})
        with pytest.warns(UserWarning, match="Paris"):
            probability = found.predict_proba(new)
        np.testing.assert_allclose(probability.sum(), 1.0)

    def test_far_from_zero_log_probabilities_are_numbers(self, model):
        X = pd.DataFrame(1e6 * np.eye(3), columns=["a", "b", "noise"])
        decision = model.decision_function(X)
        assert np.isfinite(decision).all()
        np.testing.assert_allclose(logsumexp(decision, axis=1), 0.0, atol=1e-9)


class TestThePapersVariants:
    def test_rows_that_do_not_count_are_not_missing(self, data):
        X, y = data[0][:100].copy(), data[1][:100] == "bus"
        X.iloc[0, 0] = np.nan
        weight = np.ones(100)
        weight[0] = 0.0
        found = classes_model(solver="adam", interactions=0, max_iter=2, tol=1e6)
        with pytest.warns(ConvergenceWarning):  # two iterations are not enough
            found.fit(X, y, sample_weight=weight)

    @pytest.mark.parametrize("options", [{"posterior": "block"}, {"evidence_update": "gradient"}])
    def test_the_others_are_for_all(self, data, options):
        X, y = data
        found = classes_model(interactions=0, **options).fit(X, y)
        fresh, _ = make(1000, seed=1)
        error = found.predict_proba(fresh) - softmax(truth(fresh), axis=1)
        assert np.sqrt(np.mean(error**2)) < 0.08

    def test_a_model_of_classes_cannot_be_trained_on_by_adam(self, data):
        found = classes_model(interactions=0).fit(*data).set_params(solver="adam")
        with pytest.raises(ValueError, match="y has 3 classes"):
            found.add_interactions(*data)


def test_many_classes_of_several_rows_are_no_regression():
    """No warning of scikit-learn's, which compares the number of classes with that of labels."""
    labels = np.repeat(np.arange(25), 4)
    X = np.random.default_rng(0).standard_normal((100, 1))
    model = LANAMClassifier(interactions=0, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="still rising") as caught:
        model.fit(X, labels)
    assert not [each for each in caught if "regression problem" in str(each.message)]
