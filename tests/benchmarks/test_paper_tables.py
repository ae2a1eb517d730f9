"""Tables, marks, verdicts and figures of the paper's experiments, on made-up results."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import paper_figures, paper_tables, paper_verdicts, tables  # noqa: E402
from benchmarks.cells import Cell, Store  # noqa: E402
from benchmarks.datasets import ALL_SETS  # noqa: E402
from benchmarks.paper_scores import (  # noqa: E402
    METRIC,
    OURS,
    Summary,
    best_of,
    beyond,
    complete,
    difference,
    on_par,
    published,
    scores,
    whole_paper,
)

SPREAD = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])  # of five folds: its standard error is 0.0707
ERROR = SPREAD.std(ddof=1) / np.sqrt(5)


def cells(model, mean, name="heart", folds=5, metric="nll", experiment="uci", **more):
    """Rows of one model whose folds spread around a mean in the same way."""
    return [
        {
            "experiment": experiment,
            "set": name,
            "task": "classification",
            "model": model,
            "fold": fold,
            "threads": 1,
            "fit_seconds": 1.0,
            metric: mean + SPREAD[fold],
            "code": "abc1234",
            "started": "2026-01-02T03:04:05+00:00",
            **more,
        }
        for fold in range(folds)
    ]


def failed(model, fold, name="heart", **more):
    row = cells(model, 0.0, name)[fold] | {"error": "ValueError: no | luck\nat all", **more}
    del row["nll"]
    return [row]


def frame(*rows):
    return complete(pd.DataFrame([row for some in rows for row in some]))


def series(values, folds=None):
    return pd.Series(values, index=range(len(values)) if folds is None else folds, dtype=float)


# rules


@pytest.mark.parametrize(("gap", "strong"), [(1.9, True), (2.1, False), (-5.0, True)])
def test_bold_where_the_two_intervals_of_one_standard_error_meet(gap, strong):
    best, other = series(SPREAD), series(gap * ERROR + SPREAD)
    assert on_par(other, best, METRIC["nll"]) is strong
    # higher is better: the same with the sign turned
    assert on_par(-other, -best, METRIC["auroc"]) is strong


@pytest.mark.parametrize(("gap", "mark"), [(1.9, 0), (2.1, -1), (-1.9, 0), (-2.1, 1)])
def test_arrows_only_where_the_intervals_do_not_meet(gap, mark):
    plain, paired = series(SPREAD), series(gap * ERROR + SPREAD)
    assert beyond(paired, plain, METRIC["nll"]) == mark
    assert beyond(paired, plain, METRIC["auroc"]) == -mark


def test_the_paper_s_own_bold_and_colours_follow_from_these_rules():
    """Of the table in the paper: who is bold on heart and concrete, and what pairs do there."""
    paper = whole_paper()

    def touching(name, model, other):
        mine, best = (published(paper, name, m, METRIC["nll"]) for m in (model, other))
        return mine.mean - best.mean <= mine.se + best.se + 1e-9

    assert touching("heart", "linear", "la-nam")
    assert not touching("heart", "ebm", "la-nam")
    assert touching("concrete", "oak-gp", "gam")
    assert not touching("concrete", "la-nam", "gam")


def test_models_are_compared_on_the_folds_that_both_have():
    easy = series([1.0, 1.0], folds=[3, 4])  # of the two easiest folds
    whole = series([9.0, 9.0, 9.0, 0.5, 0.5])
    found = difference(easy, whole, METRIC["nll"])
    assert (found.mean, found.folds) == (0.5, 2)
    assert not on_par(easy, whole, METRIC["nll"])
    # nor is it the best of all for having met nothing hard
    assert best_of({"a": easy, "b": whole}, ["a", "b"], METRIC["nll"]) == "b"


def test_no_arrow_for_one_fold_and_no_difference_below_the_last_digit():
    assert beyond(series([0.1]), series([0.9]), METRIC["nll"]) == 0
    same = series([0.3, 0.3])
    assert beyond(same + 1e-5, same, METRIC["nll"]) == 0
    assert beyond(same + 1e-2, same, METRIC["nll"]) == -1
    assert on_par(same + 1e-5, same, METRIC["nll"])


# tables


def line_of(text, start, nth=0):
    """The cells of the nth row of tables that begins so."""
    rows = [row for row in text.splitlines() if row.strip().startswith(f"| {start} ")]
    return [cell.strip().replace("\u00a0", " ") for cell in rows[nth].strip().strip("|").split("|")]


def test_table_has_bold_arrows_and_blocks():
    results = frame(
        cells("linear", 1.0),
        cells("lanam", 0.5),
        cells("ebm", 0.55),
        cells("lanam10", 0.2),
        cells("ebm10", 0.9),
        cells("lightgbm-grid", 0.52),
        cells("mean", 3.0),
    )
    text = paper_tables.uci_tables(results)
    assert line_of(text, "heart") == [
        *("heart", "1.000 ± 0.071", "**0.500 ± 0.071**", "**0.550 ± 0.071**")
    ]
    assert line_of(text, "heart", 1) == ["heart", "**0.200 ± 0.071** ▲", "0.900 ± 0.071 ▼"]
    assert line_of(text, "heart", 2) == ["heart", "**0.520 ± 0.071**", "3.000 ± 0.071"]


def test_missing_folds_and_failures_are_said_in_the_cell():
    results = frame(
        cells("lanam", 0.5, folds=2),
        cells("ebm", 0.1, folds=4),
        failed("ebm", 4),
        failed("oak", 0),
        failed("oak", 1),
    )
    row = line_of(paper_tables.uci_tables(results), "heart")
    assert row[1].endswith("(2 folds)")
    assert row[2] == "failed (2)"
    assert row[3].endswith("(4 folds, 1 failed)")
    assert "**" not in row[3], "a model that failed is not bold, whatever its other folds say"
    assert "**" in row[1], "and it is not what others are held against"
    note = paper_tables.missing_lines(results, "conditions\nSKIPPED nam: no torch\n")
    assert "9 cells, 3 of them failed" in note
    assert "**SKIPPED nam: no torch**" in note
    assert "uci: not run: linear, pygam, nam," in note
    assert "toy: not run." in note
    rows = [line_of(note, "uci", k)[1:] for k in range(2)]
    assert ["oak", "2", "heart (2)", "ValueError: no / luck at all"] in rows


def test_ours_beside_the_paper_s():
    results = frame(cells("lanam", 0.10), cells("linear", 0.39), cells("lanam10", 0.1))
    text = paper_tables.beside_paper(results, whole_paper())
    row = line_of(text, "heart")
    assert row[1:] == ["0.390 ± 0.071<br>*0.39 ± 0.04*", "0.100 ± 0.071 ▲<br>*0.33 ± 0.02*"]
    assert "lanam10" not in text, "our own score is not in the paper"


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (3.6, 0.07, "3.60 ± 0.07"),
        (0.9255, 0.0096, "0.9255 ± 0.0096"),
        (0.006, 4e-5, "0.006 ± 4e-5"),
        (0.274, 8e-5, "0.274 ± 8e-5"),
        (0.275, 9.6e-5, "0.275 ± 9.6e-5"),
        (7e-5, 2e-6, "7e-5 ± 2e-6"),
        (-8.93, 0.07, "-8.93 ± 0.07"),
    ],
)
def test_the_paper_s_figures_keep_their_digits(mean, se, text):
    assert paper_tables.as_printed(Summary(mean, se, 5)).replace("\u00a0", " ") == text


def test_paired_comparison_sees_what_the_spread_of_folds_hides():
    """A hundredth on every fold is much of a difference, though folds differ by tenths."""
    shift = np.array([0.009, 0.01, 0.011, 0.01, 0.01])
    other = [row | {"nll": row["nll"] + s} for row, s in zip(cells("ebm", 0.5), shift, strict=True)]
    results = frame(cells("lanam", 0.5), other, cells("oak", 0.5), cells("nam", 0.1))
    text = paper_tables.paired_tables(results, ["lanam"])
    found = {line_of(text, "lanam", k)[1]: line_of(text, "lanam", k)[2:] for k in range(3)}
    assert found["ebm"] == ["1", "1", "0", "0", "-"]
    assert found["oak"] == ["1", "0", "1", "0", "-"]
    assert found["nam"] == ["1", "0", "0", "1", "heart"]


def test_costs_are_compared_on_common_cells():
    slow = [
        row | {"fit_seconds": 8.0, "peak_bytes": 3 * 2**20} for row in cells("ebm", 0.5, folds=1)
    ]
    mine = [row | {"fit_seconds": 2.0 + row["fold"]} for row in cells("lanam", 0.5)]
    mine = [row | {"peak_bytes": 2**20} for row in mine]
    text = paper_tables.cost_tables(frame(mine, slow))
    assert line_of(text, "heart") == ["heart", "4.00", "8.00"]
    assert line_of(text, "over lanam") == ["over lanam", "1 (1 sets)", "4 (1 sets)"]
    assert line_of(text, "over lanam", 1) == ["over lanam", "1 (1 sets)", "3 (1 sets)"]


def test_redundancy_puts_both_spreads_in_a_cell():
    both = [
        *cells("lanam", 0.0, "gap", experiment="redundancy", spread_sodium=0.1, spread_gap=0.9),
        *cells("lanam", 0.0, "gap-without", experiment="redundancy", spread_sodium=0.8),
    ]
    text = paper_tables.redundancy_table(frame(both))
    assert "0.100 → 0.800" in text
    assert "0.900 → none" in text


def test_pairs_are_counted_over_folds():
    rows = cells("lanam10-mi", 0.0, "physionet2012", folds=2, experiment="icu")
    rows[0]["pairs"], rows[1]["pairs"] = "a x b; c x d", "a x b"
    assert "a x b (2), c x d (1)" in paper_tables.pair_table(frame(rows))
    rows[0]["pairs"] = rows[1]["pairs"] = ""
    assert "none" in paper_tables.pair_table(frame(rows))


def test_several_commits_of_ours_are_said_aloud():
    mine = cells("lanam", 0.5)
    assert "all of commit `abc1234`" in paper_tables.condition_lines(frame(mine), "one core\n")
    mine[0]["code"] = "fff0000"
    text = paper_tables.condition_lines(frame(mine), "one core\n")
    assert "MIXED" in text
    assert "`abc1234` (4), `fff0000` (1)" in text
    peers = cells("ebm", 0.5, code="fff0000")
    assert "MIXED" not in paper_tables.condition_lines(frame(cells("lanam", 0.5), peers), "")


# verdicts

PEERS = [m for m in paper_verdicts.ALL_MODELS if m not in OURS]


def whole_run(ours=0.0, theirs=0.5, worse_on=(), **more):
    """Every model on every set; ours is worse by one on some."""
    rows = []
    for name in ALL_SETS:
        own = theirs + 1.0 if name in worse_on else ours
        rows += [cells(m, own, name, **more) for m in ("lanam", "lanam10", "lanam-auto")]
        rows += [cells(m, theirs, name, **more) for m in PEERS]
    return frame(*rows)


def verdict(results, words, paper=None):
    found = paper_verdicts.all_verdicts(results, whole_paper() if paper is None else paper)
    return next(v for v in found if all(word in v.requirement for word in words))


FIRST = ("lanam: best", "first-order", "of our mean")
ALL = ("lanam10: with pairs", "of our mean")


@pytest.mark.parametrize(("n_worse", "holds"), [(2, True), (3, False)])
def test_best_first_order_on_twelve(n_worse, holds):
    found = verdict(whole_run(worse_on=ALL_SETS[:n_worse]), FIRST)
    assert found.holds is holds
    assert found.measured.startswith(f"{14 - n_worse} of 14; not {ALL_SETS[0]} (linear, ")


@pytest.mark.parametrize(("n_worse", "holds"), [(5, True), (6, False)])
def test_best_of_all_with_pairs_on_nine(n_worse, holds):
    results = whole_run(worse_on=ALL_SETS[:n_worse])
    assert verdict(results, ALL).holds is holds
    assert verdict(results, ("lanam-auto: with pairs", "of our mean")).holds is holds


def test_within_our_own_standard_error_but_not_within_the_paired_one():
    """All folds are worse by the same little: within the spread of folds, beyond doubt when paired."""
    results = whole_run(ours=0.5 + 0.9 * ERROR)
    assert verdict(results, FIRST).holds is True
    assert verdict(results, ("lanam: best", "paired")).holds is False
    assert verdict(whole_run(ours=0.5 + 1.1 * ERROR), FIRST).holds is False
    meeting = ("lanam: best", "bold")
    assert verdict(whole_run(ours=0.5 + 1.9 * ERROR), meeting).holds is True
    assert verdict(whole_run(ours=0.5 + 2.1 * ERROR), meeting).holds is False


def test_undecided_while_a_peer_is_missing_unless_nothing_could_change():
    results = whole_run()
    without = results[results["model"] != "oak"]
    assert verdict(without, FIRST).holds is None
    assert "(oak)" in verdict(without, FIRST).measured
    # beaten by others already: what oak does cannot help
    lost = whole_run(worse_on=ALL_SETS[:3])
    assert verdict(lost[lost["model"] != "oak"], FIRST).holds is False
    # a peer that failed took part
    fell = frame(*(failed("oak", 0, name) for name in ALL_SETS))
    assert verdict(pd.concat([without, fell], ignore_index=True), FIRST).holds is True
    assert verdict(results[results["model"] != "lanam"], FIRST).holds is None
    # one fold of ours is not a result yet
    young = results[(results["model"] != "lanam") | (results["fold"] == 0)]
    assert verdict(young, FIRST).holds is None


def test_a_failed_fold_of_ours_loses_the_set():
    results = whole_run(worse_on=ALL_SETS[:2])
    last = (results["set"] == ALL_SETS[-1]) & (results["model"] == "lanam") & (results["fold"] == 0)
    results = results.assign(
        nll=results["nll"].mask(last), error=np.where(last, "ValueError", None)
    )
    assert verdict(results, FIRST).holds is False
    assert "lanam failed" in verdict(results, FIRST).measured


def test_variants_of_our_own_compete_where_they_were_run():
    better = frame(*(cells("lanam-paper", -9.0, name) for name in ALL_SETS))
    results = pd.concat([whole_run(), better], ignore_index=True)
    assert verdict(results, FIRST).holds is False


@pytest.mark.parametrize(("shift", "holds"), [(0.0, True), (0.9, True), (1.6, False)])
def test_against_the_paper_s_la_nam(shift, holds):
    """Ours moved up by so many of the paper's standard errors on one set."""
    paper = whole_paper()
    theirs = paper[(paper["model"] == "la-nam") & (paper["metric"] == "nll")].set_index("set")
    rows = []
    for name in ALL_SETS:
        moved = shift * theirs.loc[name, "se"] if name == "yacht" else 0.0
        rows.append(cells("lanam", theirs.loc[name, "value"] + moved, name))
    words = ("paper's LA-NAM", "the paper's standard error")
    assert verdict(frame(*rows), words, paper).holds is holds
    assert verdict(frame(*rows[:-1]), words, paper).holds is (None if holds else False)


