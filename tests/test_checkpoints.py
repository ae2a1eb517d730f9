"""An interrupted fit resumes to the same model; damaged files are computed again."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor, checkpoints
from lanam.checkpoints import Checkpoint
from lanam.sessions import Session

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SMALL = {"hidden_sizes": (6,), "pair_hidden_sizes": (6,), "n_jobs": 1}
FEATURES = ["x", "z", "city"]


def make_rows(n_rows=150):
    rng = np.random.default_rng(0)
    x, z = rng.uniform(-1, 1, n_rows).round(2), rng.normal(size=n_rows).round(1)
    city = rng.choice(["Bern", "Oslo"], n_rows)
    link = 2.0 * np.sin(3.0 * x) + z * (city == "Oslo")
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "city": city,
            "y": link + 0.2 * rng.normal(size=n_rows),
            "ill": link + 0.5 * rng.normal(size=n_rows) > 0.0,
            "events": rng.poisson(np.exp(0.5 * link)),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    rows[:90].to_parquet(folder / "a.parquet", row_group_size=40)
    rows[90:].to_parquet(folder / "b.parquet")
    return folder


def regressor(**options):
    return LANAMRegressor(**{"random_state": 0, "interactions": 1, **SMALL, **options})


def fit_numbers(table, checkpoint=None, **options):
    return regressor(**options).fit(table, "y", drop=["ill", "events"], checkpoint=checkpoint)


def fit_classes(table, checkpoint=None, **options):
    model = LANAMClassifier(**{"random_state": 0, "interactions": 0, **SMALL, **options})
    return model.fit(table, "ill", drop=["y", "events"], checkpoint=checkpoint)


def learned(model):
    """All arrays of a model."""
    fitted = model._model
    arrays = [
        fitted.cov_cholesky,
        np.array(fitted.intercept),
        np.array([fitted.log_evidence, fitted.noise_variance]),
    ]
    for term in fitted.terms:
        arrays += [term.mean, term.table, term.precision, term.data_mass]
        arrays.append(np.array([term.importance, term.evidence, term.effective_parameters]))
    return arrays


def same_bits(one, two):
    pairs = zip(learned(one), learned(two), strict=True)
    statuses = [[term.status for term in model.terms_] for model in (one, two)]
    return all(np.array_equal(*pair) for pair in pairs) and statuses[0] == statuses[1]


class StoppedError(Exception):
    """Stops a fit, like a lost machine."""


@pytest.fixture
def stop_after(monkeypatch):
    """Stops the next fit after this number of passes."""
    log = Session.log

    def stop_after(n_passes, error=StoppedError):
        seen = []

        def stopping(self, name, compute):
            seen.append(name)
            if len(seen) == n_passes + 1:
                raise error
            return log(self, name, compute)

        monkeypatch.setattr(Session, "log", stopping)

    return stop_after


@pytest.fixture
def go_on(monkeypatch):
    """Lets fits run to their end again."""
    log = Session.log
    return lambda: monkeypatch.setattr(Session, "log", log)


def kind_of(job):
    """The kind of a pass: the names of its functions, whatever their arguments."""
    names = []
    while isinstance(job, partial):
        names.append(job.func.__name__)
        job = next((part for part in job.args if isinstance(part, partial)), None)
    return tuple(names)


@pytest.fixture
def places(monkeypatch):
    """Where to stop a fit: once between any two kinds of consecutive passes."""
    log, kinds = Session.log, []

    def noting(self, name, compute):
        kinds.append(kind_of(name))
        return log(self, name, compute)

    def places(fit, table):
        kinds.clear()
        monkeypatch.setattr(Session, "log", noting)
        whole = fit(table)
        monkeypatch.setattr(Session, "log", log)
        steps = list(zip([None, *kinds], kinds, strict=False))
        assert all(kinds)
        return whole, [k for k, step in enumerate(steps) if step not in steps[:k]]

    return places


@pytest.mark.parametrize("fit", [fit_numbers, fit_classes])
@pytest.mark.parametrize("where", ["files", "memory"])
def test_a_fit_resumes_from_any_pass(fit, where, rows, folder, tmp_path, go_on, stop_after, places):
    table = folder if where == "files" else rows
    whole, stops = places(fit, table)
    n_passes = whole.plan_.passes
    assert len(stops) > 6
    if (where, fit) != ("files", fit_numbers):
        stops = range(0, n_passes, 6)
    assert n_passes > 8
    assert same_bits(fit(table, tmp_path / "whole"), whole)
    for k in stops:
        path = tmp_path / f"after {k}"
        stop_after(k)
        with pytest.raises(StoppedError):
            fit(table, path)
        go_on()
        model = fit(table, path)
        assert same_bits(model, whole), k
        assert model.plan_.passes == n_passes - k
        assert [stage.stage for stage in model.plan_.stages] == [
            stage.stage for stage in whole.plan_.stages
        ]
    assert fit(table, path).plan_.passes == 0  # all passes are read


def test_repeated_interruptions(folder, tmp_path, go_on, stop_after):
    whole = fit_numbers(folder)
    for k in (3, 4, 4, 9):
        stop_after(k)
        with pytest.raises(StoppedError):
            fit_numbers(folder, tmp_path / "run")
        go_on()
    model = fit_numbers(folder, tmp_path / "run")
    assert same_bits(model, whole)
    assert model.plan_.passes == whole.plan_.passes - 9


def test_dask_frames(rows, tmp_path, go_on, stop_after):
    dd = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        fit = partial(fit_numbers, interactions=0)
        whole = fit(dd.from_pandas(rows, npartitions=2))
        stop_after(3)
        with pytest.raises(StoppedError):
            fit(dd.from_pandas(rows, npartitions=2), tmp_path / "run")
        go_on()
        model = fit(dd.from_pandas(rows, npartitions=2), tmp_path / "run")
        assert same_bits(model, whole)
        assert model.plan_.passes == whole.plan_.passes - 3
        with pytest.raises(ValueError, match="belongs to another fit"):
            fit(dd.from_pandas(rows.assign(x=rows["z"]), npartitions=2), tmp_path / "run")


def fit_counts(table, checkpoint=None, **options):
    model = regressor(**{"likelihood": "poisson", "interactions": 0, **options})
    return model.fit(table, "events", drop=["y", "ill"], checkpoint=checkpoint)


@pytest.mark.parametrize("fit", [fit_classes, fit_counts])
def test_an_interrupt_is_not_stored(fit, rows, tmp_path, go_on, stop_after):
    whole, models = fit(rows), []
    for k in range(5, whole.plan_.passes - 2, 3):
        stop_after(k, KeyboardInterrupt)
        with (
            suppress(KeyboardInterrupt),  # before the first iteration there is no model
            pytest.warns(UserWarning, match="interrupted"),
        ):
            models.append(fit(rows, tmp_path / f"after {k}"))
        go_on()
        # The passes that complete an interrupted model differ from the next ones of the whole fit.
        assert same_bits(fit(rows, tmp_path / f"after {k}"), whole), k
    assert len(models) > 1


def test_without_a_random_state_the_seed_is_that_of_the_interrupted_fit(
    folder, tmp_path, go_on, stop_after
):
    path = tmp_path / "run"
    stop_after(4)
    with pytest.raises(StoppedError):
        fit_numbers(folder, path, random_state=None)
    go_on()
    model = fit_numbers(folder, path, random_state=None)
    again = fit_numbers(folder, path, random_state=None)
    assert same_bits(model, again)
    assert again.plan_.passes == 0
    assert not same_bits(fit_numbers(folder, random_state=None), model)


@pytest.mark.parametrize("where", ["files", "memory"])
def test_threads_and_memory_may_differ(where, rows, folder, tmp_path, go_on, stop_after):
    table = folder if where == "files" else rows
    whole = fit_numbers(table)
    X = rows[FEATURES]
    for k in range(1, whole.plan_.passes, 5):
        path = tmp_path / f"after {k}"
        stop_after(k)
        with pytest.raises(StoppedError):
            fit_numbers(table, path)
        go_on()
        model = fit_numbers(table, path, n_jobs=2, memory="30kB")
        assert [plan.in_tables for plan in model.plan_.stages] == [False, False]
        assert model.plan_.passes >= whole.plan_.passes - k
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-7)


# Other data or arguments


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"random_state": None},
        {"max_iter": 50},
        {"tol": 0.01},
        {"interactions": [("x", "city")]},
        {"interactions": 0},
        {"categorical_features": ["z"]},
        {"level_effects": False},
        {"max_knots": 32},
        {"likelihood": "poisson"},
    ],
)
@pytest.mark.parametrize("where", ["files", "memory"])
def test_other_arguments_are_another_fit(change, where, rows, folder, tmp_path, stop_after):
    columns = ["x", "z", "city", "events"]
    table = folder if where == "files" else rows[columns]
    drop = ["ill", "y"] if where == "files" else []
    stop_after(2)
    with pytest.raises(StoppedError):
        regressor().fit(table, "events", drop=drop, checkpoint=tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"run belongs to another fit: other data, other arguments or"
    ):
        regressor(**change).fit(table, "events", drop=drop, checkpoint=tmp_path / "run")


def test_other_data_are_another_fit(rows, folder, tmp_path, stop_after):
    path, other = tmp_path / "run", tmp_path / "other"
    other.mkdir()
    rows.to_parquet(other / "a.parquet")
    stop_after(2)
    with pytest.raises(StoppedError):
        fit_numbers(folder, path)
    for table, target, drop in (
        (other, "y", ["ill", "events"]),
        (folder, "events", ["ill", "y"]),
        (folder, "y", ["ill"]),
        (rows, "y", ["ill", "events"]),
    ):
        with pytest.raises(
            ValueError, match=r"belongs to another fit.* Pass another folder, or delete"
        ):
            regressor().fit(table, target, drop=drop, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another fit"):
        regressor().fit(folder, "y", sample_weight="events", drop=["ill"], checkpoint=path)
    in_memory = tmp_path / "in memory"
    X, y = rows[["x", "z"]], rows["y"]
    stop_after(2)
    with pytest.raises(StoppedError):
        regressor().fit(X, y, checkpoint=in_memory)
    for others in ((X[::-1], y), (X, y + 1.0), (X, y, np.full(len(y), 2.0)), (X[["x"]], y)):
        with pytest.raises(ValueError, match="belongs to another fit"):
            regressor().fit(*others, checkpoint=in_memory)


def test_a_rewritten_file_is_other_data(rows, tmp_path, stop_after):
    data = tmp_path / "rows.parquet"
    rows.to_parquet(data)
    stop_after(2)
    with pytest.raises(StoppedError):
        fit_numbers(data, tmp_path / "run")
    rows.assign(x=-rows["x"]).to_parquet(data)
    os.utime(data, (1, 1))
    with pytest.raises(ValueError, match="belongs to another fit"):
        fit_numbers(data, tmp_path / "run")


def test_another_version_is_another_fit(folder, tmp_path, monkeypatch, stop_after):
    stop_after(2)
    with pytest.raises(StoppedError):
        fit_numbers(folder, tmp_path / "run")
    monkeypatch.setattr("lanam.sessions.__version__", "999.0")
    with pytest.raises(ValueError, match="another version of lanam than"):
        fit_numbers(folder, tmp_path / "run")


@pytest.mark.parametrize(
    "pairs", ["{('x', 'z'), ('z', 'city'), ('x', 'city')}", "np.array([[0, 1]])"]
)
def test_the_same_arguments_are_the_same_in_every_process(pairs, tmp_path):
    """The order of sets differs between processes."""
    line = (
        "import numpy as np; from lanam.checkpoints import Checkpoint; "
        f"Checkpoint({os.fspath(tmp_path / 'run')!r}, {{'pairs': {pairs}}}, 1)"
    )
    for seed in range(3):
        settings = {**os.environ, "PYTHONHASHSEED": str(seed)}
        subprocess.run([sys.executable, "-c", line], check=True, env=settings)


# Damaged files


@pytest.fixture
def stopped(folder, tmp_path, go_on, stop_after):
    """The folder of a fit that was stopped after six passes."""
    path = tmp_path / "run"
    stop_after(6)
    with pytest.raises(StoppedError):
        fit_classes(folder, path)
    go_on()
    return path


@pytest.fixture(scope="module")
def whole_classes(folder):
    """The model of a fit that was not stopped."""
    return fit_classes(folder)


class Boom:
    """An object that leaves a marker when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, (os.fspath(os.environ["LANAM_BOOM"]),)


