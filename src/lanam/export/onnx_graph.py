"""A model as an ONNX graph, for runtimes in any language.

Every axis has weights of its entries for a row: hat functions between knots, which are differences of
clipped ramps, or one-hot. Means and coordinates of a term are these weights times its tables. All numbers
are doubles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.data import CATEGORICAL, Column, Schema
from lanam.explain.portable import PortableModel, TableAxis
from lanam.explain.values import plain
from lanam.export.complete import CompleteModel, CompleteTerm, complete, hook_of, model_names
from lanam.version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

#: Old enough for all recent runtimes.
_OPSET, _ML_OPSET, _IR_VERSION = 15, 2, 8

#: Exponents are clipped to this, where exponentials are finite.
_LARGEST_LOG = 700.0

#: An input of a node: a result by name, or a constant.
Operand: TypeAlias = str | float | Sequence[int] | NDArray[np.float64 | np.signedinteger]


def require_onnx() -> ModuleType:
    """The package onnx, if it is installed."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "export to='onnx' needs the package onnx: install it with `pip install onnx`, or "
            "lanam with the extra `onnx`"
        ) from error
    return onnx


def onnx_model(
    portable: PortableModel,
    schema: Schema,
    *,
    columns: Mapping[str, str] | None = None,
    missing: str = "",
    variance: bool = True,
    edits: Sequence[Mapping[str, object]] = (),
) -> ModelProto:
    """The model as an ``onnx.ModelProto``.

    Parameters
    ----------
    portable, schema
        The tables of a model, and the schema of its columns.
    columns
        Names of inputs, where they differ from the columns'.
    missing
        The string for a missing value, since strings have no NaN.
    variance
        Whether to compute the variance, and with it predictions on the response scale.
    edits
        Records of the edits, written as JSON into the metadata.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.explain.portable import explain_portable
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> portable = explain_portable(model._model, model._schema)
    >>> [result.name for result in onnx_model(portable, model._schema).graph.output]
    ['link_mean', 'link_variance', 'prediction', 'observation_variance']
    """
    onnx = require_onnx()
    model = complete(portable)
    names = model_names(schema, model.features, columns)
    results = _results(model, variance)
    _require_names(names, [name for name, _ in results])
    _require_token(missing, [schema.columns[feature] for feature in names])
    graph = _Graph(onnx, names, schema, missing)
    _compute(graph, model, variance)
    made = onnx.helper.make_graph(
        graph.nodes,
        "lanam",
        [graph.declared(feature) for feature in names],
        [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, shape)
            for name, shape in results
        ],
        initializer=graph.constants,
        doc_string=f"An additive model; link {portable.link}.",
    )
    opsets = [
        onnx.helper.make_opsetid("", _OPSET),
        onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
    ]
    result: ModelProto = onnx.helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=_IR_VERSION,
        producer_name="lanam",
        producer_version=__version__,
    )
    labels = [str(label) for label in portable.labels or ()]
    facts = {
        "link": portable.link,
        "missing_text": missing,
        "edits": json.dumps(plain(tuple(edits))),
    }
    facts |= {f"class_{number}": label for number, label in enumerate(labels)}
    onnx.helper.set_model_props(result, facts)
    onnx.checker.check_model(result)
    return result


def _results(model: CompleteModel, variance: bool) -> list[tuple[str, list[str | int]]]:
    several: list[str | int] = ["rows", model.n_classes] if model.n_classes > 1 else ["rows"]
    if not variance:
        return [("link_mean", several)]
    results = [("link_mean", several), ("link_variance", several)]
    if not model.portable.family.link.classes:
        return [*results, ("prediction", ["rows"]), ("observation_variance", ["rows"])]
    return [*results, ("probability", ["rows", len(model.portable.labels or ())])]


