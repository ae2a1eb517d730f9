"""Finer pairs: with more knots and a further band of scales (method.md).

Pairs are searched for with few knots, which is enough to find them. At the end of the search, those whose
residuals have finer structure are fitted with a finer grid, as far as rows allow; evidence and left-out
rows decide. Triples come first: what they explain may look like rough pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.fit import interactions
from lanam.core.fit.joint import Interaction, finer_term
from lanam.core.fit.prepare import Run, threads
from lanam.core.fit.search import TUNED
from lanam.core.inference.left_out import log_score_change
from lanam.core.inference.problem import Problem
from lanam.core.inference.selection import Threshold
from lanam.core.inference.solver import Stage, TrainingTask
from lanam.core.terms.term import MixedTerm, SmoothTerm, Term

#: The largest numbers of knots along an axis, in turn.
_KNOTS = (32, 64)

#: The least log evidence gain of finer structure, in closed form, with which a finer pair is fitted.
_PROMISING = 5.0

#: Approximate number of coordinates of a finer pair.
_WIDTH = 150


def refine(stage: Stage, run: Run, rng: Rng) -> Stage:
    """The stage with finer pairs; unchanged where these gain nothing."""
    if run.prepared.solver.trained or run.options.pair_hidden_sizes is not None:
        return stage
    for n_knots in _KNOTS:
        if stage.interrupted or run.is_out_of_time():
            break
        finer = _promising(stage, run, n_knots)
        if not finer:
            break
        wider = _fit(stage, finer, run, rng)
        if wider is None and len(finer) > 1:
            best = next(iter(finer))
            wider = _fit(stage, {best: finer[best]}, run, rng)
        if wider is None:
            break
        stage = wider
    return stage


def _promising(stage: Stage, run: Run, n_knots: int) -> dict[Interaction, SmoothTerm | MixedTerm]:
    """The finer terms of pairs whose residuals have finer structure, the best first."""
    inputs = run.prepared
    terms = {}
    for term in stage.problem.terms:
        if not _is_eligible(term, run):
            continue
        finer = finer_term(term.features, inputs.summary, run.options, inputs.categories, n_knots)
        sizes = [[len(axis) for axis in each.entries.axes] for each in (finer, term)]
        if sizes[0] != sizes[1] or finer.architecture != term.architecture:
            terms[term.features] = finer
    scores = interactions.fine_scores(
        stage.problem, stage.state, inputs.summary, list(terms), inputs.categories
    )
    ranked = sorted(zip(scores.tolist(), terms, strict=True), reverse=True)
    return {pair: terms[pair] for score, pair in ranked if score >= _PROMISING}


def _is_eligible(term: Term, run: Run) -> bool:
    """Whether a term is a pair that was searched for: not of groups, of space, or under a constraint."""
    known = run.options.knowledge
    if not isinstance(term, SmoothTerm | MixedTerm) or len(term.features) != 2:
        return False
    return term.features not in known.grouped and known.constrained.isdisjoint(term.features)


def _fit(
    stage: Stage, finer: dict[Interaction, SmoothTerm | MixedTerm], run: Run, rng: Rng
) -> Stage | None:
    """The stage with finer terms in place of pairs; None if evidence or left-out rows are against them."""
    before, state = stage.problem, stage.state
    terms = tuple(finer.get(term.features, term) for term in before.terms)
    places = [k for k, term in enumerate(terms) if term.features in finer]
    kept = [k for k in range(len(terms)) if k not in places]
    rows = before.rows.keep_terms(kept).with_terms([terms[k] for k in places])
    order = [*kept, *places]
    with threads(stage.width + _WIDTH * len(finer), run.options.n_jobs):
        problem = before.with_terms([terms[k] for k in order], rows)
        estimates = [
            problem.initial_term(at, None) if k in places else state.terms[k]
            for at, k in enumerate(order)
        ]
        start = replace(state, terms=tuple(estimates), quadratic=None)
        task = TrainingTask("finer pairs", stage, problem, start, _kept)
        wider = run.prepared.solver.train(task, rng, run.record)
        if wider.interrupted:
            return None
        gain = wider.state.evidence - state.evidence
        if gain < TUNED * len(finer):
            return None
        now = wider.problem, wider.state, run.sample_in(wider.problem)
        change, error = log_score_change((before, state, run.sample_in(before)), now)
    return wider if change > error else None


def _kept(problem: Problem) -> Threshold:
    """No term is dropped: only designs are compared."""

    def threshold(k: int, left: Sequence[int]) -> float:
        return -np.inf

    return threshold
