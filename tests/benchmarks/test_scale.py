"""The benchmark of scale: made-up tables, the unit of time, what is kept, and the page; few rows."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")
pq = pytest.importorskip("pyarrow.parquet", reason="tables are files of Parquet")

from benchmarks import child, memory  # noqa: E402
from benchmarks.peers import Fitted, Prediction  # noqa: E402
from benchmarks.scale import __main__ as command  # noqa: E402
from benchmarks.scale import clock, cluster, data, fits, reference, run, targets, worker  # noqa: E402
from benchmarks.scale.cells import PARTS, Cell, Results, Sizes, cells  # noqa: E402
from benchmarks.scale.figures import draw_all  # noqa: E402
from benchmarks.scale.growth import Series, all_series  # noqa: E402
from benchmarks.scale.page import write_page  # noqa: E402

SIZES = Sizes()


def made_up_answer(cell):
    """An answer of the right kind: peers are slow, two workers 1.9 times as fast as one."""
    kept = {"code": "abc1234", "started": "2026-11-16T10:00:00+00:00", "conditions": "2 threads."}
    if cell.work == "reference":
        return kept | {"seconds": 3.0, "whole_seconds": 4.0}
    if cell.work == "workers":
        seconds = 8.0 if cell.workers == 1 else 8.0 / 1.9
        told = {"pass_seconds": seconds / 4, "passes_seconds": seconds, "fit_seconds": seconds + 2}
        return kept | told | {"worker_bytes": 9e8, "jobs": {}}
    if cell.work == "agreement":
        difference = {"mean": 1e-12 if cell.stepped else 2e-3, "std": 1e-4, "evidence": 1e-9}
        return kept | {"places": {"files": difference, "Dask, 2 workers": difference}}
    factor = {"lanam": 1, "lanam-auto": 4, "ebm": 60, "ebm-pairs": 400, "lightgbm": 7}[cell.model]
    columns = (cell.columns / 10) ** 1.4
    seconds = (0.2 + 8e-7 * cell.rows * (3 if cell.target == "ill" else 1)) * factor * columns
    seconds *= 1.15 if cell.source == "files" else 1
    if cell.model in run.PEERS and seconds > 300:
        return kept | {"cut": 300.0}
    bytes_ = 2.2e8 + (160.0 * cell.rows if cell.source == "memory" else 5e8 * cell.rows / 1e7)
    told = {"fit_seconds": seconds, "peak_bytes": bytes_, "summed_bytes": bytes_ + 1.8e8}
    told |= {"reference_seconds": 3.0, "whole_reference_seconds": 4.0, "passes": 3}
    told |= {"nll": 0.7262, "nll_truth": 0.7260, "recovered": 0.9999, "worst_effect": 0.004}
    told |= {"terms_active": 8, "pairs_active": 0}
    return kept | told | {"jobs": {"sums": {"passes": 2, "seconds": 4.0}}}


@pytest.fixture
def measured(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    for part in PARTS:
        for cell in cells(part, SIZES):
            results.add(cell, made_up_answer(cell))
    return results


# the made-up tables


def test_a_folder_holds_the_rows_that_are_drawn_in_memory(tmp_path):
    folder = data.make_folder(tmp_path, 1_003, 12, "ill")
    files = sorted(folder.iterdir())
    assert len(files) == 2
    sizes = [
        pq.ParquetFile(path).metadata.row_group(k).num_rows
        for path in files
        for k in range(pq.ParquetFile(path).num_row_groups)
    ]
    assert sizes == data.group_sizes(1_003) == [251, 251, 251, 250]
    frame = pd.read_parquet(folder)
    assert list(frame) == [*data.names(12), "ill"]  # no other target to learn from
    X, y = data.in_memory(1_003, 12, "ill")
    np.testing.assert_array_equal(frame[data.names(12)], X)
    np.testing.assert_array_equal(frame["ill"], y)
    assert set(y) == {0, 1}


def test_ten_million_rows_are_many_groups_in_several_files():
    assert data.group_sizes(10_000_000) == [250_000] * 40


def test_a_folder_is_made_once_and_one_cut_short_is_made_again(tmp_path, monkeypatch):
    folder = data.make_folder(tmp_path, 100, 10, "y")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert data.make_folder(tmp_path, 100, 10, "y") == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before

    def interrupted(path, tables):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(data, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.make_folder(tmp_path, 200, 10, "y")
    assert len(pd.read_parquet(data.make_folder(tmp_path, 200, 10, "y"))) == 200


def test_the_truth_is_a_sum_of_functions_of_unit_variance_and_two_columns_are_useless():
    rows = data.held_out(40_000, 10)
    effects = np.column_stack([data.effect(rows.X, column) for column in range(10)])
    np.testing.assert_allclose(effects.sum(axis=1), rows.signal, atol=1e-12)
    assert rows.signal.std() == pytest.approx(1.0, abs=0.03)
    assert (rows.y - rows.signal).std() == pytest.approx(data.NOISE, abs=0.01)
    assert (effects.std(axis=0)[:4] > 0.3).all()
    assert (effects[:, 8:] == 0).all()
    weak = effects.std(axis=0)[4:8]
    assert ((weak > 0.01) & (weak < 0.1)).all()
    # correlated, and of three kinds: any values, within 0 and 1, positive and skewed
    assert np.corrcoef(rows.X[:, 0], rows.X[:, 3])[0, 1] == pytest.approx(data.COMMON, abs=0.02)
    assert rows.X[:, 0].min() < 0
    assert 0 < rows.X[:, 1].min() < rows.X[:, 1].max() < 1
    assert 0 < rows.X[:, 2].min() < np.median(rows.X[:, 2]) < rows.X[:, 2].mean()


def test_held_out_rows_are_of_no_folder():
    X, _ = data.in_memory(1_000, 10, "y")
    assert not np.isin(data.held_out(250, 10).X[:, 0], X[:, 0]).any()  # as many as a group has


def test_stepped_columns_have_no_more_values_than_knots():
    rows = data.held_out(50_000, 10, stepped=True)
    counts = [len(np.unique(column)) for column in rows.X.T]
    assert max(counts) <= data.STEPS + 1 < 256
    assert len(np.unique(data.held_out(50_000, 10).X[:, 0])) == 50_000


def test_the_same_rows_can_be_cut_otherwise(tmp_path):
    folder = data.make_folder(tmp_path, 100, 10, "y")
    other = data.cut_anew(folder, 30)
    assert pq.ParquetFile(other / "all.parquet").num_row_groups == 4
    pd.testing.assert_frame_equal(pd.read_parquet(other), pd.read_parquet(folder))


# the unit of time


@pytest.mark.parametrize("threads", [1, 2])
def test_the_reference_pass_reads_all_rows_and_sorts_each_column(tmp_path, threads):
    folder = data.make_folder(tmp_path, 1_003, 10, "y")
    X, _ = data.in_memory(1_003, 10, "y")
    first = 0
    for columns in reference.sorted_by_chunks(folder, 10, threads):
        these = slice(first, first := first + len(columns[0]))
        np.testing.assert_array_equal(np.column_stack(columns), np.sort(X[these], axis=0))
    assert first == 1_003
    wholes = list(reference.sorted_wholes(folder, 10, threads))
    np.testing.assert_array_equal(np.column_stack(wholes), np.sort(X, axis=0))
    row = reference.measure_reference(folder, 10, threads, whole=True)
    assert row["seconds"] > 0
    assert row["whole_seconds"] > 0


# passes, counted from outside


def double(value):
    return 2 * value


class Inner:
    def total(self, job, merge=None):
        return job(1)


class Outer:
    def total(self, job, merge=None):
        return Inner().total(job)


def test_passes_are_clocked_once_and_can_be_done_again(monkeypatch):
    monkeypatch.setattr(clock, "holders", lambda: [Inner, Outer])
    original = Inner.total
    with clock.clocked() as passes:
        assert Outer().total(double) == 2
        assert Inner().total(job=double) == 2
    assert Inner.total is original
    assert [one.job for one in passes] == ["double", "double"]
    assert passes[0].again() == 2
    assert len(passes) == 2
    told = clock.by_job(passes)
    assert told["double"]["passes"] == 2
    assert told["double"]["seconds"] == sum(one.seconds for one in passes)


def encode(chunk):
    from lanam.core.rows.tables import EncodedRows

    columns = [np.asarray(chunk.frame[name]) for name in data.names(10)]
    y = np.asarray(chunk.frame["y"])
    return EncodedRows(np.column_stack(columns), y, np.ones(len(y)), chunk.number)


def sums(tables):
    return tuple(np.sum([table.columns.sum(axis=0) for table in tables], axis=0)[None])


class Summing:
    """Passes over rows as a fit does, by the library's own engines, and learns nothing."""

    passes = 4

    def __init__(self, cell):
        self.plan_ = self

    def fit(self, table, target):
        from lanam.engines.dask import DaskSource
        from lanam.engines.files import open_files

        source = open_files(table) if isinstance(table, str) else DaskSource(table)
        tables = source.encoded([*data.names(10), target], encode)
        for _ in range(3):
            (self.total,) = tables.total(sums)
        return self


