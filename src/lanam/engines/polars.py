"""Lazy frames of polars: polars selects columns and collects rows in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanam.engines.formats import LARGEST_CHUNK, arrow
from lanam.engines.interface import Engine, ReadOptions
from lanam.engines.streams import StreamSource

_COLLECT = "collect it first, for example with X.collect()"


class LazySource(StreamSource):
    """A lazy frame, which is never collected as a whole."""

    def __init__(self, frame: Any, options: ReadOptions) -> None:
        import polars as pl

        if not hasattr(frame, "collect_batches"):
            raise ImportError(
                "lazy frames need a version of polars that collects in batches: `pip install -U polars`"
            )
        schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema
        pa = arrow()

        def open_stream(columns: Sequence[str] | None) -> Any:
            if columns is None:
                return pa.RecordBatchReader.from_batches(schema, iter(()))
            # By default batches are small, and each has a cost.
            batches = frame.select(columns).collect_batches(chunk_size=LARGEST_CHUNK // 2)
            arrays = (batch for frame in batches for batch in frame.to_arrow().to_batches())
            selected = pa.schema([schema.field(name) for name in columns])
            return pa.RecordBatchReader.from_batches(selected, arrays)

        super().__init__("the lazy frame (polars)", open_stream, options)

    def unnamed_target(self) -> Exception:
        """The error for a target that is not a column name."""
        return TypeError(f"X is a lazy frame (polars); {_COLLECT}, or pass the name of its target")


def _is_lazy(table: Any) -> bool:
    kind = type(table)
    return kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars.")


ENGINE = Engine(_is_lazy, LazySource, lambda _: f"a lazy frame (polars): {_COLLECT}")
