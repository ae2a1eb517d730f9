"""OAK-GP: its kernel against integrals and sums over pairs, its inference against dense formulas."""

from itertools import combinations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="OAK-GP is written in torch")

from benchmarks.peers import all_peers  # noqa: E402
from benchmarks.peers import orthogonal_kernel as kernel  # noqa: E402
from benchmarks.peers import orthogonal_process as process  # noqa: E402
from benchmarks.peers.normalising import normalising  # noqa: E402
from benchmarks.peers.oak import OrthogonalAdditiveGP  # noqa: E402

COLUMNS = 4


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=float))


def parameters(order, noise=0.1):
    return kernel.Parameters(
        tensor([0.4, 0.9, 1.7, 0.6]).log(),
        tensor([0.3, 1.3, 0.7][: order + 1]).log(),
        tensor(noise).log(),
    )


@pytest.fixture
def problem():
    """Thirty rows: three normal columns, a fourth with three values; each density as it should be."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, COLUMNS))
    X[:, 3] = rng.integers(0, 3, 30)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * X[:, 3] + 0.1 * rng.standard_normal(30)
    values, counts = np.unique(X[:, 3], return_counts=True)
    points = kernel.Points(tensor(values), tensor(counts / 30))
    return tensor(X), tensor((y - y.mean()) / y.std()), (None, None, None, points)


def slow_gram(X, Z, parameters, measures):
    """By the definition: each column's kernel, then products over all pairs."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    singles = []
    for d, measure in enumerate(measures):
        points, mass = nodes, weights / weights.sum()
        if measure is not None:
            points, mass = measure.values.numpy(), measure.weights.numpy()
        scale = float(parameters.lengthscales[d])

        def plain(a, b, scale=scale):
            return np.exp(-(np.subtract.outer(a, b) ** 2) / (2 * scale**2))

        x, z = X[:, d].numpy(), Z[:, d].numpy()
        mean_x, mean_z = plain(x, points) @ mass, plain(z, points) @ mass
        singles.append(
            plain(x, z) - np.outer(mean_x, mean_z) / (mass @ plain(points, points) @ mass)
        )
    variances = parameters.variances.numpy()
    total = variances[0] + variances[1] * sum(singles)
    if len(variances) > 2:
        total = total + variances[2] * sum(a * b for a, b in combinations(singles, 2))
    return total


def test_functions_of_a_column_integrate_to_zero(problem):
    X, _, measures = problem
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    for d, measure in enumerate(measures):
        points, mass = tensor(nodes), tensor(weights / weights.sum())
        if measure is not None:
            points, mass = measure.values, measure.weights
        single = kernel.component(X[:, d], points, d, parameters(1), measures)
        assert single.abs().max() > 0.1
        np.testing.assert_allclose(single @ mass, 0, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
def test_kernel_is_the_sum_over_columns_and_pairs(problem, order):
    X, _, measures = problem
    rows = kernel.Rows.of(X)
    assert [repeat is None for repeat in rows.repeats] == [True, True, True, False]
    fast = kernel.gram(rows, X[:7], parameters(order), measures)
    np.testing.assert_allclose(fast, slow_gram(X, X[:7], parameters(order), measures), atol=1e-10)
    square = kernel.gram(rows, X, parameters(order), measures)
    np.testing.assert_allclose(
        kernel.diagonal(X, parameters(order), measures), square.diagonal(), atol=1e-12
    )


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_by_hand_is_that_of_differences(problem, order, monkeypatch):
    X, _, measures = problem
    monkeypatch.setattr(kernel, "BLOCK", 40)  # several blocks of rows
    rows, start = kernel.Rows.of(X), parameters(order)
    weights = tensor(np.random.default_rng(1).standard_normal((30, 6)))

    def weighted(log_lengthscales, log_variances):
        moved = kernel.Parameters(log_lengthscales, log_variances, start.log_noise)
        return (weights * kernel.gram(rows, X[:6], moved, measures)).sum()

    leaves = [start.log_lengthscales, start.log_variances]
    assert torch.autograd.gradcheck(weighted, [leaf.requires_grad_() for leaf in leaves])


@pytest.mark.parametrize("order", [1, 2])
def test_exact_regression_is_the_textbook(problem, order):
    X, y, measures = problem
    new = X[:5] + 0.3
    rows = kernel.Rows.of(X)
    dense = slow_gram(X, X, parameters(order), measures) + 0.1 * np.eye(30)
    target = y.numpy()
    evidence = (
        -(target @ np.linalg.solve(dense, target) + np.linalg.slogdet(2 * np.pi * dense)[1]) / 2
    )
    found = process.ExactRegression(rows, y, measures).evidence(parameters(order))
    assert float(found) == pytest.approx(float(evidence), rel=1e-9)
    posterior = process.ExactRegression(rows, y, measures).posterior(parameters(order))
    mean, variance = posterior.predict(new)
    cross = slow_gram(new, X, parameters(order), measures)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(dense, target), atol=1e-9)
    prior = slow_gram(new, new, parameters(order), measures)
    expected = np.diag(prior - cross @ np.linalg.solve(dense, cross.T))
    np.testing.assert_allclose(variance, expected, atol=1e-9)


