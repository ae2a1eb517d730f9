"""Errors of model files."""

from __future__ import annotations

from lanam.errors import Message


class ModelFileError(Message, ValueError):
    """A file that is not a model, or a damaged one; the message has the remedy.

    Examples
    --------
    >>> import tempfile, lanam
    >>> with tempfile.NamedTemporaryFile(suffix=".lanam") as file:
    ...     lanam.load(file.name)
    Traceback (most recent call last):
    ...
    lanam.storage.errors.ModelFileError: ....lanam is empty: ...
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        # As a field, since it may contain braces from the file.
        super().__init__("{what}", remedy, what=problem)


class DamageError(Exception):
    """An inconsistency in a file's content, which `from_bytes` turns into a `ModelFileError`."""


def require(fits: bool, what: str) -> None:
    """Raise `DamageError` unless a condition holds."""
    if not fits:
        raise DamageError(what)
