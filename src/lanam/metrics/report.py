"""CoverageReport: nominal against observed, as a table that prints itself."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from lanam.data import make_frame
from lanam.explain.values import PlainData
from lanam.metrics.curves import CalibrationCurve, RetentionCurve
from lanam.text import aligned, html_table, number_format

#: The level that is spoken of, or else the one next to it.
_SPOKEN_LEVEL = 0.95

#: What stands below a score that chance alone makes larger than zero.
_CALIBRATED = "that of a calibrated model, 95 times of 100 at most"

#: How scores are called in print.
_NAMES = {
    "nll": "negative log likelihood",
    "rmse": "RMSE",
    "crps": "CRPS",
    "quantile_calibration_error": "quantile calibration error",
    "skce": "squared kernel calibration error",
    "accuracy": "accuracy",
    "root_brier_score": "root Brier score",
    "calibration_error": "expected calibration error",
    "calibration_error_by_chance": _CALIBRATED,
    "quantile_calibration_error_by_chance": _CALIBRATED,
    "skce_by_chance": _CALIBRATED,
}

#: How improbable must be what other levels hold, all of them taken together, to be spoken of.
_IMPROBABLE = 0.05

#: What is known of a level or of a bin; see :class:`CoverageReport` for which has what.
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
    """Nominal against observed coverage of a model: print it, or take it as data.

    Attributes
    ----------
    kind
        ``"intervals"`` (of a regressor) or ``"classes"``.
    rows
        Of intervals, one record a level; of classes, one record a bin of probabilities, with the keys
        ``from``, ``to``, ``probability`` (their mean), ``observed`` (the share of rows that were of
        the second class; of more than two classes, of which the most probable one was right),
        ``lowest`` and ``highest`` (between which chance keeps that share) and ``n_rows``.
    sets
        Of classes, one record a level for :meth:`lanam.LANAMClassifier.predict_set`.
    scores
        Scores by name: ``nll`` and, of numbers, ``rmse``, ``crps``, ``quantile_calibration_error`` and
        ``skce`` (of counts neither ``crps`` nor ``skce``); of classes ``accuracy``,
        ``root_brier_score`` and ``calibration_error``. Below that with ``_by_chance`` at its end an error
        of a calibrated model stays in 95 of 100 cases.
    curve
        Its picture: predicted probabilities, or quantiles' levels, against what was seen.
    retention
        Accuracy or RMSE on the rows of which the model is most certain.
    n_rows
        How many rows there were.
    estimator
        Whose report it is.

    Notes
    -----
    A record of a level has the keys ``level``, ``expected`` (what the model itself says that its
    intervals or sets hold: of counts and classes more than the level), ``observed``, ``lowest`` and
    ``highest`` (between which chance keeps the observed share of a calibrated model, 95 times of 100),
    ``chance`` (how probable it is that the share of a calibrated model is as far off as this one),
    and ``size`` (mean width, or mean number of classes). All of that is the model's own. After
    ``calibrate`` there are ``calibrated_observed``, ``calibrated_lowest``, ``calibrated_highest`` and
    ``calibrated_size`` as well, None where there were too few rows for the level.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor, coverage_report
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LANAMRegressor(random_state=0).fit(X[:300], y[:300])
    >>> print(coverage_report(model, X[300:], y[300:], levels=(0.8, 0.95)))
    LANAMRegressor on 142 rows
    95% intervals hold ...% of 142 rows: within what chance allows (90.8% to 97.9%)
    <BLANKLINE>
    level  observed       by chance  mean width
      80%     ...%  73.2% to 86.6%         ...
      95%     ...%  90.8% to 97.9%         ...
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

    @property
    def calibrated(self) -> bool:
        """Whether the model was calibrated by held-out rows."""
        return any("calibrated_observed" in row for row in self.rows + self.sets)

    @property
    def verdict(self) -> str:
        """The report in a sentence, or two after ``calibrate``."""
        return "; ".join(self._verdicts())

    def _verdicts(self) -> list[str]:
        own = self.kind == "intervals"
        told = [] if own else [self._verdict_of_probabilities()]
        rows = self.rows if own else self.sets
        if own:
            told += [self._verdict_of(_spoken(rows), ""), *_others(_spoken(rows), rows)]
        mended = [own for own in map(_calibrated, rows) if own is not None]
        if mended:
            told.append(self._verdict_of(_spoken(mended), "calibrated "))
        return told

    def _verdict_of(self, row: Record, which: str) -> str:
        observed, lowest, highest = row["observed"], row["lowest"], row["highest"]
        what = which + ("intervals" if self.kind == "intervals" else "sets")
        if observed < lowest:
            word = "fewer than chance allows"
        elif observed > highest:
            # Calibrated ones promise a least share; tied scores and sure classes make it more.
            word = "more than was asked for" if which else "more than chance allows"
        else:
            word = "within what chance allows"
        return (
            f"{_level(row)} {what} hold {observed:.1%} of {self.n_rows} rows: {word} "
            f"({lowest:.1%} to {highest:.1%})"
        )

    def _verdict_of_probabilities(self) -> str:
        error = self.scores["calibration_error"]
        most = self.scores["calibration_error_by_chance"]
        word = "within what" if error <= most else "more than"
        return (
            f"probabilities are {error:.1%} off on average: {word} chance gives a calibrated model "
            f"on {self.n_rows} rows (up to {most:.1%})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON."""
        return super().to_dict() | {"verdict": self.verdict}

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a frame of ``backend`` ("pandas", "polars", "pyarrow"): one a level, or a bin."""
        rows: list[dict[str, object]] = [dict(row) for row in self.rows]
        columns = {
            key: [math.nan if row[key] is None else row[key] for row in rows] for key in rows[0]
        }
        return make_frame(columns, backend)

    def __str__(self) -> str:
        parts = [self._headlines()]
        parts += [aligned(table) for table in self.tables()]
        parts.append(self._score_lines())
        return "\n\n".join("\n".join(part) for part in parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report for notebooks."""
        first, last = (
            "<br>".join(html.escape(line) for line in lines)
            for lines in (self._headlines(), self._score_lines())
        )
        tables = "".join(map(html_table, self.tables()))
        return f"<p>{first}</p>{tables}<p>{last}</p>"

    def _headlines(self) -> list[str]:
        return [f"{self.estimator} on {self.n_rows} rows", *self._verdicts()]

    def _score_lines(self) -> list[str]:
        return [f"{name} {score}" for name, score in self.named_scores()]

    def named_scores(self) -> list[tuple[str, str]]:
        """The scores as they are printed."""
        return [(_NAMES[name], f"{score:.4g}") for name, score in self.scores.items()]

    def tables(self) -> list[list[tuple[str, ...]]]:
        """The tables as they are printed: a line of names, then cells."""
        if self.kind == "intervals":
            return [self._level_cells(self.rows, "mean width", 4)]
        tables = [self._bin_cells()]
        return tables + ([self._level_cells(self.sets, "mean size", 3)] if self.sets else [])

    def _level_cells(self, rows: Sequence[Record], size: str, digits: int) -> list[tuple[str, ...]]:
        # Where intervals hold more than their level by design, say what they should hold.
        wider = any(row["expected"] > row["level"] + 0.0005 for row in rows)
        calibrated = "calibrated_observed" in rows[0]
        sizes = [each["size"] for row in rows for each in (row, _calibrated(row)) if each]
        form = number_format(max(sizes, default=0.0), digits)
        head = ["level", *(["expected"] if wider else []), "observed", "by chance", size]
        table = [(*head, *(["calibrated", "by chance", size] if calibrated else []))]
        for row in rows:
            expected = [f"{row['expected']:.1%}"] if wider else []
            mended = _held_cells(_calibrated(row), form) if calibrated else ()
            table.append((_level(row), *expected, *_held_cells(row, form), *mended))
        return table

    def _bin_cells(self) -> list[tuple[str, ...]]:
        head = ("bin", "mean probability", "observed", "by chance", "rows")
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


def _level(row: Record) -> str:
    return f"{round(100.0 * row['level'], 4):g}%"


def _spoken(rows: Sequence[Record]) -> Record:
    """The level that is spoken of."""
    return min(rows, key=lambda row: abs(row["level"] - _SPOKEN_LEVEL))


def _others(spoken: Record, rows: Sequence[Record]) -> list[str]:
    """Which other levels chance does not explain, if any.

    Of many levels one is off by chance more often than one alone. By the rule of Holm (1979) a calibrated
    model is told of any at all five times of 100 at most, however the levels depend on each other.
    """
    others = sorted((row for row in rows if row is not spoken), key=lambda row: row["chance"])
    strange = []
    for k, row in enumerate(others):
        if row["chance"] > _IMPROBABLE / (len(others) - k):
            break
        strange.append(row)
    levels = ", ".join(_level(row) for row in sorted(strange, key=rows.index))
    return [f"chance does not explain what those of {levels} hold"] if levels else []


def _calibrated(row: Record) -> Record | None:
    """What a level's calibrated intervals or sets hold; None where there are none, for want of rows."""
    facts: dict[str, object] = dict(row)
    if facts.get("calibrated_observed") is None:
        return None
    keys = ("observed", "lowest", "highest", "size")
    return cast(Record, {"level": row["level"]} | {key: facts["calibrated_" + key] for key in keys})


def _observed_cells(row: Record) -> tuple[str, str]:
    """What was observed, and what chance allows."""
    return f"{row['observed']:.1%}", f"{row['lowest']:.1%} to {row['highest']:.1%}"


def _held_cells(row: Record | None, form: str) -> tuple[str, str, str]:
    return (*_observed_cells(row), format(row["size"], form)) if row else ("too few rows", "-", "-")
