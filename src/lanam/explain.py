"""A fitted model in the user's words and units: plain data, to print, to draw, to send elsewhere.

Everything is on the link scale, on which terms add up: the target's own unit for a regressor,
log-odds for a classifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lanam.core import scoring
from lanam.core.arrays import Array
from lanam.core.knots import Grid, Levels
from lanam.core.model import FittedModel, FittedTerm
from lanam.core.predictive import moderated_log_odds
from lanam.data import Column, Schema, make_frame

#: Posterior draws behind the standard deviation of an importance: it is known to about 5%.
_N_DRAWS = 256


@dataclass(frozen=True, eq=False)
class Term:
    """What was learned about one term of the sum.

    Attributes
    ----------
    name
        The column's name; ``"<column> (levels)"`` for the effects of single values, ``"a x b"`` for a
        pair.
    kind
        ``"smooth"``, ``"level"`` or ``"pair"``.
    features, feature_names
        The term's columns, by index and by name.
    status, active
        ``"active"`` or why the term was switched off, and whether it contributes.
    importance
        Mean absolute contribution over the training data.
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
    status: str
    active: bool
    importance: float
    effective_parameters: float
    evidence: float

    def to_dict(self) -> dict[str, Any]:
        """The term as plain data, ready for JSON."""
        return {name: _plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Shape(Term):
    """A term with its function: what every value of the column adds to the prediction.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values
        Where the function is tabulated, in the column's unit: values of a smooth term (linear in
        between), or the levels (the middles of bins, where there were too many values).
    mean, std
        Posterior mean and standard deviation of the function there.
    density
        Share of the training data at each value; they sum to one.
    inside
        Whether the value lies within the range of the training data.
    unseen_std
        For a term of single values: the standard deviation of a value's effect that was not in the
        training data; its mean is zero. None for smooth terms, and for bins, which leave no value
        out.
    """

    importance_std: float
    values: Array
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    unseen_std: float | None


@dataclass(frozen=True, eq=False)
class Surface(Term):
    """A pair with its function: what two columns together add beyond what either adds alone.

    Its mean over the training data is zero at every value of either column.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values, second_values
        The grid on which the function is tabulated, in the two columns' units (bilinear in between).
    mean, std
        Posterior mean and standard deviation of the function there, (values, second values).
    density
        Share of the training data at each point of the grid; they sum to one.
    inside
        Whether a point lies within the range of the training data in both columns.
    """

    importance_std: float
    values: Array
    second_values: Array
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """The whole model: every term's function with its uncertainty, data density and importance.

    Attributes
    ----------
    intercept
        Mean prediction over the training data, on the link scale.
    terms
        In the order of the model's ``terms_``.
    link
        ``"identity"`` or ``"logit"``.

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

    intercept: float
    terms: tuple[Shape | Surface, ...]
    link: str
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
            "intercept": self.intercept,
            "link": self.link,
            "terms": [shape.to_dict() for shape in self.terms],
        }

    def to_frame(self) -> Any:
        """One row a term and value, as a frame of the library the model was fitted with.

        A pair has one for each point of its grid, with the second column's value in ``second_value``.
        """
        sizes = [shape.mean.size for shape in self.terms]
        places = [_places(shape) for shape in self.terms]

        def joined(name: str) -> Array:
            return np.concatenate([getattr(shape, name).ravel() for shape in self.terms])

        return make_frame(
            {
                "term": np.repeat([shape.name for shape in self.terms], sizes).tolist(),
                "kind": np.repeat([shape.kind for shape in self.terms], sizes).tolist(),
                "value": np.concatenate([first for first, _ in places]),
                "second_value": np.concatenate([second for _, second in places]),
                "mean": joined("mean"),
                "std": joined("std"),
                "density": joined("density"),
                "inside": joined("inside"),
            },
            self.backend,
        )


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """Some rows' predictions taken apart.

    Attributes
    ----------
    intercept, intercept_std
        The same for every row.
    terms
        In the order of the contributions' columns.
    values
        (n, n_terms) the value of each term's column in each row; of a pair, of its first column.
    second_values
        (n, n_terms) the value of a pair's second column, not a number for other terms.
    contributions, contributions_std
        (n, n_terms) what each term adds, and how sure that is.
    prediction, prediction_std
        (n,) intercept plus contributions, and its posterior standard deviation (without noise).
    response
        (n,) the prediction on the target's scale: for a classifier the probability.
    link
        ``"identity"`` or ``"logit"``.

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

    intercept: float
    intercept_std: float
    terms: tuple[Term, ...]
    values: Array
    second_values: Array
    contributions: Array
    contributions_std: Array
    prediction: Array
    prediction_std: Array
    response: Array
    link: str
    backend: str | None = None

    def __len__(self) -> int:
        return len(self.prediction)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON; None where there is no second value."""
        plain = {name: _plain(value) for name, value in vars(self).items() if name != "backend"}
        # JSON has no word for what is not a number.
        second = np.where(np.isnan(self.second_values), None, self.second_values).tolist()
        return plain | {"second_values": second, "terms": [term.to_dict() for term in self.terms]}

    def to_frame(self) -> Any:
        """One row for each row's intercept, contributions and prediction, in this order."""
        n_rows, n_terms = self.contributions.shape
        blank, ones = np.full((n_rows, 1), np.nan), np.ones((n_rows, 1))
        names = ["(intercept)", *(term.name for term in self.terms), "(prediction)"]
        contributions = [self.intercept * ones, self.contributions, self.prediction[:, None]]
        stds = [self.intercept_std * ones, self.contributions_std, self.prediction_std[:, None]]
        return make_frame(
            {
                "row": np.repeat(np.arange(n_rows), n_terms + 2),
                "term": names * n_rows,
                "value": np.hstack([blank, self.values, blank]).ravel(),
                "second_value": np.hstack([blank, self.second_values, blank]).ravel(),
                "contribution": np.hstack(contributions).ravel(),
                "std": np.hstack(stds).ravel(),
            },
            self.backend,
        )


def describe_terms(model: FittedModel, schema: Schema) -> tuple[Term, ...]:
    """Every term of a fitted model under its name."""
    return tuple(Term(**_facts(term, schema)) for term in model.terms)


def explain_global(model: FittedModel, schema: Schema) -> GlobalExplanation:
    """Every term's function, in the columns' units."""
    rng = np.random.default_rng(0)  # an explanation is a fact about the model, the same each time
    terms = tuple(
        (_surface if term.kind == "pair" else _shape)(model, index, schema, rng)
        for index, term in enumerate(model.terms)
    )
    return GlobalExplanation(model.intercept, terms, _link(model), schema.backend)


def explain_local(model: FittedModel, schema: Schema, columns: Array) -> LocalExplanation:
    """The predictions for the rows of ``columns`` (n, D), taken apart."""
    mean, variance = scoring.link_moments(model, columns)
    contributions = scoring.term_means(model, columns)
    return LocalExplanation(
        intercept=model.intercept,
        intercept_std=float(np.sqrt(model.covariance[-1, -1])),
        terms=describe_terms(model, schema),
        values=columns[:, [term.features[0] for term in model.terms]],
        second_values=_second_values(model, columns),
        contributions=contributions,
        contributions_std=np.sqrt(scoring.term_variances(model, columns)),
        prediction=mean,
        prediction_std=np.sqrt(variance),
        response=mean if _link(model) == "identity" else _probability(mean, variance),
        link=_link(model),
        backend=schema.backend,
    )


def _second_values(model: FittedModel, columns: Array) -> Array:
    values = np.full((len(columns), len(model.terms)), np.nan)
    for k, term in enumerate(model.terms):
        if term.kind == "pair":
            values[:, k] = columns[:, term.features[1]]
    return values


def _places(term: Shape | Surface) -> tuple[Array, Array]:
    """First and second value of every place where a term is tabulated."""
    if isinstance(term, Shape):
        return term.values, np.full(len(term.values), np.nan)
    first, second = np.meshgrid(term.values, term.second_values, indexing="ij")
    return first.ravel(), second.ravel()


def _probability(mean: Array, variance: Array) -> Array:
    """The probability as ``predict_proba`` gives it: averaged over the posterior."""
    return np.asarray(expit(moderated_log_odds(mean, variance)))


def importance_std(model: FittedModel, index: int, rng: np.random.Generator) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term, block = model.terms[index], model.blocks[index]
    if not term.active:
        return 0.0
    size, vectors = np.linalg.eigh(model.covariance[block, block])
    root = term.table @ (vectors * np.sqrt(np.maximum(size, 0.0)))
    draws = term.mean[:, None] + root @ rng.standard_normal((len(size), _N_DRAWS))
    # A mean over the entries is not quite one over the rows, which the importance is.
    at_entries = float(term.share @ np.abs(term.mean))
    ratio = term.importance / at_entries if at_entries > 0.0 else 1.0
    return ratio * float(np.std(term.share @ np.abs(draws)))


def _facts(term: FittedTerm, schema: Schema) -> dict[str, Any]:
    names = tuple(schema.names[feature] for feature in term.features)
    label = " x ".join(names)
    return {
        "name": f"{label} (levels)" if term.kind == "level" else label,
        "kind": term.kind,
        "features": term.features,
        "feature_names": names,
        "status": term.status,
        "active": term.active,
        "importance": float(term.importance),
        "effective_parameters": float(term.effective_parameters),
        "evidence": float(term.evidence),
    }


def _shape(model: FittedModel, index: int, schema: Schema, rng: np.random.Generator) -> Shape:
    term = model.terms[index]
    column = schema.columns[term.features[0]]
    unseen_std = None
    if term.entries is None:
        values, mean, std = np.array([column.lowest]), np.zeros(1), np.zeros(1)
        density = np.ones(1)
    else:
        values, density = term.entries.values, term.share[: len(term.entries.values)]
        mean, std = np.zeros(len(values)), np.zeros(len(values))
        if term.active:
            entry_mean, entry_variance = scoring.entry_moments(model, index)
            mean, std = entry_mean[: len(values)], np.sqrt(entry_variance[: len(values)])
            if isinstance(term.entries, Levels) and term.entries.exact:
                unseen_std = float(np.sqrt(entry_variance[-1]))
    return Shape(
        **_facts(term, schema),
        importance_std=importance_std(model, index, rng),
        values=values.copy(),
        mean=mean.copy(),
        std=std,
        density=density.copy(),
        inside=_inside(values, column),
        unseen_std=unseen_std,
    )


def _surface(model: FittedModel, index: int, schema: Schema, rng: np.random.Generator) -> Surface:
    term = model.terms[index]
    assert isinstance(term.entries, Grid)
    first, second = (knots.values for knots in term.entries.axes)
    inside = [
        _inside(values, schema.columns[feature])
        for values, feature in zip((first, second), term.features, strict=True)
    ]
    mean, variance = scoring.entry_moments(model, index)
    shape = term.entries.shape
    return Surface(
        **_facts(term, schema),
        importance_std=importance_std(model, index, rng),
        values=first,
        second_values=second,
        mean=mean.reshape(shape).copy(),
        std=np.sqrt(variance).reshape(shape),
        density=term.share.reshape(shape).copy(),
        inside=np.logical_and.outer(*inside),
    )


def _inside(values: Array, column: Column) -> NDArray[np.bool_]:
    """Which values lie within the data's range.

    Knots are computed, so the outermost data value and its knot may differ by rounding.
    """
    slack = 1e-9 * (column.highest / 2.0 - column.lowest / 2.0)
    return (values >= column.lowest - slack) & (values <= column.highest + slack)


def _link(model: FittedModel) -> str:
    return "logit" if model.likelihood == "bernoulli" else "identity"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return value
