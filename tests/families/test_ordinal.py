"""Ordered classes: the cumulative logit with learned cut points."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.families import BERNOULLI
from lanam.families.ordinal import Ordinal
from lanam.metrics import coverage_report
from tests.report.pages import Page

GRADES = ("low", "mid", "high", "top")
CUTS = np.array([-0.5, 0.5, 2.0])
N = 900


def problem(n_rows=N, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(-2.0, 2.0, n_rows), "b": rng.normal(size=n_rows)})
    f = 1.5 * np.sin(2.0 * X["a"].to_numpy()) + 0.5
    number = np.digitize(f + rng.logistic(size=n_rows), CUTS)
    y = pd.Categorical(np.array(GRADES)[number], categories=GRADES, ordered=True)
    return X, pd.Series(y, name="grade"), f


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = problem()
    return LANAMClassifier(likelihood="ordinal", interactions=0, random_state=0).fit(X, y)


class TestTheLikelihood:
    likelihood = Ordinal((0.7, 1.4))
    F = np.array([-3.0, -0.2, 0.4, 2.5])

    def test_probabilities_sum_to_one(self):
        values = [self.likelihood.log_prob(np.full(4, float(k)), self.F) for k in range(4)]
        np.testing.assert_allclose(np.exp(values).sum(axis=0), 1.0)
        cuts = np.array([0.0, 0.7, 2.1])
        upto = expit(cuts[:, None] - self.F)
        np.testing.assert_allclose(np.cumsum(np.exp(values), axis=0)[:-1], upto)

    @pytest.mark.parametrize("grade", range(4))
    def test_gradient(self, grade):
        y, step = np.full(4, float(grade)), 1e-5
        finite = self.likelihood.log_prob(y, self.F + step)
        finite = (finite - self.likelihood.log_prob(y, self.F - step)) / (2.0 * step)
        np.testing.assert_allclose(
            self.likelihood.gradient(y, self.F), finite, rtol=1e-6, atol=1e-9
        )

    def test_the_curvature_is_the_variance_of_the_gradient(self):
        grades = np.arange(4.0)[:, None] * np.ones(4)
        chance = np.exp([self.likelihood.log_prob(y, self.F) for y in grades])
        squares = np.square([self.likelihood.gradient(y, self.F) for y in grades])
        np.testing.assert_allclose(
            self.likelihood.curvature(self.F), (chance * squares).sum(axis=0), rtol=1e-9
        )

    def test_far_out(self):
        assert self.likelihood.log_prob(np.array([1.0]), np.array([300.0]))[0] == pytest.approx(
            -299.3, abs=0.8
        )


def test_functions_and_cut_points(fitted):
    X, _, f = problem()
    assert fitted.classes_.tolist() == list(GRADES)
    np.testing.assert_allclose(fitted.family_parameters_["cut_points"], CUTS - CUTS[0], atol=0.25)
    found = fitted.intercept_ + fitted.predict_terms(X).sum(axis=1)
    assert np.sqrt(np.mean((found - (f - CUTS[0])) ** 2)) < 0.3
    assert [term.name for term in fitted.terms_ if term.active] == ["a"]


def test_probabilities(fitted):
    X, y, f = problem(3000, 1)
    upto = expit(np.append(CUTS, np.inf) - f[:, None])
    truth = np.diff(upto, axis=1, prepend=0.0)
    probability = fitted.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert np.abs(probability - truth).mean() < 0.04
    np.testing.assert_allclose(
        fitted.predict_proba(X[:50], method="mc"), probability[:50], atol=0.02
    )
    interval = fitted.predict_interval(X[:300], coverage=0.95)
    inside = (interval[..., 0] <= truth[:300]) & (truth[:300] <= interval[..., 1])
    # The cut points count as known, of which the grades in the middle depend most.
    assert inside[:, [0, -1]].mean() > 0.75
    assert (fitted.predict(X) == fitted.classes_[probability.argmax(axis=1)]).all()
    np.testing.assert_allclose(np.exp(fitted.decision_function(X)), probability)
    assert fitted.sample(X[:4], n_samples=3, random_state=0).shape == (3, 4, 4)
    report = coverage_report(fitted, X, y)
    assert report.scores["nll"] == pytest.approx(-fitted.log_likelihood(X, y))


def test_better_than_classes_without_an_order(fitted):
    X, y, _ = problem()
    new, target, _ = problem(3000, 1)
    several = LANAMClassifier(interactions=0, random_state=0).fit(X, np.asarray(y))
    assert fitted.log_evidence_ > several.log_evidence_ + 5.0
    assert fitted.log_likelihood(new, target) > several.log_likelihood(new, target)


def test_explanations_are_of_more_than_the_lowest_grade(fitted, tmp_path):
    said = str(fitted.explain_global().difference("a", 1.0, 0.0))
    assert "log-odds of more than low" in said
    assert "odds ratio" in said
    X, y, _ = problem(60, 2)
    local = fitted.explain_local(X)
    np.testing.assert_allclose(local.response, 1.0 - fitted.predict_proba(X)[:, 0], atol=1e-12)
    assert "more than low" in str(fitted.summary())
    page = Page.read(fitted.report(tmp_path / "report.html", X, y))
    assert page.data["classes"] == ["grade = low", "grade = more than low"]
    assert page.data["grades"] == list(GRADES)


def test_saved_and_calibrated(fitted, tmp_path):
    X, y, _ = problem(500, 3)
    again = lanam.load(fitted.save(tmp_path / "model.lanam"))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.family_parameters_ == fitted.family_parameters_
    sets = again.calibrate(X, y).predict_set(X, coverage=0.9)
    chosen = sets[np.arange(500), np.searchsorted(np.arange(4), y.cat.codes)]
    assert chosen.mean() >= 0.9


def test_files_and_pairs(tmp_path):
    pytest.importorskip("pyarrow")
    X, y, _ = problem()
    X.assign(grade=y.cat.codes.astype(float)).to_parquet(tmp_path / "rows.parquet")
    model = LANAMClassifier(likelihood="ordinal", random_state=0)
    model.fit(str(tmp_path / "rows.parquet"), target="grade")
    assert model.classes_.tolist() == [0, 1, 2, 3]
    names = model.predict_files(
        str(tmp_path / "rows.parquet"), tmp_path / "out.parquet", proba=True, terms=True
    )
    assert names == N
    written = pd.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_allclose(written.filter(like="probability_").sum(axis=1), 1.0)


class TestTheOrder:
    X = np.linspace(0.0, 1.0, 60)[:, None]

    def classes(self, y, X=None, **given):
        model = LANAMClassifier(likelihood="ordinal", interactions=0, random_state=0)
        return model.fit(self.X if X is None else X, y, **given).classes_.tolist()

    def test_is_sorted_without_one(self):
        assert self.classes(np.resize([3, 1, 2], 60)) == [1, 2, 3]
        assert self.classes(np.resize(["c", "a", "b"], 60)) == ["a", "b", "c"]

    def test_is_that_of_a_column(self):
        y = pd.Categorical(np.resize(["c", "a", "b"], 60), ["b", "c", "a", "unused"], ordered=True)
        assert self.classes(y) == ["b", "c", "a"]
        frame = pd.DataFrame({"x": self.X[:, 0], "grade": y})
        assert self.classes("grade", frame) == ["b", "c", "a"]

    def test_is_that_of_an_enumeration(self):
        pl = pytest.importorskip("polars")
        y = pl.Series(np.resize(["c", "a", "b"], 60).tolist(), dtype=pl.Enum(["b", "c", "a"]))
        assert self.classes(y) == ["b", "c", "a"]


def test_two_grades_are_two_classes():
    X, y = np.linspace(0.0, 1.0, 60)[:, None], np.resize([0, 1], 60)
    assert LANAMClassifier(likelihood="ordinal", random_state=0).fit(X, y).family_ is BERNOULLI


def test_errors():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
    with pytest.raises(ValueError, match=r"likelihood='logit' is not known: choose 'categorical'"):
        LANAMClassifier(likelihood="logit").fit(X, y)
    with pytest.raises(
        ValueError, match=r"likelihood='ordinal' is for classes: use LANAMClassifier"
    ):
        LANAMRegressor(likelihood="ordinal").fit(X, y)
