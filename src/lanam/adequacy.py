"""Adequacy of a fitted model: its predictions of rows it has not seen, and what a black box adds to them.

The black box is validated on folds, and so is the model: it is refitted without each fold, unless it has
not seen any of the rows. Gains are means over rows of differences of losses, so that intervals are paired.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.utils import check_random_state

from lanam.black_box import Boosted, LeftOver, boost, boosting_threads, encode_for_trees, library
from lanam.core.arrays import Array, IntArray
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.rows.follow_up import N_TIMES, Timeline
from lanam.core.rows.located import Rows
from lanam.core.rows.statistics import fit_intercept_only
from lanam.core.rows.tables import EncodedRows
from lanam.data import CATEGORICAL, Schema, as_frame
from lanam.errors import InputError
from lanam.explain import require_coverage
from lanam.families import AUTO, SURVIVAL, Encoding
from lanam.families.base import NewRows
from lanam.inputs import read_weights
from lanam.metrics import influence
from lanam.metrics.adequacy import Adequacy, Missed
from lanam.metrics.checks import read_count

#: The largest sets of columns that are searched.
_MOST_TOGETHER = 3
#: Trees of a set of columns, of which there are many, replace those of all only if they gain this many
#: standard errors.
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Plan:
    """The arguments of ``adequacy``."""

    n_splits: int = 5
    coverage: float = 0.95
    max_columns: int = 5
    max_rows: int = 20_000
    held_out: bool | None = None
    random_state: Any = 0

    def __post_init__(self) -> None:
        read_count("n_splits", self.n_splits, least=2)
        read_count("max_columns", self.max_columns, least=0)
        read_count("max_rows", self.max_rows, least=20)
        require_coverage(self.coverage)

    def generator(self) -> np.random.Generator:
        """The random numbers of the plan."""
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def folds(self, y: IntArray, rng: np.random.Generator) -> IntArray:
        """The fold of every unit; each has about as many of every range of ``y``."""
        if len(y) < 2 * self.n_splits:
            raise InputError(
                "{given} folds need at least twice as many rows, and there are {n_rows}",
                "pass more rows, or fewer folds",
                argument="n_splits",
                value=self.n_splits,
                n_rows=len(y),
            )
        order = np.lexsort((rng.random(len(y)), y))
        n_blocks = -(-len(y) // self.n_splits)
        dealt = np.concatenate([rng.permutation(self.n_splits) for _ in range(n_blocks)])
        fold = np.empty(len(y), dtype=np.intp)
        fold[order] = dealt[: len(y)]
        return fold

    def refits(self, model: Any, columns: Array) -> bool:
        """Whether the model must be refitted, because it may have seen the rows."""
        held_out = self.held_out
        if held_out is None:
            found = model.provenance_
            held_out = found is not None and found.part_of(columns) == "held out"
        if not held_out and model.edits_:
            raise InputError(
                "this model was edited by hand, and a model that is refitted without some rows is not",
                "pass rows that the fit has not seen, with {held_out=True}",
                argument="held_out",
            )
        return not held_out


def adequacy(model: Any, X: Any, y: Any, plan: Plan, given: Mapping[str, Any]) -> Adequacy:
    """The adequacy of a regressor or a classifier; ``given`` are weights, exposures, trials and offsets."""
    columns = model._columns(X)
    n_rows = len(columns)
    weight = read_weights(given.get("sample_weight"), n_rows)
    target = model._read_target(model.family_, y, n_rows)
    size, offset = model._read_given(n_rows, **{k: given[k] for k in given if k != "sample_weight"})
    rng = plan.generator()
    chosen = _sampled(weight, plan.max_rows, rng)
    values = {name: np.broadcast_to(value, n_rows)[chosen] for name, value in given.items()}
    if "sample_weight" in values:
        values["sample_weight"] = weight[chosen]
    refits = plan.refits(model, columns[weight > 0.0])
    X, target, weight, columns = (
        take_rows(X, chosen),
        target[chosen],
        weight[chosen],
        columns[chosen],
    )
    size, offset = size[chosen], None if offset is None else offset[chosen]
    number = np.unique(target, return_inverse=True)[1]
    fold = plan.folds(number, rng)
    refit = partial(_refitted, model, X, target, values) if refits else None

    encoding = Encoding(model.family_, np.asarray(getattr(model, "classes_", [])))
    response, heft = model.family_.respond(encoding, target, weight, size)
    precision = model.family_.precision(size)
    known = model.family_.known_link(size, offset)
    likelihood = model.family_.likelihood_of(model._model)
    unit = np.arange(len(response))
    links = _held_out_links(
        model, refit, fold, unit, lambda one, some: _link(one, X, some, likelihood)
    )
    rows = LeftOver(
        *_encoded(columns, model._schema),
        response,
        links if known is None else links + known,
        links,
        heft / weight * (1.0 if precision is None else precision),
        weight,
        unit,
        likelihood,
    )
    rows = _with_constant(rows, fold, known)
    with boosting_threads(len(rows.y)):
        return _assess(model, rows, fold, plan, refit is not None)


def _link(model: Any, X: Any, chosen: IntArray, likelihood: Likelihood) -> Array:
    """Predictions of some rows in the likelihood's outputs, without what is known of them."""
    columns = _quietly(model._columns, take_rows(X, chosen))
    mean = NewRows(columns, np.ones(len(columns))).mean(model._model)
    return mean if likelihood.contrasts is None else np.asarray(mean @ likelihood.contrasts)


