"""How far the rows of a fit determine it: parameters per row, influence of single rows, separation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.left_out import Fit
from lanam.core.inference.solver import Stage
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import Diagnostics
from lanam.core.rows.located import Rows
from lanam.core.terms.term import key_of

#: Nats within which the evidence does not decide.
_CLOSE = 1.0


def diagnose(stage: Stage, rows: Rows, fit: Fit, gains: Sequence[float]) -> Diagnostics:
    """The diagnostics of a fit from some ``rows``; ``gains`` are the terms' log evidence gains."""
    problem, state = stage.problem, stage.state
    influential, influence = fit.most_influential(rows)
    return Diagnostics(
        saturation=state.n_effective / problem.rows.count,
        influence=influence,
        influential=influential,
        separated=_separated(problem.likelihood, rows.y, problem.around(state).predict(rows)),
        close_calls=_close_calls(stage, gains),
        pair_thresholds=_pair_thresholds(stage),
    )


def _pair_thresholds(stage: Stage) -> tuple[float, ...]:
    """The lowest and the highest log evidence gain that was asked of an interaction, if any was tried."""
    kept = [
        value
        for term in stage.problem.terms
        if term.joint and np.isfinite(value := stage.thresholds.get(key_of(term), -np.inf))
    ]
    gone = [d.threshold for d in stage.dropped if d.term.joint and d.threshold is not None]
    found = [value for value in (*kept, *gone) if np.isfinite(value)]
    return (min(found), max(found)) if found else ()


def _close_calls(stage: Stage, gains: Sequence[float]) -> tuple[tuple[int, ...], ...]:
    """Columns of the terms that one more nat would have decided the other way, kept or dropped."""
    kept = {
        term.features: gain - stage.thresholds.get(key_of(term), -np.inf)
        for term, gain in zip(stage.problem.terms, gains, strict=True)
    }
    dropped = {
        gone.term.features: gone.threshold - gone.log_evidence_gain
        for gone in stage.dropped
        if gone.threshold is not None and gone.term.features not in kept
    }
    return tuple(sorted(key for key, margin in (kept | dropped).items() if margin < _CLOSE))


def _separated(likelihood: Likelihood, y: Array, f: Array) -> bool:
    """Whether a threshold of its score separates every class from the others; unknown is no."""
    contrasts = likelihood.contrasts
    if contrasts is not None:
        if len(np.unique(y)) < len(contrasts):  # sampled rows may lack a rare class
            return False
        scores = dict(enumerate((f @ contrasts.T).T))
    elif likelihood.noise_bounds is None and set(np.unique(y)) == {0.0, 1.0}:
        scores = {1: f}
    else:
        return False
    return all(score[y == k].min() > score[y != k].max() for k, score in scores.items())
