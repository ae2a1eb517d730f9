"""Several classes: derivatives, sums over rows and the whole posterior against dense references."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from lanam.core.fit import first_stage
from lanam.core.fit.diagnostics import _separated
from lanam.core.inference import evidence
from lanam.core.inference.gauss_newton import refit_posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.model import scoring
from lanam.core.rows import equations, statistics
from lanam.core.rows.statistics import Around, Rows
from lanam.core.terms.knots import Position
from lanam.families.softmax import Softmax
from tests.core import in_memory
from tests.core.examples import dense_features
from tests.likelihoods import LIKELIHOODS, find_likelihood
from tests.oracles import (
    DenseLaplace,
    assert_close,
    block_diagonal,
    differences,
    interpolation_matrix,
)

QUICK = Options(hidden_sizes=(8,), init_scales=(1.0, 4.0), level_effects=False)


# the likelihood


@pytest.mark.parametrize("n_classes", [2, 3, 6])
class TestLikelihood:
    def given(self, n_classes):
        rng = np.random.default_rng(0)
        y = np.arange(12.0) % n_classes
        return Softmax(n_classes), y, 2.0 * rng.standard_normal((12, n_classes - 1))

    def test_contrasts_are_orthonormal_and_sum_to_zero(self, n_classes):
        contrasts = Softmax(n_classes).contrasts
        assert contrasts.shape == (n_classes, n_classes - 1)
        assert_close(contrasts.T @ contrasts, np.eye(n_classes - 1), "rounding")
        np.testing.assert_allclose(contrasts.sum(axis=0), 0.0, atol=1e-15)

    def test_log_probability(self, n_classes):
        likelihood, y, f = self.given(n_classes)
        links = [likelihood.contrasts @ row for row in f]
        expected = [log_softmax(row)[int(k)] for row, k in zip(links, y, strict=True)]
        assert_close(likelihood.log_prob(y, f), expected, "rounding")
        far = likelihood.log_prob(np.zeros(1), np.full((1, n_classes - 1), 1e3))
        assert np.isfinite(far).all()

    def test_slope_and_curvature(self, n_classes):
        likelihood, y, f = self.given(n_classes)
        for k in range(12):
            own = y[k : k + 1]
            slope = differences(lambda at: likelihood.log_prob(own, at[None])[0], f[k])  # noqa: B023
            assert_close(likelihood.gradient(own, f[k : k + 1])[0], slope, "finite differences")
            bend = -differences(lambda at: likelihood.gradient(own, at[None])[0], f[k])  # noqa: B023
            found = likelihood.curvature(f[k : k + 1])[0]
            assert_close(found, bend, "finite differences")
            p = softmax(likelihood.contrasts @ f[k])
            dense = likelihood.contrasts.T @ (np.diag(p) - np.outer(p, p)) @ likelihood.contrasts
            assert_close(found, dense, "rounding")

    def test_start_is_the_best_constant(self, n_classes):
        likelihood, y, f = self.given(n_classes)
        weight = np.random.default_rng(1).uniform(0.2, 2.0, 12)
        start = likelihood.fit_intercept_only(y, weight)
        pull = weight @ likelihood.gradient(y, np.tile(start, (12, 1)))
        np.testing.assert_allclose(pull, 0.0, atol=1e-12)
        assert start.shape == f[0].shape

    def test_its_name_finds_it(self, n_classes):
        found = find_likelihood("softmax", n_classes)
        assert found == Softmax(n_classes)
        assert found.n_outputs == n_classes - 1


def test_two_classes_are_the_log_odds():
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 2, 20).astype(float), rng.standard_normal((20, 1))
    likelihood = Softmax(2)
    odds = f @ (likelihood.contrasts[1] - likelihood.contrasts[0])
    assert_close(likelihood.log_prob(y, f), LIKELIHOODS["bernoulli"].log_prob(y, odds), "rounding")


# the sums


def test_places_of_outputs():
    # Two terms of widths 2 and 1, and three outputs: term by term, output by output, intercepts last.
    expected = [[0, 1, 6, 9], [2, 3, 7, 10], [4, 5, 8, 11]]
    np.testing.assert_array_equal(statistics.output_places([2, 1], 3), expected)
    np.testing.assert_array_equal(statistics.output_places([2, 1], 1), [[0, 1, 2, 3]])
    np.testing.assert_array_equal(statistics.output_places([], 2), [[0], [1]])


def test_a_function_for_each_output():
    rng = np.random.default_rng(0)
    table, coordinates = rng.standard_normal((5, 3)), rng.standard_normal(6)
    found = statistics.evaluate(table, coordinates, 2)
    expected = np.column_stack([table @ coordinates[:3], table @ coordinates[3:]])
    assert_close(found, expected, "rounding")
    assert_close(statistics.evaluate(table, coordinates[:3], 1), expected[:, 0], "rounding")


def rows_example(n=40, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    fraction = rng.uniform(size=n).astype(np.float32)
    positions = (
        Position(rng.integers(0, 4, n).astype(np.int16), ((1, fraction),)),
        Position(rng.integers(0, 4, n).astype(np.int16)),
    )
    y, weight = rng.integers(0, n_classes, n).astype(float), rng.uniform(0.2, 2.0, n)
    rows = Rows(positions, (5, 4), y, weight)
    values = [rng.standard_normal((size, n_classes - 1)) for size in rows.sizes]
    tables = [rng.standard_normal((5, 3)), rng.standard_normal((4, 2))]
    return rows, values, tables, rng.standard_normal(n_classes - 1)


@pytest.mark.parametrize("chunk", [7, 1000])
class TestSums:
    @pytest.fixture(autouse=True)
    def _chunks(self, chunk, monkeypatch):
        monkeypatch.setattr(statistics, "CHUNK_ROWS", chunk)
        monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", chunk)

    def test_normal_equations_are_a_loop_over_rows(self):
        rows, values, tables, intercept = rows_example()
        likelihood = Softmax(4)
        f = statistics.predict(rows, values, intercept)
        weights = [
            interpolation_matrix(p, s) for p, s in zip(rows.positions, rows.sizes, strict=True)
        ]
        gram, target, value, curvature = np.zeros((18, 18)), np.zeros(18), 0.0, np.zeros((40, 3, 3))
        for i in range(40):
            by_hand = intercept + sum(w[i] @ v for w, v in zip(weights, values, strict=True))
            np.testing.assert_allclose(f[i], by_hand)
            first, second = (w[i] @ t for w, t in zip(weights, tables, strict=True))
            design = np.zeros((3, 18))
            for k in range(3):
                design[k, 3 * k : 3 * k + 3] = first
                design[k, 9 + 2 * k : 9 + 2 * k + 2] = second
                design[k, 15 + k] = 1.0
            y, w = rows.y[i : i + 1], rows.weight[i]
            curvature[i] = w * likelihood.curvature(f[i : i + 1])[0]
            pull = w * likelihood.gradient(y, f[i : i + 1])[0] + curvature[i] @ f[i]
            gram += design.T @ curvature[i] @ design
            target += design.T @ pull
            value += w * likelihood.log_prob(y, f[i : i + 1])[0]
            value += -pull @ f[i] + 0.5 * f[i] @ curvature[i] @ f[i]
        made = in_memory.row_quadratic(rows, likelihood, values, intercept)
        found = made.normal_equations(tables)
        assert_close(found[0], gram, "single precision")
        assert_close(found[0], found[0].T, "rounding")
        assert_close(found[1], target, "single precision")
        assert made.constant == pytest.approx(value, rel=1e-6)
        traces = np.trace(curvature, axis1=1, axis2=2)
        for k, sums in enumerate(made.entry_curvature()):
            assert_close(sums, weights[k].T @ traces, "single precision")

    def test_keeping_terms(self):
        rows, values, tables, intercept = rows_example()
        made = in_memory.row_quadratic(rows, Softmax(4), values, intercept)
        gram, target = made.normal_equations(tables)
        kept = [*range(9, 15), 15, 16, 17]
        found = made.keep_terms([1]).normal_equations(tables[1:])
        assert_close(found[0], gram[np.ix_(kept, kept)], "rounding")
        assert_close(found[1], target[kept], "rounding")

    def test_slopes_and_what_bends(self):
        rows, values, _, intercept = rows_example()
        f = statistics.predict(rows, values, intercept)
        slope, curvature = Around(Softmax(4), values, intercept).derivatives(rows)
        for i in range(40):
            own = Softmax(4).curvature(f[i : i + 1])[0] * rows.weight[i]
            assert_close(curvature[i], own, "rounding")
            expected = Softmax(4).gradient(rows.y[i : i + 1], f[i : i + 1])[0] * rows.weight[i]
            assert_close(slope[i], expected, "rounding")
            assert_close(statistics.curved(curvature, f)[i], own @ f[i], "rounding")
            assert_close(statistics.own_curvature(curvature)[i], np.diag(own), "rounding")


# fits


def curve_data(n=400, n_classes=3, seed=0):
    """Two columns that matter and one that does not; the truth of every class, up to a constant."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-2.0, 2.0, (n, 3))
    shift = 2.0 * np.arange(n_classes)
    f = 1.5 * np.sin(1.5 * columns[:, :1] + shift) + columns[:, 1:2] * np.cos(shift)
    y = np.array([rng.choice(n_classes, p=softmax(row)) for row in f]).astype(float)
    return columns, y, f


