"""Tasks that Dask's workers run, whose names its dashboard shows, and the values passed between them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.engines.allocation import freed_memory_kept
from lanam.engines.interface import Chunk, ResultColumns
from lanam.errors import Message


class Carried:
    """A value that is passed between tasks and arrives with aligned arrays.

    Dask would unpickle arrays as views of its receive buffer. On unaligned arrays numpy is slower and
    rounds differently: results would depend on the worker of a task. Dask also needs to know the size of
    our values, to choose what to spill to disk.
    """

    def __init__(self, value: Any, size: int = 0) -> None:
        self.value, self.size = value, size

    def __sizeof__(self) -> int:
        return self.size

    def __reduce__(self) -> tuple[Any, ...]:
        import cloudpickle  # a dependency of Dask, for functions that notebooks define

        return _received, (cloudpickle.dumps(self.value),)


def _received(content: bytes) -> Carried:
    return Carried(pickle.loads(content), len(content))


def summarise_partition(
    frame: Any, function: Carried, partition_info: Any = None
) -> Carried | None:
    """The function's result for a partition."""
    if not len(frame):
        return None
    chunk = _chunk(frame, partition_info)
    with _computing(chunk.place):
        result = function.value((chunk,))
    return None if result is None else Carried(result)


def encode_partition(frame: Any, encode: Carried, partition_info: Any = None) -> Carried | None:
    """A partition as a table."""
    if not len(frame):
        return None
    chunk = _chunk(frame, partition_info)
    with _computing(chunk.place):
        table = encode.value(chunk)
    # In one memory layout for all partitions, on which numpy's rounding depends; the core reads one column
    # at a time. Views would keep the whole partition in memory.
    arrays = {
        name: np.require(getattr(table, name), requirements=["F", "O"])
        for name in ("columns", "response", "weight")
    }
    return Carried(replace(table, **arrays), sum(array.nbytes for array in arrays.values()))


def total_of_table(job: Carried, table: Carried | None, number: int) -> Carried | None:
    """The totals of a table."""
    if table is None or not len(table.value):
        return None
    with _computing(_place(number)):
        totals = job.value((table.value,))
    return Carried(totals, sum(array.nbytes for array in totals))


def merge_in_order(merge: Callable[[Any, Any], Any], *results: Carried | None) -> Carried | None:
    """Merge neighbours until one result is left; None is left out."""
    rest = list(results)
    while len(rest) > 1:
        rest = [_pair(merge, *rest[first : first + 2]) for first in range(0, len(rest), 2)]
    return rest[0]


def predict_partition(frame: Any, shared: Carried, partition_info: Any = None) -> Any:
    """The function's result for a partition."""
    function, empty = shared.value
    if not len(frame):
        return empty.set_axis(frame.index)
    with _named_errors(_place(partition_info["number"])):
        return function(frame)


TASKS = {
    task.__name__
    for task in (summarise_partition, encode_partition, total_of_table, merge_in_order)
}


def _pair(
    merge: Callable[[Any, Any], Any], first: Carried | None, second: Carried | None = None
) -> Carried | None:
    if first is None or second is None:
        return second if first is None else first
    return Carried(merge(first.value, second.value), max(first.size, second.size))


def _chunk(frame: Any, partition_info: Any) -> Chunk:
    number = partition_info["number"]
    return Chunk(frame, _place(number), 0, number)


def _place(number: int) -> str:
    return f"partition {number}"


def label_results(function: Callable[[Chunk], Any], result: ResultColumns, frame: Any) -> Any:
    """Apply a function to a partition, whose number `predict_partition` adds to errors."""
    return labelled(function(Chunk(frame, "this partition", 0, 0)), frame, result)


def labelled(values: Any, frame: Any, result: ResultColumns) -> Any:
    """Arrays as a pandas series or frame with the index of ``frame``."""
    import pandas as pd

    # pandas would infer the dtype of strings and objects from the values, of which there may be none.
    dtype = pd.Series(np.empty(0, result.dtype)).dtype
    arrays = values if isinstance(values, tuple) else (values,)
    parts = [np.asarray(part, result.dtype) for part in arrays]
    if isinstance(result.names, str):
        return pd.Series(parts[0], frame.index, dtype=dtype, name=result.names)
    shape = (len(frame), -1) if len(frame) else (0, len(result.names))
    table = np.hstack([np.reshape(part, shape) for part in parts])
    return pd.DataFrame(table, frame.index, list(result.names), dtype=dtype)


@contextmanager
def _named_errors(place: str) -> Iterator[None]:
    """Add the place to errors."""
    try:
        yield
    except Exception as error:
        if place not in str(error):
            if isinstance(error, Message):
                raise error.located(f"{place}: ") from error
            if error.args == (str(error),):
                error.args = (f"{place}: {error}",)
            else:  # it has more than a message
                error.add_note(f"in {place}")
        raise


@contextmanager
def _computing(place: str) -> Iterator[None]:
    """Compute on the rows of a place: errors name it, and BLAS has one thread, since Dask has the others.

    The limit of threads is the whole process's. Of overlapping tasks the last one to finish may restore the
    limit of one that another task set, which is what Dask's workers have anyway.
    """
    with _named_errors(place), limited_threads(1), freed_memory_kept():
        yield
