"""Dialects of CSV files: delimiter, decimal point, encoding, missing values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanam.errors import InputError

#: Strings that stand for missing values.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")

#: Delimiters to try on a header.
DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Dialect:
    """How CSV files are written; what is not said is found, or usual.

    Attributes
    ----------
    delimiter
        The character between cells; found in the header of each file.
    decimal
        The decimal point, usually ``"."``.
    encoding
        Of the text, usually ``"utf-8"``.
    missing
        What stands for a missing value, besides `MISSING`.

    Examples
    --------
    >>> Dialect(decimal=",").filled(Dialect(decimal=".", encoding="latin-1", missing=("?",)))
    Dialect(delimiter=None, decimal=',', encoding='latin-1', missing=('?',))
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and len(value) == 1):
                raise InputError("{given} must be one character", argument=name, value=value)
        if self.delimiter == self.point:
            raise InputError("{decimal} and {delimiter} are the same: numbers would fall apart")
        try:
            "".encode(self.text)
        except (LookupError, TypeError):
            raise InputError(
                "{given} is not known: utf-8 and latin-1 are usual",
                argument="encoding",
                value=self.encoding,
            ) from None
        if not all(isinstance(each, str) for each in self.missing):
            problem = "{given} must be texts, as they are written"
            raise InputError(problem, argument="missing", value=list(self.missing))

    @property
    def point(self) -> str:
        """The decimal point."""
        return self.decimal or "."

    @property
    def text(self) -> str:
        """The encoding."""
        return self.encoding or "utf-8"

    @property
    def is_utf8(self) -> bool:
        """Whether text is read without being decoded first."""
        return self.text.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")

    @property
    def missing_marks(self) -> list[str]:
        """All strings that stand for missing values."""
        return list(dict.fromkeys((*MISSING, *self.missing)))

    def filled(self, known: Dialect | None) -> Dialect:
        """The same, and where it says nothing what is known; what stood for missing values still does."""
        if known is None:
            return self
        return Dialect(
            self.delimiter or known.delimiter,
            self.decimal or known.decimal,
            self.encoding or known.encoding,
            tuple(dict.fromkeys((*self.missing, *known.missing))),
        )


@dataclass(frozen=True)
class CsvFiles:
    """CSV files and how they are written, as `csv_files` puts them together."""

    path: Any
    dialect: Dialect


def csv_files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
) -> CsvFiles:
    r"""CSV files that are not written as usual: a table for all that takes the names of files.

    A model that was fitted to them remembers how they are written, and later files are read so unless
    they are said to be written otherwise, by this function.

    Parameters
    ----------
    path : str, path-like or sequence of these
        A file, whatever its name ends in, a folder, a pattern such as ``"sales/*.csv"``, or several.
    delimiter : str, default=None
        The character between cells. By default what makes most columns of a file's header.
    decimal : str, default=None
        The decimal point; ``"."`` by default.
    encoding : str, default=None
        Of the text, such as ``"latin-1"``; UTF-8 by default.
    missing : sequence of str, default=()
        What stands for a missing value besides ``""``, ``"NA"``, ``"N/A"``, ``"#N/A"``, ``"NaN"``,
        ``"nan"``, ``"null"`` and ``"NULL"``.

    Returns
    -------
    files : CsvFiles

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lanam import LANAMRegressor, csv_files
    >>> rows = [f"{x / 4};{x * x / 8}".replace(".", ",") for x in range(40)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "squares.csv")
    ...     _ = file.write_text("\n".join(["x;y", *rows, "?;0,5"]))
    ...     model = LANAMRegressor(random_state=0)
    ...     _ = model.fit(csv_files(file, decimal=",", missing=["?"]), target="y")
    ...     len(model.predict(file))
    41
    """
    words = (missing,) if isinstance(missing, str) else tuple(missing)
    return CsvFiles(path, Dialect(delimiter, decimal, encoding, words))
