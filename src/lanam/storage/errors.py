"""What is wrong with a file, in one line."""

from __future__ import annotations

from lanam.errors import Message


class ModelFileError(Message, ValueError):
    """A file that is not a model, or not a whole and sound one; its message says what to do.

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
        # As a field: it may have any words of the file.
        super().__init__("{what}", remedy, what=problem)


class DamageError(Exception):
    """What does not fit in a file's content; readers turn it into a `ModelFileError` with a remedy."""


def require(fits: bool, what: str) -> None:
    """Refuse what does not fit."""
    if not fits:
        raise DamageError(what)
