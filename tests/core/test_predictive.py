"""Predictive distributions against quadrature, draws and scipy's own."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit
from scipy.stats import norm

from lanam.core.predictive import gaussian_log_density, moderated_log_odds
from tests.oracles import assert_close


def test_gaussian_predictive_density():
    variance, y = np.linspace(0.1, 3.0, 7), np.array([1.0, -2.0, 0.0, 0.5, 3.0, -1.0, 2.0])
    mean = np.array([-30.0, -3.0, -0.2, 0.0, 0.7, 4.0, 30.0])
    expected = norm.logpdf(y, mean, np.sqrt(variance))
    assert_close(gaussian_log_density(y, mean, variance), expected, "rounding")


@pytest.mark.parametrize("mean", [-3.0, 0.0, 1.5])
@pytest.mark.parametrize("deviation", [0.1, 1.0, 4.0])
def test_the_probit_approximation_is_the_integral_to_two_per_cent(mean, deviation):
    expected, _ = integrate.quad(
        lambda f: expit(f) * norm.pdf(f, mean, deviation), mean - 40.0, mean + 40.0, points=[mean]
    )
    found = expit(moderated_log_odds(np.array([mean]), np.array([deviation**2])))
    # An approximation: MacKay's is known to be off by up to about 0.02.
    assert found[0] == pytest.approx(expected, abs=0.02)
