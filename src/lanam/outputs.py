"""What is written of each row that is predicted: which columns, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanam.errors import InputError


@dataclass(frozen=True)
class Wanted:
    """What is written of each row besides the prediction.

    Attributes
    ----------
    interval
        The coverage of intervals, if they are wanted.
    std
        Whether standard deviations are.
    terms
        Whether the terms' contributions are, and the intercept.
    proba
        Whether the classes' probabilities are.
    prefix
        What stands before the names of all these.
    """

    interval: float | None = None
    std: bool = False
    terms: bool = False
    proba: bool = False
    prefix: str = ""


class Outputs:
    """The columns that a model's predictions have, and their values for some rows.

    Parameters
    ----------
    model
        A fitted estimator.
    wanted
        What is asked for besides the prediction.

    Raises
    ------
    ValueError
        If a model of this kind has no such thing.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = LANAMRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> outputs = Outputs(model, Wanted(interval=0.9, terms=True))
    >>> outputs.names
    ['prediction', 'lower', 'upper', 'intercept', 'term_x0']
    >>> [len(values) for values in outputs.of(X[:3])]
    [3, 3, 3, 3, 3]
    """

    def __init__(self, model: Any, wanted: Wanted) -> None:
        self._model, self._wanted = model, wanted
        classes = getattr(model, "classes_", None)
        self._classes = None if classes is None else classes.tolist()
        if wanted.std and self._classes is not None:
            instead = "{interval=0.95} gives that of probabilities"
            raise InputError(f"{{std=True}} is for numbers: a class has none; {instead}")
        if wanted.proba and self._classes is None:
            raise InputError("{proba=True} is for classes, and this model predicts numbers")

    @cached_property
    def names(self) -> list[str]:
        """What the columns are called."""
        wanted, classes = self._wanted, self._classes or []
        several = len(classes) > 2
        names = ["prediction"]
        if wanted.std:
            names.append("std")
        if wanted.proba:
            names += [f"probability_{label}" for label in classes]
        if wanted.interval is not None:
            names += end_names(classes)
        if wanted.terms:
            labels = [f" [{label}]" for label in classes] if several else [""]
            names += [f"intercept{label}" for label in labels]
            names += [f"term_{name}" for name in self._model.get_feature_names_out()]
        return [wanted.prefix + name for name in names]

    @property
    def dtypes(self) -> list[np.dtype]:
        """What the columns hold: numbers, but for the first column of a classifier."""
        label = np.dtype(float) if self._classes is None else label_dtype(self._model.classes_)
        return [label] + [np.dtype(float)] * (len(self.names) - 1)

    @cached_property
    def schema(self) -> Any:
        """The columns as Arrow has them."""
        import pyarrow as pa

        label = pa.float64() if self._classes is None else pa.array(self._classes).type
        kinds = [label] + [pa.float64()] * (len(self.names) - 1)
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def of(self, X: Any, exposure: Any = None) -> list[np.ndarray]:
        """The columns' values for some rows, perhaps none."""
        if len(X) == 0:
            return [np.empty(0, dtype) for dtype in self.dtypes]
        more = {} if exposure is None else {"exposure": exposure}
        wanted, model = self._wanted, self._model
        columns: list[Any]
        if wanted.std:
            columns = [*model.predict(X, return_std=True, **more)]
        elif wanted.proba:  # once for both: the most probable class
            probability = model.predict_proba(X)
            columns = [model.classes_[probability.argmax(axis=1)], *probability.T]
        else:
            columns = [model.predict(X, **more)]
        if wanted.interval is not None:
            ends = model.predict_interval(X, coverage=wanted.interval, **more)
            columns += [*ends.reshape(len(ends), -1).T]
        if wanted.terms:
            contributions = model.predict_terms(X)
            columns += [np.full(len(X), value) for value in np.atleast_1d(model.intercept_)]
            columns += [*contributions.reshape(len(contributions), -1).T]
        return columns

    def arrays(self, X: Any, exposure: Any = None) -> list[Any]:
        """The same as arrays of Arrow's."""
        import pyarrow as pa

        return [
            pa.array(values, type=field.type)
            for values, field in zip(self.of(X, exposure), self.schema, strict=True)
        ]


def label_dtype(classes: np.ndarray) -> np.dtype:
    """What labels are: text, also if it is in an array of objects, or numbers.

    Examples
    --------
    >>> label_dtype(np.array(["no", "yes"], dtype=object)).kind
    'U'
    """
    return np.array(classes.tolist()).dtype


def end_names(classes: Sequence[Any]) -> list[str]:
    """Names of the ends of intervals: of more than two classes, each has its own.

    Examples
    --------
    >>> end_names(["a", "b"]), end_names(["a", "b", "c"])[:2]
    (['lower', 'upper'], ['lower_a', 'upper_a'])
    """
    ends = ("lower", "upper")
    several = len(classes) > 2
    return [f"{end}_{label}" for label in classes for end in ends] if several else list(ends)
