"""Noise of missing values: exact variances, dense posteriors, coverage of intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from lanam.core.fit import first_stage
from lanam.core.inference import evidence, posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.inference.selection import null_evidence, null_fit
from lanam.core.model import scoring
from lanam.core.noise import missingness
from lanam.core.noise.missingness import fit_missingness_noise
from lanam.core.paper import kron
from lanam.core.rows import statistics
from lanam.core.rows.statistics import Around, Rows
from tests.core import in_memory
from tests.core.examples import dense_features, mackay_step
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close, differences, profiled_log_marginal

QUICK = Options(hidden_sizes=(10,), init_scales=(1.0, 4.0), level_effects=False)


def noise_alone(n=400, extra=(0.0, 3.0, 1.5), least=0.5, seed=0):
    """Columns with missing values, and pure noise whose squares are the variances."""
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n, len(extra)))
    gone = rng.uniform(size=columns.shape) < 0.3
    gone[:, 0] = False
    columns[gone] = np.nan
    variance = least + gone @ np.asarray(extra)
    return columns, rng.choice([-1.0, 1.0], n) * np.sqrt(variance), variance


def problem_of(y, columns, weight=None, likelihood="gaussian"):
    """A problem of the intercept alone, at zero."""
    weight = np.ones(len(y)) if weight is None else weight
    rows = Rows((), (), y, weight, columns=columns)
    problem = Problem.of((), rows, LIKELIHOODS[likelihood])
    return problem, State((), 0.0, 1.0)


class TestFitMissingnessNoise:
    def test_columns_with_missing_values(self):
        columns, _, _ = noise_alone()
        found = Rows((), (), np.zeros(400), np.ones(400), columns=columns)
        assert found.n_columns == 3
        assert found.missing_columns == (1, 2)
        noisier = found.with_missing_noise(np.array([0.0, 1.0, 2.0]))
        np.testing.assert_allclose(1.0 / noisier.precision - 1.0, np.isnan(columns) @ [0, 1, 2])

    def test_exact_squares_give_exact_variances(self):
        columns, y, variance = noise_alone()
        problem, state = fit_missingness_noise(*problem_of(y, columns))
        assert state.noise == pytest.approx(0.5, rel=1e-10)
        np.testing.assert_allclose(problem.rows.missing_noise, [0.0, 6.0, 3.0], rtol=1e-9)
        np.testing.assert_allclose(state.noise / problem.rows.precision, variance, rtol=1e-9)
        # The quadratic is recomputed with them.
        gram, target = problem.exact.normal_equations([])
        assert gram[0, 0] == pytest.approx((0.5 / variance).sum())
        assert target[0] == pytest.approx((0.5 / variance) @ y)

    def test_normal_noise(self):
        rng = np.random.default_rng(0)
        columns, _, variance = noise_alone(n=20_000)
        y = np.sqrt(variance) * rng.standard_normal(len(variance))
        problem, state = fit_missingness_noise(*problem_of(y, columns))
        # Some 6000 squares each: 2%, and more where other missing values add noise.
        assert state.noise == pytest.approx(0.5, rel=0.08)
        np.testing.assert_allclose(
            state.noise * problem.rows.missing_noise, [0.0, 3.0, 1.5], rtol=0.1, atol=0.0
        )

    def test_residuals_are_those_of_the_state(self):
        columns, y, _ = noise_alone()
        problem, state = problem_of(y + 5.0, columns)
        _, moved = fit_missingness_noise(problem, replace(state, intercept=5.0))
        assert moved.noise == pytest.approx(0.5)
        assert moved.intercept == 5.0

    def test_a_weight_is_a_repetition(self):
        rng = np.random.default_rng(1)
        columns, _, variance = noise_alone()
        y = np.sqrt(variance) * rng.standard_normal(len(variance))
        often = rng.integers(1, 4, len(y))
        weighted, one = fit_missingness_noise(*problem_of(y, columns, often.astype(float)))
        twice = np.repeat(columns, often, axis=0)
        repeated, other = fit_missingness_noise(*problem_of(np.repeat(y, often), twice))
        assert one.noise == pytest.approx(other.noise, rel=1e-9)
        np.testing.assert_allclose(
            weighted.rows.missing_noise, repeated.rows.missing_noise, rtol=1e-8
        )
        assert weighted.rows.log_precision == pytest.approx(repeated.rows.log_precision, rel=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    def test_columns_missing_in_the_same_rows_share_the_variance(self, seed):
        columns, y, variance = noise_alone(seed=seed)
        # The second column and three copies, with rows and columns permuted.
        wide = np.column_stack([columns[:, 1], columns, columns[:, 1], -columns[:, 1]])
        order = np.random.default_rng(seed).permutation(len(y))
        for rows in (np.arange(len(y)), order):
            problem, state = fit_missingness_noise(*problem_of(y[rows], wide[rows]))
            assert state.noise == pytest.approx(0.5, rel=1e-8)
            np.testing.assert_allclose(
                problem.rows.missing_noise, [1.5, 0.0, 1.5, 3.0, 1.5, 1.5], rtol=1e-6
            )
            found = state.noise / problem.rows.precision
            np.testing.assert_allclose(found, variance[rows], rtol=1e-8)

    def test_missing_values_that_add_no_noise(self):
        columns, _, _ = noise_alone()
        # Missing values cannot reduce the noise: nothing changes.
        y = np.where(np.isnan(columns).any(axis=1), 0.1, 1.0) * np.random.default_rng(0).choice(
            [-1.0, 1.0], len(columns)
        )
        given = problem_of(y, columns)
        found = fit_missingness_noise(*given)
        assert found[0] is given[0]
        assert found[1] is given[1]

    def test_the_required_gain_is_a_nat_per_column(self, monkeypatch):
        columns, y, variance = noise_alone()
        gain = (
            norm.logpdf(y, 0.0, np.sqrt(variance)) - norm.logpdf(y, 0.0, np.sqrt(np.mean(y**2)))
        ).sum()
        assert missingness._LEAST_GAIN == 1.0
        assert gain > 10.0
        for worth, changed in ((0.499999 * gain, True), (0.500001 * gain, False)):
            monkeypatch.setattr(missingness, "_LEAST_GAIN", worth)
            given = problem_of(y, columns)
            assert (fit_missingness_noise(*given)[0] is not given[0]) == changed

    def test_nothing_to_fit(self):
        columns, y, _ = noise_alone()
        complete = problem_of(y, np.nan_to_num(columns))
        assert complete[0].rows.missing_columns == ()
        assert fit_missingness_noise(*complete)[0] is complete[0]
        given = problem_of(y, columns)
        assert fit_missingness_noise(*given)[0] is not given[0]
        # A noise variance at its lower bound is no estimate.
        tiny = given[0], replace(given[1], noise=1e-6)
        assert fit_missingness_noise(*tiny)[0] is given[0]
        counts = problem_of(np.round(np.square(y)), columns, likelihood="poisson")
        assert fit_missingness_noise(*counts)[0] is counts[0]


class TestRows:
    def test_information_and_precision(self):
        columns, y, _ = noise_alone(n=50)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, 50)
        plain = Rows((), (), y, weight, columns=columns)
        assert plain.information is plain.weight
        assert plain.log_precision == 0.0
        found = plain.with_missing_noise(np.array([0.0, 6.0, 3.0]))
        expected = [
            1.0 / (1.0 + 6.0 * np.isnan(row[1]) + 3.0 * np.isnan(row[2])) for row in columns
        ]
        assert_close(found.precision, expected, "rounding")
        assert_close(found.information, weight * expected, "rounding")
        assert found.count == pytest.approx(weight.sum())
        assert found.log_precision == pytest.approx(0.5 * weight @ np.log(expected))

    def test_the_intercept_alone(self):
        columns, y, _ = noise_alone(n=200)
        weight = np.random.default_rng(0).integers(1, 3, 200).astype(float)
        plain = Rows((), (), y, weight, columns=columns)
        rows = plain.with_missing_noise(np.array([0.0, 6.0, 3.0]))
        constant = np.average(y, weights=weight * rows.precision)
        noise = weight @ (rows.precision * np.square(y - constant)) / weight.sum()
        assert null_fit(rows, LIKELIHOODS["gaussian"])[1] == pytest.approx(noise)
        direct = norm.logpdf(y, constant, np.sqrt(noise / rows.precision))
        assert null_evidence(rows, LIKELIHOODS["gaussian"]) == pytest.approx(weight @ direct)


def curve_data(n, seed=0, share=0.3):
    """Two curves, the larger of them missing at random in some rows."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-2.0, 2.0, (n, 2))
    y = 3.0 * np.sin(2.0 * columns[:, 0]) + columns[:, 1] + 0.3 * rng.standard_normal(n) + 10.0
    columns[rng.uniform(size=n) < share, 0] = np.nan
    columns[rng.uniform(size=n) < 0.1, 1] = np.nan
    return columns, y