@pytest.mark.parametrize("metric", ["ece", "qce"])
def test_calibration_on_average_over_common_sets(metric):
    words = {"ece": "ECE", "qce": "quantile calibration"}[metric]
    good, bad = whole_run(metric=metric), whole_run(ours=0.6, metric=metric)
    assert verdict(good, (words,)).holds is True
    assert verdict(bad, (words,)).holds is False
    assert "worse than linear by 0.1000 (14 sets)" in verdict(bad, (words,)).measured
    # worse than one peer on a set, better on the other: the mean over sets decides
    two = [
        *cells("lanam", 0.5, "heart", metric=metric),
        *cells("lanam", 0.1, "breast", metric=metric),
        *cells("ebm", 0.4, "heart", metric=metric),
        *cells("ebm", 0.3, "breast", metric=metric),
        *cells("ebm", 0.0, "yacht", metric=metric),
    ]
    found = paper_verdicts.average_difference(
        scores(frame(two), metric), "lanam", "ebm", METRIC[metric]
    )
    assert (round(found.mean, 6), found.folds) == (-0.05, 2)
    # the mean is calibrated without knowing anything
    control = frame(*(cells("mean", -1.0, name, metric=metric) for name in ALL_SETS))
    results = pd.concat([good, control], ignore_index=True)
    assert verdict(results, (words,)).holds is True
    missing = good[good["model"] != "nam"]
    assert verdict(missing, (words,)).holds is None
    # nor is an average one before the run is over
    young = bad[(bad["model"] != "lanam") | (bad["fold"] > 0)]
    assert verdict(young, (words,)).holds is None


