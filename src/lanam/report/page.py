"""Rendering of a report: template, texts, data and scripts in one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import numpy as np

from lanam.core.model.fitted import UNSUPPORTED
from lanam.data import CATEGORICAL, Column
from lanam.editing import signed_words
from lanam.explain import GlobalExplanation, plain
from lanam.explain.portable import TermTable
from lanam.explain.terms import term_names
from lanam.explain.values import json_text
from lanam.files import require_place, write_atomically
from lanam.metrics import Adequacy, CoverageReport
from lanam.report.charts import answers_rows, pairs_data, shapes_data, with_strip
from lanam.report.fields import fields
from lanam.report.material import Material
from lanam.report.packing import compressed, pack, pack_model, rounded, script_source, with_levels
from lanam.summary import fit_words, intercept_words, missingness_share, shape_words
from lanam.text import few, number_format, one_line, shorten
from lanam.version import __version__

#: In the order of execution.
_SCRIPTS = ("score.js", "charts.js", "what_if.js", "start.js")

_SECTIONS = (
    ("overview", "Overview"),
    ("calibration", "Prediction quality"),
    ("adequacy", "Adequacy"),
    ("shapes", "Shapes"),
    ("pairs", "Interactions"),
    ("noise", "Noise"),
    ("importances", "Importances"),
    ("what-if", "What if?"),
    ("data-and-fit", "Data and fit"),
)

#: Longer lists are collapsed.
_LONG = 12

#: Maximum number of candidate interactions listed, the best.
_MAX_PAIRS = 100

#: Longer names of the predicted quantity are cut in the title.
_MAX_TARGET = 60

#: Maximum number of names in a list.
_MAX_NAMED = 8

#: What the rows of the figures were to the fit.
_PARTS = {
    "training": "On the {n_rows} rows that the model was fitted to: the figures are too optimistic.",
    "both": "On all {n_rows} rows, to most of which the model was fitted: the figures are too optimistic.",
    "held out": "On {n_rows} rows that were held out of the fit.",
    "unknown": "On the {n_rows} given rows. If these are training rows, the figures are too optimistic.",
}

#: Displayed kinds of terms.
_KINDS = {"pair": "interaction", "spatial": "surface", "level": "per-value"}


def write_report(path: str | os.PathLike[str], material: Material, *, overwrite: bool) -> Path:
    """Write a report, with ``overwrite`` replacing an existing file, atomically."""
    target = require_place(path, "report.html", overwrite=overwrite)  # before rendering
    return write_atomically(target, render(material), "the report", overwrite=overwrite)


def render(material: Material) -> str:
    """The report as text."""
    jinja2, library = _libraries()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    asis = environment.filters["safe"]
    words = _pairs_table(material)
    there = {
        "adequacy": material.adequacy is not None,
        "pairs": words["has_pairs"],
        "noise": material.noise_explanation is not None,
    }
    script = "\n".join(map(_asset, _SCRIPTS))
    return str(
        environment.from_string(_asset("page.html")).render(
            title=material.title or _title(material),
            version=__version__,
            sections=[item for item in _SECTIONS if there.get(item[0], True)],
            long=_LONG,
            **_overview(material),
            **_terms_table(material),
            **words,
            answers=answers_rows(material.explanation),
            calibration=_calibration_text(material.coverage, material.part),
            adequacy=_adequacy_text(material.adequacy),
            n_picked=0 if material.rows is None else len(material.rows.indices),
            n_given=0 if material.rows is None else material.rows.n_all,
            style=asis(_asset("style.css")),
            data=compressed(json_text(page_data(material))),
            library=compressed(library),
            script=asis(script),
            sources=asis(" ".join(map(script_source, (script, library)))),
        )
    )


def _title(material: Material) -> str:
    """The quantity that is predicted, if its name is known, and the model."""
    facts, name, events = material.summary.facts, material.target_name, material.events
    fitted = f"{facts['estimator']} fitted to {facts['n_rows']:,} rows"
    if name is None:
        return fitted
    link = material.explanation.family.link
    quantity = f"P({events[1]})" if events and link.classes and not link.several else name
    return f"{shorten(one_line(quantity), _MAX_TARGET)}: {fitted}"


def _asset(name: str) -> str:
    return files("lanam.report").joinpath("assets", name).read_text(encoding="utf-8")


def _libraries() -> tuple[ModuleType, str]:
    """The template engine, and the script of the plotting library."""
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        name = (error.name or str(error)).split(".")[0]
        raise ImportError(
            f"a report needs {name}: install it with `pip install lanam[report]`"
        ) from error
    return jinja2, get_plotlyjs()


def page_data(material: Material) -> dict[str, object]:
    """The data of the page's scripts."""
    explanation, portable = material.explanation, material.portable
    shapes, bounds = shapes_data(explanation)
    columns, offered = fields(material)

    def offering(table: TermTable) -> TermTable:
        codes = offered.get(table.features[0])
        return table if codes is None else with_levels(table, codes)

    tables = [t if t.coupling is None else offering(t) for t in portable.tables]
    noise_tables = tuple(map(offering, portable.noise_tables))
    report, first = material.coverage, material.first
    return {
        "link": explanation.link,
        "exposed": explanation.family.takes_exposure,
        "follow_up": None if material.follow_up is None else material.follow_up.tolist(),
        "expected": explanation.family.words.expected,
        "classes": material.events and list(material.events),
        "grades": None
        if portable.labels == portable.classes
        else [one_line(label) for label in portable.labels or ()],
        "n_classes": int(np.size(explanation.intercept)),
        "unit": material.unit,
        "columns": columns,
        "typical": [column["typical"] for column in columns],
        "levels": [
            {**vars(level), "name": f"{100 * level.coverage:g}%", "first": level.coverage == first}
            for level in material.levels
        ],
        "calibrated": material.calibrated > 0,
        "model": pack_model(
            replace(portable, tables=tuple(tables), noise_tables=noise_tables), material.normals
        ),
        "rows": _rows(material),
        "shapes": shapes,
        "bounds": rounded(bounds),
        "vertical": with_strip(bounds),
        "noise": _noise_data(material.noise_explanation),
        "pairs": pairs_data(explanation),
        "importances": [
            {
                "name": one_line(term.name),
                "label": label,
                "kind": term.kind,
                "importance": rounded(term.importance),
                "missingness": rounded(term.importance_of_missingness),
                "std": rounded(term.importance_std),
            }
            for term, label in zip(explanation.active, term_names(explanation.active), strict=True)
        ],
        "history": rounded(list(material.history), 9),
        "calibration": report and plain({"curve": report.curve, "retention": report.retention}),
    }


