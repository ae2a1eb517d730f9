"""The second stage: which pairs it keeps, that they are pure, and what it leaves as it was."""

import re
import time
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.fit import interactions, prepare, search, second_stage
from lanam.core.fit.assembly import assemble, dropped_term
from lanam.core.inference import gauss_newton, posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import add_terms
from lanam.core.inference.solver import Dropped
from lanam.core.model import scoring
from lanam.core.model.fitted import ACTIVE, CONSTANT, DUPLICATE
from lanam.core.terms.knots import locate
from tests.core import in_memory
from tests.core.examples import started
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close, conditional_means, interpolation_matrix

QUICK = Options(hidden_sizes=(12,), pair_hidden_sizes=(16,), level_effects=False)
AUTO = replace(QUICK, interactions="auto")
#: Kronecker factors want one precision a tensor, and so one scale.
KRON = replace(
    QUICK, posterior="block", curvature="kron", init_scales=(1.0,), pair_init_scales=(1.0,)
)
ADAM = Options(
    hidden_sizes=(6,),
    init_scales=(1.0,),
    pair_hidden_sizes=(8,),
    pair_init_scales=(1.0,),
    prior_groups="network",
    solver="adam",
    curvature="exact",
    evidence_update="gradient",
    level_effects=False,
    max_iter=1,
)


def data(likelihood="gaussian", rho=0.0, strength=1.0, n=250, seed=0):
    """Columns 0 and 1 interact; 0 and 2 have effects of their own."""
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n, 3))
    columns[:, 1] = rho * columns[:, 0] + np.sqrt(1.0 - rho**2) * columns[:, 1]
    f = np.sin(columns[:, 0]) + 0.5 * columns[:, 2] + strength * columns[:, 0] * columns[:, 1]
    if likelihood == "gaussian":
        return columns, f + 0.3 * rng.standard_normal(n)
    return columns, (rng.uniform(size=n) < expit(2.0 * f)).astype(float)


def fit(columns, y, weight=None, likelihood="gaussian", options=AUTO, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, seed)


@cache
def fit_of(likelihood="gaussian", options=AUTO, **of_data):
    """The fit to ``data``, made once: many tests compare with it, and none changes it."""
    return fit(*data(likelihood, **of_data), None, likelihood, options)


def found(model):
    """The pairs in the model."""
    return {term.features for term in model.terms if term.kind == "pair" and term.active}


def statuses(model):
    return {pair.features: pair.status for pair in model.scored}


def links(model, columns):
    return scoring.link_moments(model, columns)


@pytest.fixture(params=["gaussian", "bernoulli"])
def likelihood(request):
    return request.param


# --- purity -----------------------------------------------------------------------------------------

VARIANTS = {
    "joint": QUICK,
    "block": replace(QUICK, posterior="block"),
    "kron": KRON,
    "adam": ADAM,
    "adam and kron": replace(ADAM, posterior="block", curvature="kron"),
}


