"""The benchmark's own parts: metrics, data, folds, tables, verdicts. No peer, no data directory."""

import gzip
import json
import math
import subprocess
import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import (  # noqa: E402
    core,
    interactions,
    markdown,
    metrics,
    recovery,
    runner,
    verdicts,
)
from benchmarks.data import problems, sets  # noqa: E402
from benchmarks.environment import THREAD_VARIABLES, child_environment  # noqa: E402
from benchmarks.paper.published import read_published  # noqa: E402
from benchmarks.peers import (  # noqa: E402
    DEFAULT_MODELS,
    PAIR_MODELS,
    TABLE_MODELS,
    Fitted,
    Prediction,
    all_peers,
)
from benchmarks.peers.lanam import scoring_seconds  # noqa: E402
from benchmarks.peers.linear import Linear  # noqa: E402
from benchmarks.peers.mean import Mean  # noqa: E402


class Broken:
    name = "broken"

    def missing(self):
        return None

    def fit(self, X, y, task, seed, threads):
        raise ValueError("no luck")


@pytest.fixture
def data_directory(tmp_path):
    """Two made-up sets under names of the paper's, one of them compressed."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "uci"
    folder.mkdir()
    frame = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    frame.assign(y=frame["a"] + 1).to_csv(folder / "yacht.csv", index=False)
    with gzip.open(folder / "heart.csv.gz", "wt") as file:
        frame.assign(y=(frame["a"] > 0).astype(int)).to_csv(file, index=False)
    return tmp_path


# metrics


def test_gaussian_nll_is_the_average_of_the_density_written_out():
    y, mean, std = np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.array([1.0, 2.0])
    terms = [
        0.5 * ((y[i] - mean[i]) / std[i]) ** 2 + math.log(std[i]) + 0.5 * math.log(2 * math.pi)
        for i in range(2)
    ]
    assert metrics.gaussian_nll(y, mean, std) == pytest.approx(np.mean(terms))


def test_bernoulli_nll_survives_a_certain_mistake():
    y = np.array([1, 0])
    assert metrics.bernoulli_nll(y, np.array([0.8, 0.4])) == pytest.approx(
        -(math.log(0.8) + math.log(0.6)) / 2
    )
    assert np.isfinite(metrics.bernoulli_nll(y, np.array([0.0, 1.0])))


def test_intervals_of_a_gaussian_cover_their_level():
    y = np.random.default_rng(0).standard_normal(20_000)
    lower, upper = metrics.gaussian_interval(np.zeros_like(y), np.ones_like(y), 0.9)
    # four standard errors of a share of 0.9 among 20,000
    assert metrics.interval_coverage(y, lower, upper) == pytest.approx(0.9, abs=0.0085)
    assert metrics.interval_width(lower, upper) == pytest.approx(2 * 1.6448536)


def test_the_calibration_error_by_chance_is_that_of_classes_as_they_were_predicted():
    rng = np.random.default_rng(1)
    vague, sure = np.full(100, 0.5), rng.choice([0.001, 0.999], 100)
    # one bin of a hundred: the mean distance of a share of ones from a half
    assert metrics.ece_by_chance(vague) == pytest.approx(np.sqrt(2.0 / np.pi) * 0.05, rel=0.15)
    assert metrics.ece_by_chance(sure) < 0.01


def test_calibration_error_of_two_bins_by_hand():
    probability = np.array([0.1, 0.1, 0.9, 0.9])
    y = np.array([0, 1, 1, 1])
    # bins: |0.5 - 0.1| and |1 - 0.9|, half of the rows each
    assert metrics.expected_calibration_error(y, probability) == pytest.approx(0.25)
    assert metrics.expected_calibration_error(np.array([1, 1]), np.array([1.0, 1.0])) == 0


def test_auroc_of_one_class_is_not_a_number():
    assert np.isnan(metrics.auroc(np.ones(3), np.array([0.1, 0.2, 0.3])))
    assert metrics.auroc(np.array([0, 1]), np.array([0.1, 0.2])) == 1


def test_standard_error_geometric_mean_and_slope():
    assert metrics.standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)
    assert np.isnan(metrics.standard_error(np.array([1.0])))
    assert metrics.geometric_mean(np.array([1.0, 100.0])) == pytest.approx(10.0)
    sizes = np.array([1.0, 10.0, 100.0])
    assert metrics.log_log_slope(sizes, 3 * sizes**2) == pytest.approx(2.0)


# data


def test_the_last_column_is_the_target_compressed_or_not(data_directory):
    yacht = sets.load_uci(data_directory, "yacht")
    heart = sets.load_uci(data_directory, "heart")
    assert (yacht.task, heart.task) == ("regression", "classification")
    assert yacht.X.shape == heart.X.shape == (60, 2)
    np.testing.assert_allclose(yacht.y, yacht.X[:, 0] + 1)
    assert set(heart.y) == {0, 1}


def test_a_set_that_is_not_there_says_where_it_was_looked_for(data_directory):
    with pytest.raises(FileNotFoundError, match=r"no wine\.csv.*--data"):
        sets.load_uci(data_directory, "wine")


def test_a_blank_cell_is_refused(data_directory):
    (data_directory / "uci" / "wine.csv").write_text("a,y\n1,2\n,3\n")
    with pytest.raises(ValueError, match=r"wine\.csv has missing cells"):
        sets.load_uci(data_directory, "wine")


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_toy_has_uniform_margins_the_asked_correlation_and_unit_noise(correlation):
    problem = problems.toy_problem(0, correlation, n_rows=20_000)
    # deciles of a uniform; 4 standard errors of the median are 0.014
    np.testing.assert_allclose(np.quantile(problem.X, [0.1, 0.5, 0.9], axis=0)[1], 0.5, atol=0.014)
    # Pearson of uniforms under a Gaussian copula: 6/pi asin(rho/2)
    expected = 6 / math.pi * math.asin(correlation / 2)
    measured = np.corrcoef(problem.X, rowvar=False)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(measured, expected, atol=0.03)  # 4 standard errors are 0.028
    np.testing.assert_allclose(problem.effects.mean(axis=0), 0, atol=1e-12)
    assert not problem.effects[:, 3].any()
    residual = problem.y - problem.effects.sum(axis=1)
    assert residual.std() == pytest.approx(1, abs=0.02)  # 4 standard errors


def test_sparse_problem_has_equal_effects_and_half_the_noise():
    problem = problems.sparse_problem(0)
    assert problem.X.shape == (1000, 50)
    np.testing.assert_allclose(problem.effects[:, :5].std(axis=0), 1)
    assert not problem.effects[:, 5:].any()
    signal = problem.effects.sum(axis=1)
    assert (problem.y - signal).std() / signal.std() == pytest.approx(0.5, rel=0.1)


def test_planted_pairs_are_what_they_say():
    problem = problems.planted_pairs(0, n_rows=20_000)
    X, signal = problem.X, problem.signal
    correlation = np.corrcoef(X, rowvar=False)
    assert correlation[2, 3] == pytest.approx(0.7, abs=0.015)  # 4 standard errors
    others = np.triu(correlation, 1)
    others[2, 3] = 0
    np.testing.assert_allclose(others, 0, atol=0.035)  # 5 standard errors: there are 44
    assert (problem.y - signal).std() / signal.std() == pytest.approx(0.5, abs=0.01)
    # what the deciles of a column explain; chance explains 9/20,000
    deciles = [np.eye(10)[np.argsort(np.argsort(x)) * 10 // len(x)] for x in X.T]
    main = [_explained(signal, chunks) for chunks in deciles]
    assert max(main[d] for d in (0, 1, 8, 9)) < 0.002
    assert min(main[d] for d in range(2, 8)) > 0.05
    for i, j in combinations(range(10), 2):
        both = np.hstack([deciles[i], deciles[j]])
        product = _explained(signal, both, X[:, i] * X[:, j]) - _explained(signal, both)
        # a seventh is one effect of seven; of the correlated pair's an eighth is not additive
        assert product > 1 / 70 if (i, j) in problem.pairs.values() else product < 0.002


def _explained(signal, *columns):
    """Share of the signal's variance that a linear regression on the columns explains."""
    design = np.column_stack([np.ones(len(signal)), *columns])
    fitted = design @ np.linalg.lstsq(design, signal)[0]
    return np.var(fitted) / np.var(signal)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_large_problem_has_the_asked_size_and_a_signal(task):
    data = problems.large_problem(2000, 3, task)
    assert data.X.shape == (2000, 3)
    assert abs(np.corrcoef(np.sin(3 * data.X[:, 0]), data.y)[0, 1]) > 0.1


