"""Which files a path stands for, and their format."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from lanam.engines.delimited import Csv
from lanam.engines.formats import Format, Ipc, Parquet

FORMATS: tuple[Format, ...] = (Parquet(), Csv(), Ipc())


def format_of(path: str) -> Format | None:
    """The format of a file by its suffix; None if that is unknown.

    Examples
    --------
    >>> format_of("sales.CSV.gz").title, format_of("notes.txt")
    ('a CSV file', None)
    """
    name = os.path.basename(path).lower()
    return next((each for each in FORMATS if name.endswith(each.endings)), None)


def find_files(paths: Sequence[str], *, any_name: bool) -> list[tuple[str, str]]:
    """The files that paths stand for, and their names relative to these.

    With ``any_name`` a file may have any suffix. A file that is found twice is an error.
    """
    files = [pair for path in paths for pair in _files_of(os.path.expanduser(path), any_name)]
    seen: set[str] = set()
    for file, _ in files:
        if (real := os.path.realpath(file)) in seen:
            raise ValueError(
                f"{file} is listed twice, and its rows would count twice: pass it once"
            )
        seen.add(real)
    return files


def _files_of(path: str, any_name: bool) -> list[tuple[str, str]]:
    endings = ", ".join(ending for each in FORMATS for ending in each.endings)
    if os.path.isfile(path):
        if format_of(path) is None and not any_name:
            raise ValueError(f"{path}: unknown file type: {endings} are known")
        return [(path, os.path.basename(path))]
    if os.path.isdir(path):
        if files := _below(path, path):
            return files
        raise ValueError(f"the folder {path} has no data files: known suffixes are {endings}")
    if not glob.has_magic(path):
        raise ValueError(
            f"there is no file or folder {path}: check the spelling and the working directory"
        )
    root = os.path.dirname(path[: next(k for k in range(len(path)) if glob.has_magic(path[k]))])
    files = []
    for match in sorted(glob.glob(path, recursive=True)):
        if os.path.isdir(match):
            files += _below(match, root)
        elif any_name or format_of(match) is not None:
            files.append((match, os.path.relpath(match, root or ".")))
    if not files:
        raise ValueError(f"no data file matches {path}: known suffixes are {endings}")
    return list(dict.fromkeys(files))


def _below(folder: str, root: str) -> list[tuple[str, str]]:
    """The visible data files in a folder and its subfolders, sorted, and their names below ``root``."""
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        visible = (name for name in names if not name.startswith((".", "_")))
        files += [os.path.join(place, name) for name in visible if format_of(name) is not None]
    return sorted((path, os.path.relpath(path, root or ".")) for path in files)


def common_format(files: Sequence[str]) -> Format:
    """The format of all files; an error if they differ."""
    first: dict[Format, str] = {}
    for path in files:
        first.setdefault(format_of(path) or Csv(), path)
    one, *others = first
    if others:
        raise ValueError(
            f"{first[one]} is {one.title}, and {first[others[0]]} is {others[0].title}: pass files "
            f"of one format, for example with the pattern *{one.endings[0]}"
        )
    return one
