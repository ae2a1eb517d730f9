"""A family is one object: another one, defined here, does all that those of the library do."""

import io
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, logsumexp

import lanam
from lanam import LANAMClassifier, LANAMRegressor, families
from lanam.core.fit import prepare
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model.distributions import Discrete
from lanam.families import BERNOULLI, GAUSSIAN, POISSON, SOFTMAX, Family, find_family
from lanam.families.base import NewRows
from lanam.families.links import LOG, Words
from lanam.metrics import coverage_report
from tests.report.pages import Page

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Geometric(Likelihood):
    """Failures before the first success, of mean ``exp(f)``."""

    name = "geometric"

    def log_prob(self, y, f):
        return y * log_expit(f) + log_expit(-f)

    def gradient(self, y, f):
        return y - (y + 1.0) * expit(f)

    def curvature(self, f):
        return expit(f)  # the expectation: (mean + 1) p (1 - p)

    def fit_intercept_only(self, y, weight):
        return float(np.log(weight @ y / weight.sum()))


@dataclass(frozen=True)
class GeometricLognormal(Discrete):
    """Geometric counts whose log means are normal."""

    log_mean: np.ndarray
    log_variance: np.ndarray

    @property
    def _links(self):
        return self.log_mean[:, None] + np.sqrt(self.log_variance)[:, None] * NODES

    @property
    def mean(self):
        return np.exp(self.log_mean + 0.5 * self.log_variance)

    @property
    def std(self):
        square = np.exp(2.0 * self.log_mean + 2.0 * self.log_variance)
        return np.sqrt(self.mean + 2.0 * square - self.mean**2)

    def cdf(self, y):
        beyond = np.exp(np.maximum(np.floor(y) + 1.0, 0.0)[:, None] * log_expit(self._links))
        return 1.0 - beyond @ WEIGHTS

    def log_prob(self, y):
        at_nodes = Geometric().log_prob(y[:, None], self._links)
        return logsumexp(at_nodes, b=WEIGHTS, axis=1)

    def sample(self, n_samples, rng):
        links = self.log_mean + np.sqrt(self.log_variance) * rng.standard_normal(
            (n_samples, len(self.log_mean))
        )
        return rng.geometric(expit(-links)) - 1.0


class GeometricFamily(Family):
    """All that is particular to it."""

    name = Geometric.name
    link = LOG
    words = Words(
        response="mean", total="log mean", unit="log mean", scale="the log mean", ratio="ratio"
    )
    discrete = True
    positive = True

    def check(self, y):
        return POISSON.check(y)

    def likelihood(self, n_classes=0):
        return Geometric()

    def mean(self, mean, variance):
        return np.exp(mean + 0.5 * variance)

    def response(self, link, exposure):
        return bounded_exp(link)

    def predictive(self, model, rows):
        return GeometricLognormal(*rows.moments(model))


@pytest.fixture(scope="module")
def registered():
    families.FAMILIES["geometric"] = GeometricFamily()
    yield
    del families.FAMILIES["geometric"]


def problem(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n_rows, 3))
    link = 0.5 + np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1]
    return X, rng.geometric(expit(-link)) - 1.0, link


@pytest.fixture(scope="module")
def fitted(registered):
    X, y, _ = problem(1200, 0)
    return LANAMRegressor(likelihood="geometric", random_state=0).fit(X, y)


