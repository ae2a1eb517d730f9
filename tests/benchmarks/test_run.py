"""The runner: cells are kept, not run twice, run again when asked to; failures and limits are told."""

import json
import os
import time

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import run  # noqa: E402
from benchmarks.cells import Cell, Store  # noqa: E402
from benchmarks.data.sets import Dataset  # noqa: E402
from benchmarks.experiments import EXPERIMENTS, PAPER, Source, redundancy, toy  # noqa: E402
from benchmarks.experiments.interface import moved_along  # noqa: E402
from benchmarks.peers import Fitted, Prediction, all_peers  # noqa: E402

QUICK = ["--models", "linear,mean"]


def started(folder, *options):
    run.main(["smoke", *QUICK, "--folds", "1", "--out", str(folder), *options])
    return pd.read_csv(folder / "results.csv")


def test_cells_come_back_as_they_were_kept(tmp_path):
    store, cell = Store(tmp_path), Cell("uci", "yacht", "linear", 3)
    assert store.read(cell) is None
    assert store.arrays(cell) == {}
    row = {"nll": np.float64(1.5), "n_iter": 3, "rmse": float("nan"), "warnings": ""}
    store.write(cell, row, {"mean": np.arange(3.0)})
    assert store.read(cell) == {
        **{"experiment": "uci", "set": "yacht", "model": "linear", "fold": 3},
        **{"nll": 1.5, "n_iter": 3, "warnings": ""},
    }
    np.testing.assert_array_equal(store.arrays(cell)["mean"], [0.0, 1.0, 2.0])
    assert list(store.cells()) == [cell]
    store.write(cell, {"error": "no luck"}, {})
    assert store.arrays(cell) == {}


def test_finished_cells_are_not_run_again(tmp_path, capfd):
    first = started(tmp_path)
    assert len(first) == 4
    assert "error" not in first
    assert "0 of 4 cells are finished" in capfd.readouterr().err
    second = started(tmp_path)
    assert "4 of 4 cells are finished; 0 to run" in capfd.readouterr().err
    pd.testing.assert_frame_equal(first, second)
    third = started(tmp_path, "--again", "--sets", "numbers")
    assert "0 of 2 cells are finished" in capfd.readouterr().err
    assert len(third) == 4
    same = ["nll", "rmse", "auroc"]
    pd.testing.assert_frame_equal(first[same], third[same])


def test_a_run_goes_on_from_its_table_alone(tmp_path, capfd):
    first = started(tmp_path / "first")
    kept = Store(tmp_path / "second")
    kept.write(Cell("smoke", "numbers", "linear", 0), {"nll": 7.0}, {})
    second = started(tmp_path / "second", "--take", str(tmp_path / "first" / "results.csv"))
    told = capfd.readouterr().err
    assert "3 cells taken" in told  # one was here already
    assert "4 of 4 cells are finished; 0 to run" in told
    same = ["set", "model", "fold", "nll", "auroc"]
    here = second["nll"] != 7.0
    pd.testing.assert_frame_equal(first[same][here], second[same][here])


def test_a_fit_that_two_experiments_share_is_made_once(tmp_path, capfd):
    store = Store(tmp_path)
    store.write(Cell("toy", "toy", "lanam", 0), {"nll": 1.5}, {"mean": np.arange(3.0)})
    store.write(Cell("toy", "toy", "nam", 0), {"error": "no luck"}, {})
    own = Cell("inference", "toy", "lanam", 0)
    run.main(["inference", "--models", "lanam", "--folds", "1", "--out", str(tmp_path)])
    assert "1 of 1 cells are finished; 0 to run" in capfd.readouterr().err
    known = {"experiment": "inference", "set": "toy", "model": "lanam", "fold": 0}
    assert store.read(own) == known | {"nll": 1.5}
    np.testing.assert_array_equal(store.arrays(own)["mean"], [0.0, 1.0, 2.0])
    # neither a failure nor what stands alone is taken over
    assert not run.taken_over(Cell("inference", "toy", "nam", 0), store)
    assert not run.taken_over(Cell("inference", "toy", "mean-field", 0), store)
    assert not run.taken_over(Cell("toy", "toy", "lanam", 1), store)


@pytest.mark.parametrize("name", [name for name in PAPER if EXPERIMENTS[name].same_as])
def test_experiments_that_share_fits_look_at_the_same_things(name):
    own = EXPERIMENTS[name]
    other = EXPERIMENTS[own.same_as]
    assert (own.load, own.observe) == (other.load, other.observe)
    assert set(own.sets) <= set(other.sets)
    assert set(own.models) & set(other.models)