def truncated(file):
    file.write_bytes(file.read_bytes()[:-30])


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))


def garbage(file):
    file.write_bytes(b"\x00garbage" * 50)


def emptied(file):
    file.write_bytes(b"")


def removed(file):
    file.unlink()


def pickled(file):
    file.write_bytes(pickle.dumps(Boom()))


def pickled_within(file):
    with np.load(file) as content:
        arrays = dict(content)
    arrays["array-0"] = np.array([Boom()], dtype=object)
    with file.open("wb") as out:
        np.savez(out, allow_pickle=True, **arrays)


def another_kind(file):
    with file.open("wb") as out:
        np.save(out, np.ones(3))


DAMAGES = [truncated, flipped, garbage, emptied, removed, pickled, pickled_within, another_kind]


def test_unpickling_leaves_a_marker(tmp_path, monkeypatch):
    monkeypatch.setenv("LANAM_BOOM", os.fspath(tmp_path / "boom"))
    pickle.loads(pickle.dumps(Boom()))
    assert (tmp_path / "boom").exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_passes_are_computed_again(
    damage, stopped, whole_classes, folder, tmp_path, monkeypatch
):
    path, whole = stopped, whole_classes
    marker = tmp_path / "boom"
    monkeypatch.setenv("LANAM_BOOM", os.fspath(marker))
    files = sorted(path.glob("pass-*.npz"))
    assert len(files) == 6
    damage(files[3])
    model = fit_classes(folder, path)
    assert same_bits(model, whole)
    assert model.plan_.passes == whole.plan_.passes - 3  # the damaged one and all that follow
    assert not marker.exists()
    assert fit_classes(folder, path).plan_.passes == 0  # it is complete again


