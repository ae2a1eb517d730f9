"""Edits of terms in the user's words: checked, done, and recorded.

A record is plain data, ready for JSON: what was edited and how, how much of the training data it concerns,
and the reason that was given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from numbers import Real
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.core.model import editing
from lanam.core.model.editing import WHOLE, Part
from lanam.core.model.fitted import FittedModel
from lanam.core.terms.knots import Categories, Grid
from lanam.data import CATEGORICAL, Column, Level, Schema
from lanam.errors import warn_user
from lanam.explain import Term, describe_terms, plain
from lanam.explain.evaluation import read_values
from lanam.explain.values import cell_words
from lanam.text import few
from lanam.version import __version__

ACTIONS = ("zero", "clamp", "smooth")

#: How many names an error or a sentence lists before it only counts them.
_MAX_NAMED = 10


class Place(TypedDict):
    """The part of a column that an edit speaks of."""

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
    where: list[Place]
    width: float | None
    changed_share: float
    reason: str | None
    lanam_version: str


@dataclass(frozen=True)
class Where:
    """What a user says of the place of an edit; of a pair, by column."""

    low: object = None
    high: object = None
    levels: object = None
    missing: object = None

    def of(self, column: str) -> dict[str, object]:
        """What is said of one column, and not None."""
        own = {
            argument: value.get(column) if isinstance(value, Mapping) else value
            for argument, value in vars(self).items()
        }
        return {argument: value for argument, value in own.items() if value is not None}


def edit(
    model: FittedModel,
    schema: Schema,
    name: object,
    action: str,
    where: Where,
    *,
    width: Any = None,
    reason: str | None = None,
) -> tuple[FittedModel, Edit]:
    """A model with an edited term, and the record of the edit.

    Raises
    ------
    ValueError
        It names the argument and what it could be. Warnings are at the line two frames up.
    """
    if action not in ACTIONS:
        raise ValueError(f"action={action!r} must be one of {', '.join(map(repr, ACTIONS))}")
    if reason is not None and not isinstance(reason, str):
        raise ValueError(f"reason={reason!r} must be a text")
    indices, terms = _find(model, schema, name)
    columns = [schema.columns[feature] for feature in terms[0].features]
    _require_columns(where, terms[0])
    parts = [_read_part(column, where.of(column.name)) for column in columns]
    _require_own_levels(model, indices, columns, parts)
    _require_possible(action, terms[0], columns, parts, width)
    change = {"zero": editing.zero, "clamp": editing.clamp}.get(action)
    if change is None:
        change = partial(_smooth, width=_read_width(width))
        _require_tables(model, indices, terms[0].name)
    result, shares = model, []
    for index in indices:
        result, edited = change(result, index, parts)
        if edited.any():
            shares.append(float(result.terms[index].data_mass @ edited))
    if not shares:
        raise ValueError(f"{action!r} changes nothing in the term {terms[0].name!r} there")
    places = list(map(_place_of, columns, parts))
    for column, part, place in zip(columns, parts, places, strict=True):
        if column.kind != CATEGORICAL and not _has_data(column, part):
            reach = f"it goes from {cell_words(column.lowest)} to {cell_words(column.highest)}"
            said = f"the training data has no {column.name!r} {_where_words(place)}: {reach}"
            warn_user(UserWarning(said))
    record: Edit = {
        "term": terms[0].name,
        "terms": [term.name for term in terms],
        "action": action,
        "where": places,
        "width": None if width is None else float(width),
        "changed_share": max(shares),
        "reason": reason,
        "lanam_version": __version__,
    }
    return result, plain(record)


def _smooth(
    model: FittedModel, index: int, parts: Sequence[Part], *, width: float | None
) -> tuple[FittedModel, NDArray[np.bool_]]:
    return editing.smooth(model, index, parts[0], width)


def _find(model: FittedModel, schema: Schema, name: object) -> tuple[list[int], list[Term]]:
    """The active terms of a name: all of a column alone, or the one that is called so."""
    terms = describe_terms(model, schema)
    if not isinstance(name, str) and isinstance(name, Sequence):
        found = [k for k, term in enumerate(terms) if set(term.feature_names) == set(name)]
        found = [k for k in found if terms[k].joint]
    else:
        found = [k for k, term in enumerate(terms) if term.feature_names == (name,)]
        found = found or [k for k, term in enumerate(terms) if term.name == name]
    if not found:
        names = [term.name for term in terms]
        near = get_close_matches(str(name), names, n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_some(names)}"
        )
        raise ValueError(f"there is no term {name!r}: {hint}")
    active = [k for k in found if terms[k].active]
    if not active:
        raise ValueError(
            f"the term {terms[found[0]].name!r} is {terms[found[0]].status}: it adds nothing, so there "
            "is nothing to edit"
        )
    return active, [terms[k] for k in active]


def _require_columns(where: Where, term: Term) -> None:
    """Refuse what is said of no column of the term, or of a pair but not of which column."""
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
                f"{term.name!r} is {_kind_words(term)}: say of which column, {argument}="
                f"{{{term.feature_names[0]!r}: {value!r}}}"
            )


def _read_part(column: Column, said: Mapping[str, object]) -> Part:
    """A part of a column from what is said of it."""
    categorical = column.kind == CATEGORICAL
    wrong = [name for name in (("low", "high") if categorical else ("levels",)) if name in said]
    if wrong:
        kind, remedy = ("categorical", "levels") if categorical else ("numeric", "low and high")
        raise ValueError(
            f"{wrong[0]}={said[wrong[0]]!r}: column {column.name!r} is {kind}, its parts are given by "
            f"{remedy}"
        )
    missing = said.get("missing")
    if missing not in (None, True, False):
        raise ValueError(f"missing={missing!r} must be True, False or None")
    if missing and not column.missing:
        raise ValueError(
            f"missing=True: column {column.name!r} had no missing values in the training data, so they "
            "have no effect of their own to edit"
        )
    said = {name: value for name, value in said.items() if not _is_no_end(name, value)}
    if not said:
        return WHOLE
    if set(said) == {"missing"}:
        return Part(values=False, missing=True) if missing else Part(others=True)
    low, high = (_read_number(column, said, name) for name in ("low", "high"))
    if low is not None and high is not None and low > high:
        raise ValueError(f"low={said['low']!r} is above high={said['high']!r}")
    return Part(
        low=-math.inf if low is None else low,
        high=math.inf if high is None else high,
        codes=_read_levels(column, said["levels"]) if "levels" in said else None,
        missing=bool(missing),
    )


def _is_no_end(name: str, value: object) -> bool:
    outermost = {"low": -math.inf, "high": math.inf}.get(name)
    return isinstance(value, Real) and value == outermost


def _read_number(column: Column, said: Mapping[str, object], name: str) -> float | None:
    if name not in said:
        return None
    values = _quietly_read(column, said[name])
    if len(values) != 1 or math.isnan(values[0]):
        raise ValueError(f"{name}={said[name]!r} must be one number, of column {column.name!r}")
    return float(values[0])


def _read_levels(column: Column, levels: object) -> IntArray:
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        levels = [levels]
    given = list(levels)
    codes = _quietly_read(column, given)
    unknown = [level for level, code in zip(given, codes, strict=True) if not code >= 0.0]
    if unknown or not given:
        what = f"{unknown[0]!r} is no level" if unknown else "levels=[] names no level"
        raise ValueError(
            f"{what} of column {column.name!r}, whose levels are {_some(column.levels)}"
        )
    return np.unique(codes.astype(np.intp))


def _quietly_read(column: Column, values: object) -> Array:
    with warnings.catch_warnings():  # what the data did not have is refused here, not warned of
        warnings.simplefilter("ignore", UserWarning)
        return read_values(column, values)


def _require_own_levels(
    model: FittedModel, indices: Sequence[int], columns: Sequence[Column], parts: Sequence[Part]
) -> None:
    """Refuse levels that are too rare to have an effect of their own."""
    for index in indices:
        entries = model.terms[index].entries
        axes = entries.axes if isinstance(entries, Grid) else (entries,)
        for axis, column, part in zip(axes, columns, parts, strict=True):
            if isinstance(axis, Categories) and part.codes is not None:
                rare = part.codes[axis.entry_of[part.codes] >= axis.n_own]
                if len(rare):
                    raise ValueError(
                        f"the level {column.levels[rare[0]]!r} of column {column.name!r} is too rare to "
                        "have an effect of its own: it has that of all other levels"
                    )


def _kind_words(term: Term) -> str:
    return "a pair" if len(term.features) == 2 else f"of {len(term.features)} columns"


def _require_possible(
    action: str, term: Term, columns: Sequence[Column], parts: Sequence[Part], width: Any
) -> None:
    """Refuse what an action cannot do."""
    name, joint = term.name, term.joint
    categorical = columns[0].kind == CATEGORICAL
    if width is not None and (action != "smooth" or categorical or joint):
        raise ValueError("width is for 'smooth' of numbers: leave it out")
    ranged = any(math.isfinite(end) for part in parts for end in (part.low, part.high))
    if action == "clamp":
        if categorical and not joint:
            raise ValueError(
                f"'clamp' needs numbers, and column {columns[0].name!r} is categorical: its levels have "
                "no order, so use 'zero', or 'smooth' to give some the same effect"
            )
        if not ranged:
            raise ValueError("'clamp' needs low or high: where the function is to be held")
        if any(part.codes is not None for part in parts):
            raise ValueError("'clamp' is for numbers: leave levels out")
    if action == "smooth" and joint:
        raise ValueError(
            f"'smooth' is for terms of one column, and {name!r} is {_kind_words(term)}: use 'zero'"
        )
    if action == "smooth" and categorical:
        own = 0 if parts[0].codes is None else len(parts[0].codes)
        if own + (parts[0].missing and parts[0].codes is not None) < 2:
            raise ValueError(
                f"'smooth' gives levels of {name!r} the same effect: name two of them or more, levels="
                f"[{', '.join(map(repr, columns[0].levels[:2]))}]"
            )
    elif action != "zero" and any(part.missing for part in parts if part is not WHOLE):
        raise ValueError(f"{action!r} is for numbers: use 'zero' for missing values")


def _require_tables(model: FittedModel, indices: Sequence[int], name: str) -> None:
    if any(model.terms[index].coupling is not None for index in indices):
        raise ValueError(
            f"{name!r} has very many levels, whose effects cannot be made one: combine the levels in the "
            "data and fit again, or use 'zero'"
        )


def _read_width(width: Any) -> float | None:
    if width is None:
        return None
    try:
        number = float(width)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"width={width!r} must be a positive number, in the column's unit")
    return number


def _has_data(column: Column, part: Part) -> bool:
    return part.low <= column.highest and part.high >= column.lowest


def _place_of(column: Column, part: Part) -> Place:
    """The part of a column that an edit speaks of, as data."""
    return {
        "column": column.name,
        "values": part.values,
        "low": part.low if math.isfinite(part.low) else None,
        "high": part.high if math.isfinite(part.high) else None,
        "levels": None if part.codes is None else [column.levels[code] for code in part.codes],
        "missing": part.missing,
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
    'bmi: above 38 as at 38 (1.1% of the training data); few patients'
    """
    places = record["where"]
    said = {"zero": _zero_words, "clamp": _clamp_words, "smooth": _smooth_words}[record["action"]]
    share = f"({record['changed_share']:.1%} of the training data)"
    reason = f"; {record['reason']}" if record["reason"] else ""
    return f"{record['term']}: {said(places, record['width'])} {share}{reason}"


