"""Frames and arrays: schemas, encoding, missing and unseen values, errors about columns."""

from __future__ import annotations

from lanam.data.cells import Level, is_missing
from lanam.data.encoding import encode_table, label, learn_table, make_frame
from lanam.data.schema import (
    CATEGORICAL,
    NUMERIC,
    UNSEEN,
    Column,
    Schema,
    as_frame,
    column_names,
    find_column,
    learn_schema,
    read_categorical,
)
from lanam.data.unseen import (
    NewValuesWarning,
    UnseenValues,
    collect_unseen,
    merge_unseen,
    warn_unseen,
)
from lanam.errors import warn_user

__all__ = [
    "CATEGORICAL",
    "NUMERIC",
    "UNSEEN",
    "Column",
    "Level",
    "NewValuesWarning",
    "Schema",
    "UnseenValues",
    "as_frame",
    "collect_unseen",
    "column_names",
    "encode_table",
    "find_column",
    "is_missing",
    "label",
    "learn_schema",
    "learn_table",
    "make_frame",
    "merge_unseen",
    "read_categorical",
    "warn_unseen",
    "warn_user",
]
