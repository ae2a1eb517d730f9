"""The benchmark of real tables: its data, metrics, adapters and verdicts, on made-up frames."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import levels, metrics, real_tables, real_tables_report, runner  # noqa: E402
from benchmarks.data import frames  # noqa: E402
from benchmarks.data.sets import Dataset  # noqa: E402
from benchmarks.environment import THREAD_VARIABLES, child_environment  # noqa: E402
from benchmarks.peers import Fitted, Prediction, all_peers  # noqa: E402
from benchmarks.peers.lightgbm import category_columns  # noqa: E402
from benchmarks.peers.linear import Linear  # noqa: E402
from benchmarks.peers.mean import Mean  # noqa: E402


def raw_frame(n_rows=240):
    """Strings with gaps, codes as categories, a number with gaps, a flag."""
    rng = np.random.default_rng(0)
    word = rng.choice(["red", "green", "blue"], n_rows)
    number = rng.standard_normal(n_rows)
    return pd.DataFrame(
        {
            "word": pd.Series(word).mask(rng.random(n_rows) < 0.1),
            "code": pd.Categorical(rng.integers(1, 5, n_rows)),
            "number": np.where(rng.random(n_rows) < 0.2, np.nan, number),
            "flag": rng.random(n_rows) < 0.5,
        }
    )


def raw_dataset(task, n_train=None):
    """A target of the task that depends on the words."""
    X = raw_frame()
    rng = np.random.default_rng(1)
    red = (X["word"] == "red").to_numpy(float)
    y = {
        # Noise, without which boosting goes on for thousands of rounds.
        "regression": red + 0.5 * rng.standard_normal(len(X)),
        "classification": (rng.random(len(X)) < 0.1 + 0.8 * red).astype(int),
        "counts": rng.poisson(np.exp(2 * red)),
        "multiclass": (red + rng.integers(0, 2, len(X))).astype(int),
    }[task]
    return Dataset("made-up", task, X, y, n_train)


@pytest.fixture
def data_directory(tmp_path):
    """Small files in the form of the raw sets, and one of the paper's sets."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "open"
    folder.mkdir()
    codes = {code: rng.integers(0, 3, 60) for code in frames.BIKE_CODES}
    bike = pd.DataFrame({**codes, "temp": rng.random(60), "casual": 1, "cnt": rng.poisson(5, 60)})
    bike.to_csv(folder / "bike_hour.csv", index=False)
    adult = pd.DataFrame(
        {"age": 30, "workclass": ["NA", "", "Private"], "income": ["<=50K", ">50K", ">50K"]}
    )
    adult.to_csv(folder / "adult.csv.gz", index=False)
    (tmp_path / "uci").mkdir()
    numbers = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    numbers.assign(y=numbers["a"] + 1).to_csv(tmp_path / "uci" / "wine.csv", index=False)
    return tmp_path


# metrics


def test_poisson_scores_by_hand():
    y, mean = np.array([0, 2]), np.array([1.0, 4.0])
    # log probabilities: -1 and 2 log 4 - 4 - log 2
    expected = (1 - 2 * math.log(4) + 4 + math.log(2)) / 2
    assert metrics.count_nll(y, mean, 1.0) == pytest.approx(expected)
    assert metrics.count_nll(y, mean, 1 + 1e-6) == pytest.approx(expected, abs=1e-5)  # its limit
    # deviances: 2 (1 - 0) and 2 (2 log(2/4) - 2 + 4)
    assert metrics.poisson_deviance(y, mean) == pytest.approx(1 + 2 * math.log(0.5) + 2)
    assert metrics.poisson_deviance(y, np.array([1e-300, 2.0])) == pytest.approx(0, abs=1e-11)
    assert np.isfinite(metrics.count_nll(np.array([1]), np.array([0.0]), 1.0))


def test_dispersed_counts_have_the_stated_mean_and_variance():
    mean = np.array([0.5, 20.0])
    counts = metrics.count_distribution(mean, 4.0)
    np.testing.assert_allclose(counts.mean(), mean)
    np.testing.assert_allclose(counts.var(), 4 * mean)
    y = counts.rvs((50_000, 2), random_state=0)
    # the kurtosis of the rare counts makes four standard errors 0.3
    assert metrics.residual_dispersion(y, np.broadcast_to(mean, y.shape)) == pytest.approx(
        4, abs=0.3
    )
    assert metrics.residual_dispersion(np.array([3, 3]), np.array([3.0, 3.0])) == 1
    # the true distribution has the least expected loss
    losses = {spread: metrics.count_nll(y[:, 1], mean[1], spread) for spread in (1, 2, 4, 8)}
    assert min(losses, key=losses.get) == 4


