"""Counts that vary more than Poisson's: dispersion found, bounded, and in evidence and intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

from lanam.core.inference import evidence, tuning
from lanam.core.inference.evidence import UPDATES
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.inference.selection import null_evidence, null_fit
from lanam.core.model import scoring
from lanam.core.rows.statistics import Rows
from lanam.families.poisson import Poisson
from lanam.families.poisson_lognormal import PoissonLognormal
from tests.core import in_memory
from tests.core.examples import dense_features
from tests.likelihoods import LIKELIHOODS
from tests.oracles import DenseLaplace, differences

QUICK = Options(hidden_sizes=(8,), init_scales=(1.0, 4.0), level_effects=False)


def counts(n=600, phi=1.0, seed=0, exposure=1.0):
    """A curve of the log rate, and counts whose variance is ``phi`` times their mean."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-2.0, 2.0, (n, 1))
    rate = exposure * np.exp(2.0 + np.sin(1.5 * columns[:, 0]))
    if phi > 1.0:
        # A gamma rate of this shape has variance (phi - 1) mean: a negative binomial count.
        rate = rng.gamma(rate / (phi - 1.0)) * (phi - 1.0)
    return columns, rng.poisson(rate).astype(float)


def fit(columns, y, options=QUICK, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, "poisson", options, 0)


def deviance(y, mean):
    """Twice what the saturated model's log-likelihood has more, row by row."""
    return np.array(
        [
            2.0 * ((a * np.log(a / m) if a > 0.0 else 0.0) - a + m)
            for a, m in zip(y, mean, strict=True)
        ]
    )


class TestAlone:
    def test_noise_around_the_intercept(self):
        _, y = counts(n=200, phi=4.0)
        weight = np.random.default_rng(0).integers(1, 4, 200).astype(float)
        rows, likelihood = Rows((), (), y, weight), Poisson()
        mean = weight @ y / weight.sum()
        total = weight @ deviance(y, np.full(200, mean))
        phi = total / weight.sum()
        assert null_fit(rows, likelihood)[1] == pytest.approx(phi)
        expected = -0.5 * total / phi - 0.5 * weight.sum() * np.log(2.0 * np.pi * phi)
        assert null_evidence(rows, likelihood) == pytest.approx(expected)

    def test_it_is_one_at_least(self):
        # Counts that vary less than Poisson's.
        y = np.tile([5.0, 6.0], 50)
        rows = Rows((), (), y, np.ones(100))
        assert null_fit(rows, Poisson())[1] == 1.0
        # There the evidence is the Poisson distribution's own, with what it leaves out of it.
        found = null_evidence(rows, Poisson()) + Poisson().constant(y, np.ones(100))
        assert found == pytest.approx(poisson.logpmf(y, y.mean()).sum())

    def test_others_have_none(self):
        assert LIKELIHOODS["bernoulli"].noise_bounds is None
        assert Poisson().noise_bounds[0] == 1.0


