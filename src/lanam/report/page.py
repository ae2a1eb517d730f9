"""Material to one HTML file: the template filled, the data and the scripts put in."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lanam.data import CATEGORICAL, UNSEEN
from lanam.explain import Shape, plain
from lanam.explain.ranges import trimmed
from lanam.explain.words import term_names, unit_of
from lanam.files import require_place, write_atomically
from lanam.report.charts import pairs_data, shapes_data, with_strip
from lanam.report.material import Level, Material
from lanam.report.packing import compressed, pack, rounded, script_json
from lanam.report.tables import pack_model, with_levels
from lanam.report.words import calibration_text, overview, pairs_table, terms_table
from lanam.version import __version__

#: Of a categorical column with more levels, the most frequent can be chosen on the what-if page.
_MAX_LEVELS = 300

#: In the order in which they are run.
_SCRIPTS = ("score.js", "charts.js", "what_if.js", "start.js")

_SECTIONS = (
    ("overview", "Overview"),
    ("what-if", "What if?"),
    ("importances", "Importances"),
    ("shapes", "Shapes"),
    ("pairs", "Pairs"),
    ("calibration", "Calibration"),
)


def write_report(path: str | os.PathLike[str], material: Material) -> Path:
    """Write a report; a file that is there stays whole until the new one is.

    Raises
    ------
    ImportError
        It says what to install.
    OSError
        If the file cannot be written: no such folder, no permission, a full disk.
    """
    target = require_place(path, example="report.html")  # before the page is made
    return write_atomically(target, render(material), what="the report")


def render(material: Material) -> str:
    """The report as text."""
    jinja2, library = _libraries()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    facts = material.summary.facts
    asis = environment.filters["safe"]
    words = pairs_table(material)
    return str(
        environment.from_string(_asset("page.html")).render(
            title=material.title or f"{facts['estimator']} on {facts['n_rows']:,} rows",
            version=__version__,
            sections=[
                {"id": name, "name": title}
                for name, title in _SECTIONS
                if name != "pairs" or words["has_pairs"]
            ],
            **overview(material),
            **terms_table(material),
            **words,
            calibration=calibration_text(material.coverage),
            n_picked=0 if material.rows is None else len(material.rows.places),
            n_given=0 if material.rows is None else material.rows.n_all,
            style=asis(_asset("style.css")),
            data=asis(script_json(page_data(material))),
            library=asis(compressed(library)),
            script=asis("\n".join(map(_asset, _SCRIPTS))),
        )
    )


def _asset(name: str) -> str:
    return files("lanam.report").joinpath("assets", name).read_text(encoding="utf-8")


def _libraries() -> tuple[Any, str]:
    """The template engine, and the drawing library's script."""
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        name = (error.name or str(error)).split(".")[0]
        raise ImportError(
            f"a report needs {name}: install what it takes with `pip install lanam[report]`"
        ) from error
    return jinja2, get_plotlyjs()


def page_data(material: Material) -> dict[str, Any]:
    """What the scripts read."""
    explanation, portable = material.explanation, material.portable
    shapes, bounds = shapes_data(explanation)
    columns, offered = _columns(material)
    tables = tuple(
        with_levels(table, offered[table.features[0]])
        if table.coupling is not None and table.features[0] in offered
        else table
        for table in portable.tables
    )
    report = material.coverage
    return {
        "link": explanation.link,
        "classes": plain(explanation.classes) and [str(name) for name in explanation.classes or ()],
        "n_classes": int(np.size(explanation.intercept)),
        "unit": unit_of(explanation),
        "columns": columns,
        "typical": [column["typical"] for column in columns],
        "levels": [_level(level, material.first) for level in material.levels],
        "calibrated": material.calibrated > 0,
        "model": pack_model(replace(portable, tables=tables), material.normals),
        "rows": _rows(material),
        "shapes": shapes,
        "bounds": rounded(bounds),
        "vertical": with_strip(bounds),
        "pairs": pairs_data(explanation),
        "importances": [
            {
                "name": term.name,
                "label": label,
                "kind": term.kind,
                "importance": rounded(term.importance),
                "std": rounded(term.importance_std),
            }
            for term, label in zip(explanation.active, term_names(explanation.active), strict=True)
        ],
        "history": rounded(list(material.history), 9),
        "calibration": None
        if report is None
        else {
            "curve": report.curve.to_dict(),
            "retention": report.retention.to_dict(),
        },
    }


