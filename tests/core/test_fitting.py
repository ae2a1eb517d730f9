"""The whole fit: exact cases, invariances, options, and what ends it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import BayesianRidge

from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import ACTIVE, CONSTANT, DUPLICATE, UNSUPPORTED
from lanam.core.rows import cross_tables, equations, quadratics, statistics
from tests.core import in_memory

#: Small networks: as much to test, less to wait for.
QUICK = Options(hidden_sizes=(16,))


def fit(columns, y, weight=None, likelihood="gaussian", options=QUICK, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, seed)


def data(likelihood="gaussian", n=200, seed=0):
    """A wave, a line and a column of noise."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-2, 2, (n, 3))
    f = np.sin(2 * columns[:, 0]) + 0.5 * columns[:, 1]
    if likelihood == "gaussian":
        return columns, f + 0.2 * rng.standard_normal(n)
    return columns, (rng.uniform(size=n) < expit(3.0 * f)).astype(float)


@cache
def fit_of(likelihood="gaussian", options=QUICK):
    """The fit to ``data``, made once: many tests compare with it, and none changes it."""
    return fit(*data(likelihood), None, likelihood, options)


def links(model, columns):
    mean, variance = scoring.link_moments(model, columns)
    return mean, np.sqrt(variance)


def assert_same_model(found, expected, columns, atol):
    """Mean, deviation, noise and evidence agree; ``atol`` in units of the prediction."""
    for a, b in zip(links(found, columns), links(expected, columns), strict=True):
        np.testing.assert_allclose(a, b, atol=atol)
    assert found.noise_variance == pytest.approx(expected.noise_variance, rel=10 * atol)
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=100 * atol)
    assert [term.status for term in found.terms] == [term.status for term in expected.terms]


@pytest.fixture(params=["gaussian", "bernoulli"])
def likelihood(request):
    return request.param


class TestExactCases:
    def test_a_line_is_bayesian_ridge(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (200, 1))
        y = 3.0 * x[:, 0] + 1.0 + 0.5 * rng.standard_normal(200)
        model = fit(x, y)
        ridge = BayesianRidge().fit(x, y)
        expected, expected_std = ridge.predict(x, return_std=True)
        mean, std = links(model, x)
        # The network may bend a little: a few per cent of the line's range of 6.
        np.testing.assert_allclose(mean, expected, atol=0.15)
        np.testing.assert_allclose(np.sqrt(std**2 + model.noise_variance), expected_std, rtol=0.04)
        assert model.noise_variance == pytest.approx(1.0 / ridge.alpha_, rel=0.04)

    def test_constant_columns_leave_the_mean_and_the_variance(self):
        rng = np.random.default_rng(0)
        columns, y = np.ones((300, 2)), rng.normal(5.0, 2.0, 300)
        model = fit(columns, y)
        mean, std = links(model, columns)
        np.testing.assert_allclose(mean, y.mean(), rtol=1e-6)
        # One degree of freedom is the mean's.
        assert model.noise_variance == pytest.approx(y.var(ddof=1), rel=0.005)
        # The noise is known from 300 rows, its logarithm with a variance of 2 / 300.
        variance = model.noise_variance / 300 * (1.0 + 0.25 * 2.0 / 300)
        np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-4)

    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_is_made_of_noise(self, seed):
        rng = np.random.default_rng(seed)
        columns, y = rng.standard_normal((300, 3)), rng.normal(5.0, 2.0, 300)
        model = fit(columns, y, options=Options())
        assert not any(term.active for term in model.terms)
        mean, _ = links(model, columns)
        np.testing.assert_allclose(mean, y.mean())
        assert model.noise_variance == pytest.approx(y.var(), rel=0.01)

    def test_the_papers_toy_switches_off_the_column_of_noise(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (1000, 4))
        f = 8 * (x[:, 0] - 0.5) ** 2 + 0.1 * np.exp(-8 * x[:, 1] + 4)
        f += 5 * np.exp(-2 * (2 * x[:, 2] - 1) ** 2)
        model = fit(x, f + rng.standard_normal(1000), options=Options())
        assert [term.status for term in model.terms[:4]] == [ACTIVE] * 3 + [UNSUPPORTED]
        assert len(model.terms) == 4
        mean, std = links(model, x)
        # Bands of two deviations hold the truth at about 95% of the rows; of one data set, where errors
        # along a curve go together, at fewer or more. (Over many: the benchmark.)
        assert np.mean(np.abs(mean - f) < 2 * std) > 0.75
        assert np.sqrt(np.mean((mean - f) ** 2)) < 0.2
        assert model.noise_variance == pytest.approx(1.0, rel=0.1)


