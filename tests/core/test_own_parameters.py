"""Parameters of a likelihood: against the best of a grid, and the evidence against quadrature."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from lanam.core.fit.solvers import make_problem
from lanam.core.inference.gauss_newton import GaussNewton, Limits, converge
from lanam.core.inference.options import Options
from lanam.core.inference.own_parameters import _derivatives, _neighbours, fit_null, fit_parameters
from lanam.core.inference.posterior import ExactCurvature
from lanam.core.inference.problem import Regression
from lanam.core.rows.located import Rows
from lanam.families.gamma import Gamma
from lanam.families.negative_binomial import NegativeBinomial
from lanam.families.student import StudentT
from tests.core import in_memory

N = 150


def data(likelihood, seed=0):
    """Two groups of rows, of which the core knows the codes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, N).astype(float)
    mean = np.exp(0.4 * group)
    if isinstance(likelihood, Gamma):
        y = mean * rng.gamma(3.0, size=N) / 3.0
    elif isinstance(likelihood, NegativeBinomial):
        y = rng.poisson(mean * rng.gamma(2.0, size=N) / 2.0).astype(float)
    else:
        y = group + 0.5 * rng.standard_t(4.0, N)
    return group[:, None], y


@pytest.fixture(params=[Gamma(), NegativeBinomial(), StudentT()], ids=lambda one: one.name)
def likelihood(request):
    return request.param


@pytest.fixture
def fitted(likelihood):
    """A converged problem with one categorical column, and its state."""
    columns, y = data(likelihood)
    prepared = in_memory.prepare.prepare(
        in_memory.tables(columns, y), likelihood, Options(level_effects=False), [3]
    )
    problem = make_problem(prepared.terms, prepared.rows, prepared.units.likelihood, Options())
    start = GaussNewton(Options(), ExactCurvature()).initial_state(
        problem, np.random.default_rng(0)
    )
    state, converged = converge(problem, start, Limits(100, 1e-4), lambda state: None)
    assert converged
    return problem, state


def test_derivatives_from_neighbours():
    """Exact for a quadratic."""
    hessian = np.array([[-3.0, 0.4, 0.1], [0.4, -1.0, 0.2], [0.1, 0.2, -2.0]])
    gradient, at = np.array([0.3, -2.0, 0.7]), np.array([0.1, -0.3, 0.5])
    steps = np.array([0.02, 1e-3, 1e-4])
    values = np.array(
        [gradient @ (p - at) + 0.5 * (p - at) @ hessian @ (p - at) for p in _neighbours(at, steps)]
    )
    found = _derivatives(values, steps)
    np.testing.assert_allclose(found[0], gradient, atol=1e-9)
    np.testing.assert_allclose(found[1], hessian, atol=1e-6)


def test_they_maximise_the_penalised_likelihood(fitted):
    problem, state = fitted
    around, rows = problem.around(state), problem.rows
    leverage = 0.03
    f = around.predict(rows)

    def objective(logs):
        one = around.likelihood.with_parameters(np.exp(logs).tolist())
        values = one.log_prob(rows.y, f) - 0.5 * leverage * np.log(one.curvature(f))
        return -float(rows.weight @ values)

    start = np.log(around.likelihood.parameters)
    best = optimize.minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-6})
    found = fit_parameters(rows, around, leverage)
    assert objective(np.log(found.parameters)) == pytest.approx(best.fun, abs=1e-3)


def test_the_constant_model_has_the_parameters_of_a_sample(likelihood):
    """Those of maximum likelihood but for one degree of freedom."""
    columns, y = data(likelihood)
    rows = Rows((), (), y, np.ones(N), columns=columns)
    found = fit_null(rows, likelihood)
    if isinstance(likelihood, Gamma):
        assert found.shape == pytest.approx(stats.gamma.fit(y, floc=0.0)[0], rel=0.02)
    elif isinstance(likelihood, StudentT):
        df, _, scale = stats.t.fit(y)
        assert found.scale == pytest.approx(scale, rel=0.03)
        assert np.log(found.degrees_of_freedom / df) == pytest.approx(0.0, abs=0.3)
    else:
        excess = (y.var(ddof=1) - y.mean()) / y.mean() ** 2
        assert found.dispersion == pytest.approx(excess, rel=0.3)


