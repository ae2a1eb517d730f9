"""`FittedModel` as plain values and arrays, and back with every reference checked."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import asdict, replace
from math import comb
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.fitted import (
    ACTIVE,
    CONSTANT,
    COORDINATE,
    DUPLICATE,
    EMPTY,
    UNSUPPORTED,
    FittedModel,
    FittedTerm,
    ScoredInteraction,
)
from lanam.core.model.mixtures import NoiseShape
from lanam.core.terms.knots import (
    COURSES,
    SMOOTH,
    Axis,
    Categories,
    Entries,
    Grid,
    Knots,
    Levels,
)
from lanam.core.terms.networks import ACTIVATIONS, Architecture
from lanam.families import FAMILIES, GAUSSIAN, NOISE, find_family
from lanam.storage.constraints import read_constrained, write_constrained
from lanam.storage.errors import require
from lanam.storage.fields import LARGEST, Arrays, Fields, each, put_matrix
from lanam.storage.values import decode, decode_all, encode

Content = dict[str, Any]
Put = dict[str, np.ndarray]

#: Statuses of terms in files, which have the words of the first version.
_STATUSES = {
    "active": ACTIVE,
    "switched off: evidence": UNSUPPORTED,
    "switched off: constant column": CONSTANT,
    "switched off: no values": EMPTY,
    "switched off: same values as another column": DUPLICATE,
    "a coordinate of a surface": COORDINATE,
}
_FILE_STATUSES = {status: words for words, status in _STATUSES.items()}
#: The status of a pair that was tried, in older files.
_WORTH = re.compile(r"switched off: evidence \(worth (\S+) nats\)")

#: Arrays of the scored interactions have the word of their number of columns.
_ORDERS = {"pair": 2, "triple": 3}

#: The entries of a term, by its kind.
_ENTRIES = {"smooth": Knots, "categorical": Categories, "level": Levels}
_ENTRIES |= {"pair": Grid, "interaction": Grid, "spatial": Grid}

#: Of the components of a residual distribution: the smallest weight or width, and the largest number.
_LEAST_PART = 1e-9
_MOST_PARTS = 1000
#: The least degrees of freedom of the noise.
_LEAST_DF = 1.0
#: Prefix of the arrays of the noise model.
_NOISE = "noise "

#: Keys of a model, and of a term: first those of single values, and of figures that nothing depends on.
_SINGLE = ("likelihood", "noise_variance", "log_evidence", "stop_reason")
_MODEL = (*_SINGLE, "intercept", "history", "pair_statuses", "terms", "noise", "noise_shape")
#: Keys that files may lack: of models whose noise counts as known or whose likelihood has no parameters,
#: without constraints, and of older versions.
_OPTIONAL = ("noise_df", "parameters", "constrained")
_FIGURES = ("importance", "effective_parameters", "evidence")
#: Types of the figures in the history that are read again, and those that must be finite. A constant target
#: has no deviance to explain.
_FINITE = ("parameters_per_row", "cooks_distance", "deviance_explained", "better_by")
_RECORD = {
    "log_evidence": (int, float),
    **dict.fromkeys(_FINITE, (int, float)),
    "deviance_explained": (int, float, type(None)),
    "influential_row": (int, type(None)),
    "separated": (bool,),
    "better_family": (str,),
}
_LARGEST_FLOAT = sys.float_info.max
_TERM = (*_FIGURES, "kind", "features", "status", "architecture", "entries")


def write_model(model: FittedModel, arrays: Put) -> Content:
    """A model as plain values; its arrays are added to ``arrays``."""
    statuses = sorted({pair.status for pair in model.scored})
    for word, order in _ORDERS.items():
        scored = [one for one in model.scored if len(one.features) == order]
        if scored or order == 2:
            features = np.array([one.features for one in scored], np.int32)
            arrays[f"{word} features"] = features.reshape(-1, order)
            arrays[f"{word} score"] = np.array([one.score for one in scored], np.float64)
            places = [statuses.index(one.status) for one in scored]
            arrays[f"{word} status"] = np.array(places, np.int16)
    put_matrix(arrays, "root", model.cov_cholesky, triangle=True)
    optional = {"contrasts": model.contrasts, "gap_variance": model.missing_variance}
    arrays.update({name: array for name, array in optional.items() if array is not None})
    return {
        **{key: encode(getattr(model, key)) for key in _SINGLE},
        "intercept": np.atleast_1d(model.intercept).tolist(),
        "history": [
            {key: encode(value) for key, value in record.items()} for record in model.history
        ],
        "pair_statuses": statuses,
        "terms": [_write_term(term, f"term {k}", arrays) for k, term in enumerate(model.terms)],
        "noise": None if model.noise is None else _write_noise(model.noise, arrays),
        "noise_shape": None if model.shape is None else model.shape.as_lists(),
        **({"noise_df": model.noise_df} if math.isfinite(model.noise_df) else {}),
        **({"parameters": list(model.parameters)} if model.parameters else {}),
        **write_constrained(model, arrays, _write_entries),
    }


def _write_noise(noise: FittedModel, arrays: Put) -> Content:
    inner: Put = {}
    content = write_model(noise, inner)
    arrays.update({f"{_NOISE}{name}": array for name, array in inner.items()})
    return content


def _write_term(term: FittedTerm, name: str, arrays: Put) -> Content:
    arrays[f"{name} share"] = term.data_mass
    for array in ("mean", "precision", "expansion"):
        arrays[f"{name} {array}"] = getattr(term, array)
    put_matrix(arrays, f"{name} table", term.table)
    if term.coupling is not None and term.own_variance is not None:
        put_matrix(arrays, f"{name} coupling", term.coupling)
        arrays[f"{name} own_variance"] = term.own_variance
    if term.dropped_variance is not None:
        arrays[f"{name} dropped_variance"] = term.dropped_variance
    if term.edited is not None:
        arrays[f"{name} edited"] = term.edited.astype(np.uint8)
    return {
        "kind": term.kind,
        "features": list(term.features),
        "status": _FILE_STATUSES[term.status],
        **{key: encode(float(getattr(term, key))) for key in _FIGURES},
        "architecture": None if term.architecture is None else asdict(term.architecture),
        "entries": _write_entries(term.entries, name, arrays),
    }


def _write_entries(entries: Entries | None, name: str, arrays: Put) -> Content | None:
    if entries is None:
        return None
    if isinstance(entries, Grid):
        axes = [
            _write_entries(axis, f"{name} axis {k}", arrays) for k, axis in enumerate(entries.axes)
        ]
        return {"type": "grid", "axes": axes}
    if isinstance(entries, Categories):
        arrays[f"{name} entry_of"] = entries.entry_of.astype(np.int32)
        order = {"ordered": True} if entries.ordered else {}
        return {"type": "categories", "n_own": int(entries.n_own), **order}
    arrays[f"{name} points"] = entries.points
    common = {"scale": float(entries.scale), "missing": bool(entries.missing)}
    if isinstance(entries, Knots):
        arrays[f"{name} inputs"] = entries.inputs
        inside = [int(entries.inside.start), int(entries.inside.stop)]
        course = {} if entries.course == SMOOTH else {"course": entries.course}
        return {"type": "knots", **common, "inside": inside, **course}
    arrays[f"{name} edges"] = entries.edges
    return {"type": "levels", **common, "exact": bool(entries.exact)}


def read_model(content: object, arrays: Arrays, n_levels: tuple[int, ...]) -> FittedModel:
    """The model in a file, given the number of levels of each column (-1: numeric)."""
    fields = Fields(content, "the model", _MODEL, _OPTIONAL)
    likelihood = fields.text("likelihood", tuple(name for name in FAMILIES if name != NOISE.name))
    noise = shape = None
    if fields.values["noise"] is not None:
        require(find_family(likelihood).has_noise, "the noise")
        noise = _read_noise(fields.values["noise"], arrays.within(_NOISE), n_levels)
    if fields.values["noise_shape"] is not None:
        require(find_family(likelihood).has_noise, "the shape of the noise")
        shape = _read_shape(fields.values["noise_shape"])
    noise_df = math.inf
    if "noise_df" in fields.values:
        require(find_family(likelihood).has_noise, "the noise's degrees of freedom")
        noise_df = fields.number("noise_df", _LEAST_DF)
    model = _read_sum(fields, likelihood, arrays, n_levels)
    own = _read_parameters(fields, model)
    model = replace(model, noise=noise, shape=shape, noise_df=noise_df, parameters=own)
    if "constrained" not in fields.values:
        return model
    require(model.contrasts is None, "the constraints of several classes")
    given = fields.values["constrained"], arrays, model, len(n_levels)
    return replace(model, constrained=read_constrained(*given, _read_entries))


def _read_parameters(fields: Fields, model: FittedModel) -> tuple[float, ...]:
    """The likelihood's own parameters, within their bounds."""
    values = fields.numbers("parameters", 0.0) if "parameters" in fields.values else ()
    bounds = find_family(model.likelihood).bounds_of(len(values))
    within = [low <= value <= high for value, (low, high) in zip(values, bounds, strict=False)]
    require(len(values) == len(bounds) and all(within), "the parameters of the likelihood")
    return tuple(values)