def test_evidence_has_the_gradient_of_differences(problem):
    X, y, measures = problem
    rows, start = kernel.Rows.of(X), parameters(2)

    def exact(*leaves):
        return process.ExactRegression(rows, y, measures).evidence(kernel.Parameters(*leaves))

    def sparse(*leaves):
        return process.SparseRegression(rows, y, X[:8], measures).evidence(
            kernel.Parameters(*leaves)
        )

    leaves = [start.log_lengthscales, start.log_variances, start.log_noise]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(exact, leaves)
    assert torch.autograd.gradcheck(sparse, leaves, atol=1e-4)


def test_all_rows_as_inducing_points_are_exact(problem):
    X, y, measures = problem
    rows = kernel.Rows.of(X)
    exact = process.ExactRegression(rows, y, measures).evidence(parameters(2))
    all_rows = process.SparseRegression(rows, y, X.clone(), measures).evidence(parameters(2))
    few_rows = process.SparseRegression(rows, y, X[:8], measures).evidence(parameters(2))
    assert float(all_rows) == pytest.approx(float(exact), abs=1e-4)
    assert float(few_rows) < float(exact) - 0.1
    posterior = process.ExactRegression(rows, y, measures).posterior(parameters(2))
    sparse = process.SparseRegression(rows, y, X.clone(), measures).posterior(parameters(2))
    for one, other in zip(posterior.predict(X + 0.2), sparse.predict(X + 0.2), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_sparse_evidence_is_the_bound_of_titsias(problem):
    X, y, measures = problem
    few, start = X[:8] + 0.1, parameters(2)
    cross = slow_gram(X, few, start, measures)
    seen = cross @ np.linalg.solve(slow_gram(few, few, start, measures), cross.T)
    dense, target = seen + 0.1 * np.eye(30), y.numpy()
    expected = -(target @ np.linalg.solve(dense, target) + np.linalg.slogdet(2 * np.pi * dense)[1])
    expected -= np.trace(slow_gram(X, X, start, measures) - seen) / 0.1
    found = process.SparseRegression(kernel.Rows.of(X), y, few, measures).evidence(start)
    assert float(found) == pytest.approx(expected / 2, rel=1e-6)


@pytest.mark.parametrize("column", [0, 3])
def test_effect_is_the_centred_part_of_the_posterior(problem, column):
    """All rows at once: centring is a matrix."""
    X, y, measures = problem
    start = parameters(2)
    posterior = process.ExactRegression(kernel.Rows.of(X), y, measures).posterior(start)
    values = X[:, column]
    part = kernel.component(values, values, column, start, measures).numpy()
    dense = slow_gram(X, X, start, measures) + 0.1 * np.eye(30)
    centring = np.eye(30) - 1 / 30
    mean, variance = posterior.effect(values, column, values)
    np.testing.assert_allclose(mean, centring @ part @ np.linalg.solve(dense, y.numpy()), atol=1e-9)
    expected = centring @ (part - part @ np.linalg.solve(dense, part)) @ centring
    np.testing.assert_allclose(variance, np.diag(expected), atol=1e-9)


def test_classification_bound_is_below_the_evidence_and_best_at_its_sites(problem):
    """The evidence by importance sampling from the prior; the bound's slope by differences."""
    X, y, measures = problem
    labels, rows, start = (y > 0).double(), kernel.Rows.of(X), parameters(1)
    learner = process.Classification(rows, labels, rows.values, measures)
    bound = float(learner.evidence(start).detach())
    rng = np.random.default_rng(0)
    dense = slow_gram(X, X, start, measures) + 1e-9 * np.eye(30)
    f = rng.standard_normal((100_000, 30)) @ np.linalg.cholesky(dense).T
    log_prob = (labels.numpy() * f - np.logaddexp(0, f)).sum(1)
    truth = np.log(np.mean(np.exp(log_prob - log_prob.max()))) + log_prob.max()
    assert truth - 0.5 < bound < truth
    leaf = start.log_lengthscales.clone().requires_grad_()
    value = learner.evidence(kernel.Parameters(leaf, start.log_variances, start.log_noise))
    (slope,) = torch.autograd.grad(value, leaf)
    for d in range(COLUMNS):
        step = torch.zeros(COLUMNS, dtype=torch.float64)
        step[d] = 1e-3
        ends = [
            float(
                learner.evidence(
                    kernel.Parameters(
                        start.log_lengthscales + sign * step, start.log_variances, start.log_noise
                    )
                )
            )
            for sign in (1, -1)
        ]
        assert (ends[0] - ends[1]) / 2e-3 == pytest.approx(float(slope[d]), abs=5e-3)


def additive_problem(n, rng):
    X = np.column_stack(
        [
            rng.gamma(1.5, 2.0, n),
            rng.standard_normal(n),
            rng.integers(0, 2, n),
            np.full(n, 7.0),
            rng.standard_normal(n),
        ]
    )
    return X, 3 * np.log1p(X[:, 0]) + np.sin(2 * X[:, 1]) + X[:, 2]


def test_effects_add_up_to_the_mean_and_find_the_truth():
    rng = np.random.default_rng(1)
    X, f = additive_problem(300, rng)
    y = 5 + 10 * (f + 0.2 * rng.standard_normal(300))
    fitted = OrthogonalAdditiveGP().fit(X, y, "regression", 0, 1)
    parts = np.column_stack([fitted.effect(X, d)[0] for d in range(5)])
    np.testing.assert_allclose(parts.mean(0), 0, atol=1e-6)
    mean = fitted.predict(X).mean
    np.testing.assert_allclose(mean - mean.mean(), parts.sum(1), atol=1e-6)
    truth = 10 * np.log1p(X[:, 0]) * 3
    stds = np.column_stack([fitted.effect(X, d)[1] for d in range(5)])
    score = (parts[:, 0] - (truth - truth.mean())) / stds[:, 0]
    assert np.mean(np.abs(score) < 1.96) > 0.8
    assert not parts[:, 3].any()  # a constant column
    assert np.abs(parts[:, 4]).max() < 2 < np.abs(parts[:, 1]).max()


def test_std_is_the_noise_and_the_doubt():
    rng = np.random.default_rng(2)
    X, f = additive_problem(400, rng)
    y = f + 0.5 * rng.standard_normal(400)
    prediction = OrthogonalAdditiveGP().fit(X[:300], y[:300], "regression", 0, 1).predict(X[300:])
    score = (y[300:] - prediction.mean) / prediction.std
    assert 0.8 < score.std() < 1.25
    assert 0.4 < prediction.std.min() < prediction.std.max() < 1.5


def test_pairs_are_found_by_the_second_order_only():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(600)
    errors = {}
    for order in (1, 2):
        model = OrthogonalAdditiveGP(order=order, exact_below=100, n_inducing=60, max_iter=25)
        fitted = model.fit(X[:400], y[:400], "regression", 0, 1)
        errors[order] = np.std(fitted.predict(X[400:]).mean - y[400:])
        mean, _ = fitted.effect(X, 2)
        assert np.corrcoef(mean, X[:, 2])[0, 1] > 0.95
    assert errors[2] < 0.3 < 0.8 < errors[1]


def test_both_are_among_the_peers():
    assert {"oak", "oak2"} <= set(all_peers())


@pytest.mark.parametrize("exact_below", [1000, 100])
def test_probabilities_of_two_classes(exact_below):
    rng = np.random.default_rng(4)
    X, f = additive_problem(400, rng)
    truth = 1 / (1 + np.exp(-2 * (f - np.median(f))))
    y = (rng.random(400) < truth).astype(float)
    model = OrthogonalAdditiveGP(exact_below=exact_below, n_inducing=40)
    fitted = model.fit(X[:300], y[:300], "classification", 0, 1)
    found = fitted.predict(X[300:]).mean
    assert fitted.info["n_inducing"] == (300 if exact_below == 1000 else 40)
    assert np.all((found > 0) & (found < 1))
    assert np.mean(np.abs(found - truth[300:])) < 0.1
    mean, std = fitted.effect(X, 0)
    assert np.corrcoef(mean, np.log1p(X[:, 0]))[0, 1] > 0.9
    assert np.all(std > 0)


def test_seed_and_rows_of_the_first_search():
    rng = np.random.default_rng(5)
    X, f = additive_problem(500, rng)
    y = f + 0.5 * rng.standard_normal(500)
    model = OrthogonalAdditiveGP(
        exact_below=100, n_inducing=20, first_rows=200, max_iter=3, polish_iter=2
    )
    first, again, other = (model.fit(X, y, "regression", seed, 1) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.predict(X).mean, again.predict(X).mean)
    assert np.abs(first.predict(X).mean - other.predict(X).mean).max() > 1e-6
    assert first.info["first_rows"] == 200
    assert not first.info["converged"]
    assert first.info["n_iter"] == 3 + 2


def test_missing_cells_are_named():
    X = np.zeros((20, 3))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="in column 1; fill them"):
        OrthogonalAdditiveGP().fit(X, np.zeros(20), "regression", 0, 1)
    with pytest.raises(ValueError, match="Every column is constant"):
        OrthogonalAdditiveGP().fit(X[:3], np.zeros(3), "regression", 0, 1)
    with pytest.raises(ValueError, match="not counts"):
        OrthogonalAdditiveGP().fit(X, np.zeros(20), "counts", 0, 1)


def test_columns_become_normal():
    rng = np.random.default_rng(6)
    for column in (
        rng.gamma(1.0, 3.0, 2000),
        rng.random(2000) * 1e-5,
        1e6 + rng.standard_t(4, 2000),
    ):
        warp = normalising(column)
        found = warp(np.sort(column))
        assert np.all(np.diff(found) >= 0)
        normal = np.sort(rng.standard_normal(2000))
        assert np.abs(found - normal)[50:-50].max() < 0.35
        ends = warp(
            np.array([-9, -0.5, 0, np.ptp(column) / column.std()]) * column.std() + column.min()
        )
        assert ends[0] == ends[1] < ends[2]  # half a standard deviation beyond the data, no further