def test_failed_cells_are_kept_and_run_again_only_when_asked_to(tmp_path, capfd):
    store, cell = Store(tmp_path), Cell("smoke", "numbers", "linear", 0)
    store.write(cell, {"error": "no luck"}, {})
    results = started(tmp_path)
    assert results["error"].dropna().tolist() == ["no luck"]
    assert "1 of them failed" in capfd.readouterr().err
    assert "error" not in started(tmp_path, "--retry")


def test_a_cell_has_time_memory_and_where_it_comes_from(tmp_path):
    results = started(tmp_path, "--sets", "classes", "--threads", "1")
    assert {"fit_seconds", "predict_seconds", "peak_bytes", "code", "started"} <= set(results)
    assert {"nll", "auroc", "auprc", "ece", "rbs"} <= set(results)
    assert results["threads"].eq(1).all()
    assert "Python" in (tmp_path / "conditions.txt").read_text()
    arrays = Store(tmp_path).arrays(Cell("smoke", "classes", "linear", 0))
    assert set(arrays) == {"y", "mean"}
    assert len(arrays["y"]) == 100


def test_models_that_are_not_installed_are_told(tmp_path, capfd):
    run.main(["smoke", "--models", "mean,public", "--folds", "1", "--out", str(tmp_path)])
    assert "SKIPPED public: no --public-python given" in capfd.readouterr().err
    assert "SKIPPED public" in (tmp_path / "conditions.txt").read_text()
    assert set(pd.read_csv(tmp_path / "results.csv")["model"]) == {"mean"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "unknown: nonsense; known: depth, icu"),
        (["smoke", "--models", "nonsense"], "unknown: nonsense; known: .*lanam"),
        (["smoke", "--sets", "nonsense"], "no experiment .* has the sets"),
    ],
)
def test_unknown_names_are_refused(tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=message):
        run.main([*arguments, "--out", str(tmp_path)])


@pytest.mark.parametrize(("text", "folds"), [("2", [0, 1]), ("0,3", [0, 3]), ("3,", [3])])
def test_folds_are_so_many_or_those(text, folds):
    assert run.parse(["--folds", text]).folds == folds


def test_no_fold_at_all(capsys):
    with pytest.raises(SystemExit):
        run.parse(["--folds", "0"])
    assert "the first alone is 1 or 0," in capsys.readouterr().err


def dies(task):
    os._exit(9)


def sleeps(task):
    time.sleep(60)


CELL = Cell("smoke", "numbers", "mean", 0)


def test_a_process_that_dies_is_told_and_its_cell_is_not_finished(tmp_path):
    task = run.Task(CELL, Source(), Store(tmp_path), 1, 1, "", None)
    message = "DIED, its process ended with code 9"
    assert list(run.carry_out([task], 1, None, dies)) == [(CELL, message)]
    assert Store(tmp_path).read(CELL) is None


def test_a_cell_over_the_limit_has_failed(tmp_path):
    task = run.Task(CELL, Source(), Store(tmp_path), 1, 1, "", None)
    assert list(run.carry_out([task], 1, 0.1, sleeps)) == [(CELL, None)]
    assert Store(tmp_path).read(CELL)["error"] == "given up after 0 s"


def test_many_deaths_in_a_row_end_a_run(tmp_path, monkeypatch, capfd):
    def all_die(tasks, jobs, limit):
        return ((task.cell, "DIED") for task in tasks)

    monkeypatch.setattr(run, "carry_out", all_die)
    with pytest.raises(SystemExit, match="5 processes died in a row"):
        run.main(["smoke", *QUICK, "--out", str(tmp_path)])
    assert "0 cells" in capfd.readouterr().err
    assert Store(tmp_path).collect().empty


def test_a_set_that_cannot_be_had_is_no_failure_of_models(tmp_path, capfd):
    arguments = ["uci", *QUICK, "--folds", "1", "--sets", "yacht", "--data", str(tmp_path / "none")]
    run.main([*arguments, "--out", str(tmp_path)])
    assert "SKIPPED uci on yacht: --data names" in capfd.readouterr().err
    assert "SKIPPED uci on yacht" in (tmp_path / "conditions.txt").read_text()
    assert Store(tmp_path).collect().empty


def test_a_cell_that_cannot_be_read_is_run_again(tmp_path, capfd):
    first = started(tmp_path)
    (path, *_) = tmp_path.glob("cells/*/*/linear/*.json")
    path.write_text('{"nll": 1')
    second = started(tmp_path)
    assert f"{path} cannot be read" in capfd.readouterr().err
    pd.testing.assert_frame_equal(first[["model", "nll"]], second[["model", "nll"]])


