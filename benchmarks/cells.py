"""Cells of an experiment and the folder that keeps the finished ones.

A cell is one model on one fold of one set. Its scores are one JSON file, its arrays (predictions,
functions) one NPZ file, and it is finished when the JSON file is there: a run that is cut short loses
only the cells it was at.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environment import say
from lanam.files import write_atomically

Row = dict[str, Any]
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Cell:
    """One model on one fold (or seed) of one set of an experiment."""

    experiment: str
    set: str
    model: str
    fold: int

    def __str__(self) -> str:
        return f"{self.experiment} {self.set} {self.model} {self.fold}"


@dataclass(frozen=True)
class Store:
    """A folder of finished cells."""

    folder: Path

    def _path(self, cell: Cell, suffix: str) -> Path:
        name = f"{cell.fold}{suffix}"
        return self.folder / "cells" / cell.experiment / cell.set / cell.model / name

    def read(self, cell: Cell) -> Row | None:
        """The scores of a cell; None if it is not finished."""
        path = self._path(cell, ".json")
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            say(f"{path} cannot be read ({error}); its cell counts as not finished")
            return None

    def has_arrays(self, cell: Cell) -> bool:
        """Whether a cell has arrays: one that failed, or was taken from a table, has none."""
        return self._path(cell, ".npz").exists()

    def arrays(self, cell: Cell) -> Arrays:
        """The arrays of a cell, if it has any."""
        if not self.has_arrays(cell):
            return {}
        with np.load(self._path(cell, ".npz")) as file:
            return dict(file)

    def write(self, cell: Cell, row: Row, arrays: Arrays) -> None:
        """Keep a cell; the arrays first, since the scores say that it is finished."""
        path = self._path(cell, ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = path.with_suffix(".npz")
        if arrays:
            content = io.BytesIO()
            np.savez_compressed(content, **arrays)
            write_atomically(packed, content.getvalue())
        else:
            packed.unlink(missing_ok=True)  # of an earlier run
        write_atomically(path, json.dumps(asdict(cell) | _plain(row), indent=1))

    def copy(self, source: Cell, target: Cell) -> bool:
        """Keep one cell as another too, if it is finished and did not fail."""
        row = self.read(source)
        if row is None or "error" in row:
            return False
        self.write(target, row | asdict(target), self.arrays(source))
        return True

    def take(self, table: Path) -> int:
        """Keep the cells of another run's tidy table that are not here yet; how many there were.

        The table has scores but no arrays, of which pictures of functions are made.
        """
        frame, taken = pd.read_csv(table), 0
        for record in frame.to_dict("records"):
            cell = Cell(*(record.pop(field.name) for field in fields(Cell)))
            if self.read(cell) is None:
                self.write(cell, {k: v for k, v in record.items() if not pd.isna(v)}, {})
                taken += 1
        return taken

    def cells(self) -> Iterator[Cell]:
        """All finished cells, in the order of their names."""
        for path in sorted((self.folder / "cells").glob("*/*/*/*.json")):
            experiment, name, model = path.parts[-4:-1]
            yield Cell(experiment, name, model, int(path.stem))

    def collect(self, cells: Iterable[Cell] | None = None) -> pd.DataFrame:
        """One tidy row a finished cell."""
        rows = [self.read(cell) for cell in (self.cells() if cells is None else cells)]
        return pd.DataFrame([row for row in rows if row is not None])


def _plain(row: Row) -> Row:
    """Numbers as JSON knows them; what is not a number is left out."""
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
    return {k: v for k, v in plain.items() if not (isinstance(v, float) and math.isnan(v))}
