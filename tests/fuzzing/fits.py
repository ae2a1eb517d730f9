"""Fits to tables of awkward columns: each is refused clearly, or is a model that works.

``python -m tests.fuzzing.fits --n 3000 --seed 0`` makes that many of them, of every family, in memory and
from files, and prints a line for each that is neither. ``--start K`` goes on from number K, ``--only K``
repeats one.
"""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival
from lanam.core.fit import prepare
from lanam.core.rows import quadratics, sketches, statistics, summaries
from lanam.errors import Message
from tests.fuzzing.usage import explain, predict, write

#: Large tables are rare: each costs as much as a hundred small ones.
SIZES = {50: 0.62, 700: 0.3, 5_000: 0.07, 70_000: 0.01}
FAMILIES = ("gaussian", "poisson", "bernoulli", "classes")

#: Of each of these, others of the same kind of target that a case may have instead.
RELATIVES = {
    "gaussian": ("student", "lognormal", "gamma", "tweedie", "survival"),
    "poisson": ("negative_binomial", "binomial"),
    "bernoulli": ("ordinal",),
    "classes": ("ordinal",),
}

#: Numbers of rows at which the code takes another way, and lower ones: small tables then take it, too.
THRESHOLDS = (
    (prepare, "SAMPLE_ROWS", 100),
    (prepare, "NOISE_ROWS", 400),
    (quadratics, "MANY_ROWS", 300),
    (sketches, "EXACT_VALUES", 200),
    (statistics, "CHUNK_ROWS", 128),
    (summaries, "_MANY_ROWS", 256),
)

#: A model is used on at most this many of its training rows.
_MOST_ROWS = 1000


# --- columns ----------------------------------------------------------------------------------------


def spike(rng, n):
    """Nearly all rows at one value."""
    share = rng.choice([0.5, 0.9, 0.99, 0.999])
    return np.where(rng.random(n) < share, rng.choice([0.0, -3.0, 1e6]), rng.lognormal(size=n))


def near_constant(rng, n):
    """One value up to its last digits."""
    return rng.choice([1.0, 1e6]) * (1.0 + 1e-13 * rng.integers(0, 3, n))


def heavy_tails(rng, n):
    """A few values orders of magnitude beyond the others."""
    return rng.choice([rng.standard_cauchy(n), np.exp(4.0 * rng.standard_normal(n))])


def two_valued(rng, n):
    """Two values, one of them rare or not."""
    return np.where(rng.random(n) < rng.choice([0.5, 0.05, 2.0 / n]), *rng.normal(size=2))


def integer_codes(rng, n):
    """Few or many integers."""
    return rng.integers(0, rng.choice([3, 12, 300, 100_000]), n)


def offset(rng, n):
    """Noise on a large offset."""
    return rng.choice([1e9, -1e9, 1e15]) + rng.standard_normal(n)


def extreme_unit(rng, n):
    """Values of a tiny or huge unit."""
    return rng.choice([1e-150, 1e-9, 1e12, 1e130]) * rng.standard_normal(n)


def ordinary(rng, n):
    """Nothing awkward, as most columns of most tables."""
    return rng.choice([rng.standard_normal(n), rng.random(n)])


def boolean(rng, n):
    """Truth values."""
    return rng.random(n) < rng.choice([0.5, 0.02])


def few_categories(rng, n):
    """Strings, one of which may be rare."""
    return rng.choice(["a", "b", "", "=d"], n, p=rng.dirichlet([0.5] * 4))


def many_categories(rng, n):
    """Up to thousands of strings, some of them frequent."""
    n_levels = rng.choice([30, 1500, 20_000])
    return np.array([f"level {k}" for k in (n_levels * rng.random(n) ** 3).astype(int)])


COLUMNS = (
    spike, near_constant, heavy_tails, two_valued, integer_codes, offset, extreme_unit, ordinary,
    ordinary, boolean, few_categories, many_categories,
)  # fmt: skip


def is_numeric(column):
    """Whether a column has numbers, of numpy's types."""
    return column.dtype.kind in "iuf"


