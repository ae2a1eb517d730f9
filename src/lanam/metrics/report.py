"""CoverageReport: nominal against observed coverage, with scores."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from lanam.data import make_frame
from lanam.explain.values import PlainData
from lanam.metrics.curves import CalibrationCurve, RetentionCurve
from lanam.metrics.performance import Performance
from lanam.text import aligned, html_table, number_format, printable

#: The coverage of the verdict, or else the closest one.
_HEADLINE_COVERAGE = 0.95

#: The column of ranges, and the name and the meaning of the limits of calibration errors.
_RANGE = "95% range if calibrated"
_LIMIT = "95% limit if calibrated"
_LIMIT_NOTE = "Of calibrated models, 95% have a smaller calibration error on as many rows."
_LIMIT_KEY = "_by_chance"

#: Titles of the tables.
_TITLES = {"intervals": ("Prediction intervals",), "classes": ("Probabilities", "Prediction sets")}

#: Printed names of scores.
_NAMES = {
    "nll": "negative log likelihood",
    "rmse": "RMSE",
    "crps": "CRPS",
    "quantile_calibration_error": "quantile calibration error",
    "skce": "squared kernel calibration error",
    "accuracy": "accuracy",
    "root_brier_score": "root Brier score",
    "calibration_error": "expected calibration error",
    "calibration_error_by_chance": _LIMIT,
    "quantile_calibration_error_by_chance": _LIMIT,
    "skce_by_chance": _LIMIT,
}

#: Scores that are figures of the performance, by another name: these are printed once.
_FIGURES = {"accuracy": "accuracy", "rmse": "rmse", "root_brier_score": "brier_score"}
_FIGURES_OF_CLASSES = {"nll": "log_loss"}

#: Family-wise significance level for the other coverages.
_SIGNIFICANCE = 0.05

#: A record of a nominal coverage or of a bin; :class:`CoverageReport` documents the keys.
Record = TypedDict(
    "Record",
    {
        "from": float,
        "to": float,
        "probability": float,
        "n_rows": float,
        "level": float,
        "expected": float,
        "observed": float,
        "lowest": float,
        "highest": float,
        "chance": float,
        "size": float,
        "calibrated_observed": float | None,
        "calibrated_lowest": float | None,
        "calibrated_highest": float | None,
        "calibrated_size": float | None,
    },
    total=False,
)


@dataclass(frozen=True, eq=False)
class CoverageReport(PlainData):
    """Nominal against observed coverage of a model, as a table that prints and as data.

    Attributes
    ----------
    kind
        ``"intervals"`` (of a regressor) or ``"classes"``.
    rows
        For intervals, one record per nominal coverage; for classes, one per bin of probabilities, with the
        keys ``from``, ``to``, ``probability`` (mean), ``observed`` (fraction of the second class or, with
        more than two classes, of correct top labels), ``lowest`` and ``highest`` (95% range if calibrated)
        and ``n_rows``.
    sets
        For classes, one record per nominal coverage of :meth:`lanam.LANAMClassifier.predict_set`.
    scores
        Scores by name: ``nll`` and, for regression, ``rmse``, ``crps``, ``quantile_calibration_error`` and
        ``skce`` (for counts neither ``crps`` nor ``skce``); for classes ``accuracy``, ``root_brier_score``
        and ``calibration_error``. Those that end in ``_by_chance`` are what 95% of calibrated models do not
        exceed on as many rows.
    curve
        The calibration curve of probabilities or of quantiles.
    retention
        Accuracy or RMSE by the fraction of rows retained.
    n_rows
        Number of rows.
    estimator
        Class of the model.
    performance
        AUROC, RMSE, A/E and the like, with confidence intervals: ``report.performance["auroc"]``.
    n_groups, n_effective
        With ``groups``, their number, and the number of independent rows that the rows count as in ranges
        under calibration; else None.

    Notes
    -----
    A record of a nominal coverage has the keys ``level`` (the coverage), ``expected`` (the coverage that
    the model predicts, which for counts and classes exceeds the nominal one), ``observed``, ``lowest``
    and ``highest`` (95% range if calibrated), ``chance`` (p-value of the observed coverage) and ``size``
    (mean width, or mean number of classes). After ``calibrate`` there are also ``calibrated_observed``,
    ``calibrated_lowest``, ``calibrated_highest`` and ``calibrated_size``, None if there were too few
    held-out rows for the coverage.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor, coverage_report
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LANAMRegressor(random_state=0).fit(X[:300], y[:300])
    >>> print(coverage_report(model, X[300:], y[300:], levels=(0.8, 0.95)))
    LANAMRegressor evaluated on 142 rows
    95% intervals: coverage ...% on 142 rows, within the 95% range if calibrated (90.8% to 97.9%)
    <BLANKLINE>
    figure  value    95% interval  reference
    R2      0.5...  0.3... to 0.6...  0 (mean)
    RMSE    ...
    MAE     ...
    <BLANKLINE>
    Prediction intervals:
    nominal  observed  95% range if calibrated  mean width
        80%     ...%           73.2% to 86.6%         ...
        95%     ...%           90.8% to 97.9%         ...
    <BLANKLINE>
    negative log likelihood ...
    """

    kind: str
    rows: tuple[Record, ...]
    sets: tuple[Record, ...]
    scores: dict[str, float]
    curve: CalibrationCurve
    retention: RetentionCurve
    n_rows: int
    estimator: str
    performance: Performance
    n_groups: int | None = None
    n_effective: float | None = None

    @property
    def calibrated(self) -> bool:
        """Whether the model was calibrated on held-out rows."""
        return any("calibrated_observed" in row for row in self.rows + self.sets)

    @property
    def verdict(self) -> str:
        """The report in a sentence, or two after ``calibrate``."""
        return "; ".join(self._verdicts())

    def _verdicts(self) -> list[str]:
        intervals = self.kind == "intervals"
        records = self.rows if intervals else self.sets
        if intervals:
            headline = _headline(records)
            verdicts = [self._verdict_of(headline, "intervals"), *_significant(headline, records)]
        else:
            error, limit = (self.scores[f"calibration_error{end}"] for end in ("", _LIMIT_KEY))
            word = "below" if error <= limit else "above"
            verdicts = [
                f"expected calibration error {error:.1%} on {self.n_rows} rows, {word} the {_LIMIT} "
                f"({limit:.1%})"
            ]
        calibrated = [record for record in map(_calibrated, records) if record is not None]
        if calibrated:
            kind = "calibrated intervals" if intervals else "calibrated sets"
            verdicts.append(self._verdict_of(_headline(calibrated), kind))
        return verdicts

    def _verdict_of(self, row: Record, kind: str) -> str:
        observed, lowest, highest = row["observed"], row["lowest"], row["highest"]
        word = "below" if observed < lowest else "above" if observed > highest else "within"
        return (
            f"{_percent(row)} {kind}: coverage {observed:.1%} on {self.n_rows} rows, {word} the {_RANGE} "
            f"({lowest:.1%} to {highest:.1%})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON."""
        return super().to_dict() | {"verdict": self.verdict}

    def to_frame(self, backend: str | None = None) -> Any:
        """The records in ``rows`` as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
        rows: list[dict[str, object]] = [dict(row) for row in self.rows]
        columns = {
            key: [math.nan if row[key] is None else row[key] for row in rows] for key in rows[0]
        }
        return make_frame(columns, backend)

    def __str__(self) -> str:
        parts = [self._headlines(), [str(self.performance)]]
        titled = zip(self.titles(), self.tables(), strict=True)
        parts += [[f"{title}:", *aligned(table)] for title, table in titled]
        parts.append(self._score_lines())
        return printable("\n\n".join("\n".join(part) for part in parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report for notebooks."""
        first, last = (
            "<br>".join(html.escape(line) for line in lines)
            for lines in (self._headlines(), self._score_lines())
        )
        titled = zip(self.titles(), self.tables(), strict=True)
        tables = "".join(f"<p>{title}:</p>{html_table(table)}" for title, table in titled)
        figures = html_table(self.performance.table())
        return f"<p>{first}</p>{figures}{tables}<p>{last}</p>"

    def _headlines(self) -> list[str]:
        evaluated = f"{self.estimator} evaluated on {self.n_rows} rows"
        if self.n_groups is not None:
            evaluated += f" of {self.n_groups} groups, which count as {self.n_effective:.0f} rows"
        return [evaluated, *self._verdicts()]

    def _score_lines(self) -> list[str]:
        """A line for each score, with its limit if it has one."""
        lines: list[str] = []
        for name, score in self.named_scores():
            if name == _LIMIT:
                lines[-1] += f" ({name}: {score})"
            else:
                lines.append(f"{name} {score}")
        limited = any(key.endswith(_LIMIT_KEY) for key in self.scores)
        return lines + ([_LIMIT_NOTE] if limited else [])

    def named_scores(self) -> list[tuple[str, str]]:
        """The scores that are not among the figures of the performance, with their printed names."""
        same = _FIGURES | (_FIGURES_OF_CLASSES if self.kind == "classes" else {})
        return [
            (_NAMES[name], f"{score:.4g}")
            for name, score in self.scores.items()
            if same.get(name) not in self.performance
        ]

    def titles(self) -> tuple[str, ...]:
        """The titles of the tables."""
        return _TITLES[self.kind][: len(self.tables())]

    def tables(self) -> list[list[tuple[str, ...]]]:
        """The tables as strings: a header, then cells."""
        if self.kind == "intervals":
            return [self._level_cells(self.rows, "mean width", 4)]
        tables = [self._bin_cells()]
        return tables + ([self._level_cells(self.sets, "mean size", 3)] if self.sets else [])

    def _level_cells(self, rows: Sequence[Record], size: str, digits: int) -> list[tuple[str, ...]]:
        # Discrete distributions exceed the nominal coverage: show the predicted one.
        wider = any(row["expected"] > row["level"] + 0.0005 for row in rows)
        calibrated = "calibrated_observed" in rows[0]
        sizes = [each["size"] for row in rows for each in (row, _calibrated(row)) if each]
        form = number_format(max(sizes, default=0.0), digits)
        head = ["nominal", *(["expected"] if wider else []), "observed", _RANGE, size]
        table = [(*head, *(["calibrated", _RANGE, size] if calibrated else []))]
        for row in rows:
            expected = [f"{row['expected']:.1%}"] if wider else []
            further = _coverage_cells(_calibrated(row), form) if calibrated else ()
            table.append((_percent(row), *expected, *_coverage_cells(row, form), *further))
        return table

    def _bin_cells(self) -> list[tuple[str, ...]]:
        head = ("bin", "mean probability", "observed", _RANGE, "rows")
        cells = [
            (
                f"{row['from']:.1f} to {row['to']:.1f}",
                f"{row['probability']:.1%}",
                *_observed_cells(row),
                f"{row['n_rows']:g}",
            )
            for row in self.rows
        ]
        return [head, *cells]