def test_count_intervals_hold_at_least_their_level():
    mean = np.full(20_000, 3.0)
    y = np.random.default_rng(0).poisson(mean)
    lower, upper = metrics.count_interval(mean, 1.0, 0.9)
    assert (lower[0], upper[0]) == (1, 6)
    assert 0.9 <= metrics.interval_coverage(y, lower, upper) <= 0.95  # P(1 <= y <= 6) is 0.917


def test_scores_of_several_classes_by_hand():
    y = np.array([0, 2])
    probabilities = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]])
    assert metrics.categorical_nll(y[:1], probabilities[:1]) == pytest.approx(math.log(2))
    assert np.isfinite(metrics.categorical_nll(y, probabilities))  # in spite of the zero
    assert metrics.accuracy(y, probabilities) == 0.5
    # top classes have 0.5 and 0.6, in bins of their own: |1 - 0.5| and |0 - 0.6|
    assert metrics.top_label_calibration_error(y, probabilities) == pytest.approx(0.55)


def test_average_precision_of_a_ranking():
    y, probability = np.array([0, 1, 1]), np.array([0.5, 0.9, 0.1])
    assert metrics.auprc(y, probability) == pytest.approx((1 + 2 / 3) / 2)
    assert np.isnan(metrics.auprc(np.zeros(2), np.array([0.1, 0.2])))


# data


def test_raw_sets_keep_words_gaps_and_types(data_directory):
    adult = frames.load_raw(data_directory, "adult")
    assert adult.X["workclass"].isna().tolist() == [False, True, False]  # NA is a word here
    assert (adult.task, adult.n_train) == ("classification", 32_561)
    assert adult.y.tolist() == [0, 1, 1]
    bike = frames.load_raw(data_directory, "bike_hour")
    integers = frames.load_raw(data_directory, "bike_hour_int")
    assert bike.task == integers.task == "counts"
    assert list(bike.X) == list(integers.X) == [*frames.BIKE_CODES, "temp"]  # without the leak
    assert (bike.X[frames.BIKE_CODES].dtypes == "category").all()
    assert (integers.X[frames.BIKE_CODES].dtypes == "int64").all()
    np.testing.assert_array_equal(bike.y, integers.y)


@pytest.mark.parametrize("as_frame", [False, True])
def test_gaps_are_as_many_as_asked_for_and_the_same_every_time(as_frame):
    X = np.arange(30_000.0).reshape(-1, 3)
    whole = Dataset("made-up", "regression", pd.DataFrame(X) if as_frame else X, X[:, 0])
    gapped = frames.with_gaps(whole, 0.2)
    missing = np.isnan(np.asarray(gapped.X))
    # four standard errors of a share of 0.2 among 10,000
    np.testing.assert_allclose(missing.mean(axis=0), 0.2, atol=0.016)
    np.testing.assert_array_equal(missing, np.isnan(np.asarray(frames.with_gaps(whole, 0.2).X)))
    np.testing.assert_array_equal(np.asarray(gapped.X)[~missing], X[~missing])
    assert not np.isnan(np.asarray(whole.X)).any()
    assert frames.with_gaps(whole, 0) is whole


def test_several_classes_are_additive_in_all_columns_but_the_last():
    data = frames.softmax_problem(20_000, 10_000)
    assert set(data.y) == set(range(5))

    def shares(column):  # of the classes by thirds of a column
        third = np.digitize(data.X[:, column], np.quantile(data.X[:, column], [1 / 3, 2 / 3]))
        return np.array([np.bincount(data.y[third == k]) / (third == k).sum() for k in range(3)])

    spread = [np.ptp(shares(column), axis=0).max() for column in range(6)]
    assert min(spread[:5]) > 0.05
    assert spread[5] < 0.025  # four standard errors of a difference of shares of 0.25 among 6,667


def test_small_sets_of_several_classes_come_with_scikit_learn():
    assert frames.load_classes("iris").X.shape == (150, 4)
    assert frames.load_classes("cultivars").X.shape == (178, 13)


