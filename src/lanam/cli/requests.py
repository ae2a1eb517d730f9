"""The options of each command: a class per command, a field per option, with its help text.

The docstring of a class is its command's help text; fields are named after the library's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, TypeVar, cast, get_type_hints

import typer

from lanam.parameters import DEFAULTS

if TYPE_CHECKING:
    from lanam.engines.dialects import Dialect

T = TypeVar("T")
_Check = Callable[[float | None], float | None]

#: Bytes of a file that are read at once.
BLOCK_SIZE = 1 << 20
_MAX_BLOCK_SIZE = 1 << 30  # Arrow counts them with 32 bits

TaskName = StrEnum("TaskName", ["regression", "classification", "counts"])
#: As ``lanam.families`` has them, which ``lanam --help`` does not load.
LikelihoodName = StrEnum(
    "LikelihoodName",
    "auto gaussian lognormal student gamma tweedie poisson negative_binomial binomial ordinal",
)
Noise = StrEnum("Noise", ["auto", "constant"])
Form = StrEnum("Form", ["json", "csv", "sql", "onnx"])
Database = StrEnum("Database", ["sqlite", "duckdb", "standard"])


def _fraction(least: float, most: float) -> _Check:
    """A check of a fraction, which recognises percentages."""

    def check(value: float | None) -> float | None:
        if value is None or least <= value <= most:
            return value
        percent = 1.0 < value <= 100.0
        hint = f": use {value / 100:g} for {value:g}%" if percent else ""
        raise typer.BadParameter(f"{value:g} is not between {least:g} and {most:g}{hint}")

    return check


def _seconds(value: float | None) -> float | None:
    """A check of a number of seconds."""
    if value is None or 0.0 < value < float("inf"):
        return value
    raise typer.BadParameter(f"{value:g} is not a positive number of seconds")


_PROBABILITY = _fraction(0.001, 0.999)
_PART = _fraction(0.0, 0.9)


def _argument(metavar: str, text: str, *, needed: bool = True) -> str:
    """An argument: a field to ``dataclass``, its value to type checkers."""
    metadata = {"typer": typer.Argument(metavar=metavar, help=text)}
    return cast(str, field(metadata=metadata) if needed else field(default=None, metadata=metadata))


def _option(
    default: T,
    metavar: str | None,
    text: str,
    *names: str,
    least: int | None = None,
    most: int | None = None,
    check: _Check | None = None,
) -> T:
    """An option, named after its field unless names are given; without a default it is required."""
    option = typer.Option(*names, metavar=metavar, help=text, min=least, max=most, callback=check)
    return field(default=default, metadata={"typer": option, "names": names})


def _output(metavar: str, text: str) -> str:
    return _option(cast(str, MISSING), metavar, text, "--output", "-o")


def _flag(text: str, *names: str) -> bool:
    """A switch without a ``--no`` counterpart."""
    return _option(False, None, text, *names)


_MODEL = ("MODEL", "A model file, written by lanam fit.")
_TABLES = (
    "DATA",
    "A table: .csv (or .csv.gz), .parquet, - for CSV from stdin, or a folder or glob of files.",
)
_EXPOSURE = ("COLUMN", "Exposure of the counts: a column, or one number for all rows.")
_TRIALS = ("COLUMN", "Trials of the successes: a column, or one number for all rows.")
_OFFSET = ("COLUMN", "Offset on the scale of the link: a column, or one number for all rows.")
_CAUSE = ("CODE", "Of a survival model with competing risks, the cause.")
_COVERAGE = ("FRACTION", "Probability of the credible bands: 0.9 for 90%.")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of all commands."""

    force: bool = _flag("Overwrite existing files.", "--force")
    json: bool = _flag("Print one JSON document to standard output, and no text.", "--json")
    quiet: bool = _flag("Print nothing but errors.", "--quiet", "-q")

    @classmethod
    def signature(cls) -> Signature:
        """The options as typer reads them; those of the command itself come first."""
        hints, options = get_type_hints(cls), {option.name: option for option in fields(cls)}
        order = [name for kind in cls.__mro__ for name in vars(kind).get("__annotations__", ())]
        parameters = []
        for option in map(options.__getitem__, order):
            default = Parameter.empty if option.default is MISSING else option.default
            parameters.append(
                Parameter(
                    option.name,
                    Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=Annotated[hints[option.name], option.metadata["typer"]],
                )
            )
        return Signature(parameters)


