"""Decisions that options leave open: the target, its task, and which rows are held out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.errors import CLIError, UsageError, in_flags
from lanam.data import find_column
from lanam.data.recognition import FREE_TEXT, IDENTIFIERS, recognise
from lanam.engines.types import holds
from lanam.families import ANY, AUTO, BERNOULLI, GAUSSIAN, POISSON, Family, find_family
from lanam.text import few

#: Whole numbers below this are 64-bit integers.
_LARGEST = 2.0**63

#: Asks the user to choose a column.
Ask = Callable[[Sequence[str]], str]

#: Names by which a target is recognised.
_TARGETS = ("y", "target")

#: Integers with at most this many distinct values may also be classes or counts.
_FEW = 10

#: Strings with more distinct values than this are classes only if the user says so.
_MANY_CLASSES = 50

#: Distinct values are counted up to this number.
MANY_VALUES = 1000

_MAX_LISTED = 20


#: The response family of each task; of more than two classes, the one of several.
TASKS: dict[str, Family] = {
    "regression": GAUSSIAN,
    "classification": BERNOULLI,
    "counts": POISSON,
}


@dataclass(frozen=True)
class Decision:
    """The task of a target, and the reason for it."""

    task: str
    why: str
    #: the response family, if not that of the task
    likelihood: str | None = None

    @property
    def family(self) -> Family:
        """The response family."""
        return TASKS[self.task] if self.likelihood is None else family_of(self.likelihood)


def family_of(likelihood: str) -> Family:
    """The family of ``--likelihood``; of auto, one that takes what any of them takes."""
    return ANY if likelihood == AUTO else find_family(likelihood)


def task_of(likelihood: str) -> str:
    """The task of a response family.

    Examples
    --------
    >>> task_of("gamma"), task_of("negative_binomial")
    ('regression', 'counts')
    """
    family = family_of(likelihood)
    if family.link.classes:
        return "classification"
    return "counts" if family.discrete else "regression"


def find_target(names: Sequence[str], given: str | None, ask: Ask | None = None) -> tuple[str, str]:
    """The target's name, and how it was found; ``ask`` is None without a terminal."""
    if given is not None:
        return require_column(given, names, "--target"), "as requested"
    candidates = [name for name in names if name.lower() in _TARGETS]
    if len(candidates) == 1:
        return candidates[0], "by its name"
    if ask is not None:
        return require_column(ask(names), names, "the answer"), "as requested"
    raise UsageError(f"which column is the target? Use --target with one of {listed(names)}")


def require_column(name: str, names: Collection[str], option: str) -> str:
    """The name of a column that an option names, if the table has it."""
    try:
        find_column(name, names, option)
    except ValueError as error:
        raise UsageError(in_flags(error)) from None
    return name


def listed(names: Collection[str]) -> str:
    """Names for a message."""
    return few(names, _MAX_LISTED)


def split_names(values: Sequence[str] | None, names: Collection[str], option: str) -> list[str]:
    """The columns that an option names, separated by commas or given repeatedly."""
    chosen = []
    for value in values or ():
        parts = [value] if value in names else [part.strip() for part in value.split(",")]
        chosen += [require_column(part, names, option) for part in parts if part]
    return list(dict.fromkeys(chosen))


def read_interactions(value: str, names: Collection[str]) -> str | int | list[tuple[str, ...]]:
    """The value of ``--interactions``: "auto", a number, or pairs and triples of columns."""
    if value == "auto":
        return value
    if value.isdigit():
        return int(value)
    found = []
    for part in value.split(","):
        # Names may have colons themselves.
        pieces = part.split(":")
        readings = [
            tuple(
                ":".join(pieces[slice(*ends)]).strip() for ends in pairwise((0, *cuts, len(pieces)))
            )
            for n_cuts in (1, 2)
            for cuts in combinations(range(1, len(pieces)), n_cuts)
        ]
        if not readings:
            raise UsageError(
                f"--interactions {value!r} is not valid: use auto, a number, or pairs and triples such as "
                "a:b,c:d:e"
            )
        there = [reading for reading in readings if all(name in names for name in reading)]
        plain = [reading for reading in readings if len(reading) == min(len(pieces), 3)]
        chosen = (there or plain)[0]
        found.append(tuple(require_column(name, names, "--interactions") for name in chosen))
    return found


