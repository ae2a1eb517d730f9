"""Queries, run in sqlite and duckdb."""

import sqlite3
from contextlib import closing
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from lanam.data import Column
from lanam.explain.portable import TableAxis, explain_portable
from lanam.export import sql as sql_module
from lanam.export.complete import results_of
from lanam.export.sql_text import by_interval, number, total
from lanam.families import SOFTMAX
from tests.export.cases import KINDS, NAME, Case, case, check_link, check_response

pytestmark = pytest.mark.filterwarnings("ignore:column '", "ignore:of the 60 categories")

TABLE = 'rows "of" data; --'


def in_sqlite(query, X):
    with closing(sqlite3.connect(":memory:")) as database:
        X.to_sql(TABLE, database, index=False)
        return pd.read_sql(query, database)


def in_duckdb(query, X, nan=True):
    """Missing doubles are NULL, and with ``nan`` every other one is NaN."""
    kinds = {bool: "BOOLEAN", str: "VARCHAR", float: "DOUBLE", int: "BIGINT"}
    cells = {name: X[name].astype(object).where(X[name].notna(), None).tolist() for name in X}
    first = {name: next(v for v in values if v is not None) for name, values in cells.items()}
    types = {name: next(kinds[k] for k in kinds if isinstance(v, k)) for name, v in first.items()}
    if nan:
        for name in (name for name in X if types[name] == "DOUBLE"):
            cells[name][::2] = [np.nan if value is None else value for value in cells[name][::2]]
    database = duckdb.connect()
    database.execute("SET threads = 1")
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
    database.execute(f"CREATE TABLE {quoted(TABLE)} ({listed})")
    marks = ", ".join("?" * len(cells))
    rows = [list(row) for row in zip(*cells.values(), strict=True)]
    database.executemany(f"INSERT INTO {quoted(TABLE)} VALUES ({marks})", rows)
    return database.execute(query).df()


def in_duckdb_without_nan(query, X):
    return in_duckdb(query, X, nan=False)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


RUN = {"sqlite": in_sqlite, "duckdb": in_duckdb, "standard": in_duckdb_without_nan}


def scored(model, X, dialect, **options):
    """Results in the order of the rows."""
    X = X.assign(row_number=np.arange(len(X)))
    query = model.export(
        None, to="sql", table=TABLE, dialect=dialect, keep=["row_number"], **options
    )
    result = RUN[dialect](query, X).sort_values("row_number", ignore_index=True)
    assert result.pop("row_number").tolist() == list(range(len(X)))
    return result


def matching(result, start):
    return result[[name for name in result if name.startswith(start)]].to_numpy(float)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_database_agrees_with_the_model(kind, dialect):
    found = case(kind)
    result = scored(found.model, found.X, dialect)
    check_link(found, matching(result, "link_mean"), matching(result, "link_variance"))
    if hasattr(found.model, "classes_"):
        check_response(found, matching(result, "probability"))
    else:
        check_response(found, result["prediction"], result["observation_variance"])


# The link's mean of counts and of two classes is that of numbers.
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kind", ["gaussian", "many", "odd", "noisy", "wide", "shared"])
def test_the_mean_alone(kind, dialect):
    found = case(kind)
    result = scored(found.model, found.X, dialect, variance=False)
    check_link(found, result.to_numpy(float))


@pytest.mark.parametrize("kind", ["odd", "shared"])
def test_standard_sql(kind):
    found = case(kind)
    result = scored(found.model, found.X, "standard")
    check_link(found, matching(result, "link_mean"), matching(result, "link_variance"))


def test_noise_in_standard_sql():
    found = case("noisy")
    result = scored(found.model, found.X, "standard")
    check_response(found, result["prediction"], result["observation_variance"])


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_model_without_terms(dialect):
    found = case("nothing")
    result = scored(found.model, found.X, dialect)
    check_link(found, result["link_mean"], result["link_variance"])
    query = found.model.export(None, to="sql", table=TABLE, dialect=dialect, variance=False)
    assert list(RUN[dialect](query, found.X)) == ["a", "link_mean"]


@pytest.mark.parametrize("kind", ["gaussian", "many"])
def test_many_terms_and_a_large_factor_in_sqlite(kind, monkeypatch):
    """Joins of few tables at a time, and the factor as a table, give the same."""
    monkeypatch.setattr(sql_module, "_MOST_JOINS", 5)
    small = sql_module.DIALECTS["sqlite"]
    monkeypatch.setitem(
        sql_module.DIALECTS, "sqlite", sql_module.SqlDialect(**{**vars(small), "unrolled": 0})
    )
    found = case(kind)
    query = found.model.export(None, to="sql")
    assert "lanam_read2" in query
    assert "lanam_factor" in query
    result = scored(found.model, found.X, "sqlite")
    check_link(found, matching(result, "link_mean"), matching(result, "link_variance"))


