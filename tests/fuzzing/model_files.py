"""Model files changed in their structure and signed anew: each is refused, or is a model that works.

``python -m tests.fuzzing.model_files --n 20000 --seed 0`` makes that many of them, from models of every
kind and from the golden files of every version, and prints a line for each that is neither. ``--only K``
repeats one.
"""

import argparse
import copy
import json
import random
import sys
import tracemalloc
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from lanam.persistence import _restored
from lanam.storage import ModelFileError, from_bytes, of_estimator, to_bytes
from lanam.storage.container import VERSION, unpack, version_of
from tests.fuzzing.usage import use
from tests.storage.cases import NAMES, case
from tests.storage.hostile import put_together

GOLDEN = tuple(sorted((Path(__file__).parents[1] / "storage" / "golden").rglob("*.lanam")))
SOURCES = (*(path.stem for path in GOLDEN), *NAMES)

#: The memory that a file may take, in bytes for each of its own, and for a small one.
GROWTH, FREE = 50, 50e6

STRANGE = [
    None, True, 0, 1, -1, 2, 3, 2**31, 2**63, 10**400, 0.0, -0.0, -0.5, 1e-320, 1e-9, 1e140, 1e308, "", "x",
    "\x1b[31m", "\u202e", "\ud800", [], [[]], [0], [0, 1], [1, 0], [None], {}, {"tuple": []}, {"a": 1},
    {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"set": []}, {"dict": [[1, 2]]},
]  # fmt: skip
#: Words that stand somewhere in a content, so that one of them may stand somewhere else.
WORDS = [
    "gaussian", "poisson", "bernoulli", "softmax", "log-variance", "LANAMRegressor", "LANAMClassifier",
    "numeric", "categorical", "smooth", "level", "pair", "interaction", "active", "switched off: evidence",
    "switched off: constant column", "knots", "levels", "categories", "grid", "text", "object", "float64",
    "int64", "bool", "pandas", "polars", "default", "clamp", "zero", "smooth", "gelu", "relu", "erf",
]  # fmt: skip
FACTORS = [-1.0, 0.0, 0.5, 2.0, 1e-300, 1e-160, 1e-30, 1e10, 1e70, 1e100, 1e140, 1e149]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e-320, 1e149, -1e149, 1e200, 8e307, -1.7e308]


@cache
def parts(source):
    """The version, content and arrays of a file."""
    if source in NAMES:
        data = to_bytes(of_estimator(case(source)[0]))
    else:
        data = next(path for path in GOLDEN if path.stem == source).read_bytes()
    contents = unpack(data)
    return version_of(data), json.dumps(contents.content), contents.arrays


