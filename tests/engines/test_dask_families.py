"""Families whose rows have offsets, precisions or trials, on Dask: the model of the rows in memory."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor

dask = pytest.importorskip("dask")
frames = pytest.importorskip("dask.dataframe")

N = 400


def table():
    rng = np.random.default_rng(0)
    a, known, years = rng.uniform(-2.0, 2.0, N), rng.normal(size=N), rng.uniform(0.5, 2.0, N)
    mean = np.exp(np.sin(a) + known)
    some = rng.uniform(size=N) > 0.3
    return pd.DataFrame(
        {
            "a": a,
            "g": rng.choice(list("xyz"), N),
            "known": known,
            "years": years,
            "cost": mean * rng.gamma(2.0, size=N) / 2.0,
            "count": rng.poisson(years * mean),
            "total": np.where(some, years * mean, 0.0),
            "n": 10,
            "successes": rng.binomial(10, 1.0 / (1.0 + np.exp(-a))),
        }
    )


@pytest.mark.parametrize(
    ("likelihood", "target", "given"),
    [
        ("gamma", "cost", {"offset": "known"}),
        ("negative_binomial", "count", {"exposure": "years", "offset": "known"}),
        ("tweedie", "total", {"exposure": "years"}),
        ("binomial", "successes", {"trials": "n"}),
    ],
)
def test_the_model_of_the_rows_in_memory(likelihood, target, given):
    rows = table()
    lazy, X = frames.from_pandas(rows, npartitions=3), rows[["a", "g"]]
    used = {"a", "g", target, *given.values()}
    options = {"likelihood": likelihood, "interactions": 0, "random_state": 0}
    values = {argument: rows[name] for argument, name in given.items()}
    in_memory = LANAMRegressor(**options).fit(X, rows[target], **values)
    with dask.config.set(scheduler="synchronous"):
        drop = [name for name in rows.columns if name not in used]
        model = LANAMRegressor(**options).fit(lazy, target=target, drop=drop, **given)
        predicted = model.predict(lazy, **given).compute()
        score = model.log_likelihood(lazy, target, **given)
    assert model.log_evidence_ == pytest.approx(in_memory.log_evidence_, abs=1e-3)
    np.testing.assert_allclose(predicted, in_memory.predict(X, **values), rtol=1e-5)
    assert score == pytest.approx(in_memory.log_likelihood(X, rows[target], **values), abs=1e-5)
