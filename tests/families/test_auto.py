"""The family by evidence, and the remark of a fit whose family is another."""

import numpy as np
import pytest
from scipy.stats import poisson

import lanam
from lanam import LANAMRegressor
from lanam.choosing import suiting
from lanam.families.checks import Support
from lanam.families.poisson import log_normaliser
from lanam.family_scores import FamilyScores
from tests.families.test_responses import tweedie

N = 500


def data(name, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (N, 2))
    f = 0.5 + 0.8 * np.sin(2.0 * X[:, 0])
    mean = np.exp(f)
    y = {
        "gaussian": lambda: 9.0 + f + 0.4 * rng.normal(size=N),
        "student": lambda: f + 0.4 * rng.standard_t(3.0, N),
        "lognormal": lambda: np.exp(f + 0.6 * rng.normal(size=N)),
        "gamma": lambda: mean * rng.gamma(2.0, size=N) / 2.0,
        "tweedie": lambda: tweedie(rng, mean, 1.0),
        "poisson": lambda: rng.poisson(mean),
        "negative_binomial": lambda: rng.poisson(mean * rng.gamma(1.0, size=N)),
    }[name]()
    return X, np.asarray(y, dtype=float)


@pytest.fixture(
    scope="module",
    params=[
        *("gaussian", "student", "lognormal", "gamma"),
        *("tweedie", "poisson", "negative_binomial"),
    ],
)
def fitted(request):
    model = LANAMRegressor(likelihood="auto", interactions=0, random_state=0)
    return request.param, model.fit(*data(request.param))


def test_the_true_family_is_named(fitted):
    name, model = fitted
    assert model.family_.name == name
    scores = model.family_scores_
    assert scores[0] == {
        "family": name,
        "log_evidence": scores[0]["log_evidence"],
        "chosen": True,
    }
    assert [row["chosen"] for row in scores.rows[1:]] == [False] * (len(scores) - 1)
    values = [row["log_evidence"] for row in scores.rows]
    assert values == sorted(values, reverse=True)
    assert np.isfinite(values).all()
    assert name in str(scores)
    assert "chosen" in str(scores)
    assert list(scores.to_frame().columns) == ["family", "log_evidence", "chosen"]
    assert f"likelihood {name}" in str(model.summary())


def test_it_is_saved(fitted, tmp_path):
    _, model = fitted
    again = lanam.load(model.save(tmp_path / "model.lanam"))
    assert again.family_scores_.scores == model.family_scores_.scores
    assert again.likelihood == "auto"
    assert str(again.summary()) == str(model.summary())


def test_scales_of_y_do_not_matter():
    X, y = data("gamma")
    options = {"likelihood": "auto", "interactions": 0, "noise": "constant", "random_state": 0}
    usual = LANAMRegressor(**options).fit(X, y).family_scores_
    larger = LANAMRegressor(**options).fit(X, 1000.0 * y).family_scores_
    for (name, score), (other, moved) in zip(usual.scores, larger.scores, strict=True):
        assert name == other
        assert moved == pytest.approx(score - N * np.log(1000.0), abs=0.5)


def test_files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = data("negative_binomial")
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), tmp_path / "rows.parquet")
    model = LANAMRegressor(likelihood="auto", interactions=0, random_state=0)
    model.fit(str(tmp_path / "rows.parquet"), target="y")
    assert model.family_.name == "negative_binomial"


@pytest.mark.parametrize(
    ("support", "names"),
    [
        (Support(-1.0, 5.0, False), "gaussian student"),
        (Support(0.5, 5.0, False), "gaussian student lognormal gamma"),
        (Support(0.0, 5.0, False, 7), "tweedie"),
        (Support(0.0, 5.0, True, 7), "poisson negative_binomial"),
        (Support(3.0, 500.0, True), "gaussian student lognormal gamma poisson negative_binomial"),
    ],
)
def test_what_suits(support, names):
    assert [family.name for family in suiting(support)] == names.split()


def test_exposures_and_trials_decide():
    assert [f.name for f in suiting(Support(0.0, 9.0, True), trials=True)] == ["binomial"]
    assert [f.name for f in suiting(Support(0.0, 9.5, False), exposed=True)] == ["tweedie"]
    assert [f.name for f in suiting(Support(0.0, 900.0, True), exposed=True)] == [
        "poisson",
        "negative_binomial",
    ]


class TestTheRemark:
    def remark(self, name, seed=0):
        model = LANAMRegressor(interactions=0, random_state=0).fit(*data(name, seed))
        return model.summary().facts["better_family"]

    def test_names_the_argument(self):
        assert self.remark("gamma").startswith("remark: likelihood='gamma' describes a sample")
        assert "likelihood='negative_binomial'" in self.remark("negative_binomial")

    @pytest.mark.parametrize("seed", range(3))
    def test_is_silent_where_the_noise_is_gaussian(self, seed):
        assert self.remark("gaussian", seed) is None

    def test_is_saved(self, tmp_path):
        model = LANAMRegressor(interactions=0, random_state=0).fit(*data("gamma"))
        again = lanam.load(model.save(tmp_path / "model.lanam"))
        assert "remark: likelihood='gamma'" in str(again.summary())


class TestCountsWithADispersion:
    """The quasi-likelihood of counts is compared as a distribution."""

    @pytest.mark.parametrize("dispersion", [1.0, 1.5, 3.0])
    def test_its_sum_over_all_counts(self, dispersion):
        mean = np.array([0.05, 0.7, 2.0, 15.0, 150.0])
        counts = np.arange(3000.0)[:, None]
        saturated = poisson.logpmf(counts, np.maximum(counts, 1e-300))
        deviance = 2.0 * (saturated - poisson.logpmf(counts, mean))
        total = np.exp(saturated - 0.5 * deviance / dispersion).sum(axis=0) / np.sqrt(dispersion)
        np.testing.assert_allclose(log_normaliser(mean, dispersion), np.log(total), atol=1e-3)

    @pytest.mark.parametrize("exposed", [False, True])
    def test_the_correction_is_a_likelihood(self, exposed):
        rng = np.random.default_rng(0)
        size = rng.uniform(0.5, 3.0, 400) if exposed else np.ones(400)
        x = rng.uniform(-1.0, 1.0, 400)
        y = rng.poisson(size * np.exp(1.0 + x) * rng.gamma(2.0, size=400) / 2.0)
        given = {"exposure": size} if exposed else {}
        scores = LANAMRegressor(likelihood="auto", interactions=0).fit(x[:, None], y, **given)
        plain = LANAMRegressor(likelihood="poisson", interactions=0).fit(x[:, None], y, **given)
        score = dict(scores.family_scores_.scores)["poisson"]
        mean = plain.predict(x[:, None], **given)  # the posterior's variance is small
        saturated = poisson.logpmf(y, np.maximum(y, 1e-300))
        deviance = 2.0 * (saturated - poisson.logpmf(y, mean)).sum()

        def quasi(phi):
            return -0.5 * (deviance / phi + 400 * np.log(phi))

        best = max(quasi(phi) - log_normaliser(mean, phi).sum() for phi in np.linspace(1, 6, 400))
        expected = plain.log_evidence_ + best - max(map(quasi, np.linspace(1, 6, 400)))
        assert score == pytest.approx(expected, abs=1.0)
        assert abs(score - plain.log_evidence_) > 1.5

    def test_of_equal_families_the_simpler_one(self):
        for better, name in ((0.05, "poisson"), (0.5, "negative_binomial")):
            scores = FamilyScores.of([("poisson", -10.0), ("negative_binomial", -10.0 + better)])
            assert scores[0]["family"] == name
            assert scores[0]["chosen"]
