"""Beyond the data functions run out, flat or along their line, and bands grow as the prior says."""

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import beyond
from lanam.core.model import scoring

pd = pytest.importorskip("pandas", reason="tables of these tests are frames")

RANGES = np.array([0.0, 1e-7, 0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 50.0])


def _fit(function, n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 1))
    y = function(x[:, 0]) + 0.2 * rng.standard_normal(n)
    return LANAMRegressor(interactions=0, random_state=0).fit(x, y), x[:, 0], y


def _beyond(model, x, side):
    edge = x.max() if side > 0 else x.min()
    rows = (edge + side * np.ptp(x) * RANGES)[:, None]
    lower, upper = model.predict_interval(rows, 0.6826894921370859, kind="mean").T
    return model.predict(rows), 0.5 * (upper - lower)


@pytest.mark.parametrize("side", [-1, 1])
class TestOneColumn:
    @pytest.mark.parametrize("name", ["sine", "square"])
    def test_bent_functions_run_out_flat(self, side, name):
        functions = {"sine": lambda x: np.sin(4 * x), "square": lambda x: 2 * x**2}
        model, x, _ = _fit(functions[name])
        mean, std = _beyond(model, x, side)
        np.testing.assert_allclose(mean, mean[0], atol=1e-9)
        assert (np.diff(std) >= -1e-9).all()
        assert abs(std[1] / std[0] - 1.0) < 1e-3  # continuous at the edge
        assert std[-1] > 3.0 * std[0]

    def test_straight_functions_go_on_for_half_of_the_range(self, side):
        model, x, y = _fit(lambda x: 2.0 * x)
        mean, std = _beyond(model, x, side)
        line = mean[0] + side * 2.0 * np.ptp(x) * np.minimum(RANGES, 0.5)
        np.testing.assert_allclose(mean, line, atol=0.25)
        assert (np.diff(std) >= -1e-9).all()
        assert std[-1] > 3.0 * std[0]
        reach = 0.5 * np.ptp(y)
        assert (mean > y.min() - reach).all()
        assert (mean < y.max() + reach).all()


def test_the_band_grows_by_the_priors_increments():
    model, _, _ = _fit(lambda x: np.sin(4 * x))
    fitted = model._model
    term, knots = fitted.terms[0], fitted.terms[0].entries
    _, variance = scoring.entry_moments(fitted, 0)
    last = knots.inside.stop - 1
    grown = np.sqrt(variance[last + 1 :] - variance[last])
    np.testing.assert_allclose(grown, term.table[last + 1 :, -1], rtol=1e-6)
    assert (np.diff(grown) > 0.0).all()
    assert not term.table[: last + 1, -1].any()


def _classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 2))
    scores = np.column_stack([np.zeros(400), 3 * X[:, 0], 3 * np.cos(3 * X[:, 1])])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return LANAMClassifier(interactions=0, random_state=0).fit(X, y)


def test_several_classes():
    model = _classes()
    near, far = np.array([[0.0, 0.99]]), np.array([[0.0, 9.0]])
    np.testing.assert_allclose(
        model.predict_terms(far)[0, 1], model.predict_terms(near)[0, 1], atol=0.3
    )
    _, std = model.predict_terms(np.vstack([near, far]), return_std=True)
    assert (std[1, 1] > std[0, 1]).all()


def test_pairs_are_held_along_both_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (500, 2))
    y = 3 * X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(500)
    model = LANAMRegressor(interactions=[(0, 1)], random_state=0).fit(X, y)
    k = [term.kind for term in model.terms_].index("pair")
    high = X.max(axis=0)
    rows = np.array([[high[0], 0.5], [3.0, 0.5], [high[0], high[1]], [3.0, 3.0], [30.0, 30.0]])
    means, stds = (values[:, k] for values in model.predict_terms(rows, return_std=True))
    np.testing.assert_allclose(means[[1, 3, 4]], means[[0, 2, 2]], atol=1e-6)
    assert stds[1] > stds[0]
    assert stds[4] >= stds[3] > stds[2]


def test_rows_outside_the_data_are_marked():
    from lanam.plot import plot_local  # matplotlib is an extra

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 80, 300), "city": rng.choice(["a", "b"], 300)})
    y = np.sin(X["age"] / 10) + (X["city"] == "a") + 0.1 * rng.standard_normal(300)
    model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
    local = model.explain_local(pd.DataFrame({"age": [50.0, 95.0], "city": ["a", "b"]}))
    np.testing.assert_array_equal(local.outside, [[False, False], [True, False]])
    frame = local.to_frame()
    marked = frame.loc[frame["outside"], ["row", "term"]].to_numpy().tolist()
    assert marked == [[1, "age"], [1, "(prediction)"]]
    assert local.to_dict()["outside"] == local.outside.tolist()
    words = [plot_local(local, row).figure.get_supxlabel() for row in (0, 1)]
    assert "Outside the range of the training data: age" in words[1]
    assert "Outside" not in words[0]


@pytest.mark.parametrize("seed", [0, 2])
def test_a_pair_of_columns_nearly_on_a_line_stays_in_proportion_off_it(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    along, across = rng.uniform(-1.0, 1.0, (2, 300))
    x = np.column_stack([along, along + 0.2 * across])
    y = np.sin(8.0 * along) * np.sin(3.0 * across) + 0.1 * rng.standard_normal(300)
    places = np.linspace(-1.0, 1.0, 21)
    off = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    reach = 0.5 * np.ptp(y)

    def fitted():
        model = LANAMRegressor(interactions=[(0, 1)]).fit(x, y)
        prediction, std = model.predict(off, return_std=True)
        inside = (prediction > y.min() - reach) & (prediction < y.max() + reach)
        return model, inside.all(), std

    model, inside, std = fitted()
    monkeypatch.setattr(beyond, "_LARGEST", np.inf)
    free, free_inside, free_std = fitted()
    assert inside
    assert not free_inside
    assert std.max() < 4.0 * y.std() < free_std.max()
    # Nothing changes where data is.
    np.testing.assert_array_equal(model.predict(x), free.predict(x))
    seen = free._model.terms[-1].data_mass > 0.0
    before, after = (one._model.terms[-1].mean[seen] for one in (free, model))
    np.testing.assert_array_equal(after, before)


def test_excess_prior_variance_counts_as_noise():
    mean, table, variance = np.array([3.0, 3.0]), np.array([[1.0], [4.0]]), np.array([1.0, 16.0])
    held, scaled, lost = beyond._in_proportion(mean, table, variance, 2.0)
    np.testing.assert_allclose(held, [3.0, 0.75])
    np.testing.assert_allclose(np.square(np.hstack([scaled, lost])).sum(axis=1), [1.0, 4.0])
