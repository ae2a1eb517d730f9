"""Time against rows and columns: the series of the sweep, and how fast each grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.metrics import log_log_slope
from benchmarks.scale.cells import COLUMNS, Cell, Results, Sizes, cells

Sweep = Literal["rows", "columns"]
TITLES = {
    ("lanam", "memory", "y"): "lanam, in memory",
    ("lanam", "files", "y"): "lanam, Parquet",
    ("lanam", "files", "ill"): "lanam, Parquet, Bernoulli",
    ("lanam-auto", "memory", "y"): "lanam with pairs, in memory",
    ("lanam-auto", "files", "y"): "lanam with pairs, Parquet",
    ("ebm", "memory", "y"): "EBM",
    ("ebm-pairs", "memory", "y"): "EBM with pairs",
    ("lightgbm", "memory", "y"): "LightGBM",
}


@dataclass(frozen=True)
class Series:
    """Seconds (or bytes) of one model by size; ``cut`` are the sizes at which it was given up."""

    model: str
    source: str
    target: str
    sizes: tuple[int, ...]
    values: tuple[float, ...]
    cut: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return TITLES[self.model, self.source, self.target]

    @property
    def slope(self) -> float:
        """Of the logarithms, fitted to all sizes."""
        if len(self.sizes) < 2:
            return float("nan")
        return log_log_slope(np.array(self.sizes, float), np.array(self.values))

    @property
    def last_slope(self) -> float:
        """The same between the two largest sizes, where what every fit costs matters least."""
        tail = Series(self.model, self.source, self.target, self.sizes[-2:], self.values[-2:])
        return tail.slope if len(self.sizes) > 2 else float("nan")


def sweep_cells(sweep: Sweep, sizes: Sizes) -> list[Cell]:
    """The cells of part 3 along rows or along columns; one may belong to both."""
    fixed = cells(3, sizes)
    if sweep == "rows":
        return [cell for cell in fixed if cell.columns == COLUMNS and cell.rows in sizes.sweep]
    along = [cell for cell in fixed if cell.rows == sizes.sweep_columns_rows]
    return [cell for cell in along if cell.target == "y"]


def all_series(
    results: Results, sizes: Sizes, sweep: Sweep, figure: str = "fit_seconds"
) -> list[Series]:
    """What has been measured along a sweep, a series a model and place of its rows."""
    found = []
    for key in TITLES:
        own = [c for c in sweep_cells(sweep, sizes) if (c.model, c.source, c.target) == key]
        own.sort(key=lambda cell: getattr(cell, sweep))
        points, cut = {}, []
        for cell in own:
            row = results.get(cell) or {}
            size = getattr(cell, sweep)
            if "cut" in row:
                cut.append(size)
            elif figure in row:
                points[size] = float(row[figure])
        if points or cut:
            found.append(Series(*key, tuple(points), tuple(points.values()), tuple(cut)))
    return found
