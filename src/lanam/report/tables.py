"""The model itself, packed for the page: what ``score.js`` reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.explain.portable import Axis, PortableModel, Table
from lanam.explain.values import plain
from lanam.report.packing import lower_triangle, pack
from lanam.text import one_line


def pack_model(portable: PortableModel, normals: Array | None) -> dict[str, object]:
    """A model's tables as data for the page; ``normals`` are the draws behind intervals of classes.

    Means are exact. What only variances are made of is in single precision, which is half the file and
    moves a band by a millionth.
    """
    return {
        "link": portable.link,
        "family": portable.family.name,
        "classes": plain(portable.classes),
        "intercept": pack(np.atleast_1d(portable.intercept)),
        "factor": pack(lower_triangle(portable.factor), "f4"),
        "noise_variance": portable.noise_variance,
        "gap_variance": pack(portable.gap_variance),
        "log_noise": portable.log_noise,
        "noise_tables": [_pack_table(table) for table in portable.noise_tables],
        "shape": portable.shape and portable.shape.as_lists(),
        "contrasts": pack(portable.contrasts),
        "normals": pack(normals, "f4"),
        "tables": [_pack_table(table) for table in portable.tables],
    }


def _pack_table(table: Table) -> dict[str, object]:
    return {
        "name": one_line(table.name),
        "index": table.index,
        "features": list(table.features),
        "axes": [_pack_axis(axis) for axis in table.axes],
        "mean": pack(table.mean),
        "table": pack(table.table, "f4"),
        "width": table.table.shape[1],
        "start": table.start,
        "unknown_variance": pack(table.unknown_variance),
        "coupling": pack(table.coupling, "f4"),
        "own_variance": pack(table.own_variance, "f4"),
        "edited": pack(table.edited, "i4"),
    }


def _pack_axis(axis: Axis) -> dict[str, object]:
    return {
        "kind": axis.kind,
        "points": pack(axis.points, "i4" if axis.kind == "codes" else "f8"),
        "n_entries": axis.n_entries,
        "missing": axis.missing,
        "other": axis.other,
    }


def with_levels(table: Table, codes: IntArray) -> Table:
    """A term of very many levels with the entries of these codes only; all others read as new ones."""
    (axis,) = table.axes
    assert axis.missing is not None
    assert axis.other is not None
    kept = np.unique(np.asarray(axis.points)[codes])
    kept = kept[kept < axis.missing]
    entries = np.concatenate([kept, [axis.missing, axis.other]])
    place = np.full(axis.n_entries, len(kept) + 1)
    place[entries] = np.arange(len(entries))
    narrow = Axis("codes", place[axis.points], len(entries), len(kept), len(kept) + 1)
    return replace(
        table,
        axes=(narrow,),
        mean=table.mean[entries],
        table=table.table[entries],
        coupling=None if table.coupling is None else table.coupling[entries],
        own_variance=None if table.own_variance is None else table.own_variance[entries],
        share=table.share[entries],
        edited=None if table.edited is None else table.edited[entries],
    )