def _rows(material: Material) -> dict[str, object] | None:
    rows = material.rows
    if rows is None:
        return None
    observed = rows.observed
    if observed is not None and material.explanation.classes is not None:
        observed = [str(label) for label in observed]
    return {
        "cells": pack(rows.cells),
        "names": [f"row {index + 1}" for index in rows.indices],
        "observed": None if observed is None else plain(list(observed)),
        "exposure": None if rows.exposure is None else rounded(rows.exposure, 12),
    }


def _overview(material: Material) -> dict[str, object]:
    """The overview of data and fit."""
    facts = material.summary.facts
    names = material.events or ()
    tiles = [
        (f"{facts['n_rows']:,}", "rows"),
        (str(facts["n_columns"]), "columns"),
        (f"{facts['n_active']} of {facts['n_terms']}", "terms active"),
        *_averages(material),
    ]
    if facts["noise_std"] is not None:
        name = "noise (sd), on average" if material.portable.noise_tables else "noise (sd)"
        tiles.append((f"{facts['noise_std']:.4g}", name))
    if facts["dispersion"] is not None:
        tiles.append((f"{facts['dispersion']:.3g}", "dispersion"))
    if len(names) > 2:
        tiles.append((str(len(names)), "classes"))
    shapes = material.explanation.shapes
    missing = {s.features[0]: s.missing_density for s in shapes if s.missing_density}
    return {
        "classes": material.explanation.family.link.classes,
        "reading": material.explanation.family.words.reading_of(names),
        "unit": material.unit,
        "converged": facts["converged"],
        "n_active": facts["n_active"],
        "noise_differs": material.noise_explanation is not None,
        "noise_unit": material.noise_explanation and material.noise_explanation.unit,
        "cautions": facts["cautions"],
        "tiles": tiles,
        "columns": [
            _column(column, missing.get(index, 0.0))
            for index, column in enumerate(material.schema.columns)
        ],
        "facts": _facts(material),
        "edits": list(map(signed_words, material.summary.edits)),
    }


