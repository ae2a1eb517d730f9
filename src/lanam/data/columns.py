"""Arguments that say something of columns: each column is found, or a close match suggested.

An argument is a list of columns (``linear=["weight"]``), a value for each of some columns
(``cyclic={"hour": 24}``), or a list of pairs of columns (``exclude_pairs=[("age", "bmi")]``). Columns are
given by name or by index. None and empty collections say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

from lanam.data.cells import Level
from lanam.data.encoding import plain_levels
from lanam.data.schema import CATEGORICAL, NUMERIC, Schema, find_column
from lanam.errors import InputError

T = TypeVar("T")

#: One category has no neighbours.
_FEWEST_ORDERED = 2


def read_columns_of(value: object, argument: str, names: Sequence[str]) -> tuple[int, ...]:
    """The indices of the columns in a list, ascending.

    Examples
    --------
    >>> read_columns_of(["bmi", "age"], "linear", ["age", "sex", "bmi"])
    (0, 2)
    >>> read_columns_of("bmi", "linear", ["age", "sex", "bmi"])
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: linear='bmi' is not known: use a list of columns, for example ['bmi']
    """
    value = plain(value)
    if value is None:
        return ()
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes)):
        return tuple(sorted({find_column(column, names, argument) for column in value}))
    remedy = "use a list of columns, for example [{example_column!r}]"
    raise _unknown(argument, value, remedy, example_column=_example(value, names))


def read_by_column(
    value: object,
    argument: str,
    names: Sequence[str],
    read: Callable[[Any, str], T],
    example: object,
) -> dict[int, T]:
    """A setting for each of some columns, by index: ``read`` has a column's value and name.

    ``example`` is a valid setting, for the message.

    Examples
    --------
    >>> read_by_column(
    ...     {"bmi": "24"}, "cyclic", ["age", "bmi"], lambda value, name: float(value), 24
    ... )
    {1: 24.0}
    >>> read_by_column(24, "cyclic", ["age", "bmi"], lambda value, name: float(value), 24)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: cyclic=24 is not known: use a value per column, for example {'age': 24}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        remedy = "use a value per column, for example {example!r}"
        raise _unknown(argument, value, remedy, example={_example(value, names): example})
    found: dict[int, T] = {}
    for column, setting in value.items():
        index = find_column(column, names, argument)
        if index in found:
            problem = "{argument} has the column {column!r} twice, by name and by index"
            raise InputError(problem, argument=argument, column=names[index])
        found[index] = read(plain(setting), names[index])
    return dict(sorted(found.items()))


def read_pairs_of(
    value: object, argument: str, names: Sequence[str], example: str = ""
) -> tuple[tuple[int, int], ...]:
    """Pairs of different columns by index, each in the order given.

    ``example`` is in the messages.

    Examples
    --------
    >>> read_pairs_of([("bmi", "age"), (1, 2)], "exclude_pairs", ["age", "sex", "bmi"])
    ((2, 0), (1, 2))
    """
    value = plain(value)
    if value is None:
        return ()
    example = example or "[('age', 'bmi')]"
    if not isinstance(value, (Sequence, Set)) or isinstance(value, (str, bytes)):
        raise _unknown(
            argument,
            value,
            "use a list of pairs of columns, for example {example}",
            example=example,
        )
    return tuple(dict.fromkeys(read_pair(pair, argument, names, example) for pair in value))


def read_pair(
    pair: Any, argument: str, names: Sequence[str], example: str = "[('age', 'bmi')]"
) -> tuple[int, int]:
    """A pair of different columns."""
    pair = plain(pair)
    if isinstance(pair, str) or not isinstance(pair, Collection) or len(pair) != 2:
        problem = "{argument} must be a list of pairs of columns, and {value!r} is not a pair"
        remedy = f"write {example} for one pair"
        raise InputError(problem, remedy, argument=argument, value=pair)
    first, second = (find_column(column, names, argument) for column in pair)
    if first == second:
        problem = "{argument} has the pair {value!r}: a column has no interaction with itself"
        raise InputError(problem, argument=argument, value=pair)
    return first, second


def read_orders(value: object, names: Sequence[str]) -> dict[int, tuple[Level, ...]]:
    """The categories of ordered columns, in their order, by index.

    Examples
    --------
    >>> read_orders({"stage": ["I", "II", "III"]}, ["age", "stage"])
    {1: ('I', 'II', 'III')}
    """
    return read_by_column(value, "ordered", names, _read_order, ["low", "high"])


def _read_order(value: Any, column: str) -> tuple[Level, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not listed or len(value) < _FEWEST_ORDERED or len(set(value)) < len(value):
        raise InputError(
            "{argument} has {value!r} for column {column!r}",
            "list its categories once each, from one end to the other, for example ['low', 'high']",
            argument="ordered",
            column=column,
            value=value,
        )
    return plain_levels(list(value))


def require_kind(
    columns: Iterable[int], kind: str, schema: Schema, argument: str, what: str
) -> None:
    """Reject columns that are not numeric, or not categorical; ``what`` an argument makes of such a column.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.data.schema import learn_schema
    >>> require_kind(
    ...     [0], CATEGORICAL, learn_schema(["age"], np.zeros((2, 1))), "ordered", "an order"
    ... )
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: ordered names the column 'age', which is numeric, and an order is for ...
    """
    for index in columns:
        column = schema.columns[index]
        if column.kind == kind:
            continue
        remedy = "leave it out of {argument}"
        if kind == CATEGORICAL:
            remedy += ", or declare it in {categorical_features}"
        elif column.levels:
            remedy += ", or store its values as numbers"
        raise InputError(
            f"{{argument}} names the column {{column!r}}, which is {{is_kind}}, and {what} is for {kind} "
            "columns",
            remedy,
            argument=argument,
            column=column.name,
            is_kind=NUMERIC if column.kind == NUMERIC else CATEGORICAL,
        )


def plain(value: Any) -> Any:
    """Sequences and scalars of numpy and pandas as those of Python."""
    if not isinstance(value, (str, bytes)) and hasattr(value, "tolist"):
        return value.tolist()
    return value


def named_interactions(value: Any) -> Sequence[Any]:
    """The interactions that ``interactions`` names; none for "auto" or a number."""
    asked = plain(value)
    return () if asked is None or isinstance(asked, (str, int)) else asked


def named_twice(argument: str, other: str, column: str, why: str = "") -> InputError:
    """The error of a column that two arguments name, which exclude each other."""
    in_braces = f"{{{other}}}"  # which the command line translates
    return InputError(
        f"{{argument}} and {in_braces} both name the column {{column!r}}",
        f"leave it out of one of them{why}",
        argument=argument,
        column=column,
    )


def _example(value: object, names: Sequence[str]) -> str:
    """A column for an example: the one given, if it is one."""
    return value if isinstance(value, str) and value in names else names[0]


def _unknown(argument: str, value: object, remedy: str, **fields: Any) -> InputError:
    return InputError("{given} is not known", remedy, argument=argument, value=value, **fields)