def ridge_data(likelihood, rho, n=300):
    """A function of two columns' difference: hardly additive, however much they depend."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((n, 3))
    columns[:, 1] = rho * columns[:, 0] + np.sqrt(1.0 - rho**2) * columns[:, 1]
    f = (columns[:, 0] - columns[:, 1]) ** 2 / (1.0 - rho) - 2.0 + 0.5 * columns[:, 2]
    if likelihood == "gaussian":
        return columns, f + 0.3 * rng.standard_normal(n)
    return columns, (rng.uniform(size=n) < expit(2.0 * f)).astype(float)


# Dependent columns are the hard case, and independent ones the same code.
@pytest.mark.parametrize(
    ("variant", "rho"), [("joint", 0.0), *((variant, 0.9) for variant in VARIANTS)]
)
def test_pairs_are_pure(likelihood, variant, rho):
    columns, y = ridge_data(likelihood, rho)
    options = replace(VARIANTS[variant], interactions=((0, 1),))
    model = fit(columns, y, None, likelihood, options)
    assert found(model) == {(0, 1)}
    (k,) = [k for k, term in enumerate(model.terms) if term.kind == "pair"]
    term, block = model.terms[k], model.blocks[k]
    shape = term.entries.shape
    assert term.data_mass.shape == (shape[0] * shape[1],)
    spread = np.sqrt(term.data_mass @ term.mean**2)
    assert spread > 0.05
    means = conditional_means(term.mean[:, None], term.data_mass, shape)
    np.testing.assert_allclose(means, 0.0, atol=1e-8 * spread)
    of_tables = conditional_means(term.table, term.data_mass, shape)
    # What bands are made of has 24 bits. Rounding is that of the largest entries, where there is no data.
    np.testing.assert_allclose(of_tables, 0.0, atol=2.0**-23 * np.abs(term.table).max())
    standard = np.random.default_rng(0).standard_normal((len(model.covariance), 20))
    draws = term.table @ (model.cov_cholesky @ standard)[block]
    size = np.sqrt((term.data_mass @ draws**2).min())
    of_draws = conditional_means(draws, term.data_mass, shape)
    np.testing.assert_allclose(of_draws, 0.0, atol=2.0**-23 * np.abs(draws).max())
    assert size > 1e-3 * spread


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_a_pair_explains_what_is_not_additive_and_no_more(rho):
    # The product's own main effects, which there are if the columns depend, stay the columns'.
    columns, y = data(rho=rho, strength=1.0, n=600)
    model = fit(columns, y)
    pair = scoring.term_means(model, columns)[:, [t.kind for t in model.terms].index("pair")]
    product = columns[:, 0] * columns[:, 1]
    assert np.std(pair) < 1.05 * np.std(product)
    for k in (0, 1):
        # Interpolated within the cells, a pure table has small main effects.
        design = np.vander(columns[:, k], 6)
        fitted = design @ np.linalg.lstsq(design, pair, rcond=None)[0]
        assert np.std(fitted) < 0.2 * np.std(pair)
    design = np.hstack([np.vander(columns[:, k], 6) for k in (0, 1)])
    left = product - design @ np.linalg.lstsq(design, product, rcond=None)[0]
    assert np.corrcoef(pair, left)[0, 1] > 0.9


def test_between_knots_a_pair_is_pure_but_for_the_grids_width():
    # At 400 rows and this correlation a third of the spread is additive: a test of less needs more rows,
    # which support more knots.
    columns, y = data(rho=0.9, n=2000)
    model = fit(columns, y, options=replace(QUICK, interactions=((0, 1),)))
    pair = scoring.term_means(model, columns)[:, -1]
    design = np.hstack([np.vander(columns[:, k], 8) for k in (0, 1)])
    additive = design @ np.linalg.lstsq(design, pair, rcond=None)[0]
    assert np.std(additive) < 0.15 * np.std(pair)


# --- which pairs ------------------------------------------------------------------------------------


class TestAuto:
    @pytest.mark.parametrize("seed", range(2))
    def test_finds_an_interaction(self, likelihood, seed):
        model = fit_of(likelihood, n=400, seed=seed)
        sizes = {term.features: term.importance for term in model.terms if term.kind == "pair"}
        # With three pairs in all, 2 nats let a smaller one pass now and then.
        assert all(size < 0.5 * sizes[0, 1] for pair, size in sizes.items() if pair != (0, 1))
        assert len(sizes) <= 2
        plain = fit_of(likelihood, QUICK, n=400, seed=seed)
        assert model.log_evidence > plain.log_evidence + 10.0
        assert plain.scored == ()

    @pytest.mark.parametrize("seed", range(3))
    def test_finds_none_in_additive_data(self, likelihood, seed):
        columns, y = data(likelihood, strength=0.0, seed=seed)
        model = fit(columns, y, None, likelihood)
        assert found(model) == set()
        # Bands depend on the last compression also through the derivatives in the hyperparameters.
        assert_same(model, fit_of(likelihood, QUICK, strength=0.0, seed=seed), columns, atol=3e-3)

    @pytest.mark.parametrize("seed", range(4))
    def test_finds_none_in_dependent_columns(self, seed):
        columns, y = data(rho=0.9, strength=0.0, n=600, seed=seed)
        assert found(fit(columns, y)) == set()

    def test_hardly_finds_any_in_dependent_columns_with_few_rows(self):
        # One of three pairs needs a gain of 3.1 nats, which noise in 250 rows reaches in one of six tables.
        by_chance = []
        for seed in range(8):
            columns, y = data(rho=0.9, strength=0.0, n=250, seed=seed)
            model = fit(columns, y)
            by_chance += [term for term in model.terms if term.kind == "pair"]
            # and its effect is small beside the main effects
            largest = max(term.importance for term in model.terms)
            assert all(t.importance < 0.15 * largest for t in model.terms if t.kind == "pair")
        assert len(by_chance) <= 2

    def test_tries_more_where_a_round_has_found_some(self, monkeypatch):
        rng = np.random.default_rng(0)
        columns = rng.uniform(-1.0, 1.0, (400, 4))
        y = 2.0 * columns[:, 0] * columns[:, 1] + 1.5 * columns[:, 2] * columns[:, 3]
        y += 0.2 * rng.standard_normal(400)
        monkeypatch.setattr(search, "_AT_ONCE", 1)
        assert found(fit(columns, y)) == {(0, 1), (2, 3)}

    @pytest.mark.parametrize("at_once", [1, 10])
    def test_no_more_than_the_most(self, monkeypatch, at_once):
        columns, y = TestHowMany().two_products()
        monkeypatch.setattr(search, "_AT_ONCE", at_once)
        model = fit(columns, y, options=replace(AUTO, max_pairs=1))
        assert len(found(model)) == 1
        (missed,) = {(0, 1), (2, 3)} - found(model)
        reason = "left out: 1 interactions were found; raise max_pairs for more"
        assert statuses(model)[missed] == reason

    def test_later_rounds_are_scored_on_what_is_left_over(self, monkeypatch):
        columns, y = data()
        calls, score = [], interactions.score

        def spy(kind, problem, state, columns, pairs, categories):
            calls.append(([term.features for term in problem.terms], list(pairs)))
            return score(kind, problem, state, columns, pairs, categories)

        monkeypatch.setattr(interactions, "score", spy)
        model = fit(columns, y, options=replace(QUICK, interactions=2))
        assert calls[0][1] == [(0, 1), (0, 2), (1, 2)]
        assert (0, 1) not in calls[0][0]
        assert (0, 1) in calls[1][0]
        assert calls[1][1] == [(0, 2)]
        # The reported scores are those on the first stage's residuals, and comparable.
        assert model.scored[0].score > 10.0
        # Scores of effects are not made anew.
        calls.clear()
        fit(columns, y, options=replace(QUICK, interactions=2, interaction_score="evidence_gain"))
        assert len(calls) == 1

    def test_columns_without_main_effects(self):
        rng = np.random.default_rng(6)
        columns = rng.uniform(-1.0, 1.0, (400, 3))
        y = 2.0 * columns[:, 0] * columns[:, 1] + 0.3 * rng.standard_normal(400)
        model = fit(columns, y)
        assert found(model) == {(0, 1)}
        assert not any(term.active for term in fit(columns, y, options=QUICK).terms)
        # Scores of effects cannot see it.
        for kind in ("mutual_information", "evidence_gain"):
            assert found(fit(columns, y, options=replace(AUTO, interaction_score=kind))) == set()


def assert_same(model, plain, columns, atol=1e-6):
    """The model is the other one but for pairs that are off."""
    terms = [term for term in model.terms if term.kind != "pair"]
    assert [t.features for t in terms] == [t.features for t in plain.terms]
    assert [t.status for t in terms] == [t.status for t in plain.terms]
    for one, two in zip(links(model, columns), links(plain, columns), strict=True):
        # The last compression is sketched anew.
        np.testing.assert_allclose(one, two, atol=atol * np.abs(two).max())
    assert model.log_evidence == pytest.approx(plain.log_evidence, abs=1e-3)
    assert model.noise_variance == pytest.approx(plain.noise_variance, rel=1e-9)


class TestHowMany:
    @pytest.mark.parametrize("k", [1, 2, 10])
    def test_none_survives_in_additive_data(self, k):
        columns, y = data(strength=0.0)
        model = fit(columns, y, options=replace(QUICK, interactions=k))
        assert found(model) == set()
        off = [status for status in statuses(model).values() if status.startswith("dropped")]
        assert len(off) == min(k, 3)
        assert all(
            re.fullmatch(
                r"dropped: not supported by the data \(log evidence gain -?\d\.\d, threshold \d\.\d\)",
                status,
            )
            for status in off
        )
        # A dropped candidate is listed, but is not a term.
        assert [term for term in model.terms if term.kind == "pair"] == []
        assert_same(model, fit_of(options=QUICK, strength=0.0), columns, atol=1e-3)

    def test_the_best_are_tried_and_no_more(self):
        model = fit_of(options=replace(QUICK, interactions=1))
        assert found(model) == {(0, 1)}
        assert [term.features for term in model.terms if term.kind == "pair"] == [(0, 1)]
        assert {s for p, s in statuses(model).items() if p != (0, 1)} == {
            "left out: not among the best 1"
        }

    def scores(self, monkeypatch, ranked):
        """Make ``ranked`` the order of the scores."""
        monkeypatch.setattr(
            interactions,
            "score",
            lambda kind, problem, state, columns, pairs, categories: np.array(
                [10.0 - ranked.index(pair) for pair in pairs]
            ),
        )

    def two_products(self):
        rng = np.random.default_rng(0)
        columns = rng.uniform(-1.0, 1.0, (400, 4))
        y = 2.0 * columns[:, 0] * columns[:, 1] + 1.5 * columns[:, 2] * columns[:, 3]
        return columns, y + 0.2 * rng.standard_normal(400)

    def test_others_take_the_place_of_those_that_went(self, monkeypatch):
        columns, y = self.two_products()
        ranked = [(0, 2), (0, 1), (2, 3), (1, 2), (0, 3), (1, 3)]
        self.scores(monkeypatch, ranked)
        model = fit(columns, y, options=replace(QUICK, interactions=2))
        assert found(model) == {(0, 1), (2, 3)}
        assert [pair.features for pair in model.scored] == ranked
        assert statuses(model)[0, 2].startswith("dropped")
        assert statuses(model)[1, 2] == "left out: not among the best 2"

    def test_never_more_than_that_many(self, monkeypatch):
        columns, y = self.two_products()
        self.scores(monkeypatch, [(2, 3), (0, 1), (0, 2), (1, 2), (0, 3), (1, 3)])
        assert found(fit(columns, y, options=replace(QUICK, interactions=1))) == {(2, 3)}

    def test_a_round_that_gains_nothing_is_the_last(self, monkeypatch):
        columns, y = self.two_products()
        self.scores(monkeypatch, [(0, 2), (1, 2), (0, 1), (2, 3), (0, 3), (1, 3)])
        model = fit(columns, y, options=replace(QUICK, interactions=2))
        assert found(model) == set()
        assert statuses(model)[0, 1] == "left out: not among the best 2"


class TestRounds:
    """The gain that a round needs as a whole, whatever the gains of its pairs."""

    def lenient(self, monkeypatch):
        """No pair is in question: only the round is."""
        monkeypatch.setattr(search.Search, "threshold", lambda self, *_: -np.inf)

    def test_a_round_must_raise_the_evidence(self, monkeypatch):
        columns, y = data(strength=0.0, n=600)
        self.lenient(monkeypatch)
        plain = fit(columns, y, options=QUICK)
        # So a pair without an effect is dropped, unless it was named.
        named = fit(columns, y, options=replace(QUICK, interactions=((0, 2),)))
        assert found(named) == {(0, 2)}
        gain = named.log_evidence - plain.log_evidence
        assert gain < second_stage.TUNED

        def rank(kind, problem, state, columns, pairs, categories):
            return np.array([9.0 if pair == (0, 2) else 1.0 for pair in pairs])

        monkeypatch.setattr(interactions, "score", rank)
        model = fit(columns, y, options=replace(QUICK, interactions=1))
        assert found(model) == set()
        # Its gain is that of the round, up to where tuning stops.
        words = statuses(model)[0, 2]
        assert words.startswith("dropped: not supported by the data (log evidence gain ")
        assert words.endswith(f", threshold {second_stage.TUNED:.1f})")
        assert abs(float(words.split("gain ")[1].split(",")[0]) - gain) < 0.5
        assert_same(model, plain, columns, atol=1e-3)
        # It is the round's gain that counts, against what tuning brings.
        monkeypatch.setattr(second_stage, "TUNED", gain - 0.5)
        monkeypatch.setattr(second_stage, "_is_judged", lambda *_: False)
        assert found(fit(columns, y, options=replace(QUICK, interactions=1))) == {(0, 2)}

    def test_a_round_must_predict_left_out_rows(self, monkeypatch):
        """The evidence supports the pair; if its leave-one-out score falls surely, it is dropped."""
        columns, y = data()
        monkeypatch.setattr(second_stage, "_left_out_loss", lambda *_: 12.34)
        model = fit(columns, y, options=replace(QUICK, interactions=1))
        assert found(model) == set()
        assert re.fullmatch(
            r"dropped: not supported by the data \(log evidence gain \d+\.\d, leave-one-out log score "
            r"-12\.3\)",
            statuses(model)[0, 1],
        )
        assert_same(model, fit(columns, y, options=QUICK), columns, atol=1e-3)
        # Named pairs were not searched for.
        assert found(fit(columns, y, options=replace(QUICK, interactions=((0, 1),)))) == {(0, 1)}

    def test_a_loss_must_exceed_its_standard_error(self, monkeypatch):
        columns, y = data()
        losses = []

        def asked(stage, wider, run, least_change):
            rest = run, least_change
            losses.append((before(stage, wider, *rest), before(wider, stage, *rest)))
            return losses[-1][0]

        before = second_stage._left_out_loss
        monkeypatch.setattr(second_stage, "_left_out_loss", asked)
        assert found(fit(columns, y)) == {(0, 1)}
        # A real interaction predicts left-out rows: taking it away would lose.
        kept, taken_away = losses[0]
        assert kept is None
        assert taken_away > 0.0

    def test_the_width_is_the_number_of_coordinates(self):
        columns, y = data()
        options = replace(QUICK, interactions=((0, 1),))
        model = fit_of(options=options)
        _, stage = in_memory.resume(model, columns, y, np.ones(250), options)
        bases = [known.basis for known in stage.state.terms]
        assert stage.width == sum(basis.shape[1] for basis in bases) > 10
        # before it is compressed, a term is as wide as its table
        first = replace(stage.state.terms[0], basis=None)
        state = replace(stage.state, terms=(first, *stage.state.terms[1:]))
        expected = stage.width - bases[0].shape[1] + len(first.values)
        assert replace(stage, state=state).width == expected


class TestSeparatedClasses:
    """Where classes are separated, the quadratic that log evidence gains are based on is flat."""

    @staticmethod
    def xor():
        columns = np.random.default_rng(0).integers(0, 2, (150, 3)).astype(float)
        return columns, (columns[:, 0] != columns[:, 1]).astype(float)

    @staticmethod
    @cache
    def plain():
        return fit(*TestSeparatedClasses.xor(), None, "bernoulli", QUICK)

    @pytest.mark.parametrize("requested", ["auto", 1, 3, ((0, 1),)])
    def test_the_term_that_separates_them_stays(self, requested):
        columns, y = self.xor()
        model = fit(columns, y, None, "bernoulli", replace(QUICK, interactions=requested))
        assert found(model) == {(0, 1)}
        np.testing.assert_array_equal(links(model, columns)[0] > 0.0, y == 1.0)
        plain = self.plain()
        assert model.log_evidence > plain.log_evidence + 50.0
        # though its gain by the quadratic is below the threshold
        assert model.terms[-1].evidence < 2.0 + np.log(3.0)

    def test_the_strongest_stay_and_the_others_go(self):
        columns, y = self.xor()
        problem, state = started(columns, y, np.ones(150), "bernoulli", QUICK)
        terms = in_memory.joint_terms(columns, np.ones(150), [(0, 1), (1, 2)], QUICK)
        rng = np.random.default_rng(0)
        problem, state = add_terms(problem, state, terms, rng=rng)
        state, _ = gauss_newton.converge(
            problem, state, gauss_newton.Limits(30, 0.05), lambda state: None
        )
        kinds = [term.features for term in problem.terms]
        assert kinds[3:] == [(0, 1), (1, 2)]
        # in the order they went: the last is held to be the strongest
        gains = [0.1] * 5
        assert gauss_newton.dispensable(problem, state, [0, 4, 3], gains) == [0, 4]
        assert gauss_newton.dispensable(problem, state, [4], gains) == [4]
        assert gauss_newton.dispensable(problem, state, [3], gains) == []
        # A term whose gain was known to be as large is dropped.
        assert gauss_newton.dispensable(problem, state, [3], [0.0] * 3 + [200.0, 0.0]) == [3]


class TestNamed:
    def test_these_are_tried_and_no_others(self):
        columns, y = data()
        model = fit(columns, y, options=replace(QUICK, interactions=((0, 2), (0, 1))))
        assert (0, 1) in found(model)
        assert statuses(model)[1, 2] == "left out: not named"
        status = statuses(model)[0, 2]
        assert status == ACTIVE if (0, 2) in found(model) else status.startswith("dropped")
        assert {term.features for term in model.terms if term.kind == "pair"} == found(model)

    def test_a_strong_pair_that_was_not_named_stays_out(self):
        columns, y = data()
        model = fit(columns, y, options=replace(QUICK, interactions=((1, 2),)))
        assert (0, 1) not in found(model)
        assert statuses(model)[0, 1] == "left out: not named"
        assert model.scored[0].features == (0, 1)

    def test_need_not_make_up_for_a_search(self):
        all_pairs = tuple([(0, 1)] * 100)
        asked = search.Search("auto", "evidence", 50, all_pairs, 100, frozenset(), {}, None)
        named = replace(asked, requested=((0, 1),))
        assert named.threshold(1) == 0.0
        assert asked.threshold(1) > 5.0
        # One of several needs less than the only one, but never less than tuning gives it.
        assert asked.threshold(1) == pytest.approx(2.0 + np.log(100.0))
        assert asked.threshold(10) == pytest.approx(2.0 + np.log(91.0 / 10.0))
        assert replace(asked, requested=3).threshold(10) == asked.threshold(10)
        many = [asked.threshold(m) for m in range(1, 102)]
        assert many == sorted(many, reverse=True)
        assert min(many) == second_stage.TUNED > 0.0
        # Each precision beyond a joint network's two may flatter it by a nat.
        assert asked.threshold(1, 5) == pytest.approx(asked.threshold(1, 2) + 3.0)
        assert asked.threshold(1, 1) == asked.threshold(1, 2)
        assert named.threshold(1, 5) == 0.0

    def test_nothing_is_asked_for(self):
        columns, y = data()
        plain = fit_of(options=QUICK)
        for nothing in (0, ()):
            model = fit(columns, y, options=replace(QUICK, interactions=nothing))
            assert model.scored == ()
            assert model.log_evidence == plain.log_evidence


class TestReport:
    @pytest.mark.parametrize("requested", ["auto", 1, ((0, 1),)])
    def test_every_pair_is_there_ranked(self, likelihood, requested):
        model = fit_of(likelihood, replace(QUICK, interactions=requested))
        assert sorted(pair.features for pair in model.scored) == [(0, 1), (0, 2), (1, 2)]
        scores = [pair.score for pair in model.scored]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) >= 0.0
        assert statuses(model)[0, 1] == ACTIVE
        for pair in model.scored:
            assert (pair.status == ACTIVE) == (pair.features in found(model))

    def test_constant_and_duplicate_columns_have_no_pairs(self, likelihood):
        columns, y = data(likelihood)
        wide = np.column_stack([columns, np.full(250, 3.0), columns[:, 0]])
        options = replace(QUICK, interactions=10)
        model = fit(wide, y, None, likelihood, options)
        assert len(model.scored) == 10
        for pair in model.scored:
            if 3 in pair.features:
                assert pair.status == CONSTANT
            elif 4 in pair.features:
                assert pair.status == DUPLICATE
            if max(pair.features) > 2:
                assert pair.score == 0.0
        tried = {term.features for term in model.terms if term.kind == "pair"}
        assert tried <= {(0, 1), (0, 2), (1, 2)}
        plain = fit_of(likelihood, options)
        assert found(model) == found(plain)
        for one, two in zip(links(model, wide), links(plain, columns), strict=True):
            np.testing.assert_array_equal(one, two)

    def test_a_named_pair_of_a_constant_column(self):
        columns, y = data()
        wide = np.column_stack([columns, np.full(250, 3.0)])
        model = fit(wide, y, options=replace(QUICK, interactions=((0, 3),)))
        assert found(model) == set()
        assert statuses(model)[0, 3] == CONSTANT

    @pytest.mark.parametrize("requested", ["auto", 2, ((0, 1),)])
    @pytest.mark.parametrize("kind", ["evidence", "mutual_information", "evidence_gain_full"])
    def test_one_column_has_no_pairs(self, requested, kind):
        columns, y = data()
        options = replace(QUICK, interactions=requested, interaction_score=kind)
        model = fit(columns[:, :1], y, options=options)
        assert model.scored == ()
        constant = fit(np.ones((250, 2)), y, options=options)
        assert [pair.status for pair in constant.scored] == [CONSTANT]

    def test_history(self):
        model = fit_of()
        stages = [record["stage"] for record in model.history]
        assert stages == sorted(stages, key=["smooth", "pairs"].index)
        assert stages.count("pairs") > 1
        assert model.history[-1]["n_active"] == sum(term.active for term in model.terms)
        assert model.history[-1]["log_evidence"] == pytest.approx(model.log_evidence, abs=0.5)


# --- the model --------------------------------------------------------------------------------------


class TestModel:
    @pytest.mark.parametrize("variant", ["joint", "block", "kron", "adam"])
    def test_predictions_are_sums_over_terms(self, likelihood, variant):
        columns, y = data(likelihood, strength=2.0)
        options = replace(VARIANTS[variant], interactions=((0, 1),))
        model = fit(columns, y, None, likelihood, options)
        # inside and beyond the data
        rows = 2.0 * np.random.default_rng(1).standard_normal((40, 3))
        means, parts = [], []
        for term in model.terms:
            if term.active:
                weights = interpolation_matrix(
                    locate(term.entries, term.features, rows), len(term.entries)
                )
                means.append(weights @ term.mean)
                parts.append(weights @ term.table)
            else:
                means.append(np.zeros(40))
                parts.append(np.empty((40, 0)))
        assert found(model)
        assert_close(scoring.term_means(model, rows), np.column_stack(means), "rounding")
        total = model.intercept + np.sum(means, axis=0)
        assert_close(scoring.link_mean(model, rows), total, "rounding")
        design = np.hstack([*parts, np.ones((40, 1))])
        mean, variance = links(model, rows)
        assert_close(mean, total, "rounding")
        expected = np.diag(design @ model.covariance @ design.T)
        assert_close(variance, expected, "rounding")
        for k, (part, block) in enumerate(zip(parts, model.blocks, strict=True)):
            own = np.diag(part @ model.covariance[block, block] @ part.T)
            assert_close(scoring.term_variances(model, rows)[:, k], own, "rounding")

    def test_terms_are_in_order_and_the_covariance_with_them(self):
        # A column that came back stands behind a pair while it is fitted.
        columns, y = data(n=80)
        weight = np.ones(80)
        problem, state = started(columns, y, weight, options=QUICK)
        terms = in_memory.joint_terms(columns, weight, [(1, 2), (0, 1)], QUICK)
        rng = np.random.default_rng(0)
        problem, state = add_terms(problem, state, terms, rng=rng)
        order = [2, 3, 0, 4]
        units = in_memory.prepared(columns, y, weight, LIKELIHOODS["gaussian"], QUICK).units
        off = [dropped_term(Dropped(problem.terms[1], problem.data_mass[1], 0.5), units)]
        problem, state = problem.keep(order), state.keep(order)
        solution = posterior.ExactCurvature().solution(problem, state)
        model = assemble(units, problem, state, solution, off)
        expected = [(0,), (1,), (2,), (0, 1), (1, 2)]
        assert [term.features for term in model.terms] == expected
        assert [term.active for term in model.terms] == [True, False, True, True, True]
        design, values = [], units.shift + units.scale * np.full(80, solution.intercept)
        for position, table, mean in zip(
            problem.rows.positions, solution.tables, solution.means, strict=True
        ):
            weights = interpolation_matrix(position, len(mean))
            design.append(weights @ table)
            values += units.scale * (weights @ mean)
        whole = units.scale * np.hstack([*design, np.ones((80, 1))])
        variance = np.einsum("ij,jk,ik->i", whole, solution.covariance, whole)
        assert_close(links(model, columns)[0], values, "single precision")
        assert_close(links(model, columns)[1], variance, "conditioning")

    def test_a_column_may_come_back_beside_its_pair(self):
        # Every value of one column with every value of the other, so that no chance correlation
        # gives the product a main effect over the data.
        rng = np.random.default_rng(0)
        grid = np.linspace(-1.0, 1.0, 12)
        columns = np.array([(a, b, c) for a in grid for b in grid for c in (-1.0, 1.0)])
        y = 4.0 * columns[:, 0] * columns[:, 1] + 0.1 * columns[:, 1] + 2.0 * columns[:, 2]
        y += 0.05 * rng.standard_normal(288)
        plain, model = fit(columns, y, options=QUICK), fit(columns, y)
        assert [term.active for term in plain.terms] == [False, False, True]
        assert found(model) == {(0, 1)}
        assert [term.active for term in model.terms[:3]] == [False, True, True]
        assert [term.features for term in model.terms[:3]] == [(0,), (1,), (2,)]
        effect = scoring.term_means(model, columns)[:, 1]
        np.testing.assert_allclose(effect, 0.1 * columns[:, 1], atol=0.02)

    @pytest.mark.parametrize("requested", ["auto", 3, ((0, 1), (0, 2), (1, 2))])
    @pytest.mark.parametrize("strength", [0.0, 0.1, 1.0])
    def test_the_evidence_does_not_fall(self, requested, strength):
        for seed in range(2):
            of_data = {"strength": strength, "n": 150, "seed": seed}
            plain = fit_of(options=QUICK, **of_data)
            model = fit_of(options=replace(QUICK, interactions=requested), **of_data)
            # Passes end when the evidence changes by less than `tol`.
            assert model.log_evidence >= plain.log_evidence - QUICK.tol

    def test_importance_is_over_the_rows(self, likelihood):
        columns, y = data(likelihood)
        weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
        model = fit(columns, y, weight, likelihood, replace(QUICK, interactions=((0, 1),)))
        contributions = np.abs(scoring.term_means(model, columns))
        expected = np.average(contributions, axis=0, weights=weight)
        assert_close([term.importance for term in model.terms], expected, "rounding")
        pair = model.terms[-1]
        assert pair.kind == "pair"
        # which at the knots, where different signs do not cancel, it is not
        assert pair.importance < 0.999 * (pair.data_mass @ np.abs(pair.mean))

    def test_all_first_stage_terms_stay(self, likelihood):
        plain, model = fit_of(likelihood, QUICK), fit_of(likelihood)
        active = {term.features for term in model.terms if term.active}
        assert {term.features for term in plain.terms if term.active} <= active

    def test_with_level_effects(self):
        rng = np.random.default_rng(0)
        level = rng.integers(0, 30, 600)
        columns = np.column_stack([level.astype(float), rng.uniform(-1.0, 1.0, (600, 2))])
        y = rng.standard_normal(30)[level] + 2.0 * columns[:, 1] * columns[:, 2]
        y += 0.3 * rng.standard_normal(600)
        model = fit(columns, y, options=replace(AUTO, level_effects=True))
        assert found(model) == {(1, 2)}
        kinds = [term.kind for term in model.terms]
        assert kinds == sorted(kinds, key=["smooth", "level", "pair"].index)
        assert any(term.kind == "level" and term.active for term in model.terms)
        mean, _ = links(model, columns)
        assert np.mean((mean - y) ** 2) < 0.12


class TestInvariances:
    def test_the_same_seed_is_the_same_model(self, likelihood):
        columns, y = data(likelihood)
        one, two = (fit(columns, y, None, likelihood, seed=3) for _ in range(2))
        np.testing.assert_array_equal(one.covariance, two.covariance)
        assert one.log_evidence == two.log_evidence
        assert one.scored == two.scored
        other = fit(columns, y, None, likelihood, seed=4)
        assert other.log_evidence != one.log_evidence
        assert found(other) == found(one)

    def test_the_order_of_rows(self, likelihood):
        columns, y = data(likelihood)
        order = np.random.default_rng(1).permutation(len(y))
        self.assert_same(
            fit(columns[order], y[order], None, likelihood),
            fit_of(likelihood),
            columns,
        )

    def test_a_weight_is_a_repetition(self, likelihood):
        columns, y = data(likelihood, n=150)
        often = np.ones(150, dtype=int)
        often[::3] = 2
        weighted = fit(columns, y, often.astype(float), likelihood)
        repeated = fit(np.repeat(columns, often, axis=0), np.repeat(y, often), None, likelihood)
        self.assert_same(weighted, repeated, columns)
        plain = fit_of(likelihood, n=150)
        assert np.abs(links(weighted, columns)[0] - links(plain, columns)[0]).max() > 1e-3

    def assert_same(self, one, two, columns):
        assert found(one) == found(two) != set()
        for a, b in zip(one.scored, two.scored, strict=True):
            assert a.features == b.features
            assert a.score == pytest.approx(b.score, abs=1e-4)
        for a, b in zip(links(one, columns), links(two, columns), strict=True):
            # Several passes of a search in between: a little more than one pass's rounding.
            np.testing.assert_allclose(a, b, atol=1e-5)
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-3)

    @pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
    def test_the_order_of_columns(self, likelihood, order):
        # Starts are drawn in the columns' order, so that values differ; what is found does not.
        columns, y = data(likelihood, n=400)
        changed = fit(columns[:, order], y, None, likelihood)
        named = {tuple(sorted(order[k] for k in pair)) for pair in found(changed)}
        assert named == found(fit_of(likelihood, n=400)) == {(0, 1)}

    @pytest.mark.parametrize(("scale", "shift"), [(-3.0, 7.0), (1e6, 0.0)])
    def test_units_of_the_response(self, scale, shift):
        columns, y = data()
        plain, changed = fit_of(), fit(columns, scale * y + shift)
        assert found(plain) == found(changed)
        mean, variance = links(plain, columns)
        changed_mean, changed_variance = links(changed, columns)
        np.testing.assert_allclose((changed_mean - shift) / scale, mean, atol=1e-4)
        np.testing.assert_allclose(changed_variance / scale**2, variance, rtol=1e-3)
        expected = plain.log_evidence - 250 * np.log(abs(scale))
        assert changed.log_evidence == pytest.approx(expected, abs=1e-2)


class TestOptions:
    def test_deep_pairs(self):
        columns, y = data()
        model = fit(columns, y, options=replace(AUTO, pair_hidden_sizes=(64, 64)))
        assert found(model) == {(0, 1)}
        (pair,) = [term for term in model.terms if term.kind == "pair" and term.active]
        assert len(pair.expansion) == 2 * 64 + 64 + 64 * 64 + 64 + 64
        # Two bands of the first layer, and one more for what follows it.
        assert pair.precision.shape == (3,)
        mean, _ = links(model, columns)
        assert np.mean((mean - y) ** 2) < 0.15

    @pytest.mark.parametrize(
        "change",
        [
            {"pair_hidden_sizes": (8,)},
            {"pair_init_scales": (1.0,)},
            {"max_knots": 8},
            {"posterior": "block"},
            {"evidence_update": "gradient"},
        ],
    )
    def test_each_changes_something(self, likelihood, change):
        columns, y = data(likelihood)
        plain = fit_of(likelihood)
        changed = fit(columns, y, None, likelihood, replace(AUTO, **change))
        assert found(plain) == found(changed) == {(0, 1)}
        assert abs(plain.log_evidence - changed.log_evidence) > 1e-3
        mean, expected = links(changed, columns)[0], links(plain, columns)[0]
        assert np.corrcoef(mean, expected)[0, 1] > 0.95

    def test_every_score_is_its_own(self):
        columns, y = data(rho=0.5)
        kinds = (
            "evidence",
            "mutual_information",
            "mutual_information_full",
            "evidence_gain",
            "evidence_gain_full",
        )
        models = [
            fit(columns, y, options=replace(QUICK, interactions=3, interaction_score=kind))
            for kind in kinds
        ]
        assert len({round(model.scored[0].score, 6) for model in models}) == 5
        # With all pairs tried, they all find it.
        assert all((0, 1) in found(model) for model in models)

    def test_few_iterations(self, likelihood):
        columns, y = data(likelihood)
        model = fit(columns, y, None, likelihood, replace(AUTO, max_iter=1))
        assert model.stop_reason == "max_iter"
        assert np.isfinite(links(model, columns)[1]).all()


# --- interrupts -------------------------------------------------------------------------------------


class TestInterrupts:
    def interrupted(self, columns, y, likelihood, after, options=AUTO):
        seen = []

        def stop(record):
            if record["stage"] == "pairs":
                seen.append(record)
                if len(seen) == after:
                    raise KeyboardInterrupt

        return fit(columns, y, None, likelihood, replace(options, on_iteration=stop)), seen

    @pytest.mark.parametrize("after", [1, 2, 4])
    def test_keeps_the_best(self, likelihood, after):
        columns, y = data(likelihood)
        model, seen = self.interrupted(columns, y, likelihood, after)
        assert model.stop_reason == "interrupted"
        assert not model.converged
        assert model.n_iter == len(model.history)
        assert model.history[-1] == seen[-1]
        assert len(model.scored) == 3
        assert (0, 1) in found(model)
        plain = fit_of(likelihood, QUICK)
        assert model.log_evidence > plain.log_evidence
        if likelihood == "gaussian":
            # A first pass is coarse: the last solve may be better.
            best = max(record["log_evidence"] for record in seen)
            assert model.log_evidence > best - 0.5
        for pair in model.scored:
            assert (pair.status == ACTIVE) == (pair.features in found(model))

    @pytest.mark.parametrize("requested", [3, ((0, 1), (0, 2), (1, 2))])
    def test_a_pass_that_lost_is_not_kept(self, requested, monkeypatch):
        columns, y = data()
        plain = fit_of(options=QUICK)

        def badly_started(problem, state, terms, on_decision, rng):
            """New networks with priors far too wide, which one pass cannot fix."""
            wider, state = add_terms(problem, state, terms, rng=rng)
            known = list(state.terms)
            for k in range(len(problem.terms), len(known)):
                tiny = 1e-9 * known[k].precision
                known[k] = replace(known[k], precision=tiny, smallest_precision=tiny)
            return wider, replace(state, terms=tuple(known))

        monkeypatch.setattr(second_stage, "add_terms", badly_started)
        options = replace(QUICK, interactions=requested)
        model, seen = self.interrupted(columns, y, "gaussian", 1, options)
        assert seen[0]["log_evidence"] < plain.log_evidence
        assert model.stop_reason == "interrupted"
        assert found(model) == set()
        assert_same(model, plain, columns, atol=1e-3)

    @pytest.mark.parametrize("requested", ["auto", 1, ((0, 1),)])
    def test_while_pairs_are_scored_the_first_stage_stays(self, likelihood, requested, monkeypatch):
        columns, y = data(likelihood)
        wide = np.column_stack([columns, np.ones(250)])
        plain = fit(wide, y, None, likelihood, QUICK)

        def stop(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(interactions, "score", stop)
        model = fit(wide, y, None, likelihood, replace(QUICK, interactions=requested))
        assert model.stop_reason == "interrupted"
        assert found(model) == set()
        # Nothing was scored, and no pairs are listed.
        assert model.scored == ()
        assert_same(model, plain, wide, atol=1e-3)

    def test_while_pairs_are_scored_anew_what_was_found_stays(self, monkeypatch):
        columns, y = data()
        expected = fit_of(options=replace(QUICK, interactions=1))
        calls, score = [], interactions.score

        def stop(kind, problem, state, columns, pairs, categories):
            calls.append(pairs)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return score(kind, problem, state, columns, pairs, categories)

        monkeypatch.setattr(search, "_AT_ONCE", 1)
        monkeypatch.setattr(interactions, "score", stop)
        model = fit(columns, y)
        assert len(calls) == 2
        assert model.stop_reason == "interrupted"
        assert found(model) == {(0, 1)}
        assert model.log_evidence == pytest.approx(expected.log_evidence)
        assert len(model.scored) == 3
        assert statuses(model)[0, 1] == ACTIVE

    @pytest.mark.parametrize("requested", [1, ((0, 1),)])
    def test_before_anything_was_learned_the_first_stage_stays(
        self, likelihood, requested, monkeypatch
    ):
        columns, y = data(likelihood)
        plain = fit_of(likelihood, QUICK)
        converge = gauss_newton.converge

        def stop(problem, *arguments):
            if any(term.kind == "pair" for term in problem.terms):
                raise KeyboardInterrupt
            return converge(problem, *arguments)

        monkeypatch.setattr(gauss_newton, "converge", stop)
        model = fit(columns, y, None, likelihood, replace(QUICK, interactions=requested))
        assert model.stop_reason == "interrupted"
        assert found(model) == set()
        assert model.n_iter == plain.n_iter
        assert len(model.scored) == 3
        assert ACTIVE not in statuses(model).values()
        assert_same(model, plain, columns, atol=1e-3)

    def test_in_the_first_stage_there_is_no_second(self):
        columns, y = data()

        def stop(record):
            raise KeyboardInterrupt

        model = fit(columns, y, options=replace(AUTO, on_iteration=stop))
        assert model.stop_reason == "interrupted"
        assert model.scored == ()
        assert model.n_iter == 1

    def test_other_errors_are_not_swallowed(self):
        columns, y = data()

        def fail(record):
            if record["stage"] == "pairs":
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fit(columns, y, options=replace(AUTO, on_iteration=fail))


@pytest.fixture(scope="module")
def plain():
    """Adam's first stage alone."""
    return fit(*data(strength=2.0), options=ADAM)