class TestInvariances:
    @pytest.mark.parametrize("repetitions", [2, 3])
    def test_a_weight_is_a_repetition(self, likelihood, repetitions):
        columns, y = data(likelihood, n=120)
        often = np.ones(120, dtype=int)
        often[::3] = repetitions
        weighted = fit(columns, y, often.astype(float), likelihood)
        repeated = fit(np.repeat(columns, often, axis=0), np.repeat(y, often), None, likelihood)
        assert_same_model(weighted, repeated, columns, atol=1e-6)
        plain = fit(columns, y, None, likelihood)
        assert np.abs(links(weighted, columns)[0] - links(plain, columns)[0]).max() > 1e-3

    def test_the_order_of_rows(self, likelihood):
        columns, y = data(likelihood)
        order = np.random.default_rng(1).permutation(len(y))
        shuffled = fit(columns[order], y[order], None, likelihood)
        assert_same_model(shuffled, fit_of(likelihood), columns, atol=1e-6)

    @pytest.mark.parametrize(
        ("memory", "module", "setting"),
        [
            (0.0, statistics, "CHUNK_ROWS"),
            (600e6, cross_tables, "_TABLE_CHUNK_ROWS"),
            (0.0, quadratics, "CHUNK_ROWS"),
            (0.0, equations, "_DESIGN_CHUNK_ROWS"),
        ],
    )
    def test_how_rows_are_summed(self, likelihood, memory, module, setting, monkeypatch):
        options = replace(QUICK, max_knots=16)  # few entries, so that cross-tables are used
        columns, y = data(likelihood)
        expected = fit_of(likelihood, options)
        monkeypatch.setattr(module, setting, 17)
        found = fit(columns, y, None, likelihood, replace(options, memory=memory))
        assert_same_model(found, expected, columns, atol=1e-6)

    @pytest.mark.parametrize("memory", [0.0, 600e6])
    def test_cross_tables_are_made_where_memory_allows(self, memory, monkeypatch):
        made, original = [], cross_tables._cross_tables
        monkeypatch.setattr(
            cross_tables, "_cross_tables", lambda *given: made.append(1) or original(*given)
        )
        options = replace(QUICK, max_knots=16, memory=memory)
        model = fit(*data(), options=options)
        in_memory.resume(model, *data(), np.ones(200), options)
        assert bool(made) == (memory > 0.0)

    def test_columns_draw_their_starts_one_after_the_other(self):
        # The order of columns only affects which initialisation each one gets: a column
        # at the end leaves the starts of those before it alone.
        columns, y = data()
        model = fit(columns[:, :2], y)
        with_a_constant = fit(np.column_stack([np.ones(200), columns[:, :2]]), y)
        for a, b in zip(model.terms, with_a_constant.terms[1:], strict=True):
            np.testing.assert_array_equal(a.mean, b.mean)
        assert model.log_evidence == with_a_constant.log_evidence

    @pytest.mark.parametrize(("scale", "shift"), [(-1.0, 0.0), (3.0, 7.0), (1e-8, 0.0), (1e8, 1e9)])
    def test_units_of_the_response(self, scale, shift):
        columns, y = data()
        plain, changed = fit_of(), fit(columns, scale * y + shift)
        mean, std = links(plain, columns)
        changed_mean, changed_std = links(changed, columns)
        # A shift costs the response digits.
        np.testing.assert_allclose((changed_mean - shift) / scale, mean, atol=1e-5)
        np.testing.assert_allclose(changed_std / abs(scale), std, rtol=1e-5)
        assert changed.noise_variance / scale**2 == pytest.approx(plain.noise_variance, rel=1e-5)
        expected = plain.log_evidence - 200 * np.log(abs(scale))
        assert changed.log_evidence == pytest.approx(expected, abs=1e-3)

    @pytest.mark.parametrize(("scale", "shift"), [(0.25, 0.0), (3.0, 0.0), (1.0, 1000.0)])
    def test_units_of_a_column(self, likelihood, scale, shift):
        columns, y = data(likelihood)
        changed = columns.copy()
        changed[:, 0] = scale * columns[:, 0] + shift
        expected, found = fit_of(likelihood), fit(changed, y, None, likelihood)
        for a, b in zip(links(found, changed), links(expected, columns), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)

    def test_classes_the_other_way_round(self):
        columns, y = data("bernoulli")
        found, mirrored = fit_of("bernoulli"), fit(columns, 1 - y, None, "bernoulli")
        mean, std = links(found, columns)
        np.testing.assert_allclose(links(mirrored, columns)[0], -mean, atol=1e-6)
        np.testing.assert_allclose(links(mirrored, columns)[1], std, atol=1e-6)
        assert mirrored.log_evidence == pytest.approx(found.log_evidence, abs=1e-6)


