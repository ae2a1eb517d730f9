"""The summary of a fitted model: one row per term."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.cautions import cautions
from lanam.core.inference.selection import MIN_LOG_EVIDENCE_GAIN, column_threshold
from lanam.core.model.fitted import ACTIVE, UNSUPPORTED, FittedModel
from lanam.data import CATEGORICAL, Schema, make_frame
from lanam.editing import Edit, edit_words, signed_words
from lanam.explain import class_labels, describe_terms, importance_std, plain
from lanam.families import find_family
from lanam.family_scores import FamilyScores
from lanam.interactions import InteractionScores
from lanam.text import (
    WIDTH,
    aligned,
    cut,
    few,
    few_in,
    html_table,
    narrowed,
    number_format,
    printable,
    shorten,
    visible,
)

_HEADERS = ("term", "kind", "importance", "+/- 2 sd", "edf", "log evidence gain", "status")
#: A further column, after the importance, if values are missing.
_MISSINGNESS = "missingness"

_MISSINGNESS_KEY = (
    "missingness: share of the importance that is due to whether the value is missing"
)

#: Longer names are cut when printed, and shorter ones only if a line has no room.
_MAX_NAME = 40
_LEAST_NAME = 20

#: The largest numbers of pairs and of classes that are printed.
_MAX_PAIRS = 12
_MAX_CLASSES = 6
#: The same for columns of heteroscedastic noise.
_MAX_COLUMNS = 3

#: More dropped terms of one status have a common line instead of rows, with names of so many characters.
_MAX_DROPPED = 3
_ROOM_FOR_NAMES = 200
#: Lines of a printed summary, of which terms, pairs and edits have at least or at most this many.
_MAX_LINES = 40
_LEAST_TERMS = 8
_LEAST_PAIRS = 4
_MAX_EDITS = 4

#: Skewness or excess kurtosis that is reported.
_NOTABLE = 0.5
#: Names of the scale of the noise, by fact.
_NOISE = {"noise_std": "noise sd", "dispersion": "dispersion"}


@dataclass(frozen=True, eq=False)
class Summary:
    """The summary of a fit: print it, show it in a notebook, or take it as data.

    Attributes
    ----------
    rows
        One record per term, the most important first and dropped terms last (of which more than three are
        printed in one line), with the keys ``term``,
        ``kind``, ``importance`` (mean absolute contribution over the training data),
        ``importance_band`` (two posterior standard deviations of the importance),
        ``importance_of_missingness`` (the part of it that is due to whether the value is missing),
        ``effective_parameters`` (effective degrees of freedom, edf), ``evidence`` (log evidence gain of
        the term), ``status`` and ``edited`` (whether the term was edited after the fit: edf and log
        evidence gain are those of the fit).
    facts
        Figures of the whole fit: ``estimator``, ``n_rows``, ``n_columns``, ``n_categorical`` and
        ``n_with_missing`` (how many columns are categorical, and how many have missing values),
        ``n_active``, ``n_terms``, ``log_evidence``, ``noise_std`` (None for counts and classes),
        ``noise_columns`` (on which heteroscedastic noise depends, the most important first),
        ``noise_skewness`` and ``noise_excess_kurtosis`` (None for Gaussian residuals, counts and classes),
        ``family`` and ``better_family`` (how the family was chosen, and which describes y better; or None),
        ``parameters`` (others of the likelihood, by name), ``dispersion`` (of counts, the variance divided
        by the mean; else None), ``deviance_explained`` (on the rows of the fit or, of many, on a sample,
        and therefore optimistic; R2 for Gaussian noise; None for models of older files), ``intercept`` (a
        list for more than two classes), ``unit`` (of contributions and importances), ``column_thresholds``
        (the log evidence gains below which a column, and one with a negligible effect, under 5% of the
        standard deviation of the prediction, is dropped; None for ``solver="adam"``),
        ``interaction_thresholds`` (the lowest and the highest of tried interactions; None if none was
        tried, or in older files), ``classes`` (None for a
        regressor), ``n_iter`` and ``converged``, ``cautions`` (what speaks against trusting the fit, as in
        the warnings after it) and ``close_calls`` (terms that one nat of log evidence, more or less, would
        have decided the other way).
    interactions
        Every pair of columns with its score, and why it is in the model or not; only the best are
        printed.
    edits
        Records of the edits after the fit, in order: a model's ``edits_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> summary = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).summary()
    >>> [row["term"] for row in summary.rows]
    ['bmi', 'bp']
    >>> print(summary)
    LANAMRegressor fitted to 442 rows of 2 columns: 2 of 2 terms active
    log evidence ..., noise sd ..., converged after ... iterations
    intercept 152.1, in-sample R2 0...
    importance: mean absolute contribution in the target's unit
    <BLANKLINE>
    term  kind    importance  +/- 2 sd  edf  log evidence gain  status
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
        cells, below = self._screen()
        return printable("\n".join([*self._headlines(), "", *_table_lines(cells), *below]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        cells, below = self._screen()
        lines = "<br>".join(html.escape(line) for line in self._headlines())
        text = html.escape("\n".join(below))
        return f"<p>{lines}</p>{html_table(cells)}<pre>{text}</pre>"

    def _screen(self) -> tuple[list[tuple[str, ...]], list[str]]:
        """The table and the lines below it, such that all lines have room on a screen."""
        apart = self._dropped_apart(_MAX_DROPPED)
        if max(map(len, _table_lines(self._cells(apart)))) > WIDTH:
            apart = self._dropped_apart(0)
        cells = self._cells(apart)
        below = [*self._dropped_lines(apart), *self._edit_lines()]
        n_terms, n_pairs = len(cells) - 1, min(len(self.interactions), _MAX_PAIRS)
        # Without the table's header, empty lines, the head of the pairs, and what is not shown.
        room = _MAX_LINES - len(self._headlines()) - len(below) - 6
        n_pairs = max(min(n_pairs, room - n_terms), min(n_pairs, _LEAST_PAIRS))
        shown = max(room - n_pairs, _LEAST_TERMS)
        more = [f"... and {n_terms - shown} more (to_frame() has all)"] if n_terms > shown else []
        return cells[: shown + 1], [*more, *below, *self._pair_lines(n_pairs)]

    def _dropped_apart(self, most: int) -> dict[str, list[dict[str, Any]]]:
        """Dropped terms by status, if more than ``most`` have it: they have a common line."""
        statuses = dict.fromkeys(row["status"] for row in self.rows if row["status"] != ACTIVE)
        groups = {
            status: [row for row in self.rows if row["status"] == status] for status in statuses
        }
        return {status: rows for status, rows in groups.items() if len(rows) > most}

    def _dropped_lines(self, apart: Mapping[str, list[dict[str, Any]]]) -> list[str]:
        """Dropped terms without a row of their own, when a term is dropped, and close calls."""
        lines = []
        for status, rows in apart.items():
            largest = max(row["evidence"] for row in rows)
            shown = status == UNSUPPORTED and largest == largest
            gain = f" (log evidence gain at most {_gain(largest)})" if shown else ""
            names = few_in(cut([row["term"] for row in rows], _MAX_NAME), _ROOM_FOR_NAMES)
            terms = "1 term" if len(rows) == 1 else f"{len(rows)} terms"
            lines += _wrapped(f"{terms} {status}{gain}:", names)
        lines += self._threshold_lines()
        if close := self.facts["close_calls"]:
            names = few_in(cut(close, _MAX_NAME), _ROOM_FOR_NAMES)
            lines += _wrapped("close calls, decided by less than one nat:", names)
        return ["", *lines] if lines else []

    def _threshold_lines(self) -> list[str]:
        """The log evidence gains by which terms were kept or dropped."""
        lines = []
        if thresholds := self.facts["column_thresholds"]:
            usual, negligible = thresholds
            lines.append(
                f"threshold of a column: a log evidence gain of {usual:g}, or of {negligible:g} if its "
                "effect is negligible"
            )
        if thresholds := self.facts["interaction_thresholds"]:
            ends = " to ".join(dict.fromkeys(f"{end:.1f}" for end in thresholds))
            lines.append(f"threshold of an interaction: a log evidence gain of {ends}")
        return lines

    def _edit_lines(self) -> list[str]:
        """The edits, in order."""
        if not self.edits:
            return []
        plural = "s" if len(self.edits) > 1 else ""
        head = (
            f"{len(self.edits)} edit{plural} after the fit (edf, log evidence gain and in-sample fit as "
            "fitted):"
        )
        first = len(self.edits) - _MAX_EDITS
        lines = ["", head, *([f"  {first} earlier ones (edits_ has all)"] if first > 0 else [])]
        shown = self.edits[max(first, 0) :]
        lines += [f"  {_edit_line(record)}" for record in shown]
        noise = [name for fact, name in _NOISE.items() if self.facts[fact] is not None]
        return lines + [
            f"{name} as fitted: prediction intervals ignore the edits, so calibrate on held-out rows"
            for name in noise
        ]

    def _pair_lines(self, most: int) -> list[str]:
        """Pairs with their scores and statuses, best first."""
        scores = self.interactions
        if not len(scores):
            return []
        score = "screening score" if scores.score == "evidence" else scores.score
        plural = "s" if len(scores) > 1 else ""
        kind = "" if scores.of_order(3) else "pairwise "
        head = f"{len(scores)} {kind}interaction{plural} by {score}, {len(scores.active)} active:"
        return ["", head, *scores.lines(most)]

    def _headlines(self) -> list[str]:
        facts = self.facts
        ended = "converged" if facts["converged"] else "NOT converged"
        parts = [f"log evidence {facts['log_evidence']:.1f}"]
        if facts["noise_std"] is not None:
            parts.append(f"{_NOISE['noise_std']} {facts['noise_std']:.4g}{self._noise_words()}")
        if facts["dispersion"] is not None:
            parts.append(f"{_NOISE['dispersion']} {facts['dispersion']:.3g}")
        parts += [f"{name} {value:.3g}" for name, value in facts["parameters"].items()]
        parts.append(f"{ended} after {facts['n_iter']} iterations")
        fit = [] if facts["deviance_explained"] is None else [fit_words(facts)]
        lines = [
            f"{facts['estimator']} fitted to {facts['n_rows']} rows of {facts['n_columns']} columns"
            f"{self._peculiarities()}: {facts['n_active']} of {facts['n_terms']} terms active",
            ", ".join(parts),
            *self._class_lines(),
            ", ".join([intercept_words(facts), *fit]),
            *facts["cautions"],
            *([facts["family"]] if facts["family"] else []),
            *([facts["better_family"]] if facts["better_family"] else []),
            *_hazards_words(facts.get("proportional_hazards")),
            f"importance: mean absolute contribution {facts['unit']}",
            *([_MISSINGNESS_KEY] if self._splits_importance() else []),
        ]
        return [part for line in lines for part in _wrapped_words(line)]

    def _splits_importance(self) -> bool:
        """Whether some importance is due to missing values."""
        return any(row["importance_of_missingness"] > 0.0 for row in self.rows)

    def _noise_words(self) -> str:
        """The columns of heteroscedastic noise, and the residual distribution if it is not Gaussian."""
        names = [shorten(name, _MAX_NAME) for name in self.facts["noise_columns"]]
        parts = [f"depends on {few(names, _MAX_COLUMNS)}"] if names else []
        if self.facts["noise_skewness"] is not None:
            parts.append(shape_words(self.facts))
        return f" ({'; '.join(parts)})" if parts else ""

    def _peculiarities(self) -> str:
        """The numbers of categorical columns, and of those with missing values."""
        counts = {"categorical": "n_categorical", "with missing values": "n_with_missing"}
        parts = [f"{self.facts[key]} {what}" for what, key in counts.items() if self.facts[key]]
        return f" ({', '.join(parts)})" if parts else ""

    def _class_lines(self) -> list[str]:
        """The classes, if there are more than two, or if they are numbers in quotes."""
        classes = self.facts["classes"] or ()
        if _numerals(classes):
            names = few([repr(shorten(name, _MAX_NAME)) for name in classes], _MAX_CLASSES)
            return [f"{len(classes)} classes: {names} (strings in alphabetical order, not numbers)"]
        if len(classes) <= 2:
            return []
        names = few([shorten(str(name), _MAX_NAME) for name in classes], _MAX_CLASSES)
        return [f"{len(classes)} classes: {names}"]

    def _cells(self, below: Collection[str]) -> list[tuple[str, ...]]:
        """The table without terms of a status that is listed ``below``."""
        table: list[tuple[str, ...]] = [_HEADERS]
        form = number_format(max((row["importance"] for row in self.rows), default=0.0), 3)
        for row in self.rows:
            if row["status"] in below:
                continue
            name = row["term"]
            dropped = row["status"] != ACTIVE
            table.append(
                (
                    name,
                    row["kind"],
                    "-" if dropped else format(row["importance"], form),
                    "-" if dropped else format(row["importance_band"], form),
                    "-" if dropped else f"{row['effective_parameters']:.1f}",
                    "-" if np.isnan(row["evidence"]) else _gain(row["evidence"]),
                    row["status"] + (", edited" if row["edited"] else ""),
                )
            )
        if self._splits_importance():
            shares = [missingness_share(row) for row in self.rows if row["status"] not in below]
            column = [_MISSINGNESS, *shares]
            table = [(*row[:4], share, *row[4:]) for row, share in zip(table, column, strict=True)]
        return narrowed(table, _LEAST_NAME, _MAX_NAME)


def _hazards_words(tested: Mapping[str, str] | None) -> list[str]:
    """The test of proportional hazards, by the status of each column's interaction with time."""
    if not tested:
        return []
    changing = [shorten(name, _MAX_NAME) for name, status in tested.items() if status == ACTIVE]
    if not changing:
        return [f"proportional hazards: no effect of {len(tested)} columns changes with time"]
    return [
        f"hazards are not proportional: effects change with time for {few(changing, _MAX_COLUMNS)}"
    ]


def _table_lines(cells: Sequence[tuple[str, ...]]) -> list[str]:
    return aligned(cells, words=(0, 1, len(cells[0]) - 1))


def missingness_share(row: Mapping[str, Any]) -> str:
    """The share of a term's importance that is due to missing values, in words."""
    part = row["importance_of_missingness"]
    return f"{part / row['importance']:.0%}" if part > 0.0 else "-"


def _numerals(classes: Sequence[Any]) -> bool:
    """Whether the labels are strings that look like numbers, as ``y.astype(str)`` makes them."""
    return bool(classes) and all(
        isinstance(name, str) and name.strip().lstrip("+-").replace(".", "", 1).isdigit()
        for name in classes
    )


def _edit_line(record: Edit) -> str:
    """An edit in one line, with day and author if there is room for both."""
    words = signed_words(record)
    return shorten(words if len(words) <= WIDTH - 2 else edit_words(record), WIDTH - 2)


def _wrapped(head: str, names: str) -> list[str]:
    """A head and a list of names in lines that end between names."""
    whole = names.replace(", ", "\n").replace(" ", "\0").replace("\n", ", ")
    lines = textwrap.wrap(
        f"{head} {whole}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _wrapped_words(sentences: str) -> list[str]:
    return textwrap.wrap(sentences, WIDTH, subsequent_indent="  ", break_long_words=False)


def _gain(evidence: float) -> str:
    return f"{round(evidence, 1) + 0.0:.1f}"


def intercept_words(facts: Mapping[str, Any]) -> str:
    """The intercept, or those of the first classes."""
    intercepts = facts["intercept"]
    if not isinstance(intercepts, list):
        return f"intercept {intercepts:.4g}"
    return f"intercepts {few([f'{each:.3g}' for each in intercepts], _MAX_CLASSES)}"


def fit_words(facts: Mapping[str, Any]) -> str:
    """The goodness of fit, which is in-sample."""
    explained = facts["deviance_explained"]
    if facts["noise_std"] is not None:
        return f"in-sample R2 {explained:.3f}"
    return f"in-sample deviance explained {explained:.1%}"


def _deviance_explained(model: FittedModel) -> float | None:
    """As of the end of the fit; older files have none."""
    explained = model.history[-1].get("deviance_explained") if model.history else None
    return explained if isinstance(explained, float) else None


def _close_calls(model: FittedModel) -> list[str]:
    """Names of terms; older files have none."""
    return [str(name) for name in model.history[-1].get("close_calls", [])] if model.history else []


def _column_thresholds(model: FittedModel, n_rows: int) -> tuple[float, float] | None:
    """Least log evidence gains of a column, and of a negligible one; None if trained networks decided."""
    if model.history and model.history[-1].get("stage") == "adam":
        return None
    usable = [term for term in model.terms if not term.joint and term.entries is not None]
    n_columns = len({term.features for term in usable})
    # The next one beside those that are active.
    left = range(1 + len({term.features for term in usable if term.active}))
    usual = round(column_threshold(n_columns, n_rows)(0, left), 1)
    return usual, max(usual, MIN_LOG_EVIDENCE_GAIN)


def _interaction_thresholds(model: FittedModel) -> list[float] | None:
    """The lowest and the highest log evidence gain that was asked of an interaction; None if none was."""
    found: Any = model.history[-1].get("interaction_thresholds") if model.history else None
    return found or None


def _better_family(model: FittedModel) -> str | None:
    """A remark on a family that describes the target better than the Gaussian; None if there is none."""
    last = model.history[-1] if model.history else {}
    if "better_family" not in last:
        return None
    return (
        f"remark: likelihood={last['better_family']!r} describes a sample of these rows better, by "
        f"{last['better_by']:.0f} nats"
    )


def shape_words(facts: Mapping[str, Any]) -> str:
    """How a residual distribution differs from a Gaussian.

    Examples
    --------
    >>> shape_words({"noise_skewness": -1.2, "noise_excess_kurtosis": 4.0})
    'not Gaussian: skewed to smaller values, heavy tails'
    >>> shape_words({"noise_skewness": 0.1, "noise_excess_kurtosis": 0.2})
    'not Gaussian'
    """
    skewness, kurtosis = facts["noise_skewness"], facts["noise_excess_kurtosis"]
    parts = []
    if abs(skewness) >= _NOTABLE:
        parts.append(f"skewed to {'larger' if skewness > 0.0 else 'smaller'} values")
    if abs(kurtosis) >= _NOTABLE:
        parts.append(f"{'heavy' if kurtosis > 0.0 else 'light'} tails")
    return "not Gaussian" + (f": {', '.join(parts)}" if parts else "")


def _noise_columns(model: FittedModel, schema: Schema) -> list[str]:
    """The columns of heteroscedastic noise, the most important first."""
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
    family_scores: FamilyScores | None = None,
) -> Summary:
    """The summary of a fitted model."""
    bands = [2.0 * importance_std(model, index) for index in range(len(model.terms))]
    rows: list[dict[str, Any]] = [
        {
            "term": term.name,
            "kind": term.kind,
            "importance": term.importance,
            "importance_band": band,
            "importance_of_missingness": term.importance_of_missingness,
            "effective_parameters": term.effective_parameters,
            "evidence": term.evidence,
            "status": term.status,
            "edited": term.was_edited,
        }
        for term, band in zip(describe_terms(model, schema), bands, strict=True)
    ]
    rows.sort(key=lambda row: (row["status"] != ACTIVE, -row["importance"]))
    family = find_family(model.likelihood)
    names = class_labels(model, classes)
    labels = None if names is None else [shorten(str(name), _MAX_NAME) for name in names]
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
        "parameters": family.shown_parameters(model),
        "family": None if family_scores is None else family_scores.words(),
        "better_family": _better_family(model),
        "deviance_explained": _deviance_explained(model),
        "intercept": plain(model.intercept),
        "unit": family.words.adds_to(labels),
        "column_thresholds": _column_thresholds(model, n_rows),
        "interaction_thresholds": _interaction_thresholds(model),
        "classes": names,
        "n_iter": model.n_iter,
        "converged": model.converged,
        "cautions": [visible(str(caution)) for caution in cautions(model, schema)],
        "close_calls": _close_calls(model),
    }
    return Summary(tuple(rows), facts, interactions, schema.backend, edits)