def fit(columns, y, options=QUICK, weight=None, likelihood="softmax", n_levels=()):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, 0, n_levels)


def derivatives(y, weight, n_classes):
    """Of the rows' log-likelihood, for the dense reference."""
    contrasts = Softmax(n_classes).contrasts

    def of(f):
        value, slope, curvature = 0.0, np.zeros_like(f), np.zeros((*f.shape, f.shape[1]))
        for i, row in enumerate(f):
            p = softmax(contrasts @ row)
            k = int(y[i])
            value += weight[i] * np.log(p[k])
            slope[i] = weight[i] * contrasts.T @ (np.eye(n_classes)[k] - p)
            bend = np.diag(p) - np.outer(p, p)
            curvature[i] = weight[i] * contrasts.T @ bend @ contrasts
        return value, slope, curvature

    return of


NEW_ROWS = np.random.default_rng(7).uniform(-1.9, 1.9, (8, 3))


@pytest.mark.usefixtures("lossless")
@pytest.mark.usefixtures("given_hyperparameters")
class TestAgainstDenseNewton:
    @pytest.fixture(params=["joint", "block"])
    def fitted_and_dense(self, request, lossless):
        columns, y, _ = curve_data(n=150)
        weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
        options = replace(QUICK, posterior=request.param, hidden_sizes=(5,), tol=1e-5)
        model = fit(columns, y, options, weight)
        phi, precision, blocks = dense_features(model, columns, options)
        blocks = None if request.param == "joint" else blocks
        dense = DenseLaplace(phi, precision, derivatives(y, weight, 3), 2, blocks)
        return model, dense, options

    def test_evidence(self, fitted_and_dense):
        model, dense, _ = fitted_and_dense
        # The fit ends where a step changes little, not where it changes nothing.
        assert model.log_evidence == pytest.approx(dense.log_evidence, abs=1e-3)

    def test_predictions_and_their_covariance(self, fitted_and_dense):
        model, dense, options = fitted_and_dense
        mean, covariance = dense.moments(dense_features(model, NEW_ROWS, options)[0])
        contrasts = Softmax(3).contrasts
        found = scoring.link_moments(model, NEW_ROWS)
        np.testing.assert_allclose(found[0], mean @ contrasts.T, atol=1e-3)
        expected = np.array([contrasts @ own @ contrasts.T for own in covariance])
        np.testing.assert_allclose(found[1], expected, atol=1e-3 * np.abs(expected).max())
        assert_close(scoring.link_mean(model, NEW_ROWS), found[0], "rounding")

    def test_terms(self, fitted_and_dense):
        model, dense, options = fitted_and_dense
        phi, _, blocks = dense_features(model, NEW_ROWS, options)
        width, contrasts = phi.shape[1] + 1, Softmax(3).contrasts
        found_means = scoring.term_means(model, NEW_ROWS)
        found = scoring.term_variances(model, NEW_ROWS)
        active = [k for k, term in enumerate(model.terms) if term.active]
        for k, block in zip(active, blocks, strict=True):
            rows = [
                np.kron(
                    np.eye(2), np.append(np.where(np.arange(width - 1) < block.start, 0, row), 0)
                )
                for row in phi
            ]
            own = np.zeros(width, dtype=bool)
            own[block] = True
            for i, row in enumerate(rows):
                of_class = contrasts @ (row * np.tile(own, 2))
                expected = np.diag(of_class @ dense.covariance @ of_class.T)
                np.testing.assert_allclose(found[i, k], expected, rtol=2e-3)
                np.testing.assert_allclose(found_means[i, k], of_class @ dense.mean, atol=2e-3)

    def test_draws(self, fitted_and_dense):
        model, _, _ = fitted_and_dense
        draws = scoring.sample_links(model, NEW_ROWS[:3], 20_000, np.random.default_rng(0))
        mean, covariance = scoring.link_moments(model, NEW_ROWS[:3])
        np.testing.assert_allclose(draws.sum(axis=2), 0.0, atol=1e-9)
        for i in range(3):
            size = np.sqrt(np.diag(covariance[i]))
            # Four standard errors.
            found = np.cov(draws[:, i].T) / np.outer(size, size)
            expected = covariance[i] / np.outer(size, size)
            np.testing.assert_allclose(found, expected, atol=4 * 1.5 / np.sqrt(20_000))
            error = (draws[:, i].mean(axis=0) - mean[i]) / size
            np.testing.assert_allclose(error, 0.0, atol=4 / np.sqrt(20_000))