# folds, cells


def test_folds_do_not_depend_on_how_many_are_run(data_directory):
    data = sets.load_uci(data_directory, "yacht")
    all_folds = list(runner.folds_of(data, 5))
    two = list(runner.folds_of(data, 2))
    assert [fold for fold, _, _ in two] == [0, 1]
    for (_, train, test), (_, same_train, same_test) in zip(two, all_folds, strict=False):
        np.testing.assert_array_equal(train, same_train)
        np.testing.assert_array_equal(test, same_test)
    held_out = np.concatenate([test for _, _, test in all_folds])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(60))


def test_every_cell_gives_a_row_and_a_failure_loses_nothing(data_directory, capsys):
    data = [sets.load_uci(data_directory, name) for name in ("yacht", "heart")]
    peers = [(Mean(), 2), (Broken(), 1), (Linear(), 1)]
    rows = pd.DataFrame(runner.run_sets(data, peers, threads=1))
    assert len(rows) == 2 * (2 + 1 + 1)
    failed = rows[rows["model"] == "broken"]
    assert (failed["error"] == "ValueError: no luck").all()
    good = rows[rows["model"] != "broken"]
    assert good["nll"].notna().all()
    assert good["fit_seconds"].gt(0).all()
    nll = rows[rows["fold"] == 0].pivot_table(index="set", columns="model", values="nll")
    assert (nll["linear"] < nll["mean"]).all()  # the target is made of the first column
    assert "FAILED ValueError: no luck" in capsys.readouterr().err


