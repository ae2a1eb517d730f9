"""A model as one SQL query that computes mean and variance of every row's prediction.

The mean of a term is a CASE expression of its column's value, nested like a binary search: no join, nothing
to create, and as fast as the database reads rows; means by a join are fifty times slower in sqlite.

The variance needs the tables of all coordinates, which are part of the query and joined by entry, and their
product with the factor. Row-based databases (sqlite) are ten times faster with the factor's numbers in
expressions, columnar ones (duckdb) with the factor as a table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lanam.data import CATEGORICAL, Column, Schema
from lanam.editing import Edit, edit_words
from lanam.explain.portable import PortableModel, TableAxis
from lanam.export.complete import (
    Array,
    CompleteModel,
    CompleteTerm,
    complete,
    hook_of,
    model_names,
    require_apart,
    results_of,
)
from lanam.export.sql_text import (
    by_interval,
    by_value,
    exponential,
    level_literal,
    next_above,
    number,
    quoted,
    scaled,
    total,
)
from lanam.text import one_line

#: Digits of numbers that only variances depend on.
_DIGITS = 11
#: sqlite joins at most 64 tables, and returns at most 2000 columns.
_MOST_JOINS = 56
_MOST_COLUMNS = 1900


@dataclass(frozen=True)
class SqlDialect:
    """Expressions that differ between databases; ``{}`` stands for the column.

    ``number``, ``text``, ``truth`` and ``category`` (numeric levels) read a column's value, ``entry`` is
    the integer part of a nonnegative number. ``kept`` prevents a common table expression from being
    evaluated repeatedly. Factors with up to ``unrolled`` numbers are written into expressions, larger
    ones as a table.
    """

    number: str
    text: str
    truth: str
    category: str
    entry: str
    kept: str
    unrolled: int


DIALECTS = {
    # Tables imported from CSV have empty strings for missing values. Concatenating nothing removes the
    # column's collation from comparisons.
    "sqlite": SqlDialect(
        number="CAST(NULLIF({}, '') AS REAL)",
        text="(CAST({} AS TEXT) || '')",
        truth="{}",
        category="{}",
        entry="CAST({} AS INTEGER)",
        kept="MATERIALIZED ",
        # Parsing time grows with the square of this number, to some seconds.
        unrolled=20_000,
    ),
    "duckdb": SqlDialect(
        number="NULLIF(CAST({} AS DOUBLE), 'NaN'::DOUBLE)",
        text="CAST({} AS VARCHAR)",
        truth="NULLIF(CAST({} AS DOUBLE), 'NaN'::DOUBLE)",
        category="CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN NULL ELSE {0} END",
        entry="CAST(floor({}) AS INTEGER)",
        kept="MATERIALIZED ",
        unrolled=0,
    ),
    "standard": SqlDialect(
        number="CAST({} AS DOUBLE PRECISION)",
        text="CAST({} AS VARCHAR)",
        truth="CAST({} AS INTEGER)",
        category="{}",
        entry="CAST(FLOOR({}) AS INTEGER)",
        kept="",
        unrolled=0,
    ),
}


def sql_query(
    portable: PortableModel,
    schema: Schema,
    *,
    table: str | Sequence[str] = "data",
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] | None = None,
    dialect: str = "sqlite",
    variance: bool = True,
    edits: Sequence[Edit] = (),
) -> str:
    """The query that scores a table's rows.

    Parameters
    ----------
    portable, schema
        The tables of a model, and the schema of its columns.
    table
        The name of the table; a tuple of schema and table.
    columns
        Names of columns in the table, where they differ from those of the model.
    keep
        Columns of the table to select next to the results; by default those that the model reads.
    dialect
        ``"sqlite"`` (3.35 or later), ``"duckdb"`` or ``"standard"``.
    variance
        Whether to compute the variance, and with it predictions on the response scale.
    edits
        Records of the edits, written as comments.

    Examples
    --------
    >>> import sqlite3
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.explain.portable import explain_portable
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> portable = explain_portable(model._model, model._schema)
    >>> query = sql_query(portable, model._schema, table="patients", variance=False)
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE patients AS SELECT 30.5 AS bmi, NULL AS bp")
    >>> (row,) = database.execute(query)
    >>> len(row)  # both columns, and the mean
    3
    >>> database.close()
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r} is not known: choose from {', '.join(DIALECTS)}")
    model = complete(portable)
    names = model_names(schema, model.features, columns)
    require_apart(list(names.values()), "names in SQL are case-insensitive")
    kept = list(names.values()) if keep is None else [keep] if isinstance(keep, str) else list(keep)
    results = results_of(portable, variance)
    require_apart([*kept, *results], "both are in the result: pass others by keep=")
    place = (table,) if isinstance(table, str) else tuple(table)
    source = ".".join(quoted(part, "the table") for part in place)
    query = _Query(model, schema, DIALECTS[dialect], _prefix([*place, *kept, *names.values()]))
    comments = (f"-- edited by hand: {one_line(edit_words(record))}\n" for record in edits)
    return "".join(comments) + query.text(source, names, kept, results, variance)


