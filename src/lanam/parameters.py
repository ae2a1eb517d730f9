"""The estimators' parameters, each declared once: name, default, validation, and the core's option.

The declarations define the constructors, with signatures that scikit-learn, type checkers and editors
understand. A new parameter is one line here, and an option of the same name in the core.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any

from lanam.errors import InputError, InputTypeError, choose
from lanam.text import did_you_mean

#: From the value and the name of a parameter to the core's option; raises if the value is invalid.
Reader = Callable[[Any, str], Any]


def _read(reader: Reader, choices: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"read": reader, "choices": choices}


def _refusal(name: str, value: Any, rule: str, remedy: str = "") -> InputError:
    return InputError(f"{{given}} {rule}", remedy, argument=name, value=value)


def one_of(*choices: Any) -> dict[str, Any]:
    """One of these values."""

    def read(value: Any, name: str) -> Any:
        # `value in choices` would take 0 for False, and trip over arrays.
        if any(type(value) is type(choice) and value == choice for choice in choices):
            return value
        raise _refusal(name, value, "is not known", choose(*choices))

    return _read(read, choices)


def switch(on: Any, off: Any) -> dict[str, Any]:
    """One of two values, read as True and False."""
    choice = one_of(on, off)["read"]
    return _read(lambda value, name: choice(value, name) == on, (on, off))


def integer(least: int) -> dict[str, Any]:
    """An integer of at least this."""

    def read(value: Any, name: str) -> int:
        if _is_integer(value, least):
            return int(value)
        raise _refusal(name, value, f"must be an integer of at least {least}")

    return _read(read)


def _is_integer(value: Any, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def is_number(value: Any) -> bool:
    """Whether it is a real number, of Python or of numpy."""
    return not isinstance(value, bool) and isinstance(value, Real)


def read_number(value: Any, name: str) -> float:
    """A finite number that is not negative."""
    if is_number(value) and 0.0 <= value < math.inf:
        return float(value)
    raise _refusal(name, value, "must be a finite number of at least 0")


def read_seconds(value: Any, name: str) -> float | None:
    """A positive number of seconds, or None."""
    if value is None or (is_number(value) and 0.0 < value < math.inf):
        return None if value is None else float(value)
    raise _refusal(name, value, "must be a positive number of seconds, or None for no limit")


def _has_entries(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0


def read_sizes(value: Any, name: str) -> tuple[int, ...] | None:
    """Widths of layers; None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if not _has_entries(value):
        rule = "must be 'auto' or a sequence of layer widths, for example (64,) for one layer"
        raise _refusal(name, value, rule)
    for size in value:
        if not _is_integer(size, 1):
            problem = "every entry of {given} must be an integer of at least 1"
            raise InputError(problem, argument=name, value=size)
    return tuple(map(int, value))


def _are_positive(value: Any) -> bool:
    return _has_entries(value) and all(is_number(each) and 0.0 < each < math.inf for each in value)


def read_scales(value: Any, name: str) -> tuple[float, ...] | None:
    """Positive numbers; None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if _are_positive(value):
        return tuple(map(float, value))
    rule = "must be 'auto' or a sequence of positive numbers, for example (1.0, 4.0)"
    raise _refusal(name, value, rule)


def read_rates(value: Any, name: str) -> tuple[float, ...]:
    """Positive numbers."""
    if _are_positive(value):
        return tuple(map(float, value))
    raise _refusal(name, value, "must be a sequence of positive numbers, for example (0.1, 0.01)")


def read_intervals(value: Any, name: str) -> int | None:
    """A number of intervals; None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if _is_integer(value, 1):
        return int(value)
    raise _refusal(name, value, "must be 'auto' or an integer of at least 1")


