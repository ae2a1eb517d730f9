"""A fitted model for where there is no Python: lookup tables, a rating table, SQL, ONNX.

All is written from the tables that explanations give (:mod:`lanam.explain.portable`) and the schema: a
format knows nothing of networks, and of estimators neither.
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
