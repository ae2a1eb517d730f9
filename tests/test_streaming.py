"""A table in files or in a Dask frame gives the same model as the same rows in memory.

If columns have few distinct values (up to `sketches.EXACT_VALUES`), all statistics of the rows are exact up
to the order of summation, which rounds at 1e-16. Hyperparameters at a flat maximum of the evidence amplify
this to 1e-9; the tests require 1e-7. Quantiles of columns with more values are exact to 0.05% of the ranks,
and knots differ accordingly. Importances of interactions are computed over grid cells instead of rows where
rows would have to be read again, which makes them some percent larger.
"""

from __future__ import annotations

import os
import signal
import threading
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from lanam.core.rows import quadratics
from lanam.engines import dask as dask_engine
from lanam.engines import delimited, files, formats, local
from lanam.errors import InputError

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

N_ROWS = 360
CUTS = [(0, 1), (1, 150), (150, 157), (157, 360)]
FEATURES = ["age", "city", "size", "dose"]
OTHERS = ["price", "events", "ill", "grade", "hours", "weight"]
CLOSE = {"rtol": 1e-7, "atol": 1e-7}
ROUGHLY = {"rtol": 0.05, "atol": 0.0}

SMALL = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "random_state": 0, "n_jobs": 1}
CASES = {
    "plain": (
        LANAMRegressor(interactions=0, level_effects=False, noise="constant", **SMALL),
        "price",
        {},
    ),
    "numbers": (LANAMRegressor(**SMALL), "price", {}),
    "weights": (
        LANAMRegressor(interactions=[("city", "dose")], **SMALL),
        "price",
        {"sample_weight": "weight"},
    ),
    "counts": (
        LANAMRegressor(likelihood="poisson", interactions=2, **SMALL),
        "events",
        {"exposure": "hours", "sample_weight": "weight"},
    ),
    "two classes": (LANAMClassifier(**SMALL), "ill", {}),
    "three classes": (
        LANAMClassifier(interactions=1, **SMALL),
        "grade",
        {"sample_weight": "weight"},
    ),
}


def make_rows(n_rows=N_ROWS, rounded=True, seed=0):
    rng = np.random.default_rng(seed)
    age, dose = rng.normal(40, 10, n_rows), rng.uniform(0, 3, n_rows)
    if rounded:
        age, dose = age.round(0), dose.round(1)
    city = rng.choice(["Bern", "Oslo", "Rome"], n_rows).astype(object)
    # Only the dtype has the order of the categories.
    size = pd.Categorical(rng.choice(["S", "M", "L"], n_rows), categories=["S", "M", "L"])
    link = np.sin((age - 40) / 6) + (city == "Oslo") - 0.3 * (dose - 1) ** 2
    link += np.where(city == "Rome", 0.8 * dose, 0.0) + 2.0 * (dose == 0.7) + 0.5 * (size == "M")
    age[::11], city[::13] = np.nan, None
    noisy = link + 0.3 * rng.normal(size=n_rows)
    hours = rng.integers(4, 24, n_rows) / 8.0  # their sum is exact in any order
    return pd.DataFrame(
        {
            "age": age,
            "hours": hours,
            "city": city,
            "price": 100.0 + noisy,
            "events": rng.poisson(hours * np.exp(0.7 * link)),
            "size": size,
            "ill": np.where(noisy > 0.7, "yes", "no"),
            "grade": np.select([noisy > 1.3, noisy > 0.3], [3, 2], 1),
            "dose": dose,
            "weight": rng.integers(0, 3, n_rows).astype(float),
        }
    )


@cache
def all_rows():
    return make_rows()