def test_slopes_of_the_evidence_with_several_outputs(lossless):
    columns, y, _ = curve_data(n=150)
    made = in_memory.prepared(columns, y, np.ones(len(y)), Softmax(3), QUICK)
    model = fit(columns, y)
    _, stage = in_memory.resume(model, columns, y, np.ones(len(y)), QUICK)
    linear = Regression.of(stage.problem, stage.state)
    at = np.random.default_rng(0).uniform(-0.5, 0.5, linear.model.prior.n_groups)
    for joint in (True, False):

        def objective(log_rho):
            return evidence.solve(linear.model, evidence.Hyper(log_rho, 1.0), joint).objective  # noqa: B023

        found = evidence.gradient(evidence.solve(linear.model, evidence.Hyper(at, 1.0), joint))
        assert_close(found, differences(objective, at, step=1e-4), "finite differences")
    assert linear.model.intercepts == slice(len(linear.model.target) - 2, len(linear.model.target))
    assert made.units.likelihood == Softmax(3)


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "block"])
def test_evidence_of_one_linearisation_is_the_dense_formula(joint, lossless):
    """Coordinates of two outputs with the same precisions, and two intercepts that are not counted."""
    columns, y, _ = curve_data(n=60)
    model = fit(columns, y)
    options = replace(QUICK, posterior="joint" if joint else "block")
    _, stage = in_memory.resume(model, columns, y, np.ones(len(y)), options)
    linear = Regression.of(stage.problem, stage.state)
    found = linear.solve()
    gram, free = linear.model.gram, linear.model.intercepts
    terms = slice(0, free.start)
    precision = gram + np.diag(np.append(np.ones(free.start), np.full(2, 1e-6)))
    mean = np.linalg.solve(precision, linear.model.target)
    assert_close(found.mean, mean, "conditioning")
    value = linear.model.constant + mean @ (linear.model.target - 0.5 * gram @ mean)
    blocks = linear.model.prior.blocks
    log_det = np.linalg.slogdet(precision[terms, terms])[1]
    covariance = np.linalg.inv(precision)
    if not joint:
        parts = [precision[b, b] for b in blocks]
        log_det = sum(np.linalg.slogdet(part)[1] for part in parts)
        covariance = block_diagonal([np.linalg.inv(p) for p in [*parts, precision[free, free]]])
    expected = value - 0.5 * mean[terms] @ mean[terms] - 0.5 * log_det
    assert found.evidence == pytest.approx(expected, rel=1e-8)
    assert_close(found.covariance, covariance, "conditioning")


