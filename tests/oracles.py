"""Slow and obvious twins of the fast code: loops over rows, dense matrices, finite differences.

Nothing here shares code with `lanam.core`, and everything is written to be read, not to be fast.
"""

import itertools
import math
from functools import reduce

import numpy as np
from scipy.stats import multivariate_normal

#: How close two results must be, relative to the larger one's largest entry, and why not closer.
TOLERANCES = {
    # the same sums in another order
    "rounding": 1e-10,
    # a factorisation or an inverse in between loses digits with the condition number
    "conditioning": 1e-6,
    # rows read tables with single-precision fractions
    "single precision": 1e-6,
    # central differences lose half of the digits
    "finite differences": 1e-6,
}


def assert_close(actual, expected, because):
    """Equal up to the tolerance that belongs to a reason."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    size = max(np.abs(actual).max(initial=0.0), np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=TOLERANCES[because] * size)


# networks


def activation(name, h):
    if name == "gelu":
        return 0.5 * h * (1 + math.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
    if name == "relu":
        return max(h, 0.0)
    if name == "tanh":
        return math.tanh(h)
    if name == "silu":
        return h / (1 + math.exp(-h))
    raise KeyError(name)


def network_value(hidden_sizes, name, theta, point):
    """One output for one point, one unit after the other."""
    values, rest = list(point), list(theta)
    for size in hidden_sizes:
        n = len(values)
        weight, bias, rest = (
            rest[: n * size],
            rest[n * size : (n + 1) * size],
            rest[(n + 1) * size :],
        )
        values = [
            activation(name, sum(values[i] * weight[i * size + j] for i in range(n)) + bias[j])
            for j in range(size)
        ]
    assert len(rest) == len(values)
    return sum(v * w for v, w in zip(values, rest, strict=True))


def differences(function, at, step=1e-6):
    """Central differences of a vector-valued function: (outputs, len(at))."""
    columns = []
    for k in range(len(at)):
        forth, back = at.copy(), at.copy()
        forth[k] += step
        back[k] -= step
        columns.append((np.asarray(function(forth)) - np.asarray(function(back))) / (2 * step))
    return np.stack(columns, axis=-1)


# rows and tables


def interpolation_matrix(position, size):
    """``W``: what every row takes of every entry of a table."""
    weights = np.zeros((len(position.index), size))
    for i, index in enumerate(position.index):
        ends = [((0, 1.0 - float(f[i])), (stride, float(f[i]))) for stride, f in position.steps]
        for corner in itertools.product(*ends):
            part = math.prod(share for _, share in corner)
            if part:
                weights[i, index + sum(step for step, _ in corner)] += part
    return weights


def between(knots, value):
    """What a value takes of every knot: its two neighbours by distance, or the outermost one."""
    knots = list(knots)
    value = min(max(value, knots[0]), knots[-1])
    weights = [0.0] * len(knots)
    k = max(k for k in range(len(knots) - 1) if knots[k] <= value)
    weights[k + 1] = (value - knots[k]) / (knots[k + 1] - knots[k])
    weights[k] = 1.0 - weights[k + 1]
    return weights


def multilinear(knots, table, *columns):
    """A grid's value at every row, summed over all of its knots."""
    return [
        sum(
            math.prod(weights) * float(table[entry])
            for entry, weights in zip(
                np.ndindex(*table.shape),
                itertools.product(*map(between, knots, row)),
                strict=True,
            )
        )
        for row in zip(*columns, strict=True)
    ]


def entry_weights(entries, *values):
    """What a row with these values takes of every entry: of knots, levels, categories or a grid."""
    if len(values) > 1:
        own = [entry_weights(axis, value) for axis, value in zip(entries.axes, values, strict=True)]
        return [math.prod(weights) for weights in itertools.product(*own)]
    (value,) = values
    missing = value != value
    if hasattr(entries, "entry_of"):
        own = list(entries.entry_of)
        # Levels with an entry of their own, missing values, and whatever else there may be.
        at = entries.n_own if missing else entries.n_own + 1
        if value in range(len(own)):
            at = own[int(value)]
        return [float(at == k) for k in range(entries.n_own + 2)]
    knots = list(entries.values)
    if hasattr(entries, "exact"):
        at = [k for k, level in enumerate(knots) if level == value]
        size = len(knots) + int(entries.missing) + 1
        if missing:
            at = [len(knots)]
        return [float(k == (at or [size - 1])[0]) for k in range(size)]
    if missing:
        return [0.0] * len(knots) + [1.0]
    return between(knots, value) + [0.0] * int(entries.missing)


def entry_matrix(entries, *columns):
    """``W`` of all rows, from the values themselves."""
    return np.array([entry_weights(entries, *row) for row in zip(*columns, strict=True)])


