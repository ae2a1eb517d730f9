"""The texts and tables of a report, for its template."""

from __future__ import annotations

from collections.abc import Sequence

from lanam.data import CATEGORICAL, Column
from lanam.editing import edit_words
from lanam.explain import GlobalExplanation, Shape
from lanam.metrics import CoverageReport
from lanam.report.material import Material
from lanam.summary import shape_words
from lanam.text import few, number_format, one_line, shorten

#: Of more pairs the best are listed.
_MAX_PAIRS = 100

#: Of more levels of a column, and of more unused columns, only so many are named.
_MAX_NAMED = 8

_REASONS = {
    "switched off: evidence": "the data does not pay for it: the model does as well without it",
    "switched off: constant column": "the column has the same value everywhere",
    "switched off: no values": "the column has no values",
    "switched off: same values as another column": "another column has the same values",
}


#: The tables of a report on coverage.
_TABLES = {
    "intervals": ("Intervals of new observations",),
    "classes": ("Probabilities", "Sets of classes"),
}


def overview(material: Material) -> dict[str, object]:
    """What is said of the data and of the fit."""
    facts = material.summary.facts
    names = facts["classes"] or ()
    tiles = [
        (f"{facts['n_rows']:,}", "rows"),
        (str(facts["n_columns"]), "columns"),
        (f"{facts['n_active']} of {facts['n_terms']}", "terms active"),
    ]
    if facts["noise_std"] is not None:
        name = "noise (sd), on average" if material.portable.noise_tables else "noise (sd)"
        tiles.append((f"{facts['noise_std']:.4g}", name))
    if facts["dispersion"] is not None:
        tiles.append((f"{facts['dispersion']:.3g}", "dispersion"))
    if len(names) > 2:
        tiles.append((str(len(names)), "classes"))
    return {
        "classes": material.explanation.family.link.classes,
        "reading": material.explanation.family.words.reading_of(names),
        "unit": material.explanation.unit,
        "converged": facts["converged"],
        "n_active": facts["n_active"],
        "noise_differs": bool(material.portable.noise_tables),
        "tiles": [{"value": value, "name": name} for value, name in tiles],
        "columns": [
            _column(column, _share_missing(material.explanation, index))
            for index, column in enumerate(material.schema.columns)
        ],
        "facts": [{"name": name, "value": value} for name, value in _facts(material)],
        "edits": list(map(edit_words, material.summary.edits)),
    }


def _facts(material: Material) -> list[tuple[str, str]]:
    facts = material.summary.facts
    ended = "converged" if facts["converged"] else "not converged"
    told = [
        ("model", facts["estimator"]),
        ("log evidence", f"{facts['log_evidence']:.1f}"),
        ("iterations", f"{facts['n_iter']} ({ended})"),
    ]
    if facts["classes"]:
        told.append(("classes", _some([str(name) for name in facts["classes"]])))
    if material.portable.noise_tables:
        told.append(("noise", _noise(material)))
    if facts["noise_skewness"] is not None:
        told.append(("noise's shape", shape_words(facts)))
    if material.calibrated:
        told.append(("intervals", f"calibrated with {material.calibrated:,} held-out rows"))
    given = [f"{name}={value!r}" for name, value in material.arguments.items()]
    told.append(("options", ", ".join(given) or "the defaults"))
    return told


def _noise(material: Material) -> str:
    """With what the noise differs, and how much over the rows that were given."""
    names = _some([table.name for table in material.portable.noise_tables])
    if material.noise is None:
        return f"differs from row to row, with {names}"
    low, high = material.noise.min(), material.noise.max()
    return f"sd {low:.3g} to {high:.3g} over the rows given, with {names}"


def _column(column: Column, missing: float) -> dict[str, str]:
    if column.kind == CATEGORICAL:
        n_levels = len(column.levels)
        plural = "s" if n_levels != 1 else ""
        values = f"{n_levels} level{plural}: {_some([str(level) for level in column.levels])}"
    elif column.lowest != column.lowest:
        values = "none"
    else:
        values = f"{column.lowest:.4g} to {column.highest:.4g}"
    gone = f"{missing:.1%}" if missing else "yes" if column.missing else ""
    return {
        "name": one_line(column.name),
        "kind": column.kind,
        "range": values,
        "missing": gone,
    }


def _share_missing(explanation: GlobalExplanation, index: int) -> float:
    for term in explanation:
        if isinstance(term, Shape) and term.features == (index,) and term.missing_density:
            return term.missing_density
    return 0.0


def _some(names: Sequence[str]) -> str:
    """Names in a row, not too many and not too long."""
    return few([shorten(one_line(name), 40) for name in names], _MAX_NAMED)


def terms_table(material: Material) -> dict[str, object]:
    """All terms with what they are worth, and those that are switched off with the reason."""
    rows = material.summary.rows
    form = number_format(max((row["importance"] for row in rows), default=0.0), 3)
    noise = {table.name for table in material.portable.noise_tables}
    terms, off = [], []
    for row in rows:
        active = row["status"] == "active"
        evidence = row["evidence"]
        terms.append(
            {
                "name": one_line(row["term"]),
                "kind": row["kind"],
                "active": active,
                "importance": format(row["importance"], form) if active else "–",
                "band": format(row["importance_band"], form) if active else "–",
                "parameters": f"{row['effective_parameters']:.1f}" if active else "–",
                "evidence": "–" if evidence != evidence else f"{round(evidence, 1) + 0.0:.1f}",
                "status": row["status"] + (", edited" if row["edited"] else ""),
            }
        )
        if not active:
            reason = _reason(row["status"], evidence)
            reason += "; the noise differs with it" if row["term"] in noise else ""
            off.append({"name": one_line(row["term"]), "reason": reason})
    return {
        "terms": terms,
        "off": off,
        "unused": _some(_unused(material)),
    }


def _reason(status: str, evidence: float) -> str:
    reason = _REASONS.get(status, status)
    if status == "switched off: evidence" and evidence == evidence:
        return f"{reason} (it was worth {round(evidence, 1) + 0.0:.1f} in log evidence)"
    return reason


def _unused(material: Material) -> list[str]:
    used = material.used
    return [column.name for k, column in enumerate(material.schema.columns) if k not in used]


def pairs_table(material: Material) -> dict[str, object]:
    """What is said of the pairs."""
    scores = material.summary.interactions
    active = [pair for pair in material.explanation.pairs if pair.active]
    shown = scores.rows[:_MAX_PAIRS]
    return {
        "n_pairs": len(active),
        "has_pairs": bool(len(scores) or active),
        "score_name": f"{scores.score} (nats)" if scores.score == "evidence" else scores.score,
        "pair_scores": [
            {
                "rank": row["rank"],
                "name": one_line(row["pair"]),
                "score": f"{row['score']:.3g}",
                "status": row["status"],
                "active": row["status"] == "active",
            }
            for row in shown
        ],
    }


def calibration_text(report: CoverageReport | None) -> dict[str, object] | None:
    """How the model does on the data that was given."""
    if report is None:
        return None
    return {
        "n_rows": f"{report.n_rows:,}",
        "verdict": report.verdict,
        "tables": [
            {"name": name, "head": head, "rows": rows}
            for name, (head, *rows) in zip(_TABLES[report.kind], report.tables(), strict=False)
        ],
        "scores": [{"name": name, "value": value} for name, value in report.named_scores()],
        "curve": report.curve.kind,
        "retention": report.retention.name,
    }
