"""The residual distribution."""

import numpy as np
import pytest
from scipy.special import ndtr

from lanam.core.model.mixtures import Mixture
from lanam.core.noise import residuals as noise

ONES = np.ones(2500)


def residuals(kind, n_rows=2500, seed=0):
    rng = np.random.default_rng(seed)
    drawn = {
        "gaussian": lambda: rng.normal(size=n_rows),
        "gumbel": lambda: (rng.gumbel(size=n_rows) - np.euler_gamma) / (np.pi / np.sqrt(6.0)),
        "student": lambda: rng.standard_t(4, size=n_rows) / np.sqrt(2.0),
        "uniform": lambda: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=n_rows),
        "two": lambda: rng.choice([-0.95, 0.95], n_rows) + 0.3 * rng.normal(size=n_rows),
    }
    return drawn[kind]()


@pytest.mark.parametrize("n_rows", [80, 500])
def test_gaussian_noise_stays_gaussian(n_rows):
    found = [
        noise.learn_shape(residuals("gaussian", n_rows, s), np.ones(n_rows)) for s in range(20)
    ]
    assert sum(shape is not None for shape in found) <= 1


@pytest.mark.parametrize("kind", ["gumbel", "student", "uniform", "two"])
def test_other_distributions_improve_the_density_of_new_residuals(kind):
    shape = noise.learn_shape(residuals(kind), ONES)
    new = residuals(kind, seed=1)
    rows = Mixture(np.zeros(2500), np.zeros(2500), ONES, shape)
    gaussian = -0.5 * (new**2 + np.log(2.0 * np.pi))
    assert rows.log_prob(new).mean() > gaussian.mean() + 0.03
    # calibrated at every decile
    for score in (-1.2816, -0.5244, 0.5244, 1.2816):
        share = (new < rows.at_score(score)).mean()
        assert share == pytest.approx(float(ndtr(score)), abs=0.04)


@pytest.mark.parametrize(
    ("kind", "skewed", "heavy"), [("gumbel", 1, 1), ("two", 0, -1), ("uniform", 0, -1)]
)
def test_skewness_and_tails(kind, skewed, heavy):
    shape = noise.learn_shape(residuals(kind), ONES)
    assert (shape.skewness > 0.5) == bool(skewed)
    assert np.sign(shape.excess_kurtosis) == heavy


def test_a_weight_is_a_repetition():
    own = residuals("gumbel", 400)
    twice = np.concatenate([own, own[:200]])
    weight = np.where(np.arange(400) < 200, 2.0, 1.0)
    first, second = noise._mixture(own, weight), noise._mixture(twice, np.ones(600))
    np.testing.assert_allclose(first.weights, second.weights)
    np.testing.assert_allclose(first.means, second.means)


def test_too_few_rows():
    few = noise.LEAST_ROWS - 1
    assert noise.learn_shape(residuals("two", few), np.ones(few)) is None
    assert noise.learn_shape(residuals("two", 4 * few), np.ones(4 * few)) is not None


def test_zeros_and_an_outlier():
    assert noise.learn_shape(np.zeros(200), np.ones(200)) is None
    own = np.append(residuals("gaussian", 199), 1e6)
    shape = noise.learn_shape(own, np.ones(200))
    assert shape is None or np.isfinite(shape.as_lists()["stds"]).all()


def test_without_cross_validated_gain_it_is_not_kept(monkeypatch):
    monkeypatch.setattr(noise, "_shape_gain", lambda *rows: noise.LEAST_GAIN)
    assert noise.learn_shape(residuals("two"), ONES) is None