def _require_names(names: Mapping[int, str], results: Sequence[str]) -> None:
    seen = set(results)
    for name in names.values():
        if not name or name in seen:
            what = "is the name of a result" if name in results else "cannot name an input"
            what = "stands for two inputs" if name and name not in results else what
            raise ValueError(
                f"{name!r} {what}: rename it by columns=, such as columns={{{name!r}: 'some_name'}}"
            )
        seen.add(name)


def _require_token(missing: str, columns: Sequence[Column]) -> None:
    for column in columns:
        if missing in column.levels:
            raise ValueError(
                f"missing={missing!r} is a category of column {column.name!r}: pass another string for "
                "missing values, such as missing='(missing)'"
            )


class _Graph:
    """Nodes and constants of a graph, in order."""

    def __init__(
        self, onnx: ModuleType, names: Mapping[int, str], schema: Schema, missing: str
    ) -> None:
        self.onnx, self.names, self.schema, self.missing = onnx, names, schema, missing
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._prefix = "lanam/"
        while any(name.startswith(self._prefix) for name in names.values()):
            self._prefix += "/"

    def declared(self, feature: int) -> ValueInfoProto:
        """The input of a column."""
        kinds = self.onnx.TensorProto
        kind = kinds.STRING if self.is_text(feature) else kinds.DOUBLE
        info: ValueInfoProto = self.onnx.helper.make_tensor_value_info(
            self.names[feature], kind, ["rows"]
        )
        return info

    def is_text(self, feature: int) -> bool:
        column = self.schema.columns[feature]
        return column.kind == CATEGORICAL and column.holds == "string"

    def __call__(
        self, operator: str, *inputs: Operand, result: str | None = None, **options: object
    ) -> str:
        """Add a node, whose inputs are results or constants, and return the name of its result."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        result = result or f"{self._prefix}{len(self.nodes)}"
        # Named, because onnxruntime up to 1.21 fuses nodes without names into ones of the same name.
        node = self.onnx.helper.make_node(operator, names, [result], name=result, **options)
        self.nodes.append(node)
        return result

    def constant(self, values: ArrayLike) -> str:
        """Add a constant of doubles or integers."""
        array = np.asarray(values)
        array = array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)
        name = f"{self._prefix}constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def sum_of(self, parts: Sequence[str]) -> str:
        return parts[0] if len(parts) == 1 else self("Sum", *parts)

    def as_double(self, values: str) -> str:
        return self("Cast", values, to=self.onnx.TensorProto.DOUBLE)

    def as_whole(self, values: str) -> str:
        return self("Cast", values, to=self.onnx.TensorProto.INT64)

    def column(self, feature: int) -> str:
        """A column's numbers (n, 1)."""
        return self("Unsqueeze", self.names[feature], [1])

    def is_missing(self, feature: int) -> str:
        """Which of a column's values are missing (n, 1)."""
        if self.is_text(feature):
            # Only the encoder compares strings.
            encoded = self.encoded(self.names[feature], [self.missing], [1], 0)
            flags = self("Cast", encoded, to=self.onnx.TensorProto.BOOL)
            return self("Unsqueeze", flags, [1])
        return self("IsNaN", self.column(feature))

    def encoded(self, texts: str, keys: Sequence[str], values: Sequence[int], other: int) -> str:
        return self(
            "LabelEncoder",
            texts,
            domain="ai.onnx.ml",
            keys_strings=list(keys),
            values_int64s=list(values),
            default_int64=other,
        )

    def row_sums(self, values: str) -> str:
        """The sum of each row (n, 1)."""
        return self("ReduceSum", values, [1], keepdims=1)

    def count(self, conditions: str) -> str:
        """The number of conditions that hold in each row (n, 1)."""
        return self.row_sums(self.as_whole(conditions))