def with_missing(rng, column):
    """A column with missing values: none, few, half, most or all of them."""
    share = rng.choice([0.0, 0.03, 0.5, 0.97, 1.0], p=[0.55, 0.15, 0.15, 0.12, 0.03])
    if share == 0.0:
        return column
    missing = rng.random(len(column)) < share
    if column.dtype == bool:
        return column.astype("boolean").mask(missing)
    return (column.astype(float) if is_numeric(column) else column).mask(missing)


def copied(rng, column):
    """An exact copy, or one that differs by little."""
    if rng.random() < 0.5 or not is_numeric(column):
        return column.copy()
    values = column.astype(float)
    noise = rng.choice([1e-12, 1e-6, 1e-2]) * rng.standard_normal(len(values))
    return values + noise * (values.std() if np.isfinite(values.std()) else 1.0)


def table(rng, n):
    """A table of awkward columns."""
    n_columns = int(rng.choice([1, 2, 4, 7, 25], p=[0.15, 0.2, 0.35, 0.25, 0.05]))
    if n > 1_000:
        n_columns = min(n_columns, 7)
    made = {}
    for number in range(n_columns):
        kind = COLUMNS[rng.integers(len(COLUMNS))]
        if made and rng.random() < 0.12:
            made[f"copy {number}"] = copied(rng, made[rng.choice(list(made))])
        else:
            made[f"{kind.__name__} {number}"] = with_missing(rng, pd.Series(kind(rng, n)))
    return pd.DataFrame(made)


# --- targets ----------------------------------------------------------------------------------------


def signal(rng, frame):
    """A function of some columns, of order one."""
    total = np.zeros(len(frame))
    for name in frame.columns[: 1 + rng.integers(frame.shape[1])]:
        if is_numeric(frame[name]):
            part = frame[name].rank(pct=True).fillna(0.3).to_numpy()
        else:
            part = pd.factorize(frame[name])[0] % 7 / 7.0
        total += rng.normal() * rng.choice([np.sin(6.0 * part), part, part > 0.5, part * total])
    return total


def gaussian(rng, f):
    """Numbers: of ordinary or no noise, in any unit, with a spike, with gross errors, constant."""
    y = f + rng.choice([0.0, 1e-9, 0.3, 3.0]) * rng.standard_normal(len(f))
    kind = rng.integers(8)
    if kind == 0:
        y = y * rng.choice([1e-100, 1e-8, 1e9, 1e100])
    elif kind == 1:
        y = y + rng.choice([1e9, -1e6])
    elif kind == 2:
        y = np.where(rng.random(len(y)) < 0.9, 0.0, y)
    elif kind == 3:
        y = np.where(rng.random(len(y)) < 0.02, 1e5 * rng.standard_cauchy(len(y)), y)
    elif kind == 4:
        y = np.round(y)
    elif kind == 5 and rng.random() < 0.3:
        y = np.full(len(y), rng.choice([0.0, 7.0, 1e9]))
    return y


def poisson(rng, f, exposure):
    """Counts: ordinary, nearly all zero, huge, overdispersed."""
    level = rng.choice([-5.0, 0.0, 2.0, 10.0])
    rate = np.exp(np.clip(level + rng.choice([0.0, 1.0, 3.0]) * f, -20.0, 20.0)) * exposure
    if rng.random() < 0.3:
        rate = rate * rng.gamma(0.5, 2.0, len(f))
    return rng.poisson(np.minimum(rate, 1e12))


def related(rng, family, y, f, roles):
    """The target of a family from that of another, and the roles of further columns."""
    if family in ("lognormal", "gamma", "tweedie"):
        level = np.exp(np.clip(f * rng.choice([0.0, 1.0, 3.0]), -30.0, 30.0))
        y = level * rng.choice([1e-8, 1.0, 1e9]) * rng.gamma(rng.choice([0.3, 5.0]), size=len(f))
        if family == "tweedie":
            y = np.where(rng.random(len(f)) < rng.choice([0.0, 0.4, 0.98]), 0.0, y)
        elif rng.random() < 0.1:
            y = np.round(y)
    elif family == "binomial":
        roles = {name: values for name, values in roles.items() if name != "exposure"}
        roles["trials"] = y + rng.integers(0, rng.choice([2, 50]), len(y))
    elif family == "survival":
        time = rng.exponential(np.exp(np.clip(f, -20.0, 20.0))) * rng.choice([1e-6, 1.0, 1e6])
        end = np.quantile(time, rng.choice([0.02, 0.7, 1.0]))
        time = np.round(time, 2) if rng.random() < 0.3 else time
        roles["event"] = np.where(time < end, rng.integers(1, rng.choice([2, 4]), len(f)), 0)
        y = np.minimum(time, end)
    return y, roles