def icu(ours, ebm, lightgbm=0.85):
    rows = []
    for model, value in {"lanam": ours, "lanam10": ours, "ebm": ebm, "lightgbm": lightgbm}.items():
        more = {"experiment": "icu", "auprc": value, "nll": 1 - value}
        rows.append(cells(model, value, "physionet2012", metric="auroc", **more))
    return frame(*rows)


def test_intensive_care_against_ebm_and_lightgbm():
    for words in (("lanam's AUROC",), ("lanam's AUPRC",), ("lanam's NLL",)):
        assert verdict(icu(0.8501, 0.85), words).holds is True
        assert verdict(icu(0.8499, 0.85), words).holds is False
    pairs = ("lanam10 within 0.005 AUROC of lightgbm's",)
    assert verdict(icu(0.846, 0.8), pairs).holds is True
    assert verdict(icu(0.844, 0.8), pairs).holds is False
    assert verdict(icu(0.844, 0.8), ("lanam10 within", "lightgbm-grid")).holds is None


# figures


def made_up_store(folder):
    """A few cells of every experiment with arrays as the run keeps them."""
    rng = np.random.default_rng(0)
    store = Store(folder)
    grid = np.linspace(0, 1, 11)

    def functions(names, std):
        arrays = {}
        for k, name in enumerate(names):
            arrays |= {f"x_{name}": grid, f"mean_{name}": np.sin(3 * grid + k)}
            arrays[f"std_{name}"] = np.full(len(grid), std)
        return arrays

    def keep(experiment, name, model, arrays, **row):
        base = cells(model, 0.5, name, folds=1, experiment=experiment)[0]
        store.write(Cell(experiment, name, model, 0), base | {"peak_bytes": 2**20} | row, arrays)

    X = rng.random((40, 4))
    toy = {"X": X, "y_train": rng.standard_normal(40), **functions("0123", 0.1)}
    toy |= {f"truth_{d}": grid for d in range(4)}
    errors = {f"rmse_f{d}": 0.1 * d for d in range(1, 5)}
    y = (rng.random(60) < 0.5).astype(float)
    shapes = ("Age", "GCS_last", "BUN_last")
    for experiment, models in (("toy", ("lanam", "ebm")), ("inference", ("lanam", "mc-dropout"))):
        for model in models:
            keep(experiment, "toy", model, toy, **errors)
    for experiment, models in (
        ("icu", ("nam", "lanam", "lanam10-mi")),
        ("depth", ("nam-relu", "lanam")),
    ):
        for model in models:
            arrays = functions(shapes, 0.1 if "lanam" in model else np.nan)
            arrays |= {"y": y, "mean": rng.random(60), "columns": np.array(shapes)}
            arrays |= {
                "patients_mean": rng.standard_normal((5, 3)),
                "patients_std": np.ones((5, 3)) / 9,
            }
            if model == "lanam10-mi":
                information = np.array([[np.nan, 0.2, 0.1], [0.2, np.nan, 0.0], [0.1, 0.0, np.nan]])
                arrays |= {"pair_scores": information, "pairs_active": np.array([[0, 1]])}
            keep(experiment, "physionet2012", model, arrays, auroc=0.8)
    for base, names in (
        ("gap", ("sodium", "chloride", "bicarbonate", "gap")),
        ("physionet2012", ("Na_last", "HCO3_last", "Na-HCO3_last")),
    ):
        keep("redundancy", base, "lanam", functions(names, 0.1), spread_sodium=0.2)
        keep(
            "redundancy", f"{base}-without", "lanam", functions(names[:-1], 0.1), spread_sodium=0.4
        )
    keep("uci", "heart", "lanam", {})
    return store


