"""A rating table as CSV, one line per entry of each term, for spreadsheets.

The contributions of a row's entries and the intercept sum to its prediction on the link scale. Between
values of kind ``value at`` contributions are interpolated linearly, in each column of a term; of kind
``cyclic at``, too, after whole periods (the last value less the first) are taken off.

In bands, contributions are means over the training data of a band, relative to those of the base levels.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np

from lanam.data import Column, Schema
from lanam.errors import InputError
from lanam.explain.portable import PortableModel, TableAxis
from lanam.explain.values import PREFIXES, cell_words, plain
from lanam.export.bands import Band, bands_of, base_of, cell_shares
from lanam.export.complete import Array, CompleteModel, CompleteTerm, complete

#: Digits of figures, and of numbers that predictions depend on.
_DIGITS = ".6g"
_EXACT = ".12g"

#: Exponents are clipped to this, where exponentials are finite.
_LARGEST_LOG = 700.0


#: What a spreadsheet takes for a formula, unless it is a number; the apostrophe that makes it text.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf", re.IGNORECASE)
_AS_TEXT = "'"

#: The number of bands of a column must lie between these.
_FEWEST_BANDS, _MOST_BANDS = 2, 200


def rating_table(portable: PortableModel, schema: Schema, *, bands: int | None = None) -> str:
    """A model's rating table as the text of a CSV file.

    With ``bands`` numeric columns have about so many ranges, within the training data, and contributions
    are relative to the base levels. Without, the table has every entry and reproduces predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.explain.portable import explain_portable
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> portable = explain_portable(model._model, model._schema)
    >>> print(rating_table(portable, model._schema).splitlines()[0])
    term,column,kind,value,below,meaning,contribution,std,share
    """
    model = complete(portable)
    lines: Iterable[list[str]]
    if bands is None:
        head = _line(model, "(intercept)", [], "everywhere", *_intercept(model), "", False)
        lines = itertools.chain([head], *(_lines(model, term, schema) for term in model.terms))
        header = _header(model)
    else:
        lines, header = _banded(model, schema, _require_bands(bands)), [*_header(model), "base"]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([guarded(cell) for cell in line] for line in itertools.chain([header], lines))
    return text.getvalue()


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    Examples
    --------
    >>> guarded("=1+1"), guarded("-1.5"), guarded("-a")
    ("'=1+1", '-1.5', "'-a")
    """
    harmless = _FORMULA.match(cell) is None or _NUMBER.fullmatch(cell)
    return cell if harmless else _AS_TEXT + cell


def _require_bands(bands: object) -> int:
    if (
        isinstance(bands, int | np.integer)
        and not isinstance(bands, bool)
        and _FEWEST_BANDS <= bands <= _MOST_BANDS
    ):
        return int(bands)
    raise InputError(
        "{given}: bands must be an integer",
        "Choose from {fewest} to {most}.",
        argument="bands",
        value=bands,
        fewest=_FEWEST_BANDS,
        most=_MOST_BANDS,
    )


def _n_places(model: CompleteModel) -> int:
    """The largest number of columns of a term."""
    return max([1, *(len(term.axes) for term in model.terms)])


def _header(model: CompleteModel) -> list[str]:
    cells = ("column", "kind", "value", "below")
    places = [f"{PREFIXES[k]}{name}" for k in range(_n_places(model)) for name in cells]
    portable = model.portable
    if model.n_classes > 1:
        labels = list(map(str, portable.classes or ()))
        numbers = [f"contribution: {label}" for label in labels]
        numbers += [f"std: {label}" for label in labels]
    else:
        factor = portable.family.words.factor
        numbers = ["contribution", "std", *([factor] if factor else [])]
    return ["term", *places, "meaning", *numbers, "share", *(["edited"] if _edited(model) else [])]


def _edited(model: CompleteModel) -> bool:
    return any(term.edited is not None for term in model.terms)


def _intercept(model: CompleteModel) -> tuple[Array, Array]:
    last = np.stack([model.factor_last(k) for k in range(model.n_outputs)])
    return model.intercept, np.square(model.contrasts @ last).sum(axis=1)


def _line(
    model: CompleteModel,
    name: str,
    cells: list[list[str]],
    meaning: str,
    mean: Array,
    variance: Array,
    share: str,
    edited: bool,
) -> list[str]:
    places = [*itertools.chain(*cells), *[""] * 4 * (_n_places(model) - len(cells))]
    numbers = [format(value, _EXACT) for value in mean]
    numbers += [format(value, _DIGITS) for value in np.sqrt(variance)]
    if model.portable.family.words.factor:
        numbers.append(format(np.exp(np.clip(mean[0], -_LARGEST_LOG, _LARGEST_LOG)), _DIGITS))
    numbers.append(share)
    if _edited(model):
        numbers.append("by hand" if edited else "")
    return [name, *places, meaning, *numbers]


