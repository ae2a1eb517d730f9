"""Lazy frames of polars: columns are chosen by its optimiser, and rows are collected batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanam.engines.formats import LARGEST_CHUNK, arrow
from lanam.engines.interface import Engine, Reading
from lanam.engines.streams import StreamSource

_COLLECT = "collect it first, for example with X.collect()"


class LazySource(StreamSource):
    """A lazy frame, whose rows are never in memory all at once."""

    def __init__(self, frame: Any, reading: Reading) -> None:
        import polars as pl

        if not hasattr(frame, "collect_batches"):
            raise ImportError(
                "lazy frames are collected in batches, which this polars cannot do: "
                "`pip install -U polars`"
            )
        schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema
        pa = arrow()

        def open_stream(columns: Sequence[str] | None) -> Any:
            if columns is None:
                return pa.RecordBatchReader.from_batches(schema, iter(()))
            # The engine's own batches are small, and each costs something.
            batches = frame.select(columns).collect_batches(chunk_size=LARGEST_CHUNK // 2)
            arrays = (batch for frame in batches for batch in frame.to_arrow().to_batches())
            own = pa.schema([schema.field(name) for name in columns])
            return pa.RecordBatchReader.from_batches(own, arrays)

        super().__init__("the lazy frame (polars)", open_stream, reading)

    def unnamed(self) -> Exception:
        """The error for a target that is not the name of a column."""
        return TypeError(f"X is a lazy frame (polars); {_COLLECT}, or pass the name of its target")


def _is_lazy(table: Any) -> bool:
    kind = type(table)
    return kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars.")


ENGINE = Engine(_is_lazy, LazySource, lambda _: f"a lazy frame (polars): {_COLLECT}")
