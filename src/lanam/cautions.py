"""Cautions about a fit that its rows hardly determine: warnings after the fit, and lines of the summary.

They follow from figures that the fit leaves in the last record of its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.model.fitted import Diagnostics, FittedModel
from lanam.core.rows.tables import EncodedRows
from lanam.data import Schema
from lanam.errors import FitWarning, numbered
from lanam.explain import describe_terms
from lanam.text import few, term_name

#: More effective parameters per row than this are too many.
_MOST_PARAMETERS = 0.4
#: A row with a larger Cook's distance than this moves the whole fit (the usual rule).
_MOST_INFLUENCE = 1.0
#: Being missing alone predicts the target if their correlation is larger, and significant.
_STRONG = 0.3
_SIGNIFICANT = 16.0
_FEWEST_MISSING = 5
#: Maximum number of columns named.
_MOST_NAMED = 5


def record(
    model: FittedModel, schema: Schema, sample: EncodedRows, rows: EncodedRows | None
) -> dict[str, Any]:
    """The diagnostics of a fit, for its history.

    ``rows`` are those in memory, in which the most influential one of the ``sample`` has a number.
    """
    found = model.diagnostics
    if found is None:
        return {}
    return {
        "parameters_per_row": found.saturation,
        "cooks_distance": found.influence,
        "influential_row": None if rows is None else _number(found, sample, rows),
        "separated": found.separated,
        "missing_alone": _missing_alone(model, schema, sample),
        "close_calls": [
            term_name([schema.names[k] for k in key], schema.names) for key in found.close_calls
        ],
        "interaction_thresholds": list(found.pair_thresholds),
    }


def _number(found: Diagnostics, sample: EncodedRows, rows: EncodedRows) -> int:
    """The number of the most influential row: the first that equals it."""
    values, response = sample.columns[found.influential], sample.response[found.influential]
    same = rows.response == response
    for column, value in zip(rows.columns.T, values, strict=True):
        same &= np.isnan(column) if np.isnan(value) else column == value
    return int(same.argmax())


def _missing_alone(
    model: FittedModel, schema: Schema, rows: EncodedRows
) -> list[dict[str, object]]:
    """Columns for which being missing alone predicts the target, the strongest first."""
    used = {feature for term in model.terms if term.active for feature in term.features}
    found: list[tuple[float, str]] = []
    for feature in sorted(used):
        missing = np.isnan(rows.columns[:, feature])
        if min(missing.sum(), (~missing).sum()) < _FEWEST_MISSING:
            continue
        size = _association(missing, rows, several=model.contrasts is not None)
        if size > _STRONG and size**2 * len(missing) > _SIGNIFICANT:
            found.append((size, schema.names[feature]))
    return [{"column": name, "correlation": size} for size, name in sorted(found, reverse=True)]


def _association(missing: NDArray[np.bool_], rows: EncodedRows, *, several: bool) -> float:
    """The correlation of being missing with the response, or the correlation ratio given its classes."""
    weight = rows.weight / rows.weight.sum()
    with np.errstate(all="ignore"):
        centred = missing - weight @ missing
        response = rows.response - weight @ rows.response
        if several:
            groups = np.unique(rows.response, return_inverse=True)[1]
            mass = np.bincount(groups, weight)
            response = (np.bincount(groups, weight * centred) / mass)[groups]
        response = response / (np.abs(response).max() or 1.0)
        scale = np.sqrt((weight @ centred**2) * (weight @ response**2))
        size = abs(weight @ (centred * response)) / scale
    return float(size) if np.isfinite(size) else 0.0


def cautions(model: FittedModel, schema: Schema) -> list[FitWarning]:
    """What speaks against trusting a fit, each with a remedy; none for models of older files."""
    last: Mapping[str, Any] = model.history[-1] if model.history else {}
    found = []
    if last.get("parameters_per_row", 0.0) > _MOST_PARAMETERS:
        found.append(
            FitWarning(
                "Check the fit: it has {share} effective parameters per row, so that the prior decides "
                "much of it",
                "Add rows, or leave out columns.",
                share=f"{last['parameters_per_row']:.2g}",
            )
        )
    if last.get("cooks_distance", 0.0) > _MOST_INFLUENCE:
        number = last.get("influential_row")
        found.append(
            FitWarning(
                "Check the fit: without {which} it would be another one (Cook's distance {distance}, more "
                "than 1)",
                "Verify that row, or compare a fit without it.",
                which="a single row" if number is None else f"row {numbered(number)}",
                distance=f"{last['cooks_distance']:.2g}",
            )
        )
    if alone := last.get("missing_alone", []):
        names = few([f"{one['column']!r} ({one['correlation']:.2f})" for one in alone], _MOST_NAMED)
        found.append(
            FitWarning(
                "Check the fit: being missing alone predicts the target, correlation in brackets: {names}",
                "If values are missing because of the outcome, this is leakage: leave the column out.",
                names=names,
            )
        )
    if last.get("separated", False):
        terms = [term for term in describe_terms(model, schema) if term.active]
        first = max(terms, key=lambda term: term.importance)
        found.append(
            FitWarning(
                "Check the fit: it separates the classes of all rows, so that the prior decides how near "
                "probabilities come to 0 and 1",
                "If {column!r}, the most important term, is known only after the outcome, leave it out.",
                column=first.name,
            )
        )
    return found