def all_entries_matrix(rows):
    """``[W_1, ..., W_D, 1]``."""
    parts = [interpolation_matrix(p, n) for p, n in zip(rows.positions, rows.sizes, strict=True)]
    return np.hstack([*parts, np.ones((len(rows), 1))])


def repeated_quantiles(values, repetitions, levels):
    """The smallest value that at least a share ``level`` of the repeated rows does not exceed."""
    rows = np.sort(np.repeat(values, repetitions))
    return [
        next(v for v in rows if np.sum(rows <= v) >= level * len(rows) * (1 - 1e-12))
        for level in levels
    ]


# pure pairs


def additive_design(shape):
    """Indicators at a grid's cells of all entries of its axes but one: of its rows, then its columns."""
    indicators = []
    for axis in reversed(range(len(shape))):
        others = [(*cell[:axis], *cell[axis + 1 :]) for cell in np.ndindex(*shape)]
        indicators += [[float(own == one) for own in others] for one in sorted(set(others))]
    return np.array(indicators).T


def pure_part(table, share, shape):
    """What the best additive fit over the data leaves of a table, by least squares.

    A row or a column without data gets the constant that makes its mean zero over the other
    column's own distribution.
    """
    design, root = additive_design(shape), np.sqrt(share)[:, None]
    effects = np.linalg.lstsq(root * design, root * table, rcond=1e-13)[0]
    cells = share.reshape(shape)
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    effects[: shape[0]][rows == 0.0] = 0.0
    effects[shape[0] :][columns == 0.0] = 0.0
    left = (table - design @ effects).reshape(*shape, -1)
    for i in np.flatnonzero(rows == 0.0):
        left[i] -= np.tensordot(columns, left[i], axes=1) / columns.sum()
    for j in np.flatnonzero(columns == 0.0):
        left[:, j] -= np.tensordot(rows, left[:, j], axes=1) / rows.sum()
    return left.reshape(table.shape)


def pure_part_of_triples(table, share, shape):
    """What functions of two columns leave of a table of three, at cells with data, by least squares."""
    design, root = additive_design(shape), np.sqrt(share)[:, None]
    return table - design @ np.linalg.lstsq(root * design, root * table, rcond=1e-13)[0]


def conditional_means(table, share, shape):
    """Means of a table's columns along every axis, given all entries of the others that have data."""
    means = []
    for given in additive_design(shape).T:
        weight = given * share
        if weight.sum() > 0.0:
            means.append(np.average(table, axis=0, weights=weight))
    return np.array(means)


# Bayesian linear regression in parameter space


class DensePosterior:
    """``f = Phi theta + b`` with ``theta ~ N(0, diag(precision)^-1)`` and a flat prior for ``b``.

    ``phi`` (N, P) are the features of every row, all terms together; ``blocks`` the parameters of
    each term. The likelihood is ``exp(-gamma_i (y_i - f_i)^2 / (2 noise))`` with constants for
    weights ``gamma``: the row counts ``gamma_i`` times.
    """

    def __init__(self, phi, precision, y, gamma, noise, blocks=None):
        n_parameters = phi.shape[1]
        design = np.hstack([phi, np.ones((len(phi), 1))])
        prior = np.diag(np.append(precision, 0.0))
        self.precision = design.T @ np.diag(gamma) @ design / noise + prior
        full = np.linalg.inv(self.precision)
        self.mean = full @ design.T @ (gamma * y) / noise
        self.covariance = full
        terms_only = self.precision[:n_parameters, :n_parameters]
        log_det = np.linalg.slogdet(terms_only)[1]
        # What is known of the terms given the intercept: it decides the determinant's slopes.
        given_intercept = np.linalg.inv(terms_only)
        if blocks is not None:
            self.covariance = np.zeros_like(full)
            given_intercept = np.zeros_like(terms_only)
            log_det = 0.0
            for block in blocks:
                own = self.precision[block, block]
                self.covariance[block, block] = np.linalg.inv(own)
                given_intercept[block, block] = np.linalg.inv(own)
                log_det += np.linalg.slogdet(own)[1]
            self.covariance[-1, -1] = 1.0 / self.precision[-1, -1]
        residual = y - design @ self.mean
        count = gamma.sum()
        self.log_likelihood = -0.5 * gamma @ residual**2 / noise - 0.5 * count * np.log(
            2 * np.pi * noise
        )
        theta = self.mean[:-1]
        self.log_evidence = (
            self.log_likelihood
            - 0.5 * theta @ (precision * theta)
            + 0.5 * np.log(precision).sum()
            - 0.5 * log_det
        )
        #: per parameter, ``1 - lambda_p S_pp`` and ``lambda_p theta_p^2``
        self.effective = 1.0 - precision * np.diag(given_intercept)
        self.energy = precision * theta**2