def _compute(graph: _Graph, model: CompleteModel, variance: bool) -> None:
    reads = [_read(graph, term, model, variance) for term in model.terms]
    n_classes = model.n_classes
    # Zeros of the right length, for models without terms.
    means = [_part(graph, read, 0, n_classes) for read in reads]
    mean = graph(
        "Add", graph.sum_of([*means, _zeros(graph, n_classes)]), graph.constant(model.intercept)
    )
    if not variance:
        _name_result(graph, mean, "link_mean", n_classes)
        return
    covariance = _covariance(graph, model, reads)
    eye = np.flatnonzero(np.eye(n_classes).ravel())
    variances = graph("Gather", covariance, eye, axis=1)
    _name_result(graph, mean, "link_mean", n_classes)
    _name_result(graph, variances, "link_variance", n_classes)
    hook_of(_RESPONSES, model.portable)(graph, model, mean, variances, covariance)


def _zeros(graph: _Graph, width: int) -> str:
    """Zeros for every row."""
    first = next(iter(graph.names))
    length = graph("Shape", graph.names[first])
    shape = graph("Concat", length, [width], axis=0)
    return graph("Expand", np.zeros((1, 1)), shape)


def _name_result(graph: _Graph, values: str, name: str, width: int) -> None:
    """Name a result; a single column becomes a vector."""
    if width == 1:
        graph("Squeeze", values, [1], result=name)
    else:
        graph("Identity", values, result=name)


def _part(graph: _Graph, values: str, start: int, end: int) -> str:
    return graph("Slice", values, [start], [end], [1])


def _read(graph: _Graph, term: CompleteTerm, model: CompleteModel, variance: bool) -> str:
    """Interpolated tables of a term: means, own covariances, coordinates (n, ...)."""
    tables = [term.mean]
    if variance:
        size = model.n_classes**2
        own = (
            np.zeros((len(term.mean), size))
            if term.own_covariance is None
            else term.own_covariance.reshape(-1, size)
        )
        tables += [own, term.rows]
    table = graph.constant(np.concatenate(tables, axis=1))
    columns = [graph.schema.columns[feature] for feature in term.features]
    axes = list(zip(term.axes, columns, term.features, strict=True))
    if len(axes) == 1 and term.axes[0].kind != "knots":
        entries = _entries(graph, *axes[0])
        return graph("Gather", table, graph("Squeeze", entries, [1]))
    weights, *others = [_weights(graph, *each) for each in axes]
    size = term.axes[0].n_entries
    for axis, each in zip(term.axes[1:], others, strict=True):
        size *= axis.n_entries
        down = graph("Unsqueeze", weights, [2])
        along = graph("Unsqueeze", each, [1])
        weights = graph("Reshape", graph("Mul", down, along), [-1, size])
    return graph("MatMul", weights, table)


def _weights(graph: _Graph, axis: TableAxis, column: Column, feature: int) -> str:
    """The weight of every entry of an axis (n, n_entries)."""
    if axis.kind != "knots":
        entries = _entries(graph, axis, column, feature)
        numbers = graph.constant(np.arange(axis.n_entries)[None])
        return graph.as_double(graph("Equal", entries, numbers))
    absent_flag = graph.is_missing(feature)
    points = np.asarray(axis.points, dtype=np.float64)
    value = graph("Where", absent_flag, points[:1], graph.column(feature))
    if axis.period is not None:
        periods = graph("Floor", graph("Div", graph("Sub", value, points[:1]), axis.period))
        moved = graph("Sub", value, graph("Mul", periods, axis.period))
        # The end of the period is a knot.
        value = graph("Where", graph("Equal", value, points[-1:]), value, moved)
    way = graph("Sub", value, points[None, :-1])
    steps = graph("Div", way, np.diff(points)[None])
    ramps = graph("Clip", steps, 0.0, 1.0)
    present = graph.as_double(graph("Not", absent_flag))
    absent = graph.as_double(absent_flag)
    none = graph("Mul", absent, 0.0)
    one = graph("Add", none, 1.0)
    hats = graph("Sub", graph("Concat", one, ramps, axis=1), graph("Concat", ramps, none, axis=1))
    return graph("Concat", graph("Mul", hats, present), absent, axis=1)


