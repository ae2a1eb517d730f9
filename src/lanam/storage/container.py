r"""Serialises plain values and arrays to the bytes of a file, and back, independently of models.

A file is::

    8 bytes    b"\x89LANAM\r\n"
    4 bytes    version of the format, little-endian
    4 bytes    length of the header, little-endian
    header     JSON in UTF-8: {"content": ..., "arrays": [{name, dtype, shape, encoding, length}, ...]}
    arrays     their bytes, one after the other in the header's order
    32 bytes   SHA-256 of everything before

The reader trusts nothing: lengths are compared with the file's before anything is allocated, and the memory
that its values and arrays will need is limited by the file's size. See docs/file-format.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict

import numpy as np

from lanam.storage.errors import DamageError, ModelFileError, require

#: The first byte is not text in any encoding, and the last two reveal a change of line endings.
MAGIC = b"\x89LANAM\r\n"
VERSION = 4

_START = struct.Struct("<8sII")
_N_CHECK = hashlib.sha256().digest_size
SMALLEST = _START.size + _N_CHECK

#: Types of numbers in a file.
_DTYPES = {"f8": "<f8", "i4": "<i4", "i2": "<i2", "u1": "|u1"}

#: Limits of a file in bytes, of its header in bytes, and of the values and arrays in the header.
LARGEST = 1 << 31
_LONGEST_HEADER = 1 << 26
_MOST_VALUES = 1 << 21
_MOST_ARRAYS = 1 << 17

#: The memory that a file may need: this many bytes for each of its own, and for a small one a constant.
MOST_GROWTH = 50
LEAST_ROOM = 1 << 27
#: Bytes of memory needed per byte of the header, per value in it, and per byte of an array, when it is read
#: and used: i4 has the digits of matrices (a triangle becomes a square of doubles), i2 the statuses of
#: pairs, each of which becomes an object.
_PER_BYTE, _PER_VALUE = 6, 200
_PER_ARRAY_BYTE = {"f8": 4, "i4": 6, "i2": 150, "u1": 4}

_RAW, _PACKED = "raw", "shuffled-zlib"


class Entry(TypedDict):
    """An array in the header of a file."""

    name: str
    dtype: str
    shape: list[int]
    encoding: str
    length: int


@dataclass(frozen=True)
class Contents:
    """The content of a file: plain values, and arrays by name."""

    content: Any
    arrays: Mapping[str, np.ndarray]


def pack(contents: Contents) -> bytes:
    """The bytes of a file."""
    header, stored = _parts(contents)
    if not _plausible(header, [entry for entry, _ in stored], _length(header, stored)):
        # Arrays of zeros that compress too well: stored raw, they pass the reader's limit.
        header, stored = _parts(contents, raw=True)
    entries = [entry for entry, _ in stored]
    if (
        len(header) > _LONGEST_HEADER
        or _count(header) > _MOST_VALUES
        or len(entries) > _MOST_ARRAYS
        or not _plausible(header, entries, _length(header, stored))
    ):
        raise ValueError(
            "the model has too many categories to be saved: combine categories, or leave out columns "
            "that only number the rows"
        )
    start = _START.pack(MAGIC, VERSION, len(header))
    whole = b"".join([start, header, *(data for _, data in stored)])
    if len(whole) + _N_CHECK > LARGEST:
        raise ValueError(f"the model has {len(whole):,} bytes, and a file {LARGEST:,} at most")
    return whole + hashlib.sha256(whole).digest()


def _parts(contents: Contents, *, raw: bool = False) -> tuple[bytes, list[tuple[Entry, bytes]]]:
    """The header, and every array's entry in it and bytes."""
    stored = [_store(name, array, raw=raw) for name, array in contents.arrays.items()]
    values = {"content": contents.content, "arrays": [entry for entry, _ in stored]}
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode("ascii"), stored


def _length(header: bytes, stored: list[tuple[Entry, bytes]]) -> int:
    return SMALLEST + len(header) + sum(len(data) for _, data in stored)


def _store(name: str, array: np.ndarray, *, raw: bool = False) -> tuple[Entry, bytes]:
    """An array's entry in the header, and its bytes, compressed where that makes them fewer."""
    dtype = next(key for key, value in _DTYPES.items() if np.dtype(value) == array.dtype)
    data, encoding = np.ascontiguousarray(array, dtype=_DTYPES[dtype]).tobytes(), _RAW
    if not raw:
        packed = zlib.compress(_shuffled(array, dtype), 6)
        if len(packed) < len(data):
            data, encoding = packed, _PACKED
    entry: Entry = {
        "name": name,
        "dtype": dtype,
        "shape": list(array.shape),
        "encoding": encoding,
        "length": len(data),
    }
    return entry, data


def _shuffled(array: np.ndarray, dtype: str) -> bytes:
    """The first bytes of all numbers, then the second ones and so on, which compresses better.

    Integers have the sign in the last bit, so that the leading bytes of small ones are zeros.
    """
    flat = np.ascontiguousarray(array, dtype=_DTYPES[dtype]).ravel()
    if dtype.startswith("i"):
        flat = (flat << 1) ^ (flat >> (8 * flat.itemsize - 1))
    return flat.view(np.uint8).reshape(len(flat), flat.itemsize).T.tobytes()


