"""Edits of terms in the units of the data: checked, applied, and recorded.

A record is plain data, ready for JSON: the term, the action, the range, the fraction of the training data
that it concerns, the reason, the date and the author.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypedDict

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.core.model import editing
from lanam.core.model.constraining import is_linear, make_monotone
from lanam.core.model.editing import WHOLE, Region
from lanam.core.model.fitted import FittedModel
from lanam.core.terms.knots import Categories, Grid
from lanam.data import CATEGORICAL, Column, Level, Schema
from lanam.errors import InputError, warn_user
from lanam.explain import Term, describe_terms, plain
from lanam.explain.evaluation import read_values
from lanam.explain.values import cell_words
from lanam.parameters import is_number
from lanam.provenance import utc_now
from lanam.text import did_you_mean, few
from lanam.version import __version__

#: Directions of monotone effects; 0 is that of the curve.
_DIRECTIONS = {"monotone": 0, "increasing": 1, "decreasing": -1}

ACTIONS = ("zero", "clamp", "smooth", *_DIRECTIONS)

#: Messages list at most this many names.
_MAX_NAMED = 10


class EditedRange(TypedDict):
    """The region of a column that an edit concerns."""

    column: str
    values: bool
    low: float | None
    high: float | None
    levels: list[Level] | None
    missing: bool


class Edit(TypedDict):
    """The record of an edit."""

    term: str
    terms: list[str]
    action: str
    where: list[EditedRange]
    width: float | None
    changed_share: float
    reason: str | None
    #: when, in UTC; None in files of earlier versions
    date: str | None
    author: str | None
    lanam_version: str


@dataclass(frozen=True)
class Where:
    """The arguments that specify the range of an edit; for interactions, mappings by column."""

    low: object = None
    high: object = None
    levels: object = None
    missing: object = None

    def of(self, column: str) -> dict[str, object]:
        """The arguments for one column that are not None."""
        values = {
            argument: value.get(column) if isinstance(value, Mapping) else value
            for argument, value in vars(self).items()
        }
        return {argument: value for argument, value in values.items() if value is not None}


def edit(
    model: FittedModel,
    schema: Schema,
    name: object,
    action: str,
    where: Where,
    *,
    width: Any = None,
    reason: str | None = None,
    author: str | None = None,
) -> tuple[FittedModel, Edit]:
    """A model with an edited term, and the record of the edit."""
    if action not in ACTIONS:
        raise ValueError(f"action={action!r} must be one of {', '.join(map(repr, ACTIONS))}")
    for argument, value in (("reason", reason), ("author", author)):
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{argument}={value!r} must be a string")
    indices, terms = _find(model, schema, name)
    columns = [schema.columns[feature] for feature in terms[0].features]
    _require_columns(where, terms[0])
    regions = [_read_region(column, where.of(column.name)) for column in columns]
    _require_own_levels(model, indices, columns, regions)
    _require_possible(action, terms[0], columns, regions, width)
    _require_ends(model, indices, action, columns)
    if action == "smooth":
        width = _read_width(width)
        _require_tables(model, indices, terms[0].name)
    if action in _DIRECTIONS:
        _require_monotone(model, indices, terms, regions[0])
    result, fractions = model, []
    for index in indices:
        if action in _DIRECTIONS:
            result, edited = make_monotone(result, index, regions[0], _DIRECTIONS[action])
        elif action == "smooth":
            result, edited = editing.smooth(result, index, regions[0], width)
        else:
            change = editing.zero if action == "zero" else editing.clamp
            result, edited = change(result, index, regions)
        if edited.any():
            fractions.append(float(result.terms[index].data_mass @ edited))
    if not fractions:
        raise ValueError(f"{action!r} changes nothing in the term {terms[0].name!r} there")
    ranges = list(map(_range_of, columns, regions))
    for column, region, place in zip(columns, regions, ranges, strict=True):
        outside = region.low > column.highest or region.high < column.lowest
        if column.kind != CATEGORICAL and outside:
            span = f"{cell_words(column.lowest)} to {cell_words(column.highest)}"
            problem = f"the training data has no {column.name!r} {_range_words(place)}"
            warn_user(UserWarning(f"{problem}: its range is {span}"))
    record: Edit = {
        "term": terms[0].name,
        "terms": [term.name for term in terms],
        "action": action,
        "where": ranges,
        "width": width,
        "changed_share": max(fractions),
        "reason": reason,
        "date": utc_now(),
        "author": author,
        "lanam_version": __version__,
    }
    return result, plain(record)


def _find(model: FittedModel, schema: Schema, name: object) -> tuple[list[int], list[Term]]:
    """The active terms of a name: the main effects of a column, or the term that has this name."""
    terms = describe_terms(model, schema)
    if not isinstance(name, str) and isinstance(name, Sequence):
        matches = [
            k for k, term in enumerate(terms) if term.joint and set(term.feature_names) == set(name)
        ]
    else:
        matches = [k for k, term in enumerate(terms) if term.feature_names == (name,)]
        matches = matches or [k for k, term in enumerate(terms) if term.name == name]
    if not matches:
        hint = did_you_mean(name, [term.name for term in terms])
        raise ValueError(f"there is no term {name!r}: {hint}")
    active = [k for k in matches if terms[k].active]
    if not active:
        term = terms[matches[0]]
        raise ValueError(
            f"the term {term.name!r} is {term.status}: it contributes nothing, so there is nothing to edit"
        )
    return active, [terms[k] for k in active]


def _require_ends(
    model: FittedModel, indices: Sequence[int], action: str, columns: Sequence[Column]
) -> None:
    """Refuse what would give a cyclic column two different ends."""
    if action in ("zero", "smooth"):
        return
    for index in indices:
        entries = model.terms[index].entries
        axes = () if entries is None else entries.axes
        for column, axis in zip(columns, axes, strict=False):
            if getattr(axis, "cyclic", False):
                raise InputError(
                    f"{action!r} is for columns with two ends, and {{column!r}} is cyclic",
                    "use 'zero' or 'smooth'",
                    column=column.name,
                )


def _require_columns(where: Where, term: Term) -> None:
    """Reject arguments for columns that the term does not have, and for none of several columns."""
    for argument, value in vars(where).items():
        if isinstance(value, Mapping):
            unknown = [key for key in value if key not in term.feature_names]
            if unknown:
                raise ValueError(
                    f"{argument}={value!r}: {unknown[0]!r} is no column of the term {term.name!r}, "
                    f"whose columns are {_some(term.feature_names)}"
                )
        elif value is not None and term.joint:
            raise ValueError(
                f"{term.name!r} is {_kind_words(term)}: specify the column, {argument}="
                f"{{{term.feature_names[0]!r}: {value!r}}}"
            )


def _read_region(column: Column, arguments: Mapping[str, object]) -> Region:
    """A region of a column from the arguments for it."""
    categorical = column.kind == CATEGORICAL
    for name in ("low", "high") if categorical else ("levels",):
        if name in arguments:
            kind, remedy = ("categorical", "levels") if categorical else ("numeric", "low and high")
            raise ValueError(
                f"{name}={arguments[name]!r}: column {column.name!r} is {kind}, its parts are given by "
                f"{remedy}"
            )
    missing = arguments.get("missing")
    if missing not in (None, True, False):
        raise ValueError(f"missing={missing!r} must be True, False or None")
    if missing and not column.missing:
        raise ValueError(
            f"missing=True: column {column.name!r} had no missing values in the training data, so they "
            "have no effect of their own to edit"
        )
    unbounded = {"low": -math.inf, "high": math.inf}
    arguments = {
        name: value
        for name, value in arguments.items()
        if not (isinstance(value, Real) and value == unbounded.get(name))
    }
    if not arguments:
        return WHOLE
    if set(arguments) == {"missing"}:
        return Region(values=False, missing=True) if missing else Region(others=True)
    low, high = (_read_number(column, arguments, name) for name in unbounded)
    if low is not None and high is not None and low > high:
        raise ValueError(f"low={arguments['low']!r} is above high={arguments['high']!r}")
    return Region(
        low=-math.inf if low is None else low,
        high=math.inf if high is None else high,
        codes=_read_levels(column, arguments["levels"]) if "levels" in arguments else None,
        missing=bool(missing),
    )


def _read_number(column: Column, arguments: Mapping[str, object], name: str) -> float | None:
    if name not in arguments:
        return None
    values = _quietly_read(column, arguments[name])
    if len(values) != 1 or math.isnan(values[0]):
        raise ValueError(
            f"{name}={arguments[name]!r} must be one number, of column {column.name!r}"
        )
    return float(values[0])


def _read_levels(column: Column, levels: object) -> IntArray:
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        levels = [levels]
    levels = list(levels)
    codes = _quietly_read(column, levels)
    unknown = [level for level, code in zip(levels, codes, strict=True) if not code >= 0.0]
    if unknown or not levels:
        what = f"{unknown[0]!r} is no category" if unknown else "levels=[] names no category"
        raise ValueError(
            f"{what} of column {column.name!r}, whose categories are {_some(column.levels)}"
        )
    return np.unique(codes.astype(np.intp))


def _quietly_read(column: Column, values: object) -> Array:
    with warnings.catch_warnings():  # unseen values are errors here, not warnings
        warnings.simplefilter("ignore", UserWarning)
        return read_values(column, values)


def _require_own_levels(
    model: FittedModel, indices: Sequence[int], columns: Sequence[Column], regions: Sequence[Region]
) -> None:
    """Reject categories that are too rare to have an effect of their own."""
    for index in indices:
        entries = model.terms[index].entries
        axes = entries.axes if isinstance(entries, Grid) else (entries,)
        for axis, column, region in zip(axes, columns, regions, strict=True):
            if isinstance(axis, Categories) and region.codes is not None:
                rare = region.codes[axis.entry_of[region.codes] >= axis.n_own]
                if len(rare):
                    raise ValueError(
                        f"the category {column.levels[rare[0]]!r} of column {column.name!r} is too rare to "
                        "have an effect of its own: it has that of all other rare categories"
                    )


def _kind_words(term: Term) -> str:
    n_columns = len(term.features)
    return "a pairwise interaction" if n_columns == 2 else f"of {n_columns} columns"


def _require_possible(
    action: str, term: Term, columns: Sequence[Column], regions: Sequence[Region], width: Any
) -> None:
    """Reject arguments that do not apply to the action."""
    name, joint = term.name, term.joint
    categorical = columns[0].kind == CATEGORICAL
    if width is not None and (action != "smooth" or categorical or joint):
        raise ValueError("width is for 'smooth' of numeric columns: leave it out")
    ranged = any(math.isfinite(end) for region in regions for end in (region.low, region.high))
    if action == "clamp":
        if categorical and not joint:
            raise ValueError(
                f"'clamp' needs a numeric column, and column {columns[0].name!r} is categorical: its "
                "categories have no order, so use 'zero', or 'smooth' to give some the same effect"
            )
        if not ranged:
            raise ValueError(
                "'clamp' needs low or high: the value beyond which the function is constant"
            )
        if any(region.codes is not None for region in regions):
            raise ValueError("'clamp' is for numeric columns: leave levels out")
    if action == "smooth" and joint:
        raise ValueError(
            f"'smooth' is for terms of one column, and {name!r} is {_kind_words(term)}: use 'zero'"
        )
    if action == "smooth" and categorical:
        codes = regions[0].codes
        if codes is None or len(codes) + regions[0].missing < 2:
            raise ValueError(
                f"'smooth' gives categories of {name!r} the same effect: name two or more, levels="
                f"[{', '.join(map(repr, columns[0].levels[:2]))}]"
            )
    elif action != "zero" and any(region.missing for region in regions if region is not WHOLE):
        raise ValueError(f"{action!r} is for numeric values: use 'zero' for missing values")


def _require_tables(model: FittedModel, indices: Sequence[int], name: str) -> None:
    if any(model.terms[index].coupling is not None for index in indices):
        raise ValueError(
            f"{name!r} has too many categories for 'smooth': combine categories in the data and fit again, "
            "or use 'zero'"
        )


def _require_monotone(
    model: FittedModel, indices: Sequence[int], terms: Sequence[Term], region: Region
) -> None:
    """Reject effects that cannot be monotone: of several columns, classes, terms, or without an order."""
    name, column = terms[0].name, terms[0].feature_names[0]
    if terms[0].joint:
        raise ValueError(
            f"{name!r} is {_kind_words(terms[0])}: name a column, whose interactions follow it"
        )
    if model.contrasts is not None:
        raise ValueError("monotone effects need one function of each column, not one of each class")
    if any(term.kind == "level" for term in terms):
        raise ValueError(
            f"column {column!r} has per-value effects, which have no order: set the term "
            f"'{column} (levels)' to zero first, or fit with monotonic_cst={{{column!r}: 1}}"
        )
    entries = model.terms[indices[0]].entries
    if isinstance(entries, Categories) and not entries.ordered:
        raise ValueError(
            f"the categories of column {column!r} have no order: fit with their order, "
            f"ordered={{{column!r}: [...]}}"
        )
    if region is not WHOLE and (region.codes is not None or region.missing or not region.values):
        raise ValueError("monotone effects are of a range of numbers, or of all ordered categories")
    if not all(is_linear(model.terms[index]) for index in indices):
        raise ValueError(
            f"the effect of {column!r} is of a trained network: fit with solver='gauss-newton', the "
            "default"
        )


def _read_width(width: Any) -> float | None:
    if width is None:
        return None
    if not (is_number(width) and 0.0 < width < math.inf):
        raise ValueError(f"width={width!r} must be a positive number, in the column's unit")
    return float(width)


def _range_of(column: Column, region: Region) -> EditedRange:
    """The region of a column as plain data."""
    return {
        "column": column.name,
        "values": region.values,
        "low": region.low if math.isfinite(region.low) else None,
        "high": region.high if math.isfinite(region.high) else None,
        "levels": None if region.codes is None else [column.levels[code] for code in region.codes],
        "missing": region.missing,
    }


def edit_words(record: Edit) -> str:
    """A record as a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi"]], y)
    >>> edit_words(model.edit_term("bmi", "clamp", high=38, reason="few patients").edits_[0])
    'bmi: constant above 38 (1.1% of the training data); few patients'
    """
    ranges = record["where"]
    words = _WORDS[record["action"]]
    fraction = f"({record['changed_share']:.1%} of the training data)"
    reason = f"; {record['reason']}" if record["reason"] else ""
    return f"{record['term']}: {words(ranges, record['width'])} {fraction}{reason}"


def signed_words(record: Edit) -> str:
    """A record as a sentence, with its day and author."""
    date = record["date"]
    signature = ", ".join(filter(None, (date and date[:10], record["author"])))
    return edit_words(record) + (f" ({signature})" if signature else "")


def _zero_words(ranges: Sequence[EditedRange], width: float | None) -> str:
    limits = [(place["column"], words) for place in ranges if (words := _range_words(place))]
    if not limits:
        return "zero everywhere"
    if len(ranges) == 1:
        return f"zero {limits[0][1]}"
    return "zero for " + " and ".join(f"{column} {words}" for column, words in limits)


def _clamp_words(ranges: Sequence[EditedRange], width: float | None) -> str:
    limits = []
    for place in ranges:
        column = f"{place['column']} " if len(ranges) > 1 else ""
        for side, end in (("below", place["low"]), ("above", place["high"])):
            if end is not None:
                limits.append(f"{column}{side} {cell_words(end)}")
    return f"constant {'for ' if len(ranges) > 1 else ''}{' and '.join(limits)}"


def _smooth_words(ranges: Sequence[EditedRange], width: float | None) -> str:
    (place,) = ranges
    where = _range_words(place) or "everywhere"
    if place["levels"] is not None:
        return f"the same effect {where}"
    if width is None:
        return f"a straight line {where}"
    return f"its mean over {cell_words(width)} on either side, {where}"


def _monotone_words(direction: str) -> _Words:
    def words(ranges: Sequence[EditedRange], width: float | None) -> str:
        return f"{direction} {_range_words(ranges[0])}".rstrip()

    return words


#: What each action makes of the ranges, with a width.
_Words = Callable[[Sequence[EditedRange], float | None], str]
_WORDS: dict[str, _Words] = {
    "zero": _zero_words,
    "clamp": _clamp_words,
    "smooth": _smooth_words,
    **{direction: _monotone_words(direction) for direction in _DIRECTIONS},
}


def _range_words(place: EditedRange) -> str:
    """A region of a column in words; "" for the whole."""
    if not place["values"]:
        return "for missing values"
    low, high, levels = place["low"], place["high"], place["levels"]
    if levels is not None:
        words = f"for {'categories' if len(levels) > 1 else 'category'} {_some(levels)}"
    elif low is not None and high is not None:
        words = f"from {cell_words(low)} to {cell_words(high)}"
    elif low is not None:
        words = f"from {cell_words(low)} on"
    elif high is not None:
        words = f"up to {cell_words(high)}"
    else:
        return "" if place["missing"] else "for all values except missing ones"
    return words + (" and for missing values" if place["missing"] else "")


def _some(names: Sequence[object]) -> str:
    return few([repr(name) for name in names], _MAX_NAMED)
