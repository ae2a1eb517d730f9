"""The mean under the noise it has: gross errors lose their weight while it is learned (``tails.py``).

Rows are compared with what the others predict: a row cannot explain its own error. How frequent and how
large errors are is estimated from the sample of rows that the first pass keeps, so that rows in memory and
out of core have the same model; the reliability of a row then depends on the row and the fit alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.fit.prepare import Run
from lanam.core.inference.left_out import Fit
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Stage
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import GAUSSIAN
from lanam.core.noise.residuals import LEAST_ROWS
from lanam.core.noise.tails import LEAST_WIDTH, Residuals, Tails, fit_tails
from lanam.core.rows.located import AnyRows, GrossErrors, Rows
from lanam.core.rows.tables import EncodedRows
from lanam.core.terms.term import Term

#: Nats by which gross errors must describe the residuals of left-out rows better than a Gaussian.
_LEAST_GAIN = 10.0
#: Fits after which errors that are still unlikely are taken for none.
_MOST_FITS = 4
#: Standard errors by which the squared errors of left-out rows must fall ...
_LEAST_FALL = 2.0
#: ... none of them counting for more than this many standard deviations of the response.
_LARGEST_ERROR = 1.5
#: Standard deviations by which more errors may be on one side than on the other.
_MOST_SURPLUS = 2.6
#: Multiple of the least width of an error beyond which it is far out.
_FAR = 3.0
#: The least share of errors that are far out to the other side.
_LEAST_MINORITY = 0.1
#: The least width of errors where smaller ones are unlikely: where noise differs from row to row, rows
#: may be neither regular nor gross errors.
_LARGE_WIDTH = 4.0 * LEAST_WIDTH
#: The median absolute value of a standard normal variate.
_MEDIAN = 0.6745


@dataclass(frozen=True)
class LeftOutErrors:
    """Gross errors by a fit to all rows, ``terms`` being its terms: ``GrossErrors``.

    ``missing_noise`` and ``before`` are the noise that this fit itself was learned with.
    """

    leave: Fit
    tails: Tails
    terms: tuple[Term, ...]
    missing_noise: Array | None
    before: GrossErrors | None

    def residuals(self, rows: Rows) -> Residuals:
        """Residuals of rows left out of the fit."""
        located = replace(rows, positions=(), sizes=()).with_terms(self.terms)
        return _left_out(self.leave, located.with_noise(self.missing_noise, self.before))

    def __call__(self, rows: Rows) -> tuple[Array, Array]:
        """The reliability of rows, and what their log-likelihood has besides."""
        return self.tails.reliability(self.residuals(rows))


@dataclass(frozen=True)
class Found:
    """Gross errors, and the residuals of sampled rows that they were found by."""

    errors: LeftOutErrors
    residuals: Residuals

    @cached_property
    def gross(self) -> NDArray[np.bool_]:
        """The sampled rows that are more likely gross errors than not."""
        return np.asarray(self.errors.tails.responsibilities(self.residuals)[:, 0] < 0.5)

    @property
    def unlikely(self) -> bool:
        """Whether these are no errors: too many or too small, or on one side, with a tail that has no end.

        Then the noise differs from row to row, or is skewed, and its mean is asked for.
        """
        return self.errors.tails.too_many or self._too_small or self._one_sided

    @property
    def weight(self) -> float:
        """The weight of the sampled rows that are more likely gross errors than not."""
        return float(self.residuals.weight[self.gross].sum())

    @property
    def _too_small(self) -> bool:
        """Whether half of the errors are smaller than half of those of the least width would be."""
        size, weight = np.abs(self.residuals.standard), self.residuals.weight
        small = size < _MEDIAN * self.errors.tails.widths[1]
        return float(weight @ (self.gross & small)) > 0.5 * self.weight

    @property
    def _one_sided(self) -> bool:
        surplus = abs(float(self.residuals.weight @ (self.gross * np.sign(self.residuals.values))))
        return surplus > _MOST_SURPLUS * math.sqrt(self.weight) and not self._separate

    @property
    def _separate(self) -> bool:
        """Whether more residuals are far out, to both sides, than in a tail of a distribution with a mean.

        Of a Pareto tail with exponent 1, a third is beyond three times where the tail begins. A few large
        responses on one side only may be what the mean is asked for, as large losses are.
        """
        size, weight = self.residuals.standard, self.residuals.weight
        above, below = (float(weight @ (s * size > _FAR * LEAST_WIDTH)) for s in (1.0, -1.0))
        expected = float(weight @ (np.abs(size) > LEAST_WIDTH)) / _FAR
        spread = math.sqrt(expected * (1.0 - 1.0 / _FAR))
        both = min(above, below) > _LEAST_MINORITY * (above + below)
        return both and above + below > expected + _MOST_SURPLUS * spread


def _left_out(leave: Fit, rows: Rows) -> Residuals:
    left = leave.without(rows)
    precision = np.ones(len(rows)) if rows.precision is None else rows.precision
    if rows.reliability is not None:
        precision = precision / rows.reliability
    values = rows.y - left.prediction
    return Residuals(values, left.fitted, left.variance, 1.0 / precision, rows.weight)


def weighted_stage(stage: Stage, rows: AnyRows, fit: Callable[[AnyRows], Stage], run: Run) -> Stage:
    """The stage, or a fit to rows that are weighted by their reliability if that predicts better.

    Both must hold: the evidence is higher, and the squared errors of left-out rows are smaller. Noise that
    differs from row to row, or a function that is not in the model yet, has evidence too.
    """
    try:
        suspected = _suspected(stage, run)
        if suspected is None:
            return stage
        left = suspected
        # Of a fit that errors have bent, residuals are large in many rows: what counts are those left.
        for _ in range(_MOST_FITS):
            before = left
            again = fit(rows.with_noise(stage.problem.rows.missing_noise, before.errors))
            if again.interrupted:
                return replace(stage, reason=again.reason)
            left = _found(again.problem, again.state, run)
            if not left.unlikely or left.weight >= before.weight:
                break
        rises = again.state.evidence > stage.state.evidence + _LEAST_GAIN
        better = rises and not left.unlikely and _predicts_better(left, suspected, run)
        return again if better else stage
    except KeyboardInterrupt:
        return replace(stage, reason="interrupted")


def reweighted(problem: Problem, state: State, run: Run) -> Problem | None:
    """The problem with gross errors as they are around a state; None if it has none."""
    if problem.rows.gross_errors is None:
        return None
    rows = problem.rows.with_noise(problem.rows.missing_noise, _found(problem, state, run).errors)
    return problem.with_terms(problem.terms, rows)


def found(stage: Stage, run: Run) -> Found | None:
    """The gross errors of a fitted stage; None if it has none."""
    if stage.problem.rows.gross_errors is None:
        return None
    return _found(stage.problem, stage.state, run)


def with_gross_errors(
    model: FittedModel, found: Found | None, stage: Stage, run: Run
) -> FittedModel:
    """The model of regular rows' noise, with gross errors as part of the noise of new observations."""
    if found is None:
        return model
    shape = GAUSSIAN if model.shape is None else model.shape
    n_rows = run.prepared.summary.total_weight
    factor, mixed = found.errors.tails.shape(shape, stage.state.noise, n_rows)
    missing = model.missing_variance
    return replace(
        model,
        noise_variance=factor * model.noise_variance,
        missing_variance=None if missing is None else factor * missing,
        shape=mixed,
    )


