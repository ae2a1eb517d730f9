"""The second stage of a fit: interactions are scored, tried in rounds, and selected; pairs, then triples.

All terms are trained together, starting from the first stage: its terms stay in the model, columns that it
dropped may return beside their interaction, and without any supported one the result is the first stage's
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.fit import interactions
from lanam.core.fit.joint import Interaction, joint_terms
from lanam.core.fit.prepare import Run, threads
from lanam.core.fit.refinement import refine
from lanam.core.fit.search import (
    RULES,
    TUNED,
    Asked,
    Outcome,
    Search,
    active,
    candidate_triples,
)
from lanam.core.inference import selection
from lanam.core.inference.left_out import log_score_change
from lanam.core.inference.problem import Problem, add_terms
from lanam.core.inference.selection import Threshold
from lanam.core.inference.solver import Dropped, Stage, TrainingTask
from lanam.core.model.fitted import ScoredInteraction
from lanam.core.terms.term import key_of

#: Approximate number of coordinates of an interaction.
_WIDTH = 30


def second_stage(stage: Stage, run: Run, rng: Rng) -> tuple[Stage, tuple[ScoredInteraction, ...]]:
    """Score all candidates, try some, keep those that the evidence supports.

    In rounds, each scored on the residuals of the rounds before it, until a round gains nothing: named
    interactions are tried at once; for a number ``k`` the best ``k`` pairs, then replacements of dropped
    ones; for ``"auto"`` the best with a sufficient score, up to ``max_pairs`` of them, first of the pairs,
    then of the triples. A round that the time budget ends is not taken.
    """
    options, time = run.options, run.options.time
    pairs = interactions.all_of_order(range(stage.problem.rows.n_columns), 2)
    # Coordinates have a surface, and no pair.
    every = [pair for pair in pairs if pair not in options.knowledge.spatial]
    outcomes = list[Outcome]()

    def search(
        asked: Asked, candidates: Sequence[Interaction], lower: Search | None
    ) -> Search | None:
        nonlocal stage
        if asked in (0, ()) or (outcomes and stage.interrupted):
            return None
        rounds = Search.of(run, asked, candidates, frozenset(active(stage)), lower)
        stage, outcome = _search(stage, run, rng, rounds)
        outcomes.append(outcome)
        return rounds

    asked = [_of_order(options.interactions, order, options.max_order) for order in (2, 3)]
    tried = search(asked[0], [pair for pair in every if time not in pair], None)
    if asked[1] not in (0, ()):
        search(asked[1], _triples(stage, run, outcomes), tried)
    # Pairs with time are a question of their own, with prior odds of their own. They come last: subjects
    # are selected by what is not in the model yet, which then seems to change with time.
    search(options.time_interactions, [pair for pair in every if time in pair], None)
    stage = refine(stage, run, rng)
    scored = [one for outcome in outcomes for one in outcome.describe(stage, run.is_out_of_time())]
    return stage, tuple(sorted(scored, key=ScoredInteraction.rank))


def _of_order(asked: Asked, order: int, max_order: int) -> Asked:
    """What is asked for of an order: numbers are of pairs, and names of as many columns as they have."""
    if isinstance(asked, tuple):
        return tuple(one for one in asked if len(one) == order)
    if isinstance(asked, int):
        return asked if order == 2 else 0
    return asked if order <= max_order else 0


def _triples(stage: Stage, run: Run, outcomes: Sequence[Outcome]) -> list[Interaction]:
    """The triples to score: without time, and without unused columns."""
    if isinstance(run.options.interactions, tuple):
        return [one for one in run.options.interactions if len(one) == 3]
    without = {*run.prepared.unused, run.options.time}
    usable = [k for k in range(stage.problem.rows.n_columns) if k not in without]
    triples = candidate_triples(usable, outcomes, active(stage), stage.problem.likelihood.n_outputs)
    return [triple for triple in triples if not run.options.knowledge.excludes(triple)]


def _search(stage: Stage, run: Run, rng: Rng, search: Search) -> tuple[Stage, Outcome]:
    """The rounds of a search."""
    first: dict[Interaction, float] = {}
    scores: dict[Interaction, float] = {}
    try:
        first = scores = search.score(stage, search.candidates)
        left = [one for one in search.candidates if one not in search.earlier]
        for number in count():
            if run.is_out_of_time():
                break
            if number and search.kind == "evidence":
                scores = scores | search.score(stage, left)
            tried = search.choose(left, scores, len(search.found(stage)))
            if not tried:
                break
            with threads(stage.width + _WIDTH * len(tried), run.options.n_jobs):
                wider = _try(stage, tried, search, run, rng)
            if wider.interrupted and run.is_out_of_time():
                break
            stage = wider
            left = [one for one in left if one not in tried]
            # In the paper dropped pairs are not replaced.
            once = run.prepared.solver.trained
            if once or stage.interrupted or not active(stage) & set(tried):
                break
    except KeyboardInterrupt:
        # Training returns its best state by itself; otherwise the stage is unchanged.
        stage = replace(stage, reason="interrupted")
    return run.prepared.solver.select(stage), Outcome(search, first, scores)


def _try(stage: Stage, tried: Sequence[Interaction], search: Search, run: Run, rng: Rng) -> Stage:
    """Fit with further interactions and drop weak ones; without any gain, the stage is unchanged."""
    fresh = joint_terms(search.summary, tried, run.options, search.categories)
    # With less noise, dropped columns may gain something beside their interaction.
    beside = {(feature,) for one in tried for feature in one}
    dropped = [gone.term for gone in stage.dropped if gone.term.kind != "level"]
    back = [term for term in dropped if term.features in beside]
    # In the columns' order, whenever they were dropped.
    added = [*sorted(back, key=lambda term: term.features), *fresh]
    announce = partial(run.announce, search.words, len(stage.problem.terms) + len(added))
    problem, state = add_terms(stage.problem, stage.state, added, announce, rng)
    retried = {*beside, *tried}
    stays = [g for g in stage.dropped if g.term.features not in retried or g.term.kind == "level"]
    before = replace(stage, dropped=tuple(stays))
    threshold = partial(_threshold, stage, search)
    task = TrainingTask(search.words, before, problem, state, threshold)
    wider = run.prepared.solver.select(run.prepared.solver.train(task, rng, run.record))
    # New interactions may only have replaced others, and an interrupt may have come before they were
    # trained.
    gain = wider.state.evidence - stage.state.evidence
    least = -np.inf if search.named else TUNED
    if wider.interrupted:
        least = 0.0
    left_out_loss = None
    if active(wider) & set(tried) and gain > least:
        if _is_judged(search, wider, run):
            left_out_loss = _left_out_loss(stage, wider, run, RULES[search.order].least_change)
        if left_out_loss is None:
            return wider
    # Nothing new: the stage is unchanged, but for the gains of the interactions.
    kept = zip(wider.problem.terms, wider.problem.data_mass, strict=True)
    rejected = (Dropped(term, mass, gain, least, left_out_loss) for term, mass in kept)
    gone = [*wider.dropped, *rejected]
    gone = [one for one in gone if one.term.features in tried]
    still = [one for one in stage.dropped if one.term.features not in tried]
    return replace(stage, dropped=(*still, *gone), reason=wider.reason)


def _is_judged(search: Search, wider: Stage, run: Run) -> bool:
    """Whether left-out rows are asked, too: not for named interactions, or trained networks."""
    return not (search.named or wider.interrupted or run.prepared.solver.trained)


def _left_out_loss(stage: Stage, wider: Stage, run: Run, least_change: float) -> float | None:
    """By how much the log score of left-out rows falls with further interactions, if it rules them out.

    It does if it changes by less than ``least_change`` standard errors. Of many rows those sampled.
    """
    change, error = log_score_change(
        (stage.problem, stage.state, run.sample_in(stage.problem)),
        (wider.problem, wider.state, run.sample_in(wider.problem)),
    )
    return -change if change < least_change * error else None


def _threshold(stage: Stage, search: Search, problem: Problem) -> Threshold:
    """The log evidence gain that each term of a problem must have; earlier terms are not judged."""
    settled = {key_of(term) for term in stage.problem.terms if not term.joint}

    def threshold(k: int, left: Sequence[int]) -> float:
        term = problem.terms[k]
        if not term.joint:
            return -np.inf if key_of(term) in settled else selection.MIN_LOG_EVIDENCE_GAIN
        own = search.of_term(term)
        if own is None:
            return -np.inf
        n_found = sum(len(problem.terms[j].features) == own.order for j in left)
        return own.threshold(n_found, int(term.group_index.max()) + 1)

    return threshold