def _entries(graph: _Graph, axis: TableAxis, column: Column, feature: int) -> str:
    """The entry of every row (n, 1)."""
    assert axis.missing is not None
    other = -1 if axis.other is None else axis.other  # bins have none, and need none
    if axis.kind == "codes" and graph.is_text(feature):
        keys = [graph.missing, *map(str, column.levels)]
        entries = [axis.missing, *axis.points.tolist()]
        entry = graph.encoded(graph.names[feature], keys, entries, other)
        return graph("Unsqueeze", entry, [1])
    value, points = graph.column(feature), axis.points.astype(np.float64)
    if axis.kind == "bins":
        below = graph("Less", value, points[None])
        entry = graph.count(graph("Not", below))
    elif axis.kind == "levels":
        middles = 0.5 * (points[1:] + points[:-1])
        middles = np.where(
            middles < points[1:], middles, points[:-1]
        )  # rounded, of adjacent floats
        nearest = graph.count(graph("Less", middles[None], value))
        distance = graph("Abs", graph("Sub", value, graph("Gather", points, nearest)))
        slack = graph("Gather", 1e-6 * np.abs(points), nearest)
        entry = graph("Where", graph("Greater", distance, slack), other, nearest)
    else:
        # Sums to the entry of the level, or to that of unseen ones.
        levels = np.array([float(level) for level in column.levels])
        if len(np.unique(levels)) < len(levels):
            raise ValueError(
                f"column {column.name!r} has categories that are the same number in double precision: "
                "convert them to strings before fitting"
            )
        same = graph.as_whole(graph("Equal", value, levels[None]))
        beyond = graph("Mul", same, (points[None] - other).astype(np.int64))
        entry = graph("Add", graph.row_sums(beyond), other)
    return graph("Where", graph.is_missing(feature), axis.missing, entry)


def _covariance(graph: _Graph, model: CompleteModel, reads: Sequence[str]) -> str:
    """Covariances of the classes (n, C * C)."""
    n_classes, n_own = model.n_classes, model.n_classes**2
    widths = [term.rows.shape[1] for term in model.terms]
    start = n_classes + n_own
    parts = [
        _part(graph, read, start, start + width)
        for read, width in zip(reads, widths, strict=True)
        if width
    ]
    one = graph("Add", _zeros(graph, 1), 1.0)
    row = graph("Concat", *parts, one, axis=1)
    vectors = [graph("MatMul", row, model.factor_of(k)) for k in range(model.n_outputs)]
    products = [
        graph.row_sums(graph("Mul", first, second)) for first in vectors for second in vectors
    ]
    outputs = products[0] if len(products) == 1 else graph("Concat", *products, axis=1)
    contrasts = np.kron(model.contrasts, model.contrasts).astype(np.float64)
    shared = graph("MatMul", outputs, contrasts.T)
    own = [_part(graph, read, n_classes, n_classes + n_own) for read in reads]
    return graph.sum_of([shared, *own])


# Predictions on the response scale from means, variances and covariances, by family.


def _number_response(
    graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str
) -> None:
    _name_result(graph, mean, "prediction", 1)
    _name_result(graph, graph("Add", variances, _noise(graph, model)), "observation_variance", 1)


def _lognormal_response(
    graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str
) -> None:
    """Moments of the exponential of a mixture: each component's are ``exp(k m + k^2 v / 2)``."""
    noise = _noise(graph, model)
    root = graph("Sqrt", noise)

    def moment(order: float) -> str:
        parts = []
        for weight, centre, std in model.portable.noise_components:
            at = graph("Add", mean, graph("Mul", root, centre))
            spread = graph("Add", variances, graph("Mul", noise, std**2))
            both = graph("Add", graph("Mul", at, order), graph("Mul", spread, 0.5 * order**2))
            parts.append(graph("Mul", _exponential(graph, both), weight))
        return graph.sum_of(parts)

    first = moment(1.0)
    _name_result(graph, first, "prediction", 1)
    variance = graph("Sub", moment(2.0), graph("Mul", first, first))
    _name_result(graph, variance, "observation_variance", 1)


