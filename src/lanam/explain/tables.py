"""A fitted model in the user's words and units: plain data, to print, to draw, to send elsewhere.

Everything is on the link scale, on which terms add up: the target's own unit for a regressor, the
logarithm of the rate for counts, log-odds for a classifier, and one score a class where there are more
than two: arrays then have the classes as one more, last axis, and a term's scores sum to zero over it.

What is in a table's cell is a number, a level or nothing, and so a term says more than a curve: what
a missing value adds, and what a level adds that the training data did not have. With these, a
model's contributions and predictions can be read off an explanation alone:

- a number reads a term of one column at its ``values``, linearly in between and the outermost beyond; a
  level, or a single value of a ``"level"`` term, reads its own entry;
- a missing value reads ``missing_mean`` and, where that is None, ``unseen_mean``;
- any other level reads ``unseen_mean``;
- a pair's tables have a row for each of ``values`` and then for each of ``others``, which are
  ``"(missing)"`` and ``"(other levels)"``, and columns alike; a missing value of a column
  without the entry makes the pair add zero, with ``unseen_std``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lanam.core import scoring
from lanam.core.arrays import Array, IntArray
from lanam.core.knots import Axis, Categories, Grid, Knots, Levels
from lanam.core.model import CONSTANT, EMPTY, FittedModel, FittedTerm
from lanam.core.predictive import moderated_log_odds, poisson_mean, softmax_probability
from lanam.data import CATEGORICAL, Column, Schema, label, make_frame

#: Posterior draws behind the standard deviation of an importance: it is known to about 5%.
_N_DRAWS = 256

#: What tables call the entry of missing values, and that of all levels without one of their own.
MISSING = "(missing)"
OTHER_LEVELS = "(other levels)"

#: The same for a term of single values.
_OTHER_VALUES = "(other values)"

#: The scale of the sum, by likelihood.
_LINKS = {"bernoulli": "logit", "poisson": "log", "softmax": "softmax"}


@dataclass(frozen=True, eq=False)
class Term:
    """What was learned about one term of the sum.

    Attributes
    ----------
    name
        The column's name; ``"<column> (levels)"`` for the effects of single values, ``"a x b"`` for a
        pair.
    kind
        ``"smooth"``, ``"categorical"``, ``"level"`` (single values of a numeric column) or ``"pair"``.
    features, feature_names, feature_kinds
        The term's columns, by index and by name, and whether each is ``"numeric"`` or
        ``"categorical"``.
    status, active
        ``"active"`` or why the term was switched off, and whether it contributes.
    importance
        Mean absolute contribution over the training data; of several classes, their mean.
    effective_parameters
        How many parameters the data determined.
    evidence
        By how much the log evidence would fall without the term; for one that was switched off,
        what it had when it was.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "sex"]], y)
    >>> term = model.terms_[0]
    >>> term.name, term.kind, term.active
    ('bmi', 'smooth', True)
    """

    name: str
    kind: str
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    feature_kinds: tuple[str, ...]
    status: str
    active: bool
    importance: float
    effective_parameters: float
    evidence: float

    def to_dict(self) -> dict[str, Any]:
        """The term as plain data, ready for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Shape(Term):
    """A term with its function: what every value of the column adds to the prediction.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values
        Where the function is tabulated: values of a smooth term in the column's unit (linear in
        between), single values (the middles of bins, where there were too many), or the labels of
        a categorical column, in the data's order. Empty where a column has no values, or the
        same ones as another column.
    mean, std
        Posterior mean and standard deviation of the function there; with a last axis of classes where
        there are more than two.
    density
        Share of the training data at each value; with ``missing_density`` they sum to one.
    inside
        Whether the value lies within the range of the training data.
    missing_mean, missing_std, missing_density
        The same for missing values; None where the training data had none in this column.
    unseen_mean, unseen_std
        For a value that is like none of the training data's: a new level of a categorical column or
        of a term of single values, or a missing value where none was missing. None where there is no
        such value.

    Examples
    --------
    >>> import pandas as pd
    >>> from lanam import LANAMRegressor
    >>> X = pd.DataFrame({"city": ["Rome", "Bonn", None, "Rome", "Bonn", None] * 20})
    >>> y = X["city"].map({"Rome": 1.0, "Bonn": -1.0}).fillna(0.5) + [0.1, -0.1] * 60
    >>> city = LANAMRegressor(random_state=0).fit(X, y).explain_global()["city"]
    >>> city.kind, city.values.tolist(), city.density.round(2).tolist()
    ('categorical', ['Bonn', 'Rome'], [0.33, 0.33])
    >>> bool(city.missing_mean > 0), round(city.missing_density, 2)
    (True, 0.33)
    >>> bool(city.unseen_std > city.std.max())
    True
    """

    importance_std: float
    values: NDArray[Any]
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    missing_mean: float | Array | None
    missing_std: float | Array | None
    missing_density: float | None
    unseen_mean: float | Array | None
    unseen_std: float | Array | None

    @property
    def others(self) -> tuple[tuple[str, Any, Any, float], ...]:
        """What is not a value but has an effect of its own: name, mean, std and density of each."""
        found: list[tuple[str, Any, Any, float]] = []
        if self.missing_density is not None:
            found.append((MISSING, self.missing_mean, self.missing_std, self.missing_density))
        if self.unseen_std is not None and self.kind != "smooth":
            name = OTHER_LEVELS if self.kind == "categorical" else _OTHER_VALUES
            found.append((name, self.unseen_mean, self.unseen_std, 0.0))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Surface(Term):
    """A pair with its function: what two columns together add beyond what either adds alone.

    Its mean over the training data is zero at every value of either column.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values, second_values
        The grid on which the function is tabulated: numbers in the column's unit (linear in between),
        or the labels of the levels that have a row of their own.
    others, second_others
        What the tables' further rows and columns are, after those of the values: ``"(missing)"`` for
        missing values, ``"(other levels)"`` for all levels not in ``values``, rare ones and new ones.
    mean, std
        Posterior mean and standard deviation of the function, (values and others, second values and
        second others); with a last axis of classes where there are more than two.
    density
        Share of the training data at each point of the grid; they sum to one.
    inside
        Whether a point lies within what the training data had in both columns.
    unseen_std
        The standard deviation where a column's value is missing and none was in the training data;
        the mean is zero. None where both columns have an entry for that.
    """

    importance_std: float
    values: NDArray[Any]
    second_values: NDArray[Any]
    others: tuple[str, ...]
    second_others: tuple[str, ...]
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    unseen_std: float | Array | None


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """The whole model: every term's function with its uncertainty, data density and importance.

    Attributes
    ----------
    intercept
        Mean prediction over the training data, on the link scale; one a class where there are more
        than two.
    terms
        In the order of the model's ``terms_``.
    link
        ``"identity"``, ``"log"`` (counts), ``"logit"`` or ``"softmax"`` (more than two classes).
    classes
        A classifier's labels, in the order of the arrays' last axis if there are more than two.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> explanation = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_global()
    >>> [shape.name for shape in explanation.active]
    ['bmi', 'bp']
    >>> bmi = explanation["bmi"]
    >>> bool(np.interp(40, bmi.values, bmi.mean) > np.interp(20, bmi.values, bmi.mean))
    True
    """

    intercept: float | Array
    terms: tuple[Shape | Surface, ...]
    link: str
    classes: tuple[Any, ...] | None = None
    backend: str | None = None

    def __getitem__(self, name: str) -> Any:
        for shape in self.terms:
            if shape.name == name:
                return shape
        raise KeyError(f"no term {name!r}; there are {[shape.name for shape in self.terms]}")

    def __iter__(self) -> Iterator[Shape | Surface]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def active(self) -> tuple[Shape | Surface, ...]:
        """The terms that contribute, most important first."""
        shapes = [shape for shape in self.terms if shape.active]
        return tuple(sorted(shapes, key=lambda shape: -shape.importance))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The terms of one column."""
        return tuple(term for term in self.terms if isinstance(term, Shape))

    @property
    def pairs(self) -> tuple[Surface, ...]:
        """The terms of two columns."""
        return tuple(term for term in self.terms if isinstance(term, Surface))

    @property
    def switched_off(self) -> tuple[Shape | Surface, ...]:
        """The terms that do not contribute."""
        return tuple(shape for shape in self.terms if not shape.active)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "intercept": plain(self.intercept),
            "link": self.link,
            "classes": plain(self.classes),
            "terms": [shape.to_dict() for shape in self.terms],
        }

    def to_frame(self) -> Any:
        """One row a term and value, as a frame of the library the model was fitted with.

        Numbers stand in ``value`` and levels, as text, in ``level``, where also ``"(missing)"``,
        ``"(other levels)"`` and ``"(other values)"`` have a row. A pair has one for each point of its
        grid, with the second column in ``second_value`` and ``second_level``. More than two classes
        have a row each.
        """
        several = self.classes if self.link == "softmax" else None
        parts = [_cells(term) for term in self.terms]
        sizes = [len(part["density"]) for part in parts]
        columns: dict[str, Any] = {
            "term": np.repeat([term.name for term in self.terms], sizes).tolist(),
            "kind": np.repeat([term.kind for term in self.terms], sizes).tolist(),
        }
        for name in parts[0] if parts else ():
            columns[name] = _concatenate([part[name] for part in parts])
        return make_frame(_by_class(columns, several, ("mean", "std")), self.backend)


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """Some rows' predictions taken apart.

    Where there are more than two classes, contributions, predictions, responses and intercept have them
    as one more, last axis.

    Attributes
    ----------
    intercept, intercept_std
        The same for every row.
    terms
        In the order of the contributions' columns.
    values
        (n, n_terms) the value of each term's column in each row; of a pair, of its first column.
        Numbers, not a number where they are missing; if any column is categorical, objects: labels
        and numbers, None where they are missing, ``"(unseen)"`` for levels that the training data did
        not have.
    second_values
        (n, n_terms) the same of a pair's second column; not a number, or None, for other terms.
    contributions, contributions_std
        (n, n_terms) what each term adds, and how sure that is.
    prediction, prediction_std
        (n,) intercept plus contributions, and its posterior standard deviation (without noise).
    response
        (n,) the prediction on the target's scale, averaged over the posterior: for a classifier the
        probability, for counts the rate (of an exposure of 1).
    link
        ``"identity"``, ``"log"`` (counts), ``"logit"`` or ``"softmax"`` (more than two classes).
    classes
        A classifier's labels, in the order of the last axis if there are more than two.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> local = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_local(X[:3])
    Traceback (most recent call last):
        ...
    ValueError: The feature names should match those that were passed during fit...
    >>> local = (
    ...     LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_local(X[["bp", "bmi"]])
    ... )
    >>> bool(np.allclose(local.intercept + local.contributions.sum(axis=1), local.prediction))
    True
    """

    intercept: float | Array
    intercept_std: float | Array
    terms: tuple[Term, ...]
    values: NDArray[Any]
    second_values: NDArray[Any]
    contributions: Array
    contributions_std: Array
    prediction: Array
    prediction_std: Array
    response: Array
    link: str
    classes: tuple[Any, ...] | None = None
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.prediction)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON; None where there is no value."""
        facts = {name: plain(value) for name, value in vars(self).items() if name != "backend"}
        return facts | {"terms": [term.to_dict() for term in self.terms]}

    def to_frame(self) -> Any:
        """One row for each row's intercept, contributions and prediction, in this order.

        Numbers stand in ``value`` and levels, as text, in ``level``; more than two classes have a row
        each.
        """
        several = self.classes if self.link == "softmax" else None
        n_rows, n_terms = self.contributions.shape[:2]
        ones = np.ones_like(self.prediction)[:, None]
        names = ["(intercept)", *(term.name for term in self.terms), "(prediction)"]
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n_rows), n_terms + 2),
            "term": names * n_rows,
        }
        for place, values in enumerate((self.values, self.second_values)):
            second = "second_" if place else ""
            cells = [_local_cells(values[:, k], term, place) for k, term in enumerate(self.terms)]
            blank: tuple[Array, list[Any]] = (np.full(n_rows, np.nan), [None] * n_rows)
            numbers, levels = zip(blank, *cells, blank, strict=True)
            columns[f"{second}value"] = np.column_stack(numbers).ravel()
            columns[f"{second}level"] = [
                level for row in zip(*levels, strict=True) for level in row
            ]
        for name, parts in {
            "contribution": (self.intercept * ones, self.contributions, self.prediction),
            "std": (self.intercept_std * ones, self.contributions_std, self.prediction_std),
        }.items():
            table = np.concatenate([parts[0], parts[1], parts[2][:, None]], axis=1)
            columns[name] = table.ravel()
        return make_frame(_by_class(columns, several, ("contribution", "std")), self.backend)