def test_levels_have_the_effects_they_state():
    problem = frames.levels_problem(60_000, 50_000, 200)
    data = problem.data
    rest = data.y - np.sin(3 * data.X["x"])
    by_level = rest.groupby(data.X["level"]).agg(["mean", "size"]).loc[problem.names]
    deviation = (by_level["mean"] - problem.effects) * np.sqrt(by_level["size"])
    assert deviation.std() == pytest.approx(1, abs=0.2)  # four standard errors
    assert by_level["size"].max() > 5 * by_level["size"].min()
    assert data.n_train == 50_000


# adapters


def test_a_usual_split_is_the_only_one():
    data = raw_dataset("classification", n_train=200)
    ((fold, train, test),) = runner.folds_of(data, 5)
    assert fold == 0
    np.testing.assert_array_equal(np.concatenate([train, test]), np.arange(240))
    assert len(train) == 200


SCORES = {
    "regression": {"nll", "rmse", "coverage90", "width90"},
    "classification": {"nll", "auroc", "auprc", "ece"},
    "counts": {"nll", "deviance", "rmse", "coverage90", "width90"},
    "multiclass": {"nll", "accuracy", "ece"},
}


# Boosting with pairs is the same code with another setting: two classes (where it has pairs) and several
# (where it has none) say whether it gets through.
@pytest.mark.parametrize(
    ("model", "task"),
    [(model, task) for model in ("lightgbm", "ebm") for task in SCORES]
    + [("ebm-pairs", "classification"), ("ebm-pairs", "multiclass")],
)
def test_peers_take_raw_frames_of_every_task(task, model):
    peer = all_peers()[model]
    if peer.missing():
        pytest.skip(peer.missing())
    data = raw_dataset(task, n_train=200)
    ((fold, train, test),) = runner.folds_of(data, 1)
    rows = [runner.run_cell(data, fold, train, test, p, threads=1) for p in (peer, Mean())]
    for row in rows:
        assert "error" not in row
        assert all(np.isfinite(row[score]) for score in SCORES[task])
    assert rows[0]["nll"] < rows[1]["nll"]  # it has read the words


def test_linear_regression_knows_several_classes():
    data = frames.load_classes("iris")
    fitted = Linear().fit(data.X, data.y, data.task, 0, 1)
    probabilities = fitted.predict(data.X).mean
    assert probabilities.shape == (150, 3)
    assert metrics.accuracy(data.y, probabilities) > 0.9


def test_words_become_categories_with_the_levels_of_the_training_rows():
    X = raw_frame()
    prepare = category_columns(X[X["word"] != "blue"])
    prepared = prepare(X)
    assert set(prepared["word"].cat.categories) == {"red", "green"}
    unseen = (X["word"] == "blue") | X["word"].isna()
    np.testing.assert_array_equal(prepared["word"].isna(), unseen)
    others = ["code", "number", "flag"]
    pd.testing.assert_frame_equal(prepared[others], X[others])


def test_a_models_own_density_and_interval_are_what_counts():
    data = raw_dataset("counts", n_train=200)

    class Sure:
        name = "sure"

        def fit(self, X, y, task, seed, threads):
            def predict(rows):
                zero = np.zeros(len(rows))
                return Prediction(zero + 1.0, interval=(zero, zero + 1e6))

            return Fitted(predict, log_density=lambda rows, y: -7.0)

    ((fold, train, test),) = runner.folds_of(data, 1)
    row = runner.run_cell(data, fold, train, test, Sure(), threads=1)
    assert row["nll"] == 7.0
    assert row["coverage90"] == 1.0
    assert row["width90"] == 1e6


# levels


def test_effects_of_levels_are_held_against_the_truth():
    problem = frames.levels_problem(2_000, 300, 200)
    truth = pd.Series(problem.effects, index=problem.names)
    X = problem.data.rows(slice(300))
    centre = X["level"].map(truth).mean()

    def effect(rows, column):
        seen = rows["level"].isin(X["level"]).to_numpy()
        mean = rows["level"].map(truth).to_numpy() - centre
        return np.where(seen, mean, 100.0), np.full(len(rows), 0.1)

    fitted = Fitted(lambda rows: Prediction(rows["level"].map(truth).to_numpy()), effect=effect)
    answer = levels.truth_of_effects(problem, X, fitted)
    assert answer["unseen"] == 200 - X["level"].nunique() > 0
    assert answer["correlation"] == pytest.approx(1)
    assert (answer["band_coverage"], answer["unseen_band_coverage"]) == (1, 0)