class TestTimeBudget:
    """A clock that stands still until some passes of pairs are over."""

    def timed(self, monkeypatch, columns, y, after):
        start = time.perf_counter()
        clock = SimpleNamespace(now=start, passes=0)
        monkeypatch.setattr(prepare, "time", SimpleNamespace(perf_counter=lambda: clock.now))

        def tick(record):
            clock.passes += record["stage"] == "pairs"
            clock.now = start + 1e6 if clock.passes >= after else start

        options = replace(AUTO, time_budget=1.0, on_iteration=tick)
        return fit(columns, y, options=options)

    def test_a_round_that_it_ends_is_not_taken(self, monkeypatch):
        columns, y = data()
        model, plain = self.timed(monkeypatch, columns, y, 1), fit_of(options=QUICK)
        assert model.stop_reason == "converged"
        assert found(model) == set()
        np.testing.assert_array_equal(model.covariance, plain.covariance)
        assert statuses(model)[0, 1] == "left out: the time budget ended the search"

    def test_rounds_before_it_are(self, monkeypatch):
        columns, y = TestHowMany().two_products()
        monkeypatch.setattr(search, "_AT_ONCE", 1)
        first = sum(
            record["stage"] == "pairs"
            for record in fit(columns, y, options=replace(AUTO, max_pairs=1)).history
        )
        model = self.timed(monkeypatch, columns, y, first + 1)
        assert model.converged
        assert len(found(model)) == 1
        (missed,) = {(0, 1), (2, 3)} - found(model)
        assert statuses(model)[missed] == "left out: the time budget ended the search"