def _relative_variance(
    graph: _Graph, model: CompleteModel, mean: str, variances: str
) -> tuple[str, str]:
    """The mean of a log link, and the variance of an amount with the dispersion."""
    first = _exponential(graph, graph("Add", mean, graph("Mul", variances, 0.5)))
    second = graph("Mul", graph("Exp", variances), 1.0 + model.portable.noise_variance)
    square = graph("Mul", first, first)
    return first, graph("Mul", square, graph("Sub", second, graph.constant(1.0)))


def _amount_response(
    graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str
) -> None:
    first, variance = _relative_variance(graph, model, mean, variances)
    _name_result(graph, first, "prediction", 1)
    _name_result(graph, variance, "observation_variance", 1)


def _power_response(graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str) -> None:
    """The variance is a power of the mean, averaged over a normal link; at an exposure of one."""
    power, one = model.portable.parameters["power"], graph.constant(1.0)
    first = _exponential(graph, graph("Add", mean, graph("Mul", variances, 0.5)))
    link = graph("Add", graph("Mul", mean, power), graph("Mul", variances, 0.5 * power**2))
    own = graph("Mul", _exponential(graph, link), model.portable.noise_variance)
    spread = graph("Sub", graph("Exp", variances), one)
    square = graph("Mul", graph("Mul", first, first), spread)
    _name_result(graph, first, "prediction", 1)
    _name_result(graph, graph("Add", own, square), "observation_variance", 1)


def _clustered_response(
    graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str
) -> None:
    first, variance = _relative_variance(graph, model, mean, variances)
    _name_result(graph, first, "prediction", 1)
    _name_result(graph, graph("Add", first, variance), "observation_variance", 1)


def _count_response(graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str) -> None:
    half = graph("Mul", variances, 0.5)
    rate = _exponential(graph, graph("Add", mean, half))
    _name_result(graph, rate, "prediction", 1)
    # The variance of a rate, and of a count given its rate (poisson_lognormal.dispersed).
    one = graph.constant(1.0)
    excess = graph("Div", model.portable.noise_variance - 1.0, rate)
    second = graph("Mul", graph("Exp", variances), graph("Add", excess, one))
    square = graph("Mul", graph("Mul", rate, rate), graph("Sub", second, one))
    _name_result(graph, graph("Add", rate, square), "observation_variance", 1)


def _trial_response(graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str) -> None:
    """Of one trial."""
    one = graph.constant(1.0)
    odds = _moderated(graph, mean, variances)
    other = graph("Add", one, _exponential(graph, graph("Neg", odds)))
    probability = graph("Div", one, other)
    _name_result(graph, probability, "prediction", 1)
    rest = graph("Sub", one, probability)
    _name_result(graph, graph("Mul", probability, rest), "observation_variance", 1)


def _hazard_response(graph: _Graph, _: CompleteModel, mean: str, variances: str, __: str) -> None:
    # At the mean of its logarithm, as curves have it; and the variance of a lognormal hazard.
    _name_result(graph, _exponential(graph, mean), "prediction", 1)
    square = _exponential(graph, graph("Add", graph("Mul", mean, 2.0), variances))
    spread = graph("Sub", graph("Exp", variances), graph.constant(1.0))
    _name_result(graph, graph("Mul", square, spread), "observation_variance", 1)


def _two_classes_response(
    graph: _Graph, _: CompleteModel, mean: str, variances: str, __: str
) -> None:
    odds = _moderated(graph, mean, variances)
    log_odds = graph("Concat", graph("Neg", odds), odds, axis=1)
    one = graph.constant(1.0)
    inverse = graph("Add", one, _exponential(graph, graph("Neg", log_odds)))
    graph("Div", one, inverse, result="probability")