def test_the_levels_worker_answers_in_json():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.levels", "mean", "3000", "40", "1"],
        capture_output=True,
        text=True,
        env=child_environment(1),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fit_seconds"] > 0
    assert answer["extra_bytes"] >= 0
    assert answer["rmse"] > 1
    assert "band_coverage" not in answer


# verdicts


def result_rows(name, metric, **values):
    """Folds of one set; a model a keyword, its values one a fold."""
    return pd.DataFrame(
        {"set": name, "model": model.replace("_", "-"), "fold": fold, metric: value}
        | {"threads": 2, "fit_seconds": 9.0 if model.startswith("ebm") else 3.0, "run": "here"}
        for model, given in values.items()
        for fold, value in enumerate(given)
    )


def holds(judged, part):
    (found,) = [verdict.holds for verdict in judged if part in verdict.requirement]
    return found


@pytest.mark.parametrize(
    ("metric", "value", "slack", "passes"),
    [
        ("nll", 0.302, 0.003, True),
        ("nll", 0.304, 0.003, False),
        ("nll", 0.301, 0.0, False),
        ("auroc", 0.298, 0.003, True),
        ("auroc", 0.296, 0.003, False),
        ("auroc", 0.310, 0.0, True),
    ],
)
def test_no_worse_knows_which_way_is_better(metric, value, slack, passes):
    results = result_rows("adult", metric, lanam=[value], ebm=[0.3])
    verdict = real_tables_report.no_worse(results, "adult", metric, ("lanam", "ebm"), slack)
    assert verdict.holds is passes


def test_a_failed_fit_is_no_pass_and_a_peers_is_no_failure():
    models = ("lanam", "ebm")
    ours = result_rows("adult", "nll", lanam=[0.1, np.nan], ebm=[0.3, 0.3])
    assert real_tables_report.no_worse(ours, "adult", "nll", models).holds is False
    theirs = result_rows("adult", "nll", lanam=[0.1, 0.1], ebm=[0.3, np.nan])
    assert real_tables_report.no_worse(theirs, "adult", "nll", models).holds is None
    assert real_tables_report.no_worse(ours, "wine", "nll", models).holds is None
    assert real_tables_report.no_worse(ours, "adult", "auroc", models).holds is None


def test_raw_tables_are_judged_by_quality_and_time():
    both = {"lanam": [0.5], "ebm": [0.6], "lanam_auto": [0.4], "ebm_pairs": [0.3]}
    bike = result_rows("bike_hour", "deviance", **both)
    icu = result_rows("physionet2012", "nll", **both)
    judged = real_tables_report.quality_verdicts(*[pd.concat([bike, icu])] * 2)
    assert holds(judged, "bike_hour: lanam's deviance") is True
    assert holds(judged, "bike_hour: lanam-auto's deviance") is False
    assert holds(judged, "physionet2012: lanam's NLL") is True
    assert holds(judged, "adult: lanam's NLL") is None
    assert holds(judged, "bike_hour: lanam's fit time") is True
    assert holds(judged, "90 s on 2 threads") is True
    slow = pd.concat([bike, icu]).assign(fit_seconds=91.0)
    judged = real_tables_report.quality_verdicts(slow, slow)
    assert holds(judged, "bike_hour: lanam's fit time") is False
    assert holds(judged, "90 s on 2 threads") is False
    one_thread = icu.assign(threads=1)
    assert holds(real_tables_report.quality_verdicts(one_thread, one_thread), "90 s on 2") is None


def gap_results(lanam, ebm):
    whole = result_rows("wine", "nll", lanam=[1.0, 1.0], ebm=[2.0, 2.0]).assign(gaps=0.0)
    return pd.concat([whole, result_rows("wine", "nll", lanam=lanam, ebm=ebm).assign(gaps=0.2)])


