"""One small model of every kind, with names that would break unescaped HTML."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lanam import LANAMClassifier, LANAMRegressor

CITY = 'city <script>alert(1)</script> & "co"'
BROKEN = "</script><b onclick='alert(2)'>x\u2028y"
CITIES = ("Bern", "Oslo", "Rome", BROKEN)
CLASSES = ("high & <b>mighty</b>", "low", "mid")

#: All kinds of interactions: numeric with missing values, numeric and categorical, two categorical.
PAIRS = [("load", "gap"), ("load", CITY), (CITY, "size"), ("gap", "size")]

#: Options for quick, inaccurate fits.
QUICK = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "random_state": 0}

#: What is known of columns, with default networks.
KNOWN = {
    "cyclic": {"hour": 24},
    "linear": ["gap"],
    "ordered": {"size": ["S", "M", "L", "XL"]},
    "keep": ["noise"],
    "by": {"load": "gap"},
    "random_slopes": [("load", CITY)],
}

N_FIT, N_HELD = 1200, 200


@dataclass(frozen=True)
class Example:
    """A fitted model, and held-out rows."""

    model: Any
    X: pd.DataFrame
    y: np.ndarray
    #: ``exposure``, for counts
    more: dict[str, Any] = field(default_factory=dict)


def make_table(n=N_FIT + N_HELD, seed=0):
    """A table with every kind of column, its noiseless target, and the generator that made them."""
    rng = np.random.default_rng(seed)
    city, size = rng.choice(CITIES, n), rng.choice(["S", "M", "L"], n)
    zone, hour = rng.integers(0, 30, n), rng.uniform(0.0, 24.0, n)
    load, gap = rng.normal(50.0, 12.0, n), rng.uniform(0.0, 1.0, n)
    lost = rng.random(n) < 0.15
    f = np.sin(load / 8.0) + 0.5 * (city == "Oslo") + 3.0 * gap + 0.8 * lost - 1.5
    # Per-value effects, of single values and of bins.
    f += rng.normal(0.0, 0.8, 30)[zone] + rng.normal(0.0, 0.8, 48)[(hour * 2.0).astype(int)]
    f += np.where(city == "Rome", 0.06, -0.03) * (load - 50.0)
    f += 1.2 * ((city == BROKEN) & (size == "L"))
    f += (size == "S") * np.where(lost, -1.0, 1.5 * (gap - 0.5))
    f += 0.08 * (load - 50.0) * (np.where(lost, 0.5, gap) - 0.5)
    table = pd.DataFrame(
        {
            "load": load,
            "gap": np.where(lost, np.nan, gap),
            CITY: np.where(rng.random(n) < 0.05, None, city),
            "size": size,
            "zone": zone,
            "hour": hour,
            "noise": rng.normal(size=n),
            "same": 1.0,
        }
    )
    return table, f, rng


def _options(**more):
    return {"hidden_sizes": (16,), "pair_hidden_sizes": (16,), "random_state": 0} | more


@cache
def example(kind):
    """The example of a kind: gaussian, noisy, known, calibrated, counts, two or many."""
    if kind == "calibrated":
        plain = example("gaussian")
        model = deepcopy(plain.model).calibrate(plain.X[:100], plain.y[:100])
        return replace(plain, model=model)
    X, f, rng = make_table()
    kept, held = slice(0, N_FIT), slice(N_FIT, None)
    more = {}
    if kind == "gaussian":
        model = LANAMRegressor(**_options(interactions=PAIRS))
        y = f + 0.25 * rng.normal(size=len(X))
    elif kind == "noisy":
        # Columns with and without missing values, and one without an effect on the mean.
        model = LANAMRegressor(**_options(interactions=0))
        loud = 0.02 * (X["load"] - 50.0) + 0.5 * X["noise"] + 1.1 * (X[CITY] == "Oslo")
        y = f + 0.25 * np.exp(loud.to_numpy()) * rng.normal(size=len(X))
    elif kind == "counts":
        model = LANAMRegressor(likelihood="poisson", **_options(interactions=PAIRS[1:3]))
        more = {"exposure": rng.uniform(0.5, 4.0, len(X))}
        # Clusters, so that counts are overdispersed.
        y = rng.poisson(
            more["exposure"] * np.exp(0.5 * f + 1.0) * rng.gamma(3.0, 1.0 / 3.0, len(X))
        )
    elif kind == "known":
        # A cycle, also in a pair, a line with missing values, an order with a category without rows.
        f = f + np.sin(2.0 * np.pi * X["hour"] / 24.0) * (1.0 + 0.05 * (X["load"] - 50.0))
        model = LANAMRegressor(interactions=[("hour", "load"), ("size", "gap")], **KNOWN)
        y = f + 0.25 * rng.normal(size=len(X))
    elif kind == "two":
        model = LANAMClassifier(**_options(interactions=PAIRS[:2]))
        y = np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * f)), "sick", "well")
    else:
        model = LANAMClassifier(**_options(interactions=PAIRS[1:3]))
        scores = np.stack([2.0 * f, -2.0 * f, 0.5 + 0.0 * f], axis=1)
        y = np.array(CLASSES)[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    model.fit(X[kept], y[kept], **{name: value[kept] for name, value in more.items()})
    return Example(model, X[held], y[held], {name: value[held] for name, value in more.items()})


@cache
def only_noisy():
    """A model in which the column "kind" only affects the noise, and its data."""
    rng = np.random.default_rng(0)
    # Every row twice, with opposite noise: all kinds have the same mean.
    kind = rng.choice(["calm", "mild", "wild"], 300, p=[0.4, 0.2, 0.4])
    X = pd.DataFrame({"x": rng.uniform(0.0, 2.0, 300), "kind": kind})
    sd = np.exp(2.0 * X["x"] - 2.0) * X["kind"].map({"calm": 1.0, "mild": 0.2, "wild": 3.0})
    noise = sd * rng.normal(size=300)
    y = np.concatenate([10.0 * X["x"] + noise, 10.0 * X["x"] - noise])
    X = pd.concat([X, X], ignore_index=True)
    return Example(LANAMRegressor(**QUICK).fit(X, y), X, y)


KINDS = ("gaussian", "calibrated", "counts", "two", "many")


def hard_rows(example, n=40, seed=1):
    """Rows to score and their exposures, with missing values, unseen categories, and outlying values."""
    rng = np.random.default_rng(seed)
    X = example.X[:n].reset_index(drop=True).astype({"zone": float})
    for name in X.columns:
        gone, strange = rng.random((2, n)) < 0.1
        if X[name].dtype.kind == "f":
            spread = X[name].std() or 1.0
            X.loc[strange, name] = X[name].mean() + 6.0 * spread * rng.normal(size=strange.sum())
            X.loc[gone, name] = np.nan
        else:
            X[name] = X[name].astype(object)
            X.loc[strange, name] = "never seen"
            X.loc[gone, name] = None
    return X, {name: np.asarray(value)[:n] for name, value in example.more.items()}