def fit(columns, y, options=QUICK, weight=None, likelihood="gaussian", n_levels=()):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, 0, n_levels)


@pytest.fixture(scope="module")
def model():
    return fit(*curve_data(500))


class TestFit:
    def test_a_missing_value_adds_the_variance_of_its_curve(self, model):
        # 3 sin(2x) and x, over uniform columns: a missing value adds its variance to the noise.
        expected = [9.0 * (0.5 - np.sin(8.0) / 16.0), 4.0 / 3.0]
        assert model.noise_variance == pytest.approx(0.09, rel=0.3)
        np.testing.assert_allclose(model.missing_variance, expected, rtol=0.3)
        assert [record["stage"] for record in model.history][-1] == "missingness"

    def test_noise_of_new_rows(self, model):
        rows = np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, np.nan], [np.nan, np.nan]])
        first, second = model.missing_variance
        expected = model.noise_variance + np.array([0.0, first, second, first + second])
        assert_close(scoring.noise_variances(model, rows), expected, "rounding")

    def test_coverage_with_and_without_missing_values(self, model):
        columns, y = curve_data(4000, seed=1)
        mean, variance = scoring.link_moments(model, columns)
        deviation = np.sqrt(variance + scoring.noise_variances(model, columns))
        inside = np.abs(y - mean) < norm.ppf(0.95) * deviation
        gone = np.isnan(columns)
        for rows in (gone.any(axis=1), ~gone.any(axis=1), gone[:, 1] & ~gone[:, 0]):
            # Uniform columns: the missing contribution has shorter tails than a normal one.
            assert 0.86 < inside[rows].mean() < 0.97
        # A common variance would be too large for complete rows.
        whole = ~gone.any(axis=1)
        assert deviation[whole].max() < 0.3 * deviation[~whole & gone[:, 0]].min()

    @pytest.mark.usefixtures("lossless", "given_hyperparameters")
    @pytest.mark.parametrize("kind", ["joint", "block"])
    def test_evidence_and_posterior_are_those_of_known_variances(self, kind):
        columns, y = curve_data(150)
        options = replace(QUICK, posterior=kind)
        model = fit(columns, y, options)
        assert model.missing_variance is not None
        phi, precision, blocks = dense_features(model, columns, options)
        noise = np.diag(scoring.noise_variances(model, columns))
        scale = y.std()
        prior = phi @ np.diag(scale**2 / precision) @ phi.T
        design = np.hstack([phi, np.ones((len(y), 1))])
        ridge = np.diag(np.append(precision / scale**2, 0.0))
        own = design.T @ np.linalg.inv(noise) @ design + ridge
        mean = np.linalg.solve(own, design.T @ np.linalg.solve(noise, y))
        found = scoring.link_moments(model, columns)
        assert_close(found[0], design @ mean, "conditioning")
        if kind == "joint":
            marginal = profiled_log_marginal(y, noise + prior)
            assert model.log_evidence == pytest.approx(marginal, abs=1e-4)
            assert_close(found[1], np.diag(design @ np.linalg.inv(own) @ design.T), "conditioning")
        else:
            # A lower bound, by the ratio of determinants.
            joint = np.linalg.slogdet(own[:-1, :-1])[1]
            alone = sum(np.linalg.slogdet(own[block, block])[1] for block in blocks)
            marginal = profiled_log_marginal(y, noise + prior) - 0.5 * (alone - joint)
            assert model.log_evidence == pytest.approx(marginal, abs=1e-4)

    def test_complete_data(self, monkeypatch):
        columns, y = curve_data(200)
        columns = np.nan_to_num(columns)
        found = fit(columns, y)
        assert found.missing_variance is None
        assert "missingness" not in [record["stage"] for record in found.history]
        monkeypatch.setattr(
            first_stage, "fit_missingness_noise", lambda problem, state: (problem, state)
        )
        without = fit(columns, y)
        assert found.log_evidence == without.log_evidence
        for one, other in zip(found.terms, without.terms, strict=True):
            np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(found.covariance, without.covariance)
        np.testing.assert_array_equal(
            scoring.noise_variances(found, columns), np.full(200, found.noise_variance)
        )

    def test_it_improves_the_evidence(self, model, monkeypatch):
        monkeypatch.setattr(missingness, "_LEAST_GAIN", np.inf)
        columns, y = curve_data(500)
        without = fit(columns, y)
        assert without.missing_variance is None
        assert model.log_evidence > without.log_evidence + 20.0
        columns, y = curve_data(2000, seed=1)

        def density(one):
            mean, variance = scoring.link_moments(one, columns)
            variance = variance + scoring.noise_variances(one, columns)
            return norm.logpdf(y, mean, np.sqrt(variance)).mean()

        assert density(model) > density(without) + 0.3

    @pytest.mark.usefixtures("lossless")
    def test_a_weight_is_a_repetition(self):
        columns, y = curve_data(200)
        often = np.random.default_rng(1).integers(1, 3, len(y))
        weighted = fit(columns, y, weight=often.astype(float))
        repeated = fit(np.repeat(columns, often, axis=0), np.repeat(y, often))
        assert repeated.log_evidence == pytest.approx(weighted.log_evidence, abs=1e-4)
        np.testing.assert_allclose(repeated.missing_variance, weighted.missing_variance, rtol=1e-4)
        old, new = (scoring.link_moments(m, columns) for m in (weighted, repeated))
        np.testing.assert_allclose(new, old, rtol=1e-3)

    @pytest.mark.usefixtures("lossless")
    def test_units_of_the_response(self):
        columns, y = curve_data(200)
        before, after = fit(columns, y), fit(columns, 100.0 * y - 4.0)
        np.testing.assert_allclose(after.missing_variance, 1e4 * before.missing_variance, rtol=1e-5)
        assert after.log_evidence == pytest.approx(before.log_evidence - 200 * np.log(100.0))

    def test_resuming(self, model):
        columns, y = curve_data(500)
        weight = np.ones(500)
        _, stage = in_memory.resume(model, columns, y, weight, QUICK)
        noise = scoring.noise_variances(model, columns)
        np.testing.assert_allclose(model.noise_variance / stage.problem.rows.precision, noise)
        again = in_memory.fit_on(model, columns, y, weight, QUICK, 0)
        # The same up to the compression of its tables.
        np.testing.assert_allclose(again.missing_variance, model.missing_variance, rtol=1e-9)
        assert again.log_evidence == pytest.approx(model.log_evidence, abs=0.01)

    def test_missing_categories(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 6, 600).astype(float)
        y = 3.0 * rng.standard_normal(6)[codes.astype(int)] + 0.5 * rng.standard_normal(600)
        spread = np.var(y) - 0.25
        codes[rng.uniform(size=600) < 0.3] = np.nan
        model = fit(codes[:, None], y, n_levels=(6,))
        assert model.noise_variance == pytest.approx(0.25, rel=0.3)
        assert model.missing_variance[0] == pytest.approx(spread, rel=0.3)

    def test_level_effects_are_found_with_less_noise_where_nothing_is_missing(self):
        rng = np.random.default_rng(0)
        columns = np.column_stack([rng.integers(0, 20, 800), rng.uniform(-2, 2, 800)]).astype(float)
        jagged = 2.0 * rng.standard_normal(20)
        y = jagged[columns[:, 0].astype(int)] + 2.0 * columns[:, 1] + rng.standard_normal(800)
        columns[rng.uniform(size=800) < 0.3, 1] = np.nan
        model = fit(columns, y, replace(QUICK, level_effects=True))
        assert ("level", (0,)) in [(t.kind, t.features) for t in model.terms if t.active]
        # The level effects are no longer part of the residuals.
        assert model.missing_variance[1] == pytest.approx(16.0 / 3.0, rel=0.3)
        assert model.noise_variance == pytest.approx(1.0, rel=0.25)

    @pytest.mark.parametrize("later", [False, True])
    def test_with_a_pair(self, later):
        def data(n, seed):
            rng = np.random.default_rng(seed)
            columns = rng.uniform(-2.0, 2.0, (n, 3))
            y = 2.0 * columns[:, 0] * columns[:, 1] + 2.0 * columns[:, 2]
            columns[rng.uniform(size=n) < 0.3, 2] = np.nan
            return columns, y + 0.3 * rng.standard_normal(n)

        columns, y = data(800, 0)
        options = replace(QUICK, pair_hidden_sizes=(12,), interactions=((0, 1),))
        if later:
            model = fit(columns, y)
            model = in_memory.fit_on(model, columns, y, np.ones(800), options, 0)
        else:
            model = fit(columns, y, options)
        assert model.missing_variance[2] == pytest.approx(16.0 / 3.0, rel=0.3)
        columns, y = data(3000, 1)
        mean, variance = scoring.link_moments(model, columns)
        deviation = np.sqrt(variance + scoring.noise_variances(model, columns))
        inside = np.abs(y - mean) < norm.ppf(0.95) * deviation
        gone = np.isnan(columns[:, 2])
        assert 0.86 < inside[gone].mean() < 0.97
        assert 0.86 < inside[~gone].mean() < 0.97

    def test_with_kronecker_factors(self, model):
        columns, y = curve_data(500)
        options = replace(QUICK, posterior="block", curvature="kron", init_scales=(1.0,))
        found = fit(columns, y, options)
        assert found.missing_variance is not None
        _, stage = in_memory.resume(found, columns, y, np.ones(500), options)
        (intercept,) = (
            kron.KronCurvature().functions(stage.problem, stage.state).covariance[-1:, -1]
        )
        information = stage.problem.rows.information.sum() / stage.state.noise
        assert intercept == pytest.approx(1.0 / information, rel=1e-3)