def _zero_words(places: Sequence[Place], width: float | None) -> str:
    told = [(place["column"], words) for place in places if (words := _where_words(place))]
    if len(places) == 1:
        return f"adds nothing {told[0][1] if told else 'anywhere'}"
    where = " and ".join(f"{column} {words}" for column, words in told)
    return f"adds nothing for {where}" if told else "adds nothing anywhere"


def _clamp_words(places: Sequence[Place], width: float | None) -> str:
    told = []
    for place in places:
        of = f"{place['column']} " if len(places) > 1 else ""
        for side, end in (("below", place["low"]), ("above", place["high"])):
            if end is not None:
                told.append(f"{of}{side} {cell_words(end)} as at {cell_words(end)}")
    return ", ".join(told)


def _smooth_words(places: Sequence[Place], width: float | None) -> str:
    (place,) = places
    where = _where_words(place) or "everywhere"
    if place["levels"] is not None:
        return f"the same effect {where}"
    if width is None:
        return f"a straight line {where}"
    return f"its mean over {cell_words(width)} on either side, {where}"


def _where_words(place: Place) -> str:
    """A part of a column in words; nothing of the whole."""
    if not place["values"]:
        return "for missing values"
    low, high, levels = place["low"], place["high"], place["levels"]
    if levels is not None:
        words = f"for level{'s' if len(levels) > 1 else ''} {_some(levels)}"
    elif low is not None and high is not None:
        words = f"from {cell_words(low)} to {cell_words(high)}"
    elif low is not None:
        words = f"from {cell_words(low)} on"
    elif high is not None:
        words = f"up to {cell_words(high)}"
    else:
        return "" if place["missing"] else "for all values, not for missing ones"
    return words + (" and for missing values" if place["missing"] else "")


def _some(names: Sequence[object]) -> str:
    return few([repr(name) for name in names], _MAX_NAMED)