@pytest.fixture
def summing(monkeypatch):
    models = []

    def estimator(cell):
        models.append(Summing(cell))
        return models[-1]

    for module in (fits, cluster):
        monkeypatch.setattr(module, "estimator", estimator)
        monkeypatch.setattr(module, "ours", lambda model: Fitted(None, info={}, model=model))
        monkeypatch.setattr(module, "truth", lambda fitted, cell: {"recovered": 0.0})
    return models


def test_workers_are_measured_on_the_passes_of_the_fit(summing, tmp_path):
    pytest.importorskip("distributed", reason="Dask's workers")
    folder = data.make_folder(tmp_path, 1_000, 10, "y")
    row = cluster.measure_workers(Cell("workers", rows=1_000, workers=2), folder)
    np.testing.assert_allclose(summing[0].total, data.in_memory(1_000, 10, "y")[0].sum(axis=0))
    assert row["jobs"]["sums"]["passes"] == 3
    assert row["passes"] == 4  # as the model says
    assert row["pass_job"] == "sums"
    assert row["pass_seconds"] > 0
    assert row["passes_seconds"] <= row["fit_seconds"]
    assert row["worker_bytes"] > 0


def test_a_fit_from_files_is_measured(summing, tmp_path):
    folder = data.make_folder(tmp_path, 1_000, 10, "y")
    row = fits.measure_fit(Cell("fit", rows=1_000), folder)
    assert row["jobs"]["sums"]["passes"] == 3
    assert row["passes"] == 4
    assert row["fit_seconds"] > 0
    assert row["summed_bytes"] >= row["peak_bytes"] > row["extra_bytes"]
    np.testing.assert_allclose(summing[0].total, data.in_memory(1_000, 10, "y")[0].sum(axis=0))