class TestAdam:
    def test_untrained_networks_are_not_kept(self, plain):
        columns, y = data(strength=2.0)

        def stop(record):
            if record["iteration"] == plain.n_iter + 1:
                raise KeyboardInterrupt

        options = replace(ADAM, interactions=1, on_iteration=stop)
        model = fit(columns, y, options=options)
        assert model.stop_reason == "interrupted"
        assert found(model) == set()
        assert model.log_evidence == plain.log_evidence
        np.testing.assert_array_equal(
            scoring.link_mean(model, columns), scoring.link_mean(plain, columns)
        )

    def test_without_a_pair_the_first_stage_stays(self, plain, monkeypatch):
        columns, y = data(strength=2.0)

        def pairs_off(problem, found):
            return [k for k, term in enumerate(problem.terms) if term.kind == "pair"]

        monkeypatch.setattr("lanam.core.paper.adam.terms_to_drop", pairs_off)
        model = fit(columns, y, options=replace(ADAM, interactions=1))
        assert found(model) == set()
        assert statuses(model)[0, 1].startswith("dropped")
        assert model.log_evidence == plain.log_evidence
        np.testing.assert_array_equal(
            scoring.link_mean(model, columns), scoring.link_mean(plain, columns)
        )

    def test_a_pair_is_learned(self, plain):
        columns, y = data(strength=2.0)
        model = fit(columns, y, options=replace(ADAM, interactions=1))
        assert found(model) == {(0, 1)}
        assert model.log_evidence > plain.log_evidence + 20.0
        assert model.scored[0].features == (0, 1)
