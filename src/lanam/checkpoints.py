"""What a fit has learned of its rows so far, in a folder: a fit that was stopped goes on from there.

All that a fit learns of its rows are totals over them, and all else follows from these in seconds. So every
total is written down as it comes, and a fit that starts again with the same data and arguments reads them
instead of the rows, up to where the other had come. Files are plain arrays: no pickle, no code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lanam.core.rows.tables import Totals
from lanam.errors import warn_user
from lanam.files import open_atomically, write_atomically
from lanam.version import __version__

_HEADER = "checkpoint.json"
_FORMAT = 1


class Checkpoint:
    """Totals in a folder, in the order in which a fit asks for them.

    Parameters
    ----------
    path : str or path-like
        The folder; it is made if it is not there.
    about : dict
        What the totals depend on: the data's fingerprint and all arguments, as plain values.
    seed : int
        The fit's seed, unless the folder has one of a fit that was stopped.

    Attributes
    ----------
    seed : int
        The seed to go on with.

    Raises
    ------
    ValueError
        If the folder is of another fit, or no checkpoint at all.

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

    def __init__(self, path: str | os.PathLike[str], about: dict[str, object], seed: int) -> None:
        self.path = Path(path)
        self.n_read = 0
        self._number = 0
        self._reads = self._writes = True
        told = json.dumps(about, sort_keys=True, default=_plain)
        digest = hashlib.sha256(told.encode()).hexdigest()
        header = self.path / _HEADER
        if header.exists():
            known, self.seed = _read_header(header)
            if known != digest:
                raise ValueError(
                    f"the checkpoint {self.path} is of another fit: of other data, other arguments or "
                    f"another version of lanam than {__version__}. Pass another folder, or delete this one"
                )
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ValueError(
                f"{self.path} is there, and it is no checkpoint: pass a folder that is empty or new"
            )
        self.seed = seed
        self.path.mkdir(parents=True, exist_ok=True)
        content = {"format": _FORMAT, "lanam": __version__, "about": digest, "seed": seed}
        write_atomically(header, json.dumps(content), "the checkpoint")

    def __call__(self, job: Callable[..., Totals], compute: Callable[[], Totals]) -> Totals:
        """The next totals: read, if they were written for this very job, otherwise computed and written."""
        self._number += 1
        name = digest_of(job)
        file = self.path / f"pass-{self._number:05d}.npz"
        known = _read(file, name) if self._reads else None
        if known is not None:
            self.n_read += 1
            return known
        # From here on it is another way, or one nobody has gone.
        self._reads = False
        totals = compute()
        if self._writes:
            self._write(file, name, totals)
        return totals

    def _write(self, file: Path, name: str, totals: Totals) -> None:
        arrays: dict[str, Any] = {f"array-{k}": array for k, array in enumerate(totals)}
        try:
            # Not by way of memory, of which totals may fill half.
            with open_atomically(file) as out:
                np.savez(out, job=np.array(name), **arrays)
        except OSError as error:
            # The fit is worth more than its checkpoint.
            self._writes = False
            lost = f"the checkpoint {self.path} can no longer be written ({error})"
            warn_user(UserWarning(f"{lost}: the fit goes on without"))


def digest_of(job: object) -> str:
    """What tells a job from any other: its function, and all values it goes over the rows with."""
    digest = hashlib.sha256()
    _feed(digest, job)
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, value: object) -> None:
    """What a value is made of; not what it has remembered on the way."""
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).data)
        return
    parts: Sequence[object]
    if isinstance(value, partial):
        kind, parts = "partial", (value.func, value.args, sorted(value.keywords.items()))
    elif is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__qualname__
        parts = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, (list, tuple)):
        kind, parts = "sequence", value
    elif isinstance(value, Mapping):
        kind, parts = "mapping", sorted(value.items(), key=repr)
    else:
        known = getattr(value, "__qualname__", None) if callable(value) else None
        digest.update(f"value {known or repr(value)} ".encode())
        return
    digest.update(f"{kind} {len(parts)} ".encode())
    for part in parts:
        _feed(digest, part)


def _plain(value: object) -> object:
    """What JSON does not know, the same in every process."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _read_header(header: Path) -> tuple[str, int]:
    """What the totals depend on, and the seed."""
    try:
        known = json.loads(header.read_text(encoding="utf-8"))
        if known["format"] != _FORMAT:
            raise ValueError(f"format {known['format']}")
        return str(known["about"]), int(known["seed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the checkpoint {header.parent} cannot be read ({error}): delete the folder, or pass another"
        ) from error


def _read(file: Path, name: str) -> Totals | None:
    """Totals of a job of this name; None where there are none, or not whole."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            if str(content["job"]) != name:
                return None
            return tuple(content[f"array-{k}"] for k in range(len(content.files) - 1))
    except Exception:  # not there, cut short or damaged, of which numpy and zipfile say many things
        return None