# truth


@pytest.mark.parametrize("target", ["y", "ill"])
def test_the_truth_recovers_all_of_itself_and_the_mean_nothing(target):
    cell = Cell("fit", "lightgbm", "memory", target, rows=1_000)

    def saying(signal):
        if target == "y":
            return Prediction(signal, np.full(len(signal), data.NOISE))
        return Prediction(1 / (1 + np.exp(-data.LOG_ODDS * signal)))

    def knowing(X):
        return saying(sum(data.effect(X, column) for column in range(10)))

    row = fits.truth(Fitted(knowing), cell)
    assert row["recovered"] == pytest.approx(1.0)
    assert row["nll"] == pytest.approx(row["nll_truth"])
    ignorant = fits.truth(Fitted(lambda X: saying(np.zeros(len(X)))), cell)
    assert ignorant["recovered"] == pytest.approx(0.0, abs=0.01)
    assert ignorant["nll"] > ignorant["nll_truth"]


@pytest.mark.parametrize("target", ["y", "ill"])
def test_the_worst_function_is_found(target):
    cell = Cell("fit", "lanam", "memory", target, rows=1_000)
    factor = 1.0 if target == "y" else data.LOG_ODDS

    def effect(X, column):  # a shift is no error, a wrong slope is
        right = factor * data.effect(X, column) + 5.0
        return right + (0.1 * factor * X[:, 0] if column == 3 else 0.0), None

    fitted = Fitted(lambda X: Prediction(np.full(len(X), 0.5), np.ones(len(X))), effect=effect)
    assert fits.truth(fitted, cell)["worst_effect"] == pytest.approx(0.1, abs=0.01)


# cells and what is kept


