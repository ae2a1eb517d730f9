"""The orthogonal additive kernel of Lu, Boukouvalas & Hensman (ICML 2022), with its gradient by hand.

    K(x, z) = s_0 + s_1 sum_d k_d(x_d, z_d) + s_2 sum_{d < e} k_d(x_d, z_d) k_e(x_e, z_e)

Each k_d is a squared exponential of its own length-scale, conditioned on functions that integrate to
zero under the density p_d of its column:

    k_d(x, z) = exp(-(x - z)^2 / 2 l_d^2) - c_d(x) c_d(z)
    c_d(x)    = E_p[exp(-(x - s)^2 / 2 l_d^2)] / sqrt(E_p[exp(-(r - s)^2 / 2 l_d^2)])

p_d is N(0, 1), where both expectations are closed forms, or a few points with weights. There are no
variances of single columns: one that does not matter gets a long length-scale, and k_d goes to zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BLOCK = 1 << 17  # entries worked on at once: 1 MB, so that a column's matrix stays in the cache


@dataclass(frozen=True)
class Points:
    """A density on a few points, ``weights`` summing to one."""

    values: Tensor
    weights: Tensor


Measure = Points | None  # None is N(0, 1)


@dataclass(frozen=True)
class Parameters:
    """Logarithms of each column's length-scale, each order's variance (the constant first), the noise."""

    log_lengthscales: Tensor
    log_variances: Tensor
    log_noise: Tensor

    @property
    def lengthscales(self) -> Tensor:
        return self.log_lengthscales.exp()

    @property
    def variances(self) -> Tensor:
        return self.log_variances.exp()

    @property
    def noise(self) -> Tensor:
        return self.log_noise.exp()


@dataclass(frozen=True)
class Rows:
    """Rows x columns of inputs, and the distinct values of the columns that repeat themselves a lot.

    ``repeats[d]`` is None or (a row with each distinct value, number of the distinct value at each row).
    """

    values: Tensor
    repeats: tuple[tuple[Tensor, Tensor] | None, ...]

    @classmethod
    def of(cls, values: Tensor) -> Rows:
        return cls(values, tuple(_repeats(column) for column in values.T))

    def __len__(self) -> int:
        return len(self.values)


def _repeats(column: Tensor) -> tuple[Tensor, Tensor] | None:
    distinct, inverse = torch.unique(column, return_inverse=True)
    if 3 * len(distinct) > len(column):
        return None  # little to gain over the rows themselves
    first = torch.full((len(distinct),), len(column), dtype=torch.long)
    first.scatter_reduce_(0, inverse, torch.arange(len(column)), "amin")
    return first, inverse


def embedding(values: Tensor, lengthscales: Tensor, measures: Sequence[Measure]) -> Tensor:
    """c_d at each value: what conditioning on a zero integral takes away is its product."""
    square = lengthscales**2
    normal = torch.exp(-(values**2) / (2 * (square + 1))) * torch.sqrt(
        lengthscales * torch.sqrt(square + 2) / (square + 1)
    )
    columns = list(normal.unbind(1))
    for d, measure in enumerate(measures):
        if measure is not None:
            points, weights = measure.values, measure.weights
            mean = squared_exponential(values[:, d], points, lengthscales[d]) @ weights
            total = weights @ squared_exponential(points, points, lengthscales[d]) @ weights
            columns[d] = mean / torch.sqrt(total)
    return torch.stack(columns, dim=1)


def squared_exponential(x: Tensor, z: Tensor, lengthscale: Tensor) -> Tensor:
    """Of two vectors, as a matrix."""
    return torch.exp(-((x[:, None] - z[None, :]) ** 2) / (2 * lengthscale**2))


def gram(rows: Rows, others: Tensor, parameters: Parameters, measures: Sequence[Measure]) -> Tensor:
    """K between rows and other rows."""
    lengthscales = parameters.lengthscales
    left = embedding(rows.values, lengthscales, measures)
    right = embedding(others, lengthscales, measures)
    return _Gram.apply(lengthscales, parameters.variances, left, right, rows, others)


def diagonal(values: Tensor, parameters: Parameters, measures: Sequence[Measure]) -> Tensor:
    """K of each row with itself."""
    single = 1 - embedding(values, parameters.lengthscales, measures) ** 2
    variances = parameters.variances
    first = single.sum(1)
    total = variances[0] + variances[1] * first
    if len(variances) > 2:
        total = total + variances[2] * (first**2 - (single**2).sum(1)) / 2
    return total


def component(
    x: Tensor, z: Tensor, column: int, parameters: Parameters, measures: Sequence[Measure]
) -> Tensor:
    """The part s_1 k_d of the kernel, between values of one column."""
    lengthscale = parameters.lengthscales[column : column + 1]
    left = embedding(x[:, None], lengthscale, measures[column : column + 1])
    right = embedding(z[:, None], lengthscale, measures[column : column + 1])
    return parameters.variances[1] * (squared_exponential(x, z, lengthscale) - left @ right.T)


class _Gram(torch.autograd.Function):
    """K, one column and one block of rows at a time, so that no rows x others x columns is ever kept.

    Pairs by Newton and Girard: with S1 = sum k_d and S2 = sum k_d^2 they sum to (S1^2 - S2) / 2, whose
    derivative by k_d is S1 - k_d. A column with few distinct values is worked out once for each of them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        lengthscales: Tensor,
        variances: Tensor,
        left: Tensor,
        right: Tensor,
        rows: Rows,
        others: Tensor,
    ) -> Tensor:
        with_pairs = len(variances) > 2
        tables = {
            d: _constrained(*_distinct(rows, left, d), others[:, d], right[:, d], lengthscales[d])[
                1
            ]
            for d, repeat in enumerate(rows.repeats)
            if repeat is not None
        }
        first = torch.zeros(len(rows), len(others), dtype=left.dtype)
        pairs = torch.zeros_like(first) if with_pairs else None
        for block in _blocks(len(rows), len(others)):
            for d, repeat in enumerate(rows.repeats):
                if repeat is None:
                    matrix = _constrained(
                        rows.values[block, d],
                        left[block, d],
                        others[:, d],
                        right[:, d],
                        lengthscales[d],
                    )[1]
                else:
                    matrix = tables[d].index_select(0, repeat[1][block])
                first[block] += matrix
                if pairs is not None:
                    pairs[block] -= matrix.square_()
        if pairs is not None:
            pairs.addcmul_(first, first).div_(2)
        ctx.save_for_backward(lengthscales, variances, left, right, others)
        ctx.rows, ctx.first, ctx.pairs = rows, first, pairs
        total = variances[0] + variances[1] * first
        return total if pairs is None else total.addcmul_(variances[2], pairs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        lengthscales, variances, left, right, others = ctx.saved_tensors
        rows, first, pairs = ctx.rows, ctx.first, ctx.pairs
        by_variance = [gradient.sum(), (gradient * first).sum()]
        # By k_d: ``outer`` - s_2 gradient k_d, where ``outer`` is the same for all columns.
        outer = variances[1] * gradient
        if pairs is not None:
            by_variance.append((gradient * pairs).sum())
            outer = outer.addcmul_(variances[2] * gradient, first)
        inner = None if pairs is None else variances[2] * gradient
        by_lengthscale = torch.zeros_like(lengthscales)
        by_left, by_right = torch.zeros_like(left), torch.zeros_like(right)
        for d, repeat in enumerate(rows.repeats):
            column = (others[:, d], right[:, d], lengthscales[d])
            if repeat is None:
                for block in _blocks(len(rows), len(others)):
                    scale, at_left, at_right = _pull_back(
                        outer[block],
                        None if inner is None else inner[block],
                        rows.values[block, d],
                        left[block, d],
                        *column,
                    )
                    by_lengthscale[d] += scale
                    by_left[block, d] = at_left
                    by_right[:, d] += at_right
            else:
                # Rows with the same value have the same k_d: their weights are summed first.
                at, which = repeat
                scale, at_left, by_right[:, d] = _pull_back(
                    _sum_by(outer, which, len(at)),
                    None if inner is None else _sum_by(inner, which, len(at)),
                    *_distinct(rows, left, d),
                    *column,
                )
                by_lengthscale[d] = scale
                by_left[at, d] = at_left
        return by_lengthscale, torch.stack(by_variance), by_left, by_right, None, None


def _blocks(n_rows: int, n_others: int) -> Iterator[slice]:
    size = max(1, BLOCK // n_others)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def _distinct(rows: Rows, left: Tensor, column: int) -> tuple[Tensor, Tensor]:
    repeat = rows.repeats[column]
    assert repeat is not None
    return rows.values[repeat[0], column], left[repeat[0], column]


def _sum_by(matrix: Tensor, which: Tensor, size: int) -> Tensor:
    return torch.zeros(size, matrix.shape[1], dtype=matrix.dtype).index_add_(0, which, matrix)


def _constrained(
    x: Tensor, at_x: Tensor, z: Tensor, at_z: Tensor, lengthscale: Tensor
) -> tuple[Tensor, Tensor]:
    """A column's plain kernel and its constrained one."""
    scale = lengthscale * 2**0.5
    plain = torch.sub((x / scale)[:, None], (z / scale)[None, :]).square_().neg_().exp_()
    return plain, torch.addr(plain, at_x, at_z, alpha=-1)


def _pull_back(
    outer: Tensor,
    inner: Tensor | None,
    x: Tensor,
    at_x: Tensor,
    z: Tensor,
    at_z: Tensor,
    lengthscale: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by the length-scale (in the plain kernel) and by the two embeddings."""
    plain, constrained = _constrained(x, at_x, z, at_z, lengthscale)
    weights = outer if inner is None else torch.addcmul(outer, inner, constrained, value=-1)
    plain *= weights
    # d plain / d l = plain (x - z)^2 / l^3; the square written out, so that sums over z are products.
    sums = plain @ torch.stack([torch.ones_like(z), z, z**2], dim=1)
    by_scale = (x**2 @ sums[:, 0] - 2 * x @ sums[:, 1] + sums[:, 2].sum()) / lengthscale**3
    return by_scale, -(weights @ at_z), -(at_x @ weights)
