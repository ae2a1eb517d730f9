"""Cautions about a fit that its rows hardly determine: warnings after the fit, and lines of the summary.

They follow from figures that the fit leaves in the last record of its history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanam.core.model.fitted import Diagnostics, FittedModel
from lanam.core.rows.tables import EncodedRows
from lanam.data import Schema
from lanam.errors import FitWarning
from lanam.explain import describe_terms

#: More effective parameters per row than this are too many.
_MOST_PARAMETERS = 0.4
#: A row with a larger Cook's distance than this moves the whole fit (the usual rule).
_MOST_INFLUENCE = 1.0


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
        "close_calls": [" x ".join(schema.names[k] for k in key) for key in found.close_calls],
    }


def _number(found: Diagnostics, sample: EncodedRows, rows: EncodedRows) -> int:
    """The number of the most influential row: the first that equals it."""
    values, response = sample.columns[found.influential], sample.response[found.influential]
    same = rows.response == response
    for column, value in zip(rows.columns.T, values, strict=True):
        same &= np.isnan(column) if np.isnan(value) else column == value
    return int(same.argmax())


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
                which="a single row" if number is None else f"row {number} (counting from 0)",
                distance=f"{last['cooks_distance']:.2g}",
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
