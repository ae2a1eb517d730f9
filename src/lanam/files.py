"""Writing a file whole or not at all."""

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

_PATIENCE = 5.0  # seconds given to those who still write into a folder that is to go


def require_place(
    path: str | os.PathLike[str], example: str = "model.lanam", *, overwrite: bool = True
) -> Path:
    """The path of a file that can be written, checked before anybody works for it.

    Parameters
    ----------
    path : str or path-like
    example : str
        A name of such a file, for the message.
    overwrite : bool, default=True
        Whether a file may be there.

    Raises
    ------
    IsADirectoryError, FileNotFoundError, FileExistsError
        They say what to do.

    Examples
    --------
    >>> require_place("nowhere/model.lanam")
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no folder nowhere: make it first
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: pass the name of a file, such as {example}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: make it first")
    if not overwrite and os.path.lexists(target):
        remedy = "{pass overwrite=True} to replace it, or another name"
        raise FileThereError("{path} is there already", remedy, path=target)
    return target


def write_atomically(
    path: str | os.PathLike[str], content: str | bytes, what: str = "the file"
) -> Path:
    """Write a file; one that is there stays whole until the new one is, on the disk itself.

    Parameters
    ----------
    path : str or path-like
        A link is followed, and an old file's permissions are kept, as if the file were written into.
    content : str or bytes
        Text is written in UTF-8, with its line ends as they are.
    what : str
        What is written, for messages: ``"the report"``.

    Returns
    -------
    path : Path

    Raises
    ------
    OSError
        If the file cannot be written: no such folder, no permission, a full disk. An old file is as
        it was, and nothing else is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/note.txt", "curves").read_text()
    'curves'
    """
    given = require_place(path, example=Path(path).name or "model.lanam")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with open_atomically(given) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{what} was not written: {reason}", str(given)) from error
    return given


@contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes into part by part, in place when the ``with`` block ends without an error.

    Until then one that is there stays whole; after an error it is as it was, and nothing else is left
    behind.

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
    if target.exists() and not target.is_file():  # a pipe or a terminal, which nothing replaces
        with target.open("wb") as file:
            yield file
        return
    # Beside the target, because only within a file system is a move a single step.
    part = target.with_name(f"{target.name[:64]}{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        # With the permissions of any new file.
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
    """The path of a folder that can be written, checked before anybody works for it.

    Parameters
    ----------
    path : str or path-like
    overwrite : bool
        Whether a folder may be there that has files in it; it is replaced.
    ending : str
        What all its files must then end in: nothing else is ever deleted.

    Raises
    ------
    FileNotFoundError, FileExistsError
        They say what to do.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: make it first")
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
    """A folder to write files into, in place when the ``with`` block ends without an error.

    Until then one that is there stays whole; after an error it is as it was, and nothing else is left
    behind.

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

    After an error in one task a scheduler leaves the others running, and a file that appears between the
    listing of the folder and its removal makes the removal fail; each try leaves fewer writers.
    """
    patience = time.monotonic() + _PATIENCE
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > patience:
                raise
            time.sleep(0.01)
