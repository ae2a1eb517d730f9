"""The only code that touches rows: sums over chunks of rows (method.md 2c).

All that a fit needs of the data is its log-likelihood as a quadratic in the prediction,

    log p(y | f) ~ constant + h' f - 1/2 f' diag(gamma) f,

exact and made once for a Gaussian likelihood, made anew around each new prediction for others.
With ``f = Z z``, ``Z = [W_1 T_1, ..., W_D T_D, 1]``, that is ``Z' diag(gamma) Z`` and ``Z' h``. Two forms
with one interface:

- ``RowQuadratic`` goes over the rows and builds ``Z`` on each call; cheap for few rows, and for an
  expansion that is used once;
- ``TableQuadratic`` sums the cross-tables ``W_d' diag(gamma) W_d'`` of entry pairs once; after that
  no call depends on the number of rows.

Whatever is asked of all rows is a job over parts of them, of which ``Rows.total`` merges the answers:
where the parts are does not matter here (``rows.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lanam.core.arrays import Array, IntArray, Intercept, sum_by
from lanam.core.knots import Position
from lanam.core.likelihoods import Likelihood, Softmax
from lanam.core.rows import AnyRows, Rows, StreamedRows, pieces
from lanam.core.tables import Totals
from lanam.core.workspace import Workspace

#: Rows at a time: few enough for what is computed of each to stay in the cache, and for memory to be used
#: again. Cross-tables are large themselves, so that it pays to have more rows for each.
CHUNK_ROWS = 1 << 13
_DESIGN_CHUNK_ROWS = 1 << 11
_TABLE_CHUNK_ROWS = 1 << 18

#: Of more terms than this fewer rows are summed into cross-tables at once.
_TERMS_AT_ONCE = 16

#: Cross-tables larger than this are not made, unless somebody says otherwise.
CROSS_TABLE_BYTES = 600e6


def read(position: Position, table: Array) -> Array:
    """Rows of a table, interpolated: ``W_d T_d`` without forming ``W_d``."""
    value = _read_along(position, table)
    if position.across is None:
        return value
    # The difference to the next row of the grid; the last one has no next, and no row reads it.
    change = np.zeros_like(table)
    np.subtract(table[position.stride :], table[: -position.stride], out=change[: -position.stride])
    step = _read_along(position, change)
    step *= position.across if table.ndim == 1 else position.across[:, None]
    value += step
    return value


def _read_along(position: Position, table: Array) -> Array:
    left = _take(table, position.index)
    if position.fraction is None:
        return left
    # Whoever stands on the last entry has no next one.
    step = _take(np.diff(table, axis=0, append=table[-1:]), position.index)
    step *= position.fraction if table.ndim == 1 else position.fraction[:, None]
    left += step
    return left


def _take(table: Array, index: IntArray) -> Array:
    # Either is about twice as fast as the other for its kind of table.
    return table[index] if table.ndim == 1 else np.take(table, index.astype(np.intp), axis=0)


def spread(position: Position, values: Array, size: int) -> Array:
    """Sums of row values per table entry: ``W_d' v``."""
    if position.across is not None:
        beyond = values * position.across
        here = replace(position, across=None)
        total = spread(here, values - beyond, size)
        total[position.stride :] += spread(here, beyond, size)[: -position.stride]
        return total
    if position.fraction is None:
        return sum_by(position.index, values, size)
    right = values * position.fraction
    total = sum_by(position.index, values - right, size)
    total[1:] += sum_by(position.index, right, size)[:-1]
    return total


def predict(rows: Rows, values: Sequence[Array], intercept: Intercept) -> Array:
    """The link-scale prediction of rows from the terms' tabulated values, all outputs at once."""
    f = np.empty((len(rows), *np.shape(intercept)))
    f[:] = intercept
    for position, table in zip(rows.positions, values, strict=True):
        f += read(position, table)
    return f