def read_n_jobs(value: Any, name: str = "n_jobs") -> int:
    """Number of threads; None is ``OMP_NUM_THREADS`` or the number of cores.

    Examples
    --------
    >>> read_n_jobs(3), read_n_jobs(None) >= 1
    (3, True)
    """
    from joblib import cpu_count  # only here: ``lanam --help`` needs nothing but the defaults

    available = int(cpu_count())
    if value is None:
        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return min(int(limit), available) if limit.isdigit() and int(limit) > 0 else available
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        return value if value > 0 else max(available + 1 + value, 1)
    remedy = "give a number of threads, -1 for all cores, or None for the environment's default"
    raise _refusal(name, value, "is not known", remedy)


def read_memory(value: Any, name: str = "memory") -> float:
    """A number of bytes, or a string such as "500MB" or "2GB".

    Examples
    --------
    >>> read_memory("1.5 GB"), read_memory(10**9)
    (1500000000.0, 1000000000.0)
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kKMGT]?)(i?)B?\s*", value)
        if match is not None:
            power = " KMGT".index(match[2].upper() or " ")
            value = float(match[1]) * (1024.0 if match[3] else 1000.0) ** power
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    remedy = "give a number of bytes, or for example '2GB'"
    raise _refusal(name, value, "is not known", remedy)


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class Parameters:
    """Parameters of both estimators; those without a reader are validated against the columns."""

    interactions: Any = "auto"
    interaction_score: str = field(
        default="evidence",
        metadata=one_of(
            "evidence",
            "mutual_information",
            "evidence_gain",
            "mutual_information_full",
            "evidence_gain_full",
        ),
    )
    max_order: int = field(default=3, metadata=one_of(1, 2, 3))
    max_pairs: int = field(default=50, metadata=integer(1))
    time_budget: float | None = field(default=None, metadata=_read(read_seconds))
    level_effects: Any = field(default="auto", metadata=switch("auto", False))
    hidden_sizes: Any = field(default="auto", metadata=_read(read_sizes))
    pair_hidden_sizes: Any = field(default="auto", metadata=_read(read_sizes))
    activation: str = field(default="gelu", metadata=one_of("gelu", "relu", "tanh", "silu"))
    init_scales: Any = field(default="auto", metadata=_read(read_scales))
    prior_groups: str = field(default="layer", metadata=one_of("layer", "network"))
    posterior: str = field(default="joint", metadata=one_of("joint", "block"))
    curvature: str = field(default="exact", metadata=one_of("exact", "kron"))
    solver: str = field(default="gauss-newton", metadata=one_of("gauss-newton", "adam"))
    evidence_update: str = field(default="mackay", metadata=one_of("mackay", "gradient"))
    pure: bool = field(default=True, metadata=switch(True, False))
    learning_rates: Any = field(default=(0.1, 0.01, 0.001), metadata=_read(read_rates))
    schedule: str = field(default="constant", metadata=one_of("constant", "cosine"))
    epochs: int = field(default=100, metadata=integer(1))
    batch_size: int = field(default=512, metadata=integer(1))
    evidence_steps: int = field(default=30, metadata=integer(1))
    patience: int = field(default=4, metadata=integer(1))
    categorical_features: Any = "auto"
    monotonic_cst: Any = None
    shape_cst: Any = None
    cyclic: Any = None
    linear: Any = None
    ordered: Any = None
    keep: Any = None
    exclude_pairs: Any = None
    by: Any = None
    random_slopes: Any = None
    spatial: Any = None
    max_knots: int = field(default=256, metadata=integer(16))
    max_iter: int = field(default=100, metadata=integer(1))
    tol: float = field(default=0.05, metadata=_read(read_number))
    n_restarts: int = field(default=1, metadata=integer(1))
    memory: Any = field(default="2GB", metadata=_read(read_memory))
    n_jobs: int | None = field(default=None, metadata=_read(read_n_jobs))
    random_state: Any = None
    verbose: int = 0


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class RegressorParameters(Parameters):
    """Parameters of the regressor alone."""

    likelihood: str = "gaussian"  # of those that ``families`` knows
    tweedie_power: Any = "auto"  # which that family reads
    noise: str = field(default="auto", metadata=switch("auto", "constant"))


#: Parameters that say what is known of columns, which a file can hold (``lanam fit --spec``).
KNOWLEDGE = (
    *("monotonic_cst", "shape_cst"),
    *("cyclic", "linear", "ordered", "keep", "exclude_pairs", "by", "random_slopes"),
    "spatial",
)

#: The paper's settings where they are not the defaults, for ``LANAMRegressor.paper``.
PAPER: Mapping[str, Any] = {
    "interactions": 0,
    "interaction_score": "mutual_information",
    "pair_hidden_sizes": (64, 64),
    "level_effects": False,
    "noise": "constant",
    "prior_groups": "network",
    "posterior": "block",
    "curvature": "kron",
    "solver": "adam",
    "evidence_update": "gradient",
    "pure": False,
    "schedule": "cosine",
}


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class ClassifierParameters(Parameters):
    """Parameters of the classifier alone."""

    likelihood: str = "categorical"  # or "ordinal"


@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class SurvivalParameters(Parameters):
    """Parameters of the survival estimator alone."""

    time_interactions: Any = "auto"
    n_intervals: Any = "auto"


#: All declarations by name, but for those of survival models, of which the core has no options.
PARAMETERS: dict[str, Field[Any]] = {each.name: each for each in fields(RegressorParameters)}


def refuse_class_weight(arguments: Mapping[str, Any]) -> None:
    """Explain why there is no ``class_weight``, which other classifiers have."""
    if "class_weight" in arguments:
        raise InputTypeError(
            "{given} is not an option of lanam: with weighted classes probabilities, their calibration and "
            "all bands are those of a population that does not exist",
            "To act on a rare class, keep the probabilities and lower the threshold, for example "
            "`model.predict_proba(X)[:, 1] > 0.1`. If the training data was sampled by class, pass weights "
            "that restore the population to `fit(X, y, sample_weight=...)`; "
            "`sklearn.utils.class_weight.compute_sample_weight` makes them of class weights.",
            argument="class_weight",
            value=arguments["class_weight"],
        )


#: Arguments of ``fit`` that are no parameters.
_OF_FIT = ("checkpoint", "drop", "exposure", "sample_weight", "target")


def _refuse_unknown(estimator: str, given: Iterable[str], known: Collection[str]) -> None:
    """Name the estimator, and similar parameters: Python names the class that declares them."""
    for name in given:
        if name in known:
            continue
        here = f"pass it to `fit(..., {name}=...)`"
        raise InputTypeError(
            "{estimator} got an unexpected keyword argument {argument!r}",
            "{hint}",
            argument=name,
            estimator=estimator,
            hint=here if name in _OF_FIT else did_you_mean(name, known, "its parameters are"),
        )


def _answering(init: Callable[..., None], *, classes: bool) -> Callable[..., None]:
    """A constructor whose errors help."""
    known = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def construct(self: Parameters, *args: Any, **arguments: Any) -> None:
        if classes:
            refuse_class_weight(arguments)
        _refuse_unknown(type(self).__name__, arguments, known)
        init(self, *args, **arguments)

    return construct


Parameters.__init__ = _answering(Parameters.__init__, classes=True)  # type: ignore[method-assign]
for _kind in (ClassifierParameters, SurvivalParameters):
    _kind.__init__ = _answering(_kind.__init__, classes=_kind is ClassifierParameters)  # type: ignore[method-assign]
RegressorParameters.__init__ = _answering(  # type: ignore[method-assign]
    RegressorParameters.__init__, classes=False
)

# Estimators must not look like dataclasses: Dask hashes a dataclass by its fields, so two fits with equal
# parameters would be equal.
for _declared in (RegressorParameters, ClassifierParameters, SurvivalParameters, Parameters):
    del _declared.__dataclass_fields__


#: The constructors' defaults.
DEFAULTS = RegressorParameters()


def choices(name: str) -> tuple[Any, ...]:
    """The valid values of a parameter with a fixed list of them."""
    return tuple(PARAMETERS[name].metadata["choices"])
