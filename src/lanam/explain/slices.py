"""An interaction of three columns as slices: of two columns, at some entries of the third."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.data import CATEGORICAL

if TYPE_CHECKING:
    from lanam.explain.terms import Surface, SurfaceAxis

#: Of a numeric column, slices are at the entries nearest to the middles of this many parts of its data.
N_SLICES = 3


def slices(surface: Surface, by: str | None, n_slices: int) -> tuple[Surface, ...]:
    """The slices of a surface at entries of the column ``by``, from its smallest value on."""
    place = _place(surface, by)
    axis = surface.axes[place]
    axes = tuple(other for k, other in enumerate(surface.axes) if k != place)
    keep = [k for k in range(len(surface.features)) if k != place]

    def at(entry: int) -> Surface:
        def of(table: Array) -> Array:
            return np.asarray(np.take(table, entry, axis=place))

        density = of(surface.density)
        density = density / (density.sum() or 1.0)
        margins = [density.sum(axis=1), density.sum(axis=0)]
        return replace(
            surface,
            name=f"{surface.name} at {axis.name} = {_label(axis, entry)}",
            features=tuple(surface.features[k] for k in keep),
            feature_names=tuple(surface.feature_names[k] for k in keep),
            feature_kinds=tuple(surface.feature_kinds[k] for k in keep),
            mean=of(surface.mean),
            std=of(surface.std),
            density=density,
            inside=np.take(surface.inside, entry, axis=place),
            edited=np.take(surface.edited, entry, axis=place),
            axes=tuple(
                replace(other, density=margin) for other, margin in zip(axes, margins, strict=True)
            ),
            largest_deviations=surface.largest_deviations[:0],
        )

    return tuple(at(entry) for entry in _entries(axis, n_slices))


def _place(surface: Surface, by: str | None) -> int:
    """The axis of a column: by default categories, or else the last one."""
    names = [axis.name for axis in surface.axes]
    if by is None:
        kinds = [axis.kind for axis in surface.axes]
        return kinds.index(CATEGORICAL) if CATEGORICAL in kinds else len(kinds) - 1
    if by not in names:
        raise ValueError(f"by={by!r} is not a column of {surface.name!r}: choose from {names}")
    return names.index(by)


def _entries(axis: SurfaceAxis, n_slices: int) -> Sequence[int]:
    """The entries of an axis at which there are slices."""
    n_values = len(axis.values)
    density = axis.density[:n_values]
    if axis.kind == CATEGORICAL or n_values <= n_slices:
        frequent: IntArray = np.argsort(-density, kind="stable")[:n_slices]
        return sorted(int(k) for k in frequent if density[k] > 0.0)
    reached = np.cumsum(density) / density.sum()
    middles = (np.arange(n_slices) + 0.5) / n_slices
    found = np.searchsorted(reached, middles * (1.0 - 1e-9))
    return sorted(set(found.tolist()))


def _label(axis: SurfaceAxis, entry: int) -> str:
    value = axis.values[entry]
    return str(value) if axis.kind == CATEGORICAL else f"{value:.4g}"