def _read_shape(content: object) -> NoiseShape:
    """A Gaussian mixture with mean zero and variance one."""
    fields = Fields(content, "the shape of the noise", ("weights", "means", "stds"))
    weights = np.array(fields.numbers("weights", _LEAST_PART, 1.0))
    means = np.array(fields.numbers("means", largest=LARGEST))
    stds = np.array(fields.numbers("stds", _LEAST_PART, LARGEST))
    alike = 0 < len(weights) == len(means) == len(stds)
    fields.require(alike and len(weights) <= _MOST_PARTS, "weights")
    fields.require(bool(np.isclose(weights.sum(), 1.0)), "weights")
    fields.require(bool(np.isclose(weights @ means, 0.0, atol=1e-6)), "means")
    fields.require(bool(np.isclose(weights @ (means**2 + stds**2), 1.0)), "stds")
    return NoiseShape(weights, means, stds)


def _read_noise(content: object, arrays: Arrays, n_levels: tuple[int, ...]) -> FittedModel:
    """The noise model: terms of single columns, without noise of its own."""
    fields = Fields(content, "the noise", _MODEL)
    fields.require(fields.values["noise"] is None, "noise")
    fields.require(fields.values["noise_shape"] is None, "noise_shape")
    likelihood = fields.text("likelihood", (NOISE.name,))
    model = _read_sum(fields, likelihood, arrays, n_levels)
    kinds = {term.kind for term in model.terms if term.active}
    fields.require(kinds <= {"smooth", "categorical"}, "terms")
    fields.require(not model.scored and model.missing_variance is None, "pairs or missing values")
    arrays.require_none_left()
    return model


