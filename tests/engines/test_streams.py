"""Streams that can be opened again (DuckDB, polars, functions) give the same models as rows in memory."""

from __future__ import annotations

import copy
import warnings
from functools import cache

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.data import NewValuesWarning
from lanam.engines import is_chunked, local, open_source, polars, streams
from lanam.engines.interface import ReadOptions

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
parquet = pytest.importorskip("pyarrow.parquet")

N_ROWS = 400
FEATURES = ["age", "city", 'the "dose"']
OPTIONS = {"interactions": 0, "random_state": 0, "n_jobs": 1, "max_iter": 20, "tol": 1.0}


def make_rows():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, N_ROWS).round(2)
    age[::11] = np.nan
    city = rng.choice(["Bern", "Oslo", "Rome"], N_ROWS).astype(object)
    city[::13] = None
    dose = rng.integers(0, 9, N_ROWS)
    link = 0.05 * (np.nan_to_num(age, nan=40.0) - 40) + (city == "Oslo") - 0.2 * dose
    return pa.table(
        {
            "id": np.arange(N_ROWS),
            "age": pa.array(age, from_pandas=True),
            "city": pa.array(city),
            'the "dose"': dose,
            "price": link + 0.3 * rng.normal(size=N_ROWS),
            "ill": np.where(link + rng.normal(size=N_ROWS) > 0, "yes", "no"),
            "events": rng.poisson(np.exp(0.3 * link)),
            "hours": rng.uniform(0.5, 2.0, N_ROWS).round(2),
            "weight": rng.integers(0, 3, N_ROWS).astype(float),
        }
    )


ROWS = make_rows()