@dataclass(frozen=True, kw_only=True)
class TableRequest(Request):
    """Options of commands that read tables: the dialect of CSV files."""

    delimiter: str | None = _option(
        None, "CHARACTER", "Separator of columns in CSV files; detected from the header by default."
    )
    decimal: str | None = _option(None, "CHARACTER", "Decimal separator of numbers in CSV files.")
    encoding: str | None = _option(None, "NAME", "Encoding of CSV files, such as latin-1.")
    missing: list[str] | None = _option(
        None, "WORD", "Marker of missing values in CSV files, besides the usual ones; repeatable."
    )

    def __post_init__(self) -> None:
        self.dialect  # noqa: B018 (checked before anything is read)

    @cached_property
    def dialect(self) -> Dialect:
        """How CSV files are written."""
        from lanam.engines.dialects import Dialect

        delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter)
        return Dialect(delimiter, self.decimal, self.encoding, tuple(self.missing or ()))


@dataclass(frozen=True, kw_only=True)
class FitRequest(TableRequest):
    """Fit a model to a table and write it to a file.

    Prints the terms with their importances, and accuracy and calibration on held-out rows.
    """

    data: str = _argument(*_TABLES)
    output: str = _output("MODEL", "The file to write.")
    target: str | None = _option(None, "COLUMN", "The column to predict.", "--target", "-t")
    task: TaskName | None = _option(
        None, None, "Type of the target; inferred from its values by default."
    )
    categorical_features: list[str] | None = _option(
        None,
        "COLUMNS",
        "Numeric columns to treat as categorical: a,b. String columns always are.",
        "--categorical",
    )
    drop: list[str] | None = _option(
        None, "COLUMNS", "Columns to leave out, such as identifiers: a,b."
    )
    sample_weight: str | None = _option(None, "COLUMN", "Column of sample weights.", "--weight")
    likelihood: LikelihoodName | None = _option(
        None,
        "NAME",
        f"Distribution of the target, by default that of --task: {', '.join(LikelihoodName)}.",
    )
    exposure: str | None = _option(None, "COLUMN", "Column of the exposure, with --task counts.")
    trials: str | None = _option(
        None, "COLUMN", "Column of the trials, with --likelihood binomial."
    )
    offset: str | None = _option(None, "COLUMN", "Column of the offset, a known part of the link.")
    tweedie_power: str = _option(
        DEFAULTS.tweedie_power, "POWER", "With --likelihood tweedie: auto, or a number such as 1.5."
    )
    time: str | None = _option(
        None, "COLUMN", "For survival, the column of the time of follow-up.", "--time"
    )
    event: str | None = _option(
        None,
        "COLUMN",
        "For survival, the column of the event: 0 is censored, other whole numbers are causes.",
        "--event",
    )
    entry: str | None = _option(
        None,
        "COLUMN",
        "For survival, the column of the time from which a row is at risk.",
        "--entry",
    )
    paper: bool = _flag(
        "Train networks by gradient descent, with all settings of the paper.", "--paper"
    )
    interactions: str | None = _option(
        None,
        "COLUMNS",
        "Interactions: auto (the default; none with --paper), a number of pairs, or pairs and triples "
        "such as a:b,c:d:e.",
    )
    max_order: int = _option(
        DEFAULTS.max_order,
        "N",
        "The most columns of an interaction: 3, 2 for pairs only, 1 for none.",
        least=1,
        most=3,
    )
    max_pairs: int = _option(
        DEFAULTS.max_pairs, "N", "The most pairs, and the most triples, that auto adds.", least=1
    )
    time_budget: float | None = _option(
        None,
        "SECONDS",
        "Seconds after which the search for interactions ends, with those found until then.",
        check=_seconds,
    )
    monotonic_cst: list[str] | None = _option(
        None,
        "COLUMN=SIGN",
        "Columns whose effects rise (+) or fall (-): age=+,income=-.",
        "--monotone",
    )
    shape_cst: list[str] | None = _option(
        None,
        "COLUMN=SHAPE",
        "Columns whose effects are convex or concave: dose=concave.",
        "--shape",
    )
    cyclic: list[str] | None = _option(
        None, "COLUMN=PERIOD", "Columns of cyclic quantities, and their periods: hour=24,month=12."
    )
    linear: list[str] | None = _option(
        None, "COLUMNS", "Columns whose main effects are straight lines: a,b."
    )
    ordered: list[str] | None = _option(
        None,
        "COLUMN=VALUES",
        "A categorical column and its categories in order: stage=I,II,III; repeatable.",
    )
    keep: list[str] | None = _option(None, "COLUMNS", "Columns that are never dropped: a,b.")
    exclude_pairs: list[str] | None = _option(
        None, "PAIRS", "Interactions that are never tried: a:b,c:d."
    )
    by: list[str] | None = _option(
        None,
        "COLUMN=GROUPS",
        "Columns whose curves differ between the groups of another: dose=treatment.",
    )
    random_slopes: list[str] | None = _option(
        None, "PAIRS", "Columns with a line for each group, and those of the groups: time:patient."
    )
    spatial: list[str] | None = _option(
        None,
        "PAIRS",
        "Coordinates in the same unit, with one surface in place of curves: longitude:latitude.",
    )
    groups: str | None = _option(
        None,
        "COLUMN",
        "Column of groups of rows that are not independent: whole groups are held out.",
    )
    spec: str | None = _option(
        None,
        "FILE",
        "A TOML file with what is known of columns, named as in Python: cyclic, linear, ...",
    )
    noise: Noise = _option(
        Noise.auto,
        None,
        "Noise model of regression: auto (heteroscedastic if supported by the data) or constant.",
    )
    test_share: float | None = _option(
        None,
        "FRACTION",
        "Fraction of rows to hold out for evaluation; 0.2 for a single file by default.",
        check=_PART,
    )
    calibrate_share: float = _option(
        0.0,
        "FRACTION",
        "Fraction of rows to hold out for conformal calibration of the intervals.",
        check=_PART,
    )
    max_iter: int = _option(
        DEFAULTS.max_iter, "N", "Maximum number of iterations per stage.", least=1
    )
    n_restarts: int = _option(
        DEFAULTS.n_restarts,
        "N",
        "Number of random initialisations, with --paper; other networks have none.",
        least=1,
    )
    random_state: int = _option(
        0, "N", "Seed of the split into rows and, with --paper, of the networks.", least=0
    )
    memory: str = _option(DEFAULTS.memory, "SIZE", "Memory limit of sums over rows, such as 1GB.")
    n_jobs: int | None = _option(
        DEFAULTS.n_jobs, "N", "Number of threads; all by default.", "--jobs"
    )
    checkpoint: str | None = _option(
        None, "FOLDER", "Folder from which an interrupted fit is resumed."
    )


