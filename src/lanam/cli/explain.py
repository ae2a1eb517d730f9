"""``lanam explain``: all terms of a model, one of them, or the prediction of one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw

from lanam.cli.console import Console
from lanam.cli.errors import CLIError, UsageError
from lanam.cli.models import (
    given_column,
    load_one,
    open_for,
    require_columns,
    summary_text,
    without,
)
from lanam.cli.requests import AdequacyRequest, ExplainRequest
from lanam.cli.tables import require_new
from lanam.text import aligned, did_you_mean, number_format, shorten, visible

if TYPE_CHECKING:
    from lanam.cli.models import Estimator
    from lanam.explain import GlobalExplanation, LocalExplanation, Shape, Surface, Term

#: Plots an explanation and returns its axes.
Plot = Callable[[], object]
#: The frame of an explanation by columns.
FrameColumns = Mapping[str, Sequence[Any]]

_PLOT_ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")

#: The largest number of points of a smooth function that are printed.
_MAX_POINTS = 20
#: The largest number of values of a term that are printed.
_MAX_ROWS = 40
_MAX_NAME = 40


def explain(request: ExplainRequest, console: Console) -> None:
    """Print an explanation, and plot it with ``--output``."""
    if (request.row is None) != (request.data is None):
        raise UsageError("--row and --data go together: which row of which file?")
    whole_model = (
        ("--term", request.term is not None),
        ("--derivative", request.derivative),
        ("--noise", request.noise),
    )
    for option, given in whole_model:
        if request.row is not None and given:
            raise UsageError(
                f"{option} explains the whole model and --row one prediction: choose one"
            )
    if request.output is not None:
        require_plot(request.output, request)
    model = load_one(request.model, request.cause)
    if request.row is not None and request.data is not None:
        plot = _explain_row(request.row, request.data, request, model, console)
    elif request.derivative:
        plot = _ask_curves(request, _explanation(request, model), console)
    elif request.term is not None or request.noise:
        plot = _explain_terms(request, _explanation(request, model), console)
    else:
        plot = _explain_all(request, model, console)
    if request.output is not None:
        save_plot(plot(), request.output, force=request.force)
        console.note(f"written: {request.output}")


def require_plot(path: str, request: ExplainRequest | AdequacyRequest) -> None:
    """Refuse a name of a plot that has another ending, or is that of another file."""
    if not path.lower().endswith(_PLOT_ENDINGS):
        raise UsageError(f"{path}: the name of a plot ends in {', '.join(_PLOT_ENDINGS[:3])}")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(path, force=request.force, inputs=files, example="shapes.png")


def _explain_all(request: ExplainRequest, model: Estimator, console: Console) -> Plot:
    summary = model.summary()
    console.print(summary_text(summary))
    if console.json:
        explanation = model.explain_global()
        console.document({"summary": summary.to_dict(), "explanation": explanation.to_dict()})

    def plot() -> object:
        from lanam.plot import plot_shapes

        explanation = model.explain_global()
        if not any(term.active for term in explanation.shapes):
            raise CLIError("no main effect is active: there is nothing to plot")
        return plot_shapes(explanation, coverage=request.coverage)

    return plot


def _explanation(request: ExplainRequest, model: Estimator) -> GlobalExplanation:
    """The terms of the prediction, or of the noise."""
    if not request.noise:
        return model.explain_global()
    if not hasattr(model, "explain_noise"):
        raise CLIError("--noise is for regression, and this is a classifier")
    return model.explain_noise()


def _find_term(given: str, explanation: GlobalExplanation) -> Shape | Surface:
    """The term of a name, or the interaction of columns with colons between them."""
    for term in explanation:
        if given in (term.name, ":".join(term.feature_names), ":".join(term.feature_names[::-1])):
            return term
    names = [term.name for term in explanation]
    hint = did_you_mean(given.replace(":", " x "), names, "its terms are")
    raise UsageError(f"--term {given!r} is not in the model; {hint}")


def _explain_terms(
    request: ExplainRequest, explanation: GlobalExplanation, console: Console
) -> Plot:
    """Print the function of one term, or of all active ones."""
    term = None if request.term is None else _find_term(request.term, explanation)
    if console.json:
        console.document((term or explanation).to_dict())

    def plot() -> object:
        from lanam.plot import plot_interaction, plot_shapes

        if term is None:
            return plot_shapes(explanation, coverage=request.coverage)
        if not term.active:
            raise CLIError(f"the term {term.name!r} was dropped: there is nothing to plot")
        if term.joint:
            return plot_interaction(explanation, term.name)
        return plot_shapes(explanation, terms=[term.name], coverage=request.coverage)

    if term is not None and not term.active:
        console.print(f"{term.name}: {term.status}")
        return plot
    # Arrow has nulls, whichever library the model was fitted with.
    arrow = replace(explanation, backend="pyarrow")
    frame = nw.from_native(arrow.to_frame(request.coverage), eager_only=True)
    shown = explanation.active if term is None else [term]
    texts = [_term_text(each, frame, explanation, request.coverage) for each in shown]
    console.print("\n\n".join(texts))
    return plot


def _ask_curves(request: ExplainRequest, explanation: GlobalExplanation, console: Console) -> Plot:
    """Print what one curve, or each active one, shows."""
    shapes: Sequence[Shape] = explanation.curves
    if request.term is not None:
        name = _find_term(request.term, explanation).name
        shapes = [shape for shape in explanation.shapes if shape.name == name]
        if not shapes:
            raise UsageError(f"--derivative is for terms of one column, and {name!r} has more")
        if shapes[0].active and shapes[0].posterior is None:
            raise UsageError(
                f"--derivative is for numeric columns, and {name!r} is not a curve: leave --derivative out "
                "to see its effects"
            )
    if not shapes:
        raise CLIError("no curve is active: there is nothing to ask")
    try:
        answers = [shape.answers(request.coverage) for shape in shapes]
    except ValueError as error:
        raise CLIError(str(error)) from None
    if console.json:
        console.document({"answers": [each.to_dict() for each in answers]})
    classes = explanation.classes if explanation.family.link.several else None
    texts = ["\n".join(each.lines(request.coverage, classes)) for each in answers]
    console.print("\n\n".join(texts))

    def plot() -> object:
        from lanam.plot import plot_derivative

        names = [shape.name for shape in shapes]
        return plot_derivative(explanation, names, coverage=request.coverage)

    return plot


def _explain_row(
    row: int, data: str, request: ExplainRequest, model: Estimator, console: Console
) -> Plot:
    from lanam.explain import response_words, row_text

    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    offset = given_column(model, source, "offset", request.offset)
    if isinstance(offset, str):
        needed = [*needed, offset]
    n_read, frame = 0, None
    for chunk in source.each(needed):
        if row <= n_read + len(chunk.frame):
            frame = chunk.frame.slice(row - n_read - 1, 1)
            break
        n_read += len(chunk.frame)
    if frame is None:
        raise UsageError(f"--row {row}: {source.title} has {n_read} rows of data")
    with console.warnings():
        values = frame[offset] if isinstance(offset, str) else offset
        known = {} if offset is None else {"offset": values}
        local = model.explain_local(frame, **known)
    if console.json:
        console.document({"row": row, "file": data, **local.to_dict()})
    console.print(f"row {row} of {data} (the first row of data is 1): {response_words(local)}")
    lines = [row_text(local, request.coverage), *_remarks(local, request.coverage)]
    console.print("\n".join(lines))

    def plot() -> object:
        from lanam.plot import plot_local

        ax = plot_local(local, coverage=request.coverage)
        # The explanation has a single row, and its number in the file is another.
        title = ax.get_title(loc="left").replace(
            "Row 0:", f"Row {row} of {visible(source.title)}:", 1
        )
        ax.set_title(title, loc="left", fontsize="small", parse_math=False)
        return ax

    return plot


def save_plot(axes: object, path: str, *, force: bool) -> None:
    """Write the figure of some axes to a file."""
    import io

    import numpy as np
    from matplotlib import pyplot

    from lanam.files import write_atomically

    figure = np.ravel(np.asarray(axes))[0].figure
    content = io.BytesIO()
    figure.savefig(content, format=path.rsplit(".", 1)[1].lower(), dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    write_atomically(path, content.getvalue(), "the plot", overwrite=force)


def _term_text(
    term: Term, frame: nw.DataFrame[Any], explanation: GlobalExplanation, coverage: float
) -> str:
    """The function of a term as a table; the frame has those of all terms."""
    columns = frame.filter(nw.col("term") == term.name).to_dict(as_series=False)
    # Points beyond the data are not printed.
    inside = [k for k, within in enumerate(columns["inside"]) if within or columns["level"][k]]
    smooth = [k for k in inside if columns["level"][k] is None]
    n_outer = len(explanation.classes or ()) if "class" in columns else 1
    thinned = without(inside, _left_out(smooth, n_outer))
    complete = len(thinned) == len(inside)
    shown = _largest(thinned, columns["mean"], n_outer)
    form = number_format(max(abs(columns["mean"][k]) for k in shown), 3)
    table = [[*term.feature_names, *_head(columns), *(["rows"] if complete else [])]]
    for k in shown:
        cells = [*_values(columns, k)[: len(term.features)], *_cells(columns, k, "mean", form)]
        table.append([*cells, f"{columns['density'][k]:.2%}"] if complete else cells)
    unit = explanation.family.words.adds_to(explanation.classes)
    counts = f"{len(shown) // n_outer} of {len(inside) // n_outer}"
    note = "" if complete else f" ({counts} points shown)"
    if len(shown) < len(thinned):
        note = f" (the largest {counts}; --json has all)"
    split = f" ({term.missingness:.0%} of it due to missingness)" if term.missingness else ""
    lines = [
        f"{term.name}: {term.kind}, importance {term.importance:.4g}{split}",
        f"Contribution {unit}, with {coverage:.0%} credible bands{note}:",
        "",
        *aligned(table, words=[0]),
    ]
    return "\n".join(lines)


def _head(columns: FrameColumns) -> list[str]:
    return [*(["class"] if "class" in columns else []), "contribution", "lower", "upper"]


def _cells(columns: FrameColumns, k: int, mean: str, form: str) -> list[str]:
    """The contribution in row ``k`` of a frame, with its band."""
    label = [str(columns["class"][k])] if "class" in columns else []
    return label + [format(columns[key][k], form) for key in (mean, "lower", "upper")]


def _left_out(smooth: Sequence[int], n_classes: int) -> list[int]:
    """The points of a smooth function to omit: evenly spaced ones are printed."""
    n_points = len(smooth) // n_classes
    if n_points <= _MAX_POINTS:
        return []
    chosen = {round(k * (n_points - 1) / (_MAX_POINTS - 1)) for k in range(_MAX_POINTS)}
    return [entry for at, entry in enumerate(smooth) if at // n_classes not in chosen]


def _largest(rows: Sequence[int], mean: Sequence[float], n_classes: int) -> list[int]:
    """The rows with the largest contributions, largest first, with all classes; all in order if few."""
    if len(rows) <= _MAX_ROWS:
        return list(rows)
    entries = [rows[at : at + n_classes] for at in range(0, len(rows), n_classes)]
    entries.sort(key=lambda entry: -max(abs(mean[k]) for k in entry))
    return [k for entry in entries[: max(_MAX_ROWS // n_classes, 1)] for k in entry]


def _remarks(local: LocalExplanation, coverage: float) -> list[str]:
    """Lines below the contributions to a prediction."""
    below = []
    if not local.family.link.classes:
        below.append(
            "The band of the sum is that of the expected value. Single observations scatter more: for "
            f"prediction intervals use lanam predict --interval {coverage:g}."
        )
    n_dropped = sum(not term.active for term in local.terms)
    if n_dropped:
        below.append(f"Dropped terms, without contributions: {n_dropped}.")
    return ["", *below] if below else []


def _values(columns: FrameColumns, k: int) -> list[str]:
    """The values in row ``k`` of a frame, of each column of its term."""
    axes = [name.removesuffix("value") for name in columns if name.endswith("value")]
    cells = [(columns[f"{axis}value"][k], columns[f"{axis}level"][k]) for axis in axes]
    return [
        f"{value:.5g}" if level is None else shorten(" ".join(str(level).split()), _MAX_NAME)
        for value, level in cells
        if level is not None or not (value is None or math.isnan(value))
    ]
