"""Small data sets and unfinished fits, shared by tests of the core."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from lanam.core.fit.resume import term_of
from lanam.core.inference import evidence
from lanam.core.inference.evidence import UPDATES, Hyper, Moments, mackay
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State
from lanam.core.terms.linearise import initial_precision
from lanam.core.terms.term import LevelTerm
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import block_diagonal, entry_matrix

SMALL = Options(hidden_sizes=(7,), init_scales=(1.0, 4.0))


def additive_data(n=60, likelihood="gaussian", seed=0):
    """Two relevant columns, one of them discrete; different weights."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.uniform(-2, 2, n), rng.integers(0, 6, n).astype(float)])
    f = np.sin(2 * columns[:, 0]) + 0.5 * columns[:, 1]
    weight = rng.integers(1, 4, n).astype(float)
    if likelihood == "gaussian":
        return columns, f + 0.3 * rng.standard_normal(n), weight
    return columns, (rng.uniform(size=n) < expit(2.0 * (f - 1.0))).astype(float), weight


def started(columns, y, weight, likelihood="gaussian", options=SMALL, noise=0.3, seed=0):
    """A problem and its state before the first pass."""
    prepared = in_memory.prepared(columns, y, weight, LIKELIHOODS[likelihood], options)
    problem = Problem.of(
        prepared.terms,
        prepared.rows,
        prepared.units.likelihood,
        options.posterior == "joint",
        UPDATES[options.evidence_update],
    )
    rng = np.random.default_rng(seed)
    estimates = tuple(problem.initial_term(k, rng) for k in range(len(problem.terms)))
    # Different precisions per group, so that none can be mistaken for another, independent of the solver's
    # initial state.
    precisions = [
        initial_precision(term, one.jacobian, share, 0.1)
        * rng.uniform(0.3, 3.0, len(one.precision))
        for term, one, share in zip(problem.terms, estimates, problem.data_mass, strict=True)
    ]
    estimates = tuple(
        replace(one, precision=precision, smallest_precision=precision / 1e3)
        for one, precision in zip(estimates, precisions, strict=True)
    )
    return problem, State(estimates, 0.0, noise if likelihood == "gaussian" else 1.0)


def mackay_step(model, hyper, posterior):
    """The hyperparameters after a step to MacKay's fixed point."""
    none = Moments.zeros(model.prior.n_groups + 1)
    return evidence.step(model, hyper, posterior, mackay, none)[0]


def dense_curvature(block):
    """A Kronecker-factored ``H`` as a matrix in the order of the flat parameter vector."""

    def dense(factor):
        values, vectors = factor.spectrum
        return (vectors * values) @ vectors.T

    return block_diagonal(
        [np.kron(dense(own.left), dense(own.right)) / own.total for own in block.tensors]
    )


def dense_features(model, columns, options):
    """A fitted Gaussian process in its parameters: every row's features, precisions, terms' blocks.

    In the core's units. Effects of high cardinality are not centred: the intercept is free.
    """
    parts, precisions, blocks, end = [], [], [], 0
    for fitted in model.terms:
        if fitted.active:
            term = term_of(fitted, options, float(len(columns)))
            if isinstance(term, LevelTerm) and term.high_cardinality:
                table = np.eye(len(term.entries))
            else:
                table = term.jacobian(fitted.expansion)
                table = table - fitted.data_mass @ table
            rows = entry_matrix(fitted.entries, *(columns[:, k] for k in fitted.features))
            parts.append(rows @ table)
            precisions.append(fitted.precision[term.group_index])
            blocks.append(slice(end, end + table.shape[1]))
            end += table.shape[1]
    return np.hstack(parts), np.concatenate(precisions), blocks


def unchanged(model, noise):
    """The hyperparameters that a linear model's tables were made for."""
    return Hyper(np.zeros(model.prior.n_groups), noise)
