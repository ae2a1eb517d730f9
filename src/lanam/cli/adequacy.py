"""``lanam adequacy``: what a black box would gain over a model, and which columns hold it."""

from __future__ import annotations

from lanam.cli.console import Console
from lanam.cli.errors import UsageError
from lanam.cli.explain import require_plot, save_plot
from lanam.cli.models import load_one
from lanam.cli.requests import AdequacyRequest
from lanam.cli.rows import read_arguments, read_follow_up


def adequacy(request: AdequacyRequest, console: Console) -> None:
    """Print what a model misses, and plot it with ``--output``."""
    if request.output is not None:
        require_plot(request.output, request)
    model = load_one(request.model, request.cause)
    given = request.event, request.time, request.entry
    if hasattr(model, "causes_"):
        rows = read_follow_up(request, request.data, model, console)
    elif any(name is not None for name in given):
        raise UsageError(
            f"--event, --time and --entry are for survival, and {request.model} is not"
        )
    else:
        rows = read_arguments(request, request.data, model, console)
        if "y" not in rows:
            raise UsageError("the table needs the target: name its column with --target")
    with console.warnings():
        found = model.adequacy(
            **rows,
            n_splits=request.splits,
            coverage=request.coverage,
            max_columns=request.max_columns,
            random_state=request.random_state,
        )
    console.print(str(found))
    if request.output is not None:
        from lanam.plot import plot_adequacy

        save_plot(plot_adequacy(found), request.output, force=request.force)
        console.note(f"written: {request.output}")
    console.document({"adequacy": found.to_dict(), "notes": console.notes})
