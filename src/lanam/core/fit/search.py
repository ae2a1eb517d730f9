"""The search for interactions of an order: candidates, what is tried next, and what each must gain.

Pairs come first and triples after them: of a triple only the part counts that no pair explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import TypeAlias

import numpy as np

from lanam.core.fit import interactions
from lanam.core.fit.joint import Interaction
from lanam.core.fit.prepare import Run
from lanam.core.inference.solver import Dropped, Stage
from lanam.core.model.fitted import ACTIVE, EXCLUDED, UNSUPPORTED, ScoredInteraction
from lanam.core.rows.summaries import DataSummary
from lanam.core.terms.knots import Categories
from lanam.core.terms.term import Term

#: "auto", their number, or which.
Asked: TypeAlias = str | int | tuple[Interaction, ...]


@dataclass(frozen=True)
class _Rules:
    """How interactions of an order are searched for.

    ``promising`` is the least score, in nats, with which one is tried. It is low for pairs, because scores
    ignore that other pairs may reduce the noise; at first even the best of lower scores are tried
    (``blindly``). A round is undone if the log score of left-out rows changes by less than
    ``least_change`` standard errors: pairs must not surely make it fall, triples must surely make it rise.
    """

    promising: float
    blindly: bool
    least_change: float


RULES = {2: _Rules(0.3, True, -1.0), 3: _Rules(3.0, False, 3.0)}

#: With ``interactions="auto"``, the number of interactions tried at once.
_AT_ONCE = 10

#: Scores below this are zero.
_ROUNDING = 1e-3

#: Nats that tuning gives to a useless interaction with two precisions, and for each further one.
TUNED = 2.0
_TUNED_EACH = 1.0

#: The largest number of triples, times outputs, that are scored, and of promising ones that are listed.
_MAX_TRIPLES = 20_000
_MAX_LISTED = 100


@dataclass(frozen=True)
class Search:
    """The candidates of an order and the request; ``earlier`` interactions were in the model before.

    ``n_possible`` is the number of all interactions of the order, of which the candidates may be some;
    ``unused`` are those that are not candidates, and the reason: a column has no term, or a pair is
    excluded.
    """

    requested: Asked
    kind: str
    most: int
    candidates: tuple[Interaction, ...]
    n_possible: int
    earlier: frozenset[tuple[int, ...]]
    categories: dict[int, Categories]
    summary: DataSummary
    order: int = 2
    unused: tuple[ScoredInteraction, ...] = ()
    #: whether effects are those of trained networks
    trained: bool = False
    #: the search of pairs before, which are judged again: a triple may explain what they seemed to
    lower: Search | None = None

    @classmethod
    def of(
        cls,
        run: Run,
        asked: Asked,
        candidates: Sequence[Interaction],
        earlier: frozenset[tuple[int, ...]],
        lower: Search | None,
    ) -> Search:
        """A search in a fit, among some candidates of one order."""
        options, inputs = run.options, run.prepared
        order = max(map(len, candidates), default=2)
        known = options.knowledge
        # Curves by group were tried with the columns.
        out: dict[Interaction, str] = dict.fromkeys(known.grouped - earlier, UNSUPPORTED)
        out |= {one: EXCLUDED for one in candidates if known.excludes(one)}
        allowed = [one for one in candidates if one not in out]
        usable = tuple(one for one in allowed if not inputs.unused.keys() & set(one))
        rest = tuple(ScoredInteraction(one, 0.0, out[one]) for one in candidates if one in out)
        n_columns = len(inputs.summary.columns) - len(inputs.unused)
        return cls(
            asked,
            # The paper's scores are of pairs.
            options.interaction_score if order == 2 else "evidence",
            options.max_pairs,
            usable,
            len(usable) if order == 2 else comb(n_columns, order),
            earlier,
            inputs.categories,
            inputs.summary,
            order,
            _unusable(allowed, inputs.unused) + rest,
            inputs.solver.trained,
            lower,
        )

    @property
    def named(self) -> bool:
        """Whether the user named the interactions."""
        return isinstance(self.requested, tuple)

    @property
    def words(self) -> str:
        """What is searched for."""
        return {2: "pairs", 3: "triples"}[self.order]

    def of_term(self, term: Term) -> Search | None:
        """The search that judges a joint term; None for those that were in the model before."""
        if term.features in self.earlier:
            return None if self.lower is None else self.lower.of_term(term)
        return self

    def threshold(self, n_found: int, n_precisions: int = 2) -> float:
        """The log evidence gain that the weakest of ``n_found`` must have.

        The gain of tuning its precisions, and the prior odds against it: if any fraction of all candidates
        is equally likely to interact, the odds of ``m`` against ``m - 1`` are ``m`` to ``M - m + 1``. So
        one among many needs more than one of several. Interactions that the user named were not searched
        for.
        """
        if self.named:
            return 0.0
        # Never odds in favour: where most are tried, useless ones would support each other.
        against = max((self.n_possible - n_found + 1) / n_found, 1.0)
        # With categories or missing values they may have more precisions than a joint network's two.
        return TUNED + _TUNED_EACH * max(n_precisions - 2, 0) + float(np.log(against))

    def score(self, stage: Stage, candidates: Sequence[Interaction]) -> dict[Interaction, float]:
        """Scores of some candidates on the residuals of a stage."""
        if not candidates:
            return {}
        score = partial(interactions.score, trained=True) if self.trained else interactions.score
        values = score(
            self.kind, stage.problem, stage.state, self.summary, candidates, self.categories
        ).tolist()
        return dict(zip(candidates, values, strict=True))

    def found(self, stage: Stage) -> set[tuple[int, ...]]:
        """The interactions that the search has added."""
        return (active(stage) - self.earlier) & set(self.candidates)

    def choose(
        self, left: Sequence[Interaction], scores: dict[Interaction, float], n_found: int
    ) -> list[Interaction]:
        """The candidates to try next, best first, after ``n_found``."""
        ranked = sorted(left, key=lambda one: -scores[one])
        if isinstance(self.requested, tuple):
            return [one for one in ranked if one in self.requested]
        if isinstance(self.requested, int):
            return ranked[: self.requested - n_found]
        # At first the best are tried at any score but zero, at which their order would be rounding: their
        # gain may show once others are in the model.
        blindly = RULES[self.order].blindly and not n_found and self.kind == "evidence"
        promising = [
            one
            for one in ranked
            if self.promising(scores[one]) or (blindly and scores[one] > _ROUNDING)
        ]
        return promising[: min(_AT_ONCE, self.most - n_found)]

    def promising(self, score: float) -> bool:
        """Whether a candidate with this score is tried."""
        least = RULES[self.order].promising
        return score >= (least if self.kind == "evidence" else np.finfo(float).tiny)


@dataclass(frozen=True)
class Outcome:
    """A search that ended: the ``first`` scores of its candidates, and the ``last``."""

    search: Search
    first: dict[Interaction, float]
    last: dict[Interaction, float]

    def describe(self, stage: Stage, out_of_time: bool) -> tuple[ScoredInteraction, ...]:
        """All pairs, or the promising triples, with first score and their status at the end of a fit."""
        search, scores = self.search, self.first
        if len(scores) < len(search.candidates):
            return ()  # interrupted before all were scored
        full = len(search.found(stage)) >= search.most
        found = "interactions" if search.order == 2 else search.words
        status: dict[tuple[int, ...], str] = {
            gone.term.features: f"{UNSUPPORTED} ({_shortfall(gone)})" for gone in stage.dropped
        }
        status |= dict.fromkeys(active(stage), ACTIVE)

        def left_out(one: Interaction) -> str:
            requested = search.requested
            reasons = (
                (isinstance(requested, tuple), "not named"),
                (isinstance(requested, int), f"not among the best {requested}"),
                (not search.promising(scores[one]), "no gain expected"),
                (not search.promising(self.last[one]), f"explained by other {search.words}"),
                (stage.interrupted, "interrupted before its turn"),
                (out_of_time, "the time budget ended the search"),
                (full, f"{search.most} {found} were found; raise max_pairs for more"),
                (True, "the search ended before its turn"),
            )
            return "left out: " + next(reason for applies, reason in reasons if applies)

        ranked = sorted(search.candidates, key=lambda one: -scores[one])
        if search.order > 2:
            likely = {one for one in ranked[:_MAX_LISTED] if search.promising(scores[one])}
            ranked = [one for one in ranked if one in likely or one in status]
        described = (
            ScoredInteraction(one, scores[one], status.get(one) or left_out(one)) for one in ranked
        )
        return *described, *search.unused


def active(stage: Stage) -> set[tuple[int, ...]]:
    """The interactions of a stage."""
    return {term.features for term in stage.problem.terms if term.joint}


def candidate_triples(
    usable: Sequence[int],
    outcomes: Sequence[Outcome],
    found: set[tuple[int, ...]],
    n_outputs: int,
) -> list[Interaction]:
    """All triples of ``usable`` columns, or where these are many, those that contain the best pairs.

    These are the ones ``found``, and those with the highest scores.
    """
    most = max(_MAX_TRIPLES // n_outputs, 1)
    if comb(len(usable), 3) <= most:
        return interactions.all_of_order(usable, 3)
    scores = {pair: score for outcome in outcomes for pair, score in outcome.last.items()}
    pairs = sorted(scores, key=lambda pair: (pair not in found, -scores[pair]))
    wider = (
        tuple(sorted((*pair, other))) for pair in pairs for other in usable if other not in pair
    )
    triples: dict[Interaction, None] = {}
    for triple in wider:
        triples[triple] = None
        if len(triples) == most:
            break
    return sorted(triples)


def _unusable(
    candidates: Sequence[Interaction], unused: dict[int, str]
) -> tuple[ScoredInteraction, ...]:
    """Interactions of columns without a term, and the reason."""
    return tuple(
        ScoredInteraction(one, 0.0, next(unused[k] for k in one if k in unused))
        for one in candidates
        if any(k in unused for k in one)
    )


def _shortfall(dropped: Dropped) -> str:
    """The log evidence gain of a dropped interaction and what it missed, with digits that differ."""
    gain, least = dropped.log_evidence_gain, dropped.threshold
    if dropped.left_out_loss is not None:
        # Of all interactions of the round together.
        change = -dropped.left_out_loss
        return f"log evidence gain {gain:.1f}, leave-one-out log score {change + 0.0:.1f}"
    if least is None or not np.isfinite(least):
        return f"log evidence gain {round(gain, 1) + 0.0:.1f}"
    digits = 1 if round(gain, 1) != round(least, 1) else 3
    return f"log evidence gain {round(gain, digits) + 0.0:.{digits}f}, threshold {least:.{digits}f}"