def test_a_weight_of_two_is_a_repeated_row(likelihood):
    columns, y = data(likelihood)
    twice = Rows((), (), y, np.full(N, 2.0), columns=columns)
    repeated = Rows((), (), np.tile(y, 2), np.ones(2 * N), columns=np.tile(columns, (2, 1)))
    np.testing.assert_allclose(
        fit_null(twice, likelihood).parameters, fit_null(repeated, likelihood).parameters, rtol=1e-6
    )


def test_the_evidence_is_that_of_quadrature(fitted):
    """Over the effects of the three groups, at the intercept of the fit."""
    problem, state = fitted
    linear = Regression.of(problem, state)
    posterior = linear.solve()
    table, width = linear.tables[0], linear.tables[0].shape[1]
    at, intercept = posterior.mean[:width], float(posterior.mean[-1])
    covariance = posterior.covariance[:width, :width]
    root = np.linalg.cholesky(covariance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    grid = np.stack(np.meshgrid(*[nodes] * width, indexing="ij"), axis=-1).reshape(-1, width)
    mass = np.prod(
        np.stack(np.meshgrid(*[weights] * width, indexing="ij"), axis=-1).reshape(-1, width), axis=1
    )
    likelihood, rows = state.likelihood, problem.rows

    z = at + grid @ root.T
    links = intercept + (z @ table.T)[:, rows.positions[0].index]
    y = np.broadcast_to(rows.y, links.shape)
    values = likelihood.log_prob(y, links) @ rows.weight
    values += -0.5 * np.square(z).sum(axis=1) - 0.5 * width * np.log(2.0 * np.pi)
    # The rule's weight is exp(-|node|^2 / 2).
    exponents = values + 0.5 * np.square(grid).sum(axis=1)
    top = exponents.max()
    wanted = top + np.log(mass @ np.exp(exponents - top)) + np.linalg.slogdet(root)[1]
    assert posterior.evidence == pytest.approx(wanted, abs=0.15)


def test_an_offset_is_what_a_shifted_response_is_to_a_scale_family():
    """Amounts over a known factor: the fit of their ratios."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, N)
    known = rng.normal(size=N)
    y = np.exp(np.sin(3.0 * x) + known) * rng.gamma(4.0, size=N) / 4.0
    likelihood = Gamma(4.0)
    rows = Rows((), (), y, np.ones(N), offset=known)
    ratios = replace(rows, y=y * np.exp(-known), offset=None)
    one, other = fit_null(rows, likelihood), fit_null(ratios, likelihood)
    assert one.shape == pytest.approx(other.shape, rel=1e-6)


class TestExcess:
    """Amounts with tails heavier than the family's: the posterior is that of a quasi-likelihood."""

    def rows(self, heavy):
        rng = np.random.default_rng(0)
        log_y = rng.normal(size=2000) * (1.6 if heavy else 0.4)
        return Rows((), (), np.exp(log_y), np.ones(2000))

    def test_is_one_where_the_family_fits(self):
        rng = np.random.default_rng(0)
        rows = Rows((), (), rng.gamma(2.0, size=2000), np.ones(2000))
        assert fit_null(rows, Gamma()).excess == 1.0

    def test_is_that_of_the_squared_residuals(self):
        rows = self.rows(heavy=True)
        found = fit_null(rows, Gamma())
        squares = np.square(rows.y / rows.y.mean() - 1.0).mean()
        assert found.excess == pytest.approx(found.shape * squares / 1.2, rel=1e-3)
        assert found.excess > 1.5

    def test_does_not_change_the_parameters(self):
        found = fit_null(self.rows(heavy=True), Gamma())
        assert found.shape == pytest.approx(
            stats.gamma.fit(self.rows(heavy=True).y, floc=0.0)[0], rel=0.02
        )

    def test_widens_the_posterior_and_leaves_the_evidence_of_the_family(self):
        from lanam import LANAMRegressor

        rng = np.random.default_rng(1)
        X = np.array(["a", "b"])[rng.integers(0, 2, (600, 1))]
        y = np.exp(1.5 * (X[:, 0] == "b") + rng.normal(size=600))
        model = LANAMRegressor(likelihood="gamma", random_state=0).fit(X, y)
        _, std = model.predict_terms(X[:50], return_std=True)
        shape = model.family_parameters_["shape"]
        alone = np.sqrt(1.0 / (300 * shape)) / np.sqrt(2.0)  # of half the difference of two groups
        assert std.max() > 1.1 * alone
        density = stats.gamma.logpdf(y, shape, scale=model.predict(X) / shape).sum()
        assert model.log_evidence_ == pytest.approx(density, abs=15.0)
