"""Plain Python values to JSON and back, with their types: a tuple stays a tuple.

Strings, finite numbers, booleans, None and lists are themselves. What JSON lacks is an object with one
key: ``{"tuple": [...]}``, ``{"set": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"float": "nan"}``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lanam.storage.errors import DamageError, require

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEEPEST = 20


def encode(value: object) -> Any:
    """A value as JSON; TypeError for anything but plain values.

    Examples
    --------
    >>> encode((64, [0.5, float("inf")]))
    {'tuple': [64, [0.5, {'float': 'inf'}]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {"set": sorted((encode(item) for item in value), key=repr)}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if hasattr(value, "tolist"):  # sequences of pandas and polars
        return encode(value.tolist())
    raise TypeError(f"{type(value).__name__} is not a plain value")


def decode(value: object, depth: int = 0) -> Any:
    """The value that was encoded.

    Examples
    --------
    >>> decode({"tuple": [64, [0.5, {"float": "inf"}]]})
    (64, [0.5, inf])
    """
    require(depth < _DEEPEST, "its values are nested too deep")
    if isinstance(value, list):
        return [decode(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    require(len(value) == 1, "a value of a kind that there is not")
    ((kind, content),) = value.items()
    if kind == "float":
        require(isinstance(content, str) and content in _SPECIAL, "a number")
        return _SPECIAL[content]
    require(isinstance(content, list), "a value that should be a list")
    items = [decode(item, depth + 1) for item in content]
    try:
        if kind == "tuple":
            return tuple(items)
        if kind == "set":
            return set(items)
        if kind == "dict":
            require(all(isinstance(item, list) and len(item) == 2 for item in items), "a pair")
            return dict(items)
    except TypeError:  # keys that cannot be keys
        pass
    raise DamageError("a value of a kind that there is not")


def decode_all(values: object, what: str) -> dict[str, Any]:
    """A dictionary of encoded values; ``what`` names it in messages."""
    if not isinstance(values, dict):
        raise DamageError(what)
    return {name: decode(value) for name, value in values.items()}