def test_page_with_every_figure(tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="figures are drawn by matplotlib")
    store = made_up_store(tmp_path / "results")
    page, figures = (
        tmp_path / "docs" / "results" / "paper.md",
        tmp_path / "docs" / "assets" / "paper",
    )
    tables.main(["--results", str(store.folder), "--page", str(page), "--figures", str(figures)])
    text = page.read_text()
    assert "Left out" not in text
    for name, *_ in paper_figures.FIGURES:
        assert f"](assets/paper/{name}.png)" in text
        grey = image.imread(figures / f"{name}.png")[..., :3].mean(axis=-1)
        assert 0.01 < (grey < 0.9).mean() < 0.9, f"{name} is blank"
    for heading in ("Conditions", "Not run, and failed", "Targets", "Toy", "UCI", "Intensive care"):
        assert f"### {heading}" in text
    assert len(pd.read_csv(page.with_suffix(".csv"))) == len(list(store.cells()))


def test_figures_whose_cells_are_missing_are_left_out_aloud(tmp_path):
    pytest.importorskip("matplotlib", reason="figures are drawn by matplotlib")
    store = Store(tmp_path)
    store.write(Cell("uci", "heart", "lanam", 0), cells("lanam", 0.5)[0], {})
    stale = tmp_path / "figures" / "toy.png"
    stale.parent.mkdir()
    stale.write_bytes(b"of another run")
    tables.main(["--results", str(tmp_path)])
    text = (tmp_path / "report.md").read_text()
    assert "*Left out: toy (no finished cell of toy).*" in text
    assert not stale.exists()


