"""Arrays, texts and the model itself, packed into the page for its scripts (``score.js``)."""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lanam.core.arrays import Array, IntArray
from lanam.explain.portable import PortableModel, TableAxis, TermTable
from lanam.explain.values import plain
from lanam.text import one_line, utf8

#: The largest of some numbers in single precision lies between these.
_SINGLE = (1e-25, 1e37)


def pack(array: ArrayLike | None, kind: str = "f8") -> dict[str, str] | None:
    """An array as base64 of its little-endian bytes: "f4", "f8" or "i4"; None stays None.

    All first bytes come first, then all second bytes, and so on: similar signs and exponents side by side
    compress to half the size.

    Examples
    --------
    >>> pack([1.0, 0.5], "f4")
    {'kind': 'f4', 'data': 'AAAAAIAAPz8='}
    """
    if array is None:
        return None
    numbers = np.ascontiguousarray(array, dtype=f"<{kind}").ravel()
    sorted_bytes = numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()
    return {"kind": kind, "data": base64.b64encode(sorted_bytes).decode("ascii")}


def _pack_single(array: Array | None) -> dict[str, str] | None:
    """In single precision, unless the numbers are too large or too small for it."""
    largest = 0.0 if array is None else float(np.abs(array).max(initial=0.0))
    return pack(array, "f4" if largest == 0.0 or _SINGLE[0] < largest < _SINGLE[1] else "f8")


def rounded(array: object, digits: int = 6) -> object:
    """Nested lists of numbers with some significant digits; None for NaN.

    Examples
    --------
    >>> rounded([1 / 3, 2e-9 / 3, float("nan")])
    [0.333333, 6.66667e-10, None]
    """
    if isinstance(array, list | tuple | np.ndarray):
        return [rounded(item, digits) for item in np.asarray(array).tolist()]
    if array is None or array != array:
        return None
    return float(f"{array:.{digits}g}") if isinstance(array, float) else array


def compressed(text: str) -> str:
    """A text as base64 of its compressed bytes, reproducibly."""
    return base64.b64encode(gzip.compress(utf8(text), compresslevel=6, mtime=0)).decode("ascii")


def script_source(text: str) -> str:
    """The hash of an inline script for a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(utf8(text)).digest()).decode('ascii')}'"


def pack_model(portable: PortableModel, normals: Array | None) -> dict[str, object]:
    """A model's tables as data for the page; ``normals`` are the draws for intervals of classes.

    Means are exact. Variances are in single precision, which halves the file and changes a band by a
    millionth.
    """
    factor = portable.factor
    return {
        "link": portable.link,
        "family": portable.family.name,
        "classes": plain(portable.classes),
        "intercept": pack(np.atleast_1d(portable.intercept)),
        "factor": _pack_single(factor[np.tril_indices(len(factor))]),
        "noise_variance": portable.noise_variance,
        "missing_variance": pack(portable.missing_variance),
        "log_noise": portable.log_noise,
        "noise_tables": [_pack_table(table) for table in portable.noise_tables],
        "shape": portable.shape and portable.shape.as_lists(),
        "contrasts": pack(portable.contrasts),
        "cut_points": portable.parameters.get("cut_points"),
        "normals": pack(normals, "f4"),
        "tables": [_pack_table(table) for table in portable.tables],
    }


def _pack_table(table: TermTable) -> dict[str, object]:
    return {
        "name": one_line(table.name),
        "index": table.index,
        "features": list(table.features),
        "axes": [
            vars(axis) | {"points": pack(axis.points, "i4" if axis.kind == "codes" else "f8")}
            for axis in table.axes
        ],
        "mean": pack(table.mean),
        "table": _pack_single(table.table),
        "width": table.table.shape[1],
        "start": table.start,
        "unknown_variance": pack(table.unknown_variance),
        "coupling": _pack_single(table.coupling),
        "own_variance": _pack_single(table.own_variance),
        "edited": pack(table.edited, "i4"),
    }


def with_levels(table: TermTable, codes: IntArray) -> TermTable:
    """A high-cardinality term restricted to the entries of these codes; others read as unseen."""
    (axis,) = table.axes
    assert axis.missing is not None
    assert axis.other is not None
    kept = np.unique(np.asarray(axis.points)[codes])
    kept = kept[kept < axis.missing]
    entries = np.concatenate([kept, [axis.missing, axis.other]])
    place = np.full(axis.n_entries, len(kept) + 1)
    place[entries] = np.arange(len(entries))
    narrow = TableAxis("codes", place[axis.points], len(entries), len(kept), len(kept) + 1)
    names = ("mean", "table", "coupling", "own_variance", "data_mass", "edited")
    arrays: dict[str, Any] = {name: getattr(table, name) for name in names}
    chosen: dict[str, Any] = {k: None if a is None else a[entries] for k, a in arrays.items()}
    return replace(table, axes=(narrow,), **chosen)