def describe_terms(model: FittedModel, schema: Schema) -> tuple[Term, ...]:
    """Every term of a fitted model under its name."""
    return tuple(Term(**_facts(term, schema)) for term in model.terms)


def explain_global(
    model: FittedModel, schema: Schema, classes: Sequence[Any] | None = None
) -> GlobalExplanation:
    """Every term's function, in the columns' units; ``classes`` are a classifier's labels."""
    rng = np.random.default_rng(0)  # an explanation is a fact about the model, the same each time
    terms = tuple(
        (_surface if term.kind == "pair" else _shape)(model, index, schema, rng)
        for index, term in enumerate(model.terms)
    )
    return GlobalExplanation(
        _scalar(np.asarray(model.intercept)),
        terms,
        _link(model),
        class_labels(model, classes),
        schema.backend,
    )


def explain_local(
    model: FittedModel, schema: Schema, columns: Array, classes: Sequence[Any] | None = None
) -> LocalExplanation:
    """The predictions for the rows of ``columns`` (n, D), taken apart."""
    mean, variance = scoring.link_moments(model, columns)
    firsts = [term.features[0] for term in model.terms]
    seconds = [term.features[1] if term.kind == "pair" else None for term in model.terms]
    own = np.diagonal(variance, axis1=-2, axis2=-1) if variance.ndim > 1 else variance
    return LocalExplanation(
        intercept=_scalar(np.asarray(model.intercept)),
        intercept_std=_intercept_std(model),
        terms=describe_terms(model, schema),
        values=_values_of(schema, columns, firsts),
        second_values=_values_of(schema, columns, seconds),
        contributions=scoring.term_means(model, columns),
        contributions_std=np.sqrt(scoring.term_variances(model, columns)),
        prediction=mean,
        prediction_std=np.sqrt(np.maximum(own, 0.0)),
        response=_response(_link(model), mean, variance),
        link=_link(model),
        classes=class_labels(model, classes),
        backend=schema.backend,
    )