def write(rows, folder, kind="parquet", cuts=CUTS, size=37):
    """The rows in several files, some of them in several parts."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (start, end) in enumerate(cuts):
        path = folder / f"part-{number}.{kind}"
        if kind == "csv":
            rows[start:end].to_csv(path, index=False)
            continue
        table = pa.Table.from_pandas(rows[start:end], preserve_index=False)
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=size)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, size)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("rows")
    rows = all_rows()
    return {
        "parquet": write(rows, root / "odd"),
        "csv": write(rows, root / "csv", "csv"),
        "arrow": write(rows, root / "arrow", "arrow", size=41),
        "one file": write(rows, root / "one", cuts=[(0, N_ROWS)], size=11),
    }


def make_ddf(rows=None, n_partitions=2):
    rows = all_rows() if rows is None else rows
    return dd.from_pandas(rows, npartitions=n_partitions)


@cache
def in_memory(case, as_text=False):
    """The model of rows in memory; with ``as_text`` categories have no order, as in CSV files."""
    model, target, roles = CASES[case]
    rows = all_rows().astype({"size": object}) if as_text else all_rows()
    values = {role: rows[name].to_numpy() for role, name in roles.items()}
    return clone(model).fit(rows[FEATURES], rows[target], **values)


def in_chunks(case, table, **arguments):
    """The model of a table with a target column and others."""
    model, target, roles = CASES[case]
    left_out = [name for name in OTHERS if name not in (target, *roles.values())]
    model = clone(model).set_params(**arguments)
    return model.fit(table, target=target, drop=left_out, **roles)


def assert_close(one, two, tolerance, where="model"):
    """Nested data is equal up to rounding."""
    if isinstance(one, dict):
        assert list(one) == list(two), where
        for key in one:
            rough = one.get("kind") == "pair" and key.startswith("importance")
            assert_close(one[key], two[key], ROUGHLY if rough else tolerance, f"{where}.{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), where
        for number, pair in enumerate(zip(one, two, strict=True)):
            assert_close(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(one, float) and one == one:
        # As assert_allclose, which would take longer than the fits for thousands of numbers.
        near = tolerance["atol"] + tolerance["rtol"] * abs(two)
        assert one == two or abs(one - two) <= near, where
    elif isinstance(one, float):
        assert two != two, where
    else:
        assert one == two, where


def assert_same_model(found, expected, rows=None, tolerance=CLOSE):
    """Two models have the same explanations, summaries and predictions."""
    rows = all_rows() if rows is None else rows
    X = rows[FEATURES]
    assert found.feature_names_in_.tolist() == FEATURES
    assert found.n_features_in_ == len(FEATURES)
    assert found.n_iter_ == expected.n_iter_
    assert found.converged_
    terms = [[term.to_dict() for term in model.terms_] for model in (found, expected)]
    assert_close(*terms, tolerance)
    pairs = [model.interaction_scores_.to_dict() for model in (found, expected)]
    assert_close(*pairs, tolerance)
    # These have ranges, categories, missing values and densities.
    curves = [model.explain_global().to_dict() for model in (found, expected)]
    assert_close(*curves, tolerance)
    sums = [model.summary().to_dict() for model in (found, expected)]
    for each in sums:  # sorted by importance, which is less exact
        each["terms"] = sorted(each["terms"], key=lambda term: term["term"])
    assert_close(*sums, tolerance)
    np.testing.assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=1e-9)
    for one, other in zip(predictions(found, X), predictions(expected, X), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)
    if isinstance(expected, LANAMClassifier):
        assert found.classes_.tolist() == expected.classes_.tolist()
        assert found.classes_.dtype.kind == expected.classes_.dtype.kind
        assert found.predict(X).tolist() == expected.predict(X).tolist()
    else:
        for learned in ("noise_std_", "dispersion_", "missing_noise_std_"):
            values = [getattr(model, learned) for model in (found, expected)]
            np.testing.assert_allclose(*values, **tolerance)


def predictions(model, X):
    terms = model.predict_terms(X, return_std=True)
    if isinstance(model, LANAMClassifier):
        return (*terms, model.predict_proba(X))
    return (*terms, *model.predict(X, return_std=True, **exposure_of(model)))


def exposure_of(model):
    return {"exposure": 2.0} if model.likelihood == "poisson" else {}


# The same model from any source


def test_cases_cover_all_kinds_of_terms():
    active = {case: [term.name for term in in_memory(case).terms_ if term.active] for case in CASES}
    for case in set(CASES) - {"plain"}:
        assert {"age", "city", "city x dose"} <= set(active[case])
    assert "dose (levels)" in active["numbers"]
    statuses = {term.status for case in CASES for term in in_memory(case).terms_}
    assert len(statuses) > 1
    assert in_memory("numbers").missing_noise_std_.max() > 0.0
    assert in_memory("counts").dispersion_ > 0.0
    assert in_memory("three classes").classes_.tolist() == [1, 2, 3]
    shape = in_memory("numbers").explain_global()["size"]
    assert list(shape.values) == ["S", "M", "L"]
    text = in_memory("numbers", as_text=True).explain_global()["size"]
    assert list(text.values) == ["L", "M", "S"]


@pytest.mark.parametrize("case", CASES)
def test_parquet_files(case, folders):
    found = in_chunks(case, str(folders["parquet"] / "*.parquet"))
    assert_same_model(found, in_memory(case))


@pytest.mark.parametrize("case", ["numbers", "counts", "three classes"])
def test_chunks_and_threads_do_not_change_results(case, folders, monkeypatch):
    monkeypatch.setattr(local, "LARGEST_CHUNK", 60)
    monkeypatch.setattr(formats, "LARGEST_CHUNK", 60)
    found = in_chunks(case, folders["one file"], n_jobs=2)
    assert_same_model(found, in_memory(case))


@pytest.mark.parametrize("case", ["numbers", "counts"])
def test_csv_files(case, folders):
    found = in_chunks(case, folders["csv"])
    assert_same_model(found, in_memory(case, as_text=True))


@pytest.mark.parametrize("case", ["weights", "two classes"])
def test_arrow_files(case, folders):
    paths = sorted(folders["arrow"].iterdir())  # a list of paths
    found = in_chunks(case, paths)
    assert_same_model(found, in_memory(case))


@pytest.mark.parametrize("case", ["weights", "counts", "two classes"])
def test_dask_frames(case):
    with dask.config.set(scheduler="threads"):
        found = in_chunks(case, make_ddf())
    assert_same_model(found, in_memory(case))


def test_cluster_and_threads_agree_bitwise(client):
    there = in_chunks("plain", make_ddf())
    assert_same_model(there, in_memory("plain"))
    with dask.config.set(scheduler="threads"):
        here = in_chunks("plain", make_ddf())
    X = all_rows()[FEATURES]
    for one, other in zip(predictions(there, X), predictions(here, X), strict=True):
        assert np.array_equal(one, other)
    assert there.log_evidence_ == here.log_evidence_


def test_files_are_read_in_every_pass_if_memory_is_small(folders, monkeypatch):
    n_read = []

    def read(self, *arguments):
        n_read.append(1)
        return reading(self, *arguments)

    reading = files.FileSource._read
    monkeypatch.setattr(files.FileSource, "_read", read)
    kept = in_chunks("numbers", folders["parquet"])
    n_kept = len(n_read)
    assert n_kept == 2  # once for the categories, and once for the fit
    assert kept.plan_.stages[0].in_tables
    again = in_chunks("numbers", folders["parquet"], memory="60kB")
    assert len(n_read) - n_kept == 1 + again.plan_.passes
    assert {plan.in_tables for plan in again.plan_.stages} == {False}
    assert again.plan_.passes > kept.plan_.passes
    assert str(again.plan_.stages[0]).endswith("MB of 0 MB: every iteration goes over all rows")
    assert_same_model(again, in_memory("numbers"))


def test_saved_model(folders, tmp_path):
    found = in_chunks("counts", folders["parquet"])
    loaded = lanam.load(found.save(tmp_path / "model.lanam"))
    assert loaded.get_params() == found.get_params()
    assert_close(loaded.explain_global().to_dict(), found.explain_global().to_dict(), CLOSE)
    X = all_rows()[FEATURES]
    for one, other in zip(predictions(loaded, X), predictions(found, X), strict=True):
        assert np.array_equal(one, other)
    assert str(loaded.summary()) == str(found.summary())


@pytest.mark.parametrize("case", ["counts", "two classes"])
def test_many_rows_of_a_nonquadratic_likelihood(case, folders, monkeypatch):
    """The fit starts from a sample of the same rows, and sums them into cross-tables."""
    monkeypatch.setattr(prepare, "SAMPLE_ROWS", 40)
    monkeypatch.setattr(quadratics, "MANY_ROWS", 100)
    model, target, roles = CASES[case]
    rows = all_rows()
    values = {role: rows[name].to_numpy() for role, name in roles.items()}
    expected = clone(model).set_params(interactions=0).fit(rows[FEATURES], rows[target], **values)
    assert any(record.get("stage") == "sample" for record in expected.history_)
    assert expected.plan_.stages[0].in_tables
    assert_same_model(in_chunks(case, folders["parquet"], interactions=0), expected)
    monkeypatch.setattr(local, "LARGEST_CHUNK", 60)
    found = in_chunks(case, folders["one file"], interactions=0, n_jobs=2)
    # Rounding may decide whether the last direction is kept, which only matters outside of the data.
    assert found.n_iter_ == expected.n_iter_
    assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-7)
    terms = [model.predict_terms(rows[FEATURES]) for model in (found, expected)]
    np.testing.assert_allclose(*terms, rtol=1e-6, atol=1e-6)


@cache
def with_interaction_added():
    rows = all_rows()
    model = clone(CASES["plain"][0]).fit(rows[FEATURES], rows["price"])
    return model.add_interactions(rows[FEATURES], rows["price"], [("city", "dose")])


@pytest.mark.parametrize("how", ["files", "dask"])
def test_add_interactions(how, folders):
    plain = CASES["plain"][0]
    table = folders["parquet"] if how == "files" else make_ddf()
    with dask.config.set(scheduler="threads"):
        found = clone(plain).fit(table, "price", drop=OTHERS[1:])
        before = found.log_evidence_
        found.add_interactions(table, "price", [("city", "dose")])
    assert found.log_evidence_ > before
    assert_same_model(found, with_interaction_added())


@pytest.fixture(scope="module")
def continuous(tmp_path_factory):
    rows = make_rows(20_000, rounded=False, seed=1)
    folder = tmp_path_factory.mktemp("continuous")
    write(rows, folder, cuts=[(0, 7000), (7000, 12001), (12001, 20_000)], size=3000)
    return rows, folder


@pytest.mark.parametrize("case", ["numbers", "two classes"])
def test_columns_of_many_distinct_values(case, continuous, monkeypatch):
    """An error of 0.05% in the ranks of knots is small compared with the posterior uncertainty."""
    rows, folder = continuous
    model, target, _ = CASES[case]
    constant = {"noise": "constant"} if case == "numbers" else {}
    model = clone(model).set_params(interactions=0, **constant)
    left_out = [name for name in OTHERS if name != target]
    expected = clone(model).fit(rows[FEATURES], rows[target])
    mean, std = expected.predict_terms(rows[FEATURES], return_std=True)
    unsure = np.sqrt((std**2).sum(axis=1))
    for n_jobs, size in ((1, 1 << 18), (2, 900)):
        monkeypatch.setattr(local, "LARGEST_CHUNK", size)
        monkeypatch.setattr(formats, "LARGEST_CHUNK", size)
        found = clone(model).set_params(n_jobs=n_jobs).fit(folder, target, drop=left_out)
        assert [term.status for term in found.terms_] == [term.status for term in expected.terms_]
        off = np.abs(found.predict_terms(rows[FEATURES]).sum(axis=1) - mean.sum(axis=1))
        assert off.max() > 0.0  # otherwise nothing is tested
        if case == "numbers":
            assert np.sqrt(np.mean(off**2)) < 1e-3 * expected.noise_std_
            assert off.max() < 0.05 * expected.noise_std_
        assert np.sqrt(np.mean((off / unsure) ** 2)) < 0.05
        for column in ("age", "dose"):  # ranges are exact
            ends = found._schema.columns[FEATURES.index(column)]
            assert (ends.lowest, ends.highest) == (rows[column].min(), rows[column].max())


# Processes instead of threads


@pytest.fixture
def processes(monkeypatch):
    """Use processes for small tables as well."""
    monkeypatch.setattr(files, "_MANY_ROWS", 50)
    monkeypatch.setattr(files, "_MANY_BYTES", 50)


@pytest.mark.parametrize(("kind", "case"), [("parquet", "numbers"), ("csv", "plain")])
def test_processes_do_not_change_results(kind, case, folders, processes, monkeypatch):
    started = []
    running = files.FileSource._in_processes

    def run(self, *arguments):
        started.append(self.options.n_jobs)
        return running(self, *arguments)

    monkeypatch.setattr(files.FileSource, "_in_processes", run)
    found = in_chunks(case, folders[kind], n_jobs=2)
    assert len(started) == 1 + found.plan_.passes  # once for the categories
    assert_same_model(found, in_memory(case, as_text=kind == "csv"))
    started.clear()
    in_chunks("plain", folders[kind])
    assert not started


def working_folder():
    return os.getcwd()


def test_state_of_joblib_workers_is_restored(folders, processes, monkeypatch, tmp_path):
    from joblib import Parallel, delayed

    from lanam.engines import allocation

    with Parallel(n_jobs=2, max_nbytes=None) as parallel:
        before = set(parallel(delayed(working_folder)() for _ in range(4)))
        monkeypatch.chdir(tmp_path)
        in_chunks("plain", folders["parquet"], n_jobs=2)
        assert set(parallel(delayed(working_folder)() for _ in range(4))) == before
    calls = []
    monkeypatch.setattr(allocation, "_adjust", lambda *thresholds: calls.append(thresholds))
    source = files.open_files(folders["parquet"])
    files._in_process(["dose"], lambda chunks: calls.append("work"), source, str(tmp_path))
    kept, work, returned = calls
    assert work == "work"
    assert returned[1] < kept[1]


def test_workers_whose_folder_was_removed(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    source = SimpleNamespace(_counted={}, each=iter)
    found = files._in_process([], lambda chunks: os.getcwd(), source, tmp_path)
    assert found == (str(tmp_path), {})


def test_misspelt_interaction_is_reported_before_rows_are_read(folders, monkeypatch):
    def read(*arguments):
        raise AssertionError("a row was read")

    monkeypatch.setattr(files.FileSource, "_read", read)
    model = LANAMRegressor(interactions=[("dose", "zon")])
    with pytest.raises(ValueError, match="zon"):
        model.fit(folders["parquet"], "price")


BAD = {
    "a feature": ("plain", "dose", np.inf, ": Input X contains infinity: column 'dose' has 1 inf"),
    "the target": ("plain", "price", np.nan, ", column 'price': Input y contains NaN: 1 of "),
    "a weight": ("weights", "weight", -1.0, ", column 'weight': Negative values in sample_weight"),
    "an exposure": ("counts", "hours", 0.0, ", column 'hours': exposure must be positive"),
    "a count": ("counts", "events", -2.0, ", column 'events': .* y has negative values: 1 of "),
}


@pytest.mark.parametrize(
    ("what", "where"),
    [(what, where) for what in BAD for where in ("threads", "dask")] + [("a weight", "processes")],
)
def test_errors_name_the_place_of_bad_values(what, where, tmp_path, request):
    task, column, value, message = BAD[what]
    rows = all_rows().astype({column: float})
    at = 157 + 2 * 37 + 20  # in the last file's third row group
    rows.loc[at, column] = value
    if where == "dask":
        table, place, row = make_ddf(rows), "partition 1", at - N_ROWS // 2 + 1
    else:
        table, place, row = (
            write(rows, tmp_path),
            r".*part-3.parquet, row group 2 \(of 0 to 5\)",
            21,
        )
    if where == "processes":
        request.getfixturevalue("processes")
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(ValueError, match=rf"^in {place}{message}.* row {row}\b") as caught,
    ):
        in_chunks(task, table, n_jobs=2)
    assert type(caught.value) is InputError


def test_string_in_a_numeric_column_of_a_csv_file(tmp_path, monkeypatch):
    rows = all_rows().astype({"dose": object})
    rows.loc[300, "dose"] = "much"
    with pytest.raises(ValueError, match=r"'dose' is numeric in .*0\.csv and string in .*3\.csv"):
        in_chunks("plain", write(rows, tmp_path / "several", "csv"))
    monkeypatch.setattr(delimited, "_HEAD", 2000)
    one = write(rows, tmp_path / "one", "csv", cuts=[(0, N_ROWS)])
    with pytest.raises(ValueError, match=r"part-0\.csv.*'much'"):
        in_chunks("plain", one)


# Failures


def test_killed_worker_does_not_change_results(cluster, client, monkeypatch):
    with dask.config.set(scheduler="threads"):
        undisturbed = in_chunks("plain", make_ddf(n_partitions=4))
    killed = []
    totals = dask_engine.DaskTables.total

    def total(self, *arguments):
        total.n_passes += 1
        if total.n_passes == 4:
            victim = cluster.workers[0].pid
            killed.append(victim)
            # During the pass that follows.
            threading.Timer(0.02, os.kill, (victim, signal.SIGKILL)).start()
        return totals(self, *arguments)

    total.n_passes = 0
    monkeypatch.setattr(dask_engine.DaskTables, "total", total)
    found = in_chunks("plain", make_ddf(n_partitions=4))
    assert killed
    assert killed[0] not in [worker.pid for worker in cluster.workers.values()]
    assert total.n_passes > 6
    assert found.log_evidence_ == undisturbed.log_evidence_
    X = all_rows()[FEATURES]
    for one, other in zip(predictions(found, X), predictions(undisturbed, X), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("how", ["files", "dask"])
def test_interrupt_keeps_the_best_model(how, folders, monkeypatch):
    engine = local.LocalTables if how == "files" else dask_engine.DaskTables
    totals = engine.total

    def total(self, *arguments):
        total.n_passes += 1
        if total.n_passes == 12:
            raise KeyboardInterrupt
        return totals(self, *arguments)

    total.n_passes = 0
    monkeypatch.setattr(engine, "total", total)
    table = folders["parquet"] if how == "files" else make_ddf()
    with (
        dask.config.set(scheduler="threads"),
        pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ iter.* is kept") as caught,
    ):
        model = in_chunks("two classes", table)
    assert [each.filename for each in caught] == [__file__]
    assert not model.converged_
    assert total.n_passes > 12  # the posterior needs some
    rows = all_rows()
    assert model.score(rows[FEATURES], rows["ill"]) > 0.8


def test_adam_needs_rows_in_memory(folders, tmp_path):
    model = LANAMRegressor(solver="adam", **SMALL)
    for table in (folders["parquet"], make_ddf()):
        with pytest.raises(
            ValueError, match="solver='adam', the paper's, draws mini-batches of rows"
        ):
            model.fit(table, "price", drop=OTHERS[1:])
    rows = all_rows()[["dose", "price"]]
    with pytest.raises(ValueError, match="solver='adam'"):
        model.fit(rows, "price", checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_constant_target(tmp_path):
    rows = all_rows()[["dose", "age", "price"]].assign(price=7.5)
    folder = write(rows, tmp_path)
    with pytest.warns(UserWarning, match=r"y is constant up to rounding \(7\.5\)") as caught:
        model = LANAMRegressor(**SMALL).fit(folder, "price")
    assert [each.filename for each in caught] == [__file__]
    assert np.allclose(model.predict(rows[["dose", "age"]]), 7.5)


def test_too_few_rows(tmp_path):
    rows = all_rows()[["dose", "price", "weight"]]
    one = write(rows, tmp_path / "one", cuts=[(0, 1)])
    with pytest.raises(ValueError, match="only 1 sample has a positive weight: a fit needs at lea"):
        LANAMRegressor(**SMALL).fit(one, "price", drop=["weight"])
    nothing = write(rows.assign(weight=0.0), tmp_path / "none")
    with pytest.raises(ValueError, match="no row with a positive weight: nothing is left to fit"):
        LANAMRegressor(**SMALL).fit(nothing, "price", sample_weight="weight")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"the folder .*empty has no data files"):
        LANAMRegressor(**SMALL).fit(tmp_path / "empty", "price")
    with pytest.raises(ValueError, match=r"there is no file or folder .*nowhere"):
        LANAMRegressor(**SMALL).fit(str(tmp_path / "nowhere"), "price")


@pytest.mark.parametrize("where", ["files", "dask", "memory"])
def test_unknown_columns(where, folders):
    table = {"files": folders["parquet"], "dask": make_ddf(), "memory": all_rows()}[where]
    model = LANAMRegressor(**SMALL)
    with pytest.raises(
        ValueError, match=r"^target names the column 'prize', .*did you mean 'price' or 'size'\?"
    ):
        model.fit(table, target="prize")
    with pytest.raises(ValueError, match=r"^drop names the column 'sizes', .*'size'\?"):
        model.fit(table, "price", drop=["sizes"])
    with pytest.raises(ValueError, match=r"^drop='weight' .* write drop=\['weight'\]"):
        model.fit(table, "price", drop="weight")
    everything = [name for name in all_rows() if name != "price"]
    with pytest.raises(ValueError, match="has no column left to predict from"):
        model.fit(table, "price", drop=everything)
    with pytest.raises(ValueError, match="y and target both specify what to predict"):
        model.fit(table, "price", target="price")
    assert not hasattr(model, "terms_")


def test_target_and_weights_of_chunked_tables_are_columns(folders):
    rows, model = all_rows(), LANAMRegressor(**SMALL)
    for target in (None, rows["price"]):
        with pytest.raises(ValueError, match=r"the target of .* must be one of its columns: pass"):
            model.fit(folders["parquet"], target)
    with pytest.raises(ValueError, match=r"sample_weight of .* pass its name, not values"):
        model.fit(folders["parquet"], "price", sample_weight=rows["weight"])


def test_failed_fit_leaves_no_old_model(folders):
    model = in_chunks("plain", folders["parquet"])
    with pytest.raises(ValueError, match="drop names"):
        model.fit(folders["parquet"], "price", drop=["nothing like it"])
    with pytest.raises(Exception, match="not fitted"):
        model.predict(all_rows()[FEATURES])


def test_add_interactions_needs_the_training_data(folders, tmp_path):
    model = in_chunks("plain", folders["parquet"])
    before = model.log_evidence_
    narrow = write(all_rows().drop(columns="dose"), tmp_path)
    with pytest.raises(
        ValueError, match="lacks the column 'dose', with which the model was fitted"
    ):
        model.add_interactions(narrow, "price")
    other = write(all_rows().replace({"city": {"Rome": "Riga"}}), tmp_path / "other")
    with pytest.raises(
        ValueError, match="'city' has the category 'Riga', which it did not have befo"
    ):
        model.add_interactions(other, "price")
    assert model.log_evidence_ == before


# Frames in memory with the target as a column


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_target_as_a_column_of_a_frame(library):
    rows = all_rows()[["age", "city", "dose", "price", "ill"]]
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(rows)
    else:
        frame = rows if library == "pandas" else pa.Table.from_pandas(rows, preserve_index=False)
    features = ["age", "city", "dose"]
    X = frame.select(features) if library != "pandas" else frame[features]
    by_hand = LANAMClassifier(interactions=0, **SMALL).fit(X, rows["ill"].to_numpy())
    for y, target in (("ill", None), (None, "ill")):
        model = clone(by_hand).fit(frame, y, target=target, drop=["price"])
        assert model.feature_names_in_.tolist() == features
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.log_evidence_ == by_hand.log_evidence_
        assert np.array_equal(model.predict_proba(X), by_hand.predict_proba(X))


def test_drop_with_a_separate_target():
    rows = all_rows()
    by_hand = LANAMRegressor(interactions=0, **SMALL).fit(rows[["age", "dose"]], rows["price"])
    model = clone(by_hand).fit(rows[["age", "city", "dose"]], rows["price"], drop=["city"])
    assert model.log_evidence_ == by_hand.log_evidence_


def test_names_need_a_frame():
    X = all_rows()[["dose", "price"]].to_numpy()
    for arguments in ({"target": "price"}, {"y": "price"}, {"y": X[:, 1], "drop": ["dose"]}):
        with pytest.raises(ValueError, match="X is an array without names: pass a frame"):
            LANAMRegressor(**SMALL).fit(X, **arguments)


def test_weights_of_a_frame_in_memory_by_name():
    rows = all_rows()
    given = rows.drop(columns=["price", "weight"])
    model = LANAMRegressor(interactions=0, **SMALL)
    expected = clone(model).fit(given, rows["price"], sample_weight=rows["weight"])
    named = rows[[*given.columns, "price", "weight"]]
    found = clone(model).fit(named, "price", sample_weight="weight")
    assert found.log_evidence_ == expected.log_evidence_
    with pytest.raises(ValueError, match="sample_weight names the column 'weights'"):
        LANAMRegressor(**SMALL).fit(named, "price", sample_weight="weights")