class ArrowExport:
    """Exports a new Arrow stream on each call, as database drivers do."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.fixture(params=["relation", "query", "lazy frame", "scan", "function", "stream"])
def table(request, tmp_path):
    if request.param in ("relation", "query"):
        with duckdb.connect() as connection:
            connection.register("given", ROWS)
            connection.execute("create table rows as select * from given")
            if request.param == "relation":
                yield connection.table("rows")
            else:
                yield connection.sql("select * from rows where id >= 0")
        return
    if request.param == "scan":
        parquet.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=70)
        yield pl.scan_parquet(tmp_path / "rows.parquet").filter(pl.col("id") >= 0)
        return
    yield {
        "lazy frame": pl.from_arrow(ROWS).lazy(),
        "function": lambda: pa.RecordBatchReader.from_batches(
            ROWS.schema, ROWS.to_batches(max_chunksize=70)
        ),
        "stream": ArrowExport(ROWS),
    }[request.param]


CASES = {
    "price": (LANAMRegressor, {"noise": "constant"}, {"sample_weight": "weight"}),
    "events": (LANAMRegressor, {"likelihood": "poisson"}, {"exposure": "hours"}),
    "ill": (LANAMClassifier, {}, {}),
}


def fitted(X, target, **arguments):
    kind, options, roles = CASES[target]
    others = ["id", "price", "ill", "events", "hours", "weight"]
    drop = [name for name in others if name != target and name not in roles.values()]
    return kind(**OPTIONS, **options, **arguments).fit(X, target=target, drop=drop, **roles)


@cache
def in_memory(target):
    return fitted(ROWS.to_pandas(), target)


@pytest.mark.parametrize("target", list(CASES))
def test_same_model_as_in_memory(table, target, monkeypatch):
    for module in (local, streams, polars):
        monkeypatch.setattr(module, "LARGEST_CHUNK", 60)
    expected, model = in_memory(target), fitted(table, target)
    X = ROWS.to_pandas()[FEATURES]
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)
    np.testing.assert_allclose(model.predict_terms(X), expected.predict_terms(X), atol=1e-9)


def fit_unweighted(X, **arguments):
    model = LANAMRegressor(**{**OPTIONS, **arguments})
    return model.fit(X, target="price", drop=["id", "ill", "events", "hours", "weight"])


@cache
def unweighted():
    return fit_unweighted(ROWS)


@pytest.mark.parametrize("memory", ["2GB", "60kB"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_memory_and_n_jobs_do_not_change_results(memory, n_jobs, monkeypatch):
    for module in (local, streams):
        monkeypatch.setattr(module, "LARGEST_CHUNK", 60)
    opened = []

    def open_stream():
        opened.append(1)
        return ROWS

    expected, model = unweighted(), fit_unweighted(open_stream, memory=memory, n_jobs=n_jobs)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)
    # Opened for the schema, for the survey, and for each pass: one where tables are kept.
    assert len(opened) == 2 + (1 if memory == "2GB" else model.plan_.passes)


def test_same_predictions_as_in_memory(table):
    X, rows = ROWS.to_pandas()[FEATURES], ROWS.to_pandas()
    model = in_memory("price")
    mean, std = model.predict(table, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    np.testing.assert_allclose(std, model.predict(X, return_std=True)[1], rtol=1e-12)
    assert model.transform(table).shape == (N_ROWS, len(FEATURES))
    assert model.score(table, "price", sample_weight="weight") == pytest.approx(
        model.score(X, rows["price"], sample_weight=rows["weight"])
    )
    sick = in_memory("ill")
    np.testing.assert_array_equal(sick.predict(table), sick.predict(X))
    assert sick.log_likelihood(table, "ill") == pytest.approx(sick.log_likelihood(X, rows["ill"]))


@pytest.mark.parametrize("output", ["out.parquet", "folder"])
def test_predictions_to_files(table, tmp_path, output):
    model = in_memory("price")
    assert model.predict_files(table, tmp_path / output, keep=["id", "city"]) == N_ROWS
    found = pd.read_parquet(tmp_path / output)
    assert found.columns.tolist() == ["id", "city", "prediction"]
    np.testing.assert_array_equal(found["id"], np.arange(N_ROWS))
    np.testing.assert_array_equal(found["prediction"], model.predict(table))


def test_add_interactions(table):
    arguments = {"interactions": [("age", "city")]}
    expected = copy.deepcopy(in_memory("price")).add_interactions(
        ROWS.to_pandas()[FEATURES],
        ROWS["price"].to_numpy(),
        **arguments,
        sample_weight=ROWS["weight"].to_numpy(),
    )
    model = fitted(table, "price").add_interactions(
        table, "price", **arguments, sample_weight="weight"
    )
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)


def test_only_needed_columns_are_read():
    with duckdb.connect() as connection:
        connection.register("given", ROWS)
        wide = connection.sql("select *, error('read') as broken from given")
        LANAMRegressor(**OPTIONS).fit(wide.project("age, price"), "price").predict(wide)


def test_frames_in_memory_are_not_streams():
    frames = [ROWS, ROWS.to_pandas(), pl.from_arrow(ROWS), ROWS.to_batches()[0]]
    assert all(hasattr(frame, "__arrow_c_stream__") for frame in frames[:3])
    assert not any(map(is_chunked, frames))
    assert not any(map(is_chunked, [np.ones((3, 2)), [[1.0]], ROWS["age"], pd.Series([1.0])]))


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_streams_that_can_be_read_only_once(method):
    model = copy.deepcopy(in_memory("price"))
    once = [
        pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
        (batch for batch in ROWS.to_batches()),
        iter([[1.0, 2.0]]),
    ]
    for stream in once:
        with pytest.raises(
            ValueError, match=r"can be read only once .*: pass a function that opens it"
        ):
            getattr(model, method)(stream, *(["price"] if method == "fit" else []))
    with (
        duckdb.connect() as connection,
        pytest.raises(
            ValueError, match=r"can be read only once.*: pass a relation, connection.sql"
        ),
    ):
        model.fit(connection.execute("select 1 as price, 2 as x"), "price")


def test_function_that_returns_the_same_stream():
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches())
    with pytest.raises(ValueError, match=r"the stream had 400 rows .* and 0 in a later one"):
        LANAMClassifier(**OPTIONS).fit(Unclosed(reader), "ill")
    with pytest.raises(TypeError, match="returned list, which is not an Arrow stream"):
        LANAMRegressor(**OPTIONS).fit(lambda: [1.0], "price")


class Unclosed:
    """A function that returns the same reader on each call."""

    def __init__(self, reader):
        self.reader = reader

    def __call__(self):
        return pa.RecordBatchReader.from_batches(self.reader.schema, self.reader)


def test_invalid_streams(tmp_path):
    model = LANAMRegressor(**OPTIONS)
    with duckdb.connect() as connection:
        connection.register("given", ROWS)
        nothing = connection.sql("select age, price from given where id < 0")
        with pytest.raises(ValueError, match="the DuckDB relation has no rows"):
            model.fit(nothing, "price")
        bad = connection.sql("select age, case when id = 300 then null else price end y from given")
        with pytest.raises(
            ValueError,
            match=r"in the DuckDB relation, column 'y': .*1 of 400 values, the first in row 301",
        ):
            model.fit(bad, "y")
        with pytest.raises(ValueError, match="the target of the DuckDB relation must be one of"):
            model.fit(bad, np.ones(N_ROWS))
        with pytest.raises(
            ValueError, match="whether the rows of the DuckDB relation have changed: write"
        ):
            model.fit(connection.table("given"), "price", checkpoint=tmp_path / "kept")
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        model.fit(lambda: pa.table([[1.0], [2.0]], names=["a", "a"]), "a")
    with pytest.raises(
        ValueError, match=r"needs its rows in memory, and X is a lazy frame .*colle"
    ):
        in_memory("price").explain_local(pl.from_arrow(ROWS).lazy())


def test_column_types():
    with duckdb.connect() as connection:
        connection.execute(
            """create table rows as select range - 100 as x, (range % 3)::decimal(5, 2) as d,
            range % 2 = 0 as t,
            (case range % 3 when 0 then 'low' when 1 then 'mid' else 'high' end)::enum('low', 'mid', 'high')
            as e, sin(range) + (range % 3) as y from range(200)"""
        )
        model = LANAMRegressor(**OPTIONS).fit(connection.table("rows"), "y")
        assert [term.kind for term in model.terms_] == ["smooth"] * 2 + ["categorical"] * 2
        assert model.explain_global()["e"].values.tolist()[:3] == ["low", "mid", "high"]
        np.testing.assert_allclose(
            model.predict(connection.table("rows")),
            model.predict(connection.table("rows").df()[["x", "d", "t", "e"]]),
        )


def test_one_warning_for_unseen_values():
    model = in_memory("price")
    new = ROWS.set_column(2, "city", pa.array(["Paris"] * N_ROWS))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(lambda: new)
    assert [each.category for each in caught] == [NewValuesWarning]


def test_connection_is_usable_after_an_error():
    with duckdb.connect() as connection:
        connection.execute(
            "create table rows as select range as x, if(range = 200000, 'inf', '1')::double y from "
            "range(500000)"
        )
        with pytest.raises(ValueError, match="infinity"):
            LANAMRegressor(**OPTIONS).fit(connection.table("rows"), "y")
        assert connection.execute("select count(*) from rows").fetchall() == [(500000,)]


def test_rows_are_read_in_chunks():
    n_rows = 700_000
    sizes = open_source(lambda: pa.table({"x": np.zeros(n_rows)}), ReadOptions()).reduce(
        ["x"], lambda chunks: [len(chunk.frame) for chunk in chunks], list.__add__
    )
    assert sizes == [262_144, 262_144, n_rows - 2 * 262_144]
