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

from lanam.core.arrays import Rng
from lanam.core.fit import interactions
from lanam.core.fit.prepare import Pair, Run, pair_terms, threads
from lanam.core.inference import selection
from lanam.core.inference.problem import Problem, add_terms
from lanam.core.inference.selection import Needed
from lanam.core.inference.solver import Dropped, Stage, Task
from lanam.core.model.fitted import ACTIVE, SWITCHED_OFF, ScoredPair
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


def second_stage(stage: Stage, run: Run, rng: Rng) -> tuple[Stage, tuple[ScoredPair, ...]]:
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
            if stage.interrupted or not _active_pairs(stage) & set(tried):
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
        asked, kind, own = run.options.interactions, run.options.interaction_score, run.prepared
        return cls(asked, kind, tuple(pairs), frozenset(known), own.categories, own.summary)

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

    def score(self, stage: Stage, pairs: Sequence[Pair], rng: Rng) -> dict[Pair, float]:
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
            gone.term.features: f"{SWITCHED_OFF} (worth {round(gone.log_evidence_gain, 1) + 0.0:.1f} nats)"
            for gone in stage.dropped
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
            if stage.interrupted:
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


def _try_pairs(stage: Stage, tried: Sequence[Pair], search: _Search, run: Run, rng: Rng) -> Stage:
    """Fit with some more pairs; those that do not pay are off, and without any all is as it was."""
    fresh = pair_terms(search.summary, tried, run.options, search.categories)
    # With less noise, columns that were off may be worth something beside their pair.
    beside = {(feature,) for pair in tried for feature in pair}
    off = [gone.term for gone in stage.dropped if gone.term.kind != "level"]
    back = [term for term in off if term.features in beside]
    # In the columns' order, whenever they went.
    more = [*sorted(back, key=lambda term: term.features), *fresh]
    announce = partial(run.announce, "pairs", len(stage.problem.terms) + len(more))
    problem, state = add_terms(stage.problem, stage.state, more, rng, announce)
    retried = {*beside, *tried}
    stays = [g for g in stage.dropped if g.term.features not in retried or g.term.kind == "level"]
    before = replace(stage, dropped=tuple(stays))
    task = Task("pairs", before, problem, state, partial(_needed, _settled(stage, search), search))
    wider = run.solver.train(task, rng, run.record)
    # New pairs may only have taken the place of others; and an interrupt may have come before they had
    # learned anything.
    gain = wider.state.evidence - stage.state.evidence
    least = _TUNED if not isinstance(search.asked, tuple) else -np.inf
    if wider.interrupted:
        least = 0.0
    if _active_pairs(wider) & set(tried) and gain > least:
        return wider
    # Nothing new: the stage as it was, and what the pairs were worth.
    kept = zip(wider.problem.terms, wider.problem.shares, strict=True)
    gone = [*wider.dropped, *(Dropped(term, share, gain) for term, share in kept)]
    gone = [one for one in gone if one.term.features in tried]
    still = [one for one in stage.dropped if one.term.features not in tried]
    return replace(stage, dropped=(*still, *gone), reason=wider.reason)


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
