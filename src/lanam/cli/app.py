"""The commands as typer has them: a class of ``requests`` each, run by the module of the same name."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer

from lanam.cli import requests
from lanam.cli.console import Console
from lanam.cli.errors import UsageError, in_flags
from lanam.cli.streams import require_stdout
from lanam.version import __version__

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_EXAMPLES: dict[type[requests.Request], tuple[str, ...]] = {
    requests.FitRequest: (
        "lanam fit houses.csv --target price -o houses.lanam",
        "lanam fit claims.parquet -t claims --task counts --exposure years -o claims.lanam",
        "lanam fit patients.csv -t ill --drop id --categorical ward -o ill.lanam",
        "lanam fit sales/ -t price --memory 1GB --checkpoint sales.part -o sales.lanam",
    ),
    requests.PredictRequest: (
        "lanam predict houses.lanam new.csv -o predicted.csv --keep id",
        "lanam predict houses.lanam new.parquet -o predicted.parquet --interval 0.9 --std",
        "cat new.csv | lanam predict ill.lanam - -o - --proba | head",
        "lanam predict sales.lanam new-sales/ -o predicted/ --keep id",
    ),
    requests.ExplainRequest: (
        "lanam explain houses.lanam -o shapes.png",
        "lanam explain houses.lanam --term area",
        "lanam explain houses.lanam --term area --derivative -o slope.png",
        "lanam explain houses.lanam --noise -o noise.png",
        "lanam explain houses.lanam --row 3 --data new.csv",
    ),
    requests.ReportRequest: (
        'lanam report houses.lanam houses.csv -o report.html --title "Houses in Ames"',
        "lanam report houses.lanam -o report.html",
    ),
    requests.AdequacyRequest: (
        "lanam adequacy houses.lanam houses.csv -o adequacy.png",
        "lanam adequacy houses.lanam houses.csv --all-rows --splits 10",
    ),
    requests.ExportRequest: (
        "lanam export houses.lanam --to sql -o houses.sql",
        "lanam export houses.lanam -o houses.onnx",
        "lanam export houses.lanam --to sql --table new --keep id --dialect duckdb -o -",
    ),
    requests.DemoRequest: (),
}


def _epilog(*lines: str) -> str | None:
    """Examples at the end of a help text; the control character keeps their line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else None


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lanam {__version__}")
        raise typer.Exit()


@app.callback(
    epilog=_epilog(
        "lanam demo                                   fit and explain a model of real data",
        "lanam fit data.csv --target y -o m.lanam     fit a model to a table",
        "lanam predict m.lanam new.csv -o out.csv     predict new rows",
        "lanam explain m.lanam --term age             show a shape function",
        "lanam report m.lanam data.csv -o r.html      write an interactive HTML report",
        "lanam export m.lanam -o m.sql                export to SQL",
    )
)
def lanam(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Bayesian neural additive models for tabular data: readable shape functions with credible bands."""


def _register(kind: type[requests.Request], examples: tuple[str, ...]) -> None:
    """Add a command whose options are the fields of a request, and whose help is its docstring."""
    name = kind.__name__.removesuffix("Request").lower()

    def command(**options: Any) -> None:
        try:
            request = kind(**options)
        except ValueError as error:
            raise UsageError(in_flags(error)) from None
        work = getattr(import_module(f"lanam.cli.{name}"), name)
        console = Console(request.quiet, request.json)
        if request.json:
            require_stdout("--json")
        with console.plain_warnings():
            work(request, console)

    signature = kind.signature()
    command.__dict__["__signature__"] = signature
    command.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    app.command(name, help=getdoc(kind), epilog=_epilog(*examples))(command)


for _kind, _examples in _EXAMPLES.items():
    _register(_kind, _examples)
