"""Bands of dropped columns, against integrals over a dense regression."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lanam import LANAMClassifier, LANAMRegressor, load
from lanam.core.fit import margins
from lanam.core.fit.prepare import Run
from lanam.core.inference import gauss_newton
from lanam.core.inference.left_out import Fit
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, Regression, TermState
from lanam.core.inference.solver import Dropped, Stage
from lanam.core.rows.located import Rows
from lanam.core.rows.reading import Design
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS

OPTIONS = Options(init_scales=(1.0,), level_effects=False)


@pytest.fixture(scope="module")
def case():
    """A fit without its second column, which has a weak effect."""
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (70, 2))
    columns[:, 1] = 0.5 * (columns[:, 0] + columns[:, 1])
    y = np.sin(2 * columns[:, 0]) + 0.2 * columns[:, 1] + 0.5 * rng.standard_normal(70)
    prepared = in_memory.prepared(columns, y, None, LIKELIHOODS["gaussian"], OPTIONS)
    whole = Problem.of(prepared.terms, prepared.rows, prepared.units.likelihood)
    problem = whole.keep([0])
    state = prepared.solver.initial_state(problem, rng)
    limits = gauss_newton.Limits(20, 1e-6)
    state, _ = gauss_newton.converge(problem, state, limits, lambda state: None)
    dropped = Dropped(whole.terms[1], whole.data_mass[1], 0.0)
    return Stage(problem, state, (dropped,)), Run(prepared, OPTIONS)


def variances(stage, run):
    rows, fit = run.sample_in(stage.problem), Fit.at(stage.problem, stage.state)
    return margins.dropped_variances(stage, rows, fit, np.random.default_rng(0))


def test_second_moment(case):
    """The average over variances of a regression with the column, weighted by its evidence."""
    stage, run = case
    problem, state = stage.problem, stage.state
    (gone,) = stage.dropped
    found = variances(stage, run)
    ((key, moment),) = found.items()
    assert key == ("smooth", (1,))

    linear = Regression.of(problem, state)
    sample = run.sample_in(problem)
    others = Design(linear.tables).of(sample).copy()
    tangent = TermState.at_zero(gone.term, np.empty(0), gone.data_mass)
    table = tangent.jacobian / np.sqrt(tangent.precision[gone.term.group_index])
    located = Rows.of(run.prepared.summary.sample, [gone.term], run.prepared.units)
    own = Design([table]).of(located)[:, :-1]
    size = gone.data_mass @ (table**2).sum(axis=1)
    n = len(sample)
    # The intercept is free.
    prior = np.diag([1.0] * (others.shape[1] - 1) + [1e6])
    log_weights, moments = [], []
    for std in margins._STDS:
        variance = std**2 / size
        noise = state.noise * np.eye(n) + others @ prior @ others.T
        marginal = noise + variance * own @ own.T
        density = multivariate_normal(np.zeros(n), marginal).logpdf(sample.y)
        log_weights.append(density + np.log(std) - 0.5 * std**2 / margins._PRIOR_STD**2)
        cross = variance * table @ own.T
        gain = np.linalg.solve(marginal, cross.T).T
        mean = gain @ sample.y
        moments.append(mean**2 + variance * (table**2).sum(axis=1) - (gain * cross).sum(axis=1))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    expected = weights @ np.array(moments) / weights.sum()
    within = gone.data_mass > 0.0
    np.testing.assert_allclose(moment[within, 0], expected[within], rtol=0.02)


def test_terms_that_have_none(case):
    """Terms that came back, joint terms and level effects."""
    stage, run = case
    (gone,) = stage.dropped
    back = replace(gone, term=stage.problem.terms[0])
    nothing = replace(stage, dropped=(back,))
    assert variances(nothing, run) == {}


@pytest.fixture(scope="module")
def weak():
    """Two columns, of which the second is dropped."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (120, 2))
    return X, 2.0 * X[:, 0] + rng.standard_normal(120)


def test_a_dropped_column_has_a_band(weak, tmp_path):
    X, y = weak
    model = LANAMRegressor(interactions=0).fit(X, y)
    assert [term.active for term in model.terms_] == [True, False]
    model.save(tmp_path / "a.lanam")
    for each in (model, load(tmp_path / "a.lanam")):
        shape = each.explain_global()["x1"]
        lower, upper = shape.band()
        assert (shape.mean == 0.0).all()
        inside = shape.inside
        assert (upper[inside] > 0.02).all()
        assert (upper[inside] < 1.5).all()
        np.testing.assert_allclose(lower, -upper)
        whole = shape.band(simultaneous=True)[1]
        assert (whole[inside] > upper[inside]).all()
        # It is not part of predictions.
        means, stds = each.predict_terms(X[:5], return_std=True)
        assert (means[:, 1] == 0.0).all()
        assert (stds[:, 1] == 0.0).all()


def test_more_rows_leave_less_possible():
    widths = []
    for n in (60, 1000):
        rng = np.random.default_rng(5)
        X = rng.uniform(-1, 1, (n, 2))
        y = 2.0 * X[:, 0] + rng.standard_normal(n)
        shape = LANAMRegressor(interactions=0).fit(X, y).explain_global()["x1"]
        assert not shape.active
        widths.append(float(shape.std[shape.inside].mean()))
    assert widths[1] < 0.5 * widths[0]


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(200), [-0.3, 0.3])
    model = LANAMClassifier(interactions=0).fit(X, y)
    shape = model.explain_global()["x1"]
    assert not shape.active
    assert shape.std.shape == (len(shape.values), 3)
    assert (shape.std > 0.0).all()
    assert shape.band(simultaneous=True)[0].shape == shape.std.shape