def _level(level: Level, first: float) -> dict[str, Any]:
    return {**vars(level), "name": f"{100 * level.coverage:g}%", "first": level.coverage == first}


def _columns(material: Material) -> tuple[list[dict[str, Any]], dict[int, Any]]:
    """Every column with what its field needs, and the codes that can be chosen of those with many."""
    used = {feature for term in material.explanation.active for feature in term.features}
    result, offered = [], {}
    for index, column in enumerate(material.schema.columns):
        shape = _shape_of(material, index)
        facts: dict[str, Any] = {
            "name": column.name,
            "index": index,
            "kind": column.kind,
            "used": index in used,
        }
        if column.kind == CATEGORICAL:
            codes = _codes(material, index, shape)
            offered[index] = codes
            facts["levels"] = [[int(code), str(column.levels[code])] for code in codes]
            facts["typical"] = _most_frequent(shape, column.levels, codes)
        else:
            facts |= _numbers(material, index, shape)
        result.append(facts)
    return result, offered


def _shape_of(material: Material, index: int) -> Shape:
    """The term of a column alone that is not about single values."""
    for term in material.explanation:
        if isinstance(term, Shape) and term.features == (index,) and term.kind != "level":
            return term
    raise AssertionError("every column has a term")  # pragma: no cover


def _codes(material: Material, index: int, shape: Shape) -> Any:
    """The levels that can be chosen: of very many the most frequent, and those of the rows."""
    levels = material.schema.columns[index].levels
    if len(levels) <= _MAX_LEVELS:
        return np.arange(len(levels))
    code_of = {level: code for code, level in enumerate(levels)}
    common = np.argsort(-shape.density, kind="stable")[:_MAX_LEVELS]
    codes = [code_of[level] for level in shape.values[common].tolist()]
    if material.rows is not None:
        cells = material.rows.cells[:, index]
        codes += cells[np.isfinite(cells) & (cells != UNSEEN)].astype(int).tolist()
    return np.unique(codes)


def _most_frequent(shape: Shape, levels: tuple[Any, ...], codes: Any) -> float | None:
    if not len(codes):
        return None
    if not len(shape.density):
        return float(codes[0])
    return float(levels.index(shape.values.tolist()[int(np.argmax(shape.density))]))


def _numbers(material: Material, index: int, shape: Shape) -> dict[str, Any]:
    """Range, step and middle of a numeric column's slider."""
    column = material.schema.columns[index]
    inner = shape.values[shape.inside] if len(shape.values) else shape.values
    if not len(inner):
        known = column.lowest == column.lowest
        value = column.lowest if known else 0.0
        ends = {"low": value, "high": value, "lowest": value, "highest": value}
        return ends | {"step": "any", "typical": value if known else None}
    low, high = trimmed(shape.values, shape.density, inner)
    below = np.cumsum(shape.density)
    median = float(shape.values[np.searchsorted(below, 0.5 * below[-1])])
    # What was given may have gaps between whole numbers, which knots alone do not show.
    values = shape.values[shape.inside & (shape.density > 0.0)]
    if material.rows is not None:
        values = material.rows.cells[:, index]
    whole = bool(np.all(np.mod(values[np.isfinite(values)], 1.0) == 0.0) and high - low >= 1.0)
    return {
        "low": float(low),
        "high": float(high),
        "lowest": column.lowest,
        "highest": column.highest,
        "step": 1 if whole else "any",
        "typical": float(np.rint(median)) if whole else _short(median, high - low),
    }


def _short(value: float, width: float) -> float:
    """The value to a thousandth of a range of this width: nobody reads digits that do not matter."""
    if not width > 0.0:
        return value
    return round(value, 3 - math.floor(math.log10(width)))


def _rows(material: Material) -> dict[str, Any] | None:
    rows = material.rows
    if rows is None:
        return None
    return {
        "cells": pack(rows.cells),
        "names": [f"row {place}" for place in rows.places],
        "observed": None if rows.observed is None else plain(list(rows.observed)),
        "exposure": None if rows.exposure is None else rounded(rows.exposure, 12),
    }
