"""DuckDB relations, including queries: DuckDB selects columns and returns rows in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanam.engines.interface import Engine, ReadOptions
from lanam.engines.streams import StreamSource, as_reader


def _is_duckdb(table: Any) -> bool:
    kind = type(table)
    return "duckdb" in kind.__module__ and kind.__name__.startswith("DuckDBPy")


def _open(relation: Any, options: ReadOptions) -> StreamSource:
    if not hasattr(relation, "project"):  # a connection, with the result of what it executed
        raise ValueError(
            "X is a DuckDB connection, whose result can be read only once, but a fit reads its rows "
            "several times: pass a relation, connection.sql(query)"
        )

    def open_stream(columns: Sequence[str] | None) -> Any:
        if columns is None:
            return as_reader(relation.limit(0))
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        return as_reader(relation.project(", ".join(quoted)))

    return StreamSource("the DuckDB relation", open_stream, options)


ENGINE = Engine(
    _is_duckdb,
    _open,
    lambda _: "a DuckDB relation: load some rows first, for example with X.limit(1000).df()",
)