def _refitted(model: Any, X: Any, y: Any, values: Mapping[str, Array], chosen: IntArray) -> Any:
    """The model, fitted to some rows."""
    again = clone(model)
    if getattr(again, "likelihood", None) == AUTO and hasattr(model, "family_scores_"):
        again.set_params(likelihood=model.family_.name)
    some = {name: value[chosen] for name, value in values.items()}
    again = _quietly(again.fit, take_rows(X, chosen), y[chosen], **some)
    if not np.array_equal(getattr(again, "classes_", ()), getattr(model, "classes_", ())):
        raise InputError(
            "without a fold, y does not have all classes of the model",
            "pass more rows of the rarest class, fewer folds, or held-out rows with {held_out=True}",
            argument="n_splits",
        )
    return again


def survival_adequacy(
    model: Any, X: Any, subjects: EncodedRows, plan: Plan, given: Mapping[str, Any]
) -> Adequacy:
    """The adequacy of a survival model of one cause, by the rows of subjects in their intervals.

    ``subjects`` have entry and time as their last columns; ``given`` are the arguments of ``fit``.
    """
    rng = plan.generator()
    chosen = _sampled(subjects.weight, plan.max_rows, rng)
    X, table = take_rows(X, chosen), subjects.columns[chosen]
    codes, weight = subjects.response[chosen], subjects.weight[chosen]
    given = {name: np.asarray(value)[chosen] for name, value in given.items()}
    timeline, cause = model._timeline, int(model.causes_[0])
    fold = plan.folds((codes == cause).astype(np.intp), rng)
    refit = None
    if plan.refits(model, table[:, :-N_TIMES]):
        refit = partial(_refitted_survival, model, X, given, cause)

    rows = timeline.rows_of_all(EncodedRows(table, codes, np.ones(len(codes))), cause)
    unit, times = rows.repeats.owner, rows.times

    def link(one: Any, some: IntArray) -> Array:
        columns = _quietly(one._columns, take_rows(X, unit[some]))
        return _log_hazard(one, columns, times[some], timeline)

    columns = _encoded(np.column_stack([rows.columns[unit], times]), model._schema)
    links = _held_out_links(model, refit, fold, unit, link)
    likelihood = model.family_.likelihood_of(model._model)
    left = LeftOver(*columns, rows.response, links, links, rows.weight, weight, unit, likelihood)
    left = _with_constant(left, fold, None)
    with boosting_threads(len(left.y)):
        return _assess(model, left, fold, plan, refit is not None)


def _log_hazard(model: Any, columns: Array, times: Array, timeline: Timeline) -> Array:
    """The log hazard of rows at times, per unit of a timeline."""
    middles = model._timeline.middles[model._timeline.interval_of(times)]
    mean = scoring.link_mean(model._model, np.column_stack([columns, middles]))
    return np.asarray(mean + np.log(timeline.unit))


