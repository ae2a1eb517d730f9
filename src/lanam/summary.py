"""The table that a fitted model prints: one row a term."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.model.fitted import FittedModel
from lanam.data import CATEGORICAL, Schema, make_frame
from lanam.editing import Edit, edit_words
from lanam.explain import class_labels, describe_terms, importance_std, plain
from lanam.families import find_family
from lanam.interactions import InteractionScores
from lanam.text import aligned, few, html_table, number_format, shorten, visible

_HEADERS = ("term", "kind", "importance", "+/- 2 sd", "eff. params", "evidence", "status")

#: Columns of words, to the left; numbers stand to the right.
_WORDS = (0, 1, len(_HEADERS) - 1)

#: Longer names are cut in the printed table only.
_MAX_NAME = 40

#: Of more pairs than this the best are printed, and of more classes the first.
_MAX_PAIRS = 12
_MAX_CLASSES = 6
#: So many columns are named that the noise differs with.
_MAX_COLUMNS = 3

#: Skewness or excess kurtosis that is worth a word.
_CLEARLY = 0.5
#: What is called noise, by the fact that has it.
_NOISE = {"noise_std": "noise sd", "dispersion": "dispersion"}


@dataclass(frozen=True, eq=False)
class Summary:
    """What a fit found, as a table: print it, show it in a notebook, or take it as data.

    Attributes
    ----------
    rows
        One record a term, the most important first and those switched off last, with the keys
        ``term``, ``kind``, ``importance`` (mean absolute contribution over the training data),
        ``importance_band`` (two posterior standard deviations of it), ``effective_parameters``,
        ``evidence`` (what the log evidence would lose without the term), ``status`` and ``edited``
        (whether the term was changed by hand: its evidence and effective parameters are then still
        those of the fit).
    facts
        What is said above the table: ``estimator``, ``n_rows``, ``n_columns``, ``n_categorical`` and
        ``n_with_missing`` (how many columns are categorical, and how many have missing values),
        ``n_active``, ``n_terms``, ``log_evidence``, ``noise_std`` (None for counts and classes),
        ``noise_columns`` (with which the noise differs, the most important first; none where it is the
        same everywhere), ``noise_skewness`` and ``noise_excess_kurtosis`` (None where the noise is
        Gaussian, and for counts and classes), ``dispersion`` (of counts: their variance in units of their
        mean; else None), ``classes`` (None for a regressor), ``n_iter`` and ``converged``.
    interactions
        Every pair of columns with its score and why it is in the model or not; of more than a few,
        the best are printed.
    edits
        Records of what was changed by hand after the fit, in this order: a model's ``edits_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> summary = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).summary()
    >>> [row["term"] for row in summary.rows]
    ['bmi', 'bp']
    >>> print(summary)
    LANAMRegressor on 442 rows of 2 columns: 2 of 2 terms active
    log evidence ..., noise sd ..., converged after ... iterations
    <BLANKLINE>
    term  kind    importance  +/- 2 sd  eff. params  evidence  status
    ...
    """

    rows: tuple[dict[str, Any], ...]
    facts: dict[str, Any]
    interactions: InteractionScores
    backend: str | None = None
    edits: tuple[Edit, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, ready for JSON."""
        return {
            **{name: plain(fact) for name, fact in self.facts.items()},
            "terms": [{key: plain(value) for key, value in row.items()} for row in self.rows],
            "interactions": self.interactions.to_dict(),
            "edits": [dict(record) for record in self.edits],
        }

    def to_frame(self) -> Any:
        """The table as a frame of the library the model was fitted with."""
        keys = self.rows[0].keys()
        return make_frame({key: [row[key] for row in self.rows] for key in keys}, self.backend)

    def __str__(self) -> str:
        below = [*self._edit_lines(), *self._pair_lines()]
        return "\n".join([*self._headlines(), "", *aligned(self._cells(), _WORDS), *below])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        lines = "<br>".join(html.escape(line) for line in self._headlines())
        below = html.escape("\n".join([*self._edit_lines(), *self._pair_lines()]))
        return f"<p>{lines}</p>{html_table(self._cells())}<pre>{below}</pre>"

    def _edit_lines(self) -> list[str]:
        """What was changed by hand, in the order in which it was."""
        if not self.edits:
            return []
        plural = "s" if len(self.edits) > 1 else ""
        head = f"{len(self.edits)} edit{plural} by hand (evidence and eff. params are of the fit):"
        lines = ["", head, *(f"  {visible(edit_words(record))}" for record in self.edits)]
        noise = [name for fact, name in _NOISE.items() if self.facts[fact] is not None]
        return lines + [
            f"{name} is that of the fit: intervals of new observations do not know of the edits; "
            "calibrate on held-out rows"
            for name in noise
        ]

    def _pair_lines(self) -> list[str]:
        """Why pairs are in or out, best first."""
        scores = self.interactions
        if not len(scores):
            return []
        unit = ", in nats" if scores.score == "evidence" else ""
        head = f"{len(scores)} pairs scored by {scores.score}{unit}, {len(scores.active)} active:"
        return ["", head, *scores.lines(_MAX_PAIRS)]

    def _headlines(self) -> list[str]:
        facts = self.facts
        ended = "converged" if facts["converged"] else "NOT converged"
        told = [f"log evidence {facts['log_evidence']:.1f}"]
        if facts["noise_std"] is not None:
            told.append(f"{_NOISE['noise_std']} {facts['noise_std']:.4g}{self._noise_words()}")
        if facts["dispersion"] is not None:
            told.append(f"{_NOISE['dispersion']} {facts['dispersion']:.3g}")
        told.append(f"{ended} after {facts['n_iter']} iterations")
        return [
            f"{facts['estimator']} on {facts['n_rows']} rows of {facts['n_columns']} columns"
            f"{self._peculiarities()}: {facts['n_active']} of {facts['n_terms']} terms active",
            ", ".join(told),
            *self._class_lines(),
        ]

    def _noise_words(self) -> str:
        """With what the noise differs, and what shape it has, if there is anything to say."""
        names = [shorten(name, _MAX_NAME) for name in self.facts["noise_columns"]]
        told = [f"differs with {few(names, _MAX_COLUMNS)}"] if names else []
        if self.facts["noise_skewness"] is not None:
            told.append(shape_words(self.facts))
        return f" ({'; '.join(told)})" if told else ""

    def _peculiarities(self) -> str:
        """How many columns are not all numbers, if any."""
        counts = {"categorical": "n_categorical", "with missing values": "n_with_missing"}
        told = [f"{self.facts[key]} {what}" for what, key in counts.items() if self.facts[key]]
        return f" ({', '.join(told)})" if told else ""

    def _class_lines(self) -> list[str]:
        """The classes, if there are more than two: of two, the terms speak of the second."""
        classes = self.facts["classes"] or ()
        if len(classes) <= 2:
            return []
        names = [shorten(str(name), _MAX_NAME) for name in classes]
        return [f"{len(classes)} classes: {few(names, _MAX_CLASSES)}"]

    def _cells(self) -> list[tuple[str, ...]]:
        table: list[tuple[str, ...]] = [_HEADERS]
        form = number_format(max((row["importance"] for row in self.rows), default=0.0), 3)
        for row in self.rows:
            name = row["term"]
            off = row["status"] != "active"
            table.append(
                (
                    shorten(name, _MAX_NAME),
                    row["kind"],
                    "-" if off else format(row["importance"], form),
                    "-" if off else format(row["importance_band"], form),
                    "-" if off else f"{row['effective_parameters']:.1f}",
                    "-" if np.isnan(row["evidence"]) else f"{round(row['evidence'], 1) + 0.0:.1f}",
                    row["status"] + (", edited" if row["edited"] else ""),
                )
            )
        return table


