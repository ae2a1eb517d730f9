"""Which kind of files there are, and which a file is, by its name."""

from __future__ import annotations

import os

from lanam.engines.delimited import Csv
from lanam.engines.formats import Format, Ipc, Parquet

FORMATS: tuple[Format, ...] = (Parquet(), Csv(), Ipc())


def format_of(path: str) -> Format | None:
    """The kind of a file by its name; None where the name does not say.

    Examples
    --------
    >>> format_of("sales.CSV.gz").title, format_of("notes.txt")
    ('a CSV file', None)
    """
    name = os.path.basename(path).lower()
    return next((kind for kind in FORMATS if name.endswith(kind.endings)), None)