def test_names_of_results():
    result = scored(case("shared").model, case("shared").X, "sqlite")
    labels = [str(label) for label in case("shared").model.classes_]
    kinds = ("link_mean", "link_variance", "probability")
    assert list(result) == [f"{kind}_{label}" for kind in kinds for label in labels]


def test_classes_that_differ_only_in_case_are_numbered():
    class Portable:
        family, labels = SOFTMAX, ("a", "A", "b")

    assert results_of(Portable, False) == ["link_mean_0", "link_mean_1", "link_mean_2"]


def test_columns_with_other_names_and_those_that_are_kept():
    found = case("odd")
    X = found.X.rename(columns={NAME: "plain"}).assign(key=[f"k{k}" for k in range(len(found.X))])
    query = found.model.export(
        None, to="sql", table=TABLE, columns={NAME: "plain"}, keep=["key"], variance=False
    )
    assert "DROP TABLE" not in query
    result = in_sqlite(query, X)
    assert list(result) == ["key", "link_mean"]
    assert result["key"].tolist() == X["key"].tolist()
    check_link(found, result["link_mean"])


def test_by_default_the_columns_that_are_read_are_kept():
    model = case("gaussian").model
    unused = {"noise", "same"}
    X = case("gaussian").X
    result = in_sqlite(
        model.export(None, to="sql", table=TABLE, variance=False), X.drop(columns=unused)
    )
    assert list(result) == [name for name in X if name not in unused] + ["link_mean"]


def test_a_table_in_a_schema():
    found = case("two")
    database = duckdb.connect()
    database.register("given", found.X)
    database.execute("CREATE SCHEMA s; CREATE TABLE s.data AS SELECT * FROM given")
    query = found.model.export(
        None, to="sql", table=("s", "data"), dialect="duckdb", variance=False, keep="load"
    )
    assert len(database.execute(query).fetchall()) == len(found.X)


def test_a_table_with_the_names_that_the_query_uses():
    found = case("nothing")
    with closing(sqlite3.connect(":memory:")) as database:
        found.X.rename(columns={"a": "x0"}).to_sql("lanam_rows", database, index=False)
        query = found.model.export(
            None, to="sql", table="lanam_rows", columns={"a": "x0"}, keep=["b"]
        )
        assert len(pd.read_sql(query, database)) == len(found.X)


def test_a_column_that_is_not_there_is_an_error_in_sqlite():
    """sqlite reads a quoted name as a string unless it is qualified."""
    query = case("two").model.export(None, to="sql", table=TABLE)
    with pytest.raises(Exception, match="no such column"):
        in_sqlite(query, case("two").X.drop(columns="load"))


def test_text_in_sqlite():
    """Missing values as a CSV import leaves them, and case-insensitive collation."""
    found = case("two")
    X = found.X
    city = X.columns[2]
    with closing(sqlite3.connect(":memory:")) as database:
        names = ", ".join(
            f"{quoted(name)} {'TEXT COLLATE NOCASE' if X[name].dtype == object else 'TEXT'}"
            for name in X
        )
        database.execute(f"CREATE TABLE data ({names})")
        cells = X.astype(object).where(X.notna(), None)
        for name in X.columns.difference([city, "size"]):
            cells[name] = ["" if value is None else repr(value) for value in cells[name]]
        marks = ", ".join("?" * len(X.columns))
        rows = cells.itertuples(index=False, name=None)
        database.executemany(f"INSERT INTO data VALUES ({marks})", rows)
        database.execute(
            f"UPDATE data SET {quoted(city)} = 'OSLO' WHERE {quoted(city)} = 'never seen'"
        )
        query = found.model.export(None, to="sql")
        result = pd.read_sql(query, database)
    check_link(found, result["link_mean"], result["link_variance"])


def test_values_at_and_next_to_the_ends_of_intervals():
    """Levels to six digits, bins closed below, knots themselves."""
    found = case("gaussian")
    own = explain_portable(found.model._model, found.model._schema)
    tables = {table.name: table for table in own.tables}
    edges = tables["hour (levels)"].axes[0].points
    values = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    X = pd.concat([found.X.dropna()[:1]] * (len(values) + 4), ignore_index=True)
    X.loc[: len(values) - 1, "hour"] = values
    X.loc[len(values) :, "zone"] = [3.0, 3.0 + 2e-6, 3.0 + 4e-6, 0.0 + 1e-9]
    found = type(found)(found.model, X)
    check_link(found, scored(found.model, X, "sqlite", variance=False))
    check_link(found, scored(found.model, X, "duckdb", variance=False))


# words


def test_numbers_come_back_as_they_are():
    values = [0.1, -2.5, 1e-300, -1.7976931348623157e308, 5e-324, 3.0, -0.0, 1 / 3]
    query = "SELECT " + ", ".join(f"1.0 - {number(value)}, {number(value)}" for value in values)
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        with closing(connection) as run:
            assert run.execute(query).fetchone()[1::2] == tuple(values)