class TestFound:
    def test_counts_without_any(self):
        columns, y = counts()
        model = fit(columns, y)
        assert 1.0 <= model.noise_variance < 1.15

    def test_counts_that_vary_less_have_one_exactly(self):
        columns, _ = counts()
        y = np.round(np.exp(2.0 + np.sin(1.5 * columns[:, 0])))
        assert fit(columns, y).noise_variance == 1.0

    @pytest.mark.parametrize("phi", [2.0, 5.0])
    def test_counts_with_some(self, phi):
        columns, y = counts(n=1500, phi=phi)
        # The deviance of small counts is not quite Pearson's sum of squares.
        assert fit(columns, y).noise_variance == pytest.approx(phi, rel=0.2)

    def test_it_is_the_larger_of_deviance_and_squares_over_what_is_free(self):
        columns, y = counts(phi=5.0)
        model = fit(columns, y, replace(QUICK, tol=1e-4))
        mean = np.exp(scoring.link_mean(model, columns))
        effective = sum(term.effective_parameters for term in model.terms)
        # The penalty of several precisions leaves slightly fewer degrees of freedom.
        by_deviance = deviance(y, mean).sum() / (len(y) - 1.15 * effective - 1.0)
        by_squares = ((y - mean) ** 2 / mean).sum() / (len(y) - effective - 1.0)
        assert model.noise_variance == pytest.approx(max(by_deviance, by_squares), rel=5e-3)

    def test_rare_counts_do_not_hide_it(self):
        # Most of them are zero: the deviance is below one whatever the dispersion.
        rng = np.random.default_rng(0)
        columns = rng.uniform(-1.0, 1.0, (3000, 1))
        y = rng.poisson(rng.gamma(0.3 / 3.0, 3.0, 3000)).astype(
            float
        )  # variance four times the mean
        assert fit(columns, y).noise_variance == pytest.approx(4.0, rel=0.25)

    @pytest.mark.usefixtures("lossless")
    def test_a_weight_is_a_repetition(self):
        columns, y = counts(n=300, phi=3.0)
        often = np.random.default_rng(1).integers(1, 3, 300)
        weighted = fit(columns, y, weight=often.astype(float))
        repeated = fit(np.repeat(columns, often, axis=0), np.repeat(y, often))
        assert repeated.noise_variance == pytest.approx(weighted.noise_variance, rel=1e-5)
        assert repeated.log_evidence == pytest.approx(weighted.log_evidence, abs=1e-4)

    def test_bands_widen_by_its_root(self):
        # The same curve and as many rows: what is known of it is less by the dispersion.
        rows = np.linspace(-1.5, 1.5, 9)[:, None]
        plain, wild = fit(*counts(n=1500)), fit(*counts(n=1500, phi=5.0))
        ratio = scoring.link_moments(wild, rows)[1] / scoring.link_moments(plain, rows)[1]
        # A smoother prior makes up for some of it.
        assert 2.5 < ratio.mean() < 6.0

    def test_wiggles_are_not_believed(self):
        # With one precision less, a column of noise would be taken for an effect.
        rng = np.random.default_rng(0)
        columns, y = counts(n=500, phi=6.0)
        columns = np.column_stack([columns, rng.integers(0, 30, 500)])
        model = fit(columns, y, replace(QUICK, level_effects=True))
        assert [t.features for t in model.terms if t.active] == [(0,)]


@pytest.mark.usefixtures("lossless")
class TestAgainstDenseNewton:
    def derivatives(self, y, weight, phi):
        def of(f):
            mean = np.exp(f[:, 0])
            value = -0.5 * weight @ deviance(y, mean) / phi
            value -= 0.5 * weight.sum() * np.log(2.0 * np.pi * phi)
            return value, (weight * (y - mean) / phi)[:, None], (weight * mean / phi)[:, None, None]

        return of

    @pytest.mark.usefixtures("given_hyperparameters")
    @pytest.mark.parametrize("phi", [1.0, 4.0])
    def test_evidence_and_posterior(self, phi):
        # Exposures, as weights of rates.
        exposure = np.random.default_rng(2).uniform(0.5, 1.5, 200)
        exposure /= exposure.mean()
        columns, y = counts(n=200, phi=phi, exposure=exposure)
        options = replace(QUICK, tol=1e-6)
        model = fit(columns, y / exposure, options, exposure)
        assert (model.noise_variance > 1.5) == (phi > 1.0)
        features, precision, _ = dense_features(model, columns, options)
        given = self.derivatives(y / exposure, exposure, model.noise_variance)
        dense = DenseLaplace(features, precision, given)
        # The fit ends where a step changes little, not where it changes nothing.
        assert model.log_evidence == pytest.approx(dense.log_evidence, abs=1e-3)
        rows = np.linspace(-2.2, 2.2, 9)[:, None]
        # Beyond the data the function stays where it is at the edge, plus increments of the prior.
        held = np.clip(rows, columns.min(), columns.max())
        assert (rows != held).sum() == 2
        at, edge = (dense_features(model, where, options)[0] for where in (rows, held))
        mean, variance = dense.moments(edge)
        increments = np.square(at - edge) @ (1.0 / precision)
        found = scoring.link_moments(model, rows)
        np.testing.assert_allclose(found[0], mean[:, 0], atol=1e-3)
        np.testing.assert_allclose(found[1], variance[:, 0, 0] + increments, rtol=1e-3)

    def test_slope_in_it(self):
        columns, y = counts(n=200, phi=4.0)
        model = fit(columns, y)
        _, stage = in_memory.resume(model, columns, y, np.ones(200), QUICK)
        linear = Regression.of(stage.problem, stage.state)
        at = np.zeros(linear.model.prior.n_groups)

        def objective(log_noise):
            return evidence.solve(
                linear.model, evidence.Hyper(at, np.exp(log_noise[0])), True
            ).objective

        posterior = evidence.solve(linear.model, evidence.Hyper(at, 3.0), True)
        slope = differences(objective, np.log([3.0]), step=1e-4)
        assert evidence.noise_gradient(linear.model, posterior, 3.0) == pytest.approx(
            slope[0], rel=1e-6
        )
        assert linear.model.noise_bounds == Poisson().noise_bounds
        assert linear.model.offset == 0.0

    @pytest.mark.parametrize("update", ["mackay", "gradient"])
    def test_tuning_keeps_it_within_bounds(self, update):
        columns, y = counts(n=200)
        y = np.round(np.exp(2.0 + np.sin(1.5 * columns[:, 0])))
        made = in_memory.prepared(columns, y, np.ones(200), Poisson(), QUICK)
        problem = Problem.of(made.terms, made.rows, Poisson(), True, update)
        start = problem.initial_term(0, np.random.default_rng(0))
        state = State((start,), Poisson().fit_intercept_only(y, np.ones(200)), 2.0)
        linear = Regression.of(problem, state)
        hyper, _ = tuning.tune(linear.model, linear.start, True, UPDATES[update], 40, 1e-6)
        assert hyper.noise == 1.0