def _read_sum(
    fields: Fields, likelihood: str, arrays: Arrays, n_levels: tuple[int, ...]
) -> FittedModel:
    """Intercept, terms and their posterior."""
    intercept = np.array(fields.numbers("intercept", largest=LARGEST))
    n_classes = len(intercept)
    family = find_family(likelihood)
    several = family.link.several
    require(3 <= n_classes <= 1 << 15 if several else n_classes == 1, "how many classes there are")
    contrasts = arrays.take("contrasts", "f8", (n_classes, n_classes - 1)) if several else None
    missing_variance = None
    if "gap_variance" in arrays:
        missing_variance = arrays.take("gap_variance", "f8", (len(n_levels),))
        require(bool((missing_variance >= 0.0).all()), "the variance of missing values")
    uncoupled = [
        _read_term(value, k, arrays, n_levels, n_classes)
        for k, value in each(fields.values["terms"], "the list of terms")
    ]
    n_outputs = n_classes - 1 if several else 1
    n_coordinates = n_outputs * (sum(term.table.shape[1] for term in uncoupled) + 1)
    # Couplings have a column for each coordinate, whose number is known only now.
    terms = tuple(_coupled(term, k, arrays, n_coordinates) for k, term in enumerate(uncoupled))
    require(not several or all(t.coupling is None for t in terms), "a coupling")
    return FittedModel(
        likelihood=likelihood,
        intercept=intercept if several else float(intercept[0]),
        terms=terms,
        cov_cholesky=arrays.take_matrix("root", (n_coordinates, n_coordinates), triangle=True),
        noise_variance=fields.number("noise_variance", family.least_noise),
        log_evidence=fields.number("log_evidence"),
        history=tuple(map(_read_record, fields.items("history"))),
        stop_reason=fields.text("stop_reason"),
        scored=_read_scored(fields, arrays, len(n_levels)),
        contrasts=contrasts,
        missing_variance=missing_variance,
    )