def test_models_for_those_who_name_them_run_only_then():
    every = run.parse([])
    cells, _ = run.plan(every, Source())
    ran = {(cell.experiment, cell.model) for cell in cells}
    assert not [m for m in EXPERIMENTS["uci"].named_only if ("uci", m) in ran]
    cells, _ = run.plan(run.parse(["uci", "--models", "lanam-smooth"]), Source())
    assert {cell.model for cell in cells} == {"lanam-smooth"}


def test_the_listing_names_every_experiment(capsys):
    run.main(["--list"])
    text = capsys.readouterr().out
    assert all(f"{name}: " in text for name in EXPERIMENTS)
    assert set(PAPER) == {"toy", "inference", "uci", "icu", "depth", "redundancy"}


# what experiments look at


def truth_itself(rows, column):
    mean = toy.TOY_FUNCTIONS[column](rows[:, column])
    return mean - centres[column], np.full(len(rows), 1e-9)


centres: list[float] = []


def test_the_toy_measures_functions_against_the_truth():
    data = toy.load_toy("toy", 0, Source())
    train = data.rows(slice(0, toy.ROWS))
    centres[:] = [f(train[:, d]).mean() for d, f in enumerate(toy.TOY_FUNCTIONS)]
    right = Fitted(lambda rows: Prediction(np.zeros(len(rows))), effect=truth_itself)
    row, arrays = toy.recovered(right, data, train)
    assert max(row[f"rmse_f{k}"] for k in range(1, 5)) < 1e-12
    assert row["coverage_f1"] == 1.0
    assert row["range_f4"] == 0.0
    for d in range(4):
        np.testing.assert_allclose(arrays[f"mean_{d}"], arrays[f"truth_{d}"])

    def wrong(rows, column):
        return truth_itself(rows, column)[0] + 1.0, np.full(len(rows), np.nan)

    row, _ = toy.recovered(Fitted(right.predict, effect=wrong), data, train)
    assert row["rmse_f2"] == pytest.approx(1.0)
    assert "coverage_f1" not in row


def test_the_sum_is_a_sum_and_can_be_left_out():
    whole = redundancy.load_sums("gap", 0, Source())
    X = whole.X
    np.testing.assert_allclose(X["sodium"] - X["chloride"] - X["bicarbonate"], X["gap"])
    without = redundancy.load_sums("gap-without", 0, Source())
    assert list(without.X.columns) == ["sodium", "chloride", "bicarbonate"]
    np.testing.assert_array_equal(whole.y, without.y)


def test_a_table_with_the_gap_has_one_column_a_measurement():
    names = ["Age", "Na_first", "Na_last", "HCO3_last", "HR_median", "HR_lowest"]
    frame = pd.DataFrame(np.arange(12.0).reshape(2, 6), columns=names)
    data = redundancy.with_gap(Dataset("x", "classification", frame, np.array([0, 1]), 1))
    assert list(data.X.columns) == ["Age", "Na_last", "HCO3_last", "HR_median", "Na-HCO3_last"]
    assert data.X["Na-HCO3_last"].tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("as_frame", [False, True])
def test_one_column_moves_and_the_others_stay(as_frame):
    X = np.arange(6.0).reshape(2, 3)
    rows = moved_along(pd.DataFrame(X, columns=list("abc")) if as_frame else X, 1, np.array([7, 8]))
    np.testing.assert_array_equal(np.asarray(rows), [[0, 7, 2], [0, 8, 2]])
    assert X[0, 1] == 1.0


def test_the_models_of_every_experiment_are_known():
    known = set(all_peers())
    for experiment in EXPERIMENTS.values():
        assert {*experiment.models, *experiment.named_only} <= known


def test_scores_are_plain_json(tmp_path):
    results = started(tmp_path)
    (path, *_) = sorted(tmp_path.glob("cells/*/*/*/*.json"))
    assert json.loads(path.read_text())["nll"] == pytest.approx(results["nll"].iloc[0])


def test_a_distribution_of_its_own_is_scored_as_such():
    """Intervals, densities and probabilities are asked for where mean and deviation do not say it all."""
    from benchmarks import runner
    from benchmarks.data.sets import Dataset
    from benchmarks.peers.lanam import LaplaceAdditive

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1200, 1))
    y = X[:, 0] + rng.exponential(size=1200)
    dataset = Dataset("skewed", "regression", X, y)
    train, test = np.arange(800), np.arange(800, 1200)

    def scored(**arguments):
        peer = LaplaceAdditive("one", interactions=0, **arguments)
        return runner.run_cell(dataset, 0, train, test, peer, 1)

    own, gaussian = scored(), scored(noise="constant")
    assert own["nll"] < gaussian["nll"] - 0.2
    assert own["qce"] < 0.5 * gaussian["qce"]
    assert own["rmse"] == pytest.approx(gaussian["rmse"])