@pytest.fixture(scope="module")
def model():
    columns, y, _ = curve_data()
    return fit(columns, y)


class TestFit:
    def test_shapes_and_sums_over_classes(self, model):
        assert model.intercept.shape == (3,)
        assert model.noise_variance == 0.0
        assert model.n_outputs == 2
        mean, covariance = scoring.link_moments(model, NEW_ROWS)
        np.testing.assert_allclose(mean.sum(axis=1), 0.0, atol=1e-12)
        np.testing.assert_allclose(covariance.sum(axis=2), 0.0, atol=1e-12)
        total = scoring.term_means(model, NEW_ROWS).sum(axis=1) + model.intercept
        assert_close(total, mean, "rounding")

    def test_a_column_of_noise_goes_for_all_classes(self, model):
        assert [term.active for term in model.terms] == [True, True, False]

    def test_bands_hold_the_truth(self, model):
        columns, _, truth = curve_data(n=1000, seed=1)
        mean, covariance = scoring.link_moments(model, columns)
        for one, other in ((0, 1), (0, 2), (1, 2)):
            contrast = np.zeros(3)
            contrast[[one, other]] = 1.0, -1.0
            deviation = np.sqrt(np.einsum("i,nij,j->n", contrast, covariance, contrast))
            error = (mean - truth) @ contrast
            # Errors of neighbours go together: one fit is a few independent ones.
            assert 0.8 < np.mean(np.abs(error) < 2.0 * deviation) <= 1.0
            assert np.sqrt(np.mean(error**2)) < 0.3 * (truth @ contrast).std()
            assert deviation.mean() < 0.3 * (truth @ contrast).std()

    @pytest.mark.usefixtures("lossless")
    def test_the_order_of_classes_does_not_matter(self):
        columns, y, _ = curve_data(n=200)
        order = np.array([2, 0, 1])
        before, after = fit(columns, y), fit(columns, order[y.astype(int)].astype(float))
        # A fit's last pass is one of several near its end.
        assert after.log_evidence == pytest.approx(before.log_evidence, abs=1e-5)
        old, new = (scoring.link_moments(m, NEW_ROWS) for m in (before, after))
        np.testing.assert_allclose(new[0][:, order], old[0], atol=1e-6)
        np.testing.assert_allclose(new[1][:, order][:, :, order], old[1], atol=1e-6)
        np.testing.assert_allclose(after.intercept[order], before.intercept, atol=1e-6)
        for one, other in zip(before.terms, after.terms, strict=True):
            assert one.importance == pytest.approx(other.importance, rel=1e-5)

    @pytest.mark.usefixtures("lossless")
    def test_a_weight_is_a_repetition(self):
        columns, y, _ = curve_data(n=200)
        often = np.random.default_rng(1).integers(1, 3, len(y))
        weighted = fit(columns, y, weight=often.astype(float))
        repeated = fit(np.repeat(columns, often, axis=0), np.repeat(y, often))
        assert repeated.log_evidence == pytest.approx(weighted.log_evidence, abs=1e-4)
        old, new = (scoring.link_moments(m, NEW_ROWS) for m in (weighted, repeated))
        np.testing.assert_allclose(new[0], old[0], atol=1e-4)

    def test_chunks_of_rows(self, model, monkeypatch):
        whole = scoring.link_moments(model, NEW_ROWS), scoring.term_variances(model, NEW_ROWS)
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", 12)
        parts = scoring.link_moments(model, NEW_ROWS), scoring.term_variances(model, NEW_ROWS)
        np.testing.assert_allclose(parts[0][0], whole[0][0])
        np.testing.assert_allclose(parts[0][1], whole[0][1])
        np.testing.assert_allclose(parts[1], whole[1])

    def test_entries_are_what_rows_on_them_get(self, model):
        knots = model.terms[0].entries.values
        rows = np.column_stack([knots, np.zeros((len(knots), 2))])
        mean, variance = scoring.entry_moments(model, 0)
        # Rows stand between knots by fractions of single precision.
        assert_close(scoring.term_means(model, rows)[:, 0], mean, "single precision")
        assert_close(scoring.term_variances(model, rows)[:, 0], variance, "single precision")

    def test_standing_there_again(self, model):
        columns, y, _ = curve_data()
        weight = np.ones(len(y))
        _, stage = in_memory.resume(model, columns, y, weight, QUICK)
        assert stage.problem.likelihood == Softmax(3)
        rows = statistics.predict(stage.problem.rows, stage.state.values, stage.state.intercept)
        links = rows @ Softmax(3).contrasts.T
        np.testing.assert_allclose(links, scoring.link_mean(model, columns), atol=0.02)
        again = in_memory.fit_on(model, columns, y, weight, QUICK, 0)
        # One more pass of a fit that had converged to a twentieth of a nat.
        assert again.log_evidence == pytest.approx(model.log_evidence, abs=0.05)

    def test_classes_far_apart(self):
        rng = np.random.default_rng(0)
        x = np.concatenate([rng.normal(k, 0.05, 40) for k in (-3.0, 0.0, 3.0)])
        model = fit(x[:, None], np.repeat(np.arange(3.0), 40))
        mean, covariance = scoring.link_moments(model, np.array([[-3.0], [0.0], [3.0]]))
        np.testing.assert_array_equal(mean.argmax(axis=1), [0, 1, 2])
        assert np.isfinite(covariance).all()

    def test_settling_climbs_to_the_mode(self):
        columns, y, _ = curve_data(n=200)
        made = in_memory.prepared(columns, y, np.ones(len(y)), Softmax(3), QUICK)
        problem = Problem.of(made.terms, made.rows, Softmax(3))
        _, stage = in_memory.resume(fit(columns, y), columns, y, np.ones(len(y)), QUICK)
        state = stage.state
        for _ in range(4):
            state = refit_posterior(stage.problem, state)
        again = refit_posterior(stage.problem, state)
        for one, other in zip(state.values, again.values, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
        assert problem.exact is None


# categories, missing values, levels and pairs


class TestOtherTerms:
    def test_categories(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 5, 900)
        effect = 0.8 * rng.standard_normal((5, 3))
        y = np.array([rng.choice(3, p=softmax(effect[k])) for k in codes]).astype(float)
        model = fit(codes[:, None].astype(float), y, n_levels=(5,))
        mean, variance = scoring.entry_moments(model, 0)
        truth = effect - effect.mean(axis=1, keepdims=True)
        truth = truth - np.bincount(codes, minlength=5) / 900 @ truth
        assert (np.abs(mean[:5] - truth) < 3.5 * np.sqrt(variance[:5])).all()
        assert np.corrcoef(mean[:5].ravel(), truth.ravel())[0, 1] > 0.95
        # No row has the last: all classes are alike in what is not known of it.
        np.testing.assert_allclose(variance[-1], variance[-1, 0], rtol=0.1)
        assert (variance[-1] > 3.0 * variance[:5].max()).all()

    def test_missing_values_have_an_effect_in_every_class(self):
        columns, y, _ = curve_data(n=600)
        gone = np.random.default_rng(0).uniform(size=600) < 0.3
        columns[gone, 2] = np.nan
        y = np.where(gone & (np.arange(600) % 3 > 0), 1.0, y)
        model = fit(columns, y)
        mean, _ = scoring.entry_moments(model, 2)
        assert mean.shape[1] == 3
        assert mean[-1].argmax() == 1
        assert mean[-1, 1] > 0.4

    def test_a_value_missing_that_never_was(self, model):
        rows = np.array([[np.nan, 0.3, 0.0]])
        mean, variance = scoring.link_moments(model, rows)
        total = scoring.term_means(model, rows).sum(axis=1) + model.intercept
        assert_close(mean, total, "rounding")
        entry_mean, entry_variance = scoring.entry_moments(model, 0)
        unknown = model.terms[0].data_mass @ (np.square(entry_mean) + entry_variance)
        assert_close(scoring.term_variances(model, rows)[0, 0], unknown, "rounding")
        known = np.diag(variance[0]) - unknown
        assert (known > 0.0).all()

    def test_what_is_not_known_sums_to_zero_over_classes_too(self, model):
        rows = np.array([[np.nan, 0.3, 0.0]])
        _, covariance = scoring.link_moments(model, rows)
        np.testing.assert_allclose(covariance.sum(axis=2), 0.0, atol=1e-9)
        draws = scoring.sample_links(model, rows, 10, np.random.default_rng(0))
        # The root of an eigenvalue that is rounding.
        np.testing.assert_allclose(draws.sum(axis=2), 0.0, atol=1e-6)

    def test_level_gains_of_several_outputs_are_those_of_all_levels(self):
        rng = np.random.default_rng(0)
        weight, score = rng.uniform(1.0, 9.0, (6, 2)), 5.0 * rng.standard_normal((6, 2))
        found = first_stage.level_gain(weight, score)
        flat = first_stage.level_gain(weight.ravel(), score.ravel())
        assert found.evidence == pytest.approx(flat.evidence)
        assert found.variance == pytest.approx(flat.variance)
        expected = found.variance * score / (1.0 + found.variance * weight)
        assert_close(found.mean, expected, "rounding")

    def test_jagged_columns_have_levels(self):
        rng = np.random.default_rng(0)
        column = rng.integers(0, 12, 900).astype(float)
        effect = 2.0 * rng.standard_normal((12, 3))
        y = np.array([rng.choice(3, p=softmax(effect[int(k)])) for k in column]).astype(float)
        columns = np.column_stack([column, rng.uniform(size=900)])
        model = fit(columns, y, replace(QUICK, level_effects=True, init_scales=(1.0,)))
        assert ("level", (0,)) in [(t.kind, t.features) for t in model.terms if t.active]
        assert not [t for t in model.terms if t.features == (1,) and t.active]
        rows = np.column_stack([np.arange(12.0), np.full(12, 0.5)])
        truth = effect - effect.mean(axis=1, keepdims=True)
        found = scoring.link_mean(model, rows)
        assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.95

    def test_levels_are_added_on_what_the_ones_before_left(self):
        # The second column is the first with other codes, so that one of them is enough.
        rng = np.random.default_rng(0)
        column = rng.integers(0, 12, 900)
        effect = rng.standard_normal((12, 3))
        y = np.array([rng.choice(3, p=softmax(effect[k])) for k in column]).astype(float)
        columns = np.column_stack([column, rng.permutation(12)[column]]).astype(float)
        made = in_memory.prepared(columns, y, np.ones(900), Softmax(3), QUICK)
        problem = Problem.of((), made.rows.keep_terms([]), Softmax(3))
        state = State((), Softmax(3).fit_intercept_only(y, np.ones(900)), 1.0)
        wider, after = first_stage.add_levels(problem, state, made.levels)
        assert [term.kind for term in wider.terms] == ["level"]
        assert after.values[0].shape == (13, 2)

    def test_pair_scores_are_summed_over_outputs(self):
        rng = np.random.default_rng(0)
        columns, weight = rng.uniform(size=(200, 3)), rng.uniform(0.5, 2.0, 200)
        slope, curvature = 3.0 * rng.standard_normal((200, 2)), rng.uniform(0.2, 1.0, (200, 2))
        pairs = [(0, 1), (0, 2), (1, 2)]
        found = in_memory.evidence_scores(columns, weight, slope, curvature, pairs)
        alone = [
            in_memory.evidence_scores(columns, weight, slope[:, k], curvature[:, k], pairs)
            for k in range(2)
        ]
        assert_close(found, alone[0] + alone[1], "rounding")
        assert found.max() > 0.0

    @pytest.mark.parametrize("kind", ["evidence", "mutual_information", "evidence_gain_full"])
    def test_every_score_knows_several_outputs(self, kind, model):
        columns, y, _ = curve_data()
        _, stage = in_memory.resume(model, columns, y, np.ones(len(y)), QUICK)
        given = stage.problem, stage.state, columns, [(0, 1)]
        (found,) = in_memory.score(kind, *given)
        assert np.isfinite(found)
        assert found >= 0.0

    def test_a_pair_is_found_and_kept(self):
        rng = np.random.default_rng(0)
        columns = rng.uniform(-1.0, 1.0, (500, 3))
        product = 6.0 * columns[:, 0] * columns[:, 1]
        f = np.column_stack([product, -product, np.zeros(500)])
        y = np.array([rng.choice(3, p=softmax(row)) for row in f]).astype(float)
        options = replace(QUICK, pair_hidden_sizes=(12,), interactions=1)
        model = fit(columns, y, options)
        assert [t.features for t in model.terms if t.active and t.kind == "pair"] == [(0, 1)]
        assert model.scored[0].features == (0, 1)
        corner = np.array([[0.8, 0.8, 0.0], [0.8, -0.8, 0.0]])
        mean = scoring.link_mean(model, corner)
        assert mean[0].argmax() == 0
        assert mean[1].argmax() == 1
        first = fit(columns, y)
        later = in_memory.fit_on(first, columns, y, np.ones(500), options, 0)
        assert later.log_evidence == pytest.approx(model.log_evidence, abs=1.0)


def test_classes_of_which_sampled_rows_lack_one_are_not_called_separated():
    likelihood, y = Softmax(3), np.array([0.0, 0.0, 1.0, 1.0])
    f = 5.0 * likelihood.contrasts[y.astype(int)]
    assert not _separated(likelihood, y, f)
    assert _separated(likelihood, np.append(y, 2.0), np.vstack([f, 5.0 * likelihood.contrasts[2]]))
