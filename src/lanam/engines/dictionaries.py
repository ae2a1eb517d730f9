"""Dictionary encoding of string columns, so that work on strings is done once per distinct value."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray


def dictionary_encode(series: Any) -> tuple[Any, NDArray[np.intp] | None]:
    """The distinct values of a column and the index of each row's value, -1 for missing values.

    Columns other than strings and categories are returned unchanged, with None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = nw.from_native(pa.table({"city": ["Rome", None, "Bonn", "Rome"]}))
    >>> distinct, positions = dictionary_encode(table["city"])
    >>> distinct.to_list(), positions
    (['Rome', 'Bonn'], array([ 0, -1,  1,  0]))
    """
    native = series.to_native()
    if series.dtype not in (nw.String, nw.Categorical, nw.Enum):
        return series, None
    if series.implementation.is_pyarrow():
        distinct, positions = _encode_arrow(native)
    elif series.implementation.is_pandas_like():
        distinct, positions = native.drop_duplicates().dropna(), native.factorize()[0]
    else:
        return series, None
    named: Any = nw.from_native(distinct, series_only=True)
    return named.alias(series.name), np.asarray(positions, dtype=np.intp)


def _encode_arrow(column: Any) -> tuple[Any, NDArray[np.intp]]:
    import pyarrow as pa

    categories = pa.types.is_dictionary(column.type)
    column = (column if categories else column.dictionary_encode()).unify_dictionaries()
    # Unsigned indices have no -1.
    signed = (chunk.indices.cast(pa.int64()).fill_null(-1) for chunk in column.chunks)
    chunks = [indices.to_numpy(zero_copy_only=False) for indices in signed]
    positions = np.concatenate([np.empty(0, np.intp), *chunks]).astype(np.intp)
    dictionary = column.chunk(0).dictionary if chunks else pa.array([], column.type.value_type)
    if not categories:
        return pa.chunked_array([dictionary]), positions
    # Unused categories are kept in the dictionary, and the order of categories is the dtype's.
    used = np.bincount(positions + 1, minlength=len(dictionary) + 1)[1:] > 0
    moved = np.append(np.cumsum(used) - 1, -1)
    indices = pa.array(np.flatnonzero(used), pa.int32())
    distinct = pa.chunked_array([pa.DictionaryArray.from_arrays(indices, dictionary)])
    return distinct, moved[positions]