def _grades_response(
    graph: _Graph, model: CompleteModel, mean: str, variances: str, _: str
) -> None:
    """Between cut points ``sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))``."""
    cuts = np.array([model.portable.parameters["cut_points"]])
    one = graph.constant(1.0)
    spread = graph("Sqrt", graph("Add", graph("Mul", variances, math.pi / 8.0), one))
    distances = graph("Div", graph("Sub", cuts, mean), spread)
    ones = graph("Add", graph("Mul", mean, 0.0), one)
    below, above = (
        graph("Reciprocal", graph("Add", one, _exponential(graph, each)))
        for each in (graph("Neg", distances), distances)
    )
    both = graph(
        "Mul",
        graph("Concat", below, ones, axis=1),
        graph("Concat", ones, above, axis=1),
    )
    apart = graph("Sub", one, graph("Exp", graph("Div", -np.diff(cuts), spread)))
    graph("Mul", both, graph("Concat", ones, apart, ones, axis=1), result="probability")


def _classes_response(
    graph: _Graph, model: CompleteModel, mean: str, _: str, covariance: str
) -> None:
    size = model.n_classes
    first, second = np.divmod(np.arange(size * size), size)
    # Means and variances of every difference of two classes.
    difference = np.zeros((size, size * size))
    difference[second, np.arange(size * size)] += 1.0
    difference[first, np.arange(size * size)] -= 1.0
    spread = np.zeros((size * size, size * size))
    for pair, (c, d) in enumerate(zip(first, second, strict=True)):
        for at, weight in ((c * size + c, 1.0), (d * size + d, 1.0), (c * size + d, -2.0)):
            spread[at, pair] += weight
    means = graph("MatMul", mean, difference)
    odds = _moderated(graph, means, graph("MatMul", covariance, spread))
    summed = np.zeros((size * size, size))
    summed[np.arange(size * size), first] = 1.0
    total = graph("MatMul", _exponential(graph, odds), summed)
    share = graph("Reciprocal", total)
    graph("Div", share, graph.row_sums(share), result="probability")


_RESPONSES = {
    "gaussian": _number_response,
    "student": _number_response,
    "lognormal": _lognormal_response,
    "gamma": _amount_response,
    "tweedie": _power_response,
    "negative_binomial": _clustered_response,
    "binomial": _trial_response,
    "poisson": _count_response,
    "bernoulli": _two_classes_response,
    "softmax": _classes_response,
    "ordinal": _grades_response,
    "survival": _hazard_response,
}


def _moderated(graph: _Graph, mean: str, variance: str) -> str:
    """Log-odds averaged over the posterior, by MacKay's approximation."""
    scaled = graph("Mul", variance, math.pi / 8.0)
    return graph("Div", mean, graph("Sqrt", graph("Add", scaled, 1.0)))


def _exponential(graph: _Graph, values: str) -> str:
    return graph("Exp", graph("Clip", values, -_LARGEST_LOG, _LARGEST_LOG))


def _noise(graph: _Graph, model: CompleteModel) -> str:
    """The noise variance of every row, with that of missing values and of heteroscedastic noise."""
    portable = model.portable
    variance = graph.constant(portable.noise_variance)
    if model.noise_terms:
        logs = [_read(graph, term, model, variance=False) for term in model.noise_terms]
        factor = graph("Exp", graph.sum_of([graph.constant(portable.log_noise), *logs]))
        variance = graph("Mul", variance, factor)
    parts = [variance]
    for feature in np.flatnonzero(portable.missing_variance).tolist():
        variance = graph.constant(portable.missing_variance[feature])
        parts.append(graph("Mul", graph.as_double(graph.is_missing(feature)), variance))
    return graph.sum_of(parts)
