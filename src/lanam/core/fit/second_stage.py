"""The second stage of a fit: pairwise interactions are scored, tried in rounds, and selected.

All terms are trained together, starting from the first stage: its terms stay in the model, columns that it
dropped may return beside their pair, and without any supported pair the result is the first stage's model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.fit import interactions
from lanam.core.fit.prepare import Pair, Run, pair_terms, threads
from lanam.core.inference import selection
from lanam.core.inference.left_out import Fit
from lanam.core.inference.problem import Problem, add_terms
from lanam.core.inference.selection import Threshold
from lanam.core.inference.solver import Dropped, Stage, TrainingTask
from lanam.core.model.fitted import ACTIVE, EXCLUDED, UNSUPPORTED, ScoredPair
from lanam.core.rows.summaries import DataSummary
from lanam.core.terms.knots import Categories
from lanam.core.terms.term import key_of

#: With ``interactions="auto"``, the number of pairs tried at once, and the least score in nats: low,
#: because scores ignore that other pairs may reduce the noise.
_PAIRS_AT_ONCE = 10
_PROMISING = 0.3

#: Scores below this are zero.
_ROUNDING = 1e-3

#: Nats that tuning gives to a useless pair with two precisions, and for each further one.
_TUNED = 2.0
_TUNED_EACH = 1.0

#: Approximate number of coordinates of a pair.
_PAIR_WIDTH = 30


def second_stage(stage: Stage, run: Run, rng: Rng) -> tuple[Stage, tuple[ScoredPair, ...]]:
    """Score all pairs, try some, keep those that the evidence supports.

    In rounds, each scored on the residuals of the rounds before it, until a round gains nothing: named
    pairs are tried at once; for a number ``k`` the best ``k``, then replacements of dropped ones; for
    ``"auto"`` the best with a sufficient score, up to ``max_pairs`` of them. A round that the time budget
    ends is not taken.
    """
    n_columns, options = stage.problem.rows.n_columns, run.options
    every = interactions.all_pairs(range(n_columns))
    # Pairs with time are a question of their own, with prior odds of their own. They come last: subjects
    # are selected by what is not in the model yet, which then seems to change with time.
    of_time = [pair for pair in every if options.time in pair]
    others = [pair for pair in every if options.time not in pair]
    scored: tuple[ScoredPair, ...] = ()
    for asked, pairs in ((options.interactions, others), (options.time_interactions, of_time)):
        if asked not in (0, ()) and not (scored and stage.interrupted):
            stage, more = _search(stage, run, rng, asked, pairs)
            scored += more
    return stage, tuple(sorted(scored, key=lambda pair: -pair.score))


def _search(
    stage: Stage, run: Run, rng: Rng, asked: str | int | tuple[Pair, ...], pairs: Sequence[Pair]
) -> tuple[Stage, tuple[ScoredPair, ...]]:
    """The search for those that are asked for among some ``pairs``."""
    unused = run.prepared.unused
    known, active = run.options.knowledge, _active_pairs(stage)
    # Curves by group were tried with the columns.
    by_group = known.grouped - active
    allowed = [pair for pair in pairs if not known.excludes(pair) and pair not in by_group]
    usable = [pair for pair in allowed if not unused.keys() & set(pair)]
    search = _PairSearch.of(run, asked, usable, _active_pairs(stage))
    first: dict[Pair, float] = {}
    scores: dict[Pair, float] = {}
    try:
        first = scores = search.score(stage, search.pairs)
        left = [pair for pair in search.pairs if pair not in search.earlier]
        for number in count():
            if run.is_out_of_time():
                break
            if number and search.kind == "evidence":
                scores = scores | search.score(stage, left)
            n_found = len(_active_pairs(stage) - search.earlier)
            tried = search.choose(left, scores, n_found)
            if not tried:
                break
            with threads(stage.width + _PAIR_WIDTH * len(tried), run.options.n_jobs):
                wider = _try_pairs(stage, tried, search, run, rng)
            if wider.interrupted and run.is_out_of_time():
                break
            stage = wider
            left = [pair for pair in left if pair not in tried]
            # In the paper dropped pairs are not replaced.
            once = run.prepared.solver.trained
            if once or stage.interrupted or not _active_pairs(stage) & set(tried):
                break
    except KeyboardInterrupt:
        # Training returns its best state by itself; otherwise the stage is unchanged.
        stage = replace(stage, reason="interrupted")
    stage = run.prepared.solver.select(stage)
    if len(first) < len(search.pairs):
        return stage, ()  # interrupted before all were scored
    scored = search.describe(first, scores, stage, run.is_out_of_time())
    others = {pair: EXCLUDED for pair in pairs if known.excludes(pair)}
    others |= dict.fromkeys(by_group, UNSUPPORTED)
    rest = tuple(ScoredPair(pair, 0.0, others[pair]) for pair in pairs if pair in others)
    return stage, scored + _unusable(allowed, unused) + rest


def _active_pairs(stage: Stage) -> set[tuple[int, ...]]:
    return {term.features for term in stage.problem.terms if term.joint}


@dataclass(frozen=True)
class _PairSearch:
    """The candidate pairs and the request; ``earlier`` pairs were in the model before."""

    requested: str | int | tuple[Pair, ...]
    kind: str
    most: int
    pairs: tuple[Pair, ...]
    earlier: frozenset[tuple[int, ...]]
    categories: dict[int, Categories]
    summary: DataSummary
    #: whether effects are those of trained networks
    trained: bool = False

    @classmethod
    def of(
        cls,
        run: Run,
        asked: str | int | tuple[Pair, ...],
        pairs: Sequence[Pair],
        earlier: set[tuple[int, ...]],
    ) -> _PairSearch:
        options, inputs = run.options, run.prepared
        request = asked, options.interaction_score, options.max_pairs
        columns = inputs.categories, inputs.summary
        return cls(*request, tuple(pairs), frozenset(earlier), *columns, inputs.solver.trained)

    def threshold(self, n_pairs: int, n_precisions: int = 2) -> float:
        """The log evidence gain that the weakest of ``n_pairs`` must have.

        The gain of tuning its precisions, and the prior odds against it: if any fraction of all pairs is
        equally likely to interact, the odds of ``m`` against ``m - 1`` are ``m`` to ``M - m + 1``. So one
        pair among many needs more than one of several. Pairs that the user named were not searched for.
        """
        if isinstance(self.requested, tuple):
            return 0.0
        # Never odds in favour: where most pairs are tried, useless ones would support each other.
        against = max((len(self.pairs) - n_pairs + 1) / n_pairs, 1.0)
        # Pairs with categories or missing values may have more precisions than a joint network's two.
        return _TUNED + _TUNED_EACH * max(n_precisions - 2, 0) + float(np.log(against))

    def score(self, stage: Stage, pairs: Sequence[Pair]) -> dict[Pair, float]:
        """Scores of some pairs on the residuals of a stage."""
        score = partial(interactions.score, trained=True) if self.trained else interactions.score
        values = score(
            self.kind, stage.problem, stage.state, self.summary, pairs, self.categories
        ).tolist()
        return dict(zip(pairs, values, strict=True))

    def choose(self, left: Sequence[Pair], scores: dict[Pair, float], n_found: int) -> list[Pair]:
        """The pairs to try next, best first, after ``n_found``."""
        ranked = sorted(left, key=lambda pair: -scores[pair])
        if isinstance(self.requested, tuple):
            return [pair for pair in ranked if pair in self.requested]
        if isinstance(self.requested, int):
            return ranked[: self.requested - n_found]
        # At first the best are tried at any score but zero, at which their order would be rounding: their
        # gain may show once others are in the model.
        blindly = not n_found and self.kind == "evidence"
        promising = [
            pair
            for pair in ranked
            if self._promising(scores[pair]) or (blindly and scores[pair] > _ROUNDING)
        ]
        return promising[: min(_PAIRS_AT_ONCE, self.most - n_found)]

    def _promising(self, score: float) -> bool:
        return score >= (_PROMISING if self.kind == "evidence" else np.finfo(float).tiny)

    def describe(
        self, scores: dict[Pair, float], last: dict[Pair, float], stage: Stage, out_of_time: bool
    ) -> tuple[ScoredPair, ...]:
        """All pairs with their first score and status, best first.

        ``last`` are the scores on the final residuals.
        """
        full = len(_active_pairs(stage) - self.earlier) >= self.most
        status: dict[tuple[int, ...], str] = {
            gone.term.features: f"{UNSUPPORTED} ({_shortfall(gone)})" for gone in stage.dropped
        }
        status |= dict.fromkeys(_active_pairs(stage), ACTIVE)

        def left_out(pair: Pair) -> str:
            reasons = (
                (isinstance(self.requested, tuple), "not named"),
                (isinstance(self.requested, int), f"not among the best {self.requested}"),
                (not self._promising(scores[pair]), "no gain expected"),
                (not self._promising(last[pair]), "explained by other pairs"),
                (stage.interrupted, "interrupted before its turn"),
                (out_of_time, "the time budget ended the search"),
                (full, f"{self.most} interactions were found; raise max_pairs for more"),
                (True, "the search ended before its turn"),
            )
            return "left out: " + next(reason for applies, reason in reasons if applies)

        ranked = sorted(self.pairs, key=lambda pair: -scores[pair])
        return tuple(
            ScoredPair(pair, scores[pair], status.get(pair) or left_out(pair)) for pair in ranked
        )


def _shortfall(dropped: Dropped) -> str:
    """The log evidence gain of a dropped pair, and what it missed, with digits that tell them apart."""
    gain, least = dropped.log_evidence_gain, dropped.threshold
    if dropped.left_out_loss is not None:
        # Of all pairs of the round together.
        return f"log evidence gain {gain:.1f}, leave-one-out log score {-dropped.left_out_loss:.1f}"
    if least is None or not np.isfinite(least):
        return f"log evidence gain {round(gain, 1) + 0.0:.1f}"
    digits = 1 if round(gain, 1) != round(least, 1) else 3
    return f"log evidence gain {round(gain, digits) + 0.0:.{digits}f}, threshold {least:.{digits}f}"


def _unusable(pairs: Sequence[Pair], unused: dict[int, str]) -> tuple[ScoredPair, ...]:
    """Pairs of columns without a term, and the reason."""
    return tuple(
        ScoredPair(pair, 0.0, next(unused[k] for k in pair if k in unused))
        for pair in pairs
        if any(k in unused for k in pair)
    )


def _try_pairs(
    stage: Stage, tried: Sequence[Pair], search: _PairSearch, run: Run, rng: Rng
) -> Stage:
    """Fit with further pairs and drop weak ones; without any gain, the stage is unchanged."""
    fresh = pair_terms(search.summary, tried, run.options, search.categories)
    # With less noise, dropped columns may gain something beside their pair.
    beside = {(feature,) for pair in tried for feature in pair}
    dropped = [gone.term for gone in stage.dropped if gone.term.kind != "level"]
    back = [term for term in dropped if term.features in beside]
    # In the columns' order, whenever they were dropped.
    added = [*sorted(back, key=lambda term: term.features), *fresh]
    announce = partial(run.announce, "pairs", len(stage.problem.terms) + len(added))
    problem, state = add_terms(stage.problem, stage.state, added, announce, rng)
    retried = {*beside, *tried}
    stays = [g for g in stage.dropped if g.term.features not in retried or g.term.kind == "level"]
    before = replace(stage, dropped=tuple(stays))
    task = TrainingTask("pairs", before, problem, state, partial(_threshold, stage, search))
    wider = run.prepared.solver.select(run.prepared.solver.train(task, rng, run.record))
    # New pairs may only have replaced others, and an interrupt may have come before they were trained.
    gain = wider.state.evidence - stage.state.evidence
    least = _TUNED if not isinstance(search.requested, tuple) else -np.inf
    if wider.interrupted:
        least = 0.0
    left_out_loss = None
    if _active_pairs(wider) & set(tried) and gain > least:
        left_out_loss = (
            _left_out_loss(stage, wider, run) if _is_judged(search, wider, run) else None
        )
        if left_out_loss is None:
            return wider
    # Nothing new: the stage is unchanged, but for the gains of the pairs.
    kept = zip(wider.problem.terms, wider.problem.data_mass, strict=True)
    rejected = (Dropped(term, mass, gain, least, left_out_loss) for term, mass in kept)
    gone = [*wider.dropped, *rejected]
    gone = [one for one in gone if one.term.features in tried]
    still = [one for one in stage.dropped if one.term.features not in tried]
    return replace(stage, dropped=(*still, *gone), reason=wider.reason)


def _is_judged(search: _PairSearch, wider: Stage, run: Run) -> bool:
    """Whether left-out rows are asked, too: not for pairs that the user named, or trained networks."""
    named = isinstance(search.requested, tuple)
    return not (named or wider.interrupted or run.prepared.solver.trained)


def _left_out_loss(stage: Stage, wider: Stage, run: Run) -> float | None:
    """By how much the log score of left-out rows falls with further pairs, if it surely does.

    Of many rows those sampled. It falls surely by more than its standard error.
    """
    rows = run.sample_in(wider.problem)
    after = Fit.at(wider.problem, wider.state).without(rows).score
    before = Fit.at(stage.problem, stage.state).without(run.sample_in(stage.problem)).score
    losses = rows.weight * (before - after)
    loss, error = float(losses.sum()), float(np.sqrt(len(losses)) * losses.std())
    return loss if loss > error else None


def _threshold(stage: Stage, search: _PairSearch, problem: Problem) -> Threshold:
    """The log evidence gain that each term of a problem must have; earlier terms are not judged."""
    settled = {
        key_of(term)
        for term in stage.problem.terms
        if not term.joint or term.features in search.earlier
    }

    def threshold(k: int, left: Sequence[int]) -> float:
        term = problem.terms[k]
        if key_of(term) in settled:
            return -np.inf
        if not term.joint:
            return selection.MIN_LOG_EVIDENCE_GAIN
        n_pairs = sum(problem.terms[j].joint for j in left)
        return search.threshold(n_pairs, int(term.group_index.max()) + 1)

    return threshold