def test_a_model_in_another_process_brings_its_own_clock(data_directory):
    data = sets.load_uci(data_directory, "heart")

    class Elsewhere:
        name = "elsewhere"

        def fit(self, X, y, task, seed, threads):
            predict = lambda rows: Prediction(np.full(len(rows), 0.5))  # noqa: E731
            return Fitted(predict, info={"fit_seconds": 123.0})

    fold, train, test = next(runner.folds_of(data, 1))
    row = runner.run_cell(data, fold, train, test, Elsewhere(), threads=1)
    assert row["fit_seconds"] == 123.0
    assert row["nll"] == pytest.approx(math.log(2))


def test_models_that_cannot_run_are_left_out_aloud():
    peers = all_peers()
    assert {*DEFAULT_MODELS, *PAIR_MODELS}.union(*TABLE_MODELS.values()) <= set(peers)
    present, skipped = runner.available([peers["mean"], peers["public"]])
    assert present == [peers["mean"]]
    assert [line.split(" given")[0] for line in skipped] == ["SKIPPED public: no --public-python"]


def test_an_interpreter_without_the_public_implementation_is_named_as_such():
    assert "laplace_skorch" in all_peers(sys.executable)["public"].missing()
    assert "cannot be started" in all_peers("/no/such/python")["public"].missing()


# recovery


def test_a_band_of_width_zero_covers_the_number_it_states():
    zero, one = np.zeros(4), np.ones(4)
    assert recovery.band_coverage(zero, zero, zero) == 1
    assert recovery.band_coverage(one, zero, zero) == 0
    assert recovery.band_coverage(np.array([0, 1.9, 2.0, -3]), zero, one) == 0.5


def test_a_feature_is_active_if_any_of_its_terms_is():
    def term(active, *features):
        return SimpleNamespace(active=active, features=features)

    model = SimpleNamespace(terms_=[term(False, 0), term(True, 0), term(False, 1), term(True, 2)])
    assert recovery.active_features(model) == {0, 2}