def entry_sums(rows: Rows, row_values: Array) -> list[Array]:
    """Sums of a row value per table entry, a vector a term."""
    return [
        spread(position, row_values, size)
        for position, size in zip(rows.positions, rows.sizes, strict=True)
    ]


def entry_weights(rows: AnyRows) -> Totals:
    """Weight at every table entry, a vector a term."""
    return rows.total(partial(_entry_weights, rows.sizes, None))


def _entry_weights(
    sizes: Sequence[int], null: tuple[Likelihood, Intercept] | None, parts: Iterable[Rows]
) -> Totals:
    """Weights at the entries and, if it is asked for, the log-likelihood of a constant."""
    totals, value = [np.zeros(size) for size in sizes], 0.0
    for part in pieces(parts, CHUNK_ROWS):
        for total, own in zip(totals, entry_sums(part, part.weight), strict=True):
            total += own
        value += _constant_value(null, part)
    return tuple(totals) if null is None else (*totals, np.array(value))


def _constant_value(null: tuple[Likelihood, Intercept] | None, part: Rows) -> float:
    if null is None:
        return 0.0
    f = predict(part.keep_terms([]), [], null[1])
    return float(part.information @ null[0].log_prob(part.y, f))


def log_likelihood(
    rows: AnyRows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> float:
    """Weighted log-likelihood of all rows, at unit noise."""
    (total,) = rows.total(partial(_log_likelihood, likelihood, values, intercept))
    return float(total)


def _log_likelihood(
    likelihood: Likelihood, values: Sequence[Array], intercept: Intercept, parts: Iterable[Rows]
) -> Totals:
    total = 0.0
    for part in pieces(parts, CHUNK_ROWS):
        f = predict(part, values, intercept)
        total += float(part.information @ likelihood.log_prob(part.y, f))
    return (np.array(total),)


def start(rows: AnyRows, likelihood: Likelihood) -> Intercept:
    """The intercept of the best constant model."""
    if isinstance(rows, StreamedRows):
        return rows.start
    (mass,) = rows.total(partial(_response_mass, likelihood))
    if isinstance(likelihood, Softmax):
        return likelihood.start(np.arange(likelihood.n_classes, dtype=np.float64), mass)
    # The mean is all that matters.
    return likelihood.start(mass[:1] / mass[1:], np.ones(1))


def _response_mass(likelihood: Likelihood, parts: Iterable[Rows]) -> Totals:
    """Weight of every class; otherwise, the weighted sum of the response and the weight."""
    if isinstance(likelihood, Softmax):
        n_classes = likelihood.n_classes
        masses = (sum_by(part.y.astype(np.intp), part.weight, n_classes) for part in parts)
        return (np.sum(list(masses), axis=0),)
    sums = (np.array([part.weight @ part.y, part.weight.sum()]) for part in parts)
    return (np.sum(list(sums), axis=0),)


def null_log_likelihood(rows: AnyRows, likelihood: Likelihood) -> float:
    """Log-likelihood at unit noise of the best constant model."""
    if isinstance(rows, StreamedRows) and rows.null is not None:
        return rows.null
    return log_likelihood(rows.keep_terms([]), likelihood, [], start(rows, likelihood))


def slopes(
    rows: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> tuple[Array, Array]:
    """Slope and curvature of the log-likelihood of every row at hand, at unit noise."""
    return _slopes(likelihood, rows.y, rows.information, predict(rows, values, intercept))


def _slopes(likelihood: Likelihood, y: Array, weight: Array, f: Array) -> tuple[Array, Array]:
    slope, curvature = likelihood.slope(y, f), likelihood.curvature(f)
    # Weights are a row's, whatever it has.
    return (slope.T * weight).T, (curvature.T * weight).T


def own_curvature(curvature: Array) -> Array:
    """The curvature of each output by itself: the rows' diagonals where there are several."""
    return curvature if curvature.ndim == 1 else np.diagonal(curvature, axis1=1, axis2=2)


def curved(curvature: Array, f: Array) -> Array:
    """``diag(gamma) f``; with several outputs ``gamma`` is a matrix a row."""
    return curvature * f if f.ndim == 1 else np.einsum("nij,nj->ni", curvature, f)


def output_places(widths: Sequence[int], n_outputs: int) -> IntArray:
    """Where each output's coordinates stand, and its intercept's (n_outputs, R + 1).

    All outputs of a term follow each other, so that a term has one block; the intercepts come last.
    """
    starts = np.cumsum([0, *widths]) * n_outputs
    places = [
        start + width * output + np.arange(width)
        for output in range(n_outputs)
        for start, width in zip(starts[:-1], widths, strict=True)
    ]
    own = np.concatenate([np.empty(0, np.intp), *places]).reshape(n_outputs, -1)
    return np.column_stack([own, starts[-1] + np.arange(n_outputs)])


def evaluate(table: Array, coordinates: Array, n_outputs: int) -> Array:
    """A term's function at its entries; a column for each of several outputs."""
    values = table @ coordinates.reshape(n_outputs, -1).T
    return values[:, 0] if n_outputs == 1 else values


def design_matrix(rows: Rows, tables: Sequence[Array]) -> Array:
    """``Z`` of rows, the intercept's column last."""
    return Design(tables).of(rows)


class Design:
    """Makes ``Z`` of some rows after others; each is valid until the next."""

    def __init__(self, tables: Sequence[Array]) -> None:
        ends = np.cumsum([0, *(table.shape[1] for table in tables)]).tolist()
        self._columns = [slice(*pair) for pair in pairwise(ends)]
        self._tables = tables
        self._stacked: dict[tuple[int, int], Array] = {}
        self._space = Workspace()

    def of(self, rows: Rows) -> Array:
        """``Z`` of these rows."""
        width = self._columns[-1].stop if self._columns else 0
        design = self._space.get("design", (len(rows), width + 1))
        for k, (position, own) in enumerate(zip(rows.positions, self._columns, strict=True)):
            self._read(k, position, design[:, own])
        design[:, -1] = 1.0
        return design

    def _read(self, k: int, position: Position, out: Array) -> None:
        """``W_k T_k``: what ``read`` says, with one look at the table for all that it needs."""
        along = None if position.fraction is None else _column(position.fraction)
        across = None if position.across is None else _column(position.across)
        steps = [1] * (along is not None) + [position.stride] * (across is not None)
        # The table beside its differences to the next entries: T; T, dT; or T, dT, DT, dDT.
        key = (k, 0 if not steps else steps[-1] if len(steps) == 1 else -steps[-1])
        if key not in self._stacked:
            self._stacked[key] = _with_differences(self._tables[k], steps)
        stacked = self._stacked[key]
        shape = (len(position.index), 1 << len(steps), out.shape[1])
        found = self._space.get("found", (shape[0], stacked.shape[1]))
        # "clip" only because with it nothing is copied: all positions are within.
        np.take(stacked, position.index.astype(np.intp), axis=0, out=found, mode="clip")
        parts = found.reshape(shape)
        if not steps:
            out[:] = parts[:, 0]
            return
        if len(steps) == 2:
            assert along is not None
            parts[:, 3] *= along
            parts[:, 2] += parts[:, 3]
            parts[:, 2] *= across
            parts[:, 0] += parts[:, 2]
        first = across if along is None else along
        assert first is not None
        np.multiply(parts[:, 1], first, out=out)
        out += parts[:, 0]


def _column(fraction: NDArray[np.float32]) -> Array:
    return fraction.astype(np.float64)[:, None]


def _with_differences(table: Array, steps: Sequence[int]) -> Array:
    """A table beside its difference to the entries so many steps on; for two steps, beside both's too.

    The last entries have no next ones, and no row asks for them.
    """
    parts = [table]
    for step in steps:
        parts += [_difference(part, step) for part in parts]
    return np.hstack(parts)


def _difference(table: Array, step: int) -> Array:
    change = np.zeros_like(table)
    np.subtract(table[step:], table[:-step], out=change[:-step])
    return change


@dataclass(frozen=True)
class Expansion:
    """The quadratic of some rows: ``pseudo_response`` is ``h``, ``curvature`` is ``gamma``.

    With several outputs the first has a column each, the second a matrix a row.
    """

    pseudo_response: Array
    curvature: Array
    constant: float
    value: float


def expand(likelihood: Likelihood, y: Array, weight: Array, f: Array) -> Expansion:
    """Second-order expansion of the weighted log-likelihood around the prediction ``f``."""
    slope, curvature = _slopes(likelihood, y, weight, f)
    value = float(weight @ likelihood.log_prob(y, f))
    bent = curved(curvature, f)
    constant = value - float(np.vdot(f, slope)) - 0.5 * float(np.vdot(f, bent))
    return Expansion(slope + bent, curvature, constant, value)


@dataclass(frozen=True)
class _Around:
    """The point that the log-likelihood is expanded around."""

    likelihood: Likelihood
    values: tuple[Array, ...]
    intercept: Intercept

    def expand(self, part: Rows) -> Expansion:
        """The quadratic of some rows."""
        # One that is exact is the same wherever it is made.
        exact = self.likelihood.quadratic
        f = np.zeros(len(part)) if exact else predict(part, self.values, self.intercept)
        return expand(self.likelihood, part.y, part.information, f)

    def expand_all(self, part: Rows) -> Expansion:
        """The same for many rows."""
        made = [self.expand(piece) for piece in part.parts(CHUNK_ROWS)]
        return Expansion(
            np.concatenate([one.pseudo_response for one in made]),
            np.concatenate([one.curvature for one in made]),
            sum(one.constant for one in made),
            sum(one.value for one in made),
        )


def _same_arrays(first: Sequence[Array], second: Sequence[Array]) -> bool:
    return len(first) == len(second) and all(map(operator.is_, first, second))


@dataclass(frozen=True)
class RowQuadratic:
    """The quadratic as rows: made anew whenever it is asked.

    ``kept`` are the terms it is for, of all that the expansion is around.
    """

    rows: AnyRows
    around: _Around
    kept: tuple[int, ...]

    def is_around(self, values: Sequence[Array]) -> bool:
        """Whether it was made around just these arrays."""
        return _same_arrays(self.around.values, values)

    @cached_property
    def _sums(self) -> Totals:
        return self.rows.total(partial(_expansion_sums, self.around, self.rows.sizes))

    @property
    def constant(self) -> float:
        """Log-likelihood of the zero prediction."""
        return float(self._sums[-1][0])

    @property
    def value(self) -> float:
        """Log-likelihood at unit noise of what it was made around; of zero where it is exact."""
        return float(self._sums[-1][1])

    @property
    def total_curvature(self) -> float:
        """Sum of ``gamma`` over all rows, and outputs."""
        return float(self._sums[-1][2])

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, a vector a term; over all outputs."""
        return [self._sums[k] for k in self.kept]

    def keep_terms(self, kept: Sequence[int]) -> RowQuadratic:
        """The same quadratic for some of the terms."""
        return replace(self, kept=tuple(self.kept[k] for k in kept))

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        job = _joint_equations if self.around.likelihood.n_outputs > 1 else _normal_equations
        gram, target = self.rows.total(partial(job, self.around, self.kept, tables))
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the rows say of the levels of term ``k``.

        The diagonal of ``W_k' gamma W_k``, ``W_k' gamma Z`` and ``W_k' h``.
        """
        job = partial(
            _level_equations, self.around, self.kept, tables, k, self.rows.sizes[self.kept[k]]
        )
        cross, target = self.rows.total(job)
        # The intercept's column of Z is one: its sums are the diagonal.
        return cross[:, -1].copy(), cross, target


def _expansion_sums(around: _Around, sizes: Sequence[int], parts: Iterable[Rows]) -> Totals:
    """Curvature at every entry, a vector a term; then constant, value and all curvature."""
    totals, scalars = [np.zeros(size) for size in sizes], np.zeros(3)
    for part in pieces(parts, CHUNK_ROWS):
        expansion = around.expand(part)
        own = own_curvature(expansion.curvature)
        own = own if own.ndim == 1 else own.sum(axis=1)
        for total, sums in zip(totals, entry_sums(part, own), strict=True):
            total += sums
        scalars += expansion.constant, expansion.value, own.sum()
    return (*totals, scalars)


def _normal_equations(
    around: _Around, kept: Sequence[int], tables: Sequence[Array], parts: Iterable[Rows]
) -> Totals:
    n_columns = sum(table.shape[1] for table in tables) + 1
    gram, target = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
    made = Design(tables)
    for part in pieces(parts, _DESIGN_CHUNK_ROWS):
        expansion = around.expand(part)
        design = made.of(part.keep_terms(kept))
        target += expansion.pseudo_response @ design
        design *= np.sqrt(expansion.curvature)[:, None]
        gram += design.T @ design
    return gram, target


def _level_equations(
    around: _Around,
    kept: Sequence[int],
    tables: Sequence[Array],
    k: int,
    size: int,
    parts: Iterable[Rows],
) -> Totals:
    cross = np.zeros((size, sum(table.shape[1] for table in tables) + 1))
    target, made = np.zeros(size), Design(tables)
    for part in pieces(parts, _DESIGN_CHUNK_ROWS):
        expansion, own_part = around.expand(part), part.keep_terms(kept)
        design, position = made.of(own_part), own_part.positions[k]
        rows = np.arange(len(part))
        own = csr_array((expansion.curvature, (position.index, rows)), shape=(size, len(part)))
        cross += own @ design
        target += spread(position, expansion.pseudo_response, size)
    return cross, target


def _joint_equations(
    around: _Around, kept: Sequence[int], tables: Sequence[Array], parts: Iterable[Rows]
) -> Totals:
    """Normal equations of several outputs, each with its own coordinates in the same tables."""
    places = output_places([table.shape[1] for table in tables], around.likelihood.n_outputs)
    gram, target = np.zeros((places.size, places.size)), np.zeros(places.size)
    made = Design(tables)
    for part in pieces(parts, _DESIGN_CHUNK_ROWS):
        expansion = around.expand(part)
        design = made.of(part.keep_terms(kept))
        for i, own in enumerate(places):
            target[own] += expansion.pseudo_response[:, i] @ design
            weighted = design * expansion.curvature[:, i, i, None]
            gram[np.ix_(own, own)] += design.T @ weighted
            for j in range(i):
                weighted = design * expansion.curvature[:, i, j, None]
                block = weighted.T @ design
                gram[np.ix_(own, places[j])] += block
                gram[np.ix_(places[j], own)] += block.T
    return gram, target


@dataclass(frozen=True)
class TableQuadratic:
    """The quadratic summed into cross-tables.

    ``cross`` holds ``W' diag(gamma) W`` over the entries that rows read, of all terms, and the intercept,
    upper blocks only; ``pseudo`` is ``W' h``. ``seen`` are each term's entries that are there, of so
    many as ``sizes`` says: a grid has many that no row reads.
    """

    cross: Array
    pseudo: Array
    constant: float
    seen: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    #: what it was made around, and the log-likelihood at unit noise there; of zero where it is exact
    around: tuple[Array, ...] = ()
    value: float = np.nan

    def is_around(self, values: Sequence[Array]) -> bool:
        """Whether it was made around just these arrays."""
        return _same_arrays(self.around, values)

    def moved_to(self, values: Sequence[Array]) -> TableQuadratic:
        """The same, to be taken for that around other values."""
        return replace(self, around=tuple(values))

    def of(self, values: Sequence[Array], intercept: Intercept) -> float:
        """The quadratic's value for a prediction by tabulated values."""
        known = [value[own] for value, own in zip(values, self.seen, strict=True)]
        whole = np.concatenate([*known, [intercept]])
        total = self.constant + float(self.pseudo @ whole)
        for start, stop in pairwise(self.offsets):
            own = whole[start:stop]
            # Upper blocks only are there; those beside the diagonal count twice.
            product = whole[:stop] @ self.cross[:stop, start:stop]
            before = whole[:start] @ self.cross[:start, start:stop]
            total -= 0.5 * float((product + before) @ own)
        return total

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each term's entries, and the intercept's, begin; and where all end."""
        return (0, *np.cumsum([*(len(own) for own in self.seen), 1]).tolist())

    @property
    def total_curvature(self) -> float:
        """Sum of ``gamma`` over all rows."""
        return float(self.cross[-1, -1])

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, a vector a term."""
        result = [np.zeros(size) for size in self.sizes]
        for k, (sums, own) in enumerate(zip(result, self.seen, strict=True)):
            sums[own] = self.cross[self.offsets[k] : self.offsets[k + 1], -1]
        return result

    def of_constant(self, f: Intercept) -> float:
        """The quadratic's value where the same is predicted for all rows."""
        return float(self.constant + self.pseudo[-1] * f - 0.5 * self.cross[-1, -1] * f**2)

    def keep_entries(self, seen: Sequence[IntArray]) -> TableQuadratic:
        """The same quadratic for some of the entries, of all that there are."""
        if all(len(own) == size for own, size in zip(seen, self.sizes, strict=True)):
            return self
        own = [start + part for start, part in zip(self.offsets[:-2], seen, strict=True)]
        entries = np.concatenate([*own, [self.offsets[-1] - 1]])
        cross = self.cross[np.ix_(entries, entries)]
        return replace(self, cross=cross, pseudo=self.pseudo[entries], seen=tuple(seen))

    def keep_terms(self, kept: Sequence[int]) -> TableQuadratic:
        """The same quadratic for some of the terms."""
        parts = [np.arange(self.offsets[k], self.offsets[k + 1]) for k in kept]
        entries = np.concatenate([*parts, [self.offsets[-1] - 1]])
        return TableQuadratic(
            self.cross[np.ix_(entries, entries)],
            self.pseudo[entries],
            self.constant,
            tuple(self.seen[k] for k in kept),
            tuple(self.sizes[k] for k in kept),
            value=self.value,
        )

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        read_tables = [table[own] for table, own in zip(tables, self.seen, strict=True)]
        blocks = [*read_tables, np.ones((1, 1))]
        ends = np.cumsum([block.shape[1] for block in blocks])
        gram, target = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
        for k, right in enumerate(blocks):
            columns = slice(ends[k] - right.shape[1], ends[k])
            here = slice(self.offsets[k], self.offsets[k + 1])
            target[columns] = self.pseudo[here] @ right
            product = self.cross[: here.stop, here] @ right
            for j, left in enumerate(blocks[: k + 1]):
                rows = slice(ends[j] - left.shape[1], ends[j])
                block = left.T @ product[self.offsets[j] : self.offsets[j + 1]]
                gram[rows, columns] = block
                gram[columns, rows] = block.T
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the rows say of the levels of term ``k``, as ``RowQuadratic`` has it."""
        here = slice(self.offsets[k], self.offsets[k + 1])
        parts = []
        for j, (table, own) in enumerate(zip(tables, self.seen, strict=True)):
            there = slice(self.offsets[j], self.offsets[j + 1])
            # Upper blocks only are there.
            block = self.cross[there, here].T if j < k else self.cross[here, there]
            parts.append(block @ table[own])
        cross = np.zeros((self.sizes[k], sum(table.shape[1] for table in tables) + 1))
        target = np.zeros(self.sizes[k])
        cross[self.seen[k]] = np.column_stack([*parts, self.cross[here, -1]])
        target[self.seen[k]] = self.pseudo[here]
        return cross[:, -1].copy(), cross, target


Quadratic = RowQuadratic | TableQuadratic


def weights_and_quadratic(
    rows: AnyRows, likelihood: Likelihood, largest: float = CROSS_TABLE_BYTES
) -> tuple[Totals, float, Quadratic | None]:
    """Weight at every entry, the log-likelihood of the intercept alone, and the quadratic if it is exact.

    In the cheaper form; ``largest`` are the bytes that cross-tables may have. An expansion that is made
    anew for every pass is used once: its tables would not pay.
    """
    null = (likelihood, start(rows, likelihood))

    def weights_alone() -> tuple[Totals, float]:
        *weights, value = rows.total(partial(_entry_weights, rows.sizes, null))
        return tuple(weights), float(value)

    if not likelihood.quadratic:
        return *weights_alone(), None
    zeros = tuple(np.zeros(size) for size in rows.sizes)
    around = _Around(likelihood, zeros, 0.0)
    everything = tuple(np.arange(size) for size in rows.sizes)
    if _tables_pay(rows, everything, largest):
        # Both at once, and what no row has read is left out afterwards.
        made, weights = _summed(rows, around, everything)
        seen = tuple(np.flatnonzero(own) for own in weights)
        return weights, made.of_constant(null[1]), made.keep_entries(seen)
    weights, value = weights_alone()
    seen = tuple(np.flatnonzero(own) for own in weights)
    if _tables_pay(rows, seen, largest):
        return weights, value, _summed(rows, around, seen)[0]
    return weights, value, row_quadratic(rows, likelihood, zeros, 0.0)


def _tables_pay(rows: AnyRows, seen: Sequence[IntArray], largest: float) -> bool:
    n_entries = sum(len(own) for own in seen) + 1
    return len(rows) > 2 * n_entries and cross_table_bytes(n_entries) <= largest


def cross_table_bytes(n_entries: int) -> int:
    """Bytes of the cross-tables of so many entries."""
    return 8 * n_entries**2


def row_quadratic(
    rows: AnyRows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> RowQuadratic:
    """The expansion around the given tabulated values, as rows."""
    around = _Around(likelihood, tuple(values), intercept)
    return RowQuadratic(rows, around, tuple(range(len(rows.sizes))))


def table_quadratic(
    rows: AnyRows,
    likelihood: Likelihood,
    values: Sequence[Array],
    intercept: Intercept,
    seen: tuple[IntArray, ...] | None = None,
) -> TableQuadratic:
    """The same expansion, summed into cross-tables of the entries that rows read."""
    if seen is None:
        seen = tuple(np.flatnonzero(own) for own in entry_weights(rows))
    return _summed(rows, _Around(likelihood, tuple(values), intercept), seen)[0]


def _summed(
    rows: AnyRows, around: _Around, seen: tuple[IntArray, ...]
) -> tuple[TableQuadratic, Totals]:
    """The expansion in cross-tables of some entries, and the weight at every entry."""
    totals = rows.total(partial(_cross_tables, around, rows.sizes, seen))
    cross, pseudo, (constant, value), *weights = totals
    made = TableQuadratic(
        cross, pseudo, float(constant), seen, rows.sizes, around.values, float(value)
    )
    return made, tuple(weights)


def _cross_tables(
    around: _Around, sizes: Sequence[int], seen: Sequence[IntArray], parts: Iterable[Rows]
) -> Totals:
    offsets = (0, *np.cumsum([*(len(own) for own in seen), 1]).tolist())
    cross, pseudo = np.zeros((offsets[-1], offsets[-1])), np.zeros(offsets[-1])
    scalars, weights = np.zeros(2), [np.zeros(size) for size in sizes]
    space = Workspace()
    for part in pieces(parts, _table_chunk(len(sizes))):
        chunk = around.expand_all(part)
        scalars += chunk.constant, chunk.value
        for total, own in zip(weights, entry_sums(part, part.weight), strict=True):
            total += own
        readers = [_Reader.of(position, space, k) for k, position in enumerate(part.positions)]
        for k, (position, right) in enumerate(zip(part.positions, readers, strict=True)):
            here = slice(offsets[k], offsets[k + 1])
            pseudo[here] += spread(position, chunk.pseudo_response, sizes[k])[seen[k]]
            cross[here, -1] += spread(position, chunk.curvature, sizes[k])[seen[k]]
            weighted = right.times(chunk.curvature, space)
            for j, left in enumerate(readers[: k + 1]):
                if j == k:
                    table = _own_table(left, weighted, sizes[k])
                else:
                    table = _cross_table(left, weighted, (sizes[j], sizes[k]), space)
                some = len(seen[j]) < sizes[j] or len(seen[k]) < sizes[k]
                table = table[np.ix_(seen[j], seen[k])] if some else table
                cross[offsets[j] : offsets[j + 1], here] += table
        pseudo[-1] += chunk.pseudo_response.sum()
        cross[-1, -1] += chunk.curvature.sum()
    return cross, pseudo, scalars, *weights


def _table_chunk(n_terms: int) -> int:
    """Rows of which all readers are made at once: fewer where there are many terms."""
    return max(_TABLE_CHUNK_ROWS * _TERMS_AT_ONCE // max(n_terms, _TERMS_AT_ONCE), 1)


@dataclass(frozen=True)
class _Reader:
    """How rows read a table: the entry of each, and its weight there and at the entries beside it.

    ``corners`` are (steps from a row's index, weights); None are ones.
    """

    index: IntArray
    corners: tuple[tuple[int, Array | None], ...]

    @classmethod
    def of(cls, position: Position, space: Workspace, number: int) -> _Reader:
        """That of rows at a position, the term's with this number."""
        n_rows = len(position.index)
        index = space.get(("index", number), (n_rows,), np.intp)
        index[:] = position.index
        corners: list[tuple[int, Array | None]] = [(0, None)]
        for step, fraction in ((position.stride, position.across), (1, position.fraction)):
            if fraction is not None:
                # How much of it stays with an entry, and how much goes to the next.
                shares = [space.get((number, step, end), (n_rows,)) for end in range(2)]
                shares[1][:] = fraction
                np.subtract(1.0, shares[1], out=shares[0])
                corners = [
                    (offset + more, part if weight is None else weight * part)
                    for offset, weight in corners
                    for more, part in zip((0, step), shares, strict=True)
                ]
        return cls(index, tuple(corners))

    def times(self, weight: Array, space: Workspace) -> _Reader:
        """The same with all weights times a number a row."""
        corners = list[tuple[int, Array | None]]()
        for k, (step, own) in enumerate(self.corners):
            product = space.get(("weighted", k), weight.shape)
            np.multiply(1.0 if own is None else own, weight, out=product)
            corners.append((step, product))
        return replace(self, corners=tuple(corners))


def _cross_table(
    left: _Reader, weighted: _Reader, shape: tuple[int, int], space: Workspace
) -> Array:
    """``W_left' diag(weight) W_right``, of the right reader with its weights."""
    n_rows = len(left.index)
    cell = np.multiply(left.index, shape[1], out=space.get("cell", (n_rows,), np.intp))
    cell += weighted.index
    block = space.get("block", shape)
    block[:] = 0.0
    for down, one in left.corners:
        for along, two in weighted.corners:
            assert two is not None
            value = two
            if one is not None:
                value = np.multiply(one, two, out=space.get("product", (n_rows,)))
            table = sum_by(cell, value, shape[0] * shape[1]).reshape(shape)
            # A row's neighbours lie some entries on; a row on the last entry gives them nothing.
            block[down:, along:] += table[: shape[0] - down, : shape[1] - along]
    return block


def _own_table(reader: _Reader, weighted: _Reader, size: int) -> Array:
    """``W' diag(weight) W`` of one term: rows read few entries beside each other."""
    block, entry = np.zeros((size, size)), np.arange(size)
    for down, one in reader.corners:
        for along, two in weighted.corners:
            assert two is not None
            sums = sum_by(reader.index, two if one is None else one * two, size)
            own = entry[: size - max(down, along)]
            block[own + down, own + along] += sums[: len(own)]
    return block
