"""The estimators' arguments, checked, as the core's options.

Checked at ``fit`` and not before, as scikit-learn wants it. Errors name the argument, what it was,
and what it may be.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np
from joblib import cpu_count

from lanam.core.fit.interactions import Pair
from lanam.core.inference.options import Options
from lanam.data import find_column, read_categorical

__all__ = ["read_categorical", "read_interactions", "read_options"]

#: What each argument with a fixed list of values may be.
CHOICES: dict[str, tuple[Any, ...]] = {
    "interaction_score": (
        "evidence",
        "mutual_information",
        "evidence_gain",
        "mutual_information_full",
        "evidence_gain_full",
    ),
    "level_effects": ("auto", False),
    "noise": ("auto", "constant"),
    "likelihood": ("gaussian", "poisson"),
    "activation": ("gelu", "relu", "tanh", "silu"),
    "prior_groups": ("layer", "network"),
    "posterior": ("joint", "block"),
    "curvature": ("exact", "kron"),
    "solver": ("gauss-newton", "adam"),
    "evidence_update": ("mackay", "gradient"),
}

#: Networks start as sums of features of these steepnesses where the user leaves it to us.
ONE_SCALE = (1.0,)
AUTO_INIT_SCALES = {"gauss-newton": (1.0, 4.0, 16.0), "adam": ONE_SCALE}
#: The same for joint networks: a pair's finest structure is rarely visible in the data.
AUTO_PAIR_SCALES = {"gauss-newton": (1.0, 4.0), "adam": ONE_SCALE}


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Options of a fit from an estimator's ``get_params()``, all but which pairs it asks for.

    Raises
    ------
    ValueError
        For a value that does not exist, or that does not go together with another.

    Examples
    --------
    >>> from lanam import LANAMRegressor
    >>> read_options(LANAMRegressor(hidden_sizes=[32]).get_params()).hidden_sizes
    (32,)
    >>> read_options(LANAMRegressor(activation="sine").get_params())
    Traceback (most recent call last):
        ...
    ValueError: activation='sine' is not known: choose 'gelu', 'relu', 'tanh' or 'silu'
    """
    # A grid search over an array passes numpy's own strings, numbers and truth values.
    arguments = {name: _plain(value) for name, value in arguments.items()}
    for name, allowed in CHOICES.items():
        if name in arguments:
            _require_choice(name, arguments[name], allowed)
    if arguments["curvature"] == "kron" and arguments["posterior"] != "block":
        raise ValueError(
            "curvature='kron' has one Kronecker factorisation a term and no joint posterior: set "
            "posterior='block' with it, or curvature='exact'"
        )
    return Options(
        interaction_score=arguments["interaction_score"],
        pair_hidden_sizes=_require_sizes("pair_hidden_sizes", arguments["pair_hidden_sizes"]),
        pair_init_scales=_read_scales(arguments, AUTO_PAIR_SCALES),
        hidden_sizes=_require_sizes("hidden_sizes", arguments["hidden_sizes"]),
        activation=arguments["activation"],
        init_scales=_read_scales(arguments, AUTO_INIT_SCALES),
        prior_groups=arguments["prior_groups"],
        posterior=arguments["posterior"],
        curvature=arguments["curvature"],
        solver=arguments["solver"],
        evidence_update=arguments["evidence_update"],
        level_effects=arguments["level_effects"] == "auto",
        noise=arguments.get("noise") == "auto" and not is_papers(arguments),
        max_knots=_require_integer("max_knots", arguments["max_knots"], 16),
        max_iter=_require_integer("max_iter", arguments["max_iter"], 1),
        tol=_require_number("tol", arguments["tol"]),
        n_restarts=_require_integer("n_restarts", arguments["n_restarts"], 1),
        n_jobs=(n_jobs := read_n_jobs(arguments["n_jobs"])),
        # Every thread has sums of its own, and they are added up.
        memory=read_memory(arguments["memory"]) / (n_jobs + 1),
    )


def is_papers(arguments: Mapping[str, Any]) -> bool:
    """Whether networks are trained, or their curvature is, as in the paper: what it lacks is left out."""
    return arguments["solver"] == "adam" or arguments["curvature"] == "kron"


def read_n_jobs(value: Any) -> int:
    """How many threads to use: of None, as many as the environment gives us.

    Examples
    --------
    >>> read_n_jobs(3), read_n_jobs(None) >= 1
    (3, True)
    """
    available = int(cpu_count())
    if value is None:
        given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return min(int(given), available) if given.isdigit() and int(given) > 0 else available
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        return value if value > 0 else max(available + 1 + value, 1)
    raise ValueError(
        f"n_jobs={value!r} is not known: give a number of threads, -1 for all, or None for as many as the "
        "environment gives"
    )