def labels(rng, f, n_classes):
    """Classes: balanced or rare, noisy or separated."""
    noisy = f + rng.choice([0.0, 0.3, 3.0]) * rng.standard_normal(len(f))
    shares = rng.dirichlet([rng.choice([0.5, 10.0])] * n_classes)
    ends = np.quantile(noisy, np.cumsum(shares)[:-1])
    codes = np.searchsorted(ends, noisy)
    return codes if rng.random() < 0.5 else np.array([f"class {code}" for code in codes])


@dataclass
class Case:
    """A table, its target, and how to fit it."""

    X: pd.DataFrame
    y: np.ndarray
    family: str
    interactions: object
    roles: dict = field(default_factory=dict)
    from_files: bool = False
    lowered: bool = False
    seed: int = 0

    def __str__(self):
        where = "files" if self.from_files else "memory"
        more = " ".join([*self.roles, *(["lowered"] if self.lowered else [])])
        return (
            f"{self.family}, {len(self.X)} rows in {where}, {', '.join(self.X.columns)}; "
            f"interactions={self.interactions!r} {more}"
        )

    def estimator(self):
        """The estimator to fit."""
        shared = {"interactions": self.interactions, "random_state": self.seed, "n_jobs": 1}
        if self.family in ("bernoulli", "classes"):
            return LANAMClassifier(**shared)
        if self.family == "ordinal":
            return LANAMClassifier(likelihood="ordinal", **shared)
        if self.family == "survival":
            return LANAMSurvival(**shared)
        return LANAMRegressor(likelihood=self.family, **shared)


def case(k, seed, n_rows=None):
    """Case number ``k``, of any size or of this many rows."""
    rng = np.random.default_rng([seed, k])
    n = n_rows or int(rng.choice(list(SIZES), p=list(SIZES.values())))
    X = table(rng, n)
    f, roles = signal(rng, X), {}
    family = str(rng.choice(FAMILIES))
    if rng.random() < 0.25:
        weights = [[0.5, 1.0, 3.0], [0.0, 1.0], [0.0, 1e-3, 1.0, 100.0]][rng.integers(3)]
        roles["sample_weight"] = rng.choice(weights, n)
    if family == "gaussian":
        y = gaussian(rng, f)
    elif family == "poisson":
        exposure = np.ones(n)
        if rng.random() < 0.5:
            exposure = roles["exposure"] = rng.choice([1e-3, 0.5, 1.0, 100.0], n)
        y = poisson(rng, f, exposure)
    else:
        y = labels(rng, f, 2 if family == "bernoulli" else int(rng.integers(3, 7)))
    other = np.random.default_rng([seed, k, 2])
    if other.random() < 0.5:
        family = str(other.choice(RELATIVES[family]))
        y, roles = related(other, family, y, f, roles)
    named = [(X.columns[0], X.columns[-1])] if X.shape[1] > 1 else 1
    interactions = ("auto", "auto", 0, 2, named)[rng.integers(5)]
    from_files, lowered = bool(rng.random() < 0.3), bool(rng.random() < 0.3 and n >= 700)
    return Case(X, y, family, interactions, roles, from_files, lowered, int(rng.integers(1 << 31)))


# --- fits -------------------------------------------------------------------------------------------


def fitted(one, folder):
    """The model of a case."""
    model = one.estimator()
    if one.family == "survival":
        whole = one.X.assign(time=one.y, **one.roles)
        weight = {"sample_weight": "sample_weight"} if "sample_weight" in one.roles else {}
        return model.fit(whole, event="event", time="time", **weight)
    if not one.from_files:
        return model.fit(one.X, one.y, **one.roles)
    whole = one.X.assign(target=one.y, **one.roles)
    borders = np.linspace(0, len(whole), 4).astype(int)
    for number, (start, stop) in enumerate(pairwise(borders)):
        whole.iloc[start:stop].to_parquet(Path(folder) / f"{number}.parquet")
    return model.fit(folder, target="target", **{name: name for name in one.roles})


