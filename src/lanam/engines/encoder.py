"""Chunks of a table to arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.rows.tables import Table
from lanam.data import NUMERIC, Column, Schema, as_frame, encode_table
from lanam.engines.folding import fold
from lanam.engines.interface import Chunk, in_chunk
from lanam.engines.roles import Roles, Rows, read_rows
from lanam.families import Encoding
from lanam.families.labels import number_labels


@dataclass(frozen=True)
class Encoder:
    """Makes of a chunk what the core wants: a function that can be sent elsewhere.

    Attributes
    ----------
    roles
        What the columns are for.
    schema
        What the features are; ranges need not be known.
    encoding
        How targets become what the core fits.
    """

    roles: Roles
    schema: Schema
    encoding: Encoding

    def __call__(self, chunk: Chunk) -> Table:
        """The rows of a chunk that have a positive weight.

        Raises
        ------
        ValueError, TypeError
            For what a fit in memory refuses, with the place.
        """
        if len(chunk.frame) == 0:
            nothing = np.empty(0)
            return Table(np.empty((0, self.schema.n_columns)), nothing, nothing, chunk.number)
        rows = read_rows(chunk, self.roles, self.encoding.family)
        with in_chunk(chunk):
            columns = _encode(as_frame(chunk.frame), self.schema)
        if not isinstance(rows.counted, slice):
            columns = np.asfortranarray(columns[rows.counted])
        with in_chunk(chunk, self.roles.target):
            return Table(columns, *self._response(rows), chunk.number)

    def _response(self, rows: Rows) -> tuple[Array, Array]:
        target: NDArray[Any] = rows.target
        if len(rows.labels):
            # Numbered once a label, and not once a row; labels that no row has are left alone.
            present = np.flatnonzero(np.bincount(target, minlength=len(rows.labels)))
            numbers = np.zeros(len(rows.labels))
            numbers[present] = number_labels(rows.labels[present], self.encoding.classes)
            return numbers[target], rows.weight
        return self.encoding.response(target, rows.weight, rows.exposure)


def _encode(frame: Any, schema: Schema) -> Array:
    """The features' numbers and codes (n, D)."""
    names = [column.name for column in schema.columns if column.kind == NUMERIC]
    numeric = Schema(
        tuple(_with_range(column) for column in schema.columns if column.name in names)
    )
    numbers, _ = encode_table(frame.select(names), numeric)
    if len(names) == schema.n_columns:
        return numbers
    columns = np.empty((len(frame), schema.n_columns), order="F")
    for index, column in enumerate(schema.columns):
        columns[:, index] = (
            numbers[:, names.index(column.name)]
            if column.kind == NUMERIC
            else _encode_levels(frame[column.name], column)
        )
    return columns


def _with_range(column: Column) -> Column:
    """The column as one of numbers, which truth values may be, where its range is not known yet."""
    return replace(column, lowest=0.0, highest=1.0) if np.isnan(column.lowest) else column


def _encode_levels(series: Any, column: Column) -> Array:
    distinct, positions = fold(series)
    columns, unseen = encode_table(distinct.to_frame(), Schema((column,)))
    examples = [value for each in unseen for value in each.examples]
    if examples:
        raise ValueError(
            f"column {column.name!r} has the level {examples[0]!r}, which it did not have before: did the "
            "data change? Pass the training data, or fit again"
        )
    codes = columns[:, 0]
    return codes if positions is None else np.append(codes, np.nan)[positions]
