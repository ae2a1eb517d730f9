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
    """The format of CSV files; None for what is not specified.

    Attributes
    ----------
    delimiter
        The character between cells; by default inferred from the header of each file.
    decimal
        The decimal point; by default ``"."``.
    encoding
        The text encoding; by default ``"utf-8"``.
    missing
        Strings that stand for missing values, in addition to `MISSING`.

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
            if value is not None and not value.isascii():  # Arrow's limit
                raise InputError("{given} must be an ASCII character", argument=name, value=value)
        if self.delimiter == self.point:
            raise InputError("{decimal} and {delimiter} must differ")
        try:
            "".encode(self.text)
        except (LookupError, TypeError, ValueError):
            raise InputError(
                "{given} is not a known encoding: common ones are utf-8 and latin-1",
                argument="encoding",
                value=self.encoding,
            ) from None
        if not all(isinstance(each, str) for each in self.missing):
            problem = "{given} must be strings"
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
        """Whether the encoding is UTF-8, which Arrow reads without decoding it first."""
        return self.text.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")

    @property
    def missing_marks(self) -> list[str]:
        """All strings that stand for missing values."""
        return list(dict.fromkeys((*MISSING, *self.missing)))

    def filled(self, other: Dialect | None) -> Dialect:
        """The dialect, completed with what another one specifies; missing values are those of both."""
        if other is None:
            return self
        return Dialect(
            self.delimiter or other.delimiter,
            self.decimal or other.decimal,
            self.encoding or other.encoding,
            tuple(dict.fromkeys((*self.missing, *other.missing))),
        )


@dataclass(frozen=True)
class CsvFiles:
    """CSV files and their dialect, as `csv_files` returns them."""

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
    r"""CSV files with a dialect, to be passed in place of their path.

    A model that is fitted to them stores the dialect and applies it to files that are passed to it later,
    unless another one is specified with this function.

    Parameters
    ----------
    path : str, path-like or sequence of these
        A file with any suffix, a folder, a pattern such as ``"sales/*.csv"``, or several of these.
    delimiter : str, default=None
        The character between cells; by default the one that splits a file's header into most columns.
    decimal : str, default=None
        The decimal point; ``"."`` by default.
    encoding : str, default=None
        The text encoding, such as ``"latin-1"``; UTF-8 by default.
    missing : sequence of str, default=()
        Strings that stand for missing values, in addition to ``""``, ``"NA"``, ``"N/A"``, ``"#N/A"``,
        ``"NaN"``, ``"nan"``, ``"null"`` and ``"NULL"``.

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
    marks = (missing,) if isinstance(missing, str) else tuple(missing)
    return CsvFiles(path, Dialect(delimiter, decimal, encoding, marks))
