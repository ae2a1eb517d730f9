"""The commands and their options, in words; the work is in the module of each command's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanam.cli.speaking import Voice
from lanam.parameters import DEFAULTS
from lanam.version import __version__

if TYPE_CHECKING:
    from lanam.engines.dialects import Dialect

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Task(StrEnum):
    """What is predicted."""

    regression = "regression"
    classification = "classification"
    counts = "counts"


class Noise(StrEnum):
    """Whether the noise may differ from row to row."""

    auto = "auto"
    constant = "constant"


class Form(StrEnum):
    """What a model is exported to."""

    json = "json"
    csv = "csv"
    sql = "sql"
    onnx = "onnx"


class SqlDialect(StrEnum):
    """For which database a query is written."""

    sqlite = "sqlite"
    duckdb = "duckdb"
    standard = "standard"


def _share(least: float, most: float) -> Callable[[float | None], float | None]:
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

# What several commands have.
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model's file, written by lanam fit.")
]
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A table: .csv (or .csv.gz), .parquet, or - for CSV.")
]
Tables = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv (or .csv.gz), .parquet, - for CSV, or a folder or pattern of files.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, and no other words.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="What stands between columns of a CSV file; found in its header."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="The decimal point of a CSV file's numbers."),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a CSV file, such as latin-1.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD", help="Stands for a missing value in a CSV file, besides the usual ones."
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="What counts are counted over: a column, or a number for all rows."
    ),
]
Coverage = Annotated[
    float,
    typer.Option(
        metavar="SHARE", callback=_PROBABILITY, help="Probability of the bands: 0.9 for 90%."
    ),
]


def _asked(kind: type[Any], options: Mapping[str, Any], **more: Any) -> Any:
    """What a command was asked to do: options by the names of its fields, and a CSV file's dialect."""
    known = {each.name for each in fields(kind)}
    given = {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if name in known and value is not None
    }
    if "delimiter" in options:
        more["dialect"] = _dialect(options)
    return kind(**given, **more)


def _dialect(options: Mapping[str, Any]) -> Dialect:
    from lanam.cli.errors import in_flags
    from lanam.engines.dialects import Dialect

    delimiter = {"\\t": "\t", "tab": "\t"}.get(options["delimiter"], options["delimiter"])
    missing = tuple(options["missing"] or ())
    try:
        return Dialect(delimiter, options["decimal"], options["encoding"], missing)
    except ValueError as error:
        raise typer.BadParameter(in_flags(error)) from None


def _examples(*lines: str) -> str:
    """The end of a help text; a line of its own for the letter that keeps lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lanam {__version__}")
        raise typer.Exit()


@app.callback(
    epilog=_examples(
        "lanam demo                                   see it work",
        "lanam fit data.csv --target y -o m.lanam     learn from a table",
        "lanam predict m.lanam new.csv -o out.csv     predict the rows of another",
        "lanam explain m.lanam --term age             what it learned",
        "lanam report m.lanam data.csv -o r.html      a page to hand over",
        "lanam export m.lanam -o m.sql                score it elsewhere",
    )
)
def lanam(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Say the version and leave."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from, with any command.")
    ] = False,
) -> None:
    """Additive models of tables: curves you can read, with bands you can believe."""


@app.command(
    epilog=_examples(
        "lanam fit houses.csv --target price -o houses.lanam",
        "lanam fit claims.parquet -t claims --task counts --exposure years -o claims.lanam",
        "lanam fit patients.csv -t ill --drop id --categorical ward -o ill.lanam",
        "lanam fit sales/ -t price --memory 1GB --checkpoint sales.part -o sales.lanam",
    )
)
def fit(
    data: Tables,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="MODEL", help="The file to write.")
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict."),
    ] = None,
    task: Annotated[
        Task | None, typer.Option(help="What the target is; found by its values if not said.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns whose numbers are categories: a,b. Text is."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns to leave out, such as identifiers: a,b."),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says how often each row counts."),
    ] = None,
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="With --task counts, the column they are counted over."
        ),
    ] = None,
    interactions: Annotated[
        str,
        typer.Option(metavar="PAIRS", help="Pairs of columns: auto, how many, or which: a:b,c:d."),
    ] = DEFAULTS.interactions,
    noise: Annotated[
        Noise,
        typer.Option(help="Of numbers: found by itself to differ from row to row, or constant."),
    ] = Noise.auto,
    test_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            callback=_PART,
            help="Share of the rows to hold out and check with: of one file 0.2, for 20%.",
        ),
    ] = None,
    calibrate_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            callback=_PART,
            help="Share of the rows that calibrates the intervals.",
        ),
    ] = 0.0,
    max_iter: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most iterations of a stage.")
    ] = DEFAULTS.max_iter,
    n_restarts: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random starts, of which the best is kept.")
    ] = DEFAULTS.n_restarts,
    random_state: Annotated[
        int, typer.Option(metavar="N", min=0, help="The same number gives the same model.")
    ] = 0,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="What sums over rows may take: 1GB, for example.")
    ] = DEFAULTS.memory,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Threads; as many as there are, if not said."),
    ] = DEFAULTS.n_jobs,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where a fit that is stopped leaves what it knows, to go on from.",
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing: Missing = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and write it to a file.

    Says which terms matter, and how the model does on rows that it has not seen.
    """
    from lanam.cli import fit as command

    parameters = {
        "max_iter": max_iter,
        "n_restarts": n_restarts,
        "random_state": random_state,
        "memory": memory,
        "n_jobs": jobs,
    }
    request = _asked(command.Request, locals())
    command.fit(request, Voice(quiet, json))


