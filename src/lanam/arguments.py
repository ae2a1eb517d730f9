"""The estimators' arguments as the core's options.

They are checked in ``fit``, as scikit-learn requires. Errors name the argument, its value and valid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from lanam.core.fit.joint import Interaction
from lanam.core.fit.solvers import CURVATURES, SOLVERS
from lanam.core.inference.options import Options
from lanam.data import find_column
from lanam.errors import InputError
from lanam.parameters import PARAMETERS, is_number

#: Default initial scales for factored curvature, where each layer has one prior precision.
ONE_SCALE = (1.0,)

#: Interactions by the number of their columns, from two on.
_WORDS = ("pair", "triple")

#: Default hidden sizes of finite networks.
PAPER_SIZES = (64,)


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Options of a fit from an estimator's ``get_params()``, except for the interactions.

    Examples
    --------
    >>> from lanam import LANAMRegressor
    >>> read_options(LANAMRegressor(hidden_sizes=[32]).get_params()).hidden_sizes
    (32,)
    >>> read_options(LANAMRegressor(activation="sine").get_params())
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: activation='sine' is not known: choose 'gelu', 'relu', 'tanh' or 'silu'
    """
    # A grid search over an array passes numpy scalars.
    values = {name: _plain(value) for name, value in arguments.items()}
    read = {
        name: declared.metadata["read"](values[name], name)
        for name, declared in PARAMETERS.items()
        if name in values and declared.metadata
    }
    _require_compatible(read, values)
    solver, scales = SOLVERS[read["solver"]], read.pop("init_scales")
    if CURVATURES[read["curvature"]].factored:
        scales = scales or ONE_SCALE
    names = {option.name for option in fields(Options)}
    options = Options(**{name: value for name, value in read.items() if name in names})
    if is_papers(read):
        # Trained, or with a factored curvature, networks are finite.
        options = replace(
            options,
            hidden_sizes=options.hidden_sizes or PAPER_SIZES,
            pair_hidden_sizes=options.pair_hidden_sizes or PAPER_SIZES,
        )
    return replace(
        options,
        init_scales=scales or solver.init_scales,
        pair_init_scales=scales or solver.pair_init_scales,
        noise=options.noise and not is_papers(read),
        # Each thread has its own sums, which are then added up.
        memory=options.memory / (options.n_jobs + 1),
    )


def is_papers(arguments: Mapping[str, Any]) -> bool:
    """Whether training or curvature are the paper's, which has no model of the noise."""
    solver, curvature = SOLVERS[arguments["solver"]], CURVATURES[arguments["curvature"]]
    return solver.trained or curvature.factored


def read_interactions(
    value: Any, names: Sequence[str], max_order: int = 3
) -> str | int | tuple[Interaction, ...]:
    """The interactions to add: "auto", how many, or tuples of indices of the columns ``names``.

    Examples
    --------
    >>> read_interactions([("bmi", "age"), (1, 2)], ["age", "sex", "bmi"])
    ((0, 2), (1, 2))
    >>> read_interactions([("bmi", "ages")], ["age", "sex", "bmi"])
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: interactions names the column 'ages', which X does not have; ...
    """
    remedy = "use 'auto', how many interactions to add, or pairs of columns, for example [('age', 'bmi')]"
    read = partial(_read_interaction, names=names, max_order=max_order)
    return _read_request(value, "interactions", read, f"{remedy}; 0 for none")


def read_time_interactions(value: Any, names: Sequence[str]) -> str | int | tuple[Interaction, ...]:
    """The interactions with time to add: "auto", how many, or of which of the columns ``names``.

    Time is the column after them.

    Examples
    --------
    >>> read_time_interactions(["bmi"], ["age", "sex", "bmi"])
    ((2, 3),)
    """
    remedy = "use 'auto', how many columns, or a list of columns, for example ['age']; 0 for none"

    def with_time(column: Any) -> Interaction:
        return find_column(column, names, "time_interactions"), len(names)

    return _read_request(value, "time_interactions", with_time, remedy)


def _read_request(
    value: Any, argument: str, read: Callable[[Any], Interaction], remedy: str
) -> str | int | tuple[Interaction, ...]:
    """How many interactions, or which: each entry of a list is read as one."""
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, str) and value == "auto":
        return value
    if _is_nothing(value) and not isinstance(value, str):
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, (Sequence, Set)) and not isinstance(value, str):
        return tuple(sorted({read(entry) for entry in value}))
    raise InputError("{given} is not known", remedy, argument=argument, value=value)


def _read_interaction(columns: Any, names: Sequence[str], max_order: int) -> Interaction:
    columns = columns.tolist() if isinstance(columns, np.ndarray) else columns
    most = len(_WORDS) + 1
    if (
        isinstance(columns, str)
        or not isinstance(columns, Collection)
        or not 2 <= len(columns) <= most
    ):
        problem = (
            "{argument} must be a list of pairs or triples of columns, and {value!r} is neither"
        )
        remedy = "write [('age', 'bmi')] for one pair"
        raise InputError(problem, remedy, argument="interactions", value=columns)
    word = _WORDS[len(columns) - 2]
    if len(columns) > max_order:
        raise InputError(
            "{argument} has the "
            + word
            + " {value!r}, and max_order={max_order} is the largest number of "
            "columns of an interaction",
            f"set max_order={len(columns)}",
            argument="interactions",
            value=columns,
            max_order=max_order,
        )
    found = sorted(find_column(column, names, "interactions") for column in columns)
    if len(set(found)) < len(found):
        problem = (
            "{argument} has the " + word + " {value!r}: a column has no interaction with itself"
        )
        raise InputError(problem, argument="interactions", value=columns)
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    return value


def _is_nothing(value: Any) -> bool:
    if is_number(value):
        return bool(value == 0)
    return value is None or (hasattr(value, "__len__") and len(value) == 0)


def _require_compatible(read: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Reject combinations of values that are valid by themselves."""
    if not CURVATURES[read["curvature"]].factored:
        return
    if read["posterior"] != "block":
        raise InputError(
            "curvature='kron' has one Kronecker factorisation per term and no joint posterior",
            "set posterior='block' with it, or curvature='exact'",
            argument="curvature",
        )
    if len(read["init_scales"] or ()) > 1 and read["prior_groups"] == "layer":
        raise InputError(
            "{given} gives the units of one layer several prior precisions, for which curvature='kron' has "
            "no form",
            "set init_scales='auto', prior_groups='network' or curvature='exact'",
            argument="init_scales",
            value=values["init_scales"],
        )