def _lines(model: CompleteModel, term: CompleteTerm, schema: Schema) -> Iterator[list[str]]:
    columns = [schema.columns[feature] for feature in term.features]
    entries = [_entries(axis, column) for axis, column in zip(term.axes, columns, strict=True)]
    variance = model.variances(term)
    for entry_row in itertools.product(*entries):
        number = np.ravel_multi_index([entry for entry, _, _ in entry_row], term.shape)
        cells = [
            [column.name, *cell] for column, (_, cell, _) in zip(columns, entry_row, strict=True)
        ]
        meaning = " and ".join(words for _, _, words in entry_row)
        edited = term.edited is not None and bool(term.edited[number])
        at = term.mean[number], variance[number], format(term.share[number], _DIGITS), edited
        yield _line(model, term.name, cells, meaning, *at)


def _banded(model: CompleteModel, schema: Schema, n_bands: int) -> Iterator[list[str]]:
    """The lines of a table in bands: the base, then those of every term."""
    features = sorted({feature for term in model.terms for feature in term.features})
    columns = {k: bands_of(model.terms, k, schema.columns[k], n_bands) for k in features}
    base = {k: base_of(bands) for k, bands in columns.items()}
    mean, vectors = (
        model.intercept,
        np.stack([model.factor_last(k) for k in range(model.n_outputs)]),
    )
    for term in model.terms:
        weights = _weights(term, [base[k] for k in term.features])
        mean = mean + weights @ term.mean
        vectors = vectors + _vectors(model, term, weights)
    words = " and ".join(base[k].meaning for k in features) or "everywhere"
    variance = np.square(model.contrasts @ vectors).sum(axis=1)
    yield [*_line(model, "(base)", [], words, mean, variance, "", False), ""]
    for term in model.terms:
        yield from _banded_term(model, term, schema, columns, base)


def _banded_term(
    model: CompleteModel,
    term: CompleteTerm,
    schema: Schema,
    columns: dict[int, list[Band]],
    base: dict[int, Band],
) -> Iterator[list[str]]:
    names = [schema.columns[k].name for k in term.features]
    reference = _weights(term, [base[k] for k in term.features])
    shares = cell_shares(term, [columns[k] for k in term.features])
    for bands, share in zip(
        itertools.product(*(columns[k] for k in term.features)), shares.ravel(), strict=True
    ):
        if share == 0.0:
            continue
        weights = _weights(term, bands)
        contrast = weights - reference
        variance = np.square(model.contrasts @ _vectors(model, term, contrast)).sum(axis=1)
        if term.own_covariance is not None:
            own = np.diagonal(term.own_covariance, axis1=1, axis2=2)
            variance = variance + np.square(contrast) @ own
        edited = term.edited is not None and bool(term.edited[weights > 0.0].any())
        cells = [[name, *band.cells] for name, band in zip(names, bands, strict=True)]
        meaning = " and ".join(band.meaning for band in bands)
        at = contrast @ term.mean, variance, format(share, _DIGITS), edited
        is_base = all(band is base[k] for k, band in zip(term.features, bands, strict=True))
        yield [*_line(model, term.name, cells, meaning, *at), "base" if is_base else ""]


def _weights(term: CompleteTerm, bands: Iterable[Band]) -> Array:
    """The weights of a term's entries in the mean of a cell of bands."""
    sides = [band.weights(axis) for band, axis in zip(bands, term.axes, strict=True)]
    return np.asarray(reduce(np.multiply.outer, sides)).ravel()


def _vectors(model: CompleteModel, term: CompleteTerm, weights: Array) -> Array:
    """What weighted entries add to the outputs' coordinates."""
    rows = weights @ term.rows
    return np.stack([rows @ model.factor_rows(term, k) for k in range(model.n_outputs)])


def _entries(axis: TableAxis, column: Column) -> list[tuple[int, list[str], str]]:
    """The entries of an axis: index, cells (kind, value, upper end) and meaning.

    Missing values may share an entry with unseen ones: both are listed.
    """
    entries = [(entry, *place) for entry, place in enumerate(_points(axis, column))]
    assert axis.missing is not None
    entries.append((axis.missing, ["missing", "", ""], f"{column.name} is missing"))
    if axis.other is not None and axis.kind != "bins":
        what = "level" if axis.kind == "codes" else "value"
        entries.append((axis.other, ["other", "", ""], f"{column.name} is any other {what}"))
    return entries


def _points(axis: TableAxis, column: Column) -> Iterator[tuple[list[str], str]]:
    points = axis.points.tolist()
    if axis.kind == "codes":
        labels = dict(zip(points, column.levels, strict=True))
        for entry in range(axis.missing or 0):
            label = str(plain(labels[entry]))
            yield ["level", label, ""], f"{column.name} is {label}"
    elif axis.kind == "bins":
        for low, high in itertools.pairwise([None, *points, None]):
            words = [] if low is None else [f"from {cell_words(low)}"]
            words += [] if high is None else [f"below {cell_words(high)}"]
            ends = ["" if end is None else repr(end) for end in (low, high)]
            yield ["from", *ends], f"{column.name} {' to '.join(words)}"
    else:
        knots = axis.kind == "knots"
        cyclic = axis.period is not None
        kind = "cyclic at" if cyclic else "value at" if knots else "value"
        beyond = {0: " or less", len(points) - 1: " or more"} if knots and not cyclic else {}
        for number, point in enumerate(points):
            at = f"{cell_words(point)}{beyond.get(number, '')}"
            yield [kind, repr(point), ""], f"{column.name} is {at}"
