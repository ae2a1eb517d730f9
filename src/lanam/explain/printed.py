"""Explanations as printed: at most a screen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array
from lanam.explain.bands import intervals
from lanam.explain.terms import Shape, Surface, Term, term_names
from lanam.explain.values import OnLinkScale, Values, cell_words
from lanam.text import WIDTH, aligned, few, few_in, narrowed, number_format, shorten, visible

#: Lines of a table.
_MAX_LINES = 30
#: Names and values of a table are cut to this many characters.
_LEAST_NAME = 16
_MAX_NAME = 32
_MAX_VALUE = 16
_MAX_CLASSES = 5
#: The largest contributions to each of several predictions.
_MAX_LARGEST = 3


class PrintedTerms(OnLinkScale):
    """A model's terms as printed: importances, and where contributions are lowest and highest."""

    intercept: float | Array
    terms: tuple[Shape | Surface, ...]

    def __repr__(self) -> str:
        n_active = sum(term.active for term in self.terms)
        return f"{type(self).__name__}({len(self.terms)} terms, {n_active} active)"

    def __str__(self) -> str:
        active = sorted((term for term in self.terms if term.active), key=lambda t: -t.importance)
        dropped = [term for term in self.terms if not term.active]
        lines = [
            f"{type(self).__name__}: {len(active)} of {len(self.terms)} terms active, "
            f"{_intercepts(self.intercept)}"
        ]
        if active:
            shown = active[:_MAX_LINES]
            unit = visible(self.family.words.adds_to(self.classes))
            lines += [f"contributions {unit}, within the range of the training data:", ""]
            lines += aligned(_terms_table(shown, self._labels_of_classes()), words=(0, 1, 4, 5))
            if len(active) > len(shown):
                lines.append(f"... and {len(active) - len(shown)} more")
        if dropped:
            lines += ["", f"dropped: {few_in(term_names(dropped), WIDTH - 25)}"]
        return "\n".join([*lines, "", 'all values: to_frame(); of one term: ["name"]'])

    def _labels_of_classes(self) -> Sequence[object] | None:
        return self.classes if self.family.link.several else None


class PrintedRows(OnLinkScale):
    """Explained predictions as printed: one row in full, or the largest contributions to several."""

    intercept: float | Array
    terms: tuple[Term, ...]
    column_values: tuple[Values, ...]
    contributions: Array
    contributions_std: Array
    prediction: Array
    prediction_std: Array
    response: Array
    intercept_std: float | Array
    offset: Array | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.prediction)} rows, {len(self.terms)} terms)"

    def __str__(self) -> str:
        n_rows = len(self.prediction)
        if n_rows == 1:
            lines = [response_words(self), row_text(self, most=_MAX_LINES), "", *_remarks(self)]
            return "\n".join(lines)
        unit = visible(self.family.words.adds_to(self.classes))
        lines = [f"{n_rows} predictions; contributions {unit}:", ""]
        lines += _rows_lines(self, range(min(n_rows, _MAX_LINES)))
        if n_rows > _MAX_LINES:
            lines.append(f"... and {n_rows - _MAX_LINES} more")
        return "\n".join(
            [*lines, "", "all contributions: to_frame(); one row in full: X of one row"]
        )


def response_words(local: PrintedRows, row: int = 0) -> str:
    """The prediction of a row as text."""
    response, classes = local.response[row], local.classes or ("", "")
    link, words = local.family.link, local.family.words
    if link.several:
        parts = [
            f"{shorten(str(name), _MAX_NAME)} {p:.1%}"
            for name, p in zip(classes, response, strict=True)
        ]
        if len(parts) > _MAX_CLASSES:
            parts = [parts[k] for k in np.argsort(-response, kind="stable")]
        return "probabilities " + few(parts, _MAX_CLASSES)
    if link.classes:
        return visible(f"{words.response} of {classes[1]} {response:.1%}")
    note = f" ({words.note})" if words.note else ""
    return f"{words.response} {response:.5g}{note}"