def profiled_log_marginal(y, covariance):
    """Log-density of ``y`` under ``N(b 1, covariance)`` at the best constant ``b``."""
    ones = np.ones(len(y))
    solved = np.linalg.solve(covariance, np.column_stack([y, ones]))
    constant = (ones @ solved[:, 0]) / (ones @ solved[:, 1])
    return multivariate_normal.logpdf(y, np.full(len(y), constant), covariance)


# scores of pairs


def cells_of(column, repetitions, n_bins):
    """Every row's cell: its value's rank where there are few values, else a quantile bin."""
    values = sorted(set(column))
    edges = values[1:]
    if len(values) > n_bins:
        levels = [k / n_bins for k in range(1, n_bins)]
        edges = sorted(set(repeated_quantiles(np.asarray(column), repetitions, levels)))
        edges = [edge for edge in edges if edge > values[0]]
    return [sum(value >= edge for edge in edges) for value in column], len(edges) + 1


def kernel_of_column(column, inputs, repetitions, n_bins, length):
    """Squared-exponential kernel between the cells' centres, given that its mean over the data is 0.

    ``inputs`` are the column's values in a network's units. Returns it with every row's cell.
    """
    cell, n_cells = cells_of(column, repetitions, n_bins)
    share, centres = np.zeros(n_cells), np.zeros(n_cells)
    for k, value, often in zip(cell, inputs, repetitions, strict=True):
        share[k] += often / sum(repetitions)
        centres[k] += often / sum(repetitions) * value
    centres /= share
    kernel = np.array(
        [[math.exp(-0.5 * ((a - b) / length) ** 2) for b in centres] for a in centres]
    )
    with_mean = kernel @ share
    return kernel - np.outer(with_mean, with_mean) / (share @ with_mean), cell


def pair_evidence(kernels, cells, residual, weight, noise, variances):
    """``log N(r; 0, noise/w + v K) - log N(r; 0, noise/w)`` at its best ``v``, dense over the rows.

    ``K`` is the product of the columns' kernels without what functions of fewer columns could say.
    """
    shape = tuple(map(len, kernels))
    cell = np.ravel_multi_index(tuple(map(np.asarray, cells)), shape)
    share = np.bincount(cell, weights=weight, minlength=np.prod(shape)) / weight.sum()
    purified = pure_part if len(shape) == 2 else pure_part_of_triples
    pure = purified(np.eye(len(share)), share, shape)
    kernel = (pure @ reduce(np.kron, kernels) @ pure.T)[np.ix_(cell, cell)]
    error, zero = np.diag(noise / weight), np.zeros(len(residual))
    plain = multivariate_normal.logpdf(residual, zero, error)
    gains = [multivariate_normal.logpdf(residual, zero, error + v * kernel) for v in variances]
    return max(0.0, max(gains) - plain)


def log_det_ratio(matrix, first, second):
    """``log |A_d| + log |A_d'| - log |A_dd'|``."""
    both = [*first, *second]
    parts = [np.linalg.slogdet(matrix[np.ix_(own, own)])[1] for own in (first, second, both)]
    return parts[0] + parts[1] - parts[2]


# Kronecker factors


def entering_values(hidden_sizes, name, theta, point):
    """What enters each layer of a network, the output's included."""
    values, rest = np.asarray(point, dtype=float), np.asarray(theta)
    entering = [values]
    for size in hidden_sizes:
        n = len(values)
        sums = values @ rest[: n * size].reshape(n, size) + rest[n * size : (n + 1) * size]
        values, rest = np.array([activation(name, h) for h in sums]), rest[(n + 1) * size :]
        entering.append(values)
    return entering


def kron_curvature(hidden_sizes, name, theta, points, weight, gamma):
    """``A kron B / N`` of every tensor along the diagonal, summed row by row.

    A bias's derivative is the signal its layer sends back, so signals need no backward sweep.
    """
    n_tensors = 2 * len(hidden_sizes) + 1
    left, right = [0.0] * n_tensors, [0.0] * n_tensors
    for point, w, g in zip(points, weight, gamma, strict=True):
        slope = differences(lambda at: network_value(hidden_sizes, name, at, point), theta)  # noqa: B023
        entering, signals, start = entering_values(hidden_sizes, name, theta, point), [], 0
        for before, size in zip(entering, hidden_sizes, strict=False):
            start += len(before) * size
            signals.append(slope[start : start + size])
            start += size
        one = np.ones(1)
        pairs = [(a, s) for k, s in enumerate(signals) for a in (entering[k], one)]
        for tensor, (a, s) in enumerate([*pairs, (entering[-1], one)]):
            left[tensor] = left[tensor] + w * np.outer(a, a)
            right[tensor] = right[tensor] + g * np.outer(s, s)
    blocks = [np.kron(a, b) / sum(weight) for a, b in zip(left, right, strict=True)]
    return block_diagonal(blocks)


