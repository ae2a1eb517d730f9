"""Scores of pairs against dense Gaussian processes and explicit determinants."""

from dataclasses import replace

import numpy as np
import pytest

from lanam.core.fit import effect_scores, interactions
from lanam.core.fit.effect_scores import Effects, gain_scores, information_scores
from lanam.core.fit.first_stage import add_levels
from lanam.core.inference import gauss_newton
from lanam.core.rows import statistics
from lanam.core.terms.knots import standard_inputs, summarise
from tests.core import in_memory
from tests.core.examples import SMALL, started
from tests.oracles import (
    assert_close,
    interpolation_matrix,
    kernel_of_column,
    log_det_ratio,
    pair_evidence,
)

RNG = np.random.default_rng
PAIRS = [(0, 1), (0, 2), (1, 2)]


def test_all_of_order():
    assert interactions.all_of_order([3, 0, 2], 2) == [(0, 2), (0, 3), (2, 3)]
    assert interactions.all_of_order([1], 2) == []
    assert interactions.all_of_order([], 2) == []


def residuals(n=120, seed=0, rho=0.0, strength=0.5):
    """Two columns that interact, one with few values; what main effects leave, and weights."""
    rng = RNG(seed)
    columns = np.column_stack([rng.standard_normal((n, 2)), rng.integers(0, 5, n)])
    columns[:, 1] = rho * columns[:, 0] + np.sqrt(1 - rho**2) * columns[:, 1]
    weight = rng.integers(1, 4, n).astype(float)
    residual = strength * columns[:, 0] * columns[:, 1] + 0.5 * rng.standard_normal(n)
    return columns, residual, weight


def dense_scores(columns, residual, weight, noise, candidates=PAIRS):
    repetitions = weight.astype(int)
    scores = []
    for candidate in candidates:
        n_bins, gains = interactions._N_BINS[len(candidate)], []
        for length in interactions._LENGTHS:
            made = []
            for feature in candidate:
                column = columns[:, feature]
                distribution = summarise(column, weight)
                place = np.searchsorted(distribution.values * distribution.scale, column)
                inputs = standard_inputs(distribution)[place]
                made.append(kernel_of_column(column, inputs, repetitions, n_bins, length))
            kernels, cells = zip(*made, strict=True)
            variances = interactions._VARIANCES
            gains.append(pair_evidence(kernels, cells, residual, weight, noise, variances))
        scores.append(max(gains))
    return np.array(scores)


def scores_of(columns, residual, weight, noise=0.3, pairs=PAIRS):
    return in_memory.evidence_scores(
        columns, weight, weight * residual / noise, weight / noise, pairs
    )


