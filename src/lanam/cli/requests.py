"""What each command can be asked to do: a class a command, a field an option, with its help in words."""

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

Task = StrEnum("Task", ["regression", "classification", "counts"])
Noise = StrEnum("Noise", ["auto", "constant"])
Form = StrEnum("Form", ["json", "csv", "sql", "onnx"])
SqlDialect = StrEnum("SqlDialect", ["sqlite", "duckdb", "standard"])


def _share(least: float, most: float) -> _Check:
    """What checks a share, and says what a percentage is."""

    def check(value: float | None) -> float | None:
        if value is None or least <= value <= most:
            return value
        percent = 1.0 < value <= 100.0
        meant = f": say {value / 100:g} for {value:g}%" if percent else ""
        raise typer.BadParameter(f"{value:g} is not between {least:g} and {most:g}{meant}")

    return check


_PROBABILITY = _share(0.001, 0.999)
_PART = _share(0.0, 0.9)


def _argument(metavar: str, text: str, *, needed: bool = True) -> str:
    """An argument: a field to ``dataclass``, its value to type checkers."""
    metadata = {"typer": typer.Argument(metavar=metavar, help=text)}
    return cast(str, field(metadata=metadata) if needed else field(default=None, metadata=metadata))


def _output(metavar: str, text: str) -> str:
    """The file to write, which must be named."""
    option = typer.Option("--output", "-o", metavar=metavar, help=text)
    return cast(str, field(metadata={"typer": option}))


def _option(
    default: T,
    metavar: str | None,
    text: str,
    *names: str,
    least: int | None = None,
    check: _Check | None = None,
) -> T:
    """An option, by its field's name unless others are given."""
    option = typer.Option(*names, metavar=metavar, help=text, min=least, callback=check)
    return field(default=default, metadata={"typer": option})


def _flag(text: str, *names: str) -> bool:
    """What is said or not; by the names, none of which begins with ``--no``."""
    return _option(False, None, text, *names)