@dataclass(frozen=True, kw_only=True)
class PredictRequest(TableRequest):
    """Predict the rows of a table.

    It is read in chunks, and need not fit in memory.
    """

    model: str = _argument(*_MODEL)
    data: str = _argument(*_TABLES)
    output: str = _output(
        "FILE", "Output: .csv, .parquet, - for CSV to stdout, or a folder for several files."
    )
    coverage: float | None = _option(
        None,
        "FRACTION",
        "Add intervals (lower, upper) of a new observation or, for classes, of the probability: 0.9 for "
        "90% coverage.",
        "--interval",
        check=_PROBABILITY,
    )
    std: bool = _flag("Add predictive standard deviations.", "--std")
    terms: bool = _flag("Add the contribution of each term.", "--terms")
    proba: bool = _flag("Add the probability of each class.", "--proba")
    times: str | None = _option(
        None,
        "TIMES",
        "Add survival until these times and, of several causes, their incidence: 365,730.",
    )
    keep: list[str] | None = _option(
        None, "COLUMNS", "Columns of the table to copy to the output: id,name."
    )
    all_columns: bool = _flag("Copy all columns of the table to the output.", "--all-columns")
    exposure: str | None = _option(None, *_EXPOSURE)
    trials: str | None = _option(None, *_TRIALS)
    offset: str | None = _option(None, *_OFFSET)
    prefix: str = _option("", "TEXT", "Prefix of the names of output columns.")
    block_size: int = _option(
        BLOCK_SIZE,
        "BYTES",
        "Bytes to read at once; memory use is proportional to it.",
        least=64,
        most=_MAX_BLOCK_SIZE,
    )


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(TableRequest):
    """Explain the terms of a model, or the prediction of one row."""

    model: str = _argument(*_MODEL)
    term: str | None = _option(
        None,
        "TERM",
        "Show the shape function of this term: a column, or an interaction such as a:b.",
    )
    derivative: bool = _flag(
        "Show where curves rise or fall for sure, are highest and lowest, and cross zero; plot slopes.",
        "--derivative",
    )
    noise: bool = _flag("Explain the noise variance instead of the mean.", "--noise")
    row: int | None = _option(
        None,
        "N",
        "Show the contributions to the prediction of this row; the first row of data is 1.",
        least=1,
    )
    data: str | None = _option(None, "DATA", "The table of --row.")
    offset: str | None = _option(None, *_OFFSET)
    output: str | None = _option(
        None, "FILE", "Plot to this file: .png, .svg or .pdf.", "--output", "-o"
    )
    coverage: float = _option(0.95, *_COVERAGE, check=_PROBABILITY)
    cause: int | None = _option(None, *_CAUSE)


