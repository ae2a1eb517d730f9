"""No seed, no order of rows or columns changes a default fit beyond rounding."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor


def example(kind, n=260):
    """A table of numbers, categories and missing values, with an interaction."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["town"] = rng.choice(["north", "south", "east"], n)
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    f = np.sin(2.0 * X["a"]) + X["a"] * X["c"] + 0.8 * (X["town"] == "north") + X["b"].isna()
    if kind == "numbers":
        return X, f.to_numpy() + 0.3 * rng.normal(size=n)
    if kind == "counts":
        return X, rng.poisson(np.exp(0.6 * f))
    if kind == "classes":
        return X, (f + rng.logistic(size=n) > 0.4).astype(int)
    return X, np.digitize(f + rng.logistic(size=n), [-0.5, 1.0])


def predictions(kind, X, y, at, **parameters):
    """Means and standard deviations (of probabilities: these) of rows."""
    if kind in ("classes", "three classes"):
        return LANAMClassifier(n_jobs=1, **parameters).fit(X, y).predict_proba(at), 0.1
    likelihood = "poisson" if kind == "counts" else "gaussian"
    model = LANAMRegressor(likelihood=likelihood, n_jobs=1, **parameters).fit(X, y)
    return model.predict(at, return_std=True)


@pytest.mark.parametrize("kind", ["numbers", "counts", "classes", "three classes"])
def test_seeds_and_orders(kind):
    X, y = example(kind)
    mean, std = predictions(kind, X, y, X, random_state=0)
    order, columns = np.random.default_rng(1).permutation(len(X)), ["town", "c", "a", "b"]
    for other, _ in (
        predictions(kind, X, y, X, random_state=1),
        predictions(kind, X.iloc[order], y[order], X, random_state=2),
        predictions(kind, X[columns], y, X[columns]),
    ):
        assert np.max(np.abs(other - mean) / std) < 1e-6


def test_finite_networks_start_at_random():
    X, y = example("numbers")
    first, second = (
        predictions("numbers", X, y, X, hidden_sizes=(16,), interactions=0, random_state=seed)[0]
        for seed in (0, 1)
    )
    assert np.max(np.abs(first - second)) > 1e-3