def _prefix(taken: Sequence[str]) -> str:
    """A prefix of the query's own names that no other name has."""
    prefix = "lanam_"
    while any(name.lower().startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


#: Where a row is on an axis: at an entry, or between it and the next, with the fraction of the way.
Read = tuple[int, int | None, str]

#: The expression at such a position.
Leaf = Callable[[int, int | None, str], str]


def choose(axis: TableAxis, column: Column, value: str, leaf: Leaf) -> str:
    """A CASE expression for the position of a column's value on an axis."""
    assert axis.missing is not None

    def at(entry: int) -> str:
        return leaf(entry, None, "")

    points = axis.points.tolist()
    if axis.kind == "codes":
        assert axis.other is not None
        options = [
            (level_literal(level, column.name), at(entry))
            for level, entry in zip(column.levels, points, strict=True)
            if entry != axis.other
        ]
        present = by_value(value, options, at(axis.other))
    elif axis.kind == "bins":
        present = by_interval(value, points, at)
    elif axis.kind == "levels":
        present = _nearest(points, axis.other, value, at)
    else:
        inside = _within_period(axis, value)
        present = by_interval(inside, points, lambda k: _between(points, k, inside, leaf))
    return f"CASE WHEN {value} IS NULL THEN {at(axis.missing)} ELSE {present} END"


def _nearest(points: list[float], other: int | None, value: str, at: Callable[[int], str]) -> str:
    assert other is not None

    def same(k: int) -> str:
        distance = f"ABS({value} - {number(points[k])})"
        return (
            f"CASE WHEN {distance} <= {number(1e-6 * abs(points[k]))} "
            f"THEN {at(k)} ELSE {at(other)} END"
        )

    middles = [next_above(0.5 * (low + high)) for low, high in itertools.pairwise(points)]
    return by_interval(value, middles, same)


def _within_period(axis: TableAxis, value: str) -> str:
    """The value, moved by whole periods to where a cyclic column has knots."""
    if axis.period is None:
        return value
    start, end, period = (number(float(x)) for x in (*axis.points[[0, -1]], axis.period))
    moved = f"{value} - {period} * FLOOR(({value} - {start}) / {period})"
    return f"(CASE WHEN {value} < {start} OR {value} > {end} THEN {moved} ELSE {value} END)"


def _between(points: list[float], k: int, value: str, leaf: Leaf) -> str:
    if k in (0, len(points)):
        return leaf(max(k - 1, 0), None, "")
    low, high = points[k - 1], points[k]
    return leaf(k - 1, k, f"({value} - {number(low)}) / {number(high - low)}")


def _position(knots: bool, entry: int, following: int | None, way: str) -> str:
    """A row's position on an axis as a number: an entry, or a fraction between two."""
    if following is None:
        return number(entry) if knots else str(entry)
    return f"{number(entry)} + {way}"


def mean_expression(
    term: CompleteTerm, columns: Sequence[Column], values: Sequence[str], one: int
) -> str:
    """The contribution of a term to the mean of class ``one``."""
    mean = term.mean[:, one].reshape(term.shape)

    def within(reads: tuple[Read, ...]) -> str:
        """The expression given the positions on the first axes."""
        k = len(reads)
        if k == len(term.axes):
            return _multilinear(mean, reads)
        return choose(term.axes[k], columns[k], values[k], lambda *read: within((*reads, read)))

    return within(())


def _multilinear(mean: Array, reads: Sequence[Read]) -> str:
    """Multilinear interpolation of a table."""
    *others, (entry, following, way) = reads
    here = mean[..., entry]
    step = None if following is None else mean[..., following] - here
    if others:
        text = _multilinear(here, others)
        return text if step is None else f"{text} + ({way}) * ({_multilinear(step, others)})"
    text = number(float(here))
    return text if step is None else f"{text} + {number(float(step))} * ({way})"


@dataclass(frozen=True)
class _Query:
    """A chain of common table expressions, each of which reads the one before."""

    model: CompleteModel
    schema: Schema
    dialect: SqlDialect
    prefix: str

    def text(
        self,
        source: str,
        names: Mapping[int, str],
        kept: Sequence[str],
        results: Sequence[str],
        variance: bool,
    ) -> str:
        aliases = [f"k{k}" for k in range(len(kept))]
        read = [f"{self._value(f, name)} AS x{f}" for f, name in names.items()]
        carried = [
            f"r.{quoted(name, 'a column')} AS {short}"
            for name, short in zip(kept, aliases, strict=True)
        ]
        parts = [("rows", "", f"SELECT {_list(carried + read)} FROM {source} AS r")]
        means = [f"m{c}" for c in range(self.model.n_classes)]
        if variance:
            parts += self._variance_parts(aliases, means)
            outcomes = self._responses(means)
            last = parts[-1][0]
        else:
            outcomes, last = self._means(), "rows"
        expressions = [*aliases, *outcomes]
        called = [quoted(name, "a column") for name in (*kept, *results)]
        final = [f"{each} AS {name}" for each, name in zip(expressions, called, strict=True)]
        listed = ",\n".join(
            f"{self.prefix}{name}{entries} AS {self.dialect.kept if variance else ''}(\n{part}\n)"
            for name, entries, part in parts
        )
        return f"WITH {listed}\nSELECT {_list(final)}\nFROM {self.prefix}{last}\n"

    def _value(self, feature: int, name: str) -> str:
        column = self.schema.columns[feature]
        place = f"r.{quoted(name, f'column {column.name!r}')}"
        if column.kind != CATEGORICAL:
            return self.dialect.number.format(place)
        kind = {"string": self.dialect.text, "boolean": self.dialect.truth}
        return kind.get(column.holds, self.dialect.category).format(place)

    def _columns(self, term: CompleteTerm) -> tuple[list[Column], list[str]]:
        columns = [self.schema.columns[feature] for feature in term.features]
        return columns, [f"x{feature}" for feature in term.features]

    def _means(self) -> list[str]:
        """The mean of every class."""
        return [
            total([number(self.model.intercept[c]), *self._added(self.model.terms, c)])
            for c in range(self.model.n_classes)
        ]

    def _added(self, terms: Sequence[CompleteTerm], one: int) -> list[str]:
        """The contributions of terms to class ``one``."""
        return [f"({mean_expression(term, *self._columns(term), one)})" for term in terms]

    def _variance_parts(self, aliases: list[str], means: list[str]) -> list[tuple[str, str, str]]:
        """Positions, entries, coordinates, products with the factor, covariances."""
        carried = [*aliases, *means, "noise"]
        parts = [("positions", "", self._positions(aliases, means))]
        parts.append(("places", "", self._places(carried)))
        parts += [self._table(t, term) for t, term in enumerate(self.model.terms)]
        parts += self._reads(carried)
        read = parts[-1][0]
        if self._unrolled:
            parts.append(("products", "", self._products(carried, read)))
            squares = {at: f"({total(self._squares(*at))})" for at in self._output_pairs}
            parts.append(("moments", "", self._moments(carried, squares, "products")))
        else:
            parts.append(self._factor())
            parts.append(("products", "", self._joined_products(read)))
            parts.append(("sums", "", self._sums()))
            squares = {(k, m): f"s{k}_{m}" for k, m in self._output_pairs}
            together = f"{read} AS a JOIN {self.prefix}sums AS b ON a.id = b.id"
            parts.append(("moments", "", self._moments(carried, squares, together)))
        return parts

    @property
    def _output_pairs(self) -> list[tuple[int, int]]:
        return _pairs(self.model.n_outputs)

    @property
    def _unrolled(self) -> bool:
        return sum(map(np.count_nonzero, self._factors)) <= self.dialect.unrolled

    @property
    def _id(self) -> list[str]:
        """The column that identifies rows, if they are joined again."""
        return [] if self._unrolled else ["id"]

    @property
    def _size(self) -> int:
        return len(self.model.portable.factor)

    def _noise(self) -> str:
        portable = self.model.portable
        missing = [
            f"CASE WHEN x{f} IS NULL THEN {number(portable.missing_variance[f])} ELSE 0e0 END"
            for f in np.flatnonzero(portable.missing_variance).tolist()
        ]
        variance = number(portable.noise_variance)
        if self.model.noise_terms:
            logs = self._added(self.model.noise_terms, 0)
            variance = f"{variance} * exp({total([number(portable.log_noise), *logs])})"
        return total([variance, *missing])

    def _positions(self, aliases: list[str], means: list[str]) -> str:
        made = [f"{each} AS {name}" for each, name in zip(self._means(), means, strict=True)]
        made.append(f"{self._noise()} AS noise")
        for t, term in enumerate(self.model.terms):
            for a, (axis, column, value) in enumerate(
                zip(term.axes, *self._columns(term), strict=True)
            ):
                position = choose(axis, column, value, partial(_position, axis.kind == "knots"))
                made.append(f"{position} AS p{t}_{a}")
        number_of_row = [] if self._unrolled else ["ROW_NUMBER() OVER () AS id"]
        return f"SELECT {_list(aliases + number_of_row + made)} FROM {self.prefix}rows"

    def _places(self, carried: list[str]) -> str:
        """Entries and weights; of a position between two entries, the lower and the upper one."""
        made = self._id
        for t, term in enumerate(self.model.terms):
            for a, axis in enumerate(term.axes):
                position = f"p{t}_{a}"
                if axis.kind != "knots":
                    made.append(f"{position} AS i{t}_{a}")
                    continue
                below = self.dialect.entry.format(position)
                made.append(f"{below} AS i{t}_{a}")
                made.append(
                    f"{below} + CASE WHEN {position} > {below} THEN 1 ELSE 0 END AS j{t}_{a}"
                )
                made.append(f"{position} - {below} AS w{t}_{a}")
        return f"SELECT {_list(carried + made)} FROM {self.prefix}positions"

    def _table(self, t: int, term: CompleteTerm) -> tuple[str, str, str]:
        """A term's table: entries, coordinates and own variances."""
        own = self._own(term)
        coordinates = [f"c{k}" for k in range(term.rows.shape[1])]
        header = ["entry", *coordinates, *(name for name, _ in own)]
        lines = []
        for entry, row in enumerate(term.rows.tolist()):
            values = [number(value, _DIGITS) for value in row]
            values += [number(of[entry]) for _, of in own]
            lines.append(f"({', '.join([str(entry), *values])})")
        return f"table{t}", f"({', '.join(header)})", "VALUES\n" + ",\n".join(lines)

    def _own(self, term: CompleteTerm) -> list[tuple[str, Array]]:
        if term.own_covariance is None:
            return []
        return [
            (f"o{c}_{d}", term.own_covariance[:, c, d]) for c, d in _pairs(self.model.n_classes)
        ]

    def _reads(self, carried: list[str]) -> list[tuple[str, str, str]]:
        """Rows with their coordinates, joined in groups of terms."""
        groups: list[list[int]] = [[]]
        joined = 0
        for t, term in enumerate(self.model.terms):
            needed = len(list(_corners(t, term)))
            if joined + needed > _MOST_JOINS:
                groups.append([])
                joined = 0
            groups[-1].append(t)
            joined += needed
        parts, before, read = [], "places", self._id
        for number_, group in enumerate(groups):
            later = [t for rest in groups[number_ + 1 :] for t in rest]
            waiting = [name for t in later for name in self._place_names(t)]
            made, joins = [], []
            for t in group:
                made += self._coordinates(t)
                joins += [
                    f"LEFT JOIN {self.prefix}table{t} AS t{t}_{k} ON t{t}_{k}.entry = {entry}"
                    for k, (entry, _) in enumerate(_corners(t, self.model.terms[t]))
                ]
            listed = _list(carried + read + waiting + [f"{each} AS {name}" for name, each in made])
            lines = [f"SELECT {listed} FROM {self.prefix}{before}", *joins]
            before, read = f"read{number_}", read + [name for name, _ in made]
            parts.append((before, "", "\n".join(lines)))
        self._require_width(len(carried) + len(read))
        return parts

    def _require_width(self, width: int) -> None:
        width = max(width, self._size * self.model.n_outputs)
        if width > _MOST_COLUMNS:
            raise ValueError(
                f"the variance needs {width} columns, and databases have at most 2000: pass "
                "variance=False for the mean alone, or export to='onnx'"
            )

    def _place_names(self, t: int) -> Iterator[str]:
        for a, axis in enumerate(self.model.terms[t].axes):
            yield from (f"{letter}{t}_{a}" for letter in ("ijw" if axis.kind == "knots" else "i"))

    def _coordinates(self, t: int) -> list[tuple[str, str]]:
        term = self.model.terms[t]
        corners = [(f"t{t}_{k}", weight) for k, (_, weight) in enumerate(_corners(t, term))]

        def read(column: str) -> str:
            return " + ".join(
                f"{weight} * {table}.{column}" if weight else f"{table}.{column}"
                for table, weight in corners
            )

        coordinates = [(f"c{t}_{k}", read(f"c{k}")) for k in range(term.rows.shape[1])]
        # Only entries of missing values and of levels have any, and these are not interpolated.
        own = [(f"{name}_{t}", f"{corners[0][0]}.{name}") for name, _ in self._own(term)]
        return coordinates + own

    @property
    def _coordinate_names(self) -> list[str]:
        """The columns of all coordinates, and none for the intercept, whose coordinate is one."""
        widths = [term.rows.shape[1] for term in self.model.terms]
        return [*(f"c{t}_{k}" for t, width in enumerate(widths) for k in range(width)), ""]

    @property
    def _factors(self) -> list[Array]:
        return [self.model.factor_of(output) for output in range(self.model.n_outputs)]

    def _own_total(self, c: int, d: int) -> str:
        terms = enumerate(self.model.terms)
        return total([f"o{c}_{d}_{t}" for t, term in terms if term.own_covariance is not None])

    def _products(self, carried: list[str], before: str) -> str:
        """Products of the vectors with the factor, whose numbers are in the expressions."""
        made = [
            f"{total(scaled(column, self._coordinate_names, _DIGITS))} AS f{output}_{k}"
            for output, factor in enumerate(self._factors)
            for k, column in enumerate(factor.T.tolist())
        ]
        made += [f"{self._own_total(c, d)} AS o{c}_{d}" for c, d in _pairs(self.model.n_classes)]
        return f"SELECT {_list(carried + made)} FROM {self.prefix}{before}"

    def _squares(self, k: int, m: int) -> list[str]:
        return [f"f{k}_{j} * f{m}_{j}" for j in range(self._size)]

    def _factor(self) -> tuple[str, str, str]:
        """The factor as a table: a row for each of its columns, outputs side by side."""
        n_rows = len(self._coordinate_names)
        header = [f"g{k}_{i}" for k in range(self.model.n_outputs) for i in range(n_rows)]
        lines = [
            "(" + ", ".join(number(value, _DIGITS) for value in row) + ")"
            for row in np.concatenate(self._factors).T.tolist()
        ]
        return "factor", f"({', '.join(header)})", "VALUES\n" + ",\n".join(lines)

    def _joined_products(self, before: str) -> str:
        """The same products, one row for each of the factor's columns."""
        factors = [f" * {name}" if name else "" for name in self._coordinate_names]
        made = [
            f"{total([f'g{k}_{i}{factor}' for i, factor in enumerate(factors)])} AS f{k}"
            for k in range(self.model.n_outputs)
        ]
        source = f"{self.prefix}{before} CROSS JOIN {self.prefix}factor"
        return f"SELECT {_list(['id', *made])} FROM {source}"

    def _sums(self) -> str:
        made = [f"SUM(f{k} * f{m}) AS s{k}_{m}" for k, m in self._output_pairs]
        return f"SELECT {_list(['id', *made])} FROM {self.prefix}products GROUP BY id"

    def _moments(
        self, carried: list[str], squares: Mapping[tuple[int, int], str], source: str
    ) -> str:
        """Covariances of the classes, from those of the outputs."""
        contrasts, made = self.model.contrasts, []
        for c, d in _pairs(self.model.n_classes):
            weights = np.outer(contrasts[c], contrasts[d])
            weights = weights + weights.T - np.diag(np.diag(weights))
            shared = [
                square if weights[at] == 1.0 else f"{number(weights[at])} * {square}"
                for at, square in squares.items()
            ]
            own = f"o{c}_{d}" if self._unrolled else f"({self._own_total(c, d)})"
            made.append(f"{total([*shared, own])} AS v{c}_{d}")
        return f"SELECT {_list(carried + made)} FROM {self.prefix}{source}"

    def _responses(self, means: list[str]) -> list[str]:
        """Mean, variance and prediction, in the order of their names."""
        variances = [f"v{c}_{c}" for c in range(len(means))]
        return [
            *means,
            *variances,
            *hook_of(_RESPONSES, self.model.portable)(self.model.portable, len(means)),
        ]


# Predictions from means m0, m1, ... and covariances v0_0, v0_1, ..., by family.


def _number_response(_: PortableModel, __: int) -> list[str]:
    return ["m0", "v0_0 + noise"]


def _lognormal_response(portable: PortableModel, _: int) -> list[str]:
    """Moments of the exponential of a mixture: each component's are ``exp(k m + k^2 v / 2)``."""

    def moment(order: float) -> str:
        def part(weight: float, mean: float, std: float) -> str:
            centre = f"m0 + {number(mean)} * sqrt(noise)"
            spread = f"(v0_0 + {number(std**2)} * noise)"
            both = f"({number(order)} * ({centre}) + {number(0.5 * order**2)} * {spread})"
            return f"{number(weight)} * {exponential(both)}"

        return f"({total([part(*each) for each in portable.noise_components])})"

    return [moment(1.0), f"{moment(2.0)} - {moment(1.0)} * {moment(1.0)}"]


def _amount_response(_: PortableModel, __: int) -> list[str]:
    mean = exponential("(m0 + 0.5e0 * v0_0)")
    return [mean, f"{mean} * {mean} * (exp(v0_0) * (1e0 + noise) - 1e0)"]


def _power_response(portable: PortableModel, _: int) -> list[str]:
    """The variance is a power of the mean, averaged over a normal link; at an exposure of one."""
    mean, power = exponential("(m0 + 0.5e0 * v0_0)"), portable.parameters["power"]
    link = f"({number(power)} * m0 + {number(0.5 * power**2)} * v0_0)"
    return [mean, f"noise * {exponential(link)} + {mean} * {mean} * (exp(v0_0) - 1e0)"]


def _clustered_response(_: PortableModel, __: int) -> list[str]:
    mean, variance = _amount_response(_, __)
    return [mean, f"{mean} + {variance}"]


def _count_response(_: PortableModel, __: int) -> list[str]:
    rate = exponential("(m0 + 0.5e0 * v0_0)")
    # The variance of a rate, and of a count given its rate (poisson_lognormal.dispersed).
    beyond = f"(exp(v0_0) * (1e0 + (noise - 1e0) / {rate}) - 1e0)"
    return [rate, f"{rate} + {rate} * {rate} * {beyond}"]


def _trial_response(portable: PortableModel, n_classes: int) -> list[str]:
    """Of one trial."""
    other, probability = _two_classes_response(portable, n_classes)
    return [probability, f"({probability}) * ({other})"]


def _hazard_response(_: PortableModel, __: int) -> list[str]:
    # At the mean of its logarithm, as curves have it; and the variance of a lognormal hazard.
    spread = f"(exp(v0_0) - 1e0) * {exponential('(2e0 * m0 + v0_0)')}"
    return [exponential("m0"), spread]


def _two_classes_response(_: PortableModel, __: int) -> list[str]:
    odds = f"(m0 / sqrt(1e0 + {number(math.pi / 8.0)} * v0_0))"
    return [f"1e0 / (1e0 + {exponential(f'({sign}{odds})')})" for sign in ("", "-")]


def _grades_response(portable: PortableModel, _: int) -> list[str]:
    """Between cut points ``sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))``."""
    cuts = [number(cut) for cut in portable.parameters["cut_points"]]
    spread = f"sqrt(1e0 + {number(math.pi / 8.0)} * v0_0)"
    below, above = (
        [f"1e0 / (1e0 + {exponential(f'({sign}(({cut} - m0) / {spread}))')})" for cut in cuts]
        for sign in ("-", "")
    )
    inner = [
        f"({low}) * ({high}) * (1e0 - {exponential(f'(({a} - {b}) / {spread})')})"
        for low, high, (a, b) in zip(above, below[1:], itertools.pairwise(cuts), strict=False)
    ]
    return [below[0], *inner, above[-1]]


def _classes_response(_: PortableModel, n_classes: int) -> list[str]:
    shares = []
    for c in range(n_classes):
        others = []
        for d in range(n_classes):
            if c != d:
                low, high = sorted((c, d))
                spread = f"(v{c}_{c} + v{d}_{d} - 2e0 * v{low}_{high})"
                shrunk = f"sqrt(1e0 + {number(math.pi / 8.0)} * {spread})"
                others.append(exponential(f"((m{d} - m{c}) / {shrunk})"))
        shares.append(f"(1e0 / ({total(['1e0', *others])}))")
    return [f"{share} / ({total(shares)})" for share in shares]


_RESPONSES = {
    "gaussian": _number_response,
    "student": _number_response,
    "lognormal": _lognormal_response,
    "gamma": _amount_response,
    "tweedie": _power_response,
    "negative_binomial": _clustered_response,
    "binomial": _trial_response,
    "poisson": _count_response,
    "bernoulli": _two_classes_response,
    "softmax": _classes_response,
    "ordinal": _grades_response,
    "survival": _hazard_response,
}


def _corners(t: int, term: CompleteTerm) -> Iterator[tuple[str, str]]:
    """The entries of a term's table that a row interpolates, and their weights."""
    choices = []
    for a, axis in enumerate(term.axes):
        w = f"w{t}_{a}"
        between = [(f"i{t}_{a}", f"(1e0 - {w})"), (f"j{t}_{a}", w)]
        choices.append(between if axis.kind == "knots" else [(f"i{t}_{a}", "")])
    for corner in itertools.product(*choices):
        entry = corner[0][0]
        for (following, _), axis in zip(corner[1:], term.axes[1:], strict=True):
            before = f"({entry})" if " " in entry else entry
            entry = f"{before} * {axis.n_entries} + {following}"
        yield entry, " * ".join(weight for _, weight in corner if weight)


def _pairs(size: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(size), 2))


def _list(parts: Sequence[str]) -> str:
    return ",\n  ".join(parts)
