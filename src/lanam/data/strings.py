"""Columns of strings: refused where they are something else than categories, or a warning."""

from __future__ import annotations

from collections.abc import Sequence

from lanam.data import errors
from lanam.data.errors import ColumnRef
from lanam.data.recognition import FREE_TEXT, IDENTIFIERS, alike, recognise
from lanam.errors import InputError, InputWarning, warn_user


def require_categories(
    place: ColumnRef, levels: Sequence[str], n_values: int | None, where: str = ""
) -> None:
    """Raise an error, or warn, if the distinct strings of a column are probably no categories.

    ``n_values`` is the number of all that are not missing; None for a dtype of categories, where only
    those that look alike are warned of. ``where`` is the location in messages.

    Examples
    --------
    >>> require_categories(ColumnRef("price", 0, "pandas"), ["$1,200", "$980"], 2)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: column 'price' holds amounts of money as text (for example '$1,200'): ...
    """
    message = _judge(place, levels, n_values) if n_values is not None else None
    if message is None and (groups := alike(levels)):
        message = errors.alike_levels(place, groups)
    if message is None:
        return
    located = message.located(where) if where else message
    if isinstance(located, InputError):
        raise located
    warn_user(located)


def _judge(
    place: ColumnRef, levels: Sequence[str], n_values: int
) -> InputError | InputWarning | None:
    found = recognise(levels, n_values)
    if found is None:
        return None
    if found.what in (FREE_TEXT, IDENTIFIERS):
        refuse = errors.free_text if found.what == FREE_TEXT else errors.identifiers
        return refuse(place, len(levels), n_values, found.example)
    if found.certain:
        return errors.other_than_text(place, found)
    return errors.codes_as_text(place, found)