def test_a_rank_counts_ties_and_added_pairs_are_told_apart(monkeypatch):
    scores = {(0, 1): 0.0, (2, 3): 5.0, (4, 5): 3.0, (6, 7): 4.0, (8, 9): 0.0}
    rows = [{"features": pair, "score": score} for pair, score in scores.items()]
    terms = [
        SimpleNamespace(kind=kind, features=features, active=active)
        for kind, features, active in [
            ("smooth", (0,), True),
            ("pair", (2, 3), True),
            ("pair", (6, 7), True),
            ("pair", (4, 5), False),
        ]
    ]
    model = SimpleNamespace(interaction_scores_=SimpleNamespace(rows=rows), terms_=terms)
    monkeypatch.setattr(recovery, "_fit", lambda *args, **kwargs: (model, 1.0, ""))
    first, second, *_ = recovery.planted_rows(1)
    ranks = [first[f"rank_{name}"] for name in ("product", "correlated", "ordinary")]
    assert ranks == [5, 1, 3]
    assert (first["planted_added"], first["false_added"]) == (1, 1)
    assert "planted_added" not in second


# tables


def results_frame(**nll):
    """Two folds of the set 'power' with the given likelihoods, one model a keyword."""
    rows = [
        {"set": "power", "task": "regression", "fold": fold, "model": model.replace("_", "-")}
        | {"nll": value, "coverage90": 0.9, "fit_seconds": 2.0 if model == "ebm" else 0.1}
        for model, values in nll.items()
        for fold, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_markdown_is_aligned():
    text = markdown.markdown(["set", "a"], [["wine", "1.0"], ["x", "-10.0"]], "Title")
    lines = text.splitlines()
    assert lines[0] == "### Title"
    assert lines[2:] == [
        "| set  |     a |",
        "| ---- | ----: |",
        "| wine |   1.0 |",
        "| x    | -10.0 |",
    ]


def test_plus_minus_counts_failures():
    assert markdown.plus_minus([1.0, 3.0], 1) == "2.0 ± 1.0"
    assert markdown.plus_minus([1.0], 1) == "1.0"
    assert markdown.plus_minus([1.0, np.nan], 1, failed=1) == "1.0 (1 failed)"
    assert markdown.plus_minus([np.nan], 1, failed=1) == "failed"
    assert markdown.plus_minus([], 1) == "-"


def test_the_papers_figure_stands_beside_ours():
    results = results_frame(lanam=[2.6, 2.8], ebm=[2.8, 2.8])
    table = markdown.quality_tables(results, verdicts.read_paper())[0]
    header, _, row = table.splitlines()[2:5]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert [cell.strip() for cell in header.strip("|").split("|")] == [
        "set",
        "lanam",
        "ebm",
        "paper LA-NAM",
    ]
    assert cells == ["power", "2.700 ± 0.100", "2.800 ± 0.000", "2.85 ± 0.01"]


def test_small_figures_keep_three_digits():
    results = results_frame(lanam=[1.0, 1.0]).assign(rmse=0.000123)
    assert "0.000123" in markdown.metric_table(results, "rmse", "RMSE", decimals=None)


def test_time_ratio_uses_cells_both_models_finished():
    results = results_frame(lanam=[2.6, 2.8], ebm=[2.8, 2.8])
    results.loc[(results["model"] == "ebm") & (results["fold"] == 1), "fit_seconds"] = np.nan
    results.loc[(results["model"] == "lanam") & (results["fold"] == 1), "fit_seconds"] = 50.0
    ratio, n_sets = markdown.time_ratio(results, "lanam", "ebm")
    assert ratio == pytest.approx(0.05)
    assert n_sets == 1
    assert np.isnan(markdown.time_ratio(results, "lanam", "lightgbm")[0])


def test_time_ratio_compares_within_one_run_and_number_of_threads():
    results = results_frame(lanam10=[1.0, 1.0], ebm=[1.0, 1.0]).assign(threads=1, run="here")
    elsewhere = results.assign(run="there")
    elsewhere.loc[elsewhere["model"] == "lanam10", "fit_seconds"] = 1.0
    ratio, n_sets = markdown.time_ratio(pd.concat([results, elsewhere]), "lanam10", "ebm")
    assert ratio == pytest.approx((0.05 + 0.5) / 2)  # the median of 0.1, 0.1, 1, 1 over 2
    assert n_sets == 1
    for column, other in (("threads", 2), ("run", "there")):
        apart = results.copy()
        apart.loc[apart["model"] == "ebm", column] = other
        assert np.isnan(markdown.time_ratio(apart, "lanam10", "ebm")[0])


def test_the_papers_models_with_pairs_stand_beside_ours():
    results = results_frame(lanam10=[2.6, 2.8]).assign(pairs_active=[3, 4])
    likelihood, pairs, *_ = markdown.pair_tables(results, verdicts.read_paper())
    header, _, row = likelihood.splitlines()[2:5]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (header, row)]
    assert dict(zip(*cells, strict=True)) == {
        "set": "power",
        "lanam10": "2.700 ± 0.100",
        "paper LA-NAM10": "2.79 ± 0.01",
        "paper OAK-GP*": "2.73 ± 0.02",
        "paper EBM10": "2.72 ± 0.02",
        "paper LightGBM": "2.67 ± 0.02",
    }
    assert "3.5 ± 0.5" in pairs


