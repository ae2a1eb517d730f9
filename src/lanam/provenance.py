"""Where a fitted model comes from: its target and training data, a date, a version, held-out rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.rows.sketches import sum_features
from lanam.version import __version__

#: Digits of a fingerprint: those of the features alone, then those of features, targets and weights.
N_DIGITS = 16


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows of a table that ``lanam fit`` did not use: which, and a fingerprint of their features."""

    rows: NDArray[np.bool_]
    fingerprint: str

    def __repr__(self) -> str:
        return f"HeldOut({self.rows.sum()} of {len(self.rows)} rows)"


@dataclass(frozen=True)
class Target:
    """What a model was fitted to predict.

    Attributes
    ----------
    name
        The name of its column or Series; None if it had none.
    means
        Its mean over the training data, which for two classes is the base rate of the second and for counts
        the mean rate; the base rates of more classes.
    exposure
        Total exposure of counts; None for other targets.
    """

    name: str | None
    means: tuple[float, ...]
    exposure: float | None = None


@dataclass(frozen=True, eq=False)
class Provenance:
    """Where a fitted model comes from; a part of its file.

    Attributes
    ----------
    fingerprint
        32 hexadecimal digits, the first 16 of the features alone and the others of features, target,
        weights and exposures: of their values in all rows with a positive weight, whatever the order of
        the rows and wherever they were read from. It tells data sets apart, and is no signature.
    date
        When the model was fitted, in UTC, such as "2024-05-01T12:00:00Z"; if ``SOURCE_DATE_EPOCH`` is set
        in the environment, that time.
    version
        Version of lanam that fitted it.
    held_out
        Which rows of its table ``lanam fit`` held out; None for other fits.
    target
        Name, mean or base rates, and total exposure; None in older files.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LANAMRegressor(interactions=0).fit(X, y)
    >>> turned = LANAMRegressor(interactions=0).fit(X[::-1], y[::-1])
    >>> model.provenance_.fingerprint == turned.provenance_.fingerprint
    True
    """

    fingerprint: str
    date: str
    version: str
    held_out: HeldOut | None = None
    target: Target | None = None

    def part_of(self, columns: Array) -> str:
        """What encoded rows were to the fit: its "training" data, "held out", "both" or "unknown"."""
        train = self.fingerprint[:N_DIGITS]
        parts = {train: "training"}
        if self.held_out is not None:
            held = self.held_out.fingerprint
            together = (int(train, 16) + int(held, 16)) % 2 ** (4 * N_DIGITS)  # hashes add up
            parts |= {_digits(together): "both", held: "held out"}
        return parts.get(features_fingerprint(columns), "unknown")


def provenance(fingerprint: str, target: Target | None) -> Provenance:
    """The provenance of a model that is fitted now."""
    return Provenance(fingerprint, utc_now(), __version__, target=target)


def utc_now(environment: Mapping[str, str] = os.environ) -> str:
    """The time in UTC, or that of ``SOURCE_DATE_EPOCH`` in the environment.

    Examples
    --------
    >>> utc_now({"SOURCE_DATE_EPOCH": "1714564800"})
    '2024-05-01T12:00:00Z'
    """
    given = environment.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), UTC) if given.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def features_fingerprint(columns: Array) -> str:
    """The fingerprint of encoded rows' features, in any order."""
    return _digits(int(sum_features(columns)))


def _digits(number: int) -> str:
    return f"{number:0{N_DIGITS}x}"


def held_out_rows(model: Any, X: object, rows: NDArray[np.bool_]) -> HeldOut:
    """The held-out ``rows`` of a table, whose features are X, as the model encodes them."""
    return HeldOut(rows, features_fingerprint(model._columns(X)))
