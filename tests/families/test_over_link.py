"""Distributions averaged over a normal link: against dense sums and draws."""

import numpy as np
import pytest
from scipy import stats

from lanam.core.model.mixtures import GAUSSIAN, Mixture, standardised
from lanam.families.binomial import BinomialOverLink
from lanam.families.lognormal import LogMixture
from lanam.families.student import as_mixture
from lanam.families.tweedie import TweedieOverLink
from tests.families.densities import CASES, MIXTURES

#: Known links, small and large variances: one rule of integration each.
MEAN = np.array([0.3, 0.3, 1.0, -0.5])
VARIANCE = np.array([0.0, 1e-3, 0.4, 4.0])


@pytest.fixture(params=MIXTURES)
def name(request):
    return request.param


@pytest.fixture
def rows(name):
    return MIXTURES[name](MEAN, VARIANCE)


def averaged(of):
    """An average over the link of each row by a fine lattice."""
    z = np.linspace(-9.0, 9.0, 4001)
    weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    return np.array([of(m + np.sqrt(v) * z) @ weights for m, v in zip(MEAN, VARIANCE, strict=True)])


class TestAgainstADenseSum:
    def test_mean(self, name, rows):
        np.testing.assert_allclose(rows.mean, np.exp(MEAN + 0.5 * VARIANCE), rtol=1e-7)
        at = CASES[name][1]
        wanted = averaged(lambda f: at(f).var() + at(f).mean() ** 2) - rows.mean**2
        # Of squares, the lattice leaves out what is beyond eight standard deviations.
        np.testing.assert_allclose(rows.std**2, wanted, rtol=1e-4)

    @pytest.mark.parametrize("y", [0.0, 1.0, 7.0])
    def test_probabilities(self, name, rows, y):
        at = CASES[name][1]
        below, above = rows.tails(np.full(4, y))
        np.testing.assert_allclose(below, averaged(lambda f: at(f).cdf(y)), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(above, averaged(lambda f: at(f).sf(y)), rtol=1e-7, atol=1e-12)
        likelihood = CASES[name][0]
        if y > 0.0:
            dense = averaged(lambda f: np.exp(likelihood.log_prob(np.full_like(f, y), f)))
            np.testing.assert_allclose(np.exp(rows.log_prob(np.full(4, y))), dense, rtol=1e-6)


class TestQuantiles:
    @pytest.mark.parametrize("probability", [1e-4, 0.05, 0.5, 0.95, 0.9999])
    def test_are_where_the_probability_is_reached(self, name, rows, probability):
        at = rows.ppf(probability)
        if name == "gamma":
            np.testing.assert_allclose(rows.cdf(at), probability, rtol=1e-6)
        else:
            assert (rows.cdf(at) >= probability).all()
            assert (rows.cdf(at - 1.0) < probability).all()

    def test_scores_and_intervals_are_inverse(self, rows):
        y = np.array([0.0, 2.0, 1.0, 40.0]) + (0.5 if rows.ppf(0.5)[0] % 1.0 else 0.0)
        scores = rows.score(y)
        for k, score in enumerate(scores):
            low, high = rows.interval(score)[k]
            assert low <= y[k] <= high

    def test_far_out_they_are_extrapolated(self):
        rows = MIXTURES["gamma"](MEAN, VARIANCE)
        inner, outer = rows.at_score(6.0), rows.at_score(9.0)
        assert (outer > inner).all()
        assert np.isfinite(outer).all()


def test_crps(rows):
    rng = np.random.default_rng(0)
    y = np.round(rows.mean) + 1.0
    first, second = rows.sample(100_000, rng), rows.sample(100_000, rng)
    wanted = np.abs(first - y).mean(axis=0) - 0.5 * np.abs(first - second).mean(axis=0)
    # The last row has heavy tails, which draws do not reach.
    np.testing.assert_allclose(rows.crps(y)[:3], wanted[:3], rtol=0.03)


def test_parts(rows):
    again = rows.part(np.array([2, 0, 2]))
    np.testing.assert_allclose(again.mean, rows.mean[[2, 0, 2]], rtol=1e-12)


def test_tweedie_and_binomial_rows_agree_with_their_draws():
    rng = np.random.default_rng(0)
    exposure = np.array([0.5, 2.0, 1.0])
    mean, variance = np.array([0.2, 1.0, -0.5]), np.array([0.0, 0.3, 0.01])
    for rows, y in (
        (TweedieOverLink(mean, variance, exposure, 1.4, 1.6), np.array([0.0, 3.0, 0.4])),
        (BinomialOverLink(mean, variance, np.array([1.0, 9.0, 30.0])), np.array([1.0, 7.0, 10.0])),
    ):
        draws = rows.sample(200_000, rng)
        np.testing.assert_allclose(draws.mean(axis=0), rows.mean, rtol=0.02)
        np.testing.assert_allclose(draws.std(axis=0), rows.std, rtol=0.02)
        np.testing.assert_allclose((draws <= y).mean(axis=0), rows.cdf(y), atol=0.005)
        wanted = np.abs(draws - y).mean(axis=0)
        wanted -= 0.5 * np.abs(draws - np.roll(draws, 7, axis=0)).mean(axis=0)
        np.testing.assert_allclose(rows.crps(y), wanted, rtol=0.03, atol=2e-3)
        lower, upper = rows.interval(rows.score(y).max()).T
        assert ((lower <= y) & (y <= upper)).all()
        reached = rows.cdf(rows.ppf(0.8))
        assert (reached >= 0.8 - 1e-9).all()


def test_many_amounts_are_summed_as_well():
    rows = TweedieOverLink(np.array([3.0, 6.0]), np.zeros(2), np.full(2, 4.0), 0.05, 1.5)
    draws = rows.sample(100_000, np.random.default_rng(0))
    at = rows.ppf(0.9)
    np.testing.assert_allclose((draws <= at).mean(axis=0), 0.9, atol=0.004)


class TestLognormal:
    SHAPE = standardised(np.array([0.8, 0.2]), np.array([0.0, 0.5]), np.array([1.0, 2.0]))

    @pytest.mark.parametrize("shape", [GAUSSIAN, SHAPE])
    def test_moments_and_crps(self, shape):
        rows = LogMixture(Mixture(np.array([0.5]), np.array([0.02]), np.array([0.09]), shape))
        draws = rows.sample(400_000, np.random.default_rng(0))[:, 0]
        assert rows.mean[0] == pytest.approx(draws.mean(), rel=5e-3)
        assert rows.std[0] == pytest.approx(draws.std(), rel=2e-2)
        for y in (0.7, 1.6, 5.0):
            wanted = np.abs(draws - y).mean() - 0.5 * np.abs(draws - draws[::-1]).mean()
            assert rows.crps(np.array([y]))[0] == pytest.approx(wanted, rel=0.02)

    def test_is_scipys(self):
        rows = LogMixture(Mixture(np.array([0.5]), np.array([0.04]), np.array([0.12]), GAUSSIAN))
        known, y = stats.lognorm(0.4, scale=np.exp(0.5)), np.array([1.7])
        assert rows.mean[0] == pytest.approx(known.mean())
        assert rows.std[0] == pytest.approx(known.std())
        assert rows.log_prob(y)[0] == pytest.approx(known.logpdf(y)[0])
        assert rows.cdf(y)[0] == pytest.approx(known.cdf(y)[0])
        assert rows.ppf(0.9)[0] == pytest.approx(known.ppf(0.9))
        assert rows.cdf(np.array([-1.0]))[0] == 0.0


@pytest.mark.parametrize("df", [2.5, 4.0, 30.0])
def test_students_t_as_a_mixture(df):
    variance, shape = as_mixture(df)
    if df > 3.0:  # else most of the variance is beyond the lattice
        assert variance == pytest.approx(df / (df - 2.0), rel=1e-3)
    rows = Mixture(np.zeros(1), np.zeros(1), np.array([variance]), shape)
    for probability in (0.6, 0.9, 0.975, 0.995):
        assert rows.ppf(probability)[0] == pytest.approx(stats.t.ppf(probability, df), rel=1e-5)
    assert rows.log_prob(np.array([1.3]))[0] == pytest.approx(stats.t.logpdf(1.3, df), abs=1e-6)