def test_no_two_minus_signs_meet():
    for kind in ("gaussian", "odd"):
        query = case(kind).model.export(None, to="sql", columns={}, table="t")
        assert "--" not in query.replace(quoted(NAME), "").replace("'-- x'", "")


def test_sums_of_any_length_are_shallow():
    with closing(sqlite3.connect(":memory:")) as database:
        assert database.execute(f"SELECT {total(['1'] * 20_000)}").fetchone() == (20_000,)
        assert database.execute(f"SELECT {total([])}").fetchone() == (0,)


def test_intervals():
    ends = [float(end) for end in range(1, 12)]
    query = by_interval("?1", ends, str)
    with closing(sqlite3.connect(":memory:")) as database:
        for value in np.arange(-1.0, 14.0, 0.5):
            (found,) = database.execute(f"SELECT {query}", (value,)).fetchone()
            assert found == sum(end <= value for end in ends)


def test_a_value_in_the_middle_of_two_levels_is_the_lower_one():
    """As in Python, for values so close that both match."""
    points = np.array([1.0, 1.0 + 2.0**-20])
    axis, column = TableAxis("levels", points, 4, 2, 3), Column("x", "numeric", 1.0, 2.0)
    query = sql_module.choose(axis, column, "?1", lambda entry, *_: str(entry))
    values = [1.0, 1.0 + 2.0**-21, 1.0 + 2.0**-20, 1.0 - 2.0**-21, 1.5, None]
    with closing(sqlite3.connect(":memory:")) as database:
        found = [database.execute(f"SELECT {query}", (value,)).fetchone()[0] for value in values]
    assert found == [0, 0, 1, 0, 3, 2]


# errors


@cache
def small(*columns):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=200) for name in columns})
    y = X.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = LANAMRegressor(interactions=0, noise="constant", hidden_sizes=(16,), random_state=0)
    return model.fit(X, y)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["age", "Age"], {}, "'age' and 'Age' both name a column, and names in SQL are"),
        (
            ["a", "prediction"],
            {},
            "'prediction' and 'prediction' both name a column, and both are in",
        ),
        (["a", "nul\0"], {}, "the name 'nul\\\\x00' of column 'nul"),
        (["a", "b"], {"columns": {"b": ""}}, "the name '' of column 'b' cannot be written in SQL"),
        (
            ["a", "b"],
            {"columns": {"c": "d"}},
            "columns names the column 'c', which X does not have",
        ),
        (
            ["a", "b"],
            {"dialect": "mysql"},
            "dialect='mysql' is not known: choose from sqlite, duckdb",
        ),
        (["a", "b"], {"table": ""}, "the name '' of the table cannot be written in SQL"),
    ],
)
def test_invalid_queries(columns, options, message):
    with pytest.raises(ValueError, match=message):
        small(*columns).export(None, to="sql", **options)


def test_the_remedies_work():
    model = small("Age", "age")
    assert '"other"' in model.export(None, to="sql", columns={"age": "other"})
    assert small("a", "prediction").export(None, to="sql", keep=["a"])


def test_a_category_with_a_nul():
    rng = np.random.default_rng(0)
    city = rng.choice(["a", "b\0c"], 200)
    X = pd.DataFrame({"city": city})
    model = LANAMRegressor(random_state=0).fit(X, (city == "a") + 0.1 * rng.normal(size=200))
    with pytest.raises(
        ValueError, match=r"column 'city' has the category 'b.x00c', and strings in SQL have no"
    ):
        model.export(None, to="sql")


def test_too_many_coordinates(monkeypatch):
    monkeypatch.setattr(sql_module, "_MOST_COLUMNS", 50)
    with pytest.raises(ValueError, match=r"the variance needs .* columns.* pass variance=False"):
        case("two").model.export(None, to="sql")
    assert case("two").model.export(None, to="sql", variance=False)


@pytest.mark.parametrize("dialect", list(RUN))
def test_edits_are_comments(dialect):
    """One line each, whatever a reason contains, and the query still runs."""
    found = case("odd")
    reason = "so\nSELECT 1;\r\x0b\x85\u2028DROP /* it's \x00"
    edited = found.model.edit_term(NAME, "zero", low=-5, reason=reason).edit_term("flag", "zero")
    query = edited.export(None, to="sql", dialect=dialect)
    first, second, rest = query.split("\n", 2)
    assert first.splitlines() == [first]
    assert first.startswith('-- edited by hand: the "name"; DROP TABLE data; -- é : zero')
    assert first.endswith("; so SELECT 1; DROP /* it's \\x00")
    assert second == "-- edited by hand: flag: zero everywhere (100.0% of the training data)"
    assert rest.startswith("WITH ")
    result = scored(edited, found.X, dialect)
    check_link(Case(edited, found.X), result["link_mean"])
    assert "edited" not in found.model.export(None, to="sql", dialect=dialect)
