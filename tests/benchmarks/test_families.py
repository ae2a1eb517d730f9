"""The benchmarks of claims and of simulated families: deviances, data and tables. No peer, no fit."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import claims, families
from lanam.metrics import tweedie_deviance


def policies(n_rows=80):
    rng = np.random.default_rng(0)
    number = rng.poisson(0.4, n_rows)
    return pd.DataFrame(
        {
            "Exposure": rng.uniform(0.1, 1.0, n_rows),
            "VehValue": rng.uniform(0.5, 4.0, n_rows),
            **{name: rng.choice(["a", "b"], n_rows) for name in claims.CATEGORIES},
            "ClaimNb": number,
            "ClaimAmount": 300.0 * number,
        }
    )


def test_problems():
    table = policies()
    frequency, severity, premium = claims.problems(table)
    assert list(frequency.X.columns) == list(claims.FEATURES)
    np.testing.assert_allclose(frequency.y * frequency.weight, table["ClaimNb"])
    np.testing.assert_allclose(severity.y, 300.0)
    assert severity.weight.sum() == table["ClaimNb"].sum()
    np.testing.assert_allclose(premium.y * premium.weight, table["ClaimAmount"])
    some = premium.rows(np.array([3, 1]))
    np.testing.assert_array_equal(some.weight, premium.weight[[3, 1]])


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_deviance_is_the_librarys(power):
    rng = np.random.default_rng(0)
    y, mean, weight = rng.uniform(0.5, 4.0, (3, 50))
    found = claims.deviance(y, mean, weight, power)
    assert found == pytest.approx(tweedie_deviance(y, mean, power, sample_weight=weight))


def test_the_table_of_claims():
    rows = [
        {"problem": "severity", "model": model, "fold": fold, "seconds": 1.0, "deviance": value}
        | {"coverage": np.nan if model == "glum" else 0.9, "train total": 1.0, "test total": 0.99}
        for model, values in (("lanam gamma", (1.0, 1.2)), ("glum", (1.1, 1.4)))
        for fold, value in enumerate(values)
    ]
    text = claims.report(pd.DataFrame(rows), "Here.")
    assert "| severity | lanam gamma | 1.1000 |  | 0.900 | 1.000 | 0.990 | 1.0 |" in text
    assert "| severity | glum | 1.2500 | +0.1500 (0.0500) |  |" in text


@pytest.mark.parametrize("name", families.KNOWN)
def test_simulated_responses_have_their_means(name):
    X, y = families.simulate(name, 4000, 0)
    f = 0.5 + families.functions(X).sum(axis=1)
    mean = {
        "gaussian": f,
        "student": f,
        "lognormal": np.exp(f + 0.125),
        "binomial": families.TRIALS / (1.0 + np.exp(-f)),
    }.get(name, np.exp(f))
    assert y.mean() == pytest.approx(mean.mean(), rel=0.08)


def test_the_table_of_families():
    rows = [
        {
            "family": "gamma",
            "rows": 300,
            "seed": k,
            "coverage": 0.9 + 0.02 * k,
            "shape": 1.0,
            "auto": k > 0,
        }
        for k in range(3)
    ]
    text = families.report(pd.DataFrame(rows), "Here.")
    assert "| gamma | 300 | 0.920 | shape 1.00 (1.00 to 1.00) | 2 of 3 |" in text
