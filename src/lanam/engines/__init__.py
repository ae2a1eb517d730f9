"""Where rows live that are not an array: files larger than memory, and frames on other machines."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lanam.engines.dask import DaskSource, is_dask_frame
from lanam.engines.files import FileSource, open_files

__all__ = ["DaskSource", "FileSource", "is_in_pieces", "open_source"]


def is_in_pieces(table: Any) -> bool:
    """Whether a table is the name of files, or several, or a frame of Dask.

    Examples
    --------
    >>> (
    ...     is_in_pieces("sales/*.parquet"),
    ...     is_in_pieces(["a.csv", "b.csv"]),
    ...     is_in_pieces([[1.0, 2.0]]),
    ... )
    (True, True, False)
    """
    return _are_files(table) or is_dask_frame(table)


def _are_files(table: Any) -> bool:
    if isinstance(table, (list, tuple)):
        return bool(table) and all(_are_files(each) for each in table)
    return isinstance(table, (str, os.PathLike))


def open_source(
    table: Any,
    *,
    n_jobs: int = 1,
    memory: int = 0,
    progress: Callable[[int, int | None], None] | None = None,
) -> FileSource | DaskSource:
    """What reads a table in pieces."""
    if is_dask_frame(table):
        return DaskSource(table)
    return open_files(table, n_jobs=n_jobs, memory=memory, progress=progress)
