"""``lanam explain``: what a model says, as a whole, of one term, or of one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw

from lanam.cli.console import Console
from lanam.cli.deciding import listed
from lanam.cli.errors import CLIError, UsageError
from lanam.cli.models import load_model, open_for, require_columns, without
from lanam.cli.requests import Explain
from lanam.cli.writing import require_new
from lanam.text import aligned, number_format, shorten

if TYPE_CHECKING:
    from lanam.cli.models import Estimator
    from lanam.explain import GlobalExplanation, LocalExplanation, Term

#: What draws what was said.
Drawing = Callable[[], object]
#: The columns of an explanation's frame.
Columns = Mapping[str, Sequence[Any]]

_PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")

#: Of more places than this where a smooth function is tabulated, so many are printed.
_MAX_PLACES = 20
_MAX_NAME = 40


def explain(request: Explain, console: Console) -> None:
    """Say what a model learned, and draw it if a picture is wanted."""
    if (request.row is None) != (request.data is None):
        raise UsageError("--row and --data go together: which row of which file?")
    for option, said in (("--term", request.term is not None), ("--noise", request.noise)):
        if request.row is not None and said:
            raise UsageError(f"{option} is of the whole model and --row of one row: choose one")
    if request.output is not None:
        _require_picture(request.output, request)
    model = load_model(request.model)
    if request.row is not None and request.data is not None:
        drawn = _explain_row(request.row, request.data, request, model, console)
    elif request.term is not None or request.noise:
        drawn = _explain_terms(request, _explanation(request, model), console)
    else:
        drawn = _explain_all(request, model, console)
    if request.output is not None:
        draw(drawn(), request.output)
        console.note(f"drawn: {request.output}")


def _require_picture(path: str, request: Explain) -> None:
    if not path.lower().endswith(_PICTURES):
        raise UsageError(f"{path}: a picture's name ends in {', '.join(_PICTURES[:3])}")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(path, force=request.force, inputs=files, example="shapes.png")


def _explain_all(request: Explain, model: Estimator, console: Console) -> Drawing:
    summary = model.summary()
    console.tell(summary)
    if console.json:
        explanation = model.explain_global()
        console.document({"summary": summary.to_dict(), "explanation": explanation.to_dict()})

    def drawn() -> object:
        from lanam.plot import plot_shapes

        explanation = model.explain_global()
        if not any(term.active for term in explanation.shapes):
            raise CLIError("no term of one column is active: there is nothing to draw")
        return plot_shapes(explanation, coverage=request.coverage)

    return drawn


def _explanation(request: Explain, model: Estimator) -> GlobalExplanation:
    """The terms of the prediction, or of the noise."""
    if not request.noise:
        return model.explain_global()
    if not hasattr(model, "explain_noise"):
        raise CLIError("--noise is for models of numbers, and this one tells classes apart")
    return model.explain_noise()


def _explain_terms(request: Explain, explanation: GlobalExplanation, console: Console) -> Drawing:
    """Show one term, or all that are active."""
    names = [term.name for term in explanation]
    if request.term not in (None, *names):
        raise UsageError(
            f"--term {request.term!r} is not in the model: its terms are {listed(names)}"
        )
    term = None if request.term is None else explanation[request.term]
    if console.json:
        console.document((term or explanation).to_dict())

    def drawn() -> object:
        from lanam.plot import plot_interaction, plot_shapes

        if term is None:
            return plot_shapes(explanation, coverage=request.coverage)
        if not term.active:
            raise CLIError(f"the term {term.name!r} is switched off: there is nothing to draw")
        if term.joint:
            return plot_interaction(explanation, term.name)
        return plot_shapes(explanation, terms=[term.name], coverage=request.coverage)

    if term is not None and not term.active:
        console.tell(f"{term.name}: {term.status}")
        return drawn
    frame = nw.from_native(explanation.to_frame(request.coverage), eager_only=True)
    shown = explanation.active if term is None else [term]
    texts = [_term_text(each, frame, explanation, request.coverage) for each in shown]
    console.tell("\n\n".join(texts))
    return drawn


def _explain_row(
    row: int, data: str, request: Explain, model: Estimator, console: Console
) -> Drawing:
    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    n_seen, found = 0, None
    for chunk in source.each(needed):
        if row <= n_seen + len(chunk.frame):
            found = chunk.frame.slice(row - n_seen - 1, 1)
            break
        n_seen += len(chunk.frame)
    if found is None:
        raise UsageError(f"--row {row}: {source.title} has {n_seen} rows")
    with console.warnings():
        local = model.explain_local(found)
    if console.json:
        console.document({"row": row, "file": data, **local.to_dict()})
    columns = nw.from_native(local.to_frame(request.coverage), eager_only=True)
    console.tell(f"row {row} of {data}: {_response(local)}")
    console.tell(_row_text(local, columns.to_dict(as_series=False), request.coverage))

    def drawn() -> object:
        from lanam.plot import plot_local

        ax = plot_local(local, coverage=request.coverage)
        # There it is the only row, and here the one that was asked for.
        title = ax.get_title(loc="left").replace("Row 0:", f"Row {row} of {source.title}:", 1)
        ax.set_title(title, loc="left", fontsize="small", parse_math=False)
        return ax

    return drawn


def draw(axes: object, path: str) -> None:
    """Write the figure of some axes into a file, whole or not at all."""
    import io

    import numpy as np
    from matplotlib import pyplot

    from lanam.files import write_atomically

    figure = np.ravel(np.asarray(axes))[0].figure
    content = io.BytesIO()
    figure.savefig(content, format=path.rsplit(".", 1)[1].lower(), dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    write_atomically(path, content.getvalue(), what="the picture")


def _term_text(
    term: Term, frame: nw.DataFrame[Any], explanation: GlobalExplanation, coverage: float
) -> str:
    """A term's function as a table; the frame has those of all terms."""
    columns = frame.filter(nw.col("term") == term.name).to_dict(as_series=False)
    # What is tabulated beyond the data is for rows that are there, and not for a table to read.
    known = [k for k, inside in enumerate(columns["inside"]) if inside or columns["level"][k]]
    smooth = [k for k in known if columns["level"][k] is None]
    n_outer = len(explanation.classes or ()) if "class" in columns else 1
    places = without(known, _left_out(smooth, n_outer))
    whole = len(places) == len(known)
    form = number_format(max(abs(columns["mean"][k]) for k in places), 3)
    table = [[*term.feature_names, *_head(columns), *(["share of rows"] if whole else [])]]
    for k in places:
        cells = [*_places(columns, k)[: len(term.features)], *_cells(columns, k, "mean", form)]
        table.append([*cells, f"{columns['density'][k]:.2%}"] if whole else cells)
    unit = explanation.family.words.adds_to(explanation.classes)
    parts = "" if whole else f" ({len(places)} of {len(known)} places shown)"
    lines = [
        f"{term.name}: {term.kind}, importance {term.importance:.4g}",
        f"What each value adds {unit}, with {coverage:.0%} bands{parts}:",
        "",
        *aligned(table, words=[0]),
    ]
    return "\n".join(lines)


