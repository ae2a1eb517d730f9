"""Material to one HTML file: the template filled, the data and the scripts put in."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import numpy as np

from lanam.explain import plain
from lanam.explain.portable import Table
from lanam.explain.terms import term_names
from lanam.explain.values import json_text
from lanam.files import require_place, write_atomically
from lanam.report.charts import pairs_data, shapes_data, with_strip
from lanam.report.fields import fields
from lanam.report.material import Level, Material
from lanam.report.packing import compressed, pack, rounded, script_source
from lanam.report.tables import pack_model, with_levels
from lanam.report.words import calibration_text, overview, pairs_table, terms_table
from lanam.text import one_line
from lanam.version import __version__

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
    script = "\n".join(map(_asset, _SCRIPTS))
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
            data=compressed(json_text(page_data(material))),
            library=compressed(library),
            script=asis(script),
            sources=asis(" ".join(map(script_source, (script, library)))),
        )
    )


def _asset(name: str) -> str:
    return files("lanam.report").joinpath("assets", name).read_text(encoding="utf-8")


def _libraries() -> tuple[ModuleType, str]:
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


def page_data(material: Material) -> dict[str, object]:
    """What the scripts read."""
    explanation, portable = material.explanation, material.portable
    shapes, bounds = shapes_data(explanation)
    columns, offered = fields(material)

    def offering(table: Table) -> Table:
        codes = offered.get(table.features[0])
        return table if codes is None else with_levels(table, codes)

    tables = [t if t.coupling is None else offering(t) for t in portable.tables]
    noise_tables = tuple(map(offering, portable.noise_tables))
    report = material.coverage
    return {
        "link": explanation.link,
        "exposed": explanation.family.takes_exposure,
        "expected": explanation.family.words.expected,
        "classes": explanation.classes and [str(name) for name in explanation.classes],
        "n_classes": int(np.size(explanation.intercept)),
        "unit": explanation.unit,
        "columns": columns,
        "typical": [column["typical"] for column in columns],
        "levels": [_level(level, material.first) for level in material.levels],
        "calibrated": material.calibrated > 0,
        "model": pack_model(
            replace(portable, tables=tuple(tables), noise_tables=noise_tables), material.normals
        ),
        "rows": _rows(material),
        "shapes": shapes,
        "bounds": rounded(bounds),
        "vertical": with_strip(bounds),
        "pairs": pairs_data(explanation),
        "importances": [
            {
                "name": one_line(term.name),
                "label": label,
                "kind": term.kind,
                "importance": rounded(term.importance),
                "std": rounded(term.importance_std),
            }
            for term, label in zip(explanation.active, term_names(explanation.active), strict=True)
        ],
        "history": rounded(list(material.history), 9),
        "calibration": report and plain({"curve": report.curve, "retention": report.retention}),
    }


def _level(level: Level, first: float) -> dict[str, object]:
    return {**vars(level), "name": f"{100 * level.coverage:g}%", "first": level.coverage == first}


def _rows(material: Material) -> dict[str, object] | None:
    rows = material.rows
    if rows is None:
        return None
    observed = rows.observed
    if observed is not None and material.explanation.classes is not None:
        observed = [str(label) for label in observed]
    return {
        "cells": pack(rows.cells),
        "names": [f"row {place}" for place in rows.places],
        "observed": None if observed is None else plain(list(observed)),
        "exposure": None if rows.exposure is None else rounded(rows.exposure, 12),
    }