def _unshuffled(data: bytes, dtype: str) -> np.ndarray:
    kind = np.dtype(_DTYPES[dtype])
    parts = np.frombuffer(data, dtype=np.uint8).reshape(kind.itemsize, len(data) // kind.itemsize)
    flat = np.ascontiguousarray(parts.T).view(kind).ravel()
    if not dtype.startswith("i"):
        return flat
    unsigned = flat.view(f"<u{kind.itemsize}")
    return np.asarray((unsigned >> 1).view(kind) ^ -(flat & 1))


def version_of(data: bytes) -> int:
    """The version of the format in the first bytes of a file, if they are those of a model."""
    if not data:
        raise ModelFileError("is empty: save the model again, or copy the file again")
    if data[:6] == MAGIC[:6] and len(data) >= _START.size and data[:8] != MAGIC:
        raise ModelFileError(
            "was sent as text, which changed its line endings: copy it in binary mode"
        )
    if not MAGIC.startswith(data[:8]):
        raise ModelFileError("is not a lanam model", "such files are written by {model.save(path)}")
    require(len(data) >= SMALLEST, "it ends too early")
    return int(_START.unpack_from(data)[1])


def unpack(data: bytes) -> Contents:
    """The content of a file; `DamageError` for anything inconsistent."""
    _, _, n_header = _START.unpack_from(data)
    ends = _START.size + n_header
    require(n_header <= _LONGEST_HEADER, "its header is too long")
    require(ends + _N_CHECK <= len(data), "it ends too early")
    checksum = hashlib.sha256(memoryview(data)[:-_N_CHECK]).digest()
    require(checksum == data[-_N_CHECK:], "its checksum does not match")
    text = data[_START.size : ends]
    require(_plausible(text, [], len(data)), "its header is too large")
    header = _parse(text)
    require(isinstance(header, dict) and set(header) == {"content", "arrays"}, "its header")
    entries = header["arrays"]
    require(isinstance(entries, list) and len(entries) <= _MOST_ARRAYS, "its list of arrays")
    for entry in entries:
        _require_entry(entry)
    names = [entry["name"] for entry in entries]
    require(len(set(names)) == len(names), "two of its arrays have the same name")
    n_stored = sum(entry["length"] for entry in entries)
    require(ends + n_stored + _N_CHECK == len(data), "its arrays have not the file's length")
    require(_plausible(text, entries, len(data)), "its arrays are too large")
    arrays, start, view = {}, ends, memoryview(data)
    for entry in entries:
        stop = start + entry["length"]
        arrays[entry["name"]] = _array(entry, view[start:stop])
        start = stop
    return Contents(header["content"], arrays)


def _count(header: bytes) -> int:
    """An upper bound of the number of values in a header."""
    return sum(header.count(sign) for sign in (b",", b"[", b"{"))


def _parse(header: bytes) -> Any:
    require(_count(header) <= _MOST_VALUES, "its header has too many values")
    try:
        return json.loads(
            header.decode("utf-8"),
            parse_constant=_reject_constant,
            object_pairs_hook=_without_repetition,
        )
    except (ValueError, RecursionError):  # not UTF-8, no JSON, numbers too long, nested too deep
        raise DamageError("its header is not the JSON that it should be") from None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key twice")
    return result


def _whole(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _require_entry(entry: Entry) -> None:
    require(
        isinstance(entry, dict) and set(entry) == set(Entry.__annotations__),
        "an entry of its list of arrays",
    )
    require(isinstance(entry["name"], str), "an array's name")
    name = entry["name"][:40]
    require(isinstance(entry["dtype"], str) and entry["dtype"] in _DTYPES, f"the type of {name!r}")
    shape = entry["shape"]
    require(isinstance(shape, list) and len(shape) <= 2, f"the shape of {name!r}")
    require(all(map(_whole, shape)), f"the shape of {name!r}")
    require(entry["encoding"] in (_RAW, _PACKED), f"the encoding of {name!r}")
    require(_whole(entry["length"]), f"the length of {name!r}")
    if entry["encoding"] == _RAW:
        require(entry["length"] == _size_of(entry), f"the length of {name!r}")


def _size_of(entry: Entry) -> int:
    return int(math.prod(entry["shape"]) * np.dtype(_DTYPES[entry["dtype"]]).itemsize)


def _plausible(header: bytes, entries: list[Entry], size: int) -> bool:
    """Whether a file of this size may need the memory that it does, so that no small file fills it."""
    needed = _PER_BYTE * len(header) + _PER_VALUE * _count(header)
    needed += sum(_PER_ARRAY_BYTE[entry["dtype"]] * _size_of(entry) for entry in entries)
    return needed <= max(LEAST_ROOM, MOST_GROWTH * size)


def _array(entry: Entry, data: memoryview) -> np.ndarray:
    kind, size = np.dtype(_DTYPES[entry["dtype"]]), _size_of(entry)
    if entry["encoding"] == _PACKED:
        inflate = zlib.decompressobj()
        try:
            content = inflate.decompress(data, size + 1)  # at most one byte too many
        except zlib.error:
            raise DamageError(f"{entry['name'][:40]!r} cannot be unpacked") from None
        whole = inflate.eof and not inflate.unused_data and len(content) == size
        require(whole, f"{entry['name'][:40]!r} has another length than it says")
        flat = _unshuffled(content, entry["dtype"])
    else:
        flat = np.frombuffer(data, dtype=kind)
    # A writable copy in native byte order, as a fitted model has them.
    return np.array(flat.reshape(entry["shape"]), dtype=kind.newbyteorder("="))
