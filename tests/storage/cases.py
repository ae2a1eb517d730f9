"""Fitted models of every kind that there is, each with rows to score."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl

from lanam import LANAMClassifier, LANAMRegressor
from tests.report.examples import KINDS, example, hard_rows

SMALL = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "max_iter": 30, "random_state": 0}


def _data(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, f, f + 0.2 * rng.normal(size=n), rng


def _block():
    X, _, y, _ = _data()
    model = LANAMRegressor(posterior="block", interactions=[(1, 2)], noise="constant", **SMALL)
    return model.fit(X, y), X


def _kron():
    X, _, y, _ = _data()
    model = LANAMRegressor(posterior="block", curvature="kron", interactions=[(1, 2)], **SMALL)
    return model.fit(X, y), X


def _adam():
    X, f, _, _ = _data()
    # Few epochs: a file holds what was learned, however much that is.
    model = LANAMClassifier(solver="adam", interactions=[(1, 2)], **{**SMALL, "max_iter": 3})
    return model.fit(X, f > 0.0), X


def _wide():
    rng = np.random.default_rng(0)
    code = rng.permutation(np.arange(3000) % 1100)
    X = pd.DataFrame({"shop": [f"№ {k}" for k in code], "size": rng.normal(size=3000)})
    y = rng.normal(size=1100)[code] + X["size"] + 0.2 * rng.normal(size=3000)
    model = LANAMRegressor(interactions=0, **SMALL).fit(X, y)
    assert model._model.terms[0].coupling is not None
    return model, pd.concat([X, pd.DataFrame({"shop": ["new", None], "size": [0.0, 1.0]})])


def _levels():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 25, 800) / 10.0
    y = rng.normal(size=25)[np.rint(10 * x).astype(int)] + 0.1 * rng.normal(size=800)
    model = LANAMRegressor(interactions=0, **SMALL).fit(x[:, None], y)
    assert "level" in [term.kind for term in model.terms_ if term.active]
    return model, np.concatenate([x, x + 0.05, [np.nan]])[:, None]


def _bins():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, 3000)
    y = np.sign(np.sin(90.0 * x)) + 0.1 * rng.normal(size=3000)
    model = LANAMRegressor(interactions=0, **SMALL).fit(x[:, None], y)
    assert any(t.active and t.kind == "level" and not t.entries.exact for t in model._model.terms)
    return model, x[:, None]


def _constant():
    X, _, y, _ = _data()
    X = np.column_stack([X, np.full(len(X), 7.0), np.full(len(X), np.nan), X[:, 0]])
    return LANAMRegressor(interactions=0, **SMALL).fit(X, y), X


def _polars():
    X, _, y, _ = _data()
    rows = pl.DataFrame({"größe": X[:, 0], "日本": X[:, 1], 'a"\\\n': X[:, 2]})
    return LANAMRegressor(interactions=1, **SMALL).fit(rows, y), rows


def _truth():
    X, f, _, rng = _data()
    rows = pd.DataFrame({"flag": X[:, 0] > 0.0, "zone": rng.integers(0, 4, len(X)), "x": X[:, 1]})
    model = LANAMClassifier(categorical_features=["zone"], interactions=1, **SMALL)
    return model.fit(rows, (f > 0.0).astype(np.int8)), rows


def _calibrated_classes():
    X, f, _, _ = _data()
    labels = np.array([0.0, 1.0, 2.0])[np.digitize(f, [-0.5, 0.5])]
    model = LANAMClassifier(interactions=0, **SMALL).fit(X[:150], labels[:150])
    return model.calibrate(X[150:], labels[150:]), X


def _edited():
    X, _, y, _ = _data()
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LANAMRegressor(interactions=[("b", "c")], **SMALL).fit(rows, y)
    model = model.edit_term("a", "clamp", high=0.5, reason="nobody is larger")
    return model.edit_term("b x c", "zero", low={"b": 0.1}, high={"c": 0.7}), rows


def _noisy():
    X, f, _, rng = _data(600)
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": rng.choice(["x", "y", "z"], len(X))})
    loud = np.exp(0.5 * X[:, 1]) * np.where(rows["kind"] == "z", 3.0, 1.0)
    rows.loc[::9, "b"] = np.nan
    model = LANAMRegressor(interactions=0, **SMALL).fit(rows, f + 0.2 * loud * rng.normal(size=600))
    assert {"b", "kind"} <= {term.name for term in model.noise_terms_ if term.active}
    more = pd.DataFrame({"a": [0.0, None], "b": [9.0, None], "kind": ["new", None]})
    return model, pd.concat([rows, more])


def _huge():
    rng = np.random.default_rng(0)
    X = np.column_stack([1e-200 * rng.normal(size=300), 1e130 * rng.normal(size=300)])
    y = 1e120 * (1e200 * X[:, 0] + np.sin(X[:, 1] / 1e130) + 0.1 * rng.normal(size=300))
    return LANAMRegressor(interactions=0, **SMALL).fit(X, y), X


def _map():
    X, _, y, _ = _data(200)
    return LANAMRegressor(spatial=[(0, 1)], interactions=0).fit(X, y), X


_MORE = {
    make.__name__[1:]: make
    for make in (
        _block,
        _kron,
        _adam,
        _wide,
        _levels,
        _bins,
        _constant,
        _polars,
        _truth,
        _calibrated_classes,
        _edited,
        _noisy,
        _huge,
        _map,
    )
}
NAMES = (*KINDS, "known", *_MORE)


@cache
def case(name):
    """A fitted model, and rows to score, with missing values, unseen categories and extreme values."""
    if name in _MORE:
        return _MORE[name]()
    known = example(name)
    return known.model, hard_rows(known)[0]