def test_sums_over_rows_use_the_precisions():
    columns, y = curve_data(80)
    rng = np.random.default_rng(0)
    made = in_memory.prepared(columns, y, rng.uniform(0.5, 2.0, 80), LIKELIHOODS["gaussian"], QUICK)
    rows = made.rows.with_missing_noise(np.array([2.0, 1.0]))
    plain = replace(made.rows, weight=rows.information)
    values = [rng.standard_normal(size) for size in rows.sizes]
    tables = [rng.standard_normal((size, 2)) for size in rows.sizes]
    likelihood = LIKELIHOODS["gaussian"]
    around = Around(likelihood, tuple(values), 0.3)
    for quantity in (
        around.derivatives,
        lambda r: statistics.log_likelihood(r, likelihood, values, 0.3),
    ):
        found, expected = (quantity(r) for r in (rows, plain))
        np.testing.assert_allclose(found, expected)
    for form in (in_memory.row_quadratic, in_memory.table_quadratic):
        one, other = (form(r, likelihood, values, 0.3) for r in (rows, plain))
        for a, b in zip(one.normal_equations(tables), other.normal_equations(tables), strict=True):
            assert_close(a, b, "rounding")
        assert one.constant == pytest.approx(other.constant)
        for a, b in zip(one.entry_curvature(), other.entry_curvature(), strict=True):
            assert_close(a, b, "rounding")