def _refitted_survival(
    model: Any, X: Any, given: Mapping[str, Array], cause: int, chosen: IntArray
) -> Any:
    """The model of a cause, fitted to some subjects."""
    some = {name: value[chosen] for name, value in given.items()}
    return _quietly(clone(model).fit, take_rows(X, chosen), **some).for_cause(cause)


def _sampled(weight: Array, most: int, rng: np.random.Generator) -> IntArray:
    """Rows of positive weight, at most as many."""
    chosen = np.flatnonzero(weight > 0.0)
    return chosen if len(chosen) <= most else np.sort(rng.choice(chosen, most, replace=False))


def _encoded(columns: Array, schema: Schema) -> tuple[Array, NDArray[np.bool_]]:
    """Columns for trees, and which of them have categories."""
    categorical = np.array([column.kind == CATEGORICAL for column in schema.columns])
    return encode_for_trees(columns, categorical), categorical


def take_rows(X: Any, rows: IntArray) -> Any:
    """Some rows of a table in memory, as a table of the same library."""
    frame: Any = as_frame(X)
    if frame is not None:
        return frame[rows].to_native()
    return [X[k] for k in rows] if isinstance(X, list | tuple) else np.asanyarray(X)[rows]


def _quietly(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """A result without warnings: those of a part of the rows are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **named)


def _held_out_links(
    model: Any,
    refit: Callable[[IntArray], Any] | None,
    fold: IntArray,
    unit: IntArray,
    link: Callable[[Any, IntArray], Array],
) -> Array:
    """Every row's prediction by a model that has not seen its unit, of which ``fold`` is the fold.

    ``refit`` fits the model to some units; None if it has seen none of them.
    """
    if refit is None:
        return link(model, np.arange(len(unit)))
    parts = []
    for number in range(int(fold.max()) + 1):
        test = np.flatnonzero(fold[unit] == number)
        parts.append((test, link(refit(np.flatnonzero(fold != number)), test)))
    result = np.empty((len(unit), *parts[0][1].shape[1:]))
    for test, values in parts:
        result[test] = values
    return result


def _splits(fold: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Training and test rows of each fold."""
    for number in range(int(fold.max()) + 1):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _with_constant(rows: LeftOver, fold: IntArray, known: Array | None) -> LeftOver:
    """The rows, with the prediction of the best constant of other folds."""
    constant = np.zeros_like(rows.link)
    y = rows.y
    if known is not None and rows.likelihood.standardised:  # in the unit of y, exactly
        y = y - known
    for train, test in _splits(fold[rows.unit]):
        offset = None if known is None or y is not rows.y else known[train]
        some = Rows((), (), y[train], rows.row_weight[train], offset=offset)
        constant[test] = fit_intercept_only(some, rows.likelihood)
    return replace(rows, constant=constant if known is None else constant + known)


def _assess(model: Any, rows: LeftOver, fold: IntArray, plan: Plan, refitted: bool) -> Adequacy:
    """The adequacy of a model by its predictions of held-out rows; ``fold`` is that of units."""
    family, names = model.family_, model._schema.names
    measure = "squared error" if rows.likelihood.quadratic else "deviance"
    if family.link.classes or family is SURVIVAL:
        measure = "log loss (nats)"
    unit = 0.5 if measure == "log loss (nats)" else 1.0
    before, constant = (unit * rows.losses(link) for link in (rows.link, rows.constant))
    splits = list(_splits(fold[rows.unit]))

    def boosted(features: tuple[int, ...] = ()) -> list[Boosted]:
        return [boost(rows, train, k, features) for k, (train, _) in enumerate(splits)]

    def gain(trees: Sequence[Boosted]) -> Array:
        link = rows.link.copy()
        for each, (_, test) in zip(trees, splits, strict=True):
            link[test] += each.predict(rows.columns[test])
        return np.asarray(before - unit * rows.losses(link))

    whole = boosted()
    sets = {some: boosted(some) for some in _sets(_importance(rows, whole, splits), plan)}
    # Few columns may be learned better than all: in each fold the trees that validate best.
    best = [_best(*of_fold) for of_fold in zip(whole, *sets.values(), strict=True)]
    gained = gain(best)
    explainable = influence.mean_of(constant - before + gained, rows.weight)
    z = float(ndtri(0.5 + 0.5 * plan.coverage))

    def missed(columns: tuple[int, ...], gain: Array) -> Missed:
        mean = float(np.average(gain, weights=rows.weight))
        if explainable.value <= 0.0:
            # Nothing predicts better than a constant: a share of nothing may be any.
            return Missed(tuple(names[k] for k in columns), mean, 0.0, 0.0, 1.0)
        share = influence.ratio(influence.mean_of(gain, rows.weight), explainable)
        half, value = z * share.std_error(rows.weight), share.value
        # Trees may predict worse, but what is missed is not negative.
        ends = value - half, max(value + half, 0.0)
        return Missed(tuple(names[k] for k in columns), mean, value, *ends)

    total = missed((), gained)
    gains = {some: gain(trees) for some, trees in sets.items()} if total.clear else {}
    together = [missed(some, own) for some, own in _beyond_smaller(gains, rows.weight).items()]
    together.sort(key=lambda each: -each.share)
    losses = before, before - gained, constant
    loss, black_box, alone = (float(np.average(each, weights=rows.weight)) for each in losses)
    return Adequacy(
        measure=measure,
        loss=loss,
        black_box_loss=black_box,
        constant_loss=alone,
        missed=total,
        together=tuple(together),
        n_rows=len(rows.weight),
        n_splits=plan.n_splits,
        coverage=plan.coverage,
        refitted=refitted,
        library=library(),
    )


def _best(whole: Boosted, *others: Boosted) -> Boosted:
    """The trees that validate best; of many, only clear ones are candidates."""
    clear = [each for each in others if each.gain > _STANDARD_ERRORS * each.std_error]
    return max((whole, *clear), key=lambda each: each.gain)


def _importance(
    rows: LeftOver, trees: Sequence[Boosted], splits: Sequence[tuple[IntArray, IntArray]]
) -> Array:
    """By how much each column matters to trees: the rise of the loss if its values change rows."""
    rng = np.random.default_rng(0)
    result = np.zeros(rows.columns.shape[1])
    for each, (_, test) in zip(trees, splits, strict=True):
        if not each.rounds:
            continue
        table, weight = rows.columns[test], rows.row_weight[test]

        def score(table: Array, each: Boosted = each, test: IntArray = test) -> Array:
            link = rows.link[test] + each.predict(table)
            return rows.likelihood.log_prob(rows.y[test], link)

        as_it_is = score(table)
        for column in range(len(result)):
            mixed = table.copy()
            mixed[:, column] = rng.permutation(mixed[:, column])
            result[column] += float(weight @ (as_it_is - score(mixed)))
    return result


def _sets(importance: Array, plan: Plan) -> list[tuple[int, ...]]:
    """Sets of the columns that matter most, the smaller first; none if none of many does."""
    if not importance.any() and len(importance) > plan.max_columns:
        return []
    leading = np.sort(np.argsort(-importance, kind="stable")[: plan.max_columns]).tolist()
    sizes = range(1, min(_MOST_TOGETHER, len(leading)) + 1)
    return [some for size in sizes for some in combinations(leading, size)]


def _beyond_smaller(
    gains: Mapping[tuple[int, ...], Array], weight: Array
) -> dict[tuple[int, ...], Array]:
    """What each set of columns gains beyond all smaller ones (Moebius' inversion).

    Of independent columns and squared errors these are the terms of the functional ANOVA. A set that gains
    less than a part of it is credited with the part, because trees could leave the others alone.
    """
    closed: dict[tuple[int, ...], Array] = {}
    result: dict[tuple[int, ...], Array] = {}
    for some, gain in gains.items():
        parts = [part for k in range(1, len(some)) for part in combinations(some, k)]
        candidates = [np.zeros_like(gain), gain, *(closed[part] for part in parts)]
        closed[some] = max(candidates, key=lambda each: float(weight @ each))
        result[some] = closed[some] - sum(result[part] for part in parts)
    return result
