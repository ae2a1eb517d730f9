"""Exports of a fitted model: lookup tables (JSON), a rating table (CSV), SQL and ONNX.

All formats are written from :mod:`lanam.explain.portable` and the schema, without estimators or networks.
"""

from __future__ import annotations

from lanam.export.formats import FORMATS, format_of, render, require_format, write_export
from lanam.export.lookup import lookup_tables
from lanam.export.onnx_graph import onnx_model
from lanam.export.rating import rating_table
from lanam.export.sql import sql_query

__all__ = [
    "FORMATS",
    "format_of",
    "lookup_tables",
    "onnx_model",
    "rating_table",
    "render",
    "require_format",
    "sql_query",
    "write_export",
]