def _response(link: str, mean: Array, variance: Array) -> Array:
    """The mean of the target as ``predict`` and ``predict_proba`` give it: over the posterior."""
    if link == "logit":
        return np.asarray(expit(moderated_log_odds(mean, variance)))
    if link == "log":
        return poisson_mean(mean, variance, np.ones(1))
    if link == "softmax":
        return softmax_probability(mean, variance)
    return mean


def _values_of(
    schema: Schema, columns: Array, features: Sequence[int | None]
) -> NDArray[np.float64] | NDArray[np.object_]:
    """The rows' values of some columns in the user's words; nothing where there is no column."""
    chosen = [None if feature is None else schema.columns[feature] for feature in features]
    labelled = any(column is not None and column.kind == CATEGORICAL for column in chosen)
    result = np.full((len(columns), len(chosen)), None if labelled else np.nan, dtype=object)
    for k, (feature, column) in enumerate(zip(features, chosen, strict=True)):
        if feature is None or column is None:
            continue
        if labelled:
            result[:, k] = [label(column, code) for code in columns[:, feature]]
        else:
            result[:, k] = columns[:, feature]
    return result if labelled else result.astype(np.float64)


def _local_cells(
    values: NDArray[Any], term: Term, place: int
) -> tuple[NDArray[np.float64], list[str | None]]:
    """Rows' values of one of a term's columns as numbers, and as text where they are none."""
    if place >= len(term.features):
        return np.full(len(values), np.nan), [None] * len(values)
    missing = [value is None or value != value for value in values.tolist()]
    if term.feature_kinds[place] != CATEGORICAL:
        gone = [MISSING if lost else None for lost in missing]
        return values.astype(np.float64), gone  # None becomes NaN
    levels = [
        MISSING if lost else str(value)
        for value, lost in zip(values.tolist(), missing, strict=True)
    ]
    return np.full(len(values), np.nan), list(levels)


