"""Sessions of fits: memory and threads, plans, progress."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import cpu_count

from lanam import LANAMRegressor
from lanam.arguments import read_options
from lanam.core.rows.tables import EncodedRows
from lanam.parameters import read_memory, read_n_jobs
from lanam.sessions import FitPlan, Session
from lanam.training import fingerprint

SMALL = {"hidden_sizes": (6,), "interactions": 0, "random_state": 0}


def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2)).round(1)
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=200)


@pytest.mark.parametrize(
    ("value", "n_bytes"),
    [
        ("500MB", 500e6),
        ("2GB", 2e9),
        ("1.5 GB", 1.5e9),
        ("64KiB", 65536),
        ("1T", 1e12),
        ("12", 12),
        (1e9, 1e9),
        (np.int64(7), 7),
    ],
)
def test_memory(value, n_bytes):
    assert read_options(LANAMRegressor(memory=value, n_jobs=1).get_params()).memory == n_bytes / 2
    if not isinstance(value, np.generic):
        assert read_memory(value) == n_bytes


@pytest.mark.parametrize(
    "value",
    ["x", "", "GB", "1..5GB", ".", "-1GB", "2 GB 3", -5, 0, "0", np.inf, np.nan, None, True],
)
def test_invalid_memory(value):
    with pytest.raises(ValueError, match=r"^memory=.* give a number of bytes, or for exam.*'2GB'$"):
        LANAMRegressor(memory=value).fit(*rows())


def test_threads(monkeypatch):
    available = cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert read_n_jobs(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1,4")  # the first value is for the outer level
    assert read_n_jobs(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "100000")
    assert read_n_jobs(None) == available
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nothing)
        assert read_n_jobs(None) == available
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert read_n_jobs(None) == available
    assert read_n_jobs(-1) == available
    assert read_n_jobs(-100000) == 1
    assert read_n_jobs(3) == 3


@pytest.mark.parametrize("value", [0, "2", 1.5, True])
def test_invalid_threads(value):
    with pytest.raises(ValueError, match=r"^n_jobs=.* is not known: give a number of threads, -1"):
        LANAMRegressor(n_jobs=value).fit(*rows())


def test_threads_share_the_memory():
    for n_jobs in (1, 3):
        options = read_options(LANAMRegressor(memory=1200, n_jobs=n_jobs).get_params())
        assert options.memory == 1200 / (n_jobs + 1)


def test_plans_record_stages_and_passes():
    model = LANAMRegressor(**SMALL, n_jobs=1).fit(*rows())
    (stage,) = model.plan_.stages
    assert (stage.stage, stage.n_rows, stage.n_columns, stage.n_terms) == ("columns", 200, 2, 2)
    assert stage.memory == 1e9
    assert model.plan_.passes > 0
    assert model.plan_.seconds > 0.0
    lines = str(model.plan_).splitlines()
    assert lines[0] == str(stage)
    assert lines[-1].startswith(f"{model.plan_.passes} passes over the rows in ")
    assert str(FitPlan((), 0, 0.25)) == "0 passes over the rows in 0.2 s"


def test_the_model_does_not_depend_on_the_memory():
    X, y = rows()
    rich = LANAMRegressor(**SMALL, n_jobs=1).fit(X, y)
    poor = LANAMRegressor(**SMALL, n_jobs=1, memory=1000).fit(X, y)
    assert rich.plan_.stages[0].in_tables
    assert not poor.plan_.stages[0].in_tables
    assert str(poor.plan_.stages[0]).endswith("every iteration goes over all rows")
    np.testing.assert_allclose(poor.predict(X), rich.predict(X), atol=1e-8)
    np.testing.assert_allclose(poor.log_evidence_, rich.log_evidence_, rtol=1e-9)


def test_plans_are_shown_before_they_are_carried_out(capsys):
    model = LANAMRegressor(**SMALL, verbose=1).fit(*rows())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"lanam  {model.plan_.stages[0]}"
    assert lines[1].startswith("lanam  iteration 1 ")
    LANAMRegressor(**SMALL).fit(*rows())
    assert capsys.readouterr().err == ""


def test_sessions_count_passes():
    options = read_options(LANAMRegressor().get_params())
    with Session(options, 5, 0) as session:
        assert session.log("sum", lambda: (np.ones(2),))[0].tolist() == [1.0, 1.0]
        session.log("sum", lambda: (np.ones(2),))
    assert session.plan.passes == 2
    assert Session(options, 5, 0).seed == session.seed != Session(options, 6, 0).seed


def test_passes_that_fail_are_not_counted():
    session = Session(read_options(LANAMRegressor().get_params()), 0, 0)

    def fail():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        session.log("sum", fail)
    assert session.plan.passes == 0


def test_fingerprints_depend_on_all_arrays():
    columns, response, weight = np.arange(6.0).reshape(3, 2), np.arange(3.0), np.ones(3)
    digest = fingerprint(EncodedRows(columns, response, weight))
    assert digest == fingerprint(EncodedRows(np.asfortranarray(columns), response.copy(), weight))
    others = [
        EncodedRows(columns + 1.0, response, weight),
        EncodedRows(columns, response[::-1], weight),
        EncodedRows(columns, response, 2.0 * weight),
        EncodedRows(columns.reshape(2, 3), response, weight),
        EncodedRows(columns, response[:2], np.concatenate([response[2:], weight])),
    ]
    assert len({digest, *map(fingerprint, others)}) == 6
