"""The commands, in words; their options are in ``requests``, the work in the module of each one's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from lanam.cli import requests
from lanam.cli.console import Console
from lanam.version import __version__

R = TypeVar("R", bound=requests.Request)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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


def _command(kind: type[R], *examples: str) -> Callable[[Callable[[R, Console], None]], None]:
    """Register what does as a request says, as a command whose options are the request's fields."""

    def register(work: Callable[[R, Console], None]) -> None:
        def command(**options: Any) -> None:
            request = kind(**options)
            work(request, Console(request.quiet, request.json))

        signature = kind.signature()
        parameters = signature.parameters.values()
        command.__dict__["__signature__"] = signature
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        epilog = _examples(*examples) if examples else None
        app.command(work.__name__, help=work.__doc__, epilog=epilog)(command)

    return register


@_command(
    requests.Fit,
    "lanam fit houses.csv --target price -o houses.lanam",
    "lanam fit claims.parquet -t claims --task counts --exposure years -o claims.lanam",
    "lanam fit patients.csv -t ill --drop id --categorical ward -o ill.lanam",
    "lanam fit sales/ -t price --memory 1GB --checkpoint sales.part -o sales.lanam",
)
def fit(request: requests.Fit, console: Console) -> None:
    """Fit a model to a table and write it to a file.

    Says which terms matter, and how the model does on rows that it has not seen.
    """
    from lanam.cli import fit as command

    command.fit(request, console)


@_command(
    requests.Predict,
    "lanam predict houses.lanam new.csv -o predicted.csv --keep id",
    "lanam predict houses.lanam new.parquet -o predicted.parquet --interval 0.9 --std",
    "cat new.csv | lanam predict ill.lanam - -o - --proba | head",
    "lanam predict sales.lanam new-sales/ -o predicted/ --keep id",
)
def predict(request: requests.Predict, console: Console) -> None:
    """Predict the rows of a table, however many there are."""
    from lanam.cli import predict as command

    command.predict(request, console)


@_command(
    requests.Explain,
    "lanam explain houses.lanam -o shapes.png",
    "lanam explain houses.lanam --term area",
    "lanam explain houses.lanam --noise -o noise.png",
    "lanam explain houses.lanam --row 3 --data new.csv",
)
def explain(request: requests.Explain, console: Console) -> None:
    """Say what a model learned.

    Of all terms, of one of them, or what they add to the prediction of one row.
    """
    from lanam.cli import explain as command

    command.explain(request, console)


@_command(
    requests.Report,
    'lanam report houses.lanam houses.csv -o report.html --title "Houses in Ames"',
    "lanam report houses.lanam -o report.html",
)
def report(request: requests.Report, console: Console) -> None:
    """Write a page about a model, for any browser.

    One file that opens without a network: curves, calibration, and a page to play with.
    """
    from lanam.cli import report as command

    command.report(request, console)


@_command(
    requests.Export,
    "lanam export houses.lanam --to sql -o houses.sql",
    "lanam export houses.lanam -o houses.onnx",
    "lanam export houses.lanam --to sql --table new --keep id --dialect duckdb -o -",
)
def export(request: requests.Export, console: Console) -> None:
    """Write a model in a form that scores rows without Python."""
    from lanam.cli import export as command

    command.export(request, console)


@_command(requests.Demo)
def demo(request: requests.Demo, console: Console) -> None:
    """See lanam work: fit real data, and look at what it says.

    Writes lanam-demo.html (a report), lanam-demo.png and lanam-demo-pair.png (pictures, with matplotlib),
    lanam-demo.csv (the data) and lanam-demo.lanam (the model).
    """
    from lanam.cli import demo as command

    command.demo(request, console)