def planted_frame(*ranks, false_added=0):
    """One seed a rank of the product's, the other two planted pairs being first and second."""
    rows = [
        {"seed": seed, "score": "evidence", "rank_product": rank, "rank_correlated": 1}
        | {"rank_ordinary": 2, "planted_added": 3, "false_added": false_added, "fit_seconds": 1.0}
        for seed, rank in enumerate(ranks)
    ]
    return pd.DataFrame(rows)


def test_planted_tables_count_seeds_and_show_the_worst_rank():
    ranks, added = markdown.planted_tables(planted_frame(3, 3, 8, false_added=1))
    assert "| evidence |                 2 of 3 |             3 (worst 8) |" in ranks
    assert "| evidence |                           3.00 |                    1.00 |" in added


def test_scoring_time_is_read_from_the_history():
    stages = [("smooth", 1.0), ("smooth", 2.0), ("pairs", 5.0), ("pairs", 6.0)]
    history = [{"stage": stage, "seconds": seconds} for stage, seconds in stages]
    assert scoring_seconds(history) == {"scoring_seconds": 3.0}
    assert scoring_seconds(history[:2]) == scoring_seconds(history[2:]) == {}


def test_scoring_table_and_verdict():
    row = {"rows": 10_000, "columns": 100, "threads": 1, "model": "lanam10", "fit_seconds": 9.0}
    row |= {"scoring_seconds": 4.0, "extra_bytes": 2**20, "extra_over_data": 1.0}
    first_order = row | {"model": "lanam", "scoring_seconds": np.nan}
    frame = pd.DataFrame([row, first_order])
    (table,) = markdown.scoring_tables(frame)
    assert "lanam10 |       4.0 |   9.0 |             1.0 |" in table
    assert holds(verdicts.scoring_verdicts(frame), "20 s") is True
    assert holds(verdicts.scoring_verdicts(frame[1:]), "20 s") is None
    slow = frame.assign(scoring_seconds=21.0)
    assert holds(verdicts.scoring_verdicts(slow), "20 s") is False


# verdicts


def holds(judged, part):
    (found,) = [verdict.holds for verdict in judged if part in verdict.requirement]
    return found


def test_the_papers_table_is_whole():
    paper = verdicts.read_paper()
    assert set(paper["set"]) == set(sets.ALL_SETS)
    assert len(paper) == 14 * 11
    la_nam = paper[paper["model"] == "la-nam"].set_index("set")
    assert la_nam.loc["naval", "value"] == -7.24
    assert la_nam.loc["yacht", "se"] == 0.10