def _averages(material: Material) -> list[tuple[str, str]]:
    """The target's mean or base rate, and total exposure, with their names."""
    target, events, family = material.target, material.events, material.explanation.family
    if target is None or family.link.several or not family.words.average:
        return []
    if family.link.classes:
        # Of grades, the shares of all.
        share = target.means[0] if len(target.means) == 1 else 1.0 - target.means[0]
        return [(f"{share:.1%}", f"base rate of {events[1] if events else 'the event'}")]
    if target.exposure is None:
        return [
            (f"{target.means[0]:.4g}", family.words.average.format(target.name or "the target"))
        ]
    return [
        (f"{target.means[0]:.4g}", "mean rate"),
        (f"{target.exposure:,.0f}", "total exposure"),
    ]


def _facts(material: Material) -> list[tuple[str, str]]:
    facts = material.summary.facts
    ended = "converged" if facts["converged"] else "not converged"
    lines = [
        ("model", facts["estimator"]),
        ("log evidence", f"{facts['log_evidence']:.1f}"),
        ("iterations", f"{facts['n_iter']} ({ended})"),
        _named(intercept_words(facts).partition(" ")),
    ]
    if facts["deviance_explained"] is not None:
        lines.append(_named(fit_words(facts).rpartition(" ")))
    if facts["classes"]:
        lines.append(("classes", _some(_with_rates(material))))
    if material.portable.noise_tables:
        lines.append(("noise", _noise(material)))
    if facts["noise_skewness"] is not None:
        lines.append(("residual distribution", shape_words(facts)))
    if material.calibrated:
        lines.append(("intervals", f"calibrated with {material.calibrated:,} held-out rows"))
    if (origin := material.provenance) is not None:
        lines.append(("fitted", f"{origin.date} with lanam {origin.version}"))
        lines.append(("training data", f"fingerprint {origin.fingerprint}"))
    given = [f"{name}={value!r}" for name, value in material.arguments.items()]
    lines.append(("options", ", ".join(given) or "the defaults"))
    return lines


def _with_rates(material: Material) -> list[str]:
    """The classes, with the base rates of more than two."""
    names = [str(name) for name in material.summary.facts["classes"]]
    target = material.target
    if target is None or len(target.means) != len(names):
        return names
    return [f"{name} ({rate:.1%})" for name, rate in zip(names, target.means, strict=True)]


def _named(words: tuple[str, str, str]) -> tuple[str, str]:
    """A name and a value that a space separates."""
    return words[0], words[2]


def _noise(material: Material) -> str:
    """The columns of the noise model, and the range of its standard deviations over the given rows."""
    names = _some([table.name for table in material.portable.noise_tables])
    if material.noise is None:
        return f"heteroscedastic, depends on {names}"
    low, high = material.noise.min(), material.noise.max()
    return f"sd {low:.3g} to {high:.3g} over the given rows, depends on {names}"


def _column(column: Column, missing: float) -> dict[str, str]:
    if column.kind == CATEGORICAL:
        n_levels = len(column.levels)
        plural = "ies" if n_levels != 1 else "y"
        values = f"{n_levels} categor{plural}: {_some([str(level) for level in column.levels])}"
    elif column.lowest != column.lowest:
        values = "none"
    else:
        values = f"{column.lowest:.4g} to {column.highest:.4g}"
    gone = f"{missing:.1%}" if missing else "yes" if column.missing else ""
    return {"name": one_line(column.name), "kind": column.kind, "range": values, "missing": gone}


