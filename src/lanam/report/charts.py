"""Explanations as data for the page's charts, rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.data import CATEGORICAL
from lanam.explain import MISSING, GlobalExplanation, Shape, Surface, SurfaceAxis
from lanam.explain.ranges import data_histogram, edited_ranges, trimmed, two_values, vertical_range
from lanam.report.packing import rounded
from lanam.text import cut, not_shown, one_line

#: Up to this many distinct values are marked on a curve; more are binned. Maximum number of categories.
_FEW_VALUES = 12
_N_BINS = 40
_MAX_LEVELS = 24

#: Maximum number of characters of a label.
_MAX_LABEL = 18

#: Height of the histogram below the curve, as a fraction of the panel.
_STRIP = 0.2


def shapes_data(
    explanation: GlobalExplanation,
) -> tuple[list[dict[str, object]], tuple[float, float]]:
    """All active univariate terms, most important first, and a common vertical range."""
    shapes = [term for term in explanation.active if isinstance(term, Shape)]
    ranges = [vertical_range(shape) for shape in shapes]
    together = (
        min((low for low, _ in ranges), default=0.0),
        max((high for _, high in ranges), default=0.0),
    )
    data = [_shape(shape, own) for shape, own in zip(shapes, ranges, strict=True)]
    return data, together


def answers_rows(explanation: GlobalExplanation) -> list[tuple[str, ...]]:
    """What the curves show, in words: name (with the class if there are several) and answers."""
    several = explanation.family.link.several
    labels = [f" ({label})" for label in explanation.classes or ()] if several else [""]
    return [
        (one_line(shape.name) + label, *(clause[:1].upper() + clause[1:] for clause in clauses))
        for shape in explanation.curves
        for label, clauses in zip(labels, shape.answers().clauses(), strict=True)
    ]


def with_strip(limits: tuple[float, float]) -> object:
    """A vertical range with space for the histogram below."""
    low, high = limits
    height = (high - low) or 1.0
    return rounded([low - _STRIP * height, high + 0.06 * height])


def _shape(shape: Shape, limits: tuple[float, float]) -> dict[str, object]:
    shown: slice | IntArray = slice(None)
    if (seen := two_values(shape)) is not None:
        shown = np.flatnonzero(seen)
    if shape.kind == "categorical":
        shown = np.sort(np.argsort(-shape.density, kind="stable")[:_MAX_LEVELS])
    hidden = len(shape.values) - len(shape.values[shown]) if seen is None else 0
    data = {
        "name": one_line(shape.name),
        "kind": shape.kind if seen is None else "two",
        "feature": shape.features[0],
        "note": _note(
            shape,
            not_shown(hidden),
            f"{shape.missing_density:.1%} missing" if shape.missing_density else "",
        ),
        "description": _description(shape),
        "mean": rounded(shape.mean[shown]),
        "std": rounded(shape.std[shown]),
        "vertical": with_strip(limits),
    }
    if shape.kind == "categorical":
        labels = [str(label) for label in shape.values[shown]]
        named = [name if density > 0.0 else "(unseen)" for name, _, _, density in shape.others]
        others = [
            {
                "name": shown_name,
                "symbol": "diamond" if name == MISSING else "circle-open",
                "mean": rounded(mean),
                "std": rounded(std),
                "density": rounded(density),
            }
            for shown_name, (name, mean, std, density) in zip(named, shape.others, strict=True)
        ]
        return data | {
            "labels": labels,
            "ticks": cut([*labels, *named], _MAX_LABEL),
            "others": others,
            "edited": np.flatnonzero([*shape.edited[shown], *shape.others_edited]).tolist(),
            "density": rounded(shape.density[shown]),
        }
    inner = shape.values[shape.inside]
    low, high = trimmed(shape.values, shape.density, inner)
    return data | {
        "values": rounded(shape.values[shown], 9),
        "range": rounded([low, high], 9),
        "bars": _bars(shape, low, high),
        "inner": rounded([inner[0], inner[-1]], 9),
        "few": bool((shape.density > 0.0).sum() <= _FEW_VALUES),
        "edited": rounded(edited_ranges(shape), 9),
        "missing": None
        if shape.missing_density is None
        else {
            "mean": rounded(shape.missing_mean),
            "std": rounded(shape.missing_std),
            "density": rounded(shape.missing_density),
            "edited": shape.missing_edited,
        },
    }


def _bars(shape: Shape, low: float, high: float) -> dict[str, object]:
    """Histogram of the data, or frequencies of a few distinct values."""
    held = shape.density > 0.0
    if held.sum() <= _FEW_VALUES:
        middles, shares = shape.values[held], shape.density[held]
        width = 0.5 * float(np.diff(middles).min(initial=high - low)) or 1.0
    else:
        shares, edges = data_histogram(shape, _N_BINS, (low, high))
        middles, width = 0.5 * (edges[1:] + edges[:-1]), float(edges[1] - edges[0])
    return {"middles": rounded(middles, 9), "width": rounded(width), "shares": rounded(shares)}


def _note(term: Shape | Surface, *remarks: str) -> str:
    importance = f"importance {term.importance:.3g} ± {2 * term.importance_std:.2g}"
    missing = f"{term.missingness:.0%} of it due to missingness" if term.missingness else ""
    edited = "edited by hand" if term.was_edited else ""
    return ", ".join(filter(None, [importance, missing, *remarks, edited]))


def _description(shape: Shape) -> str:
    """A curve in words, for screen readers."""
    if shape.mean.ndim > 1 or not len(shape.values):
        return f"{shape.name}: a {shape.kind} term"
    ends = []
    for index in (np.argmin(shape.mean), np.argmax(shape.mean)):
        value = shape.values[index]
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        ends.append(f"{shape.mean[index]:.3g} at {shown}")
    return f"{shape.name}: a {shape.kind} term, from {' to '.join(ends)}"


def pairs_data(explanation: GlobalExplanation) -> list[dict[str, object]]:
    """All active interactions, most important first; those of three columns as slices on one scale."""
    active = [surface for surface in explanation.interactions if surface.active]
    data = list[dict[str, object]]()
    for surface in sorted(active, key=lambda surface: -surface.importance):
        slices = [_pair(one) for one in surface.slices()]
        if len(surface.axes) > 2:
            limits = {
                "mean": _largest(surface, surface.mean),
                "std": _largest(surface, surface.std),
            }
            slices = [one | {"limits": limits} for one in slices]
        data += slices
    return data


def _largest(surface: Surface, table: Array) -> object:
    """The largest magnitude of a table where there is data, of each class."""
    seen = np.abs(table[surface.density > 0.0])
    return rounded(np.atleast_1d(seen.max(axis=0, initial=0.0)))


def _pair(pair: Surface) -> dict[str, object]:
    (first, rows), (second, columns) = map(_side, pair.axes)
    part = np.ix_(rows, columns)
    return {
        "name": one_line(pair.name),
        "note": _note(pair, "with main effects" if pair.spatial else ""),
        "first": first,
        "second": second,
        "mean": rounded(pair.mean[part], 4),
        "std": rounded(pair.std[part], 4),
        "seen": (pair.density[part] > 0.0).tolist(),
    }


def _side(axis: SurfaceAxis) -> tuple[dict[str, object], Sequence[int]]:
    """One axis of an interaction, as numbers or as labels, with missing and other values; its entries."""
    name, values, density = one_line(axis.name), axis.values, axis.density
    if axis.kind == CATEGORICAL:
        seen = [k for k in range(len(density)) if k < len(values) or density[k] > 0.0]
        labels = [*map(str, values), *axis.others]
        labels = [labels[k] for k in seen]
        return {"name": name, "labels": labels, "ticks": cut(labels, _MAX_LABEL)}, seen
    numbers = np.flatnonzero(axis.inside[: len(values)])
    inner = values[numbers]
    limits = rounded(trimmed(inner, density[numbers], inner), 9)
    missing = [k for k in range(len(values), len(density)) if density[k] > 0.0]
    side = {"name": name, "values": rounded(inner, 9), "range": limits, "others": len(missing)}
    return side, [*numbers.tolist(), *missing]