def _head(columns: Columns) -> list[str]:
    return [*(["class"] if "class" in columns else []), "adds", "lower", "upper"]


def _cells(columns: Columns, k: int, mean: str, form: str) -> list[str]:
    """What row ``k`` of a frame adds, below the head."""
    own = [str(columns["class"][k])] if "class" in columns else []
    return own + [format(columns[key][k], form) for key in (mean, "lower", "upper")]


def _left_out(smooth: Sequence[int], n_classes: int) -> list[int]:
    """Which of the places of a smooth function are not printed: an even choice stays."""
    n_places = len(smooth) // n_classes
    if n_places <= _MAX_PLACES:
        return []
    chosen = {round(k * (n_places - 1) / (_MAX_PLACES - 1)) for k in range(_MAX_PLACES)}
    return [entry for at, entry in enumerate(smooth) if at // n_classes not in chosen]


def _row_text(local: LocalExplanation, columns: Columns, coverage: float) -> str:
    """A row's prediction taken apart, the largest contributions first."""
    names = columns["term"]
    n_outer = len(local.classes or ()) if "class" in columns else 1
    rows = range(len(names))
    first, inner, last = rows[:n_outer], rows[n_outer:-n_outer], rows[-n_outer:]
    active = {term.name for term in local.terms if term.active}
    largest: dict[str, float] = {}
    for k in inner:
        largest[names[k]] = max(largest.get(names[k], 0.0), abs(columns["contribution"][k]))
    order = sorted(
        (k for k in inner if names[k] in active), key=lambda k: (-largest[names[k]], names[k])
    )
    # Digits for contributions, not for an intercept that may be far larger.
    form = number_format(max(largest.values(), default=0.0), 3)
    table = [["term", "value", *_head(columns)]]
    for k in (*first, *order, *last):
        value = "" if k in first or k in last else ", ".join(_places(columns, k))
        name = shorten(names[k], _MAX_NAME)
        table.append([name, value, *_cells(columns, k, "contribution", form)])
    unit = local.family.words.adds_to(local.classes)
    lines = [f"What each term adds {unit}, with {coverage:.0%} bands:", ""]
    lines += aligned(table, words=[0])
    n_off = len(local.terms) - len(active)
    if n_off:
        lines += ["", f"Terms that are switched off and add nothing: {n_off}."]
    return "\n".join(lines)


def _response(local: LocalExplanation) -> str:
    """The prediction in words."""
    response, classes = local.response[0], local.classes or ("", "")
    link, words = local.family.link, local.family.words
    if link.several:
        pairs = zip(classes, response, strict=True)
        return "probabilities " + ", ".join(f"{name} {p:.1%}" for name, p in pairs)
    if link.classes:
        return f"{words.response} of {classes[1]} {response:.1%}"
    note = f" ({words.note})" if words.note else ""
    return f"{words.response} {response:.5g}{note}"


def _places(columns: Columns, k: int) -> list[str]:
    """Where row ``k`` of a frame stands in each of its term's columns."""
    places = [name.removesuffix("value") for name in columns if name.endswith("value")]
    cells = [(columns[f"{place}value"][k], columns[f"{place}level"][k]) for place in places]
    return [
        f"{value:.5g}" if level is None else shorten(" ".join(str(level).split()), _MAX_NAME)
        for value, level in cells
        if level is not None or not (value is None or math.isnan(value))
    ]