def test_missing_cells_are_judged_by_what_they_cost():
    results = gap_results(lanam=[1.1, 1.2], ebm=[2.1, 2.3])
    costs = real_tables_report.degradation(results)
    assert costs["degradation"].round(9).tolist() == [0.1, 0.2, 0.1, 0.3]
    judged = real_tables_report.missing_verdicts(results, results)
    assert holds(judged, "wine: lanam's degradation") is True
    assert holds(judged, "over sets") is True
    assert holds(judged, "wine with gaps: lanam's fit time") is True
    for worse in ([1.3, 1.3], [1.0, np.nan]):
        results = gap_results(lanam=worse, ebm=[2.1, 2.3])
        judged = real_tables_report.missing_verdicts(results, results)
        assert holds(judged, "wine: lanam's degradation") is False
        assert holds(judged, "over sets") is False


def test_levels_are_judged_by_bands_error_and_time():
    rows = result_rows("levels", "rmse", lanam=[1.0], ebm=[1.1]).drop(columns=["set", "fold"])
    rows = rows.assign(rows=10, levels=3, extra_bytes=2**20, correlation=0.9, unseen=1)
    rows = rows.assign(unseen_band_coverage=np.nan)
    judged = {
        cover: real_tables_report.level_verdicts(*[rows.assign(band_coverage=cover)] * 2)
        for cover in (0.95, 0.99, np.nan)
    }
    assert [holds(judged[cover], "bands cover") for cover in judged] == [True, False, False]
    assert holds(judged[0.95], "rmse") is True
    assert holds(judged[0.95], "fit time") is True
    (table, _) = real_tables_report.level_tables(*[rows.assign(band_coverage=0.95)] * 2)
    assert "A column of 3 levels, 10 rows, 1 levels not among them" in table
    assert "0.950" in table


def test_rows_of_different_commits_are_said_to_be():
    rows = result_rows("adult", "nll", lanam=[0.5], lanam_auto=[0.5], ebm=[0.5])
    assert real_tables_report.code_note("quality", rows) == ""
    one = rows.assign(code=["a1", "a1", "b2"])  # a peer does not change with our commits
    assert real_tables_report.code_note("quality", one) == "quality: lanam at a1.\n"
    two = rows.assign(code=["a1", "b2", "b2"])
    assert "lanam at a1, b2; MIXED" in real_tables_report.code_note("quality", two)


# the command


def test_the_command_runs_in_chunks_and_reports_them_together(
    data_directory, tmp_path, capsys, monkeypatch
):
    for variable in THREAD_VARIABLES:  # so that what the command sets is undone afterwards
        monkeypatch.setenv(variable, "1")
    monkeypatch.setitem(tables_models(), "missing", ("mean", "linear"))
    monkeypatch.setitem(tables_models(), "levels", ("mean",))
    monkeypatch.setattr(
        levels, "levels_rows", lambda models, threads: iter([{"model": m} for m in models])
    )
    common = ["--threads", "1", "--data", str(data_directory), "--folds", "2", "--models", "mean"]
    chunks = [tmp_path / "bike", tmp_path / "rest"]
    real_tables.main(
        [*common, "--parts", "quality", "--sets", "bike_hour", "--out", str(chunks[0])]
    )
    rest = ["--parts", "missing,classes,levels", "--sets", "wine,iris"]
    real_tables.main([*common, *rest, "--out", str(chunks[1])])
    capsys.readouterr()
    merged = ["--tables-only", "--out", str(chunks[0]), "--merge", str(chunks[1])]
    real_tables.main([*merged, "--page", str(tmp_path / "page.md")])
    printed = capsys.readouterr().out
    for heading in ("Mean Poisson deviance", "Test NLL with 20%", "Several classes", "Verdicts"):
        assert f"### {heading}" in printed
    assert (tmp_path / "page.md").read_text().strip() == printed.strip()
    gapped = pd.read_csv(chunks[1] / "missing.csv")
    assert gapped.groupby(["gaps", "fold"]).size().tolist() == [1, 1, 1, 1]
    quality = pd.read_csv(chunks[0] / "quality.csv")
    assert len(quality) == 2
    assert quality["code"].notna().all()


def tables_models():
    from benchmarks.peers import TABLE_MODELS

    return TABLE_MODELS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--sets", "tulips"], "unknown sets"), (["--models", "pygam"], "unknown models")],
)
def test_the_command_refuses_names_it_does_not_know(arguments, message, tmp_path, monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    with pytest.raises(SystemExit, match=message):
        real_tables.main(
            [*arguments, "--parts", "classes", "--threads", "1", "--out", str(tmp_path)]
        )
