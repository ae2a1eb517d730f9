"""Names and numbers for places with little room, in printed tables and in drawings."""

from __future__ import annotations

import math


def shorten(name: str, most: int) -> str:
    """A name for a place with room for so many characters.

    Examples
    --------
    >>> shorten("temperature of the oven", 14)
    'temperature...'
    """
    return name if len(name) <= most else name[: most - 3] + "..."


def number_format(largest: float, digits: int) -> str:
    """One format for numbers up to ``largest``: so many digits of that.

    Examples
    --------
    >>> form = number_format(12.345, 3)
    >>> format(12.345, form), format(0.0678, form)
    ('12.3', '0.1')
    """
    if not 10.0 ** -(digits + 1) < largest < 10.0 ** (digits + 3):
        return f".{digits - 1}e"
    return f".{max(digits - 1 - math.floor(math.log10(largest)), 0)}f"
