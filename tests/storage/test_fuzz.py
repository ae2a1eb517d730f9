"""Many changed files: each is refused with the one error, or is a model that predicts.

Seeds are fixed. ``python -m tests.storage.test_fuzz 1000000 some-seed`` looks longer and elsewhere.
"""

import copy
import json
import random
import re
import struct
import sys
import tracemalloc
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lanam.core.model import scoring
from lanam.persistence import _restored
from lanam.storage import ModelFileError, from_bytes
from lanam.storage.container import VERSION, unpack
from tests.storage.golden.make import rows
from tests.storage.hostile import put_together, signed, taken_apart

FOLDER = Path(__file__).parent / "golden"
ROWS = pd.DataFrame(rows())

#: What stands in for a value of a header.
STRANGE = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, -(2**70), 10**400, 0.0, -0.5, 1e-320, 1e308, "", "x",
    "nan", "pair", "smooth", "knots", "active", "../../x", "\ud800", [], [[]], [0], [0, 1], [1, 0], [None],
    {}, {"tuple": [1]}, {"float": "nan"}, {"float": "inf"}, {"float": 1}, {"set": [[1]]}, {"dict": [[1]]},
    {"dict": [[[], 1]]}, {"a": 1, "b": 2}, json.loads("[" * 300 + "]" * 300),
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e149, -1e149, 1e200, 1e308, -1.7e308]


@cache
def known(name):
    data = (FOLDER / f"{name}-{VERSION}.lanam").read_bytes()
    header, stored = taken_apart(data)
    return data, header, stored


def flips(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cuts(rng, data):
    return data[: rng.randrange(len(data))]


def insertions(rng, data):
    place = rng.randrange(len(data))
    return data[:place] + rng.randbytes(rng.choice([1, 4, 100])) + data[place:]


def removals(rng, data):
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.choice([1, 4, 100]) :]


def copies(rng, data):
    source, place = rng.randrange(len(data)), rng.randrange(len(data))
    part = data[source : source + rng.choice([8, 64, 512])]
    return data[:place] + part + data[place + len(part) :]


BYTES = (flips, cuts, insertions, removals, copies)


def damaged(rng, name):
    """Changed bytes, which the checksum reveals."""
    return rng.choice(BYTES)(rng, known(name)[0])


def resigned(rng, name):
    """Changed, with the checksum made right."""
    return signed(rng.choice(BYTES)(rng, known(name)[0][:-32]))


def lengths(rng, name):
    """Another version, or another length of the header."""
    data = bytearray(known(name)[0][:-32])
    place = rng.choice([8, 12])
    (value,) = struct.unpack_from("<I", data, place)
    value = rng.choice([0, value - 1, value + 1, 2**31, 2**32 - 1, rng.randrange(2**32)])
    struct.pack_into("<I", data, place, value)
    return signed(bytes(data))


def places(value, path=()):
    """All values of a header, by the way to them."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


@cache
def all_places(name):
    return [path for path in places(json.loads(known(name)[1])) if path]


def headers(rng, name):
    """The header's values changed, taken away, repeated or exchanged, and put together well."""
    header = json.loads(known(name)[1])
    for _ in range(rng.choice([1, 1, 1, 3])):
        *way, key = rng.choice(all_places(name))
        parent = header
        try:
            for step in way:
                parent = parent[step]
            change = rng.randrange(6)
            if change == 0:
                del parent[key]
            elif change == 1 and isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            elif change == 2 and isinstance(parent, dict):
                parent[rng.choice(["x", *parent])] = parent[key]
            elif change == 3 and isinstance(parent[key], int | float):
                parent[key] = parent[key] * rng.choice([-1, 2, 0.5, 10**9]) + rng.choice([0, 1])
            else:
                parent[key] = copy.deepcopy(rng.choice(STRANGE))
        except (KeyError, IndexError, TypeError):  # the place went with an earlier change
            continue
    text = json.dumps(header)
    if rng.random() < 0.02:
        text = text.replace('"lanam"', '"n_rows": 1, "lanam"', 1)  # a key twice
    return put_together(text, known(name)[2])


def arrays(rng, name):
    """Numbers of arrays changed; everything else fits."""
    data, header, _ = known(name)
    header, found = json.loads(header), dict(unpack(data).arrays)
    for _ in range(rng.choice([1, 1, 2])):
        key = rng.choice([key for key, array in found.items() if array.size])
        array = found[key].copy()
        place = rng.randrange(array.size)
        change = rng.randrange(4)
        if change == 0:
            array = array[::-1]
        elif change == 1:
            array = array[:-1]
        elif array.dtype.kind == "f":
            array.flat[place] = rng.choice(NUMBERS)
        else:
            ends = np.iinfo(array.dtype)
            array.flat[place] = rng.choice([ends.min, ends.max, 0, 1])
        found[key] = array
    stored = b""
    for entry in header["arrays"]:
        array = found[entry["name"]]
        part = array.astype(array.dtype.newbyteorder("<")).tobytes()
        entry |= {"encoding": "raw", "length": len(part), "shape": list(array.shape)}
        stored += part
    return put_together(header, stored)


def outcome(data, thorough):
    """Whether a file is rejected; otherwise the model must work."""
    try:
        model = _restored(from_bytes(data))
    except ModelFileError as error:
        words = str(error)
        return "refused" if "\n" not in words and len(words) < 300 else f"refused by {words!r}"
    with np.errstate(all="ignore"):
        n_columns = model.n_features_in_
        columns = np.array([[0.0] * n_columns, [np.nan] * n_columns, [1.0] * n_columns])
        found = scoring.link_mean(model._model, columns)
        assert np.isfinite(found).all()
        scoring.link_moments(model._model, columns)
        scoring.term_variances(model._model, columns)
        if not thorough:
            return "works"
        str(model.summary())
        model.explain_global()
        repr(model)
        try:
            model.predict(ROWS)
        except ValueError as error:  # of another table than these rows
            words = "columns|column|feature"
            return "works" if re.search(words, str(error)) else f"fails with {error!r}"
    return "works"


def run(change, n, seed):
    """The numbers of changed files that are rejected and that load."""
    counts = {"refused": 0, "works": 0}
    for k in range(n):
        rng = random.Random(f"{seed} {k}")
        name = rng.choice(["regressor", "classifier"])
        data = change(rng, name)
        if data == known(name)[0]:
            continue
        try:
            counts[outcome(data, thorough=k % 10 == 0)] += 1
        except Exception as error:
            raise AssertionError(f"{change.__name__}, {name}, '{seed} {k}': {error!r}") from error
    return counts


@pytest.mark.filterwarnings("ignore")
class TestChangedFiles:
    """Two thousand of them: every kind of change many times, at every kind of place."""

    def test_damage_is_always_found(self):
        assert run(damaged, 500, seed=1)["works"] == 0

    @pytest.mark.parametrize(
        ("change", "n"), [(resigned, 500), (lengths, 150), (headers, 500), (arrays, 500)]
    )
    def test_with_the_right_checksum(self, change, n):
        counts = run(change, n, seed=2)
        assert counts["refused"] > 0.3 * n
        # Some reach beyond the checks: arguments, for instance, may be anything.
        assert counts["works"] > 0 or change is lengths

    def test_in_little_memory(self):
        tracemalloc.start()
        try:
            for change in (resigned, headers, arrays):
                run(change, 20, seed=3)
            assert tracemalloc.get_traced_memory()[1] < 50e6
        finally:
            tracemalloc.stop()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for change in (damaged, resigned, lengths, headers, arrays):
        print(change.__name__, run(change, int(sys.argv[1]) // 5, seed=sys.argv[2]))
