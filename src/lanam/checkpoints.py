"""Totals over the rows in a folder, from which an interrupted fit is resumed.

A fit uses its rows only by totals over them, and everything else follows from these in seconds. Each total
is written when it is computed; a fit with the same data and arguments reads them instead of the rows, up to
where the first one stopped. Files hold plain arrays: no pickle, no code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lanam.core.rows.tables import Totals
from lanam.errors import FileThereError, warn_user
from lanam.files import open_atomically, write_atomically
from lanam.version import __version__

_HEADER = "checkpoint.json"
_FORMAT = 1


class Checkpoint:
    """Totals in a folder, in the order in which a fit computes them.

    ``key`` is what the totals depend on: the data's fingerprint and all arguments. The ``seed`` of a folder
    that exists replaces the one passed. A folder of another fit, or of other files, is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Checkpoint(f"{folder}/run", {"data": "a"}, seed=7)
    ...     made = first(sum, lambda: (np.array(3.0),))
    ...     again = Checkpoint(f"{folder}/run", {"data": "a"}, seed=8)
    ...     again.seed, again(sum, lambda: (np.array(99.0),))
    (7, (array(3.),))
    """

    def __init__(self, path: str | os.PathLike[str], key: Mapping[str, object], seed: int) -> None:
        self.path = Path(path)
        self.n_read = 0
        self._number = 0
        self._reads = self._writes = True
        digest = digest_of(key)
        header = self.path / _HEADER
        if not header.exists():
            self._start(header, digest, seed)
        about, self.seed = _read_header(header)
        if about != digest:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another fit: other data, other arguments or "
                f"another version of lanam than {__version__}. Pass another folder, or delete this one"
            )

    def _start(self, header: Path, digest: str, seed: int) -> None:
        """Write the header, unless another fit wrote one a moment ago."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ValueError(
                f"{self.path} is there, and it is no checkpoint: pass a folder that is empty or new"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        content = {"format": _FORMAT, "lanam": __version__, "about": digest, "seed": seed}
        with suppress(FileThereError):
            write_atomically(header, json.dumps(content), "the checkpoint", overwrite=False)

    def __call__(self, job: Callable[..., Totals], compute: Callable[[], Totals]) -> Totals:
        """The next totals: read, if they were written for this very job, otherwise computed and written."""
        self._number += 1
        digest = digest_of(job)
        file = self.path / f"pass-{self._number:05d}.npz"
        totals = _read(file, digest) if self._reads else None
        if totals is not None:
            self.n_read += 1
            return totals
        self._reads = False  # later totals were of another sequence of jobs, or are not there
        totals = compute()
        if self._writes:
            self._write(file, digest, totals)
        return totals

    def _write(self, file: Path, digest: str, totals: Totals) -> None:
        arrays: dict[str, Any] = {f"array-{k}": array for k, array in enumerate(totals)}
        try:
            # Not through a buffer: totals may fill half of the memory.
            with open_atomically(file) as out:
                np.savez(out, job=np.array(digest), **arrays)
        except OSError as error:
            self._writes = False
            problem = f"the checkpoint {self.path} can no longer be written ({error})"
            warn_user(UserWarning(f"{problem}: the fit goes on without"))


def digest_of(value: object) -> str:
    """A digest of a job (its function and bound values) or of other values, the same in all processes."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, value: object) -> None:
    """Update the digest by the fields of a value, not by what it has cached."""
    if hasattr(value, "tolist"):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            digest.update(f"array {array.dtype} {array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).data)
            return
        value = array.tolist()
    parts: Sequence[object]
    if isinstance(value, partial):
        kind, parts = "partial", (value.func, value.args, sorted(value.keywords.items()))
    elif is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__qualname__
        parts = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, (list, tuple)):
        kind, parts = "sequence", value
    elif isinstance(value, (Set, Mapping)):
        kind = "set or mapping"
        parts = sorted(value.items() if isinstance(value, Mapping) else value, key=repr)
    else:
        name = getattr(value, "__qualname__", None) if callable(value) else None
        digest.update(f"value {name or repr(value)} ".encode())
        return
    digest.update(f"{kind} {len(parts)} ".encode())
    for part in parts:
        _feed(digest, part)


def _read_header(header: Path) -> tuple[str, int]:
    """The digest of the key, and the seed."""
    try:
        content = json.loads(header.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']}")
        return str(content["about"]), int(content["seed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the checkpoint {header.parent} cannot be read ({error}): delete the folder, or pass another"
        ) from error


def _read(file: Path, digest: str) -> Totals | None:
    """The totals of the job with this digest; None if the file is absent, of another job or damaged."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            if str(content["job"]) != digest:
                return None
            return tuple(content[f"array-{k}"] for k in range(len(content.files) - 1))
    except Exception:  # numpy and zipfile raise many kinds for damaged files
        return None
