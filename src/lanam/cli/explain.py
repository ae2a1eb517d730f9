"""``lanam explain``: what a model says, as a whole, of one term, or of one row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v1 as nw

from lanam.cli.deciding import listed
from lanam.cli.errors import Complaint, Misuse
from lanam.cli.models import load_model, open_for, require_columns, without
from lanam.cli.speaking import Voice
from lanam.cli.writing import require_new
from lanam.engines.dialects import Dialect
from lanam.text import aligned, number_format, shorten

_PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")

#: Of more places than this where a smooth function is tabulated, so many are printed.
_MAX_PLACES = 20
_MAX_NAME = 40


@dataclass(frozen=True)
class Request:
    """What ``lanam explain`` was asked to do; each field is an option."""

    model: str
    term: str | None = None
    noise: bool = False
    row: int | None = None
    data: str | None = None
    output: str | None = None
    coverage: float = 0.95
    force: bool = False
    dialect: Dialect = field(default_factory=Dialect)


def explain(request: Request, voice: Voice) -> None:
    """Say what a model learned, and draw it if a picture is wanted."""
    if (request.row is None) != (request.data is None):
        raise Misuse("--row and --data go together: which row of which file?")
    if request.row is not None and request.term is not None:
        raise Misuse("--term is of the whole model and --row of one row: choose one")
    if request.row is not None and request.noise:
        raise Misuse("--noise is of the whole model and --row of one row: choose one")
    if request.output is not None:
        _require_picture(request)
    model = load_model(request.model)
    if request.row is not None:
        _explain_row(request, model, voice)
    elif request.term is not None:
        _explain_term(request, _explanation(request, model), voice)
    elif request.noise:
        _explain_noise(request, _explanation(request, model), voice)
    else:
        _explain_all(request, model, voice)
    if request.output is not None:
        voice.note(f"drawn: {request.output}")


def _require_picture(request: Request) -> None:
    path = str(request.output)
    if not path.lower().endswith(_PICTURES):
        raise Misuse(f"{path}: a picture's name ends in {', '.join(_PICTURES[:3])}")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(path, force=request.force, inputs=files, example="shapes.png")


def _explain_all(request: Request, model: Any, voice: Voice) -> None:
    summary = model.summary()
    voice.tell(summary)
    if voice.json:
        explanation = model.explain_global()
        voice.document({"summary": summary.to_dict(), "explanation": explanation.to_dict()})
    if request.output is not None:
        from lanam.plot import plot_shapes

        explanation = model.explain_global()
        if not any(term.active for term in explanation.shapes):
            raise Complaint("no term of one column is active: there is nothing to draw")
        draw(plot_shapes(explanation, coverage=request.coverage), request.output)


def _explanation(request: Request, model: Any) -> Any:
    """The terms of the prediction, or of the noise."""
    if not request.noise:
        return model.explain_global()
    if not hasattr(model, "explain_noise"):
        raise Complaint("--noise is for models of numbers, and this one tells classes apart")
    return model.explain_noise()


def _explain_noise(request: Request, explanation: Any, voice: Voice) -> None:
    voice.document(explanation.to_dict())
    frame = nw.from_native(explanation.to_frame(request.coverage), eager_only=True)
    texts = [_term_text(term, frame, explanation, request.coverage) for term in explanation.active]
    voice.tell("\n\n".join(texts))
    if request.output is not None:
        from lanam.plot import plot_shapes

        draw(plot_shapes(explanation, coverage=request.coverage), request.output)


def _explain_term(request: Request, explanation: Any, voice: Voice) -> None:
    names = [term.name for term in explanation]
    if request.term not in names:
        raise Misuse(f"--term {request.term!r} is not in the model: its terms are {listed(names)}")
    term = explanation[request.term]
    if voice.json:
        voice.document(term.to_dict())
    if not term.active:
        voice.tell(f"{term.name}: {term.status}")
        if request.output is not None:
            raise Complaint(f"the term {term.name!r} is switched off: there is nothing to draw")
        return
    frame = nw.from_native(explanation.to_frame(request.coverage), eager_only=True)
    voice.tell(_term_text(term, frame, explanation, request.coverage))
    if request.output is not None:
        from lanam.plot import plot_interaction, plot_shapes

        if term.joint:
            draw(plot_interaction(explanation, term.name), request.output)
        else:
            axes = plot_shapes(explanation, terms=[term.name], coverage=request.coverage)
            draw(axes, request.output)


def _explain_row(request: Request, model: Any, voice: Voice) -> None:
    row = int(request.row or 0)
    source = open_for(model, str(request.data), request.dialect, voice)
    needed = require_columns(model, source)
    n_seen, found = 0, None
    for piece in source.each(needed):
        if row <= n_seen + len(piece.frame):
            found = piece.frame.slice(row - n_seen - 1, 1)
            break
        n_seen += len(piece.frame)
    if found is None:
        raise Misuse(f"--row {row}: {source.title} has {n_seen} rows")
    with voice.warnings():
        local = model.explain_local(found)
    if voice.json:
        voice.document({"row": row, "file": request.data, **local.to_dict()})
    columns = nw.from_native(local.to_frame(request.coverage), eager_only=True)
    voice.tell(_row_text(request, model, local, columns.to_dict(as_series=False)))
    if request.output is not None:
        from lanam.plot import plot_local

        ax = plot_local(local, coverage=request.coverage)
        # There it is the only row, and here the one that was asked for.
        title = ax.get_title(loc="left").replace("Row 0:", f"Row {row} of {source.title}:", 1)
        ax.set_title(title, loc="left", fontsize="small", parse_math=False)
        draw(ax, request.output)


def draw(axes: Any, path: str) -> None:
    """Write the figure of some axes into a file, whole or not at all."""
    import io

    import numpy as np
    from matplotlib import pyplot

    from lanam.files import write_atomically

    figure = np.ravel(axes)[0].figure
    content = io.BytesIO()
    figure.savefig(content, format=path.rsplit(".", 1)[1].lower(), dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    write_atomically(path, content.getvalue(), what="the picture")


def _term_text(term: Any, frame: nw.DataFrame[Any], explanation: Any, coverage: float) -> str:
    """A term's function as a table; the frame has those of all terms."""
    columns = frame.filter(nw.col("term") == term.name).to_dict(as_series=False)
    unit = explanation.family.words.adds_to(explanation.classes)
    classes = "class" in columns
    # What is tabulated beyond the data is for rows that are there, and not for a table to read.
    known = [k for k, inside in enumerate(columns["inside"]) if inside or columns["level"][k]]
    smooth = [k for k in known if columns["level"][k] is None]
    places = without(known, _left_out(smooth, len(explanation.classes) if classes else 1))
    whole = len(places) == len(known)
    head = [*term.feature_names, *(["class"] if classes else []), "adds", "lower", "upper"]
    form = number_format(max(abs(columns["mean"][k]) for k in places), 3)
    table = [[*head, "share of rows"] if whole else head]
    for k in places:
        cells = _places(columns, k)[: len(term.features)]
        if classes:
            cells.append(str(columns["class"][k]))
        cells += [format(columns[key][k], form) for key in ("mean", "lower", "upper")]
        table.append([*cells, f"{columns['density'][k]:.2%}"] if whole else cells)
    parts = "" if whole else f" ({len(places)} of {len(known)} places shown)"
    lines = [
        f"{term.name}: {term.kind}, importance {term.importance:.4g}",
        f"What each value adds {unit}, with {coverage:.0%} bands{parts}:",
        "",
        *aligned(table, words=[0]),
    ]
    return "\n".join(lines)


