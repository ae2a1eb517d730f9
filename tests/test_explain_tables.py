"""Explanations of real tables: categories, missing values, counts and classes are all there to be read."""

import json

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor

CITIES = ("Bonn", "Rome", "Oslo", "Lima", "Cairo")
EFFECT = dict(zip(CITIES, (0.0, 0.8, -0.7, 0.3, 1.0), strict=True))


def make_table(n_rows=1200, seed=0):
    """A table with every kind of column and pair, and the noiseless target."""
    rng = np.random.default_rng(seed)
    city = rng.choice(CITIES, n_rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    size = rng.choice(["small", "medium", "large"], n_rows)
    zone = np.minimum(rng.geometric(0.07, n_rows), 40)
    age, income = rng.uniform(20.0, 80.0, n_rows), rng.lognormal(10.0, 0.5, n_rows)
    gap, lost = rng.random(n_rows) < 0.12, rng.random(n_rows) < 0.06
    target = np.sin(age / 12.0) + np.array([EFFECT[name] for name in city])
    target += np.where(city == "Rome", 0.03, -0.01) * (age - 50.0)
    target += 0.9 * ((size == "large") & (city == "Oslo")) + rng.normal(0.0, 0.5, 41)[zone]
    target += np.where(gap, 0.9, 0.0) + np.where(gap & (size == "small"), 0.8, 0.0)
    target += 0.02 * (zone % 3 - 1) * (age - 50.0)
    table = pd.DataFrame(
        {
            "age": age,
            "income": np.where(gap, np.nan, income),
            "city": np.where(lost, None, city),
            "size": pd.Categorical(size, ["small", "medium", "large"], ordered=True),
            "zone": zone,
            "member": rng.random(n_rows) < 0.3,
            "same": "x",
            "empty": np.nan,
            "size again": size,
        }
    )
    return table, target


PAIRS = [("age", "city"), ("city", "size"), ("income", "size"), ("age", "zone"), ("age", "income")]


@pytest.fixture(scope="module")
def data():
    X, target = make_table()
    return X, target + 0.3 * np.random.default_rng(1).standard_normal(len(X))


@pytest.fixture(scope="module")
def model(data):
    return LANAMRegressor(interactions=PAIRS, categorical_features=["zone"], random_state=0).fit(
        *data
    )


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain_global()


@pytest.fixture(scope="module")
def hard_rows(data):
    """Rows with gaps where there were gaps and where there were none, and with new levels."""
    X = data[0][:40].astype({"size": object, "member": object, "zone": object, "same": object})
    for row, column in enumerate(["age", "income", "city", "size", "zone", "member", "same"]):
        X.loc[row, column] = np.nan if column in ("age", "income") else None
    for row, (column, value) in enumerate({"city": "Quito", "size": "huge", "zone": 99}.items()):
        X.loc[row + 10, column] = value
    X.loc[20, ["age", "city"]] = [np.nan, "Quito"]
    X.loc[21, ["age", "income"]] = np.nan
    X.loc[22, ["age", "size"]] = [1e6, None]
    return X


def is_missing(value):
    return value is None or value != value


def reads(values, others, kind, value):
    """The entries of an axis that a value reads, with their weights; None if it has none to read."""
    if is_missing(value):
        return [(len(values) + others.index("(missing)"), 1.0)] if "(missing)" in others else None
    if kind == "categorical":
        if value in values:
            return [(values.index(value), 1.0)]
        return [(len(values) + others.index("(other levels)"), 1.0)]
    value = min(max(value, values[0]), values[-1])
    right = min(max(int(np.searchsorted(values, value)), 1), len(values) - 1)
    share = (value - values[right - 1]) / (values[right] - values[right - 1])
    return [(right - 1, 1.0 - share), (right, share)]


def read_shape(term, row):
    """What a term of one column adds to a row, from the plain data alone."""
    value, values = row[term["feature_names"][0]], term["values"]
    zero = 0.0 * np.array(term["mean"]).sum(axis=0)
    if is_missing(value):
        key = "missing_mean" if term["missing_mean"] is not None else "unseen_mean"
        return zero if term[key] is None else np.array(term[key])
    if term["kind"] == "smooth" and len(values) > 1:
        entries = reads(values, (), "numeric", value)
        return sum(share * np.array(term["mean"][entry]) for entry, share in entries)
    if value in values:
        return np.array(term["mean"][values.index(value)])
    return zero if term["unseen_mean"] is None else np.array(term["unseen_mean"])


def read_surface(term, row):
    """What a pair adds to a row, from the plain data alone."""
    axes = ((term["values"], term["others"]), (term["second_values"], term["second_others"]))
    cells = [row[name] for name in term["feature_names"]]
    entries = [
        reads(*axis, kind, cell)
        for axis, kind, cell in zip(axes, term["feature_kinds"], cells, strict=True)
    ]
    mean = np.array(term["mean"])
    if None in entries:
        return 0.0 * mean[0, 0]
    return sum(p * q * mean[i, j] for i, p in entries[0] for j, q in entries[1])


def read_prediction(plain, rows):
    """Predictions on the link scale from a global explanation's plain data alone."""
    result = []
    for row in rows.to_dict("records"):
        prediction = np.array(plain["intercept"])
        for term in plain["terms"]:
            read = read_surface if term["kind"] == "pair" else read_shape
            prediction = prediction + read(term, row)
        result.append(prediction)
    return np.array(result)


def test_the_table_has_every_kind_of_term(explanation):
    kinds = {term.name: term.kind for term in explanation}
    assert kinds["age"] == kinds["income"] == kinds["empty"] == "smooth"
    for name in ("city", "size", "zone", "member", "same", "size again"):
        assert kinds[name] == "categorical"
    active = {pair.name for pair in explanation.pairs if pair.active}
    assert active >= {"age x city", "city x size", "income x size", "age x zone"}


@pytest.mark.filterwarnings("ignore::UserWarning")  # new levels and new gaps are counted in one
def test_predictions_can_be_read_off_the_plain_data(model, explanation, data, hard_rows):
    plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    for rows in (data[0][:100], hard_rows):
        # Rows read the tables in single precision.
        np.testing.assert_allclose(read_prediction(plain, rows), model.predict(rows), atol=2e-5)