def _cells(term: Shape | Surface) -> dict[str, Any]:
    """A term's tables as columns, with one entry for each place where it is tabulated."""
    if isinstance(term, Surface):
        numbers, levels = _axis_cells(term.values, term.others)
        second_numbers, second_levels = _axis_cells(term.second_values, term.second_others)
        n_first, n_second = len(numbers), len(second_numbers)
        return {
            "value": np.repeat(numbers, n_second),
            "level": [level for level in levels for _ in range(n_second)],
            "second_value": np.tile(second_numbers, n_first),
            "second_level": second_levels * n_first,
            "mean": term.mean.ravel(),
            "std": term.std.ravel(),
            "density": term.density.ravel(),
            "inside": term.inside.ravel(),
        }
    means, stds, densities = ([other[k] for other in term.others] for k in (1, 2, 3))
    numbers, levels = _axis_cells(term.values, [other[0] for other in term.others])
    n_entries = len(numbers)
    return {
        "value": numbers,
        "level": levels,
        "second_value": np.full(n_entries, np.nan),
        "second_level": [None] * n_entries,
        "mean": np.concatenate([term.mean.ravel(), np.ravel(means)]),
        "std": np.concatenate([term.std.ravel(), np.ravel(stds)]),
        "density": np.concatenate([term.density, densities]),
        "inside": np.concatenate([term.inside, np.array(densities) > 0.0]),
    }


