"""The posterior of a model's constrained columns as plain values and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lanam.core.model.constrained import ConstrainedPosterior, ConstrainedTerm
from lanam.core.model.fitted import FittedModel
from lanam.core.terms.constraints import Constraint
from lanam.core.terms.knots import Entries, Levels
from lanam.storage.errors import require
from lanam.storage.fields import LARGEST, Arrays, Fields, each, put_matrix
from lanam.storage.values import decode, encode

Content = dict[str, Any]
Put = dict[str, np.ndarray]

_CONSTRAINT = ("feature", "monotone", "curved", "low", "high")

#: Writes entries under a name, and reads those of a number of columns.
WriteEntries = Callable[[Entries, str, Put], Content | None]
ReadEntries = Callable[[object, int, str, Arrays], Entries | None]


def write_constrained(
    model: FittedModel, arrays: Put, write_entries: WriteEntries
) -> dict[str, Content]:
    """What a model without constraints lacks: nothing for such a model."""
    posterior = model.constrained
    if posterior is None:
        return {}
    arrays["constrained mean"], arrays["free mean"] = posterior.mean, posterior.free_mean
    starts = [place.start for place in model.blocks]
    terms = []
    for term in posterior.terms:
        k = max(k for k, start in enumerate(starts) if start == term.place.start)
        content: Content = {"term": k, "entries": None}
        if model.terms[k].table is not term.table:
            # It was edited: its draws are those of the curve before.
            content["entries"] = write_entries(term.entries, f"constrained {k}", arrays)
            put_matrix(arrays, f"constrained {k} table", term.table)
        terms.append(content)
    constraints = [
        {key: encode(getattr(constraint, key)) for key in _CONSTRAINT}
        for constraint in posterior.constraints
    ]
    return {"constrained": {"constraints": constraints, "terms": terms}}


def read_constrained(
    content: object, arrays: Arrays, model: FittedModel, n_columns: int, read_entries: ReadEntries
) -> ConstrainedPosterior:
    """The posterior of the constrained columns of a model with one output."""
    what = "the constraints"
    fields = Fields(content, what, ("constraints", "terms"))
    constraints = tuple(_read_constraint(one, n_columns) for one in fields.items("constraints"))
    columns = {constraint.feature for constraint in constraints}
    terms, blocks = [], model.blocks
    for _, value in each(fields.values["terms"], what):
        one = Fields(value, what, ("term", "entries"))
        k = one.whole("term", 0, len(model.terms) - 1)
        term, place = model.terms[k], blocks[k]
        require(term.active and not columns.isdisjoint(term.features), what)
        require(term.coupling is None, what)
        entries, table = term.entries, term.table
        if one.values["entries"] is not None:
            name = f"constrained {k}"
            entries = read_entries(one.values["entries"], len(term.features), name, arrays)
            n_entries = 0 if entries is None else len(entries)
            table = arrays.take_matrix(f"{name} table", (n_entries, table.shape[1]))
        require(entries is not None and not isinstance(entries, Levels), what)
        assert entries is not None
        terms.append(ConstrainedTerm(place, term.features, entries, table))
    starts = [term.place.start for term in terms]
    require(bool(terms) and starts == sorted(set(starts)), what)
    width = sum(term.table.shape[1] for term in terms)
    posterior = ConstrainedPosterior(
        constraints=constraints,
        terms=tuple(terms),
        free_mean=arrays.take("free mean", "f8", (width,), LARGEST),
        cov_cholesky=model.cov_cholesky,
        mean=arrays.take("constrained mean", "f8", (width,), LARGEST),
    )
    require(_is_usable(posterior), what)
    return posterior


def _read_constraint(value: object, n_columns: int) -> Constraint:
    fields = Fields(value, "a constraint", _CONSTRAINT)
    monotone, curved = fields.whole("monotone", -1, 1), fields.whole("curved", -1, 1)
    fields.require(monotone != 0 or curved != 0, "monotone")
    low, high = (_end(decode(fields.values[key])) for key in ("low", "high"))
    return Constraint(fields.whole("feature", 0, n_columns - 1), monotone, curved, low, high)


def _end(value: object) -> float:
    require(type(value) is float and not np.isnan(value), "the range of a constraint")
    return float(value)  # type: ignore[arg-type]


def _is_usable(posterior: ConstrainedPosterior) -> bool:
    """Whether functions can be drawn: the covariance of the constrained coordinates is regular."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.abs(posterior.regression).max() <= LARGEST)
    except np.linalg.LinAlgError:
        return False
