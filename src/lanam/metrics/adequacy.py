"""Adequacy: what a black box would gain over an additive model, and which columns hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lanam.data import make_frame
from lanam.explain.values import PlainData
from lanam.text import aligned, few, html_table, number_format, printable, term_name

#: Sets of columns that are printed.
_MOST_SHOWN = 8
_MOST_COLUMNS = 3


@dataclass(frozen=True)
class Missed(PlainData):
    """What some columns hold that the model misses.

    Attributes
    ----------
    columns
        Their names; empty for all columns.
    gain
        By how much trees of these columns lower the loss of a row; for several columns beyond what
        smaller sets of them gain.
    share, lower, upper
        The same as a fraction of what can be explained, with its confidence interval.
    """

    columns: tuple[str, ...]
    gain: float
    share: float
    lower: float
    upper: float

    @property
    def name(self) -> str:
        """The columns as an interaction is named."""
        return term_name(self.columns) if self.columns else "all columns"

    @property
    def clear(self) -> bool:
        """Whether the interval is above zero."""
        return self.lower > 0.0


@dataclass(frozen=True, eq=False)
class Adequacy(PlainData):
    """How much of what can be explained a model misses, by a black box fitted to what it leaves.

    All losses are cross-validated means over rows. The constant is a model without columns; what can be
    explained is the difference of its loss and that of the black box. Trees that predict worse than the
    model have a share below zero; an interval always reaches up to zero, since what is missed is not
    negative.

    Attributes
    ----------
    measure
        The loss: "squared error", "deviance" or "log loss (nats)".
    loss, black_box_loss, constant_loss
        Of the model, of the model with the black box added, and of a constant.
    missed
        What the black box gains with all columns.
    together
        What sets of columns hold together, the largest share first: of the columns that matter most to the
        black box, alone, in pairs and in triples. Empty if nothing is missed.
    n_rows, n_splits, coverage
        Rows of positive weight, folds, and confidence level of the intervals.
    refitted
        Whether the model was refitted without each fold; otherwise it had not seen the rows.
    library
        Which fitted the black box: "LightGBM" or "scikit-learn".

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 3))
    >>> y = X[:, 0] + 3 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400)
    >>> model = LANAMRegressor(interactions=0).fit(X, y)
    >>> adequacy = model.adequacy(X, y, max_columns=2)
    >>> adequacy.missed.clear, adequacy.together[0].columns
    (True, ('x0', 'x1'))
    """

    measure: str
    loss: float
    black_box_loss: float
    constant_loss: float
    missed: Missed
    together: tuple[Missed, ...]
    n_rows: int
    n_splits: int
    coverage: float
    refitted: bool
    library: str

    def __iter__(self) -> Iterator[Missed]:
        """What is missed by all columns, then by sets of them."""
        return iter((self.missed, *self.together))

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        share = f"{max(self.missed.share, 0.0):.1%}"
        interval = f"{self._level} interval {_interval(self.missed)}"
        if not self.missed.clear:
            return (
                f"A black box finds nothing clear that the model misses: {share} of what can be explained, "
                f"with zero in the {interval}."
            )
        found = [each.name for each in self.together if each.clear]
        where = f", most of all in {few(found, _MOST_COLUMNS)}" if found else ""
        return f"The model misses {share} of what can be explained ({interval}){where}."

    @property
    def basis(self) -> str:
        """Where the figures come from, in a sentence."""
        how = "refitted without each" if self.refitted else "which has not seen the rows"
        return (
            f"{self.n_rows:,} rows in {self.n_splits} folds; the model, {how}, and trees of {self.library} "
            "added to it."
        )

    @property
    def _level(self) -> str:
        return f"{round(100.0 * self.coverage, 4):g}%"

    def loss_table(self) -> list[tuple[str, str]]:
        """The losses as strings, after a header."""
        form = number_format(self.constant_loss, 4)
        return [
            ("model", self.measure),
            ("a constant", format(self.constant_loss, form)),
            ("this model", format(self.loss, form)),
            ("with a black box added", format(self.black_box_loss, form)),
        ]

    def table(self) -> list[tuple[str, ...]]:
        """What is missed as strings: a header, then a line for all columns and for sets of them."""
        shown = [self.missed, *(each for each in self.together if each.clear)][: _MOST_SHOWN + 1]
        head = ("columns", "missed share", f"{self._level} interval")
        return [head, *((each.name, f"{each.share:.1%}", _interval(each)) for each in shown)]

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for all columns, then one per set, as a frame of a library ("pandas", "polars", ...)."""
        names = ("gain", "share", "lower", "upper")
        columns: dict[str, Any] = {"columns": [each.name for each in self]}
        columns["n_columns"] = [len(each.columns) for each in self]
        columns |= {name: [getattr(each, name) for each in self] for name in names}
        return make_frame(columns, backend)

    def __str__(self) -> str:
        lines = [self.verdict, self.basis, "", *aligned(self.loss_table(), words=(0,))]
        return printable("\n".join([*lines, "", *aligned(self.table(), words=(0,))]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        return html_table(self.table())


def _interval(missed: Missed) -> str:
    return f"{missed.lower:.1%} to {missed.upper:.1%}"