def decide_task(
    column: pa.ChunkedArray, name: str, asked: str | None, likelihood: str | None = None
) -> Decision:
    """The task of a target without missing values; up to `MANY_VALUES` distinct values are enough."""
    if likelihood is not None:
        decision = decide_task(column, name, task_of(likelihood))
        return replace(decision, likelihood=likelihood)
    n_values = len(pc.unique(column))
    text = holds(column.type) == "string"
    if n_values < 2:
        raise CLIError(f"the target {name!r} is constant: there is nothing to learn")
    if asked is not None:
        if text and not TASKS[asked].link.classes:
            example = pc.unique(column)[0].as_py()
            raise CLIError(
                f"--task {asked} needs a numeric target, and {name!r} holds strings, such as {example!r}"
            )
        if holds(column.type) == "numeric" and TASKS[asked].link.classes and not _whole(column):
            odd = next(value for value in column.to_pylist() if not float(value).is_integer())
            raise CLIError(
                f"--task {asked} needs classes, and the target {name!r} holds {odd!r}: classes are "
                "integers, booleans or strings. Convert them in the file, or use --task regression"
            )
        return Decision(str(asked), "as requested")
    if text:
        _require_classes(pc.unique(column).to_pylist(), name)
        several = n_values if n_values <= MANY_VALUES else f"more than {MANY_VALUES}"
        if n_values > _MANY_CLASSES:
            raise CLIError(
                f"the target {name!r} holds strings with {several} distinct values: is it the right "
                "column? If they are classes, use --task classification"
            )
        return Decision("classification", f"{name!r} holds strings with {n_values} distinct values")
    if holds(column.type) == "boolean":
        return Decision("classification", f"{name!r} is boolean")
    if holds(column.type) != "numeric":
        raise CLIError(
            f"the target {name!r} holds {column.type}: targets are numeric, boolean or strings"
        )
    if n_values == 2 and _whole(column):
        why = f"{name!r} has two distinct values; use --task regression to treat it as numeric"
        return Decision("classification", why)
    if n_values <= _FEW and _whole(column):
        why = (
            f"{name!r} has {n_values} distinct integers, treated as numeric; use --task classification if "
            "they are classes, --task counts if they are counts"
        )
        return Decision("regression", why)
    few = " with two distinct values that are no integers" if n_values == 2 else ""
    return Decision("regression", f"{name!r} is numeric{few}")


def _require_classes(values: Sequence[str], name: str) -> None:
    """Reject strings that are numbers, amounts, dates or times."""
    found = recognise(values, len(values))
    if found is not None and found.certain and found.what not in (FREE_TEXT, IDENTIFIERS):
        raise CLIError(
            f"the target {name!r} holds {found.what} as text (for example {found.example!r}): convert them "
            "to numbers in the file; if they are classes, use --task classification"
        )


def _whole(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type):
        return True
    values = column.cast(pa.float64()).to_numpy()
    return bool(((values == np.round(values)) & (np.abs(values) < _LARGEST)).all())


def target_values(column: pa.ChunkedArray, family: Family) -> np.ndarray:
    """The target as the estimators take it."""
    if holds(column.type) == "string":
        return np.array(column.to_pylist(), dtype=object)
    if not family.link.classes:
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        column = column.cast(pa.float64())
    elif holds(column.type) == "numeric" and _whole(column):
        # A missing value somewhere turns integers into floats.
        column = column if pa.types.is_integer(column.type) else column.cast(pa.int64())
    return np.asarray(column.to_numpy())


def hold_out(
    labels: np.ndarray | None,
    n_rows: int,
    shares: Sequence[float],
    random_state: int,
    groups: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Indices of the training rows, and of the rows held out for each fraction, all ascending.

    Classes are stratified, and each keeps a training row; or whole ``groups`` of rows are held out.
    """
    if groups is not None:
        distinct, code = np.unique(groups.astype(str), return_inverse=True)
        of_groups = hold_out(None, len(distinct), shares, random_state)
        return [np.flatnonzero(np.isin(code, part)) for part in of_groups]
    rng = np.random.default_rng(random_state)
    numbers = np.zeros(n_rows, int) if labels is None else np.unique(labels, return_inverse=True)[1]
    parts: list[list[np.ndarray]] = [[] for _ in range(len(shares) + 1)]
    for number in range(numbers.max(initial=0) + 1):
        rows = rng.permutation(np.flatnonzero(numbers == number))
        ends = np.cumsum([int(share * len(rows)) for share in shares]).tolist()
        *held, train = np.split(rows, ends)
        for part, chosen in zip(parts, [train, *held], strict=True):
            part.append(chosen)
    return [np.sort(np.concatenate(part)) for part in parts]