def _axis_cells(values: NDArray[Any], others: Sequence[str]) -> tuple[Array, list[str | None]]:
    """Values and other entries as numbers, and as text where they are none."""
    blank = np.full(len(others), np.nan)
    if values.dtype == object:
        levels = [str(value) for value in values.tolist()]
        return np.concatenate([np.full(len(values), np.nan), blank]), [*levels, *others]
    return np.concatenate([values, blank]), [*([None] * len(values)), *others]


def _by_class(
    columns: dict[str, Any], classes: tuple[Any, ...] | None, spread: Sequence[str]
) -> dict[str, Any]:
    """Columns with a row for each class, if there are several; those of ``spread`` have it already."""
    if classes is None:
        return columns
    result: dict[str, Any] = {}
    for name, column in columns.items():
        if name in spread:
            result[name] = column
        elif isinstance(column, list):
            result[name] = [cell for cell in column for _ in classes]
        else:
            result[name] = np.repeat(column, len(classes))
        if name == "term":
            result["class"] = list(classes) * len(column)
    return result


def _concatenate(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [cell for part in parts for cell in part]
    return np.concatenate(parts)


def importance_std(model: FittedModel, index: int, rng: np.random.Generator) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term = model.terms[index]
    if not term.active:
        return 0.0
    root = model.root[model.blocks[index]]
    draws = root @ rng.standard_normal((root.shape[1], _N_DRAWS))
    importances = np.mean([term.share @ np.abs(f) for f in _functions(model, term, draws)], axis=0)
    # A mean over the entries is not quite one over the rows, which the importance is.
    means = term.mean.reshape(len(term.mean), -1)
    at_entries = float((term.share @ np.abs(means)).mean())
    ratio = term.importance / at_entries if at_entries > 0.0 else 1.0
    return ratio * float(np.std(importances))


def _functions(model: FittedModel, term: FittedTerm, draws: Array) -> Iterator[Array]:
    """A term's function at its entries (B, n_draws) for draws of its coordinates, class by class."""
    if model.contrasts is None:
        yield term.mean[:, None] + term.table @ draws
        return
    outputs = draws.reshape(model.contrasts.shape[1], term.table.shape[1], -1)
    for mean, weights in zip(term.mean.T, model.contrasts, strict=True):
        yield mean[:, None] + term.table @ np.tensordot(weights, outputs, axes=1)


def _facts(term: FittedTerm, schema: Schema) -> dict[str, Any]:
    columns = [schema.columns[feature] for feature in term.features]
    name = " x ".join(column.name for column in columns)
    # A column that cannot have a term has no entries, whatever its kind.
    categorical = term.kind == "smooth" and columns[0].kind == CATEGORICAL
    return {
        "name": f"{name} (levels)" if term.kind == "level" else name,
        "kind": "categorical" if categorical else term.kind,
        "features": term.features,
        "feature_names": tuple(column.name for column in columns),
        "feature_kinds": tuple(column.kind for column in columns),
        "status": term.status,
        "active": term.active,
        "importance": float(term.importance),
        "effective_parameters": float(term.effective_parameters),
        "evidence": float(term.evidence),
    }


def _shape(model: FittedModel, index: int, schema: Schema, rng: np.random.Generator) -> Shape:
    term = model.terms[index]
    column = schema.columns[term.features[0]]
    if term.entries is None:
        return _flat_shape(model, term, schema)
    assert not isinstance(term.entries, Grid)
    mean, std = _moments(model, index)
    own, missing, unseen = _places(term.entries)
    if missing is not None and term.share[missing] == 0.0:
        missing = None
    if unseen is not None:
        unseen_moments = mean[unseen], std[unseen]
    elif missing is None:
        unseen_moments = _unknown(term, mean, std)
    else:
        unseen_moments = None, None
    values = _axis_values(term.entries, column)
    return Shape(
        **_facts(term, schema),
        importance_std=importance_std(model, index, rng),
        values=values,
        mean=mean[own],
        std=std[own],
        density=term.share[own],
        inside=_inside(values, column),
        missing_mean=None if missing is None else _scalar(mean[missing]),
        missing_std=None if missing is None else _scalar(std[missing]),
        missing_density=None if missing is None else float(term.share[missing]),
        unseen_mean=_scalar(unseen_moments[0]),
        unseen_std=_scalar(unseen_moments[1]),
    )


def _flat_shape(model: FittedModel, term: FittedTerm, schema: Schema) -> Shape:
    """The shape of a column that cannot have a term: one value, none, or another column's."""
    column = schema.columns[term.features[0]]
    values: NDArray[Any] = _array(()) if column.kind == CATEGORICAL else np.empty(0)
    if term.status == CONSTANT:
        values = _array(column.levels) if column.kind == CATEGORICAL else np.array([column.lowest])
    zeros = np.zeros((len(values), *np.shape(model.intercept)))
    nothing = _scalar(np.zeros(np.shape(model.intercept))) if term.status == EMPTY else None
    return Shape(
        **_facts(term, schema),
        importance_std=0.0,
        values=values,
        mean=zeros,
        std=zeros.copy(),
        density=np.full(len(values), 1.0 / max(len(values), 1)),
        inside=np.ones(len(values), dtype=bool),
        missing_mean=nothing,
        missing_std=nothing,
        missing_density=1.0 if term.status == EMPTY else None,
        unseen_mean=None,
        unseen_std=None,
    )


def _surface(model: FittedModel, index: int, schema: Schema, rng: np.random.Generator) -> Surface:
    term = model.terms[index]
    grid = term.entries
    assert isinstance(grid, Grid)
    columns = [schema.columns[feature] for feature in term.features]
    first, second = map(_axis_values, grid.axes, columns)
    mean, std = _moments(model, index)
    density = term.share.reshape(grid.shape).copy()
    others = [_axis_others(axis) for axis in grid.axes]
    inside = [
        np.concatenate([_inside(values, column), share[len(values) :] > 0.0])
        for values, column, share in zip(
            (first, second), columns, (density.sum(axis=1), density.sum(axis=0)), strict=True
        )
    ]
    return Surface(
        **_facts(term, schema),
        importance_std=importance_std(model, index, rng),
        values=first,
        second_values=second,
        others=others[0],
        second_others=others[1],
        mean=mean.reshape(*grid.shape, *mean.shape[1:]).copy(),
        std=std.reshape(*grid.shape, *std.shape[1:]),
        density=density,
        inside=np.logical_and.outer(*inside),
        unseen_std=None
        if all(axis.missing for axis in grid.axes)
        else _scalar(_unknown(term, mean, std)[1]),
    )


def _moments(model: FittedModel, index: int) -> tuple[Array, Array]:
    """Mean and standard deviation of a term at its entries, (B,) or (B, classes)."""
    term = model.terms[index]
    if term.active:
        mean, variance = scoring.entry_moments(model, index)
        return mean, np.sqrt(variance)
    zeros = np.zeros((len(term.share), *np.shape(model.intercept)))
    return zeros, zeros.copy()


def _unknown(term: FittedTerm, mean: Array, std: Array) -> tuple[Array, Array]:
    """What a missing value adds where none was: any of the term's values, as often as the data has it."""
    spread = np.sqrt(term.share @ (np.square(mean) + np.square(std)))
    return np.zeros_like(spread), spread


def _places(entries: Knots | Levels | Categories) -> tuple[IntArray, int | None, int | None]:
    """The entries of the values, of missing ones and of unseen ones."""
    if isinstance(entries, Categories):
        return entries.entry_of, entries.n_own, entries.n_own + 1
    n_points = len(entries.points)
    missing = n_points if entries.missing else None
    # Bins leave no value out; only a missing one has no entry, where none was.
    leaves = isinstance(entries, Levels) and (entries.exact or not entries.missing)
    return np.arange(n_points), missing, len(entries) - 1 if leaves else None


def _axis_values(axis: Axis | Levels, column: Column) -> NDArray[Any]:
    """Numbers in the column's unit, or the labels of the levels with an entry of their own."""
    if isinstance(axis, Categories):
        own = np.flatnonzero(axis.entry_of < axis.n_own)
        return _array([column.levels[code] for code in own])
    return axis.values.copy()


def _axis_others(axis: Axis) -> tuple[str, ...]:
    if isinstance(axis, Categories):
        return (MISSING, OTHER_LEVELS)
    return (MISSING,) if axis.missing else ()


def _array(labels: Sequence[Any]) -> NDArray[np.object_]:
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result


def _inside(values: NDArray[Any], column: Column) -> NDArray[np.bool_]:
    """Which values lie within the data's range.

    Knots are computed, so the outermost data value and its knot may differ by rounding.
    """
    if column.kind == CATEGORICAL:
        return np.ones(len(values), dtype=bool)
    slack = 1e-9 * (column.highest / 2.0 - column.lowest / 2.0)
    return (values >= column.lowest - slack) & (values <= column.highest + slack)


def _intercept_std(model: FittedModel) -> float | Array:
    """Posterior standard deviation of the intercept, the last of the model's coordinates."""
    if model.contrasts is None:
        return float(np.sqrt(model.covariance[-1, -1]))
    root = model.contrasts @ model.root[-model.contrasts.shape[1] :]
    return np.asarray(np.sqrt(np.square(root).sum(axis=1)))


def _link(model: FittedModel) -> str:
    return _LINKS.get(model.likelihood, "identity")


def class_labels(model: FittedModel, classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The classes' labels as plain values; their numbers where several have none."""
    if classes is None:
        return tuple(range(np.size(model.intercept))) if _link(model) == "softmax" else None
    return tuple(np.asarray(classes).tolist())


def _scalar(value: Any) -> Any:
    """A float if there is one number, a copy of the array if there is one a class."""
    if value is None:
        return None
    return float(value) if np.ndim(value) == 0 else np.array(value)


def plain(value: Any) -> Any:
    """The value as JSON knows it, which has no word for what is not a number."""
    if isinstance(value, np.ndarray):
        clean = value.dtype.kind in "bi" or (value.dtype.kind == "f" and not np.isnan(value).any())
        return value.tolist() if clean else plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value