def _noise_data(explanation: GlobalExplanation | None) -> dict[str, object] | None:
    """The curves of the noise, as those of the mean."""
    if explanation is None:
        return None
    shapes, bounds = shapes_data(explanation)
    return {"unit": explanation.unit, "shapes": shapes, "vertical": with_strip(bounds)}


def _some(names: Sequence[str]) -> str:
    """Some of the names, shortened."""
    return few([shorten(one_line(name), 40) for name in names], _MAX_NAMED)


def _terms_table(material: Material) -> dict[str, object]:
    """All terms, and the reasons of those that were dropped."""
    rows = material.summary.rows
    form = number_format(max((row["importance"] for row in rows), default=0.0), 3)
    noise = {table.name for table in material.portable.noise_tables}
    terms, off = [], []
    for row in rows:
        active = row["status"] == "active"
        evidence = row["evidence"]
        gain = "–" if evidence != evidence else f"{round(evidence, 1) + 0.0:.1f}"
        terms.append(
            {
                "name": one_line(row["term"]),
                "kind": _KINDS.get(row["kind"], row["kind"]),
                "active": active,
                "importance": format(row["importance"], form) if active else "–",
                "band": format(row["importance_band"], form) if active else "–",
                "missingness": missingness_share(row).replace("-", "–"),
                "parameters": f"{row['effective_parameters']:.1f}" if active else "–",
                "evidence": gain,
                "status": row["status"] + (", edited" if row["edited"] else ""),
            }
        )
        if not active:
            reason = row["status"].removeprefix("dropped: ")
            if row["status"] == UNSUPPORTED and gain != "–":
                reason += f" (log evidence gain {gain})"
            reason += "; the noise depends on it" if row["term"] in noise else ""
            off.append({"name": one_line(row["term"]), "reason": reason})
    names, used = material.schema.names, material.used
    unused = [name for k, name in enumerate(names) if k not in used]
    thresholds = material.summary.facts["column_thresholds"]
    return {
        "terms": terms,
        "split": any(row["importance_of_missingness"] > 0.0 for row in rows),
        "off": off,
        "unused": _some(unused),
        "thresholds": thresholds,
    }


def _pairs_table(material: Material) -> dict[str, object]:
    """The candidate interactions."""
    scores = material.summary.interactions
    active = [one for one in material.explanation.interactions if one.active]
    return {
        "n_pairs": len(active),
        "has_pairs": bool(len(scores) or active),
        "has_slices": any(len(one.axes) > 2 for one in active),
        "score_name": "log evidence gain (nats)" if scores.score == "evidence" else scores.score,
        "pair_scores": [
            {
                "rank": row["rank"],
                "name": one_line(row["pair"]),
                "score": f"{row['score']:.3g}",
                "status": row["status"],
                "active": row["status"] == "active",
            }
            for row in scores.rows[:_MAX_PAIRS]
        ],
    }


def _calibration_text(report: CoverageReport | None, part: str) -> dict[str, object] | None:
    """Calibration and scores on the given data."""
    if report is None:
        return None
    return {
        "rows": _PARTS[part].format(n_rows=f"{report.n_rows:,}"),
        "verdict": report.verdict,
        "tables": [
            {"name": name, "head": head, "rows": rows}
            for name, (head, *rows) in zip(report.titles(), report.tables(), strict=True)
        ],
        "figures": report.performance.table(),
        "scores": report.named_scores(),
        "curve": report.curve.kind,
        "retention": {"rmse": "RMSE"}.get(report.retention.name, report.retention.name),
    }


def _adequacy_text(adequacy: Adequacy | None) -> dict[str, object] | None:
    """What a black box would gain."""
    if adequacy is None:
        return None
    return {
        "verdict": adequacy.verdict,
        "basis": adequacy.basis,
        "tables": [
            {"name": "Missed share by columns", "rows": adequacy.table()},
            {"name": "Loss", "rows": adequacy.loss_table()},
        ],
    }
