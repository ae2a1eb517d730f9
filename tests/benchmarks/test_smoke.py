"""Every model of the benchmark on two hundred rows, through the runner, as a user starts it."""

import os

import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import run  # noqa: E402
from benchmarks.experiments import EXPERIMENTS  # noqa: E402
from benchmarks.peers import all_peers  # noqa: E402

SMOKE = EXPERIMENTS["smoke"]
#: Needs an interpreter of its own, which a test machine does not have.
ELSEWHERE = {"public"}
#: By how much NLL may be worse than the control's: itself.
WORSE = {("mean", "numbers"): 1e-12, ("mean", "classes"): 1e-12}


#: Variants of another model here, in one setting: one task says whether the setting gets through, as the
#: other model runs both. Noise is of numbers only; what takes longest is where it takes less.
ONE_TASK = {
    "lanam-smooth": "numbers",
    "lanam-constant": "numbers",
    "lanam10-constant": "numbers",
    "lanam-auto": "classes",
    "lanam10-mi": "classes",
    "lanam10-gain": "numbers",
    "lanam10-paper": "classes",
    "ebm10": "numbers",
    "lightgbm-grid": "classes",
    "catboost": "classes",
    "oak2": "classes",
    "nam-relu-deep": "numbers",
    "nam-relu": "classes",
    "nam-gelu": "numbers",
    # lanam10-paper has the classes, the other NAMs both; test_networks fits the rest to both.
    "lanam-paper": "numbers",
    "nam": "classes",
    "deep-ensemble": "classes",
    "mean-field": "numbers",
}


def sets_of(name):
    return [ONE_TASK[name]] if name in ONE_TASK else list(SMOKE.sets)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All that is installed, a run a task into the same folder."""
    folder = tmp_path_factory.mktemp("smoke")
    for task in SMOKE.sets:
        models = ",".join(name for name in SMOKE.models if task in sets_of(name))
        cells = ["--sets", task, "--models", models, "--folds", "1"]
        run.main(["smoke", *cells, "--jobs", "2", "--out", str(folder)])
    return pd.read_csv(folder / "results.csv")


def installed():
    peers = all_peers()
    return [name for name in SMOKE.models if peers[name].missing() is None]


def test_every_registered_model_takes_part():
    # EBM with its own number of pairs is a setting of the benchmark of real tables.
    others = {"ebm-pairs"}
    assert set(SMOKE.models) == set(all_peers()) - others


@pytest.mark.skipif("CI" not in os.environ, reason="a user's machine may lack peers; CI's may not")
def test_nothing_is_missing_where_all_peers_are_meant_to_be():
    assert set(SMOKE.models) - set(installed()) == ELSEWHERE


@pytest.mark.parametrize("name", SMOKE.models)
def test_a_model_predicts_better_than_the_mean(results, name):
    if name not in installed():
        pytest.skip(all_peers()[name].missing())
    mine = results[results["model"] == name].set_index("set")
    assert sorted(mine.index) == sorted(sets_of(name))
    if "error" in mine:
        assert mine["error"].isna().all(), mine["error"].tolist()
    assert (mine["fit_seconds"] >= 0).all()
    assert (mine["peak_bytes"] >= 0).all()
    control = results[results["model"] == "mean"].set_index("set")
    for task in mine.index:
        better = control.loc[task, "nll"] - mine.loc[task, "nll"]
        assert better > -WORSE.get((name, task), 0.0)
