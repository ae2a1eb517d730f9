"""Fragments of SQL: quoted names, literals, CASE expressions, and sums of any length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

#: Longer sums are grouped, since databases limit the depth of expressions.
_LONGEST_SUM = 50


def quoted(name: str, what: str) -> str:
    """A quoted name.

    Examples
    --------
    >>> print(quoted('say "hi"; --', "the table"))
    "say ""hi""; --"
    """
    if not name or "\0" in name:
        raise ValueError(
            f"the name {name!r} of {what} cannot be written in SQL: rename it by columns=, such as "
            f"columns={{{name!r}: 'some_name'}}"
        )
    return '"' + name.replace('"', '""') + '"'


def text(value: str, column: str) -> str:
    """A string literal.

    Examples
    --------
    >>> print(text("it's", "city"))
    'it''s'
    """
    if "\0" in value:
        raise ValueError(
            f"column {column!r} has the category {value!r}, and strings in SQL have no NUL: rename it "
            "before fitting"
        )
    return "'" + value.replace("'", "''") + "'"


def number(value: float, digits: int = 17) -> str:
    """A literal that every database reads as a double.

    Without an exponent some would read a decimal of fixed precision; negative numbers are in parentheses,
    since two minus signs begin a comment.

    Examples
    --------
    >>> number(0.5), number(-3.0), number(1e-300)
    ('0.5e0', '(-3.0e0)', '1e-300')
    """
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(
            "the model has values near the largest floats, whose differences cannot be written in SQL: "
            "use larger units before fitting"
        )
    short = repr(value)
    if digits < 17 and len(short) > digits:
        short = format(value, f".{digits}g")
    short = short if "e" in short else f"{short}e0"
    return f"({short})" if value < 0.0 or short[0] == "-" else short


def total(parts: Sequence[str]) -> str:
    """The sum of expressions, of bounded depth."""
    if not parts:
        return "0e0"
    while len(parts) > _LONGEST_SUM:
        groups = [parts[at : at + _LONGEST_SUM] for at in range(0, len(parts), _LONGEST_SUM)]
        parts = [f"({' + '.join(group)})" for group in groups]
    return " + ".join(parts)


def scaled(factors: Sequence[float], names: Sequence[str], digits: int) -> list[str]:
    """Products of numbers and names, or numbers without a name, but none that are zero."""
    return [
        f"{number(factor, digits)} * {name}" if name else number(factor, digits)
        for factor, name in zip(factors, names, strict=True)
        if factor != 0.0
    ]


def by_interval(value: str, ends: Sequence[float], inside: Callable[[int], str]) -> str:
    """A CASE expression by intervals: ``inside(k)`` from ``ends[k - 1]`` on and below ``ends[k]``.

    Nested as a binary search.

    Examples
    --------
    >>> by_interval("x", [1.0, 2.0], lambda k: f"{k}")
    'CASE WHEN x < 2.0e0 THEN CASE WHEN x < 1.0e0 THEN 0 ELSE 1 END ELSE 2 END'
    """

    def between(low: int, high: int) -> str:
        if low == high:
            return inside(low)
        middle = (low + high) // 2
        below, above = between(low, middle), between(middle + 1, high)
        return f"CASE WHEN {value} < {number(ends[middle])} THEN {below} ELSE {above} END"

    return between(0, len(ends))


def by_value(value: str, options: Sequence[tuple[str, str]], otherwise: str) -> str:
    """A CASE expression by values."""
    if not options:
        return otherwise
    cases = " ".join(f"WHEN {value} = {option} THEN {result}" for option, result in options)
    return f"CASE {cases} ELSE {otherwise} END"


def exponential(value: str) -> str:
    """The exponential, clipped since some databases reject infinite results."""
    return f"exp(CASE WHEN {value} > 7e2 THEN 7e2 WHEN {value} < -7e2 THEN -7e2 ELSE {value} END)"


def next_above(value: float) -> float:
    """The next larger number, as the end of an interval that includes the value."""
    return float(np.nextafter(value, math.inf))


def level_literal(level: str | float, column: str) -> str:
    """A level as a literal: a string, or a number, also for booleans."""
    if isinstance(level, str):
        return text(level, column)
    return str(int(level)) if isinstance(level, int) else number(float(level))
