"""Models of every kind with rows that are hard to score, and the model's own predictions."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from lanam.core.model.scoring import link_moments
from tests.report.examples import example, hard_rows

#: Relative tolerances, as documented.
TOLERANCE = 1e-6

NAME = 'the "name"; DROP TABLE data; -- é\u2028'


@dataclass(frozen=True)
class Case:
    model: Any
    X: pd.DataFrame

    @property
    def link(self):
        """Means and covariances of the sums: (n, C) and (n, C, C)."""
        mean, covariance = link_moments(self.model._model, self.model._columns(self.X))
        mean = mean.reshape(len(self.X), -1)
        return mean, covariance.reshape(len(self.X), mean.shape[1], mean.shape[1])

    @property
    def scale(self):
        """The magnitude of the summands (n, C): a sum near zero loses digits."""
        parts = np.abs(self.model.predict_terms(self.X))
        if parts.ndim == 2:
            parts = parts[..., None]
        return parts.sum(axis=1) + np.abs(self.model.intercept_)


def odd_table(n=500, seed=0):
    """Columns with hostile names, and string, numeric and boolean categories."""
    rng = np.random.default_rng(seed)
    texts = ["it's", '"', "", "-- x", "1", "Ünï", "%s {}"]
    X = pd.DataFrame(
        {
            NAME: rng.normal(-5.0, 3.0, n),
            "it's": rng.choice(texts, n),
            "flag": rng.random(n) < 0.4,
            "zone": rng.choice([-3, 0, 7, 2**40], n),
            "half": rng.choice([0.5, -1.5, 2.25, np.nan], n),
            "SELECT": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n)),
        }
    )
    f = np.sin(X[NAME] / 2.0) + 0.7 * X["it's"].map({t: k % 3 for k, t in enumerate(texts)})
    f += X["flag"] * 1.0 + (X["zone"] > 5) + X["half"].fillna(4.0) + 0.2 * X["SELECT"].fillna(12.0)
    f += 0.3 * X["flag"] * X[NAME]
    return X, f, rng


def odd_rows(X, n=60):
    X = X[:n].copy().astype({"flag": object, "it's": object, "zone": float})
    X.iloc[::7, 0] = np.nan
    X.iloc[1::7, 0] = [-1e6, 1e6, -1e300, 1e300, 0.0, -5.0, 1e-300, 2.0, 3.0][: len(X.iloc[1::7])]
    X.iloc[2::7, 1], X.iloc[3::7, 1] = None, "IT'S"
    X.iloc[4::7, 2] = None
    X.iloc[5::7, 3], X.iloc[6::14, 3] = np.nan, 0.5
    X.iloc[3::9, 4], X.iloc[4::9, 4] = np.nan, 0.25
    X.iloc[5::9, 5], X.iloc[6::9, 5] = 2.5, 1e9
    return X


def shops(n=500, n_levels=60, seed=0):
    rng = np.random.default_rng(seed)
    shop, x = np.arange(n) % n_levels, rng.uniform(-2.0, 2.0, n)
    f = rng.standard_normal(n_levels)[shop] + np.sin(2.0 * x)
    table = pd.DataFrame({"x": x, "shop": [f"shop {k}" for k in shop]})
    table.loc[::14, "shop"] = None
    strange = pd.DataFrame({"x": [0.0, 1.0, 99.0, np.nan], "shop": ["new", None, "shop 3", "new"]})
    return table, f + 0.3 * rng.standard_normal(n), pd.concat([table[:40], strange])


def noisy_table(n=500, seed=0):
    """Heteroscedastic noise that depends on a number, and on a site without effect on the mean."""
    rng = np.random.default_rng(seed)
    x, size = rng.uniform(-1.0, 1.0, n), rng.uniform(0.0, 2.0, n)
    site = rng.choice(["calm", "it's", "wild"], n)
    std = np.exp(2.0 * x - 2.0) * np.where(site == "wild", 3.0, 1.0)
    y = np.sin(2.0 * x) + 3.0 * size + std * rng.standard_normal(n)
    table = pd.DataFrame({"x": x, "size": size, "site": site}).astype({"site": object})
    table.loc[rng.random(n) < 0.1, "size"] = np.nan
    table.loc[rng.random(n) < 0.05, "site"] = None
    return table, y


def noisy_rows(X, n=60):
    X = X[:n].copy()
    X.iloc[::7, 0] = np.nan  # the training data had none
    X.iloc[1::7, 0] = [-1e300, 1e300, -3.0, 3.0, 0.0, -1.0, 1.0, 1e-300, 1.5]
    X.iloc[2::7, 1] = np.nan
    X.iloc[3::7, 2], X.iloc[4::7, 2] = "new", None
    X.iloc[5], X.iloc[6] = (np.nan, np.nan, None), (np.nan, np.nan, "new")
    return X


SMALL = {"hidden_sizes": (16,), "pair_hidden_sizes": (16,), "random_state": 0}


@cache
def case(kind):
    if kind in ("gaussian", "known", "calibrated", "counts", "two", "many"):
        found = example(kind)
        return Case(found.model, hard_rows(found, 60)[0])
    if kind == "odd":
        X, f, rng = odd_table()
        model = LANAMRegressor(
            interactions=[(NAME, "flag")], categorical_features=["zone", "half"], **SMALL
        )
        return Case(model.fit(X, f + 0.1 * rng.normal(size=len(X))), odd_rows(X))
    if kind == "noisy":
        X, y = noisy_table()
        model = LANAMRegressor(interactions=0, **SMALL).fit(X, y)
        assert {"x", "site"} <= {term.name for term in model.noise_terms_ if term.active}
        assert "site" not in {term.name for term in model.terms_ if term.active}
        assert model._model.missing_variance.any()
        return Case(model, noisy_rows(X))
    if kind == "nothing":
        rng = np.random.default_rng(3)
        X = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
        model = LANAMRegressor(interactions=0, level_effects=False, **SMALL)
        model.fit(X, rng.normal(size=100) + 5.0)
        assert not any(term.active for term in model.terms_)
        return Case(model, X[:5])
    if kind == "map":
        rng = np.random.default_rng(5)
        X = pd.DataFrame(rng.uniform(0.0, 4.0, size=(150, 3)), columns=["x", "y", "age"])
        X.iloc[::15, 1] = np.nan
        y = np.sin(2.0 * X["x"]) + np.nan_to_num(np.cos(X["y"])) + 0.1 * rng.normal(size=150)
        rows = X[:40].copy()
        rows.iloc[:6, 0], rows.iloc[6:9, 1] = [-9.0, 9.0, 0.0, 4.0, 5.0, np.nan], [-1.0, 5.0, 99.0]
        return Case(LANAMRegressor(spatial=[("x", "y")], interactions=0).fit(X, y), rows)
    if kind in ("grades", "amounts"):
        X, y = noisy_table()
        rng = np.random.default_rng(4)
        if kind == "grades":
            model = LANAMClassifier(likelihood="ordinal", interactions=0, **SMALL)
            y = np.digitize(y + rng.logistic(size=len(X)), [1.0, 2.0, 5.0])
        else:
            model = LANAMRegressor(likelihood="tweedie", interactions=0, **SMALL)
            y = np.where(
                rng.random(len(X)) < 0.3, 0.0, np.exp(0.3 * y) * rng.gamma(2.0, size=len(X))
            )
        rows = noisy_rows(X)
        rows.loc[rows["x"].abs() > 10.0, "x"] = 3.0  # no exponentials of 1e300
        return Case(model.fit(X, y), rows)
    X, y, rows = shops()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "_WIDE", 10)  # few levels are very many
        if kind == "wide":
            model = LANAMRegressor(interactions=0, **SMALL).fit(X, y)
        elif kind == "wide two":
            model = LANAMClassifier(interactions=0, **SMALL).fit(X, y > 0.0)
        else:
            assert kind == "shared"
            model = LANAMClassifier(interactions=0, **SMALL).fit(X, np.digitize(y, [-0.7, 0.7]))
    return Case(model, rows.reset_index(drop=True))


KINDS = (
    *("gaussian", "known", "counts", "two", "many", "odd", "noisy", "wide", "wide two", "shared"),
    *("grades", "amounts", "map"),
)


def check_link(found, mean, variance=None):
    """Means (n, C) and variances (n, C) are the model's own."""
    own_mean, own_covariance = found.link
    error = np.abs(np.reshape(mean, own_mean.shape) - own_mean) / found.scale
    assert error.max() < TOLERANCE
    if variance is not None:
        own = np.diagonal(own_covariance, axis1=1, axis2=2)
        assert np.abs(np.reshape(variance, own.shape) / own - 1.0).max() < TOLERANCE


def check_response(found, prediction, variance=None):
    """Predictions are those of ``predict`` and ``predict_proba``: (n,) and (n, C)."""
    model, X = found.model, found.X
    if hasattr(model, "classes_"):
        own = model.predict_proba(X)
        assert np.abs(np.reshape(prediction, own.shape) / own - 1.0).max() < TOLERANCE
        return
    mean, std = model.predict(X, return_std=True)
    counts = np.isnan(model.noise_std_)
    scale = mean if counts else found.scale[:, 0]
    assert (np.abs(prediction - mean) / scale).max() < TOLERANCE
    if variance is not None:
        assert np.abs(np.sqrt(variance) / std - 1.0).max() < TOLERANCE