def read_memory(value: Any) -> float:
    """A number of bytes, or text such as "500MB" or "2GB".

    Examples
    --------
    >>> read_memory("1.5 GB"), read_memory(10**9)
    (1500000000.0, 1000000000.0)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([\d.]+)\s*([kKMGT]?)(i?)B?\s*", value)
        if found is not None and found[1].count(".") <= 1 and found[1] != ".":
            power = " KMGT".index(found[2].upper() or " ")
            value = float(found[1]) * (1024.0 if found[3] else 1000.0) ** power
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ValueError(f"memory={value!r} is not known: give a number of bytes, or for example '2GB'")


def read_interactions(value: Any, names: Sequence[str]) -> str | int | tuple[Pair, ...]:
    """Which pairs of the columns ``names`` to add: "auto", how many, or these, as indices.

    Examples
    --------
    >>> read_interactions([("bmi", "age"), (1, 2)], ["age", "sex", "bmi"])
    ((0, 2), (1, 2))
    >>> read_interactions([("bmi", "ages")], ["age", "sex", "bmi"])
    Traceback (most recent call last):
        ...
    ValueError: interactions names the column 'ages', which X does not have; did you mean 'age'?
    """
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, str) and value == "auto":
        return value
    if _is_nothing(value) and not isinstance(value, str):
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, (Sequence, Set)) and not isinstance(value, str):
        pairs = {_read_pair(pair, names) for pair in value}
        return tuple(sorted(pairs))
    raise ValueError(
        f"interactions={value!r} is not known: give 'auto', how many pairs to add, or the pairs "
        "themselves, for example [('age', 'bmi')]; 0 for none"
    )


def _read_pair(pair: Any, names: Sequence[str]) -> Pair:
    pair = pair.tolist() if isinstance(pair, np.ndarray) else pair
    if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
        raise ValueError(
            f"interactions must be a list of pairs of columns, and {pair!r} is not a pair: write "
            "[('age', 'bmi')] for one pair"
        )
    first, second = sorted(find_column(column, names, "interactions") for column in pair)
    if first == second:
        raise ValueError(
            f"interactions has the pair {pair!r}: a column has no interaction with itself"
        )
    return first, second


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist()
    return value


def _is_nothing(value: Any) -> bool:
    if _is_number(value):
        return bool(value == 0)
    return value is None or (hasattr(value, "__len__") and len(value) == 0)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _require_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    # `value in allowed` would take 0 for False, and trip over arrays.
    if any(type(value) is type(choice) and value == choice for choice in allowed):
        return
    words = [repr(choice) for choice in allowed]
    listed = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    raise ValueError(f"{name}={value!r} is not known: choose {listed}")


def _require_integer(name: str, value: Any, least: int) -> int:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and value >= least:
        return int(value)
    raise ValueError(f"{name}={value!r} must be an integer of at least {least}")


def _require_number(name: str, value: Any) -> float:
    if _is_number(value) and 0.0 <= value < math.inf:
        return float(value)
    raise ValueError(f"{name}={value!r} must be a finite number of at least 0")


def _require_sizes(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0:
        return tuple(_require_integer(f"every entry of {name}", size, 1) for size in value)
    raise ValueError(
        f"{name}={value!r} must be a sequence of layer widths, for example (64,) for one layer"
    )


def _read_scales(
    arguments: Mapping[str, Any], auto: Mapping[str, tuple[float, ...]]
) -> tuple[float, ...]:
    value, kron = arguments["init_scales"], arguments["curvature"] == "kron"
    if isinstance(value, str) and value == "auto":
        return ONE_SCALE if kron else auto[arguments["solver"]]
    fine = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if fine and all(_is_number(scale) and 0.0 < scale < math.inf for scale in value):
        if kron and len(value) > 1 and arguments["prior_groups"] == "layer":
            raise ValueError(
                f"init_scales={value!r} gives the units of one layer several prior precisions, for "
                "which curvature='kron' has no form: set init_scales='auto', "
                "prior_groups='network' or curvature='exact'"
            )
        return tuple(float(scale) for scale in value)
    raise ValueError(
        f"init_scales={value!r} must be 'auto' or a sequence of positive numbers, for example "
        "(1.0, 4.0)"
    )
