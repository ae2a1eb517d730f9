"""One measurement in a process of its own.

``python -m benchmarks.scale.worker CELL FOLDER``, the cell as JSON, prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.scale.cells import Cell

Row = dict[str, Any]


def measure(cell: Cell, folder: Path | None) -> Row:
    """What the cell asks for."""
    if cell.work == "fit":
        from benchmarks.scale.fits import measure_fit

        return measure_fit(cell, folder)
    assert folder is not None
    if cell.work == "reference":
        from benchmarks.scale.reference import measure_reference

        return measure_reference(folder, cell.columns, cell.threads, whole=True)
    if cell.work == "workers":
        from benchmarks.scale.cluster import measure_workers

        return measure_workers(cell, folder)
    if cell.work == "agreement":
        from benchmarks.scale.agreement import measure_agreement

        return measure_agreement(cell, folder)
    raise ValueError(f"unknown work {cell.work!r}")


def main() -> None:
    """Read the command line, measure, print."""
    asked, folder = sys.argv[1:3]
    cell = Cell(**json.loads(asked))
    with threadpool_limits(cell.threads):
        print(json.dumps(measure(cell, Path(folder) if folder else None)))


if __name__ == "__main__":
    main()
