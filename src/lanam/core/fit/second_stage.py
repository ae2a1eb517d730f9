"""The second stage of a fit: pairs of columns are scored, tried in rounds, and kept where they pay.

All terms are trained together, and the first stage is where they start: what it has learned stays
in the model, columns it had switched off may come back beside their pair, and where no pair pays the
model is the first stage's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lanam.core.fit import interactions
from lanam.core.fit.assembly import switched_off
from lanam.core.fit.interactions import Pair
from lanam.core.fit.pairs import pair_terms
from lanam.core.fit.stage import Stage, term_of
from lanam.core.fit.training import Run, fit_and_select, threads, train
from lanam.core.inference import selection
from lanam.core.inference.gauss_newton import Problem, widen
from lanam.core.inference.selection import Needed
from lanam.core.model.fitted import ACTIVE, FittedTerm, ScoredPair
from lanam.core.rows.summaries import Summary
from lanam.core.terms.knots import Categories

#: Where the evidence is to say how many pairs there are, so many are tried at once, in at most so many
#: rounds, if they promise this many nats: the score does not know of the noise that other pairs explain.
_PAIRS_AT_ONCE = 10
_MAX_ROUNDS = 5
_PROMISING = 0.3

#: Nats by which tuning a pair's two precisions may make a useless one look better, and each further one.
_TUNED = 2.0
_TUNED_EACH = 1.0

#: Coordinates that a pair has, about.
_PAIR_WIDTH = 30

#: A model with more coordinates than this is not searched for still more pairs: a solve costs their cube.
_MAX_WIDTH = 2000


def second_stage(
    stage: Stage, run: Run, rng: np.random.Generator
) -> tuple[Stage, tuple[ScoredPair, ...]]:
    """Score all pairs, try some, keep what pays.

    In rounds, each scored on what the rounds before it left over, until a round gains nothing: pairs that
    were named are tried at once; of ``k`` the best ``k``, then others in place of those that went; for
    ``"auto"`` the best that promise something.
    """
    n_columns = stage.problem.rows.n_columns
    usable = [k for k in range(n_columns) if k not in run.prepared.unused]
    search = _Search.of(run, interactions.all_pairs(usable), _active_pairs(stage))
    first: dict[Pair, float] = {}
    scores: dict[Pair, float] = {}
    try:
        first = scores = search.score(stage, search.pairs, rng)
        left = [pair for pair in search.pairs if pair not in search.known]
        for number in range(_MAX_ROUNDS):
            if number and search.kind == "evidence":
                scores = scores | search.score(stage, left, rng)
            found = len(_active_pairs(stage) - search.known)
            tried = search.choose(left, scores, found, stage.width)
            if not tried:
                break
            with threads(stage.width + _PAIR_WIDTH * len(tried), run.options.n_jobs):
                stage = _try_pairs(stage, tried, search, run, rng)
            left = [pair for pair in left if pair not in tried]
            if stage.reason == "interrupted" or not _active_pairs(stage) & set(tried):
                break
    except KeyboardInterrupt:
        # Training keeps its best by itself; whatever else is interrupted leaves things as they were.
        stage = replace(stage, reason="interrupted")
    if len(first) < len(search.pairs):
        return stage, ()  # interrupted before all were scored
    told = search.tell(first, scores, stage)
    return stage, told + _unusable(n_columns, run.prepared.unused)


def _active_pairs(stage: Stage) -> set[tuple[int, ...]]:
    return {term.features for term in stage.problem.terms if term.joint}


@dataclass(frozen=True)
class _Search:
    """What was asked for, among which pairs; ``known`` are those that were there before."""

    asked: str | int | tuple[Pair, ...]
    kind: str
    pairs: tuple[Pair, ...]
    known: frozenset[tuple[int, ...]]
    categories: dict[int, Categories]
    summary: Summary

    @classmethod
    def of(cls, run: Run, pairs: Sequence[Pair], known: set[tuple[int, ...]]) -> _Search:
        options = run.options
        asked, kind = options.interactions, options.interaction_score
        prepared = run.prepared
        categories, summary = prepared.categories, prepared.summary
        return cls(asked, kind, tuple(pairs), frozenset(known), categories, summary)

    def needed(self, n_pairs: int, n_precisions: int = 2) -> float:
        """Nats the weakest of ``n_pairs`` must be worth, if it has so many precisions.

        What tuning its precisions brings by itself, and the prior odds against it: if any share of all
        pairs is as likely to interact, the odds of ``m`` against ``m - 1`` are ``m`` to ``M - m + 1``.
        So one pair among many must show more than one of several. A pair the user named was not
        searched for.
        """
        if isinstance(self.asked, tuple):
            return 0.0
        # Never odds in favour: where most pairs are tried, useless ones would vouch for each other.
        against = max((len(self.pairs) - n_pairs + 1) / n_pairs, 1.0)
        # A pair with categories or gaps may have more than the two of a joint network.
        more = _TUNED_EACH * max(n_precisions - 2, 0)
        return _TUNED + more + float(np.log(against))

    def score(
        self, stage: Stage, pairs: Sequence[Pair], rng: np.random.Generator
    ) -> dict[Pair, float]:
        """Scores of some pairs on what a stage left over."""
        values = interactions.score(
            self.kind, stage.problem, stage.state, self.summary, pairs, rng, self.categories
        ).tolist()
        return dict(zip(pairs, values, strict=True))

    def choose(
        self, left: Sequence[Pair], scores: dict[Pair, float], found: int, width: int
    ) -> list[Pair]:
        """The pairs to try next, best first, in a model that has so many pairs and coordinates."""
        ranked = sorted(left, key=lambda pair: -scores[pair])
        if isinstance(self.asked, tuple):
            return [pair for pair in ranked if pair in self.asked]
        if isinstance(self.asked, int):
            return ranked[: self.asked - found]
        if width > _MAX_WIDTH:
            return []
        # At first the best are tried whatever they promise: they may show once others are in.
        blindly = not found and self.kind == "evidence"
        promising = [pair for pair in ranked if blindly or self._promising(scores[pair])]
        return promising[:_PAIRS_AT_ONCE]

    def _promising(self, score: float) -> bool:
        return score >= (_PROMISING if self.kind == "evidence" else np.finfo(float).tiny)

    def tell(
        self, scores: dict[Pair, float], last: dict[Pair, float], stage: Stage
    ) -> tuple[ScoredPair, ...]:
        """Every pair with its first score and why it is in or out, best first.

        ``last`` are the scores on what the model has left over.
        """
        status: dict[tuple[int, ...], str] = {
            term.features: f"{term.status} (worth {round(term.evidence, 1) + 0.0:.1f} nats)"
            for term in stage.off
        }
        status |= dict.fromkeys(_active_pairs(stage), ACTIVE)

        def otherwise(pair: Pair) -> str:
            if isinstance(self.asked, tuple):
                return "left out: not named"
            if isinstance(self.asked, int):
                return f"left out: not among the best {self.asked}"
            if not self._promising(scores[pair]):
                return "left out: no gain expected"
            if not self._promising(last[pair]):
                return "left out: what it promised, others explain"
            if stage.reason == "interrupted":
                return "left out: interrupted before its turn"
            if stage.width > _MAX_WIDTH:
                return "left out: the model is large; ask for a number of pairs to have more"
            return "left out: the search ended before its turn"

        ranked = sorted(self.pairs, key=lambda pair: -scores[pair])
        return tuple(
            ScoredPair(pair, scores[pair], status.get(pair) or otherwise(pair)) for pair in ranked
        )


def _unusable(n_columns: int, unused: dict[int, str]) -> tuple[ScoredPair, ...]:
    """Pairs of columns that have no term, and why."""
    return tuple(
        ScoredPair(pair, 0.0, next(unused[k] for k in pair if k in unused))
        for pair in interactions.all_pairs(range(n_columns))
        if any(k in unused for k in pair)
    )


def _try_pairs(
    stage: Stage,
    tried: Sequence[Pair],
    search: _Search,
    run: Run,
    rng: np.random.Generator,
) -> Stage:
    """Fit with some more pairs; those that do not pay are off, and without any all is as it was."""
    options = run.options
    fresh = pair_terms(search.summary, tried, options, search.categories)
    # With less noise, columns that were off may be worth something beside their pair.
    beside = {(feature,) for pair in tried for feature in pair}
    back = [term for term in stage.off if term.kind != "level" and term.features in beside]
    # In the columns' order, whenever they went.
    returning = [term_of(term, options) for term in sorted(back, key=lambda term: term.features)]
    run.announce("pairs", [*stage.problem.terms, *returning, *fresh])
    problem, state = widen(stage.problem, stage.state, [*returning, *fresh], rng)
    retried = {*beside, *tried}
    stays_off = [term for term in stage.off if term.features not in retried or term.kind == "level"]
    off: list[FittedTerm] = []
    if options.solver == "adam":
        trained = train(problem, stage.state, run, rng)
        problem, state, reason = trained.problem, trained.state, trained.reason
        off += trained.off
    else:
        needed = partial(_needed, _settled(stage, search), search)
        run.newest = (stage.problem, stage.state)
        try:
            problem, state, converged = fit_and_select(
                "pairs", problem, state, run, rng, off, needed
            )
            reason = "converged" if converged else "max_iter"
        except KeyboardInterrupt:
            problem, state = run.newest
            reason = "interrupted"
    wider = Stage(problem, state, (*stays_off, *off), reason)
    # New pairs may only have taken the place of others; and an interrupt may have come before they had
    # learned anything.
    gain = state.evidence - stage.state.evidence
    least = _TUNED if not isinstance(search.asked, tuple) else -np.inf
    if reason == "interrupted":
        least = 0.0
    if _active_pairs(wider) & set(tried) and gain > least:
        return wider
    # Nothing new: the stage as it was, and what the pairs were worth.
    off += [
        switched_off(term, share, gain)
        for term, share in zip(problem.terms, problem.shares, strict=True)
    ]
    gone = [term for term in off if term.features in tried]
    still = [term for term in stage.off if term.features not in tried]
    return replace(stage, off=(*still, *gone), reason=reason)


def _settled(stage: Stage, search: _Search) -> set[tuple[str, tuple[int, ...]]]:
    """The terms whose place in the model is not in question: those that were there before."""
    return {
        (term.kind, term.features)
        for term in stage.problem.terms
        if not term.joint or term.features in search.known
    }


def _needed(settled: set[tuple[str, tuple[int, ...]]], search: _Search, now: Problem) -> Needed:
    """What the terms of a problem must be worth to stay."""

    def needed(k: int, left: Sequence[int]) -> float:
        term = now.terms[k]
        if (term.kind, term.features) in settled:
            return -np.inf
        if not term.joint:
            return selection.WORTH
        n_pairs = sum(now.terms[j].joint for j in left)
        return search.needed(n_pairs, int(term.group_index.max()) + 1)

    return needed