def test_standing_there_again():
    columns, y = counts(phi=4.0)
    model = fit(columns, y)
    again = in_memory.fit_on(model, columns, y, np.ones(len(y)), QUICK, 0)
    assert again.noise_variance == model.noise_variance
    # One more pass of a fit that had converged to a twentieth of a nat.
    assert again.log_evidence == pytest.approx(model.log_evidence, abs=0.05)


class TestPredictive:
    @pytest.mark.parametrize("phi", [1.0, 2.5, 40.0])
    @pytest.mark.parametrize("exposure", [0.3, 1.0, 7.0])
    def test_mean_and_variance(self, phi, exposure):
        mean, known = np.linspace(-2.0, 5.0, 8), np.zeros(8)
        e = np.full(8, exposure)
        mu = exposure * np.exp(mean)
        found = PoissonLognormal.dispersed(mean, known, e, phi)
        np.testing.assert_allclose(found.mean, mu)
        np.testing.assert_allclose(found.variance, phi * mu)

    def test_beside_a_posterior(self):
        # A rate that is not known, and varies: the mean stays, and variances of independent factors
        # multiply.
        mean, variance, phi = np.log([5.0, 50.0]), np.array([0.3, 0.1]), 4.0
        ones = np.ones(2)
        found = PoissonLognormal.dispersed(mean, variance, ones, phi)
        mu = PoissonLognormal(mean, variance, ones).mean
        np.testing.assert_allclose(found.mean, mu)
        own = (phi - 1.0) / mu
        expected = mu + mu**2 * (np.exp(variance) * (1.0 + own) - 1.0)
        np.testing.assert_allclose(found.variance, expected)

    def test_without_dispersion_nothing_changes(self):
        given = np.log([5.0, 50.0]), np.array([0.3, 0.1]), np.array([1.0, 2.0])
        found = PoissonLognormal.dispersed(*given, 1.0)
        for one, other in zip(vars(found).values(), given, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_intervals_hold(self):
        model = fit(*counts(n=1000, phi=5.0))
        columns, y = counts(n=3000, phi=5.0, seed=1)
        mean, variance = scoring.link_moments(model, columns)
        given = PoissonLognormal.dispersed(mean, variance, np.ones(3000), model.noise_variance)
        low, high = (given.ppf(p) for p in (0.05, 0.95))
        # Counts are whole numbers: an interval holds what its ends do.
        assert 0.87 < np.mean((y >= low) & (y <= high)) < 0.96
        plain = PoissonLognormal(mean, variance, np.ones(3000))
        low, high = (plain.ppf(p) for p in (0.05, 0.95))
        assert np.mean((y >= low) & (y <= high)) < 0.7


def test_means_beyond_all_counts_stay_finite():
    log_mean = np.array([-1e5, -800.0, 800.0])
    with np.errstate(all="raise", under="ignore"):
        counts = PoissonLognormal.dispersed(log_mean, np.full(3, 2.0), np.ones(3), 1e9)
        assert np.isfinite([counts.mean, counts.variance, counts.ppf(0.9)]).all()
    assert counts.mean[0] == 0.0