def _percent(row: Record) -> str:
    return f"{round(100.0 * row['level'], 4):g}%"


def _headline(rows: Sequence[Record]) -> Record:
    """The record of the verdict."""
    return min(rows, key=lambda row: abs(row["level"] - _HEADLINE_COVERAGE))


def _significant(headline: Record, rows: Sequence[Record]) -> list[str]:
    """The other nominal coverages that differ significantly, with the correction of Holm (1979)."""
    others = sorted((row for row in rows if row is not headline), key=lambda row: row["chance"])
    rejected = []
    for k, row in enumerate(others):
        if row["chance"] > _SIGNIFICANCE / (len(others) - k):
            break
        rejected.append(row)
    nominal = ", ".join(_percent(row) for row in sorted(rejected, key=rows.index))
    return [f"coverage at {nominal} differs significantly (Holm)"] if nominal else []


def _calibrated(row: Record) -> Record | None:
    """The record of the calibrated intervals or sets; None if there are none."""
    facts: dict[str, object] = dict(row)
    if facts.get("calibrated_observed") is None:
        return None
    keys = ("observed", "lowest", "highest", "size")
    return cast(Record, {"level": row["level"]} | {key: facts["calibrated_" + key] for key in keys})


def _observed_cells(row: Record) -> tuple[str, str]:
    """Observed fraction, and its range under calibration."""
    return f"{row['observed']:.1%}", f"{row['lowest']:.1%} to {row['highest']:.1%}"


def _coverage_cells(row: Record | None, form: str) -> tuple[str, str, str]:
    return (*_observed_cells(row), format(row["size"], form)) if row else ("too few rows", "-", "-")