def test_results_are_kept_line_by_line_and_the_later_counts(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    cell = Cell("fit", rows=100)
    results = Results(path)
    assert results.get(cell) is None
    results.add(cell, {"fit_seconds": 1.0})
    results.add(cell, {"fit_seconds": 2.0})
    results.add(replace(cell, rows=200), {"error": "no"})
    assert len(path.read_text().splitlines()) == 3
    again = Results(path)
    assert again.get(cell)["fit_seconds"] == 2.0
    assert again.get(replace(cell, rows=200))["error"] == "no"
    assert again.get(replace(cell, threads=2)) is None


def test_quick_is_a_hundredth_and_the_sweep_ends_at_the_rows_asked_for():
    assert SIZES.sweep == [10_000, 100_000, 1_000_000, 10_000_000]
    quick = Sizes(quick=True)
    assert quick.sweep == [100, 1_000, 10_000, 100_000]
    assert quick.agreement == 1_000
    assert Sizes(rows=2_000_000).most == Sizes(rows=2_000_000).sweep[-1] == 2_000_000
    in_memory = [c for c in cells(3, SIZES) if c.source == "memory" and c.model == "lanam"]
    assert max(cell.rows for cell in in_memory) == 1_000_000
    assert {cell.columns for cell in cells(3, SIZES)} == {10, 30, 100, 300}


class Recorder(run.Runner):
    """Answers without a process; a peer's seconds are its rows by a thousand."""

    def ask(self, cell, folder=None, limit=None):
        asked.append(cell)
        if cell.work == "reference":
            return {"seconds": float(len(asked)), "whole_seconds": 1.0}
        return {"fit_seconds": cell.rows / 1000}


asked = []


@pytest.fixture
def runner(tmp_path):
    asked.clear()
    return Recorder(Results(tmp_path / "results.jsonl"), tmp_path, limit=1.0)


def test_a_fit_from_files_has_a_reference_pass_before_and_after(runner):
    row = runner.measure(Cell("fit", rows=100))
    assert [cell.work for cell in asked] == ["reference", "fit", "reference"]
    assert row["references"] == [1.0, 3.0]
    assert row["reference_seconds"] == 2.0


def test_a_peer_that_took_too_long_is_not_tried_on_more(runner):
    base = Cell("fit", "ebm", "memory")
    runner.run(replace(base, rows=rows) for rows in (500, 2_000, 3_000))
    runner.run([replace(base, rows=2_000, columns=30), replace(base, model="lightgbm", rows=900)])
    assert [(cell.model, cell.rows) for cell in asked] == [
        ("ebm", 500),
        ("ebm", 2_000),
        ("lightgbm", 900),
    ]
    assert runner.results.get(replace(base, rows=3_000))["cut"] == 1.0
    assert runner.results.get(replace(base, rows=500))["fit_seconds"] == 0.5
    # with more patience it is tried again, whatever it did on less
    Recorder(runner.results, runner.data, limit=5.0).run([replace(base, rows=3_000)])
    assert runner.results.get(replace(base, rows=3_000))["fit_seconds"] == 3.0


def test_what_is_measured_stays_and_what_failed_is_tried_again(runner):
    cell, failed = Cell("fit", rows=100, source="memory"), Cell("fit", rows=200, source="memory")
    runner.results.add(cell, {"fit_seconds": 9.0})
    runner.results.add(failed, {"error": "out of luck"})
    runner.run([cell, failed, cell])
    assert asked == [failed]
    assert {"code", "started", "conditions"} <= set(runner.results.get(failed))
    runner.run([cell, cell], again=True)
    assert asked == [failed, cell]


def test_a_child_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    (tmp_path / "broken.py").write_text("raise ValueError('no rows')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert child.ask("slow", [], 1, limit=0.5) == {"cut": 0.5}
    assert child.ask("broken", [], 1) == {"error": "ValueError: no rows"}


def test_the_worker_measures_a_fit_in_memory():
    cell = Cell("fit", "lightgbm", "memory", rows=2_000)
    row = child.ask(run.WORKER, [json.dumps(vars(cell)), ""], 1)
    assert row.get("error") is None
    assert row["fit_seconds"] > 0
    assert row["peak_bytes"] > row["extra_bytes"] >= 0
    assert 0.8 < row["recovered"] < 1
    assert row["nll"] > row["nll_truth"]


def test_unknown_work_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown work 'rest'"):
        worker.measure(Cell("rest"), tmp_path)


# growth, targets and the page


def test_slopes_are_of_logarithms():
    series = Series("lanam", "files", "y", (10, 100, 1000), (1.0, 1.0, 100.0))
    assert series.slope == pytest.approx(1.0)
    assert series.last_slope == pytest.approx(2.0)
    assert math.isnan(Series("lanam", "files", "y", (10,), (1.0,)).slope)


def test_series_hold_what_was_measured_and_where_it_was_cut(measured):
    found = {one.title: one for one in all_series(measured, SIZES, "rows")}
    assert found["lanam, Parquet"].sizes == tuple(SIZES.sweep)
    assert found["lanam, in memory"].sizes == tuple(SIZES.sweep[:3])
    assert found["EBM with pairs"].cut == (1_000_000, 10_000_000)
    along = {one.title: one for one in all_series(measured, SIZES, "columns")}
    assert along["lanam, Parquet"].sizes == (10, 30, 100, 300)
    assert "lanam, Parquet, Bernoulli" not in along


def judged(results):
    return {one.requirement: one.holds for one in targets.verdicts(results, SIZES)}


def test_a_row_pass_is_compared_with_the_same_job_only(measured):
    one, _ = (c for c in cells(4, SIZES) if c.target == "y")
    assert targets.speed_up(measured, SIZES, "y", "pass_seconds") > 1
    measured.add(one, made_up_answer(one) | {"pass_job": "another"})
    assert targets.speed_up(measured, SIZES, "y", "pass_seconds") is None
    assert targets.speed_up(measured, SIZES, "y", "fit_seconds") > 1


def test_memory_is_that_of_all_processes_at_one_moment():
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("the kernel does not tell")
    code = "import time; held = bytearray(b'x') * 100_000_000; print(flush=True); time.sleep(60)"
    with memory.FamilyPeak(every=0.01) as family:
        before = memory.family_bytes()
        for _ in range(2):  # one after the other: two peaks, never at once
            command = [sys.executable, "-c", code]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                assert memory.children_peak_bytes() > 1e8
                assert memory.family_bytes() - before > 0.99e8
                process.kill()
    assert 0.99e8 < family.bytes - before < 1.5e8


def test_targets_are_judged_by_the_figures(measured):
    assert len(judged(measured)) == 8
    # Gaussian: 9.4 s in passes of 4 s; Bernoulli: 27.8 s
    assert all(judged(measured).values())
    gaussian, bernoulli = (c for c in cells(2, SIZES) if c.model == "lanam")
    measured.add(gaussian, made_up_answer(gaussian) | {"fit_seconds": 16.1})
    measured.add(bernoulli, made_up_answer(bernoulli) | {"peak_bytes": 1.51e9})
    one, two = (c for c in cells(4, SIZES) if c.target == "ill")
    measured.add(two, made_up_answer(one) | {"passes_seconds": 5.2})  # of 8.0: 1.54
    exact = next(c for c in cells(5, SIZES) if c.stepped)
    measured.add(exact, made_up_answer(exact) | {"places": {"files": {"error": "no"}}})
    missed = [requirement for requirement, holds in judged(measured).items() if holds is False]
    assert len(missed) == 4
    for words in (
        "Gaussian: at most 4",
        "Bernoulli: peak",
        "Bernoulli: two Dask",
        "exact sketches",
    ):
        assert any(words in requirement for requirement in missed)


def test_a_target_without_its_cells_is_not_met(tmp_path):
    empty = Results(tmp_path / "none.jsonl")
    assert set(judged(empty).values()) == {None}
    assert "not run" in targets.target_table(targets.verdicts(empty, SIZES))


def test_the_page_tells_everything(measured, tmp_path):
    broken = cells(2, SIZES)[-1]
    measured.add(broken, made_up_answer(broken) | {"error": "ValueError: a | b"})
    pictures = draw_all(measured, SIZES, tmp_path / "pictures", 300.0)
    assert all(path.stat().st_size > 10_000 for path in pictures.values())
    page = write_page(measured, SIZES, 300.0, pictures, "assets")
    for words in (
        "2 threads.",
        "Run on 2026-11-16. Our cells are all of commit `abc1234`.",
        "failed: fit lanam-auto files ill 10,000,000 x 10**: ValueError: a / b",
        "**4.00 s**",
        "10,000,000 rows of 10 numeric columns",
        "Passes over the rows, by purpose",
        "> 300",
        "Fitted slopes",
        "Two Dask workers against one",
        "1.90",
        "Dask, 2 workers",
        "![Seconds of a fit against rows and columns.](assets/scale-time.png)",
        "assets/scale-memory.png",
    ):
        assert words in page, words
    assert "missed" not in page


def test_the_command_reports_what_there_is(tmp_path, capsys):
    arguments = ["--quick", "--rows", "40000", "--threads", "1", "--out", str(tmp_path / "out")]
    page = tmp_path / "docs" / "results" / "scale.md"
    figures = tmp_path / "docs" / "assets"
    command.main([*arguments, "--only", "1", "--page", str(page), "--figures", str(figures)])
    told = capsys.readouterr().out
    assert "Reading 400 rows of 10 numeric columns" in told
    assert "6 of 6 measurements not run" in told
    assert page.read_text().strip() == told.strip()
    command.main([*arguments, "--tables-only"])
    assert capsys.readouterr().out == told
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 1


def test_the_command_refuses_unknown_parts(capsys):
    with pytest.raises(SystemExit):
        command.parse(["--only", "2,7"])
    assert "parts are 1, 2, 3, 4, 5, not '2,7'" in capsys.readouterr().err
    assert command.parse(["--only", "4,2"]).only == [2, 4]
