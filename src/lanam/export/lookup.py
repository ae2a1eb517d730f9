"""Lookup tables as JSON: the whole model, self-describing, for a scorer in any language.

The page "Score without Python" has a scorer of thirty lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lanam.conformal import Calibration
from lanam.data import Column, Schema
from lanam.explain.portable import PortableModel, TableAxis
from lanam.explain.values import json_text, plain
from lanam.export.complete import CompleteTerm, complete
from lanam.version import __version__

#: The name of the format, and the version of its layout.
FORMAT = "lanam lookup tables"
VERSION = 1

_DIGITS = ".11g"

#: Coverages whose calibrated thresholds are included, as far as the held-out rows allow.
_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


def lookup_tables(
    portable: PortableModel,
    schema: Schema,
    *,
    calibration: Calibration | None = None,
    edits: Sequence[Mapping[str, object]] = (),
    variance: bool = True,
) -> dict[str, Any]:
    """A model's lookup tables as plain data.

    Parameters
    ----------
    portable, schema
        The tables of a model, and the schema of its columns.
    calibration
        Conformal calibration of its intervals.
    edits
        Records of the edits, in order.
    variance
        Whether to include what variances need: tables of the coordinates and the factor, which are most
        of the file.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.explain.portable import explain_portable
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> portable = explain_portable(model._model, model._schema)
    >>> tables = lookup_tables(portable, model._schema)
    >>> tables["link"], [term["name"] for term in tables["terms"]]
    ('identity', ['bmi', 'bp'])
    """
    model = complete(portable)
    facts: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"lanam {__version__}",
        "link": portable.link,
        "classes": plain(portable.classes),
        "columns": [_column(column) for column in schema.columns],
        "intercept": model.intercept.tolist(),
        "edits": plain(tuple(edits)),
        **_own_parameters(portable),
        "terms": [_term(term, schema, variance) for term in model.terms],
    }
    if not variance:
        return facts
    missing = zip(schema.names, portable.missing_variance.tolist(), strict=True)
    return facts | {
        "factor": [_short(row[: k + 1]) for k, row in enumerate(portable.factor.tolist())],
        "contrasts": model.contrasts.tolist(),
        "noise_variance": portable.noise_variance,
        "gap_variance": {name: value for name, value in missing if value},
        "log_noise": portable.log_noise,
        "noise_terms": [_term(term, schema, variance=False) for term in model.noise_terms],
        "noise_shape": portable.shape and portable.shape.as_lists(),
        "calibration": None if calibration is None else _calibration(calibration),
    }


def _own_parameters(portable: PortableModel) -> dict[str, object]:
    """Parameters of the likelihood, and the labels of grades; nothing where there are none."""
    facts = {"parameters": plain(portable.parameters)} if portable.parameters else {}
    return (
        facts
        if portable.labels == portable.classes
        else {**facts, "grades": plain(portable.labels)}
    )


def lookup_json(
    portable: PortableModel,
    schema: Schema,
    *,
    calibration: Calibration | None = None,
    edits: Sequence[Mapping[str, object]] = (),
    variance: bool = True,
    indent: int | None = None,
) -> str:
    """The same as JSON text."""
    facts = lookup_tables(portable, schema, calibration=calibration, edits=edits, variance=variance)
    return json_text(facts, indent=indent) + "\n"


def _column(column: Column) -> dict[str, object]:
    facts: dict[str, object] = {"name": column.name, "kind": column.kind, "missing": column.missing}
    if column.levels:
        return facts | {"levels": plain(column.levels)}
    return facts | {"lowest": plain(column.lowest), "highest": plain(column.highest)}


def _term(term: CompleteTerm, schema: Schema, variance: bool) -> dict[str, object]:
    names = [schema.names[feature] for feature in term.features]
    facts: dict[str, object] = {
        "name": term.name,
        "columns": names,
        "axes": [_axis(axis, name) for axis, name in zip(term.axes, names, strict=True)],
        "mean": term.mean.tolist(),
        "share": term.share.tolist(),
        "edited": plain(term.edited),
    }
    if not variance:
        return facts
    return facts | {
        "start": term.start,
        "rows": [_short(row) for row in term.rows.tolist()],
        "own_covariance": plain(term.own_covariance),
    }


def _short(numbers: list[float]) -> list[float]:
    """Numbers that only variances depend on, rounded: they are two thirds of the file."""
    return [float(format(number, _DIGITS)) for number in numbers]


def _axis(axis: TableAxis, column: str) -> dict[str, object]:
    return {
        "column": column,
        "kind": axis.kind,
        "points": np.asarray(axis.points).tolist(),
        "n_entries": axis.n_entries,
        "missing": axis.missing,
        "other": axis.other,
        **({} if axis.period is None else {"period": axis.period}),
    }


def _calibration(calibration: Calibration) -> dict[str, object]:
    allowed = [coverage for coverage in _COVERAGES if coverage <= calibration.most_coverage]
    return {
        "thresholds": [
            {"coverage": coverage, "threshold": calibration.threshold(coverage)}
            for coverage in allowed
        ],
        **calibration.to_dict(),
    }
