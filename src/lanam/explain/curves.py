"""Survival curves and cumulative incidences of single rows, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.data import make_frame
from lanam.explain.values import PlainData


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurves(PlainData):
    """Survival, or the cumulative incidence of a cause, of some rows, with pointwise credible intervals.

    Attributes
    ----------
    kind
        ``"survival"`` or ``"incidence"``.
    times
        Times (T,), at which curves are evaluated.
    value, lower, upper
        The curves (n, T), and the ends of their intervals.
    coverage
        The intervals' probability.
    labels
        The rows' names.
    time_name, cause
        The name of the time, and the code of the cause; None for survival.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMSurvival
    >>> rng = np.random.default_rng(0)
    >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
    >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
    >>> curves = model.explain_survival(X[:2], times=[0.5, 1.0], labels=["first", "second"])
    >>> sorted(curves.to_frame())
    ['lower', 'row', 'time', 'upper', 'value']
    """

    kind: str
    times: Array
    value: Array
    lower: Array
    upper: Array
    coverage: float
    labels: tuple[str, ...]
    time_name: str = "time"
    cause: int | None = None
    backend: str | None = None

    @property
    def quantity(self) -> str:
        """What the curves are, in words."""
        if self.kind == "survival":
            return "probability of no event"
        return f"probability of an event of cause {self.cause}"

    def to_frame(self) -> Any:
        """One row per curve and time, as a frame of the library the model was fitted with."""
        n_times = len(self.times)
        columns = {
            "row": [label for label in self.labels for _ in range(n_times)],
            "time": np.tile(self.times, len(self.labels)),
            "value": self.value.ravel(),
            "lower": self.lower.ravel(),
            "upper": self.upper.ravel(),
        }
        return make_frame(columns, self.backend)

    def __repr__(self) -> str:
        return f"SurvivalCurves({self.kind} of {len(self.labels)} rows at {len(self.times)} times)"


def row_labels(labels: Sequence[Any] | None, n_rows: int) -> tuple[str, ...]:
    """The rows' names; their numbers by default.

    Examples
    --------
    >>> row_labels(None, 2)
    ('row 0', 'row 1')
    """
    if labels is None:
        return tuple(f"row {k}" for k in range(n_rows))
    names = tuple(map(str, labels))
    if len(names) != n_rows:
        raise ValueError(f"labels has {len(names)} names, and X has {n_rows} rows")
    return names