def block_diagonal(blocks):
    """Blocks along the diagonal, zeros elsewhere."""
    size, start = sum(len(block) for block in blocks), 0
    matrix = np.zeros((size, size))
    for block in blocks:
        own = slice(start, start + len(block))
        matrix[own, own] = block
        start += len(block)
    return matrix


# Laplace at given parameters


def log_likelihood(likelihood, y, f, weight, noise):
    """Weighted log-likelihood, row by row."""
    total = 0.0
    for y_n, f_n, w in zip(y, f, weight, strict=True):
        if likelihood == "gaussian":
            total += w * (-0.5 * (y_n - f_n) ** 2 / noise - 0.5 * math.log(2 * math.pi * noise))
        else:
            p = 1 / (1 + math.exp(-f_n))
            total += w * math.log(p if y_n == 1 else 1 - p)
    return total


def laplace_evidence(log_likelihood, theta, hessian, precision):
    """``log p(D, theta) + P/2 log 2 pi - 1/2 log |H + Lambda|`` (paper, eq. marglik), all dense."""
    log_prior = sum(
        -0.5 * lam * t**2 + 0.5 * math.log(lam / (2 * math.pi))
        for t, lam in zip(theta, precision, strict=True)
    )
    log_det = np.linalg.slogdet(hessian + np.diag(precision))[1]
    return log_likelihood + log_prior + 0.5 * len(theta) * math.log(2 * math.pi) - 0.5 * log_det


class DenseLaplace:
    """Laplace at the mode of any likelihood, by Newton's steps over dense rows.

    ``derivatives(f)`` (n, k) gives the rows' log-likelihood, slopes (n, k) and curvatures (n, k, k). Every
    output has its own parameters, with the same ``precision``, and an intercept with a flat prior.
    Parameters stand output by output, its intercept last.
    """

    def __init__(self, phi, precision, derivatives, n_outputs=1, blocks=None, steps=25):
        n, n_parameters = phi.shape
        width = n_parameters + 1
        prior = np.diag(np.tile(np.append(precision, 0.0), n_outputs))
        theta, rows = np.zeros(width * n_outputs), self.rows(phi, n_outputs)
        for _ in range(steps):
            value, slope, curvature = derivatives((rows @ theta).reshape(n, n_outputs))
            gradient = rows.T @ slope.ravel() - prior @ theta
            hessian = rows.T @ block_diagonal(curvature) @ rows + prior
            theta = theta + np.linalg.solve(hessian, gradient)
        self.n_outputs, self.mean, self.log_likelihood = n_outputs, theta, value
        intercepts = np.arange(n_outputs) * width + n_parameters
        terms = np.setdiff1d(np.arange(len(theta)), intercepts)
        if blocks is None:
            self.covariance = np.linalg.inv(hessian)
            log_det = np.linalg.slogdet(hessian[np.ix_(terms, terms)])[1]
        else:
            self.covariance, log_det = np.zeros_like(hessian), 0.0
            for block in blocks:
                own = np.arange(n_parameters)[block]
                own = np.concatenate([own + width * k for k in range(n_outputs)])
                self.covariance[np.ix_(own, own)] = np.linalg.inv(hessian[np.ix_(own, own)])
                log_det += np.linalg.slogdet(hessian[np.ix_(own, own)])[1]
            free = np.linalg.inv(hessian[np.ix_(intercepts, intercepts)])
            self.covariance[np.ix_(intercepts, intercepts)] = free
        self.log_evidence = (
            value
            - 0.5 * theta @ prior @ theta
            + 0.5 * n_outputs * np.log(precision).sum()
            - 0.5 * log_det
        )

    @staticmethod
    def rows(phi, n_outputs):
        """Every row's derivatives, all outputs of a row after each other."""
        ones = np.hstack([phi, np.ones((len(phi), 1))])
        return np.concatenate([np.kron(np.eye(n_outputs), row[None]) for row in ones])

    def moments(self, phi):
        """Mean (n, k) and covariance (n, k, k) of the prediction."""
        rows = self.rows(phi, self.n_outputs).reshape(len(phi), self.n_outputs, -1)
        mean = np.array([row @ self.mean for row in rows])
        return mean, np.array([row @ self.covariance @ row.T for row in rows])