@app.command(
    epilog=_examples(
        "lanam predict houses.lanam new.csv -o predicted.csv --keep id",
        "lanam predict houses.lanam new.parquet -o predicted.parquet --interval 0.9 --std",
        "cat new.csv | lanam predict ill.lanam - -o - --proba | head",
        "lanam predict sales.lanam new-sales/ -o predicted/ --keep id",
    )
)
def predict(
    model: Model,
    data: Tables,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to: .csv, .parquet, - for CSV, or of several files a folder.",
        ),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            callback=_PROBABILITY,
            help="Add intervals of this probability, 0.9 for 90%: lower and upper.",
        ),
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add standard deviations of new observations.")
    ] = False,
    terms: Annotated[bool, typer.Option("--terms", help="Add what each term contributes.")] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Add each class's probability.")] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns of the table to write as well: id,name."),
    ] = None,
    all_columns: Annotated[
        bool, typer.Option("--all-columns", help="Write all columns of the table as well.")
    ] = False,
    exposure: Exposure = None,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Before the names of what is predicted.")
    ] = "",
    block_size: Annotated[
        int,
        typer.Option(
            metavar="BYTES", min=64, help="Bytes that are read at once: memory grows with it."
        ),
    ] = 1 << 20,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing: Missing = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table, however many there are."""
    from lanam.cli import predict as command

    wanted = command.Wanted(interval, std, terms, proba, prefix)
    request = _asked(command.Request, locals())
    command.predict(request, Voice(quiet, json))


@app.command(
    epilog=_examples(
        "lanam explain houses.lanam -o shapes.png",
        "lanam explain houses.lanam --term area",
        "lanam explain houses.lanam --noise -o noise.png",
        "lanam explain houses.lanam --row 3 --data new.csv",
    )
)
def explain(
    model: Model,
    term: Annotated[
        str | None,
        typer.Option(metavar="TERM", help="Show this term's function: a column, or a pair."),
    ] = None,
    noise: Annotated[
        bool,
        typer.Option("--noise", help="Of how noisy rows are, in place of what is predicted."),
    ] = False,
    row: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Take the prediction of this row apart; 1 is the first."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="The table that --row is in.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Draw it: .png, .svg or .pdf."),
    ] = None,
    coverage: Coverage = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing: Missing = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a model learned.

    Of all terms, of one of them, or what they add to the prediction of one row.
    """
    from lanam.cli import explain as command

    request = _asked(command.Request, locals())
    command.explain(request, Voice(quiet, json))


@app.command(
    epilog=_examples(
        'lanam report houses.lanam houses.csv -o report.html --title "Houses in Ames"',
        "lanam report houses.lanam -o report.html",
    )
)
def report(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="Rows to pick from and to check with, best unseen ones."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page to write: .html.")
    ] = "report.html",
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COLUMN", help="The column of the target; that of the fit."
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the weights; that of the fit."),
    ] = None,
    exposure: Exposure = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What stands on top of the page.")
    ] = None,
    rows: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="How many rows are put into the page; 0 for none."),
    ] = 200,
    coverage: Coverage = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing: Missing = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model, for any browser.

    One file that opens without a network: curves, calibration, and a page to play with.
    """
    from lanam.cli import report as command

    request = _asked(command.Request, locals())
    command.report(request, Voice(quiet, json))


@app.command(
    epilog=_examples(
        "lanam export houses.lanam --to sql -o houses.sql",
        "lanam export houses.lanam -o houses.onnx",
        "lanam export houses.lanam --to sql --table new --keep id --dialect duckdb -o -",
    )
)
def export(
    model: Model,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ],
    to: Annotated[
        Form | None, typer.Option(help="In which form; by the file's name if not said.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of SQL: the table whose rows are scored.")
    ] = None,
    dialect: Annotated[SqlDialect | None, typer.Option(help="Of SQL: for which database.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Of SQL: columns beside the results: id,name."),
    ] = None,
    no_variance: Annotated[
        bool, typer.Option("--no-variance", help="Leave the variance out: shorter, and faster.")
    ] = False,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a model in a form that scores rows without Python."""
    from lanam.cli import export as command

    request = _asked(command.Request, locals(), variance=not no_variance)
    command.export(request, Voice(quiet, json))


@app.command()
def demo(
    folder: Annotated[str, typer.Option(metavar="FOLDER", help="Where to write.")] = ".",
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See lanam work: fit real data, and look at what it says.

    Writes lanam-demo.html (a report), lanam-demo.png and lanam-demo-pair.png (pictures, with matplotlib),
    lanam-demo.csv (the data) and lanam-demo.lanam (the model).
    """
    from lanam.cli import demo as command

    command.demo(command.Request(folder, force), Voice(quiet, json))
