"""Fitting on from a fitted model: the same place as a fit in one go, and what stays as it was."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lanam.core.model import scoring
from lanam.core.model.fitted import CONSTANT
from lanam.core.terms.knots import Grid
from tests.core import in_memory
from tests.core.test_second_stage import ADAM, KRON, QUICK, assert_same, data, fit, found, links


def fit_on(model, columns, y, requested, options=QUICK, weight=None, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    options = replace(options, interactions=requested)
    return in_memory.fit_on(model, columns, y, weight, options, seed)


@pytest.fixture(params=["gaussian", "bernoulli"])
def likelihood(request):
    return request.param


@pytest.fixture(scope="module")
def with_a_pair():
    return fit(*data(), options=replace(QUICK, interactions=((0, 1),)))


class TestResume:
    @pytest.mark.parametrize("posterior", ["joint", "block"])
    def test_stands_where_the_fit_ended(self, likelihood, posterior):
        columns, y = data(likelihood)
        options = replace(QUICK, interactions=((0, 1),), posterior=posterior)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        model = fit(columns, y, weight, likelihood, options)
        prepared, stage = in_memory.resume(model, columns, y, weight, options)
        active = [term for term in model.terms if term.active]
        assert [term.features for term in stage.problem.terms] == [t.features for t in active]
        assert isinstance(stage.problem.terms[-1].entries, Grid)
        assert [t.term.features for t in stage.dropped] == [
            t.features for t in model.terms if not t.active
        ]
        scale = prepared.units.scale
        for estimate, share, term in zip(
            stage.state.terms, stage.problem.data_mass, active, strict=True
        ):
            np.testing.assert_allclose(share, term.data_mass, atol=1e-12)
            np.testing.assert_array_equal(estimate.precision, term.precision)
            np.testing.assert_array_equal(estimate.expansion, term.expansion)
            # Compression omits directions indistinguishable from noise; a classifier takes one more step.
            spread = np.sqrt(term.data_mass @ term.mean**2)
            error = np.sqrt(term.data_mass @ (scale * estimate.values - term.mean) ** 2)
            assert error < 0.01 * spread
        if likelihood == "gaussian":
            noise = stage.state.noise * scale**2
            assert noise == pytest.approx(model.noise_variance)
        found_evidence = prepared.units.log_evidence(stage.state.evidence)
        assert found_evidence == pytest.approx(model.log_evidence, abs=0.05)

    def test_remembers_columns_without_terms(self):
        columns, y = data()
        wide = np.column_stack([columns, np.ones(250)])
        model = fit(wide, y, options=QUICK)
        prepared, _ = in_memory.resume(model, wide, y, np.ones(250), QUICK)
        assert prepared.unused == {3: CONSTANT}
        assert not any(
            3 in gone.term.features
            for gone in in_memory.resume(model, wide, y, np.ones(250), QUICK)[1].dropped
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"hidden_sizes": (9,)},
            {"pair_hidden_sizes": (9,)},
            {"activation": "tanh"},
            {"init_scales": (1.0,)},
            {"init_scales": (1.0, 4.0, 17.0)},
            {"pair_init_scales": (1.0, 5.0)},
            {"prior_groups": "network"},
        ],
    )
    def test_other_networks_are_refused(self, change, with_a_pair):
        columns, y = data()
        expected = (
            "the networks were changed since the model was fitted: set hidden_sizes, "
            "pair_hidden_sizes, activation, init_scales and prior_groups back to what they were, or "
            "fit again"
        )
        with pytest.raises(ValueError, match=re.escape(expected)):
            fit_on(with_a_pair, columns, y, "auto", replace(QUICK, **change))

    def test_a_fitted_term_knows_its_network(self, with_a_pair):
        for term in with_a_pair.terms:
            assert term.architecture == QUICK.architecture(len(term.features))

    def test_adam_has_no_levels_to_go_on_with(self):
        rng = np.random.default_rng(0)
        level = rng.integers(0, 30, 400)
        columns = np.column_stack([level.astype(float), rng.uniform(-1.0, 1.0, 400)])
        y = rng.standard_normal(30)[level] + columns[:, 1]
        options = replace(QUICK, level_effects=True)
        model = fit(columns, y, options=options)
        assert any(term.kind == "level" and term.active for term in model.terms)
        with pytest.raises(ValueError, match="terms without parameters"):
            fit_on(model, columns, y, 1, replace(options, solver="adam"))

    def test_other_sizes_of_pairs_are_fine_where_there_is_none(self):
        columns, y = data()
        model = fit(columns, y, options=QUICK)
        assert found(fit_on(model, columns, y, 1, replace(QUICK, pair_hidden_sizes=(9,)))) == {
            (0, 1)
        }


class TestFitOn:
    @pytest.mark.parametrize("requested", ["auto", 1, 2, ((0, 1),)])
    def test_is_a_fit_in_one_go(self, likelihood, requested):
        columns, y = data(likelihood, n=400)
        at_once = fit(columns, y, None, likelihood, replace(QUICK, interactions=requested))
        later = fit_on(fit(columns, y, None, likelihood, QUICK), columns, y, requested)
        assert found(later) == found(at_once)
        assert (0, 1) in found(later)
        assert [t.features for t in later.terms] == [t.features for t in at_once.terms]
        assert [p.features for p in later.scored] == [p.features for p in at_once.scored]
        for a, b in zip(later.scored, at_once.scored, strict=True):
            # What the first stage left over is known to the tolerance of its end.
            assert a.score == pytest.approx(b.score, rel=0.02, abs=0.05)
        # Both end where the evidence rises by less than `tol`, on ways that differ by rounding and by
        # how finely the first stage's terms are compressed.
        assert later.log_evidence == pytest.approx(at_once.log_evidence, abs=0.5)
        mean, expected = links(later, columns)[0], links(at_once, columns)[0]
        assert np.sqrt(np.mean((mean - expected) ** 2)) < 0.03 * np.std(expected)

    def test_the_same_joint_networks_start(self):
        columns, y = data()
        at_once = fit(columns, y, options=replace(QUICK, interactions=1))
        later = fit_on(fit(columns, y, options=QUICK), columns, y, 1)
        one, two = (m.terms[-1] for m in (at_once, later))
        assert one.kind == two.kind == "pair"
        np.testing.assert_array_equal(one.expansion, two.expansion)
        other = fit_on(fit(columns, y, options=QUICK), columns, y, 1, seed=1)
        assert not np.array_equal(other.terms[-1].expansion, one.expansion)

    @pytest.mark.parametrize("requested", ["auto", 2, ()])
    def test_without_a_pair_the_model_is_unchanged(self, likelihood, requested):
        columns, y = data(likelihood, strength=0.0)
        plain = fit(columns, y, None, likelihood, QUICK)
        model = fit_on(plain, columns, y, requested)
        assert found(model) == set()
        for one, two in zip(model.terms, plain.terms, strict=False):
            np.testing.assert_array_equal(one.precision, two.precision)
            np.testing.assert_array_equal(one.expansion, two.expansion)
        # A classifier takes one more step, which its tolerance leaves.
        assert_same(model, plain, columns, atol=1e-3 if likelihood == "gaussian" else 0.02)

    def test_the_model_that_was_given_is_left_alone(self):
        columns, y = data()
        model = fit(columns, y, options=QUICK)
        before = [term.mean.copy() for term in model.terms], len(model.history)
        fit_on(model, columns, y, 1)
        assert len(model.history) == before[1]
        for term, mean in zip(model.terms, before[0], strict=True):
            np.testing.assert_array_equal(term.mean, mean)

    def test_pairs_come_on_top_of_pairs(self, likelihood):
        rng = np.random.default_rng(0)
        columns = rng.uniform(-1.0, 1.0, (500, 4))
        f = 2.0 * columns[:, 0] * columns[:, 1] + 2.0 * columns[:, 2] * columns[:, 3]
        y = f + 0.2 * rng.standard_normal(500)
        if likelihood == "bernoulli":
            y = (3.0 * f + rng.logistic(size=500) > 0.0).astype(float)
        one = fit(columns, y, None, likelihood, replace(QUICK, interactions=((0, 1),)))
        assert found(one) == {(0, 1)}
        two = fit_on(one, columns, y, ((2, 3),))
        assert found(two) == {(0, 1), (2, 3)}
        assert two.log_evidence > one.log_evidence + 10.0
        again = fit_on(two, columns, y, "auto")
        assert found(again) >= {(0, 1), (2, 3)}
        more = fit_on(one, columns, y, 1)
        assert found(more) == {(0, 1), (2, 3)}
        # A pair that is there is not tried again.
        same = fit_on(one, columns, y, ((0, 1),))
        assert found(same) == {(0, 1)}
        assert len([term for term in same.terms if term.kind == "pair"]) == 1

    def test_a_pair_that_was_off_is_tried_anew(self):
        columns, y = data(strength=0.0)
        _, interacting = data()
        model = fit(columns, y, options=replace(QUICK, interactions=3))
        assert found(model) == set()
        assert all(pair.status.startswith("dropped") for pair in model.scored)
        again = fit_on(model, columns, interacting, 1)
        assert found(again) == {(0, 1)}
        # and no pair is there twice
        names = [(term.kind, term.features) for term in again.terms]
        assert len(names) == len(set(names))

    def test_history_goes_on(self):
        columns, y = data()
        seen = []
        plain = fit(columns, y, options=QUICK)
        model = fit_on(plain, columns, y, 1, replace(QUICK, on_iteration=seen.append))
        assert list(model.history[: plain.n_iter]) == list(plain.history)
        # The last record is reported once more.
        assert list(model.history[plain.n_iter :]) == [*seen[:-2], seen[-1]]
        assert [record["iteration"] for record in model.history] == list(range(1, model.n_iter + 1))
        assert {record["stage"] for record in seen} == {"pairs"}

    def test_an_interrupted_fit_can_be_fitted_on(self):
        columns, y = data()

        def stop(record):
            raise KeyboardInterrupt

        model = fit(columns, y, options=replace(QUICK, on_iteration=stop))
        assert model.stop_reason == "interrupted"
        later = fit_on(model, columns, y, 1)
        assert found(later) == {(0, 1)}
        assert later.stop_reason == "converged"
        assert len(later.scored) == 3

    def test_an_interrupt_is_a_reason(self, likelihood):
        columns, y = data(likelihood)

        def stop(record):
            raise KeyboardInterrupt

        plain = fit(columns, y, None, likelihood, QUICK)
        model = fit_on(plain, columns, y, 1, replace(QUICK, on_iteration=stop))
        assert model.stop_reason == "interrupted"
        assert model.n_iter == plain.n_iter + 1
        assert model.log_evidence > plain.log_evidence

    def test_a_weight_is_a_repetition(self):
        columns, y = data(n=150)
        often = np.ones(150, dtype=int)
        often[::3] = 2
        twice = np.repeat(columns, often, axis=0), np.repeat(y, often)
        weighted = fit_on(
            fit(columns, y, often.astype(float), options=QUICK), columns, y, 1, weight=often * 1.0
        )
        repeated = fit_on(fit(*twice, options=QUICK), *twice, 1)
        for a, b in zip(links(weighted, columns), links(repeated, columns), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)

    @pytest.mark.parametrize("change", [{}, {"posterior": "block"}, {"level_effects": True}])
    def test_units_and_levels_and_blocks(self, change):
        rng = np.random.default_rng(0)
        level = rng.integers(0, 30, 500)
        columns = np.column_stack([level.astype(float), rng.uniform(-1.0, 1.0, (500, 2))])
        y = rng.standard_normal(30)[level] + 2.0 * columns[:, 1] * columns[:, 2]
        y = 1e4 + 100.0 * (y + 0.3 * rng.standard_normal(500))
        options = replace(QUICK, **change)
        plain = fit(columns, y, options=options)
        model = fit_on(plain, columns, y, 1, options)
        assert found(model) == {(1, 2)}
        at_once = fit(columns, y, options=replace(options, interactions=1))
        # FAILS (with levels) until second_stage._try sorts what comes back by its columns.
        # A column that returns beside its pair must start with the same network either way: those that
        # are off come back in the columns' order, not in the order they went.
        assert model.log_evidence == pytest.approx(at_once.log_evidence, abs=0.5)
        assert model.noise_variance == pytest.approx(at_once.noise_variance, rel=0.01)
        kinds = {term.kind for term in model.terms if term.active}
        assert ("level" in kinds) == bool(change.get("level_effects"))

    def test_kronecker_factors(self):
        columns, y = data()
        model = fit_on(fit(columns, y, options=KRON), columns, y, 1, KRON)
        at_once = fit(columns, y, options=replace(KRON, interactions=1))
        assert found(model) == found(at_once) == {(0, 1)}
        assert model.log_evidence == pytest.approx(at_once.log_evidence, abs=0.5)

    def test_adam(self, likelihood):
        columns, y = data(likelihood, strength=2.0)
        plain = fit(columns, y, None, likelihood, ADAM)
        at_once = fit(columns, y, None, likelihood, replace(ADAM, interactions=1))
        later = fit_on(plain, columns, y, 1, ADAM)
        assert found(later) == found(at_once) == {(0, 1)}
        # The same parameters go on, but for batches and sketches drawn in another order.
        assert later.log_evidence == pytest.approx(at_once.log_evidence, abs=1.0)
        assert later.log_evidence > plain.log_evidence + 5.0
        kept = fit_on(plain, columns, y, (), ADAM)
        expected = scoring.link_mean(plain, columns)
        np.testing.assert_allclose(scoring.link_mean(kept, columns), expected, atol=1e-9)
        assert kept.log_evidence == pytest.approx(plain.log_evidence)
