"""Code paths for many rows, on few: all thresholds are lowered."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import first_stage, prepare
from lanam.core.model import scoring
from lanam.core.rows import cross_tables, equations, quadratics, sketches, statistics, summaries
from lanam.core.terms import knots, searching

N_ROWS = 300

#: Few knots, because tables of all pairs of entries are the larger part of the time.
OPTIONS = {"max_knots": 48, "random_state": 0}

ESTIMATORS = {
    "gaussian": LANAMRegressor(**OPTIONS),
    "poisson": LANAMRegressor(likelihood="poisson", **OPTIONS),
    "bernoulli": LANAMClassifier(**OPTIONS),
    "softmax": LANAMClassifier(interactions=2, **OPTIONS),
}


@pytest.fixture
def many(monkeypatch):
    """Lowers all thresholds of the number of rows."""
    monkeypatch.setattr(searching, "_MANY", 2)
    monkeypatch.setattr(quadratics, "MANY_ROWS", 2)
    monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", 64)
    monkeypatch.setattr(prepare, "SAMPLE_ROWS", 128)
    monkeypatch.setattr(prepare, "NOISE_ROWS", 256)
    monkeypatch.setattr(summaries, "_MANY_ROWS", 2)
    for module in (searching, knots, sketches):
        monkeypatch.setattr(module, "_BLOCK", 64)
    monkeypatch.setattr(scoring, "_CHUNK_ROWS", 64)
    monkeypatch.setattr(statistics, "CHUNK_ROWS", 64)
    monkeypatch.setattr(cross_tables, "_TABLE_CHUNK_ROWS", 64)
    monkeypatch.setattr(first_stage, "_SAMPLE_PAYS", 2)


def awkward_table(seed):
    """Amounts that are mostly zero, near-constant columns, far values, few values, missing ones."""
    rng = np.random.default_rng(seed)
    few = np.isin(np.arange(N_ROWS), rng.choice(N_ROWS, 3, replace=False))
    return pd.DataFrame(
        {
            "plain": rng.standard_normal(N_ROWS),
            "amount": np.where(rng.random(N_ROWS) < 0.95, 0.0, rng.exponential(size=N_ROWS)),
            "nearly": np.where(few, 1e6 * rng.standard_normal(N_ROWS), 7.0),
            "far": 1e12 + 1e3 * rng.standard_normal(N_ROWS),
            "heavy": rng.standard_cauchy(N_ROWS),
            "few": rng.integers(0, 3, N_ROWS),
            "missing": np.where(rng.random(N_ROWS) < 0.3, np.nan, rng.standard_normal(N_ROWS)),
            "level": rng.choice(["a", "b", "c"], N_ROWS, p=[0.96, 0.03, 0.01]),
        }
    )


def response(kind, table, seed):
    rng = np.random.default_rng([seed, 1])
    link = np.sin(2.0 * table["plain"].to_numpy()) + (table["amount"] > 0.0) * table["plain"]
    if kind == "gaussian":
        return link + 0.3 * rng.standard_normal(N_ROWS)
    if kind == "poisson":
        return rng.poisson(np.exp(link))
    if kind == "bernoulli":
        return (link + rng.logistic(size=N_ROWS) > 0.0).astype(int)
    return np.digitize(link + 0.5 * rng.logistic(size=N_ROWS), [-0.5, 0.5])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_awkward_tables_are_fitted(kind, many):
    table = awkward_table(0)
    y = response(kind, table, 0)
    model = ESTIMATORS[kind].fit(table, y)
    assert np.isfinite(model.log_evidence_)
    active = [term.name for term in model.terms_ if term.active]
    assert "plain" in active
    predicted = (
        model.predict_proba(table) if kind in ("bernoulli", "softmax") else model.predict(table)
    )
    assert np.isfinite(predicted).all()


def gaussian_fit(**options):
    table = awkward_table(2)
    options |= {"interactions": 3, "noise": "constant", "random_state": 0}
    return LANAMRegressor(**options).fit(table, response("gaussian", table, 2))


@pytest.fixture(scope="module")
def as_few():
    """Fitted with the thresholds as they are."""
    return gaussian_fit()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_model_does_not_depend_on_how_many_rows_are_many(n_jobs, as_few, many):
    """Entries and sums are the same, and so is the Gaussian model."""
    table, as_many = awkward_table(2), gaussian_fit(n_jobs=n_jobs)
    assert as_many.log_evidence_ == pytest.approx(as_few.log_evidence_, abs=1e-4)
    np.testing.assert_allclose(as_many.predict(table), as_few.predict(table), atol=1e-5)


def test_an_interaction_with_a_spike_is_detected(many):
    """A product with a column that is zero in 95% of the rows: in one cell it would be invisible."""
    rng = np.random.default_rng(0)
    n_rows = 2000
    amount = np.where(rng.random(n_rows) < 0.95, 0.0, rng.exponential(size=n_rows))
    X = np.column_stack([amount, rng.standard_normal((n_rows, 2))])
    y = amount * X[:, 1] + 0.3 * rng.standard_normal(n_rows)
    model = LANAMRegressor(noise="constant", random_state=0).fit(X, y)
    assert "x0 x x1" in [term.name for term in model.terms_ if term.active]


def test_steps_that_would_overflow_are_halved_until_they_do_not():
    """Counts in three rows millions of times the others': the first step leads far beyond floats."""
    rng = np.random.default_rng(48)
    few = np.isin(np.arange(2000), rng.choice(2000, 3, replace=False))
    nearly = np.where(few, 1e4 * rng.standard_normal(2000), 7.0)
    X = np.column_stack([nearly, 1e12 + 1e3 * rng.standard_normal(2000)])
    y = rng.poisson(np.exp(np.where(few, 24.0, 0.0)))
    model = LANAMRegressor(likelihood="poisson", random_state=0).fit(X, y)
    mean = model.predict(X)
    assert np.isfinite(mean).all()
    assert np.median(mean[~few]) == pytest.approx(1.0, rel=0.2)