def strange_rows(one):
    """Training rows with unseen categories, values beyond the range, and missing values."""
    rng = np.random.default_rng(one.seed)
    rows = one.X.iloc[:30]
    numeric = [name for name in rows if is_numeric(rows[name])]
    strings = [name for name in rows if name.startswith(("few", "many"))]
    beyond = rows.assign(
        **{name: rows[name].astype(float) * rng.choice([-3.0, 1e3, 1e9]) + 1.0 for name in numeric}
    )
    unseen = rows.assign(**dict.fromkeys(strings, "never seen"))
    parts = [part.astype(object) for part in (rows, beyond, unseen)]
    missing = pd.concat(parts).mask(rng.random((3 * len(rows), rows.shape[1])) < 0.3)
    return pd.concat([*parts, missing], ignore_index=True)


@contextmanager
def strict():
    """All warnings are errors but the library's own, which point at the line of its user: this file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in (r"tests\.fuzzing\.", "__main__"):
            warnings.filterwarnings("ignore", category=UserWarning, module=module)
        yield


@contextmanager
def thresholds(*, lowered):
    """The library's thresholds, or lower ones."""
    with ExitStack() as stack:
        for module, name, value in THRESHOLDS if lowered else ():
            stack.enter_context(patch.object(module, name, value))
        yield


def is_refusal(error):
    """Whether an error is the library's answer to a table, and says in a line what to do."""
    source = traceback.extract_tb(error.__traceback__)[-1].filename
    own = "lanam" in Path(source).parts and type(error) in (ValueError, *_refusals())
    text = str(error)
    return own and 20 < len(text) < 500 and "\n" not in text


def _refusals(kind=Message):
    return [
        each
        for sub in kind.__subclasses__()
        for each in (sub, *_refusals(sub))
        if issubclass(each, ValueError)
    ]


def outcome(one):
    """``refused`` or ``works``; anything else is raised."""
    with tempfile.TemporaryDirectory() as folder, strict(), thresholds(lowered=one.lowered):
        try:
            model = fitted(one, folder)
        except ValueError as error:
            if not is_refusal(error):
                raise
            return f"refused: {error}"
        n_rows = len(one.X)
        some = np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS]
        predict(model, one.X.iloc[some])
        strange = strange_rows(one)
        predict(model, strange)
        explain(model, strange)
        if one.seed % 4 == 0:
            write(model)
    return "works"


def run(numbers, seed, n_rows=None, report=print):
    """Counts of outcomes, and the slowest fit; failures are reported with how to repeat them."""
    counts, slowest = Counter(), (0.0, None)
    for k in numbers:
        began, one = time.perf_counter(), case(k, seed, n_rows)
        try:
            result = outcome(one).split(":")[0]
        except Exception as error:
            result = "FAILED"
            what = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
            size = "" if n_rows is None else f" --rows {n_rows}"
            report(f"--seed {seed} --only {k}{size}  # {one}: {what}")
        counts[result] += 1
        slowest = max(slowest, (time.perf_counter() - began, k))
        if counts.total() % 50 == 0:  # what is known if it is stopped, and where to go on
            print(f"{dict(counts)}, next: --start {k + 1}", file=sys.stderr, flush=True)
    return counts, slowest


def main(argv=None):
    """Run the fuzzer; the exit code is 1 if a fit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000, help="number of fits")
    parser.add_argument("--start", type=int, default=0, help="number of the first fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="rows of every table, of any number by default")
    parser.add_argument("--only", type=int, help="one fit, with the traceback of its failure")
    chosen = parser.parse_args(argv)
    if chosen.only is not None:
        one = case(chosen.only, chosen.seed, chosen.rows)
        print(one, flush=True)
        print(outcome(one))
        return 0
    numbers = range(chosen.start, chosen.start + chosen.n)
    counts, (seconds, k) = run(numbers, chosen.seed, chosen.rows)
    print(", ".join(f"{counts[key]} {key}" for key in ("refused", "works", "FAILED")))
    print(f"slowest: {seconds:.1f} s, --only {k}")
    return int(counts["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