def test_the_papers_other_tables_are_whole():
    paper = read_published()
    assert not paper.duplicated(["set", "model", "metric", "source"]).any()
    assert paper.notna().all(axis=None)
    regression, classification, medical = 9, 5, 2
    counts = paper.groupby(["source", "metric"]).size()
    assert counts.to_dict() == {
        ("tab:uci10nllextra", "nll"): (regression + classification) * 11,
        ("tab:uci10rmseextra", "rmse"): regression * 11,
        ("tab:uci10aurocextra", "auroc"): classification * 11,
        ("tab:uci10auprcextra", "auprc"): classification * 11,
        **{("tab:ucicalibregr", metric): regression * 3 for metric in ("qce", "skce")},
        **{("tab:ucicalibclf", metric): classification * 3 for metric in ("ece", "rbs")},
        **{("tab:medcalib", metric): medical * 3 for metric in ("ece", "rbs")},
        # OAK-GP ran out of memory on one of the two
        **{("tab:medical", metric): medical * 6 - 2 for metric in ("auroc", "auprc", "nll")},
        # its other rows are those of tab:medical
        **{("ebm-mortality", metric): medical * 2 for metric in ("auroc", "auprc", "nll")},
        **{("tab:depthactiv", metric): 4 for metric in ("auroc", "auprc", "nll")},
    }
    shares = paper[paper["metric"].isin(["auroc", "auprc", "ece", "rbs", "qce"])]
    assert shares["value"].between(0, 1).all()
    assert (shares["se"] < 0.04).all()  # not left in percent


@pytest.mark.parametrize(
    ("name", "model", "metric", "value", "se"),
    [
        ("naval", "oak-gp-star", "rmse", 2e-5, 2e-6),
        ("parkinsons", "lightgbm", "auroc", 0.955, 0.013),
        ("heart", "la-nam-10-dagger", "auprc", 0.9251, 0.0192),
        ("yacht", "la-nam-10", "skce", 1.2e-3, 1.6e-4),
        ("naval", "la-nam", "qce", 0.077, 0.029),
        ("ionosphere", "la-nam-10", "rbs", 0.270, 0.015),
        ("hirid", "nam", "nll", 0.228, 0.01),
        ("hirid", "ebm-10", "auprc", 0.611, 0.0023),
        ("mimic3", "la-nam-10", "ece", 0.009, 6.7e-4),
        ("mimic3", "nam-gelu", "auroc", 0.7754, 0.0002),
    ],
)
def test_the_papers_figures_are_copied_as_they_stand(name, model, metric, value, se):
    paper = read_published()
    row = paper.set_index(["set", "model", "metric"]).loc[(name, model, metric)]
    assert (row["value"], row["se"]) == (value, se)


@pytest.mark.parametrize(
    ("nll", "within", "better", "below_limit"),
    [(2.71, True, True, True), (2.864, True, False, False), (2.866, False, False, False)],
)
def test_quality_is_judged_by_the_papers_error_and_the_issues_limit(
    nll, within, better, below_limit
):
    judged = verdicts.quality_verdicts(
        results_frame(lanam=[nll, nll]), verdicts.read_paper(), "lanam"
    )
    assert holds(judged, "plus its SE") is within
    assert holds(judged, "better than") is better
    assert holds(judged, "NLL on power") is below_limit
    assert holds(judged, "NLL on naval") is None
    assert holds(judged, "predictive intervals") is True


def test_a_failed_fold_is_never_a_pass():
    judged = verdicts.quality_verdicts(
        results_frame(lanam=[1.0, np.nan]), verdicts.read_paper(), "lanam"
    )
    assert holds(judged, "plus its SE") is False
    assert holds(judged, "NLL on power") is False


def test_speed_is_judged_by_the_ratio():
    judged = verdicts.speed_verdicts(results_frame(lanam=[1.0], ebm=[1.0]))
    assert holds(judged, "ebm") is True
    assert holds(judged, "public") is None
    slow = results_frame(lanam=[1.0], ebm=[1.0]).assign(fit_seconds=1.0)
    assert holds(verdicts.speed_verdicts(slow), "ebm") is False


def test_ten_pairs_are_judged_by_limits_first_order_and_ebm():
    rows = {"lanam": [1.0, 1.2], "lanam10": [1.0, 1.29], "lanam_auto": [1.1, 1.1]}
    power = results_frame(**rows, ebm10=[1.1, 1.1])
    judged = verdicts.pair_verdicts(pd.concat([power, power.assign(set="wine")]))
    assert holds(judged, "NLL on power") is True
    assert holds(judged, "NLL on naval") is None
    assert holds(judged, "NLL on wine") is True  # 0.045 worse; half the standard error is 0.05
    assert holds(judged, "NLL on heart") is None
    assert holds(judged, "lanam-auto") is True
    assert holds(judged, "ebm10") is None  # two sets say nothing about ten
    worse = power.assign(set="wine")
    worse.loc[worse["model"] == "lanam10", "nll"] += 0.01
    assert holds(verdicts.pair_verdicts(worse), "NLL on wine") is False
    assert holds(verdicts.pair_verdicts(power[power["model"] == "lanam10"]), "lanam-auto") is None