def test_flipped_bits_are_detected(tmp_path):
    totals = (np.arange(5.0), np.array([[1, 2], [3, 4]]), np.array(7.0))
    Checkpoint(tmp_path / "run", {}, 1)("job", lambda: totals)
    (file,) = (tmp_path / "run").glob("pass-*.npz")
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    n_detected = 0
    for place in [*range(0, len(content), 7), *rng.integers(0, len(content), 100)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(damaged))
        totals_read = checkpoints._read(file, "job")
        n_detected += totals_read is None
        if totals_read is not None:  # a bit that is not read
            assert all(map(np.array_equal, totals_read, totals))
    assert n_detected > 100


def test_passes_of_another_job_are_not_read(tmp_path):
    Checkpoint(tmp_path / "run", {}, 1)("sum", lambda: (np.ones(1),))
    again = Checkpoint(tmp_path / "run", {}, 1)
    assert again("product", lambda: (np.zeros(1),))[0] == 0.0
    third = Checkpoint(tmp_path / "run", {}, 1)
    assert third("product", lambda: (np.ones(1),))[0] == 0.0
    assert third.n_read == 1


def test_two_fits_that_start_together_have_one_seed(tmp_path, monkeypatch):
    """The second one finds no header, and there is one when it writes its own."""
    path, write = tmp_path / "run", checkpoints.write_atomically
    first = []

    def late(*args, **options):
        monkeypatch.setattr(checkpoints, "write_atomically", write)
        first.append(Checkpoint(path, {"data": "a"}, 1))
        return write(*args, **options)

    monkeypatch.setattr(checkpoints, "write_atomically", late)
    second = Checkpoint(path, {"data": "a"}, 2)
    assert first[0].seed == second.seed == 1