def may_have_gross_errors(model: FittedModel) -> bool:
    """Whether the residual distribution has a component as wide as that of gross errors."""
    shape = model.shape
    return shape is not None and bool(
        shape.stds.max() >= LEAST_WIDTH * shape.stds[shape.weights.argmax()]
    )


def regular_rows(found: Found | None, run: Run) -> EncodedRows | None:
    """The sample without the rows that are more likely gross errors than not."""
    sample = run.prepared.summary.sample
    if sample is None or found is None:
        return sample
    regular = ~found.gross
    columns = np.asfortranarray(sample.columns[regular])
    group = None if sample.group is None else sample.group[regular]
    rows = sample.response[regular], sample.weight[regular]
    return EncodedRows(columns, *rows, group=group)


def _suspected(stage: Stage, run: Run) -> Found | None:
    """Gross errors around a stage, None where a Gaussian describes the residuals as well."""
    likelihood, sample = stage.problem.likelihood, run.prepared.summary.sample
    if not (run.options.noise and likelihood.quadratic and likelihood.heteroscedastic):
        return None
    # Noise at its lower bound is rounding.
    if stage.interrupted or sample is None or len(sample) < LEAST_ROWS:
        return None
    if likelihood.noise_bounds and stage.state.noise < 1.01 * likelihood.noise_bounds[0]:
        return None
    leave = Fit.at(stage.problem, stage.state)
    residuals = _left_out(leave, run.sample_in(stage.problem))
    if np.abs(residuals.standard).max() < LEAST_WIDTH:
        return None
    found = _found_by(stage.problem, leave, residuals, LEAST_WIDTH)
    variance = stage.state.noise * residuals.relative + residuals.variance
    squares = np.square(residuals.values) / variance
    gaussian = -0.5 * float(residuals.weight @ (squares + np.log(2.0 * math.pi * variance)))
    gain = found.errors.tails.log_likelihood(residuals) - gaussian
    return found if gain > _LEAST_GAIN else None


def _found(problem: Problem, state: State, run: Run) -> Found:
    """Gross errors as the residuals around a state have them."""
    leave = Fit.at(problem, state)
    residuals = _left_out(leave, run.sample_in(problem))
    found = _found_by(problem, leave, residuals, LEAST_WIDTH)
    return _found_by(problem, leave, residuals, _LARGE_WIDTH) if found.unlikely else found


def _found_by(problem: Problem, leave: Fit, residuals: Residuals, least_width: float) -> Found:
    """Gross errors of at least this width by residuals of left-out rows."""
    noise = problem.rows.missing_noise, problem.rows.gross_errors
    tails = fit_tails(residuals, least_width)
    return Found(LeftOutErrors(leave, tails, problem.terms, *noise), residuals)


def _predicts_better(new: Found, old: Found, run: Run) -> bool:
    """Whether squared errors of left-out rows have fallen; gross ones do not count for more."""
    sample = run.prepared.summary.sample
    assert sample is not None
    y = run.prepared.units.standard(sample.response)
    most = _LARGEST_ERROR * float(np.median(np.abs(y - np.median(y)))) / _MEDIAN

    def squares(found: Found) -> Array:
        return np.minimum(np.square(found.residuals.values), most**2)

    fall = sample.weight * (squares(old) - squares(new))
    return float(fall.sum()) > _LEAST_FALL * float(np.sqrt(np.square(fall).sum()))