@pytest.mark.parametrize(("n_worse", "passes"), [(4, True), (5, False)])
def test_ebm_is_beaten_on_ten_sets_or_not(n_worse, passes):
    frames = [
        results_frame(lanam10=[1.0], ebm10=[0.9 if k < n_worse else 1.1]).assign(set=name)
        for k, name in enumerate(sets.ALL_SETS)
    ]
    assert holds(verdicts.pair_verdicts(pd.concat(frames)), "ebm10") is passes
    # what is decided is decided without the last sets, which are ours
    assert holds(verdicts.pair_verdicts(pd.concat(frames[:-1])), "ebm10") is (
        None if passes else False
    )


def test_a_failed_fold_with_pairs_is_never_a_pass():
    rows = {"lanam": [1.0, 1.2], "lanam10": [0.5, np.nan], "lanam_auto": [0.1, 0.1]}
    results = results_frame(**rows, ebm10=[2.0, 2.0])
    judged = verdicts.pair_verdicts(pd.concat([results, results.assign(set="wine")]))
    for part in ("NLL on power", "NLL on wine", "lanam-auto"):
        assert holds(judged, part) is False
    failed = results.assign(set="wine")
    gaps = verdicts.nll_differences(failed, "lanam10", "ebm10")
    assert not (gaps < 0).any()


def test_planted_pairs_are_judged_by_seeds_and_false_pairs():
    judged = verdicts.planted_verdicts(planted_frame(*[3] * 18, 4, 5))
    assert [verdict.holds for verdict in judged] == [True, True]
    judged = verdicts.planted_verdicts(planted_frame(*[3] * 17, 4, 5, 6, false_added=2))
    assert [verdict.holds for verdict in judged] == [False, False]
    failed = pd.DataFrame([{"seed": 1, "score": "evidence", "error": "ValueError: no"}])
    judged = verdicts.planted_verdicts(pd.concat([planted_frame(3), failed]))
    assert [verdict.holds for verdict in judged] == [False, False]


def test_coverage_has_two_sides_except_for_the_function_that_is_zero():
    def frame(f1, f4):
        cells = [("f1", f1), ("f4", f4)]
        return pd.DataFrame(
            {"correlation": 0.9, "seed": 0, "posterior": "joint", "function": f, "coverage": c}
            for f, c in cells
        ).assign(active=True)

    assert verdicts.coverage_verdicts(frame(0.95, 1.0))[0].holds is True
    assert verdicts.coverage_verdicts(frame(0.99, 1.0))[0].holds is False
    assert verdicts.coverage_verdicts(frame(0.95, 0.8))[0].holds is False


def test_selection_counts_seeds_and_failed_fits():
    toy = [{"problem": "toy", "noise_active": int(i < 2), "informative_lost": 0} for i in range(30)]
    sparse = [{"problem": "5 of 50", "noise_active": n, "informative_lost": 0} for n in (1, 3)]
    judged = verdicts.selection_verdicts(pd.DataFrame(toy + sparse))
    assert [verdict.holds for verdict in judged] == [True, True, True]
    toy[5]["noise_active"] = 1
    failed = [{"problem": "5 of 50", "error": "ValueError: no"}]
    judged = verdicts.selection_verdicts(pd.DataFrame(toy + sparse + failed))
    assert [verdict.holds for verdict in judged] == [False, False, False]


def test_scale_is_judged_at_a_million_rows():
    row = {"sweep": "rows", "task": "regression", "model": "lanam", "columns": 10}
    row |= {"extra_over_data": 3.0, "predict_seconds": 4.0, "predict_mean_seconds": 1.0}
    frame = pd.DataFrame(
        [row | {"rows": n, "fit_seconds": n * 1e-5} for n in (10_000, 100_000, 1_000_000)]
    )
    judged = verdicts.scale_verdicts(frame)
    assert holds(judged, "regression: fit < 15 s") is True
    assert holds(judged, "regression: predict mean < 2 s") is True
    assert holds(judged, "classification: fit < 15 s") is None
    assert holds(judged, "linearly in rows") is True
    quadratic = frame.assign(fit_seconds=frame["rows"] ** 2 * 2e-11)
    assert holds(verdicts.scale_verdicts(quadratic), "regression: fit < 15 s") is False
    assert holds(verdicts.scale_verdicts(quadratic), "linearly in rows") is False