class TestEvidence:
    @pytest.mark.parametrize("rho", [0.0, 0.9])
    def test_is_the_gain_of_a_dense_gaussian_process(self, rho, monkeypatch):
        # All directions of the kernels, so that the dense reference must agree.
        monkeypatch.setattr(interactions, "_MAX_DIRECTIONS", 12)
        monkeypatch.setattr(interactions, "_SMALLEST_DIRECTION", 1e-14)
        columns, residual, weight = residuals(rho=rho)
        expected = dense_scores(columns, residual, weight, 0.3)
        assert_close(scores_of(columns, residual, weight), expected, "conditioning")
        assert expected[0] > 2.0

    @pytest.mark.parametrize("rho", [0.0, 0.9])
    def test_few_directions_are_nearly_all(self, rho):
        for strength in (0.0, 0.5):
            columns, residual, weight = residuals(rho=rho, strength=strength)
            expected = dense_scores(columns, residual, weight, 0.3)
            found = scores_of(columns, residual, weight)
            # What is left out is rough and small: a few per cent, or a fraction of a nat.
            np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.5)

    def test_every_length_scale_and_variance_counts(self, monkeypatch):
        columns, residual, weight = residuals()
        whole = scores_of(columns, residual, weight)
        alone = []
        for length in interactions._LENGTHS:
            for variance in interactions._VARIANCES:
                with monkeypatch.context() as patch:
                    patch.setattr(interactions, "_LENGTHS", (length,))
                    patch.setattr(interactions, "_VARIANCES", np.array([variance]))
                    alone.append(scores_of(columns, residual, weight))
        np.testing.assert_allclose(whole, np.max(alone, axis=0))
        assert np.ptp([scores[0] for scores in alone]) > 1.0

    def test_main_effects_count_for_nothing(self):
        columns, residual, weight = residuals(rho=0.9)
        binned = interactions.bin_columns(in_memory.summary(columns, weight), [(0, 2)])[0]
        assert binned.n_cells == 12
        cell = binned.number[binned.entries.locate(columns[:, 0]).index]
        sums = RNG(1).standard_normal(12)[cell] + 3.0 * columns[:, 2]
        found = scores_of(columns, residual + sums, weight, pairs=[(0, 2)])
        expected = scores_of(columns, residual, weight, pairs=[(0, 2)])
        assert_close(found, expected, "rounding")
        # Of a smooth effect something is left within the cells.
        assert scores_of(columns, np.sin(columns[:, 0]), weight, pairs=[(0, 2)]) < 1.0

    def test_a_weight_is_a_repetition(self):
        columns, residual, weight = residuals()
        often = weight.astype(int)
        repeated = scores_of(
            np.repeat(columns, often, axis=0), np.repeat(residual, often), np.ones(often.sum())
        )
        assert_close(scores_of(columns, residual, weight), repeated, "rounding")
        plain = scores_of(columns, residual, np.ones(len(residual)))
        assert np.abs(plain - repeated).max() > 0.1

    def test_the_order_of_rows_and_columns_does_not_matter(self):
        columns, residual, weight = residuals()
        expected = scores_of(columns, residual, weight)
        order = RNG(1).permutation(len(weight))
        assert_close(
            scores_of(columns[order], residual[order], weight[order]), expected, "rounding"
        )
        swapped = scores_of(columns[:, ::-1], residual, weight, pairs=[(1, 2), (0, 2), (0, 1)])
        assert_close(swapped, expected, "rounding")
        turned = scores_of(columns, residual, weight, pairs=[(j, i) for i, j in PAIRS])
        assert_close(turned, expected, "rounding")

    @pytest.mark.parametrize(("scale", "shift"), [(-3.0, 0.0), (1e200, 0.0), (1e-5, 1.0)])
    def test_units_of_the_columns(self, scale, shift):
        columns, residual, weight = residuals()
        expected = scores_of(columns, residual, weight)
        # A turned column's bins have other borders.
        close = {"rtol": 0.2} if scale < 0.0 else {"rtol": 1e-6}
        found = scores_of(scale * columns + shift, residual, weight)
        np.testing.assert_allclose(found[0], expected[0], **close)

    def test_none_is_below_zero(self):
        columns, residual, weight = residuals(strength=0.0)
        assert (scores_of(columns, 0.1 * residual, weight) == 0.0).all()
        assert scores_of(columns, residual, weight, pairs=[]).shape == (0,)

    def test_columns_of_two_values(self):
        rng = RNG(0)
        columns = rng.integers(0, 2, (100, 3)).astype(float)
        residual = (columns[:, 0] - 0.5) * (columns[:, 1] - 0.5) + 0.1 * rng.standard_normal(100)
        found = scores_of(columns, residual, np.ones(100), noise=0.01)
        assert found.argmax() == 0
        assert found[0] > 20.0


def product_data(likelihood="gaussian", n=400, seed=0):
    """A pure product without main effects, and a column with one."""
    rng = RNG(seed)
    columns = rng.uniform(-1.0, 1.0, (n, 3))
    f = 2.0 * columns[:, 0] * columns[:, 1] + columns[:, 2]
    if likelihood == "gaussian":
        return columns, f + 0.3 * rng.standard_normal(n), rng.integers(1, 3, n).astype(float)
    return columns, (3.0 * f + rng.logistic(size=n) > 0.0).astype(float), np.ones(n)