_MODEL = ("MODEL", "A model's file, written by lanam fit.")
_TABLES = (
    "DATA",
    "A table: .csv (or .csv.gz), .parquet, - for CSV, or a folder or pattern of files.",
)
_EXPOSURE = ("COLUMN", "What counts are counted over: a column, or a number for all rows.")
_COVERAGE = ("SHARE", "Probability of the bands: 0.9 for 90%.")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What all commands can be asked."""

    force: bool = _flag("Replace a file that is there.", "--force")
    json: bool = _flag("One JSON document on standard output, and no other words.", "--json")
    quiet: bool = _flag("Say nothing but errors.", "--quiet", "-q")

    @classmethod
    def signature(cls) -> Signature:
        """The options as typer reads them; those of the command itself come first."""
        hints = get_type_hints(cls, include_extras=True)
        known = {each.name: each for each in fields(cls)}
        order = [name for kind in cls.__mro__ for name in vars(kind).get("__annotations__", ())]
        return Signature(
            [
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=Parameter.empty
                    if known[name].default is MISSING
                    else known[name].default,
                    annotation=Annotated[hints[name], known[name].metadata["typer"]],
                )
                for name in order
            ]
        )


@dataclass(frozen=True, kw_only=True)
class TableRequest(Request):
    """What commands that read tables can be asked: how CSV files are written."""

    delimiter: str | None = _option(
        None, "CHARACTER", "What stands between columns of a CSV file; found in its header."
    )
    decimal: str | None = _option(None, "CHARACTER", "The decimal point of a CSV file's numbers.")
    encoding: str | None = _option(None, "NAME", "Of a CSV file, such as latin-1.")
    missing: list[str] | None = _option(
        None, "WORD", "Stands for a missing value in a CSV file, besides the usual ones."
    )

    def __post_init__(self) -> None:
        self.dialect  # noqa: B018 (a bad one is refused before anything is read)

    @cached_property
    def dialect(self) -> Dialect:
        """How CSV files are written."""
        from lanam.cli.errors import in_flags
        from lanam.engines.dialects import Dialect

        delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter)
        try:
            return Dialect(delimiter, self.decimal, self.encoding, tuple(self.missing or ()))
        except ValueError as error:
            raise typer.BadParameter(in_flags(error)) from None


@dataclass(frozen=True, kw_only=True)
class Fit(TableRequest):
    """What ``lanam fit`` can be asked."""

    data: str = _argument(*_TABLES)
    output: str = _output("MODEL", "The file to write.")
    target: str | None = _option(None, "COLUMN", "The column to predict.", "--target", "-t")
    task: Task | None = _option(None, None, "What the target is; found by its values if not said.")
    categorical: list[str] | None = _option(
        None, "COLUMNS", "Columns whose numbers are categories: a,b. Text is."
    )
    drop: list[str] | None = _option(
        None, "COLUMNS", "Columns to leave out, such as identifiers: a,b."
    )
    weight: str | None = _option(None, "COLUMN", "The column that says how often each row counts.")
    exposure: str | None = _option(
        None, "COLUMN", "With --task counts, the column they are counted over."
    )
    interactions: str = _option(
        DEFAULTS.interactions, "PAIRS", "Pairs of columns: auto, how many, or which: a:b,c:d."
    )
    noise: Noise = _option(
        Noise.auto, None, "Of numbers: found by itself to differ from row to row, or constant."
    )
    test_share: float | None = _option(
        None,
        "SHARE",
        "Share of the rows to hold out and check with: of one file 0.2, for 20%.",
        check=_PART,
    )
    calibrate_share: float = _option(
        0.0, "SHARE", "Share of the rows that calibrates the intervals.", check=_PART
    )
    max_iter: int = _option(DEFAULTS.max_iter, "N", "The most iterations of a stage.", least=1)
    n_restarts: int = _option(
        DEFAULTS.n_restarts, "N", "Random starts, of which the best is kept.", least=1
    )
    random_state: int = _option(0, "N", "The same number gives the same model.", least=0)
    memory: str = _option(
        DEFAULTS.memory, "SIZE", "What sums over rows may take: 1GB, for example."
    )
    jobs: int | None = _option(DEFAULTS.n_jobs, "N", "Threads; as many as there are, if not said.")
    checkpoint: str | None = _option(
        None, "FOLDER", "Where a fit that is stopped leaves what it knows, to go on from."
    )


@dataclass(frozen=True, kw_only=True)
class Predict(TableRequest):
    """What ``lanam predict`` can be asked."""

    model: str = _argument(*_MODEL)
    data: str = _argument(*_TABLES)
    output: str = _output(
        "FILE", "Where to: .csv, .parquet, - for CSV, or of several files a folder."
    )
    interval: float | None = _option(
        None,
        "SHARE",
        "Add intervals of this probability, 0.9 for 90%: lower and upper.",
        check=_PROBABILITY,
    )
    std: bool = _flag("Add standard deviations of new observations.", "--std")
    terms: bool = _flag("Add what each term contributes.", "--terms")
    proba: bool = _flag("Add each class's probability.", "--proba")
    keep: list[str] | None = _option(
        None, "COLUMNS", "Columns of the table to write as well: id,name."
    )
    all_columns: bool = _flag("Write all columns of the table as well.", "--all-columns")
    exposure: str | None = _option(None, *_EXPOSURE)
    prefix: str = _option("", "TEXT", "Before the names of what is predicted.")
    block_size: int = _option(
        BLOCK_SIZE, "BYTES", "Bytes that are read at once: memory grows with it.", least=64
    )


@dataclass(frozen=True, kw_only=True)
class Explain(TableRequest):
    """What ``lanam explain`` can be asked."""

    model: str = _argument(*_MODEL)
    term: str | None = _option(None, "TERM", "Show this term's function: a column, or a pair.")
    noise: bool = _flag("Of how noisy rows are, in place of what is predicted.", "--noise")
    row: int | None = _option(
        None, "N", "Take the prediction of this row apart; 1 is the first.", least=1
    )
    data: str | None = _option(None, "DATA", "The table that --row is in.")
    output: str | None = _option(None, "FILE", "Draw it: .png, .svg or .pdf.", "--output", "-o")
    coverage: float = _option(0.95, *_COVERAGE, check=_PROBABILITY)


@dataclass(frozen=True, kw_only=True)
class Report(TableRequest):
    """What ``lanam report`` can be asked."""

    model: str = _argument(*_MODEL)
    data: str | None = _argument(
        "[DATA]", "Rows to pick from and to check with, best unseen ones.", needed=False
    )
    output: str = _option("report.html", "FILE", "The page to write: .html.", "--output", "-o")
    target: str | None = _option(
        None, "COLUMN", "The column of the target; that of the fit.", "--target", "-t"
    )
    weight: str | None = _option(None, "COLUMN", "The column of the weights; that of the fit.")
    exposure: str | None = _option(None, *_EXPOSURE)
    title: str | None = _option(None, "TEXT", "What stands on top of the page.")
    rows: int = _option(200, "N", "How many rows are put into the page; 0 for none.", least=0)
    coverage: float = _option(0.95, *_COVERAGE, check=_PROBABILITY)


@dataclass(frozen=True, kw_only=True)
class Export(Request):
    """What ``lanam export`` can be asked."""

    model: str = _argument(*_MODEL)
    output: str = _output("FILE", "The file to write.")
    to: Form | None = _option(None, None, "In which form; by the file's name if not said.")
    table: str | None = _option(None, "NAME", "Of SQL: the table whose rows are scored.")
    dialect: SqlDialect | None = _option(None, None, "Of SQL: for which database.")
    keep: list[str] | None = _option(
        None, "COLUMNS", "Of SQL: columns beside the results: id,name."
    )
    no_variance: bool = _flag("Leave the variance out: shorter, and faster.", "--no-variance")


@dataclass(frozen=True, kw_only=True)
class Demo(Request):
    """What ``lanam demo`` can be asked."""

    folder: str = _option(".", "FOLDER", "Where to write.")
