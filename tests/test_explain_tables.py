"""Explanations of tables with categories and missing values, of counts and of classes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.data import as_frame, learn_table
from lanam.explain import explain_global, explain_local
from lanam.interactions import describe_interactions
from lanam.summary import summarise
from tests.core import in_memory

CITIES = ("Bonn", "Rome", "Oslo", "Lima", "Cairo")
EFFECT = dict(zip(CITIES, (0.0, 0.8, -0.7, 0.3, 1.0), strict=True))


def make_table(n_rows=1200, seed=0):
    """A table with every kind of column and interaction, and the noiseless target."""
    rng = np.random.default_rng(seed)
    city = rng.choice(CITIES, n_rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    size = rng.choice(["small", "medium", "large"], n_rows)
    zone = np.minimum(rng.geometric(0.07, n_rows), 40)
    age, income = rng.uniform(20.0, 80.0, n_rows), rng.lognormal(10.0, 0.5, n_rows)
    absent, lost = rng.random(n_rows) < 0.12, rng.random(n_rows) < 0.06
    target = np.sin(age / 12.0) + np.array([EFFECT[name] for name in city])
    target += np.where(city == "Rome", 0.03, -0.01) * (age - 50.0)
    target += 0.9 * ((size == "large") & (city == "Oslo")) + rng.normal(0.0, 0.5, 41)[zone]
    target += np.where(absent, 0.9, 0.0) + np.where(absent & (size == "small"), 0.8, 0.0)
    target += 0.02 * (zone % 3 - 1) * (age - 50.0)
    table = pd.DataFrame(
        {
            "age": age,
            "income": np.where(absent, np.nan, income),
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
    """Rows with missing values, also in columns without any in the training data, and unseen categories."""
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
    """The entries of an axis at a value, with interpolation weights; None without an entry."""
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
    """The contribution of a univariate term to a row, from the plain data alone."""
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
    """The contribution of an interaction to a row, from the plain data alone."""
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


@pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # one warning counts unseen categories and missing values
def test_predictions_can_be_read_off_the_plain_data(model, explanation, data, hard_rows):
    plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    for rows in (data[0][:100], hard_rows):
        # Interpolation weights are in single precision.
        np.testing.assert_allclose(read_prediction(plain, rows), model.predict(rows), atol=2e-5)


class TestShapes:
    def test_categories_are_in_the_order_of_the_data(self, data, explanation):
        city, zone = explanation["city"], explanation["zone"]
        assert city.values.tolist() == sorted(CITIES)
        assert explanation["size"].values.tolist() == ["small", "medium", "large"]
        assert explanation["member"].values.tolist() == [False, True]
        assert zone.values.tolist() == sorted(data[0]["zone"].unique().tolist())
        assert {type(value) for value in zone.values.tolist()} == {int}
        assert city.values.dtype == object
        assert city.inside.all()
        assert city.feature_kinds == ("categorical",)
        assert explanation["age"].feature_kinds == ("numeric",)

    def test_densities_are_fractions_of_the_rows(self, data, explanation):
        city, income = explanation["city"], explanation["income"]
        shares = data[0]["city"].value_counts(normalize=False) / len(data[0])
        np.testing.assert_allclose(city.density, shares[city.values.tolist()])
        assert city.missing_density == pytest.approx(data[0]["city"].isna().mean())
        assert income.missing_density == pytest.approx(data[0]["income"].isna().mean())
        assert income.density.sum() + income.missing_density == pytest.approx(1.0)
        assert explanation["size"].missing_density is None

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize(
        ("name", "value", "key"),
        [
            ("city", None, "missing"),
            ("city", "Quito", "unseen"),
            ("income", np.nan, "missing"),
            ("age", np.nan, "unseen"),
            ("zone", 99, "unseen"),
            ("zone", None, "unseen"),
        ],
    )
    def test_missing_and_unseen_values(self, model, data, explanation, name, value, key):
        row = data[0][:1].astype({"zone": object})
        row[name] = [value]
        means, stds = model.predict_terms(row, return_std=True)
        index = [term.name for term in explanation].index(name)
        assert means[0, index] == pytest.approx(getattr(explanation[name], f"{key}_mean"))
        assert stds[0, index] == pytest.approx(getattr(explanation[name], f"{key}_std"))

    def test_bands_are_the_models(self, model, data, explanation):
        city = explanation["city"]
        rows = pd.concat([data[0][:1]] * 5).assign(city=city.values)
        means, stds = model.predict_terms(rows, return_std=True)
        index = [term.name for term in explanation].index("city")
        np.testing.assert_allclose(means[:, index], city.mean)
        np.testing.assert_allclose(stds[:, index], city.std)
        assert city.unseen_std > city.missing_std
        assert city.unseen_std > city.std.max()

    def test_no_unseen_entry_with_missing_values(self, explanation):
        assert explanation["income"].unseen_mean is explanation["income"].unseen_std is None

    def test_columns_that_cannot_have_a_term(self, explanation):
        same, empty = explanation["same"], explanation["empty"]
        assert same.values.tolist() == ["x"]
        assert same.density.tolist() == [1.0]
        assert same.mean.tolist() == same.std.tolist() == [0.0]
        assert len(empty.values) == len(empty.mean) == len(empty.density) == 0
        assert empty.missing_density == 1.0
        assert empty.missing_mean == empty.missing_std == 0.0

    def test_the_same_column_twice(self, data):
        X = data[0][["city"]].assign(again=data[0]["city"])
        again = LANAMRegressor(random_state=0).fit(X, data[1]).explain_global()["again"]
        assert again.kind == "categorical"
        assert again.status == "dropped: same values as another column"
        assert len(again.values) == 0

    def test_single_values_with_missing_values(self):
        rng = np.random.default_rng(0)
        recipe = rng.integers(0, 60, 900).astype(float)
        y = rng.normal(0.0, 1.0, 60)[recipe.astype(int)] + 0.1 * rng.standard_normal(900)
        recipe[:90] = np.nan
        model = LANAMRegressor(random_state=0).fit(pd.DataFrame({"recipe": recipe}), y)
        levels = model.explain_global()["recipe (levels)"]
        np.testing.assert_array_equal(levels.values, np.arange(60.0))
        assert levels.missing_density == pytest.approx(0.1)
        assert levels.density.sum() == pytest.approx(0.9)
        row = pd.DataFrame({"recipe": [np.nan, 3.5]})
        means, stds = model.predict_terms(row, return_std=True)
        assert means[0, 1] == pytest.approx(levels.missing_mean)
        assert stds[0, 1] == pytest.approx(levels.missing_std)
        assert stds[1, 1] == pytest.approx(levels.unseen_std)
        assert [other[0] for other in levels.others] == ["(missing)", "(other values)"]


def test_the_importance_of_missingness_is_that_of_the_step(model, data, explanation):
    """Against the contributions of the training rows: a step, and what varies among values."""
    contributions = model.predict_terms(data[0])
    split = set()
    for k, term in enumerate(explanation):
        missing = data[0][term.feature_names[0]].isna().to_numpy()
        part = term.importance_of_missingness
        if term.joint or not term.active or not missing.any():
            assert part == 0.0
            continue
        f = contributions[:, k]
        step = np.where(missing, f[missing].mean(), f[~missing].mean()) - f.mean()
        among = np.where(missing, 0.0, f - f[~missing].mean())
        sizes = np.abs(step).mean(), np.abs(among).mean()
        assert part == pytest.approx(term.importance * sizes[0] / sum(sizes), rel=0.02)
        assert term.missingness == pytest.approx(part / term.importance)
        split.add(term.kind)
    assert split >= {"smooth", "categorical"}


@pytest.fixture(scope="module")
def streets():
    """A high-cardinality column, whose categories have no coordinates, and its model."""
    rng = np.random.default_rng(5)
    street, age = rng.integers(0, 1100, 6000), rng.uniform(20.0, 80.0, 6000)
    y = rng.normal(0.0, 0.8, 1100)[street] + np.sin(age / 12.0) + 0.4 * rng.standard_normal(6000)
    X = pd.DataFrame({"street": [f"street {k:04d}" for k in street], "age": age})
    X.loc[rng.random(6000) < 0.05, "street"] = None
    columns, schema = learn_table(as_frame(X), list(X), backend="pandas")
    options = Options(interactions=0)
    ones = np.ones(len(y))
    model = in_memory.fit(columns, y, ones, "gaussian", options, 0, schema.n_levels)
    assert model.terms[0].coupling is not None
    return X, columns, schema, model


class TestHighCardinality:
    def test_the_standard_deviation_of_the_importance(self, streets):
        *_, schema, model = streets
        term, rng = model.terms[0], np.random.default_rng(0)
        importances = []
        for _ in range(400):
            shared = term.coupling @ (
                model.cov_cholesky @ rng.standard_normal(model.cov_cholesky.shape[1])
            )
            own = np.sqrt(term.own_variance) * rng.standard_normal(len(term.mean))
            importances.append(term.data_mass @ np.abs(term.mean + shared + own))
        shape = explain_global(model, schema)["street"]
        # Both are accurate to about 5%.
        assert shape.importance_std == pytest.approx(np.std(importances), rel=0.2)
        pairs = describe_interactions(model, schema, "evidence")
        rows = summarise(model, schema, pairs, estimator="E", n_rows=9).rows
        (band,) = [row["importance_band"] for row in rows if row["term"] == "street"]
        assert band == pytest.approx(2.0 * shape.importance_std)

    def test_it_is_exact_without_sign_changes(self, streets):
        *_, schema, model = streets
        term = model.terms[0]
        above = replace(term, mean=term.mean + 100.0, importance=100.0 + term.data_mass @ term.mean)
        shape = explain_global(replace(model, terms=(above, *model.terms[1:])), schema)["street"]
        shared = term.data_mass @ term.coupling
        variance = shared @ model.covariance @ shared + term.data_mass**2 @ term.own_variance
        # 256 draws: accurate to a few per cent.
        assert shape.importance_std == pytest.approx(np.sqrt(variance), rel=0.15)

    def test_rows_agree_with_the_shape(self, streets):
        X, columns, schema, model = streets
        shape = explain_global(model, schema)["street"]
        local = explain_local(model, schema, columns[:300])
        for actual, table, missing in (
            (local.contributions, shape.mean, shape.missing_mean),
            (local.contributions_std, shape.std, shape.missing_std),
        ):
            known = dict(zip(shape.values, table, strict=True))
            wanted = [known.get(name, missing) for name in X["street"][:300]]
            np.testing.assert_allclose(actual[:, 0], wanted, rtol=1e-9)
        assert (local.contributions_std > 0.0).all()
        assert shape.unseen_std > shape.std.max()

    def test_the_rarest_read_as_unseen(self, monkeypatch):
        # Of two such columns only one keeps all categories; the limit is lowered for speed.
        monkeypatch.setattr(prepare, "_WIDE", 30)
        rng = np.random.default_rng(2)
        street, shop = rng.integers(0, 60, 1500), np.minimum(rng.geometric(0.1, 1500), 50)
        y = rng.normal(0.0, 1.0, 51)[shop] + rng.normal(0.0, 1.0, 60)[street]
        y += 0.1 * rng.standard_normal(1500)
        X = pd.DataFrame({"street": street.astype(str), "shop": [f"shop {k}" for k in shop]})
        said = r"of the \d+ categories of column 'shop' the 30 most frequent have an effect of their own"
        with pytest.warns(UserWarning, match=said):
            model = LANAMRegressor(
                interactions=0, categorical_features=["street"], random_state=0
            ).fit(X, y)
        explanation = model.explain_global()
        shape = explanation["shop"]
        assert shape.active
        assert len(shape.values) == len(shape.mean) == len(shape.std) == len(shape.density)
        assert len(shape.values) == len(shape.inside) < X["shop"].nunique()
        rare = ~X["shop"].isin(shape.values)
        assert shape.unseen_density == pytest.approx(rare.mean())
        assert shape.density.sum() + shape.unseen_density == pytest.approx(1.0)
        assert shape.others == (
            ("(other levels)", shape.unseen_mean, shape.unseen_std, shape.unseen_density),
        )
        assert explanation["street"].unseen_density == 0.0
        means, stds = model.predict_terms(X, return_std=True)
        index = [term.name for term in model.terms_].index("shop")
        np.testing.assert_allclose(means[rare, index], shape.unseen_mean)
        np.testing.assert_allclose(stds[rare, index], shape.unseen_std)
        plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        # Interpolation weights are in single precision.
        np.testing.assert_allclose(read_prediction(plain, X), model.predict(X), atol=1e-5)
        frame = explanation.to_frame()
        assert frame.groupby("term")["density"].sum().to_list() == pytest.approx([1.0, 1.0])


class TestSurfaces:
    def test_rows_and_columns_of_the_tables(self, explanation):
        pair = explanation["age x city"]
        assert pair.feature_kinds == ("numeric", "categorical")
        assert pair.second_values.tolist() == sorted(CITIES)
        assert (pair.others, pair.second_others) == ((), ("(missing)", "(other levels)"))
        assert pair.mean.shape == pair.std.shape == pair.density.shape == pair.inside.shape
        assert pair.mean.shape == (len(pair.values), 5 + 2)
        pair = explanation["income x size"]
        assert pair.others == ("(missing)",)
        assert pair.mean.shape == (len(pair.values) + 1, 3 + 2)

    def test_densities_are_fractions_of_the_rows(self, data, explanation):
        X, pair = data[0], explanation["city x size"]
        assert pair.density.sum() == pytest.approx(1.0)
        combined = (X["city"] == "Oslo") & (X["size"] == "large")
        assert pair.density[sorted(CITIES).index("Oslo"), 2] == pytest.approx(combined.mean())
        lost = X["city"].isna() & (X["size"] == "small")
        assert pair.density[5, 0] == pytest.approx(lost.mean())
        # There were no other categories, and no missing values in the second column.
        assert not pair.density[6].any()
        assert not pair.density[:, 3:].any()
        assert pair.inside[5, 0]
        assert not pair.inside[6].any()

    def test_rare_categories_are_grouped(self, data, explanation):
        pair = explanation["age x zone"]
        counts = data[0]["zone"].value_counts()
        own = pair.second_values.tolist()
        assert own == sorted(own)
        assert len(own) < len(counts)
        rare = counts.drop(own)
        assert rare.max() <= counts[own].min()
        assert pair.density[:, -1].sum() == pytest.approx(rare.sum() / len(data[0]))

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_an_unexpected_missing_value(self, model, data, explanation):
        row = data[0][:1].assign(age=np.nan)
        means, stds = model.predict_terms(row, return_std=True)
        index = [term.name for term in explanation].index("age x city")
        assert means[0, index] == 0.0
        assert stds[0, index] == pytest.approx(explanation["age x city"].unseen_std)
        assert explanation["city x size"].unseen_std is None


def as_polars(frame):
    return frame if isinstance(frame, pl.DataFrame) else pl.from_pandas(frame)


@pytest.fixture(scope="module", params=["pandas", "polars"])
def frames(request, data):
    X = data[0][["age", "income", "city", "zone"]]
    X = X if request.param == "pandas" else pl.from_pandas(X)
    model = LANAMRegressor(
        interactions=[("age", "city")], categorical_features=["zone"], random_state=0
    ).fit(X, data[1])
    explanation, local = model.explain_global(), model.explain_local(X[:20])
    return explanation, explanation.to_frame(beyond=True), local, local.to_frame()


class TestFrames:
    def test_numbers_and_labels_have_separate_columns(self, frames):
        _, frame, _, local = frames
        for table in (frame, local):
            for name in ("value", "second_value"):
                assert str(table[name].dtype).lower() == "float64"
            for name in ("level", "second_level"):
                assert {type(cell) for cell in table[name].to_list()} <= {str, type(None), float}

    def test_every_entry_has_a_row(self, frames):
        explanation, frame, *_ = frames
        frame = as_polars(frame)
        city, pair = explanation["city"], explanation["age x city"]
        rows = frame.filter(pl.col("term") == "city")
        assert rows["level"].to_list() == [*sorted(CITIES), "(missing)", "(other levels)"]
        np.testing.assert_array_equal(rows["mean"][:5], city.mean)
        assert rows["mean"][5:].to_list() == [city.missing_mean, city.unseen_mean]
        assert rows["density"][5:].to_list() == [city.missing_density, 0.0]
        assert rows["inside"].to_list() == [True] * 6 + [False]
        rows = frame.filter(pl.col("term") == "age x city")
        assert len(rows) == pair.mean.size
        np.testing.assert_array_equal(rows["mean"], pair.mean.ravel())
        assert rows["second_level"][:7].to_list() == [
            *sorted(CITIES),
            "(missing)",
            "(other levels)",
        ]
        zones = frame.filter(pl.col("term") == "zone")["level"].to_list()
        assert zones[:3] == ["1", "2", "3"]

    def test_rows_are_explained_in_their_own_library(self, data):
        X = data[0][["age"]]
        model = LANAMRegressor(random_state=0).fit(pa.table({"age": X["age"]}), data[1])
        for rows in (X[:3], pl.from_pandas(X[:3]), pa.table({"age": X["age"][:3]})):
            assert type(model.explain_local(rows).to_frame()) is type(rows)

    def test_rows_in_the_users_labels(self, frames, data):
        *_, local, frame = frames
        names = [term.name for term in local.terms]
        city = names.index("city")
        assert local.values.dtype == object
        seen = [None if is_missing(name) else name for name in data[0]["city"][:20]]
        assert local.values[:, city].tolist() == seen
        assert local.second_values[:, names.index("age x city")].tolist() == seen
        assert local.second_values[:, city].tolist() == [None] * 20
        frame = as_polars(frame)
        part = frame.filter(pl.col("term") == "city")
        assert part["level"].to_list() == [name or "(missing)" for name in seen]
        income = frame.filter(pl.col("term") == "income")
        gone = data[0]["income"][:20].isna().to_numpy()
        assert gone.any()
        assert income["level"].to_list() == ["(missing)" if lost else None for lost in gone]

    @pytest.mark.parametrize(
        ("library", "text"), [(pl.DataFrame, pl.String), (pa.table, pa.string())]
    )
    def test_string_columns_without_strings(self, data, library, text):
        X = library({"age": data[0]["age"][:200].to_numpy()})
        model = LANAMRegressor(random_state=0).fit(X, data[1][:200])
        for explanation in (model.explain_global(), model.explain_local(X[:2])):
            frame = explanation.to_frame()
            for name in ("term", "level", "second_level"):
                column = frame[name]
                assert (column.dtype if library is pl.DataFrame else column.type) == text
            assert pl.Series(frame["level"]).null_count() == len(frame)


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestLocal:
    def test_contributions_add_up_and_can_be_written(self, model, hard_rows):
        local = model.explain_local(hard_rows)
        total = local.intercept + local.contributions.sum(axis=1)
        np.testing.assert_allclose(total, local.prediction)
        np.testing.assert_allclose(local.prediction, model.predict(hard_rows))
        plain = json.loads(json.dumps(local.to_dict(), allow_nan=False))
        names = [term["name"] for term in plain["terms"]]
        assert plain["values"][0][names.index("age")] is None
        assert plain["values"][2][names.index("city")] is None
        assert plain["values"][10][names.index("city")] == "(unseen)"
        assert plain["values"][30][names.index("zone")] == hard_rows.iloc[30]["zone"]
        assert plain["values"][30][names.index("age")] == hard_rows.iloc[30]["age"]

    def test_numbers_stay_numbers(self, data):
        X = data[0][["age", "income"]]
        local = LANAMRegressor(random_state=0).fit(X, data[1]).explain_local(X[:50])
        assert local.values.dtype == np.float64
        np.testing.assert_array_equal(local.values[:, :2], X[:50])
        json.dumps(local.to_dict(), allow_nan=False)


@pytest.fixture(scope="module")
def counts():
    X, target = make_table(seed=2)
    y = np.random.default_rng(0).poisson(np.exp(0.5 + 0.5 * target))
    X = X[["age", "city"]]
    return X, LANAMRegressor(likelihood="poisson", random_state=0).fit(X, y)


class TestCounts:
    def test_the_response_is_the_rate(self, counts):
        X, model = counts
        local = model.explain_local(X[:50])
        assert local.link == model.explain_global().link == "log"
        np.testing.assert_allclose(local.response, model.predict(X[:50]))
        np.testing.assert_allclose(
            local.intercept + local.contributions.sum(axis=1), local.prediction
        )

    def test_the_summary_says_dispersion_and_no_noise(self, counts):
        summary = counts[1].summary()
        assert summary.facts["noise_std"] is None
        assert summary.facts["dispersion"] == counts[1].dispersion_
        assert ", dispersion " in str(summary).partition("\n\n")[0]
        assert "noise" not in str(summary).splitlines()[1]


class TestSummary:
    def test_categorical_and_missing_columns_are_counted(self, model):
        summary = model.summary()
        head = "1200 rows of 9 columns (6 categorical, 3 with missing values): "
        assert head in str(summary).splitlines()[0]
        assert summary.facts["n_categorical"] == 6
        assert summary.facts["n_with_missing"] == 3
        assert {row["kind"] for row in summary.rows} == {"smooth", "categorical", "pair"}
        json.dumps(summary.to_dict(), allow_nan=False)

    def test_two_classes_have_no_line(self, data):
        model = LANAMClassifier(random_state=0).fit(data[0][["city"]], data[1] > 0)
        assert not any("classes:" in line for line in str(model.summary()).splitlines())


LABELS = ("bus", "car", "train")


@pytest.fixture(scope="module")
def choices():
    """A table, three classes with their logits, and the fitted core model."""
    X, target = make_table(seed=3)
    X = X[["age", "income", "city", "size"]]
    scores = np.column_stack([target, X["age"] / 40.0 - 1.0 - target, np.full(len(X), 0.5)])
    y = (scores + np.random.default_rng(0).gumbel(size=scores.shape)).argmax(axis=1)
    columns, schema = learn_table(as_frame(X), list(X), backend="pandas")
    options = Options(interactions=((0, 2),))
    weight = np.ones(len(y))
    model = in_memory.fit(columns, y.astype(float), weight, "softmax", options, 0, schema.n_levels)
    return X, columns, schema, model


@pytest.fixture(scope="module")
def several(choices):
    _, _, schema, model = choices
    return explain_global(model, schema, np.array(LABELS))


class TestClasses:
    def test_arrays_have_an_axis_of_classes(self, several):
        assert several.link == "softmax"
        assert several.classes == LABELS
        assert several.intercept.shape == (3,)
        assert [pair.name for pair in several.pairs if pair.active] == ["age x city"]
        for term in several:
            assert term.mean.shape == term.std.shape == (*term.density.shape, 3)
            np.testing.assert_allclose(term.mean.sum(axis=-1), 0.0, atol=1e-9)
        city = several["city"]
        assert city.missing_mean.shape == city.unseen_std.shape == (3,)

    def test_scores_can_be_read_off_the_plain_data(self, choices, several):
        X, columns, _, model = choices
        plain = json.loads(json.dumps(several.to_dict(), allow_nan=False))
        mean, _ = scoring.link_moments(model, columns[:60])
        np.testing.assert_allclose(read_prediction(plain, X[:60]), mean, atol=2e-5)

    def test_local_explanations_of_classes(self, choices):
        _, columns, schema, model = choices
        local = explain_local(model, schema, columns[:20], LABELS)
        n_terms = len(local.terms)
        assert local.contributions.shape == local.contributions_std.shape == (20, n_terms, 3)
        total = local.intercept + local.contributions.sum(axis=1)
        np.testing.assert_allclose(total, local.prediction)
        np.testing.assert_allclose(local.response.sum(axis=1), 1.0)
        assert local.prediction_std.shape == (20, 3)
        assert np.all(local.intercept_std > 0.0)
        assert local.response.argmax(axis=1).tolist() == local.prediction.argmax(axis=1).tolist()
        json.dumps(local.to_dict(), allow_nan=False)
        frame = local.to_frame()
        assert len(frame) == 20 * (n_terms + 2) * 3
        part = frame[(frame["row"] == 4) & (frame["class"] == "car")]
        assert part["term"].tolist()[0] == "(intercept)"
        assert part["contribution"][:-1].sum() == pytest.approx(local.prediction[4, 1])
        assert part["contribution"].iloc[-1] == local.prediction[4, 1]

    def test_the_standard_deviation_of_the_intercept(self, choices):
        _, columns, schema, model = choices
        local = explain_local(model, schema, columns[:1], LABELS)
        own = model.contrasts @ model.covariance[-2:, -2:] @ model.contrasts.T
        np.testing.assert_allclose(local.intercept_std, np.sqrt(np.diag(own)))

    def test_a_frame_with_one_row_per_class(self, several):
        frame = several.to_frame(beyond=True)
        part = frame[frame["term"] == "city"]
        assert part["class"].tolist() == list(LABELS) * 7
        np.testing.assert_array_equal(part["mean"][:15], several["city"].mean.ravel())
        assert len(frame) == sum(
            (term.density.size + (0 if term.kind == "pair" else len(term.others))) * 3
            for term in several
        )

    def test_the_standard_deviation_of_the_importance(self, choices, several):
        *_, model = choices
        rng = np.random.default_rng(0)
        for index, shape in enumerate(several):
            term, block = model.terms[index], model.blocks[index]
            if not term.active:
                continue
            n_columns = term.table.shape[1]
            importances = []
            for _ in range(400):
                draw = rng.multivariate_normal(
                    np.zeros(2 * n_columns), model.covariance[block, block], method="svd"
                )
                outputs = np.column_stack([term.table @ part for part in np.split(draw, 2)])
                function = term.mean + outputs @ model.contrasts.T
                importances.append((term.data_mass @ np.abs(function)).mean())
            # Both are accurate to about 5%.
            assert shape.importance_std == pytest.approx(np.std(importances), rel=0.2)

    def test_without_labels_classes_are_counted(self, choices):
        _, columns, schema, model = choices
        assert explain_global(model, schema).classes == (0, 1, 2)
        assert explain_local(model, schema, columns[:1]).classes == (0, 1, 2)

    def test_the_summary_names_them(self, choices):
        _, _, schema, model = choices
        pairs = describe_interactions(model, schema, "evidence")
        summary = summarise(model, schema, pairs, estimator="E", n_rows=9, classes=LABELS)
        assert str(summary).splitlines()[2] == "3 classes: bus, car, train"
        assert summary.to_dict()["classes"] == list(LABELS)
        many = [f"class {k}" for k in range(9)]
        summary = summarise(model, schema, pairs, estimator="E", n_rows=9, classes=many)
        assert "class 5 and 3 more" in str(summary)