def _left_out(smooth: Sequence[int], n_classes: int) -> list[int]:
    """Which of the places of a smooth function are not printed: an even choice stays."""
    n_places = len(smooth) // n_classes
    if n_places <= _MAX_PLACES:
        return []
    chosen = {round(k * (n_places - 1) / (_MAX_PLACES - 1)) for k in range(_MAX_PLACES)}
    return [entry for at, entry in enumerate(smooth) if at // n_classes not in chosen]


def _row_text(request: Request, model: Any, local: Any, columns: dict[str, list[Any]]) -> str:
    """A row's prediction taken apart, the largest contributions first."""
    classes = "class" in columns
    last = len(columns["term"]) - 1
    n_outer = len(local.classes) if classes else 1
    inner = range(n_outer, last + 1 - n_outer)
    active = {term.name for term in local.terms if term.active}
    largest: dict[str, float] = {}
    for k in inner:
        name, size = columns["term"][k], abs(columns["contribution"][k])
        largest[name] = max(largest.get(name, 0.0), size)
    order = sorted(
        (k for k in inner if columns["term"][k] in active),
        key=lambda k: (-largest[columns["term"][k]], columns["term"][k]),
    )
    order = [*range(n_outer), *order, *range(last + 1 - n_outer, last + 1)]
    # Digits for contributions, not for an intercept that may be far larger.
    form = number_format(max(largest.values(), default=0.0), 3)
    table = [["term", "value", *(["class"] if classes else []), "adds", "lower", "upper"]]
    for k in order:
        value = ", ".join(_places(columns, k))
        outer = columns["term"][k] in ("(intercept)", "(prediction)")
        cells = [shorten(columns["term"][k], _MAX_NAME), "" if outer else value]
        if classes:
            cells.append(str(columns["class"][k]))
        table.append(
            [*cells, *(format(columns[key][k], form) for key in ("contribution", "lower", "upper"))]
        )
    unit = local.family.words.adds_to(local.classes)
    lines = [
        f"row {request.row} of {request.data}: {_response(local)}",
        f"What each term adds {unit}, with {request.coverage:.0%} bands:",
        "",
        *aligned(table, words=[0]),
    ]
    n_off = len(local.terms) - len(active)
    if n_off:
        lines += ["", f"Terms that are switched off and add nothing: {n_off}."]
    return "\n".join(lines)


def _response(local: Any) -> str:
    """The prediction in words."""
    response = local.response[0]
    link, words = local.family.link, local.family.words
    if link.several:
        shown = ", ".join(
            f"{name} {p:.1%}" for name, p in zip(local.classes, response, strict=True)
        )
        return f"probabilities {shown}"
    if link.classes:
        return f"{words.response} of {local.classes[1]} {response:.1%}"
    note = f" ({words.note})" if words.note else ""
    return f"{words.response} {response:.5g}{note}"


def _places(columns: dict[str, list[Any]], k: int) -> list[str]:
    """Where row ``k`` of a frame stands in each of its term's columns."""
    places = [name.removesuffix("value") for name in columns if name.endswith("value")]
    cells = [(columns[f"{place}value"][k], columns[f"{place}level"][k]) for place in places]
    return [_place(*cell) for cell in cells if cell[1] is not None or not _is_nan(cell[0])]


def _place(value: float | None, level: str | None) -> str:
    if level is None and value is not None:
        return f"{value:.5g}"
    return shorten(" ".join(str(level).split()), _MAX_NAME)


def _is_nan(value: float | None) -> bool:
    return value is None or math.isnan(value)