def row_text(local: PrintedRows, coverage: float = 0.95, most: int | None = None) -> str:
    """The contributions to the prediction of a single row, the largest first; ``most`` limits lines."""
    active = [k for k, term in enumerate(local.terms) if term.active]
    sizes = np.abs(local.contributions[0]).reshape(len(local.terms), -1).max(axis=1)
    order = sorted(active, key=lambda k: (-sizes[k], local.terms[k].name))
    labels = _shown_classes(local, most)
    shown = order if most is None else order[: max(most // max(len(labels), 1) - 2, 1)]
    # As many digits as contributions need: the intercept may be far larger.
    form = number_format(float(sizes.max(initial=0.0)), 3)
    names = dict(zip(active, term_names([local.terms[k] for k in active]), strict=True))
    parts = [("(intercept)", "", np.asarray(local.intercept), np.asarray(local.intercept_std))]
    for k in shown:
        means, stds = local.contributions[0, k], local.contributions_std[0, k]
        parts.append((names[k], _value_words(local, k), means, stds))
    if local.offset is not None:
        parts.append(("(offset)", "", local.offset[0], np.zeros(())))
    last = ("(sum)", "", local.prediction[0], local.prediction_std[0])
    head = ["term", "value", *(["class"] if labels else []), "contribution", "lower", "upper"]
    table = [
        head,
        *(row for part in (*parts, last) for row in _part_rows(part, labels, coverage, form)),
    ]
    unit = visible(local.family.words.adds_to(local.classes))
    lines = [f"Contribution of each term {unit}, with {coverage:.0%} credible bands:", ""]
    lines += aligned(table, words=[0])
    if len(order) > len(shown):
        lines.insert(-max(len(labels), 1), f"... and {len(order) - len(shown)} more")
    return "\n".join(lines)


def _shown_classes(local: PrintedRows, most: int | None) -> dict[int, str]:
    """Names of several classes by place; of many, the most probable ones if lines are limited."""
    if not local.family.link.several or local.classes is None:
        return {}
    likely = np.argsort(-local.response[0], kind="stable")
    places = likely if most is None else likely[:_MAX_CLASSES]
    return {int(place): shorten(str(local.classes[place]), _MAX_NAME) for place in sorted(places)}


def _part_rows(
    part: tuple[str, str, Array, Array], labels: dict[int, str], coverage: float, form: str
) -> list[list[str]]:
    """The cells of one part of a prediction, one row for each class that is shown."""
    name, value, mean, std = part
    means = np.atleast_1d(mean)
    ends = intervals(means, np.atleast_1d(std), coverage)
    return [
        [
            name,
            value,
            *([labels[k]] if labels else []),
            *(format(x, form) for x in (means[k], *ends[k])),
        ]
        for k in labels or (0,)
    ]


def _remarks(local: PrintedRows) -> list[str]:
    """Remarks below the contributions to a prediction."""
    remarks = []
    n_dropped = sum(not term.active for term in local.terms)
    if not local.family.link.classes:
        remarks.append(
            "The band of the sum is that of the expected value: see also predict_interval."
        )
    if n_dropped:
        remarks.append(f"Dropped terms, without contributions: {n_dropped}.")
    return [*remarks, "All contributions: to_frame()."]


def _rows_lines(local: PrintedRows, rows: Sequence[int]) -> list[str]:
    """A line for each row: the prediction, its interval and the largest contributions."""
    link, several = local.family.link, local.family.link.several
    head = ["row", "class" if several else local.family.words.response]
    table = [[*head, "probability"] if several else [*head, "95% interval"]]
    ends = intervals(local.prediction, local.prediction_std, 0.95)
    form = number_format(float(np.abs(local.response[list(rows)]).max(initial=0.0)), 4)
    for row in rows:
        response = local.response[row]
        if several and local.classes:
            best = int(np.argmax(response))
            cells = [shorten(str(local.classes[best]), _MAX_VALUE), f"{response[best]:.1%}"]
        elif link.classes:
            low, high = link.inverse(ends[row])
            cells = [f"{response:.1%}", f"{low:.1%} to {high:.1%}"]
        else:
            low, high = link.inverse(ends[row])
            cells = [format(response, form), f"{low:{form}} to {high:{form}}"]
        table.append([str(row + 1), *cells])
    lines = aligned(table)
    room = WIDTH - max(map(len, lines)) - 2
    texts = ["largest contributions", *(_largest(local, row, room) for row in rows)]
    return [
        f"{line.ljust(WIDTH - room - 2)}  {text}" for line, text in zip(lines, texts, strict=True)
    ]


def _largest(local: PrintedRows, row: int, room: int) -> str:
    """The largest contributions to a prediction, of the predicted class, that have room."""
    parts = local.contributions[row]
    if parts.ndim > 1:
        parts = parts[:, int(np.argmax(local.response[row]))]
    order = [k for k in np.argsort(-np.abs(parts), kind="stable") if parts[k] != 0.0]
    text = ""
    for k in order[:_MAX_LARGEST]:
        further = f"{', ' if text else ''}{shorten(local.terms[k].name, _MAX_NAME)} {parts[k]:+.3g}"
        if len(text) + len(further) > room and text:
            break
        text += further
    return text


def _value_words(local: PrintedRows, k: int) -> str:
    """A row's values of a term's columns."""
    cells = [values[0, k] for values in local.column_values[: len(local.terms[k].features)]]
    return ", ".join(shorten(cell_words(cell), _MAX_NAME) for cell in cells)


def _intercepts(intercept: float | Array) -> str:
    if np.ndim(intercept) == 0:
        return f"intercept {intercept:.4g}"
    return f"intercepts {few([f'{each:.3g}' for each in np.ravel(intercept)], 4)}"


def _terms_table(
    terms: Sequence[Shape | Surface], classes: Sequence[object] | None
) -> list[tuple[str, ...]]:
    """Importances, and the lowest and highest contribution of each term with their places."""
    form = number_format(max(term.importance for term in terms), 3)
    table: list[tuple[str, ...]] = [
        ("term", "kind", "importance", "95% interval", "lowest", "highest")
    ]
    for name, term in zip(term_names(terms), terms, strict=True):
        low, high = term.importance_interval()
        ends = [_extreme(term, way, classes) for way in (np.argmin, np.argmax)]
        band = f"{low:{form}} to {high:{form}}"
        row = (name, term.kind, format(term.importance, form), band)
        table.append((*row, *ends))
    return narrowed(table, _LEAST_NAME, _MAX_NAME)


def _extreme(term: Shape | Surface, way: object, classes: Sequence[object] | None) -> str:
    """The lowest or highest contribution of a term to any class, and its place."""
    inside = term.inside.reshape(*term.inside.shape, *[1] * (term.mean.ndim - term.inside.ndim))
    fill = np.inf if way is np.argmin else -np.inf
    means = np.where(inside, term.mean, fill)
    place = np.unravel_index(int(way(means)), means.shape)  # type: ignore[operator]
    sides = [(axis.values, axis.others) for axis in term.axes] if isinstance(term, Surface) else []
    cells = []
    for at, (values, others) in zip(place, sides or [(term.values, ())], strict=False):
        cells.append(values[at] if at < len(values) else others[at - len(values)])
    words = shorten(cell_words(*cells), _MAX_VALUE)
    label = f" ({shorten(str(classes[int(place[-1])]), _MAX_VALUE)})" if classes else ""
    return f"{means[place]:+.3g} at {words}{label}"
