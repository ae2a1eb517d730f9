"""Files and folders that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lanam.errors import FileThereError
from lanam.text import utf8

_PATIENCE = 5.0  # seconds for threads that still write into a folder to be removed


def require_place(
    path: str | os.PathLike[str], example: str = "model.lanam", *, overwrite: bool = True
) -> Path:
    """Check that a file can be written, before any work is done; ``example`` is for the message.

    Examples
    --------
    >>> require_place("nowhere/model.lanam")
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no folder nowhere: create it first
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: pass the name of a file, such as {example}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first")
    if not overwrite and os.path.lexists(target):
        remedy = "{pass overwrite=True} to replace it, or another name"
        raise FileThereError("{path} is there already", remedy, path=target)
    return target


def write_atomically(
    path: str | os.PathLike[str], content: str | bytes, what: str = "the file"
) -> Path:
    """Write a file, replacing an existing one only when the new one is complete and on disk.

    A symbolic link is followed, and permissions of an existing file are kept. Text is written in UTF-8, its
    line endings unchanged. After an error (no folder, no permission, a full disk) an existing file is
    unchanged and nothing else is left behind. ``what`` names the content in messages: ``"the report"``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/note.txt", "curves").read_text()
    'curves'
    """
    given = require_place(path, example=Path(path).name or "model.lanam")
    data = utf8(content) if isinstance(content, str) else content
    try:
        with open_atomically(given) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{what} was not written: {reason}", str(given)) from error
    return given


@contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes into, moved into place when the ``with`` block ends without an error.

    After an error an existing file is unchanged, and nothing else is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     note = Path(folder, "note.txt")
    ...     with open_atomically(note) as file:
    ...         _ = file.write(b"cur") + file.write(b"ves")
    ...         there = note.exists()
    ...     there, note.read_text()
    (False, 'curves')
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a terminal is written into
        with target.open("wb") as file:
            yield file
        return
    # In the same folder, since a move is atomic only within a file system.
    part = target.with_name(f"{target.name[:64]}{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        # Created with the default permissions of a new file.
        with os.fdopen(os.open(part, flags, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def require_folder(path: str | os.PathLike[str], *, overwrite: bool, ending: str) -> Path:
    """Check that a folder can be written, before any work is done.

    With ``overwrite`` it may exist and contain files, but only such with this ending: nothing else is ever
    deleted.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first")
    if not target.is_dir():
        if os.path.lexists(target):
            raise FileExistsError(f"{target} is a file: pass the name of a folder")
        return target
    files = [Path(place, name) for place, _, names in os.walk(target) for name in names]
    if files and not overwrite:
        remedy = "{pass overwrite=True} to replace them, or another name"
        raise FileThereError("{path} is there already and has files in it", remedy, path=target)
    others = [file for file in files if file.suffix != ending]
    if others:
        raise FileExistsError(
            f"{target} has other files than {ending}, such as {others[0].relative_to(target)}, which would "
            "be deleted: pass another folder"
        )
    return target


@contextmanager
def open_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write files into, moved into place when the ``with`` block ends without an error.

    After an error an existing folder is unchanged, and nothing else is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_folder(f"{folder}/out") as new:
    ...         _ = Path(new, "note.txt").write_text("curves")
    ...     [str(file.relative_to(folder)) for file in Path(folder).rglob("*.txt")]
    ['out/note.txt']
    """
    target = Path(os.path.realpath(path))
    token = secrets.token_hex(8)
    part, old = (target.with_name(f"{target.name[:64]}{token}.{end}") for end in ("part", "old"))
    part.mkdir()
    try:
        yield part
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
            target.rename(old)
        try:
            part.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        for each in (part, old):
            _remove_folder(each)


def _remove_folder(folder: Path) -> None:
    """Remove a folder that threads may still be writing into.

    After an error in one task a scheduler leaves others running, and a file that appears between listing
    the folder and its removal makes the removal fail; there are fewer writers at each attempt.
    """
    deadline = time.monotonic() + _PATIENCE
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