def fitted(columns, y, weight, likelihood="gaussian", options=SMALL):
    problem, state = started(columns, y, weight, likelihood, options)
    state, _ = gauss_newton.converge(
        problem, state, gauss_newton.Limits(20, 0.01), lambda state: None
    )
    return problem, state


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
class TestScore:
    def test_evidence_is_of_what_the_first_stage_left(self, likelihood):
        columns, y, weight = product_data(likelihood)
        problem, state = fitted(columns, y, weight, likelihood)
        found = in_memory.score("evidence", problem, state, columns, PAIRS)
        f = statistics.predict(problem.rows, state.values, state.intercept)
        slope = weight * problem.likelihood.gradient(problem.rows.y, f) / state.noise
        curvature = weight * problem.likelihood.curvature(f) / state.noise
        expected = in_memory.evidence_scores(columns, weight, slope, curvature, PAIRS)
        assert_close(found, expected, "rounding")
        assert (likelihood == "gaussian") == (state.noise != 1.0)

    def test_evidence_sees_a_product_without_main_effects(self, likelihood):
        columns, y, weight = product_data(likelihood)
        problem, state = fitted(columns, y, weight, likelihood)
        found = in_memory.score("evidence", problem, state, columns, PAIRS)
        assert found.argmax() == 0
        assert found[0] > 10.0
        assert (found[1:] < 2.0).all()

    @pytest.mark.parametrize("kind", ["mutual_information", "evidence_gain"])
    def test_the_papers_scores_do_not(self, likelihood, kind):
        columns, y, weight = product_data(likelihood)
        problem, state = fitted(columns, y, weight, likelihood)
        # As a fit drops them: the product's columns have no effect of their own.
        problem, state = problem.keep([2]), state.keep([2])
        for suffix in ("", "_full"):
            found = in_memory.score(kind + suffix, problem, state, columns, PAIRS)
            np.testing.assert_array_equal(found, 0.0)

    @pytest.mark.parametrize("kind", ["mutual_information", "evidence_gain"])
    def test_the_papers_scores_are_of_the_joint_posterior(self, likelihood, kind, lossless):
        columns, y, weight = product_data(likelihood, n=80)
        columns[:, 1] = 0.8 * columns[:, 0] + 0.6 * columns[:, 1]
        columns[:, 2] = -0.8 * columns[:, 0] + 0.6 * columns[:, 2]
        problem, state = fitted(columns, y, weight, likelihood)
        precision, tables, means = dense_precision(problem, state)
        blocks = np.split(
            np.arange(len(precision) - 1), np.cumsum([t.shape[1] for t in tables])[:-1]
        )
        covariance = np.linalg.inv(precision)
        last = np.zeros((len(precision), 4))
        last[-1, -1] = 1.0
        for k, own in enumerate(blocks):
            last[own, k] = means[own]
        last_precision = last.T @ precision @ last
        last_covariance = np.linalg.inv(last_precision)
        full = in_memory.score(kind + "_full", problem, state, columns, PAIRS)
        scalar = in_memory.score(kind, problem, state, columns, PAIRS)
        for k, (i, j) in enumerate(PAIRS):
            if kind == "mutual_information":
                expected = 0.5 * log_det_ratio(covariance, blocks[i], blocks[j])
                of_last = 0.5 * log_det_ratio(last_covariance, [i], [j])
            else:
                expected = log_det_ratio(precision, blocks[i], blocks[j])
                of_last = log_det_ratio(last_precision, [i], [j])
            assert full[k] == pytest.approx(expected, rel=1e-5)
            assert scalar[k] == pytest.approx(of_last, rel=1e-5)
        assert full.min() > 0.01
        assert scalar.max() > 0.01


def dense_precision(problem, state):
    """Posterior precision of all parameters, whitened by the prior, and of the intercept."""
    rows = problem.rows
    tables = [
        known.jacobian / np.sqrt(known.precision[term.group_index])
        for term, known in zip(problem.terms, state.terms, strict=True)
    ]
    parts = [
        interpolation_matrix(position, size) @ table
        for position, size, table in zip(rows.positions, rows.sizes, tables, strict=True)
    ]
    design = np.hstack([*parts, np.ones((len(rows), 1))])
    f = statistics.predict(rows, state.values, state.intercept)
    gamma = rows.weight * problem.likelihood.curvature(f) / state.noise
    precision = design.T @ np.diag(gamma) @ design
    precision[:-1, :-1] += np.eye(len(precision) - 1)
    pseudo = rows.weight * problem.likelihood.gradient(rows.y, f) / state.noise + gamma * f
    return precision, tables, np.linalg.solve(precision, design.T @ pseudo)


def effects_of(widths=(2, 3, 1), seed=0, sign=1.0):
    """A random joint precision; column 5 has no effect, column 7's coordinates stand apart."""
    rng = RNG(seed)
    size = sum(widths) + 1
    factor = rng.standard_normal((size, size))
    precision = factor @ factor.T + 0.5 * np.eye(size)
    turn = np.ones(size)
    turn[: widths[0]] = sign
    precision = precision * np.outer(turn, turn)
    ends = np.cumsum((0, *widths))
    blocks = {f: np.arange(a, b) for f, a, b in zip((0, 2, 7), ends, ends[1:], strict=False)}
    return Effects(precision, rng.standard_normal(size), blocks)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0])