class TestAFamilyOfOneFile:
    def test_fits(self, fitted):
        X, _, link = problem(1000, 1)
        active = [term.name for term in fitted.terms_ if term.active]
        assert active == ["x0", "x1"]
        found = fitted.intercept_ + fitted.predict_terms(X).sum(axis=1)
        assert np.corrcoef(found, link)[0, 1] > 0.97

    def test_its_likelihood_is_its_own_derivative(self):
        y, f, step = np.array([0.0, 3.0, 9.0]), np.array([-1.0, 0.3, 2.0]), 1e-5
        likelihood = Geometric()
        numeric = (likelihood.log_prob(y, f + step) - likelihood.log_prob(y, f - step)) / (
            2.0 * step
        )
        np.testing.assert_allclose(likelihood.gradient(y, f), numeric, rtol=1e-6)
        np.testing.assert_allclose(
            likelihood.log_prob(y, f), stats.geom.logpmf(y + 1.0, expit(-f)), rtol=1e-12
        )

    def test_predicts(self, fitted):
        X, y, link = problem(2000, 1)
        mean, std = fitted.predict(X, return_std=True)
        assert np.mean(y - mean) == pytest.approx(0.0, abs=4.0 * np.mean(std) / np.sqrt(len(y)))
        lower, upper = fitted.predict_interval(X, coverage=0.9).T
        assert ((lower <= y) & (y <= upper)).mean() > 0.88
        low, high = fitted.predict_interval(X, coverage=0.95, kind="mean").T
        assert ((low <= np.exp(link)) & (np.exp(link) <= high)).mean() > 0.8
        assert (fitted.predict_cdf(X, upper) >= 0.95).all()
        poisson = LANAMRegressor(likelihood="poisson", interactions=0, random_state=0)
        poisson.fit(*problem(1200, 0)[:2])
        assert fitted.log_likelihood(X, y) > poisson.log_likelihood(X, y)

    def test_explains(self, fitted):
        X = problem(50, 1)[0]
        assert fitted.explain_global().link == "log"
        said = str(fitted.explain_global().difference("x1", 1.0, 0.0))
        assert "changes the log mean by" in said
        assert "ratio" in said
        local = fitted.explain_local(X)
        np.testing.assert_allclose(local.response, fitted.predict(X))
        summary = fitted.summary()
        assert summary.facts["noise_std"] is None
        assert summary.facts["dispersion"] is None

    def test_calibrates(self, fitted):
        X, y, _ = problem(3000, 2)
        model = pickle.loads(pickle.dumps(fitted)).calibrate(X[:1000], y[:1000])
        lower, upper = model.predict_interval(X[1000:], coverage=0.8).T
        assert ((lower <= y[1000:]) & (y[1000:] <= upper)).mean() > 0.77
        report = coverage_report(fitted, X, y)
        assert report.scores["nll"] == pytest.approx(-fitted.log_likelihood(X, y))
        assert all(row["expected"] > row["level"] for row in report.rows)  # whole numbers

    def test_saves(self, fitted, tmp_path):
        X = problem(50, 1)[0]
        again = lanam.load(fitted.save(tmp_path / "model.lanam"))
        assert again.family_.name == "geometric"
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))

    def test_reports(self, fitted, tmp_path):
        X, y, _ = problem(200, 1)
        page = Page.read(fitted.report(tmp_path / "report.html", X, y))
        # The page's script has no such distribution, and reports that.
        assert {level["z_new"] for level in page.data["levels"]} == {None}
        assert "see predict_interval" in page.data["levels"][0]["reason"]

    def test_exports_what_it_can(self, fitted):
        assert "relativity" not in fitted.export(None, to="csv").splitlines()[0]
        assert "link_mean" in fitted.export(None, to="sql", variance=False)
        with pytest.raises(
            ValueError, match=r"likelihood='geometric' are not supported .*variance=False"
        ):
            fitted.export(None, to="sql")

    def test_files(self, fitted, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        X, y, _ = problem(1200, 0)
        names = ["x0", "x1", "x2"]
        table = pa.table({name: X[:, k] for k, name in enumerate(names)} | {"y": y})
        parquet.write_table(table, tmp_path / "rows.parquet")
        model = LANAMRegressor(likelihood="geometric", random_state=0)
        model.fit(str(tmp_path / "rows.parquet"), target="y")
        np.testing.assert_allclose(model.log_evidence_, fitted.log_evidence_, rtol=1e-6)


def test_an_unknown_family_is_an_error():
    X, y, _ = problem(50, 0)
    with pytest.raises(ValueError, match=r"likelihood='cauchy' is not known: choose 'gaussian'"):
        LANAMRegressor(likelihood="cauchy").fit(X, y)
    with pytest.raises(ValueError, match="is not known"):
        find_family("cauchy")


def test_a_refit_is_of_what_is_asked_now():
    X, y, _ = problem(200, 0)
    model = LANAMRegressor(interactions=0, noise="constant", random_state=0).fit(X, y)
    model.set_params(likelihood="poisson").fit(X, y, exposure=np.full(200, 2.0))
    assert model.family_ is POISSON
    assert np.isfinite(model.dispersion_)
    model.set_params(likelihood="gaussian").fit(X, y)
    assert model.family_ is GAUSSIAN


@pytest.mark.parametrize(
    ("estimator", "labels", "family"),
    [
        (LANAMClassifier(random_state=0), ["a", "b"], BERNOULLI),
        (LANAMClassifier(random_state=0), ["a", "b", "c"], SOFTMAX),
    ],
)
def test_the_family_of_classes_is_by_their_number(estimator, labels, family):
    X = np.random.default_rng(0).normal(size=(90, 2))
    model = estimator.fit(X, np.resize(labels, 90))
    assert model.family_ is family


@pytest.fixture(scope="module", params=["gaussian", "poisson"])
def rows(request):
    """The predictive distributions of five rows."""
    X, y, _ = problem(400, 3)
    model = LANAMRegressor(likelihood=request.param, interactions=0, random_state=0).fit(X, y)
    return model._predictive(X[:5], None)


class TestPredictiveDistributions:
    """A family's predictive distributions agree with their draws."""

    def test_moments(self, rows):
        draws = rows.sample(40_000, np.random.default_rng(0))
        np.testing.assert_allclose(draws.mean(axis=0), rows.mean, rtol=0.05)
        np.testing.assert_allclose(draws.std(axis=0), rows.std, rtol=0.08)

    def test_probabilities(self, rows):
        draws = rows.sample(40_000, np.random.default_rng(1))
        at = np.floor(rows.mean)
        np.testing.assert_allclose((draws <= at).mean(axis=0), rows.cdf(at), atol=0.01)
        median = rows.ppf(0.5)
        assert (rows.cdf(median) >= 0.5 - 1e-9).all()

    def test_crps(self, rows):
        rng = np.random.default_rng(2)
        first, second = rows.sample(40_000, rng), rows.sample(40_000, rng)
        y = np.round(rows.mean) + 2.0
        wanted = np.abs(first - y).mean(axis=0) - 0.5 * np.abs(first - second).mean(axis=0)
        np.testing.assert_allclose(rows.crps(y), wanted, rtol=0.03)


def test_counts_far_apart_are_scored_in_steps():
    """The sum over many counts is a sum over steps of some: as of a lognormal's quantiles."""
    rows = POISSON.predictive
    model = LANAMRegressor(likelihood="poisson", random_state=0)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    model.fit(X, rng.poisson(1e5 * np.exp(X[:, 0])))
    counts = rows(model._model, NewRows(X[:3], np.ones(3)))
    draws = counts.sample(200_000, rng)
    y = counts.mean * 1.01
    expected = np.abs(draws - y).mean(axis=0)
    expected -= 0.5 * np.abs(draws - rng.permutation(draws)).mean(axis=0)
    np.testing.assert_allclose(counts.crps(y), expected, rtol=0.03)


def test_every_family_can_be_sent_elsewhere():
    for family in families.FAMILIES.values():
        copy = io.BytesIO()
        pickle.dump(family, copy)
        assert pickle.loads(copy.getvalue()).name == family.name


@pytest.mark.parametrize("family", ["bernoulli", "classes", "poisson"])
def test_events_that_the_sample_of_many_rows_lacks(monkeypatch, family):
    """A fit starts with a sample; one of 200,000 rows may lack a class of three, or all events."""
    monkeypatch.setattr(prepare, "SAMPLE_ROWS", 100)  # the diagnostics are of these rows, too
    X = np.random.default_rng(0).standard_normal((2000, 1))
    y = np.arange(2000) % 2 if family == "classes" else np.zeros(2000, dtype=int)
    y[[5, 900, 1700]] = 2
    if family == "poisson":
        model = LANAMRegressor(likelihood="poisson", random_state=0)
    else:
        model = LANAMClassifier(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # that few rows determine the fit
        model.fit(X, y)
    rates = model.predict(X) if family == "poisson" else model.predict_proba(X)[:, -1]
    expected = (y == 2).mean() * (2.0 if family == "poisson" else 1.0)
    assert 0.5 * expected < rates.mean() < 2.0 * expected