def test_tuning_with_precisions():
    """The offset of the precisions does not depend on the noise, nor on the residuals."""
    columns, y = curve_data(120)
    model = fit(columns, y)
    _, stage = in_memory.resume(model, columns, y, np.ones(120), QUICK)
    made = Regression.of(stage.problem, stage.state)
    linear = made.model
    assert linear.offset == pytest.approx(stage.problem.rows.log_precision)
    assert linear.offset < -10.0
    at = np.zeros(linear.prior.n_groups)

    def objective(log_noise):
        return evidence.solve(linear, evidence.Hyper(at, np.exp(log_noise[0])), True).objective

    noise = 3.0 * stage.state.noise
    found = evidence.solve(linear, evidence.Hyper(at, noise), True)
    (slope,) = differences(objective, np.log([noise]), step=1e-4)
    assert evidence.noise_gradient(linear, found, noise) == pytest.approx(slope, rel=1e-6)
    # A step of the noise uses the weighted residuals.
    rows = stage.problem.rows
    values = made.values(found)
    residual = rows.y - statistics.predict(rows, values, float(found.mean[-1]))
    free = 120 - found.n_effective - found.penalty_gradient.sum() - 1.0
    step = mackay_step(linear, evidence.Hyper(at, noise), found)
    assert step.noise == pytest.approx(rows.precision @ residual**2 / free, rel=1e-5)


def test_the_end_of_a_fit_is_at_its_precisions():
    columns, y = curve_data(200)
    model = fit(columns, y)
    prepared, stage = in_memory.resume(model, columns, y, np.ones(200), QUICK)
    solution = posterior.ExactCurvature().solution(stage.problem, stage.state)
    assert prepared.units.log_evidence(solution.evidence) == pytest.approx(
        model.log_evidence, abs=0.02
    )