# the command


def test_the_command_writes_tidy_results_and_prints_the_tables(
    data_directory, tmp_path, capsys, monkeypatch
):
    for variable in THREAD_VARIABLES:  # so that what the command sets is undone afterwards
        monkeypatch.setenv(variable, "1")
    out = tmp_path / "out"
    arguments = ["--data", str(data_directory), "--sets", "yacht,heart", "--models", "linear,mean"]
    arguments += ["--folds", "2", "--parts", "quality,speed", "--out", str(out), "--threads", "1"]
    core.main(arguments)
    printed = capsys.readouterr().out
    results = pd.read_csv(out / "quality.csv")
    assert len(results) == 2 * 2 * 2
    assert set(results["model"]) == {"linear", "mean"}
    for heading in ("Test NLL", "RMSE", "AUROC", "Fit seconds", "Verdicts"):
        assert f"### {heading}" in printed
    assert (out / "report.md").read_text().strip() == printed.strip()
    core.main([*arguments, "--tables-only"])
    assert capsys.readouterr().out == printed


def test_a_skipped_model_shows_in_the_report_and_old_figures_do_not(
    data_directory, tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("LANAM_PUBLIC_PYTHON", raising=False)
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    out = tmp_path / "out"
    out.mkdir()
    (out / "quality.csv").write_text("set,model,fold,nll,fit_seconds\nwine,older,0,1.0,1.0\n")
    (out / "scale.csv").write_text("model\nlanam\n")
    arguments = ["--data", str(data_directory), "--sets", "yacht", "--models", "mean"]
    core.main([*arguments, "--parts", "public", "--out", str(out), "--threads", "1"])
    printed = capsys.readouterr().out
    assert "SKIPPED public" in printed
    assert "older" not in printed
    assert (out / "scale.csv").exists()  # of a part that was not asked for


def test_interactions_are_run_in_parts_and_reported_together(
    data_directory, tmp_path, capsys, monkeypatch
):
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    common = ["--threads", "1", "--data", str(data_directory), "--sets", "yacht", "--folds", "2"]
    chunks = [tmp_path / model for model in ("linear", "mean")]
    for out in chunks:
        part = ["--parts", "quality", "--models", out.name, "--out", str(out)]
        interactions.main([*common, *part])
    capsys.readouterr()
    here = ["--parts", "quality,planted", "--models", "mean", "--seeds", "1"]
    monkeypatch.setattr(recovery, "PAIR_SCORES", ("evidence",))
    merged = ["--out", str(tmp_path / "out"), "--merge", *map(str, chunks)]
    interactions.main([*common, *here, *merged])
    printed = capsys.readouterr().out
    assert "| set   |          mean |        linear |" in printed
    for heading in ("Test NLL", "Fit seconds", "Three planted pairs among 45, 1 seeds", "Verdicts"):
        assert f"### {heading}" in printed
    planted = pd.read_csv(tmp_path / "out" / "planted.csv")
    assert planted["planted_added"].tolist() == [3]
    interactions.main([*common, *here, *merged, "--tables-only"])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parts", "quality"], "--data is needed for quality"),
        (["--parts", "beauty"], "unknown parts ['beauty']"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(arguments, message, capsys):
    with pytest.raises(SystemExit):
        core.parse(arguments)
    assert message in capsys.readouterr().err


def test_the_scale_worker_answers_in_json():
    arguments = ["linear", "regression", "2000", "6", "1", "sparse"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sizes_worker", *arguments],
        capture_output=True,
        text=True,
        env=child_environment(1),
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["fit_seconds"] > 0
    assert answer["extra_over_data"] >= 0
    assert answer["predict_mean_seconds"] > 0
    assert np.isfinite(answer["nll"])