class TestThePapersScores:
    def test_full(self, seed, sign):
        effects = effects_of(seed=seed, sign=sign)
        pairs = [(0, 2), (0, 7), (2, 7)]
        covariance = np.linalg.inv(effects.precision)
        for (i, j), information, gain in zip(
            pairs, information_scores(effects, pairs), gain_scores(effects, pairs), strict=True
        ):
            own = effects.blocks[i], effects.blocks[j]
            assert information == pytest.approx(0.5 * log_det_ratio(covariance, *own))
            assert gain == pytest.approx(log_det_ratio(effects.precision, *own))

    def test_last_layer(self, seed, sign):
        effects = effects_of(seed=seed, sign=sign).last_layer()
        whole = effects_of(seed=seed, sign=sign)
        assert [list(own) for own in effects.blocks.values()] == [[0], [1], [2]]
        # The variance of a multiplier: the effect's direction in the whole posterior's precision.
        own = whole.blocks[2]
        direction = np.zeros(len(whole.precision))
        direction[own] = whole.mean[own]
        assert effects.precision[1, 1] == pytest.approx(direction @ whole.precision @ direction)
        covariance = np.linalg.inv(effects.precision)
        pairs = [(0, 2), (0, 7), (2, 7)]
        for (a, b), information, gain in zip(
            [(0, 1), (0, 2), (1, 2)],
            information_scores(effects, pairs),
            gain_scores(effects, pairs),
            strict=True,
        ):
            correlation = covariance[a, b] / np.sqrt(covariance[a, a] * covariance[b, b])
            assert information == pytest.approx(-0.5 * np.log(1.0 - correlation**2))
            p = effects.precision
            normalised = p[a, b] / np.sqrt(p[a, a] * p[b, b])
            assert gain == pytest.approx(-np.log(1.0 - normalised**2))

    def test_symmetric_and_not_below_zero_and_zero_without_an_effect(self, seed, sign):
        effects = effects_of(seed=seed, sign=sign)
        for own in (effects, effects.last_layer()):
            for measure in (information_scores, gain_scores):
                found = measure(own, [(0, 2), (2, 7), (0, 5), (5, 6)])
                assert (found[:2] > 0.0).all()
                np.testing.assert_array_equal(found[2:], 0.0)
                assert_close(measure(own, [(2, 0), (7, 2), (5, 0), (6, 5)]), found, "rounding")

    def test_a_turned_effect_has_the_same_scores(self, seed, sign):
        # Correlations change sign with it, and their squares do not.
        effects, turned = effects_of(seed=seed, sign=sign), effects_of(seed=seed, sign=-sign)
        for measure in (information_scores, gain_scores):
            pairs = [(0, 2), (0, 7)]
            assert_close(measure(turned, pairs), measure(effects, pairs), "rounding")


def test_effects_that_are_not_coupled_share_nothing():
    effects = effects_of()
    precision = np.diag(np.diag(effects.precision))
    for measure in (information_scores, gain_scores):
        np.testing.assert_array_equal(measure(replace(effects, precision=precision), [(0, 2)]), 0.0)


def test_effects_that_are_each_other_have_finite_scores():
    # Rounding must not make a correlation of one an infinite score.
    precision = np.eye(3)
    precision[0, 1] = precision[1, 0] = -1.0 + 2e-16
    effects = Effects(precision, np.ones(3), {0: np.array([0]), 1: np.array([1])})
    found = gain_scores(effects, [(0, 1)])
    assert np.isfinite(found).all()
    assert found[0] > 30.0


def test_the_level_effect_of_a_column_counts_with_its_smooth_one():
    rng = RNG(0)
    level = rng.integers(0, 40, 800)
    columns = np.column_stack([level.astype(float), rng.uniform(-1, 1, 800)])
    y = rng.standard_normal(40)[level] + columns[:, 1] + 0.3 * rng.standard_normal(800)
    problem, state = fitted(columns, y, np.ones(800))
    levels = in_memory.prepared(columns, y, np.ones(800), problem.likelihood, SMALL).levels
    problem, state = add_levels(problem, state, levels)
    assert [term.kind for term in problem.terms] == ["smooth", "smooth", "level"]
    effects = effect_scores.joint_precision(problem, state)
    assert list(effects.blocks) == [0, 1]
    # 40 levels and the unseen one come on top of the smooth coordinates.
    assert len(effects.blocks[0]) > 41
    together = np.sort(np.concatenate(list(effects.blocks.values())))
    np.testing.assert_array_equal(together, np.arange(len(effects.precision) - 1))