@dataclass(frozen=True, kw_only=True)
class ReportRequest(TableRequest):
    """Write an HTML report of a model.

    A single file that works offline: shape functions, importances, calibration, and what-if predictions.
    """

    model: str = _argument(*_MODEL)
    data: str | None = _argument(
        "DATA",
        "Table of example rows, and for calibration. Of the table of the fit, only held-out rows are used.",
        needed=False,
    )
    output: str = _option("report.html", "FILE", "The file to write: .html.", "--output", "-o")
    target: str | None = _option(
        None, "COLUMN", "Column of the target; by default that of the fit.", "--target", "-t"
    )
    sample_weight: str | None = _option(
        None, "COLUMN", "Column of sample weights; by default that of the fit.", "--weight"
    )
    exposure: str | None = _option(None, *_EXPOSURE)
    trials: str | None = _option(None, *_TRIALS)
    offset: str | None = _option(None, *_OFFSET)
    title: str | None = _option(None, "TEXT", "Title of the report.")
    rows: int = _option(200, "N", "Number of example rows in the report; 0 for none.", least=0)
    all_rows: bool = _flag(
        "Use all rows of the table of the fit, also training rows.", "--all-rows"
    )
    adequacy: bool = _flag(
        "Add what a black box would gain on these rows; the model may be refitted.", "--adequacy"
    )
    coverage: float = _option(0.95, *_COVERAGE, check=_PROBABILITY)
    cause: int | None = _option(None, *_CAUSE)


@dataclass(frozen=True, kw_only=True)
class AdequacyRequest(TableRequest):
    """Measure what a model misses: what a black box would gain, and which columns hold it.

    The model is refitted without each fold, unless the rows were held out of its fit.
    """

    model: str = _argument(*_MODEL)
    data: str = _argument(
        "DATA",
        "Table with the target. Of the table of the fit, only held-out rows are used.",
    )
    output: str | None = _option(
        None, "FILE", "Plot to this file: .png, .svg or .pdf.", "--output", "-o"
    )
    target: str | None = _option(
        None, "COLUMN", "Column of the target; by default that of the fit.", "--target", "-t"
    )
    sample_weight: str | None = _option(
        None, "COLUMN", "Column of sample weights; by default that of the fit.", "--weight"
    )
    exposure: str | None = _option(None, *_EXPOSURE)
    trials: str | None = _option(None, *_TRIALS)
    offset: str | None = _option(None, *_OFFSET)
    event: str | None = _option(
        None, "COLUMN", "For survival, the column of the event; by default that of the fit."
    )
    time: str | None = _option(
        None, "COLUMN", "For survival, the column of the time; by default that of the fit."
    )
    entry: str | None = _option(None, "COLUMN", "For survival, the column of the entry.")
    splits: int = _option(5, "N", "Number of folds.", least=2)
    max_columns: int = _option(
        5, "N", "Number of columns of which sets are searched; 0 for no search.", least=0
    )
    all_rows: bool = _flag(
        "Use all rows of the table of the fit, and refit the model without each fold.", "--all-rows"
    )
    random_state: int = _option(0, "N", "Seed of the folds.", least=0)
    coverage: float = _option(0.95, "FRACTION", "Coverage of the intervals.", check=_PROBABILITY)
    cause: int | None = _option(None, *_CAUSE)


@dataclass(frozen=True, kw_only=True)
class ExportRequest(Request):
    """Export a model to JSON, CSV, SQL or ONNX.

    JSON, SQL and ONNX score rows without Python; CSV is a rating table for spreadsheets.
    """

    model: str = _argument(*_MODEL)
    output: str = _output("FILE", "The file to write.")
    to: Form | None = _option(None, None, "Format; by default that of the file extension.")
    table: str | None = _option(None, "NAME", "For SQL: the table to score.")
    dialect: Database | None = _option(None, None, "For SQL: the database.")
    keep: list[str] | None = _option(
        None, "COLUMNS", "For SQL: columns to copy to the result: id,name."
    )
    bands: int | None = _option(
        None, "N", "For CSV: about N bands per numeric column, relative to base levels."
    )
    cause: int | None = _option(None, *_CAUSE)
    no_variance: bool = _flag("Export the mean only, which is shorter and faster.", "--no-variance")


@dataclass(frozen=True, kw_only=True)
class DemoRequest(Request):
    """Fit, evaluate and explain a model of real data.

    Writes lanam-demo.html (a report), lanam-demo.png and lanam-demo-pair.png (plots, if matplotlib is
    installed), lanam-demo.csv (the data) and lanam-demo.lanam (the model).
    """

    folder: str = _option(".", "FOLDER", "Where to write the files.")


#: Flags by the arguments of the library that they are passed as.
FLAGS: dict[str, str] = {
    option.name: next(iter(option.metadata["names"]), f"--{option.name.replace('_', '-')}")
    for request in (ExplainRequest, ReportRequest, PredictRequest, FitRequest)
    for option in fields(request)
    if "names" in option.metadata
}
