"""What the options leave open: which column is the target, what kind it is, which rows are held out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.errors import CLIError, UsageError
from lanam.engines.types import holds
from lanam.families import BERNOULLI, GAUSSIAN, POISSON, Family
from lanam.text import few

#: Asks a person which of the columns it is.
Ask = Callable[[Sequence[str]], str]

#: Names by which a target is known without being named.
_TARGETS = ("y", "target")

#: Of integers with no more different values than this it is said how they are read.
_FEW = 10

#: More classes than this are not meant, unless somebody says so.
_MANY_CLASSES = 50

#: Of more different values than this nobody counts how many there are.
MANY_VALUES = 1000

_MAX_LISTED = 20


@dataclass(frozen=True)
class Task:
    """A kind of target, and the response family that is fitted to it."""

    name: str
    family: Family


REGRESSION, COUNTS = Task("regression", GAUSSIAN), Task("counts", POISSON)
CLASSIFICATION = Task("classification", BERNOULLI)  # or that of more classes, once they are counted

#: What ``--task`` may say.
TASKS = {task.name: task for task in (REGRESSION, CLASSIFICATION, COUNTS)}


@dataclass(frozen=True)
class Decision:
    """What kind of target it is, and why."""

    task: Task
    why: str


def find_target(names: Sequence[str], given: str | None, ask: Ask | None = None) -> tuple[str, str]:
    """The target's name, and how it was found.

    Parameters
    ----------
    names
        The columns.
    given
        What ``--target`` says.
    ask
        What asks a person, if there is one: it takes the names and returns one.

    Examples
    --------
    >>> find_target(["age", "Y"], None)
    ('Y', 'by its name')
    >>> find_target(["age", "bmi"], "bmi")
    ('bmi', 'as you said')
    """
    if given is not None:
        return require_column(given, names, "--target"), "as you said"
    found = [name for name in names if name.lower() in _TARGETS]
    if len(found) == 1:
        return found[0], "by its name"
    if ask is not None:
        return require_column(ask(names), names, "the answer"), "as you said"
    raise UsageError(f"which column is to be predicted? Say --target with one of {listed(names)}")


def require_column(name: str, names: Collection[str], option: str) -> str:
    """The name of a column that is there.

    Examples
    --------
    >>> require_column("ages", ["age", "bmi"], "--drop")
    Traceback (most recent call last):
        ...
    lanam.cli.errors.UsageError: --drop names the column 'ages', which is not there; did you mean 'age'?
    """
    if name in names:
        return name
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": the columns are {listed(names)}"
    raise UsageError(f"{option} names the column {name!r}, which is not there{hint}")


def listed(names: Collection[str]) -> str:
    """Names in a message."""
    return few(names, _MAX_LISTED)


def split_names(values: Sequence[str] | None, names: Collection[str], option: str) -> list[str]:
    """The columns that an option names: once or several times, with commas between them.

    Examples
    --------
    >>> split_names(["a,b", "c,d"], ["a", "b", "c,d"], "--drop")
    ['a', 'b', 'c,d']
    """
    found = []
    for value in values or ():
        parts = [value] if value in names else [part.strip() for part in value.split(",")]
        found += [require_column(part, names, option) for part in parts if part]
    return list(dict.fromkeys(found))


def read_pairs(value: str, names: Collection[str]) -> str | int | list[tuple[str, str]]:
    """What ``--interactions`` says: "auto", how many, or which pairs.

    Examples
    --------
    >>> read_pairs("3", []), read_pairs("a:b,b:c", ["a", "b", "c"])
    (3, [('a', 'b'), ('b', 'c')])
    """
    if value == "auto":
        return value
    if value.isdigit():
        return int(value)
    pairs = []
    for part in value.split(","):
        cuts = [at for at, letter in enumerate(part) if letter == ":"]
        sides = [(part[:at].strip(), part[at + 1 :].strip()) for at in cuts]
        if not sides:
            raise UsageError(
                f"--interactions {value!r} is not known: say auto, a number, or pairs such as a:b,c:d"
            )
        known = [side for side in sides if side[0] in names and side[1] in names]
        first, second = (
            require_column(side, names, "--interactions") for side in (known or sides)[0]
        )
        pairs.append((first, second))
    return pairs


def decide_task(column: pa.ChunkedArray, name: str, asked: str | None) -> Decision:
    """What kind of target a column without gaps is; its different values are enough, or many of them.

    Examples
    --------
    >>> decide_task(pa.chunked_array([["no", "yes", "no"]]), "ill", None).why
    "'ill' is text with 2 different values"
    >>> decide_task(pa.chunked_array([[0.5, 1.25, 3.0]]), "price", None).task.name
    'regression'
    """
    n_values = len(pc.unique(column))
    text = holds(column.type) == "text"
    if n_values < 2:
        raise CLIError(f"the target {name!r} has one value only: there is nothing to learn")
    if asked is not None:
        if text and not TASKS[asked].family.link.classes:
            example = pc.unique(column)[0].as_py()
            raise CLIError(
                f"--task {asked} needs numbers, and the target {name!r} holds text, such as {example!r}"
            )
        return Decision(TASKS[asked], "as you said")
    if text:
        several = n_values if n_values <= MANY_VALUES else f"more than {MANY_VALUES}"
        if n_values > _MANY_CLASSES:
            raise CLIError(
                f"the target {name!r} is text with {several} different values: is it the right column? "
                "If these are classes, say --task classification"
            )
        return Decision(CLASSIFICATION, f"{name!r} is text with {n_values} different values")
    if holds(column.type) == "truth values":
        return Decision(CLASSIFICATION, f"{name!r} is true or false")
    if holds(column.type) != "numbers":
        raise CLIError(
            f"the target {name!r} holds {column.type}: lanam predicts numbers and classes"
        )
    if n_values == 2:
        why = f"{name!r} has two different values; --task regression reads them as numbers"
        return Decision(CLASSIFICATION, why)
    if n_values <= _FEW and _whole(column):
        why = (
            f"{name!r} has {n_values} different whole numbers, read as numbers; if they are classes say "
            "--task classification, if they count events --task counts"
        )
        return Decision(REGRESSION, why)
    return Decision(REGRESSION, f"{name!r} is numbers")


def _whole(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type):
        return True
    values = column.cast(pa.float64()).to_numpy()
    return bool((values == np.round(values)).all())


def target_values(column: pa.ChunkedArray, family: Family) -> np.ndarray:
    """The target for the estimators."""
    if holds(column.type) == "text":
        return np.array(column.to_pylist(), dtype=object)
    if not family.link.classes:
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        column = column.cast(pa.float64())
    elif holds(column.type) == "numbers" and _whole(column):
        # A gap somewhere makes floats of whole numbers.
        column = column.cast(pa.float64()).cast(pa.int64())
    return np.asarray(column.to_numpy())


def hold_out(
    labels: np.ndarray | None, n_rows: int, shares: Sequence[float], random_state: int
) -> list[np.ndarray]:
    """Rows to train with, and rows held out for each of the shares, each ascending.

    Of classes, every class gives its share, and keeps a row to train with.

    Examples
    --------
    >>> train, test = hold_out(None, 10, [0.2], 0)
    >>> len(train), len(test)
    (8, 2)
    """
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