class TestRandomness:
    def test_the_same_seed_is_the_same_model_bit_for_bit(self, likelihood):
        columns, y = data(likelihood)
        first, second = (fit(columns, y, None, likelihood, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.covariance, second.covariance)
        for a, b in zip(first.terms, second.terms, strict=True):
            np.testing.assert_array_equal(a.mean, b.mean)
            np.testing.assert_array_equal(a.table, b.table)
        assert first.log_evidence == second.log_evidence
        assert first.intercept == second.intercept

    def test_another_seed_is_another_start(self):
        columns, y = data()
        assert fit(columns, y, seed=3).log_evidence != fit(columns, y, seed=4).log_evidence

    def test_more_restarts_never_lower_the_evidence(self, likelihood):
        columns, y = data(likelihood)
        models = [
            fit(columns, y, None, likelihood, replace(QUICK, n_restarts=n)) for n in (1, 2, 4)
        ]
        levels = [model.log_evidence for model in models]
        # The final tables are made with another random probe: equal up to the rank's tolerance.
        assert (np.diff(levels) > -0.01).all()
        assert levels[2] > levels[0] + 0.1
        # All restarts are in the history.
        assert models[0].n_iter < models[1].n_iter < models[2].n_iter
        assert models[1].history[: models[0].n_iter - 1] != ()
        # But for the last record, which is that of the model.
        first = [record["log_evidence"] for record in models[0].history[:-1]]
        assert [r["log_evidence"] for r in models[2].history][: len(first)] == first


CHANGES = {
    "posterior": "block",
    "evidence_update": "gradient",
    "prior_groups": "network",
    "activation": "tanh",
    "hidden_sizes": (8, 8),
    "max_knots": 12,
    "init_scales": (1.0,),
    "tol": 2.0,
}


class TestOptions:
    @pytest.mark.parametrize("name", CHANGES)
    def test_each_changes_something_and_fits(self, likelihood, name):
        columns, y = data(likelihood)
        plain = fit_of(likelihood)
        changed = fit(columns, y, None, likelihood, replace(QUICK, **{name: CHANGES[name]}))
        mean, std = links(changed, columns)
        expected, expected_std = links(plain, columns)
        assert not np.allclose(std, expected_std, rtol=1e-6)
        assert changed.converged
        assert np.corrcoef(mean, expected)[0, 1] > 0.9
        # Some cost evidence, none loses sight of the data: a constant is 100 nats behind.
        assert changed.log_evidence > plain.log_evidence - 25.0

    @pytest.mark.parametrize("activation", ["gelu", "relu", "tanh", "silu"])
    def test_every_activation(self, activation):
        columns, y = data()
        model = fit(columns, y, options=replace(QUICK, activation=activation))
        assert np.mean((links(model, columns)[0] - y) ** 2) < 0.06

    def test_blocks_ignore_what_terms_have_in_common(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, 300)
        columns = np.column_stack([x, x + 0.2 * rng.standard_normal(300)])
        y = np.sin(3 * columns[:, 0]) + columns[:, 1] + 0.3 * rng.standard_normal(300)
        joint = fit(columns, y)
        block = fit(columns, y, options=replace(QUICK, posterior="block"))
        # Correlated columns: what one function does, the other can undo.
        assert (
            scoring.term_variances(joint, columns).mean(axis=0)
            > 1.5 * scoring.term_variances(block, columns).mean(axis=0)
        ).all()
        off_diagonal = block.covariance.copy()
        for own in block.blocks:
            off_diagonal[own, own] = 0.0
        off_diagonal[-1, -1] = 0.0
        assert not off_diagonal.any()

    def test_one_group_per_network_or_one_per_layer_and_scale(self):
        columns, y = data()
        assert len(fit_of().terms[0].precision) == 9
        network = fit(columns, y, options=replace(QUICK, prior_groups="network"))
        assert len(network.terms[0].precision) == 1


class TestBands:
    def test_widen_beyond_the_data(self, likelihood):
        model = fit_of(likelihood)
        rows = np.zeros((5, 3))
        rows[:, 0] = [1.8, 2.2, 3.0, 4.0, 6.0]
        std = links(model, rows)[1]
        assert (np.diff(std) > 0.0).all()
        # Further out than a range beyond the data, the last knot holds.
        rows[:2, 0] = [50.0, 1e6]
        last = links(model, rows[:2])[1]
        assert last[0] == last[1] >= std[-1]

    def test_are_narrower_with_more_rows(self, likelihood):
        few = fit(*data(likelihood, n=100), None, likelihood)
        many = fit(*data(likelihood, n=800), None, likelihood)
        columns, _ = data()
        assert np.median(links(many, columns)[1]) < 0.7 * np.median(links(few, columns)[1])


class TestTerms:
    def test_are_centred_over_the_data(self, likelihood):
        columns, y = data(likelihood)
        model = fit_of(likelihood)
        # Rows read tables with single-precision fractions.
        np.testing.assert_allclose(scoring.term_means(model, columns).mean(axis=0), 0.0, atol=1e-6)
        if likelihood == "gaussian":
            assert model.intercept == pytest.approx(y.mean(), abs=1e-6)

    def test_have_their_log_evidence_gain(self, likelihood):
        model = fit_of(likelihood)
        for term in model.terms[:2]:
            assert term.active
            assert term.evidence > 3.0
            assert 0.9 < term.effective_parameters < 20.0
            assert term.data_mass.sum() == pytest.approx(1.0)
        off = model.terms[2]
        assert off.status == UNSUPPORTED
        assert off.evidence < 3.0
        assert off.effective_parameters == 0.0
        assert not off.mean.any()

    def test_constant_and_duplicate_columns(self, likelihood):
        columns, y = data(likelihood)
        wide = np.column_stack([columns[:, :2], np.full(200, 3.0), columns[:, 0]])
        model = fit(wide, y, None, likelihood)
        assert [term.status for term in model.terms] == [ACTIVE, ACTIVE, CONSTANT, DUPLICATE]
        assert not scoring.term_means(model, wide)[:, 2:].any()
        plain = fit(columns[:, :2], y, None, likelihood)
        for a, b in zip(links(model, wide), links(plain, columns), strict=True):
            np.testing.assert_array_equal(a, b)


class TestLevels:
    @staticmethod
    def jagged(likelihood="gaussian"):
        """200 values with an effect each, every value equally often."""
        rng = np.random.default_rng(0)
        level = np.repeat(np.arange(200), 10)
        columns = np.column_stack([level.astype(float), rng.uniform(-1, 1, 2000)])
        f = rng.standard_normal(200)[level] + columns[:, 1]
        if likelihood == "gaussian":
            return columns, f + 0.5 * rng.standard_normal(2000)
        return columns, (rng.uniform(size=2000) < expit(2.0 * f)).astype(float)

    @staticmethod
    @cache
    def fit_of_jagged(likelihood):
        return fit(*TestLevels.jagged(likelihood), None, likelihood)

    def level_term(self, model):
        return next((k for k, term in enumerate(model.terms) if term.kind == "level"), None)

    def test_are_found_where_values_matter_singly(self, likelihood):
        columns, y = self.jagged(likelihood)
        model = self.fit_of_jagged(likelihood)
        index = self.level_term(model)
        assert model.terms[index].active
        assert model.terms[index].features == (0,)
        off = fit(columns, y, None, likelihood, replace(QUICK, level_effects=False))
        assert self.level_term(off) is None
        assert model.log_evidence > off.log_evidence + 50.0
        effect = np.random.default_rng(0)  # the same draws as in the data
        effect.uniform(-1, 1, 2000)
        truth = effect.standard_normal(200)[np.repeat(np.arange(200), 10)]
        assert np.corrcoef(scoring.term_means(model, columns)[:, index], truth)[0, 1] > 0.8

    def test_are_not_added_to_smooth_data(self, likelihood):
        rng = np.random.default_rng(0)
        columns = rng.integers(0, 200, (2000, 1)).astype(float)
        f = np.sin(columns[:, 0] / 30.0)
        y = f + 0.3 * rng.standard_normal(2000)
        if likelihood == "bernoulli":
            y = (rng.uniform(size=2000) < expit(2.0 * f)).astype(float)
        assert self.level_term(fit(columns, y, None, likelihood)) is None

    def test_an_unseen_value_has_no_effect_and_a_wider_band(self, likelihood):
        columns, y = self.jagged(likelihood)
        model = self.fit_of_jagged(likelihood)
        index = self.level_term(model)
        rows = np.array([[100.0, 0.0], [100.5, 0.0]])
        effect = scoring.term_means(model, rows)[:, index]
        variance = scoring.term_variances(model, rows)[:, index]
        # Zero but for the unequal information of the levels, which moves their common mean.
        assert abs(effect[1]) < 0.05 * np.abs(scoring.term_means(model, columns)[:, index]).max()
        assert variance[1] > 2.0 * variance[0]
        prior = 1.0 / model.terms[index].precision[0]
        unit = y.var() if likelihood == "gaussian" else 1.0
        assert variance[1] == pytest.approx(prior * unit, rel=0.05)


class TestEnding:
    def test_history(self, likelihood):
        columns, y = data(likelihood)
        seen = []
        model = fit(columns, y, None, likelihood, replace(QUICK, on_iteration=seen.append))
        # The last record is reported once more, with the evidence of the fitted model.
        assert list(model.history) == [*seen[:-2], seen[-1]]
        assert seen[-1]["iteration"] == seen[-2]["iteration"]
        assert model.history[-1]["log_evidence"] == model.log_evidence
        assert model.n_iter == len(seen) - 1 >= 2
        assert set(seen[0]) == {
            "iteration",
            "stage",
            "log_evidence",
            "noise_std",
            "n_active",
            "effective_parameters",
            "seconds",
        }
        numbers = [record["iteration"] for record in model.history]
        assert numbers == list(range(1, len(numbers) + 1))
        seconds = [record["seconds"] for record in seen]
        assert seconds == sorted(seconds)
        assert seen[0]["stage"] == "smooth"
        assert seen[0]["n_active"] == 3
        assert seen[-1]["n_active"] == 2
        assert seen[-1]["log_evidence"] == pytest.approx(model.log_evidence, abs=0.5)
        if likelihood == "gaussian":
            assert seen[-1]["log_evidence"] > seen[0]["log_evidence"]
            assert seen[-1]["noise_std"] == pytest.approx(np.sqrt(model.noise_variance), rel=0.01)
        else:
            assert seen[-1]["noise_std"] is None
        assert model.converged
        assert model.stop_reason == "converged"

    def test_too_few_iterations(self, likelihood):
        columns, y = data(likelihood)
        model = fit(columns, y, None, likelihood, replace(QUICK, max_iter=1))
        assert not model.converged
        assert model.stop_reason == "max_iter"
        assert model.n_iter == 1
        assert np.corrcoef(links(model, columns)[0], y)[0, 1] > 0.5

    @pytest.mark.parametrize("after", [1, 2, 4])
    def test_an_interrupt_keeps_the_newest_state(self, likelihood, after):
        columns, y = data(likelihood)

        def stop(record):
            if record["iteration"] == after:
                raise KeyboardInterrupt

        model = fit(columns, y, None, likelihood, replace(QUICK, on_iteration=stop))
        assert model.stop_reason == "interrupted"
        assert not model.converged
        assert model.n_iter == after
        mean, std = links(model, columns)
        assert np.corrcoef(mean, y)[0, 1] > 0.5
        assert (std > 0.0).all()
        assert len(model.terms) == 3

    def test_an_interrupt_ends_all_restarts(self):
        columns, y = data()

        def stop(record):
            raise KeyboardInterrupt

        options = replace(QUICK, on_iteration=stop, n_restarts=5)
        model = fit(columns, y, options=options)
        assert model.n_iter == 1
        assert model.stop_reason == "interrupted"

    def test_an_interrupt_while_levels_are_fitted(self):
        columns, y = TestLevels().jagged()

        def stop(record):
            if record["stage"] == "levels":
                raise KeyboardInterrupt

        model = fit(columns, y, options=replace(QUICK, on_iteration=stop))
        assert model.stop_reason == "interrupted"
        assert model.terms[-1].kind == "level"
        assert model.terms[-1].active

    def test_other_errors_are_not_swallowed(self):
        def fail(record):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fit(*data(), options=replace(QUICK, on_iteration=fail))


class TestFewRows:
    def test_two_rows(self, likelihood):
        columns, y = np.array([[0.0, 1.0], [1.0, 5.0]]), np.array([0.0, 1.0])
        model = fit(columns, y, None, likelihood)
        mean, std = links(model, np.array([[0.0, 1.0], [0.5, 3.0], [9.0, 9.0]]))
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
        assert np.isfinite(model.log_evidence)

    def test_more_columns_than_rows(self, likelihood):
        rng = np.random.default_rng(0)
        columns = rng.standard_normal((30, 50))
        f = 3.0 * columns[:, 0]
        y = f + 0.1 * rng.standard_normal(30) if likelihood == "gaussian" else (f > 0).astype(float)
        model = fit(columns, y, None, likelihood)
        assert model.terms[0].active
        assert len(model.covariance) - 1 == sum(term.table.shape[1] for term in model.terms)
        mean, std = links(model, columns)
        assert np.corrcoef(mean, f)[0, 1] > 0.9
        assert np.isfinite(std).all()


def test_an_interrupt_of_a_later_restart_is_not_lost():
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (100, 2))
    y = np.sin(3 * columns[:, 0]) + 0.1 * rng.standard_normal(100)
    single = fit(columns, y, options=Options(hidden_sizes=(64,), level_effects=False))

    def stop(record):
        if record["iteration"] > single.n_iter + 1:
            raise KeyboardInterrupt

    restarted = Options(hidden_sizes=(64,), level_effects=False, n_restarts=2, on_iteration=stop)
    model = fit(columns, y, options=restarted)
    assert model.stop_reason == "interrupted"
    assert not model.converged


@pytest.mark.parametrize("seed", range(4))
def test_more_columns_than_noise_can_pay_for(seed):
    rng = np.random.default_rng(seed)
    columns, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    model = fit(columns, y, options=Options())
    assert sum(term.active for term in model.terms) <= 2
    assert model.noise_variance > 0.5


def test_one_clear_effect_among_noise_is_not_dropped_with_it():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((80, 15))
    y = columns[:, 3] + rng.standard_normal(80)
    model = fit(columns, y, options=Options())
    assert model.terms[3].active
    assert sum(term.active for term in model.terms) <= 4