def test_after_a_computed_pass_no_more_are_read(tmp_path):
    first = Checkpoint(tmp_path / "run", {}, 1)
    for value in (1.0, 2.0, 3.0):
        first("sum", lambda value=value: (np.array(value),))
    (tmp_path / "run" / "pass-00002.npz").unlink()
    again = Checkpoint(tmp_path / "run", {}, 1)
    values = [float(again("sum", lambda: (np.array(9.0),))[0]) for _ in range(3)]
    assert values == [1.0, 9.0, 9.0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 99, "about": "", "seed": 1}',
        '{"format": 1, "seed": 1}',
        "\xff",
    ],
)
def test_a_damaged_header_is_refused(content, stopped, folder):
    path = stopped
    (path / "checkpoint.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"run cannot be read \(.*\): delete the folder, or pass an"
    ):
        fit_classes(folder, path)


def test_a_folder_of_other_files_is_an_error(folder, tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    (path / "cat.png").write_bytes(b"cat")
    with pytest.raises(ValueError, match="photos is there, and it is no checkpoint: pass a folder"):
        fit_classes(folder, path)
    with pytest.raises(ValueError, match="it is no checkpoint"):
        fit_classes(folder, path / "cat.png")
    assert [file.name for file in path.iterdir()] == ["cat.png"]
    (tmp_path / "new").mkdir()
    fit_classes(folder, tmp_path / "new")  # an empty folder is valid
    assert fit_classes(folder, str(tmp_path / "new")).plan_.passes == 0


def test_files_hold_no_code_and_no_rows(folder, tmp_path):
    fit_classes(folder, tmp_path / "run")
    header = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    assert set(header) == {"format", "lanam", "about", "seed"}
    for file in (tmp_path / "run").glob("pass-*.npz"):
        with np.load(file, allow_pickle=False) as content:
            assert all(content[name].dtype != object for name in content.files)
    assert not list((tmp_path / "run").glob("*.part"))


# Full disks


@pytest.mark.parametrize("first", [1, 5])
def test_a_full_disk_is_one_warning(first, whole_classes, folder, tmp_path, monkeypatch):
    whole = whole_classes
    written = []

    def write(path):
        written.append(path.name)
        if len(written) >= first:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return writing(path)

    writing = checkpoints.open_atomically
    monkeypatch.setattr(checkpoints, "open_atomically", write)
    with pytest.warns(
        UserWarning, match=r"run can no longer be written \(.*No space.*goes on"
    ) as caught:
        model = fit_classes(folder, tmp_path / "run")
    assert len(caught) == 1
    assert len(written) == first
    assert same_bits(model, whole)
    monkeypatch.undo()
    again = fit_classes(folder, tmp_path / "run")  # the files written before are valid
    assert same_bits(again, whole)
    assert again.plan_.passes == whole.plan_.passes - (first - 1)


def test_a_folder_that_cannot_be_written_is_an_error_before_the_fit(folder, tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises((OSError, ValueError), match="file"):
        fit_classes(folder, tmp_path / "file" / "run")