def _read_record(value: object) -> dict[str, Any]:
    """A record of the history, of which the report and the summary read some figures."""
    record = decode_all(value, "the history")
    require("log_evidence" in record, "the history")
    for key, kinds in _RECORD.items():
        if key in record:
            number = record[key]
            require(type(number) in kinds, f"{key!r} of the history")
            require(type(number) is not int or _is_finite(number), f"{key!r} of the history")
    require(all(_is_finite(record.get(key) or 0.0) for key in _FINITE), "the history")
    require(record.get("better_family", GAUSSIAN.name) in FAMILIES, "the better family")
    require(("better_family" in record) == ("better_by" in record), "the better family")
    for key, is_item in _LISTS.items():
        items = record.get(key, [])
        require(type(items) is list and all(map(is_item, items)), f"{key!r} of the history")
    return record


def _is_finite(value: object) -> bool:
    """Whether a value is a finite number; a whole one may be too large for a float."""
    return type(value) in (int, float) and -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT  # type: ignore[operator]


def _is_correlation(value: object) -> bool:
    """Whether a value is a column whose being missing predicts the target, with its correlation."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("column"), str)
        and _is_finite(value.get("correlation"))
    )


#: Lists in the history, by what their items must be.
_LISTS = {
    "close_calls": lambda item: isinstance(item, str),
    "interaction_thresholds": _is_finite,
    "missing_alone": _is_correlation,
}


def _read_scored(fields: Fields, arrays: Arrays, n_columns: int) -> tuple[ScoredInteraction, ...]:
    """The scored interactions, best first; files without triples have none of their arrays."""
    statuses = fields.items("pair_statuses")
    require(all(isinstance(status, str) for status in statuses), "status of an interaction")
    statuses = [_STATUSES.get(status) or _current_words(status) for status in statuses]
    scored = list[ScoredInteraction]()
    for word, order in _ORDERS.items():
        if order > 2 and f"{word} features" not in arrays:
            continue
        features = arrays.take(f"{word} features", "i4", (None, order))
        scores = arrays.take(f"{word} score", "f8", (len(features),))
        places = arrays.take(f"{word} status", "i2", (len(features),))
        require(_within(features, 0, n_columns - 1), f"columns of {word}s")
        require(len(features) <= comb(n_columns, order), f"how many {word}s there are")
        distinct = np.diff(np.sort(features, axis=1), axis=1) > 0
        require(bool(distinct.all()), f"columns of {word}s")
        require(_within(places, 0, len(statuses) - 1), "status of an interaction")
        rows = zip(features.tolist(), scores.tolist(), places.tolist(), strict=True)
        scored += [ScoredInteraction(tuple(one), score, statuses[at]) for one, score, at in rows]
    return tuple(sorted(scored, key=ScoredInteraction.rank))


def _current_words(status: str) -> str:
    return _WORTH.sub(rf"{UNSUPPORTED} (log evidence gain \1)", status)


def _within(values: np.ndarray, least: int, most: int) -> bool:
    return bool(((values >= least) & (values <= most)).all())


def _read_term(
    value: object, k: int, arrays: Arrays, n_levels: tuple[int, ...], n_classes: int
) -> FittedTerm:
    name = f"term {k}"
    fields = Fields(value, name, _TERM)
    kind = fields.text("kind", _ENTRIES)
    status = _STATUSES[fields.text("status", _STATUSES)]
    active = status == ACTIVE
    features = fields.wholes("features", 0, len(n_levels) - 1)
    n_columns = {"pair": 2, "spatial": 2, "interaction": max(len(features), 3)}.get(kind, 1)
    fields.require(len(set(features)) == len(features) == n_columns, "features")
    entries = _read_entries(fields.values["entries"], n_columns, name, arrays)
    fields.require(
        isinstance(entries, _ENTRIES[kind]) or (entries is None and not active), "entries"
    )
    _require_columns(entries, features, n_levels, name)
    n_entries = 0 if entries is None else len(entries)
    # A trained network of several columns also has indicators of categories and missing values.
    n_inputs = entries.n_inputs if isinstance(entries, Grid) else n_columns
    table = f"{name} table"
    width = arrays.shape_of(table if table in arrays else f"{table} digits")[:1]
    require(bool(width) and (active or width == (0,)), f"the table of {name}")
    per_class = (n_entries, n_classes) if n_classes > 1 else (n_entries,)
    shape = per_class if active else (n_entries,)
    share = arrays.take(f"{name} share", "f8", (n_entries,))
    require(bool((share >= 0.0).all()), f"the shares of {name}")
    precision = arrays.take(f"{name} precision", "f8", (None,))
    require(bool((precision >= 0.0).all()), f"the precisions of {name}")
    edited = None
    if f"{name} edited" in arrays:
        flags = arrays.take(f"{name} edited", "u1", (n_entries,))
        require(_within(flags, 0, 1), f"what was edited of {name}")
        edited = flags.astype(bool)
    possible = None
    if f"{name} dropped_variance" in arrays:
        possible = arrays.take(f"{name} dropped_variance", "f8", per_class, LARGEST**2)
        require(not active and bool((possible >= 0.0).all()), f"the variances of {name}")
    return FittedTerm(
        kind=kind,
        features=features,
        entries=entries,
        data_mass=share,
        mean=arrays.take(f"{name} mean", "f8", shape, LARGEST),
        table=arrays.take_matrix(table, (n_entries, width[0])),
        status=status,
        importance=_figure(fields, "importance"),
        effective_parameters=_figure(fields, "effective_parameters"),
        evidence=_figure(fields, "evidence"),
        precision=precision,
        expansion=arrays.take(f"{name} expansion", "f8", (None,)),
        architecture=_read_architecture(fields.values["architecture"], n_inputs, name),
        dropped_variance=possible,
        edited=edited,
    )


def _figure(fields: Fields, key: str) -> float:
    """A number that predictions do not depend on."""
    value = decode(fields.values[key])
    fields.require(type(value) is float and math.isfinite(value), key)
    return float(value)


def _coupled(term: FittedTerm, k: int, arrays: Arrays, n_coordinates: int) -> FittedTerm:
    name = f"term {k}"
    if f"{name} own_variance" not in arrays:
        return term
    require(term.kind == "categorical" and term.active, f"the coupling of {name}")
    own = arrays.take(f"{name} own_variance", "f8", (len(term.data_mass),))
    require(bool((own >= 0.0).all()), f"the variances of {name}")
    shape = (len(term.data_mass), n_coordinates)
    coupling = arrays.take_matrix(f"{name} coupling", shape)
    return replace(term, coupling=coupling, own_variance=own)


def _require_columns(
    entries: Entries | None, features: tuple[int, ...], n_levels: tuple[int, ...], name: str
) -> None:
    """Codes belong to categorical columns, one for each of their levels."""
    for feature, axis in zip(features, () if entries is None else entries.axes, strict=False):
        n_codes = len(axis.entry_of) if isinstance(axis, Categories) else -1
        require(n_codes == n_levels[feature], f"the entries of {name}")


def _read_architecture(value: object, most_inputs: int, name: str) -> Architecture | None:
    if value is None:
        return None
    keys = ("n_inputs", "hidden_sizes", "activation", "scales")
    fields = Fields(value, f"the network of {name}", keys)
    # An infinitely wide network has no sizes.
    infinite = fields.values["hidden_sizes"] is None
    sizes = None if infinite else fields.wholes("hidden_sizes", 1, 1 << 20)
    scales = fields.numbers("scales", 0.0)
    fields.require(sizes is None or len(sizes) > 0, "hidden_sizes")
    fields.require(len(scales) > 0 and min(scales) > 0.0, "scales")
    n_inputs = fields.whole("n_inputs", 1, most_inputs)
    return Architecture(n_inputs, sizes, fields.text("activation", ACTIVATIONS), scales)


def _read_entries(value: object, n_columns: int, name: str, arrays: Arrays) -> Entries | None:
    if value is None:
        return None
    what = f"the entries of {name}"
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "grid":
        axes = Fields(value, what, ("type", "axes")).items("axes")
        require(len(axes) == n_columns, what)
        return Grid(
            tuple(_read_axis(axis, f"{name} axis {k}", arrays) for k, axis in enumerate(axes))
        )
    if kind == "levels":
        return _read_levels(value, name, arrays)
    return _read_axis(value, name, arrays)


def _read_axis(value: object, name: str, arrays: Arrays) -> Axis:
    what = f"the entries of {name}"
    kind = value.get("type") if isinstance(value, dict) else None
    require(kind in ("knots", "categories"), what)
    if kind == "categories":
        fields = Fields(value, what, ("type", "n_own"), ("ordered",))
        entry_of = arrays.take(f"{name} entry_of", "i4", (None,)).astype(np.intp)
        n_own = fields.whole("n_own", 0, len(entry_of))
        known = (entry_of >= 0) & (entry_of < n_own)
        require(bool((known | (entry_of == n_own + 1)).all()), what)
        ordered = "ordered" in fields.values and fields.flag("ordered")
        fields.require(not ordered or n_own == len(entry_of), "ordered")
        return Categories(entry_of, n_own, ordered)
    fields = Fields(value, what, ("type", "scale", "missing", "inside"), ("course",))
    points = _read_points(f"{name} points", arrays, None, 2)
    inside = fields.wholes("inside", 0, len(points))
    fields.require(len(inside) == 2 and inside[0] < inside[1], "inside")
    inputs = arrays.take(f"{name} inputs", "f8", (len(points),))
    course = fields.text("course", COURSES) if "course" in fields.values else SMOOTH
    missing = fields.flag("missing")
    return Knots(points, inputs, _read_scale(fields), slice(*inside), missing, course)


def _read_levels(value: object, name: str, arrays: Arrays) -> Levels:
    fields = Fields(value, f"the entries of {name}", ("type", "scale", "missing", "exact"))
    exact = fields.flag("exact")
    points = _read_points(f"{name} points", arrays, None, 1)
    edges = _read_points(f"{name} edges", arrays, 0 if exact else len(points) - 1, 0)
    return Levels(points, edges, _read_scale(fields), exact, fields.flag("missing"))


def _read_points(name: str, arrays: Arrays, length: int | None, least: int) -> Array:
    points = arrays.take(name, "f8", (length,))
    require(
        len(points) >= least and bool((points[1:] > points[:-1]).all()), f"the order of {name!r}"
    )
    return points


def _read_scale(fields: Fields) -> float:
    """The unit of a column, which may be as large as its values."""
    value = fields.values["scale"]
    fields.require(type(value) is float and 0.0 < value < float("inf"), "scale")
    return float(value)