def shape_words(facts: Mapping[str, Any]) -> str:
    """In which way noise is not Gaussian.

    Examples
    --------
    >>> shape_words({"noise_skewness": -1.2, "noise_excess_kurtosis": 4.0})
    'not Gaussian: skewed to smaller values, heavy tails'
    >>> shape_words({"noise_skewness": 0.1, "noise_excess_kurtosis": 0.2})
    'not Gaussian'
    """
    skewness, kurtosis = facts["noise_skewness"], facts["noise_excess_kurtosis"]
    told = []
    if abs(skewness) >= _CLEARLY:
        told.append(f"skewed to {'larger' if skewness > 0.0 else 'smaller'} values")
    if abs(kurtosis) >= _CLEARLY:
        told.append(f"{'heavy' if kurtosis > 0.0 else 'light'} tails")
    return "not Gaussian" + (f": {', '.join(told)}" if told else "")


def _noise_columns(model: FittedModel, schema: Schema) -> list[str]:
    """The columns with which the noise differs, the most important first."""
    terms = () if model.noise is None else describe_terms(model.noise, schema)
    active = [term for term in terms if term.active]
    return [term.name for term in sorted(active, key=lambda term: -term.importance)]


def summarise(
    model: FittedModel,
    schema: Schema,
    interactions: InteractionScores,
    *,
    estimator: str,
    n_rows: int,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    edits: tuple[Edit, ...] = (),
) -> Summary:
    """Summary of a fitted model; ``classes`` are a classifier's labels, ``edits`` records of edits."""
    rng = np.random.default_rng(0)
    bands = [2.0 * importance_std(model, index, rng) for index in range(len(model.terms))]
    rows: list[dict[str, Any]] = [
        {
            "term": term.name,
            "kind": term.kind,
            "importance": term.importance,
            "importance_band": band,
            "effective_parameters": term.effective_parameters,
            "evidence": term.evidence,
            "status": term.status,
            "edited": term.was_edited,
        }
        for term, band in zip(describe_terms(model, schema), bands, strict=True)
    ]
    rows.sort(key=lambda row: (row["status"] != "active", -row["importance"]))
    family = find_family(model.likelihood)
    facts = {
        "estimator": estimator,
        "n_rows": n_rows,
        "n_columns": schema.n_columns,
        "n_categorical": sum(column.kind == CATEGORICAL for column in schema.columns),
        "n_with_missing": sum(column.missing for column in schema.columns),
        "n_active": sum(term.active for term in model.terms),
        "n_terms": len(model.terms),
        "log_evidence": float(model.log_evidence),
        "noise_std": family.noise_std(model),
        "noise_columns": _noise_columns(model, schema),
        "noise_skewness": None if model.shape is None else model.shape.skewness,
        "noise_excess_kurtosis": None if model.shape is None else model.shape.excess_kurtosis,
        "dispersion": family.dispersion(model),
        "classes": class_labels(model, classes),
        "n_iter": model.n_iter,
        "converged": model.converged,
    }
    return Summary(tuple(rows), facts, interactions, schema.backend, edits)
