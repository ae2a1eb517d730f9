"""Interactions of three columns: their scores, and the search for them after that of the pairs."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from lanam.core.fit import interactions, joint, search, second_stage
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import ACTIVE
from tests.core import in_memory
from tests.core.test_interactions import dense_scores, residuals, scores_of
from tests.oracles import assert_close, conditional_means

RNG = np.random.default_rng
TRIPLE = (0, 1, 2)
AUTO = Options(interactions="auto", max_order=3, level_effects=False)


def table(n=700, strength=1.0, pair=0.0, seed=0):
    """Four columns: a product of the first three, and one of the last two."""
    rng = RNG(seed)
    columns = rng.uniform(-1.0, 1.0, (n, 4))
    f = 3.0 * strength * columns[:, 0] * columns[:, 1] * columns[:, 2] + columns[:, 3]
    f += pair * columns[:, 2] * columns[:, 3]
    return columns, f + 0.3 * rng.standard_normal(n)


def fit(columns, y, options=AUTO, likelihood="gaussian"):
    return in_memory.fit(columns, y, np.ones(len(y)), likelihood, options, 0)


@cache
def fitted():
    return fit(*table())


def found(model):
    return {term.features for term in model.terms if term.joint}


class TestScores:
    def test_are_the_gain_of_a_dense_gaussian_process(self, monkeypatch):
        monkeypatch.setattr(interactions, "_MAX_DIRECTIONS", 12)
        monkeypatch.setattr(interactions, "_SMALLEST_DIRECTION", 1e-14)
        monkeypatch.setattr(interactions, "_N_BINS", {3: 4})
        columns, residual, weight = residuals()
        residual = residual + columns[:, 0] * columns[:, 1] * (columns[:, 2] - 2.0)
        expected = dense_scores(columns, residual, weight, 0.3, [TRIPLE])
        assert_close(scores_of(columns, residual, weight, pairs=[TRIPLE]), expected, "conditioning")
        assert expected[0] > 2.0

    def test_do_not_depend_on_the_order_of_the_columns(self):
        columns, residual, weight = residuals()
        forth = scores_of(columns, residual, weight, pairs=[TRIPLE])
        back = scores_of(columns[:, [2, 0, 1]], residual, weight, pairs=[TRIPLE])
        assert_close(forth, back, "conditioning")

    def test_see_nothing_that_pairs_explain(self):
        columns, _, weight = residuals(n=400)
        cell = np.digitize(columns, [0.0])
        pairs = sum(RNG(1).normal(size=(3, 3))[cell[:, i], cell[:, j]] for i, j in [(0, 1), (1, 2)])
        assert scores_of(columns, pairs, weight, pairs=[TRIPLE])[0] < 0.1


class TestCandidates:
    def test_all_where_columns_are_few(self):
        assert search.candidate_triples([0, 2, 3, 5], (), set(), 1) == [
            (0, 2, 3),
            (0, 2, 5),
            (0, 3, 5),
            (2, 3, 5),
        ]

    def test_with_the_best_pairs_where_they_are_many(self, monkeypatch):
        monkeypatch.setattr(search, "_MAX_TRIPLES", 16)
        pairs = tuple(combinations(range(10), 2))
        scores = {pair: float(pair == (3, 4)) for pair in pairs}
        asked = search.Search("auto", "evidence", 50, pairs, 45, frozenset(), {}, None)
        outcome = search.Outcome(asked, scores, scores)
        # First those of a pair in the model, then those of the highest score.
        triples = search.candidate_triples(range(10), [outcome], {(7, 8)}, 1)
        assert len(triples) == len(set(triples)) == 16
        assert all({7, 8} <= set(one) or {3, 4} <= set(one) for one in triples)
        assert len(search.candidate_triples(range(10), [outcome], {(7, 8)}, 4)) == 4

    def test_the_odds_are_against_all_that_are_possible(self):
        asked = search.Search("auto", "evidence", 50, (TRIPLE,), 120, frozenset(), {}, None, 3)
        assert asked.threshold(1) == pytest.approx(2.0 + np.log(120.0))


class TestGrids:
    @pytest.mark.parametrize(("n", "n_knots"), [(60, 5), (1400, 5), (1800, 6), (10**6, 6)])
    def test_knots_grow_with_the_cube_root_of_the_rows(self, n, n_knots):
        columns = RNG(0).standard_normal((60, 3))
        (grid,) = in_memory.place_grids(columns, np.full(60, n / 60), [TRIPLE])
        # One knot beyond the data on either side.
        assert grid.shape == (n_knots + 2,) * 3

    def test_of_categories_the_most_frequent(self):
        codes = np.arange(300) % 30
        columns = np.column_stack([RNG(0).standard_normal((300, 2)), codes])
        own = {2: in_memory.place_categories(codes, np.ones(300), 30)}
        (grid,) = in_memory.place_grids(columns, np.ones(300), [TRIPLE], own)
        assert grid.axes[2].n_own == joint._SIZES[3].most_levels


class TestSearch:
    def test_finds_a_planted_one_and_no_other(self):
        model = fitted()
        assert [one for one in found(model) if len(one) == 3] == [TRIPLE]
        status = {one.features: one.status for one in model.scored}
        assert status[TRIPLE] == ACTIVE
        assert model.scored[0].features == TRIPLE
        columns, y = table(seed=1)
        rest = y - scoring.link_moments(model, columns)[0]
        assert rest.std() < 0.36

    def test_it_is_pure(self):
        (term,) = (term for term in fitted().terms if term.features == TRIPLE)
        size = float(np.sqrt(term.data_mass @ term.mean**2))
        means = conditional_means(term.mean[:, None], term.data_mass, term.entries.shape)
        assert max(np.abs(each).max() for each in means) < 1e-8 * size

    def test_without_one_the_fit_is_that_of_pairs(self):
        columns, y = table(strength=0.0, pair=2.0)
        pairs = fit(columns, y, replace(AUTO, max_order=2))
        triples = fit(columns, y)
        assert found(pairs) == found(triples) == {(2, 3)}
        assert triples.log_evidence == pairs.log_evidence
        for one, two in zip(pairs.terms, triples.terms, strict=True):
            np.testing.assert_array_equal(one.mean, two.mean)
        # Unlikely triples are not listed.
        assert {one.features for one in pairs.scored} <= {one.features for one in triples.scored}

    def test_the_largest_order(self):
        columns, y = table()
        assert all(len(one) == 2 for one in found(fit(columns, y, replace(AUTO, max_order=2))))
        none = fit(columns, y, replace(AUTO, max_order=1))
        assert found(none) == set()
        assert none.scored == ()

    def test_named_ones_need_no_search(self):
        columns, y = table(strength=0.1)
        named = fit(columns, y, replace(AUTO, interactions=((2, 3), (0, 1, 3), TRIPLE)))
        statuses = {one.features: one.status for one in named.scored}
        assert {TRIPLE, (0, 1, 3)} <= statuses.keys()
        assert not any(
            status.startswith("left out") for one, status in statuses.items() if len(one) == 3
        )

    def test_a_number_is_of_pairs(self):
        assert all(len(one) == 2 for one in found(fit(*table(), replace(AUTO, interactions=2))))

    def test_left_out_rows_must_confirm_a_round(self, monkeypatch):
        strict = replace(search.RULES[3], least_change=1e3)
        monkeypatch.setitem(search.RULES, 3, strict)
        model = fit(*table())
        assert all(len(one) == 2 for one in found(model))
        status = {one.features: one.status for one in model.scored}[TRIPLE]
        assert "leave-one-out log score" in status

    def test_pairs_are_judged_again(self, monkeypatch):
        """A triple's tails look like its pairs; with the triple they have nothing left to explain."""
        judged = []
        before = second_stage._threshold

        def threshold(stage, asked, problem):
            of = before(stage, asked, problem)
            pairs = [k for k, term in enumerate(problem.terms) if len(term.features) == 2]
            if asked.order == 3:
                judged.extend(of(k, range(len(problem.terms))) for k in pairs)
            return of

        monkeypatch.setattr(second_stage, "_threshold", threshold)
        fit(*table(pair=2.0))
        assert judged
        assert min(judged) > 0.0

    def test_classes(self):
        columns, y = table(n=900)
        model = fit(columns, (y > 0.0).astype(float), likelihood="bernoulli")
        assert TRIPLE in found(model)

    def test_time_has_none(self):
        options = replace(AUTO, time=3)
        prepared, stage = in_memory.resume(fitted(), *table(), np.ones(700), options)
        assert second_stage._triples(stage, second_stage.Run(prepared, options), ()) == [TRIPLE]


def test_of_many_triples_the_smoothest_are_scored_in_full(monkeypatch):
    columns, y = table(400)
    residual = y - columns[:, 3]
    triples = list(combinations(range(4), 3))
    scores = {}
    for few in (200, 1):
        monkeypatch.setattr(interactions, "_FEW", few)
        scores[few] = scores_of(columns, residual, np.ones(400), pairs=triples)
    assert scores[200][0] == scores[1][0] > 10.0
    assert (scores[1] <= scores[200]).all()