def test_a_folder_without_cells_says_what_to_run(tmp_path):
    with pytest.raises(SystemExit, match="has no finished cells"):
        tables.main(["--results", str(tmp_path)])


def test_partial_residuals_take_away_the_other_functions():
    rng = np.random.default_rng(1)
    X = rng.random((50, 2))
    grid = np.linspace(0, 1, 3)
    arrays = {"X": X, "x_0": grid, "mean_0": 2 * grid - 1, "x_1": grid, "mean_1": 3 * grid - 1.5}
    arrays["y_train"] = 7 + (2 * X[:, 0] - 1) + (3 * X[:, 1] - 1.5)
    x, residual = paper_figures.partial_residuals(arrays, "0")
    expected = arrays["y_train"] - arrays["y_train"].mean() - (3 * X[:, 1] - 1.5)
    np.testing.assert_array_equal(x, X[:, 0])
    np.testing.assert_allclose(residual, expected, atol=1e-12)


def test_local_bars_leave_out_what_does_not_stand_out():
    arrays = {
        "columns": np.array(["a", "b", "c", "d"]),
        "patients_mean": np.array([[0.05, -0.5, 0.3, 0.0]]),
        "patients_std": np.array([[0.01, 0.3, 0.1, 0.0]]),
    }
    assert paper_figures.local_bars(arrays, 0, banded=True)[0] == ["c", "a"]
    assert paper_figures.local_bars(arrays, 0, banded=False)[0] == ["b", "c"]


def test_correlation_from_mutual_information():
    rho = 0.6
    information = np.array([[np.nan, -0.5 * np.log(1 - rho**2)], [0.0, np.nan]])
    found = paper_figures.correlation_of(information)
    assert np.isnan(np.diag(found)).all()
    np.testing.assert_allclose([found[0, 1], found[1, 0]], [rho, 0.0], atol=1e-12)


def test_every_model_of_the_paper_s_experiments_is_explained():
    from benchmarks.experiments import EXPERIMENTS, PAPER

    named = {m for e in PAPER for m in (*EXPERIMENTS[e].models, *EXPERIMENTS[e].named_only)}
    assert named <= set(paper_tables.MODEL_KEY)
    assert set(scores(frame(cells("lanam", 0.5)), "nll")) == {"heart"}