def places(value, path=()):
    """The way to every value of a content."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def at(value, path):
    """The value at the end of a way."""
    for step in path:
        value = value[step]
    return value


def change_value(rng, content, arrays):
    """Another value, of the same type or of another."""
    *way, key = rng.choice(list(places(content)))
    parent = at(content, way)
    value = parent[key]
    if isinstance(value, bool):
        parent[key] = not value
    elif isinstance(value, int | float) and rng.random() < 0.7:
        new = value * rng.choice(FACTORS) + rng.choice([0, 0, 1])
        parent[key] = int(new) if isinstance(value, int) and np.isfinite(new) else new
    elif isinstance(value, str) and rng.random() < 0.7:
        parent[key] = rng.choice(WORDS)
    else:
        parent[key] = copy.deepcopy(rng.choice(STRANGE))


def change_keys(rng, content, arrays):
    """A key or item less, more, twice or elsewhere."""
    *way, key = rng.choice(list(places(content)))
    parent = at(content, way)
    change = rng.randrange(4)
    if change == 0:
        del parent[key]
    elif isinstance(parent, list):
        if change == 1:
            parent.insert(key, copy.deepcopy(parent[key]))
        elif change == 2:
            parent.reverse()
        else:
            del parent[key:]
    elif change == 1:
        parent[rng.choice(["x", "type", "noise_df", "dialect"])] = copy.deepcopy(parent[key])
    else:
        other = rng.choice(list(parent))
        parent[key], parent[other] = parent[other], parent[key]


def exchange(rng, content, arrays):
    """A value from elsewhere in the content."""
    everywhere = list(places(content))
    *way, key = rng.choice(everywhere)
    at(content, way)[key] = copy.deepcopy(at(content, rng.choice(everywhere)))


def change_numbers(rng, content, arrays):
    """Numbers of an array: one, all of them, or their order."""
    name = rng.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name].copy()
    change, place = rng.randrange(6), rng.randrange(array.size)
    real = array.dtype.kind == "f"
    with np.errstate(all="ignore"):
        if change == 0:
            array = array[::-1].copy()
        elif change == 1 and real:
            array *= rng.choice(FACTORS)
        elif change == 2:
            array[...] = array.flat[place]
        elif change == 3 and real:
            array.flat[place] *= rng.choice(FACTORS)
        elif real:
            array.flat[place] = rng.choice(NUMBERS)
        else:
            ends = np.iinfo(array.dtype)
            array.flat[place] = rng.choice([ends.min, ends.max, 0, 1, 500, -500 % (ends.max + 1)])
    arrays[name] = array


def change_arrays(rng, content, arrays):
    """An array of another shape or type, less, more, or of another name."""
    name, other = rng.choice(list(arrays)), rng.choice(list(arrays))
    array, change = arrays[name], rng.randrange(7)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[f"{name} more"] = array
    elif change == 2:
        arrays[name], arrays[other] = arrays[other], array
    elif change == 3:
        arrays[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array
    elif change == 4:
        arrays[name] = np.concatenate([array, array])
    elif change == 5:
        arrays[name] = array.T if array.ndim == 2 else array[:, None]
    else:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(["f8", "i4", "i2", "u1"]))


def grow(rng, content, arrays):
    """Dimensions that fit each other, and are large: of a term, a column, or the classes."""
    name = rng.choice([name for name in arrays if name.startswith(("term", "noise term"))] or [""])
    prefix = " ".join(name.split()[: 3 if name.startswith("noise") else 2])
    times = rng.choice([2, 3, 50, 2000])
    for key in [key for key in arrays if key.startswith(prefix)]:
        if arrays[key].size * times < 1 << 22:
            arrays[key] = np.repeat(arrays[key], times, axis=rng.randrange(arrays[key].ndim))


CHANGES = (change_value, change_keys, exchange, change_numbers, change_numbers, change_arrays, grow)


def signed_file(version, content, arrays):
    """The file of these parts, with its checksum."""
    entries, stored = [], []
    for name, array in arrays.items():
        kind = array.dtype.str[1:]
        data = np.ascontiguousarray(array).tobytes()
        shape = list(array.shape)
        entries.append(
            {"name": name, "dtype": kind, "shape": shape, "encoding": "raw", "length": len(data)}
        )
        stored.append(data)
    return put_together({"content": content, "arrays": entries}, b"".join(stored), version=version)


def changed_file(rng, sources=SOURCES):
    """A file with one to four changes, its source and their names."""
    source = rng.choice(sources)
    version, content, arrays = parts(source)
    content, arrays = json.loads(content), dict(arrays)
    names = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        change = rng.choice(CHANGES)
        try:
            change(rng, content, arrays)
            names.append(change.__name__)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            continue  # what it would change went with an earlier change
    if rng.random() < 0.05:
        version = rng.randrange(VERSION + 2)
    return signed_file(version, content, arrays), f"{source}: {', '.join(names)}"


def outcome(data, *, memory=False):
    """``refused`` or ``works``; anything else is raised."""
    if memory:
        tracemalloc.start()
    try:
        model = _restored(from_bytes(data))
    except ModelFileError as error:
        words = str(error)
        assert len(words) < 400, words
        assert words.isprintable(), words
        return "refused"
    finally:
        if memory:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak <= FREE + GROWTH * len(data), f"{peak:,} bytes from {len(data):,}"
    use(model)
    return "works"


def attempt(k, seed, sources=SOURCES):
    """The outcome of file number ``k``, and the changes."""
    data, changes = changed_file(random.Random(f"{seed} {k}"), sources)
    return outcome(data, memory=k % 5 == 0), changes


def run(numbers, seed, sources=SOURCES, report=print):
    """Counts of outcomes; failures are reported with how to repeat them."""
    counts = Counter()
    for k in numbers:
        try:
            result, _ = attempt(k, seed, sources)
        except Exception as error:
            result = "FAILED"
            changes = changed_file(random.Random(f"{seed} {k}"), sources)[1]
            report(f"--seed {seed} --only {k}  # {changes}: {type(error).__name__}: {error}"[:300])
        counts[result] += 1
    return counts


def main(argv=None):
    """Run the fuzzer; the exit code is 1 if a file fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000, help="number of files")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", type=int, help="one file, with the traceback of its failure")
    chosen = parser.parse_args(argv)
    if chosen.only is not None:
        print(*attempt(chosen.only, chosen.seed))
        return 0
    counts = run(range(chosen.n), chosen.seed)
    print(", ".join(f"{counts[key]} {key}" for key in ("refused", "works", "FAILED")))
    return int(counts["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
