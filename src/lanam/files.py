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
    if not overwrite and os.path.lexists(target) and not _is_special(target):
        remedy = "{pass overwrite=True} to replace it, or another name"
        raise FileThereError("{path} is there already", remedy, path=target)
    return target


def _is_special(path: Path) -> bool:
    """Whether a path is a pipe or a terminal, which is written into and never replaced."""
    return path.exists() and not path.is_file()


def write_atomically(
    path: str | os.PathLike[str],
    content: str | bytes,
    what: str = "the file",
    *,
    overwrite: bool = True,
) -> Path:
    """Write a file, replacing an existing one only when the new one is complete and on disk.

    A symbolic link is followed, and permissions of an existing file are kept. Text is written in UTF-8, its
    line endings unchanged. After an error (no folder, no permission, a full disk) an existing file is
    unchanged and nothing else is left behind. ``what`` names the content in messages: ``"the report"``.
    See `open_atomically` for ``overwrite``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/note.txt", "curves").read_text()
    'curves'
    """
    given = require_place(path, example=Path(path).name or "model.lanam", overwrite=overwrite)
    data = utf8(content) if isinstance(content, str) else content
    try:
        with open_atomically(given, overwrite=overwrite) as file:
            file.write(data)
    except FileThereError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{what} was not written: {reason}", str(given)) from error
    return given


@contextmanager
def open_atomically(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A file to write bytes into, moved into place when the ``with`` block ends without an error.

    After an error an existing file is unchanged, and nothing else is left behind. Without ``overwrite`` a
    file that exists by then is not replaced either: the complete new one is kept beside it, and the error
    names it.

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
    if _is_special(target):
        with target.open("wb") as file:
            yield file
        return
    part = _beside(target)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        # What replaces a private file is private while it is written.
        with os.fdopen(os.open(part, flags, _mode(target, 0o666)), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    try:
        _move_file(part, target, overwrite)
    except (FileExistsError, IsADirectoryError):
        remedy = "the result is in {part}; rename that, or {pass overwrite=True} next time"
        problem = "{path} was created meanwhile, and is not overwritten"
        raise FileThereError(problem, remedy, path=path, part=part) from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _beside(target: Path) -> Path:
    """A new name in the same folder, since a move is atomic only within a file system."""
    return target.with_name(f"{target.name[:64]}{secrets.token_hex(8)}.part")


def _mode(path: Path, default: int) -> int:
    """The permissions of a file or folder that exists."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else default


def _move_file(part: Path, target: Path, overwrite: bool) -> None:
    """Move a file, but not onto a folder, and without ``overwrite`` not onto a file."""
    if overwrite:
        if target.exists():
            part.chmod(_mode(target, 0))
        part.replace(target)
        return
    try:
        os.link(part, target)  # fails if the name is taken, even since a moment ago
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: take the name first
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            part.replace(target)
        except BaseException:
            target.unlink()
            raise
    else:
        part.unlink()


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
    obstacle = _obstacle(target, overwrite, ending)
    if obstacle and not overwrite:
        remedy = "{pass overwrite=True} to replace them, or another name"
        raise FileThereError(f"{{path}} is there already and {obstacle}", remedy, path=target)
    if obstacle:
        raise FileExistsError(f"{target} {obstacle}, which would be deleted: pass another folder")
    return target


def _obstacle(folder: Path, overwrite: bool, ending: str) -> str:
    """What a folder has that must not be deleted; "" for nothing."""
    files = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    others = [file.relative_to(folder) for file in files if file.suffix != ending]
    if overwrite:
        return f"has other files than {ending}, such as {min(others)}" if others else ""
    return "has files in it" if files else ""


@contextmanager
def open_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False, ending: str = ""
) -> Iterator[Path]:
    """A folder to write files into, moved into place when the ``with`` block ends without an error.

    After an error an existing folder is unchanged, and nothing else is left behind. What `require_folder`
    checks with the same arguments is checked again before an existing folder is replaced; if it has files
    by then that must not be deleted, the new folder is kept beside it, and the error names it.

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
    part = _beside(target)
    part.mkdir(_mode(target, 0o777) | stat.S_IRWXU)
    try:
        yield part
    except BaseException:
        _remove_folder(part)
        raise
    try:
        _move_folder(part, target, overwrite, ending)
    except OSError as error:
        problem, remedy = "{path} {reason}", "the result is in {part}; rename that"
        reason = error.args[0] if error.errno is None else f"was not replaced: {error.strerror}"
        raise FileThereError(problem, remedy, path=path, reason=reason, part=part) from error
    except BaseException:
        _remove_folder(part)
        raise


def _move_folder(part: Path, target: Path, overwrite: bool, ending: str) -> None:
    """Move a folder; the one that is there is removed if it may be, and put back after an error."""
    old = part.with_suffix(".old")

    def require_replaceable(folder: Path) -> None:
        if obstacle := _obstacle(folder, overwrite, ending):
            raise FileExistsError(f"{obstacle} by now, and is not replaced")

    try:
        if target.is_dir():
            require_replaceable(target)
            part.chmod(_mode(target, 0))
            target.rename(old)
            require_replaceable(old)  # under a name that no other process knows
        part.rename(target)  # fails if another folder with files is there by now
    except BaseException:
        if old.exists() and not os.path.lexists(target):
            old.rename(target)
        raise
    _remove_folder(old)


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
