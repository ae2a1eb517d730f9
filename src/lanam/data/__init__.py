"""Tables in and out: what a column is, how a frame becomes an array. Knows nothing of networks."""

from __future__ import annotations

from lanam.data.encoding import encode_array, encode_frame, make_frame, require_finite
from lanam.data.schema import Column, Schema, as_frame, column_names, is_missing, learn_schema

__all__ = [
    "Column",
    "Schema",
    "as_frame",
    "column_names",
    "encode_array",
    "encode_frame",
    "is_missing",
    "learn_schema",
    "make_frame",
    "require_finite",
]
