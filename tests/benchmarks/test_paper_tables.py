"""Rules, marks and tables of the paper's experiments, on made-up results."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks.experiments import EXPERIMENTS, PAPER  # noqa: E402
from benchmarks.experiments.uci import FIRST_ORDER, INTERACTING, WITH_PAIRS  # noqa: E402
from benchmarks.paper import models  # noqa: E402
from benchmarks.paper.published import published, read_published  # noqa: E402
from benchmarks.paper.scores import (  # noqa: E402
    METRIC,
    best_of,
    beyond,
    difference,
    on_par,
)
from benchmarks.paper.tables import conditions  # noqa: E402
from benchmarks.paper.tables.conditions import condition_lines, missing_lines  # noqa: E402
from benchmarks.paper.tables.costs import cost_tables  # noqa: E402
from benchmarks.paper.tables.icu import (  # noqa: E402
    depth_table,
    icu_tables,
    pair_table,
    redundancy_table,
)
from benchmarks.paper.tables.uci import beside_paper, paired_tables, uci_tables  # noqa: E402
from benchmarks.paper.tables.words import as_printed  # noqa: E402
from tests.benchmarks.made_up_results import (  # noqa: E402
    ERROR,
    SPREAD,
    cells,
    failed,
    frame,
    given_up,
    line_of,
)


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
    paper = read_published()

    def touching(name, model, other):
        mine, best = (published(paper, name, m, "nll") for m in (model, other))
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
    text = uci_tables(results)
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
    row = line_of(uci_tables(results), "heart")
    assert row[1].endswith("(2 folds)")
    assert row[2] == "failed (2)"
    assert row[3].endswith("(4 folds, 1 failed)")
    assert "**" not in row[3], "a model that failed is not bold, whatever its other folds say"
    assert "**" in row[1], "and it is not what others are held against"
    note = missing_lines(results, "conditions\nSKIPPED nam: no torch\n")
    assert "9 cells, 3 of them failed" in note
    assert "**SKIPPED nam: no torch**" in note
    assert "uci: not run: linear, pygam, nam," in note
    assert "toy: not run." in note
    # those that failed were run; a set that nobody ran is told once, for all
    assert "some: `lanam` on heart (2); `oak` on heart (2).**" in note
    whole = missing_lines(frame(cells("lanam", 0.5)), "")
    assert "only some" not in whole
    elsewhere = missing_lines(frame(cells("lanam", 0.5), cells("ebm", 0.5, "yacht")), "")
    assert "some: `lanam` on yacht (0); `ebm` on heart (0).**" in elsewhere
    rows = [line_of(note, "uci", k)[1:] for k in range(2)]
    assert ["oak", "2", "heart (2)", "ValueError: no / luck at all"] in rows


def test_a_cell_that_was_given_up_is_a_failure_although_it_knows_no_task():
    results = frame(
        cells("linear", 1.0),
        cells("ebm", 0.1, folds=4),
        given_up("ebm", 4),
        *(given_up("oak", fold) for fold in range(5)),
    )
    row = line_of(uci_tables(results), "heart")
    assert row[1] == "**1.000 ± 0.071**"
    assert row[2] == "failed (5)"
    assert row[3].endswith("(4 folds, 1 failed)")
    assert "**" not in row[3]


def test_an_estimate_that_may_fall_below_zero_is_not_ranked():
    rows = [cells(m, v, metric="skce_unit") for m, v in (("lanam", -0.5), ("ebm", 0.5))]
    assert "**" not in line_of(uci_tables(frame(*rows)), "heart")[1]


def test_ours_beside_the_paper_s():
    results = frame(cells("lanam", 0.10), cells("linear", 0.39), cells("lanam10", 0.1))
    text = beside_paper(results, read_published())
    row = line_of(text, "heart")
    assert row[1:] == ["0.390 ± 0.071<br>*0.39 ± 0.04*", "0.100 ± 0.071 ▲<br>*0.33 ± 0.02*"]
    assert "lanam10" not in text, "our own score is not in the paper"


def test_the_paper_s_figures_keep_their_digits():
    paper = read_published()
    for name, model, metric, text in (
        ("naval", "nam", "skce", "3.1e-8 ± 4.4e-9"),
        ("hirid", "ebm-10", "auprc", "0.611 ± 0.0023"),
        ("power", "la-nam", "nll", "2.85 ± 0.01"),
    ):
        shown = as_printed(published(paper, name, model, metric))
        assert shown.replace("\u00a0", " ") == text
    assert as_printed(published(paper, "power", "la-nam", "auroc")) == "-"


def test_paired_comparison_sees_what_the_spread_of_folds_hides():
    """A hundredth on every fold is much of a difference, though folds differ by tenths."""
    shift = np.array([0.009, 0.01, 0.011, 0.01, 0.01])
    other = [row | {"nll": row["nll"] + s} for row, s in zip(cells("ebm", 0.5), shift, strict=True)]
    results = frame(cells("lanam", 0.5), other, cells("oak", 0.5), cells("nam", 0.1))
    text = paired_tables(results, ["lanam"])
    found = {line_of(text, "lanam", k)[1]: line_of(text, "lanam", k)[2:] for k in range(3)}
    assert found["ebm"] == ["1", "1", "0", "0", "-"]
    assert found["oak"] == ["1", "0", "1", "0", "-"]
    assert found["nam"] == ["1", "0", "0", "1", "heart"]


def test_costs_are_cpu_seconds_of_common_cells():
    slow = cells("ebm", 0.5, folds=1, fit_cpu_seconds=8.0, peak_bytes=3 * 2**20)
    mine = [row | {"fit_cpu_seconds": 2.0 + row["fold"]} for row in cells("lanam", 0.5)]
    mine = [row | {"peak_bytes": 2**20, "fit_seconds": 99.0} for row in mine]
    older = cells("linear", 0.5, fit_cpu_seconds=np.nan, fit_seconds=50.0)
    text = cost_tables(frame(mine, slow, older))
    assert line_of(text, "heart") == ["heart", "-", "4.00", "8.00"]
    assert line_of(text, "over lanam") == ["over lanam", "-", "1 (1 sets)", "4 (1 sets)"]
    assert line_of(text, "over lanam", 1) == ["over lanam", "-", "1 (1 sets)", "3 (1 sets)"]
    assert "Several cells ran at the same time" in text.replace("\n", " ")
    assert "CPU seconds: not recorded" in cost_tables(frame(older))


def test_redundancy_puts_both_spreads_in_a_cell():
    both = [
        *cells("lanam", 0.0, "gap", experiment="redundancy", spread_sodium=0.1, spread_gap=0.9),
        *cells("lanam", 0.0, "gap-without", experiment="redundancy", spread_sodium=0.8),
    ]
    text = redundancy_table(frame(both))
    assert "0.100 → 0.800" in text
    assert "0.900 → none" in text


def test_pairs_are_counted_over_folds():
    rows = cells("lanam10-mi", 0.0, "physionet2012", folds=2, experiment="icu")
    rows[0]["pairs"], rows[1]["pairs"] = "a x b; c x d", "a x b"
    assert "a x b (2), c x d (1)" in pair_table(frame(rows))
    rows[0]["pairs"] = rows[1]["pairs"] = ""
    assert "none" in pair_table(frame(rows))


def test_commits_that_left_the_library_alone_are_not_mixed(monkeypatch):
    mine = [*cells("lanam", 1.0), *cells("lanam10", 1.0)]
    results = frame(mine).assign(code=["abc1234"] * 5 + ["fff0000"] * 5)
    monkeypatch.setattr(conditions, "library_of", lambda commit: "same")
    text = condition_lines(results, "")
    assert "of the commits `abc1234`, `fff0000`, with the same library in all" in text
    assert "MIXED" not in text
    monkeypatch.setattr(conditions, "library_of", lambda commit: commit)
    assert "MIXED" in condition_lines(results, "")
    # an old cell of one model leaves the others of one library
    monkeypatch.setattr(conditions, "library_of", lambda commit: commit == "old0000")
    mixed = results.assign(
        code=["abc1234", "abc1234", "abc1234", "abc1234", "old0000"] + ["fff0000"] * 5
    )
    text = condition_lines(mixed, "")
    assert "MIXED" in text
    assert text.count("Of one library, that of `fff0000`, are all cells of `lanam10`.") == 1


def test_several_commits_are_said_aloud():
    mine = cells("lanam", 0.5)
    assert "all of commit `abc1234`" in condition_lines(frame(mine), "one core\n")
    # ours are compared with each other
    mixed = frame(mine, cells("lanam10", 0.5, code="fff0000"))
    text = condition_lines(mixed, "")
    assert "MIXED: our cells are of several commits: `abc1234` (5), `fff0000` (5)" in text
    peers = cells("ebm", 0.5, code="fff0000")
    assert "several commits" not in condition_lines(frame(mine, peers), "")
    peers[0]["code"] = "eee0000"
    text = condition_lines(frame(mine, peers), "")
    assert "`ebm`: `fff0000` (4), `eee0000` (1)" in text
    assert "MIXED" not in text
    assert "all of commit `abc1234`" in text


def test_a_run_in_chunks_tells_all_its_conditions():
    mine = frame(cells("lanam", 0.5))
    told = "1 thread, one machine.\n2 threads, another.\nSKIPPED nam: no torch\n"
    text = condition_lines(mine, told)
    assert "- 1 thread, one machine.\n- 2 threads, another." in text
    assert "SKIPPED" not in text
    assert "in chunks" not in condition_lines(mine, "1 thread, one machine.\n")
    assert "left no line" in condition_lines(mine, "SKIPPED nam: no torch\n")


def test_depth_has_the_paper_s_figures_beside_both_of_ours():
    rows = [
        cells(m, 0.8, "physionet2012", metric="auroc", experiment="depth")
        for m in ("nam-relu", "lanam", "lanam-paper")
    ]
    text = depth_table(frame(*rows), read_published())
    for model, theirs in (("nam-relu", "0.7902"), ("lanam", "0.7958"), ("lanam-paper", "0.7958")):
        assert line_of(text, model)[5].startswith(theirs)


def test_intensive_care_says_what_its_errors_are_not():
    rows = cells("lanam", 0.8, "physionet2012", metric="auroc", experiment="icu")
    text = icu_tables(frame(rows), read_published())
    assert "not the sampling error of patients" in text
    assert line_of(text, "lanam")[1] == "**0.8000 ± 0.0707**"
    assert line_of(text, "LA-NAM")[1] == "0.796 ± 0.0001"  # the paper's, of other patients


# models


def test_every_model_of_the_paper_s_experiments_is_described():
    named = {m for e in PAPER for m in (*EXPERIMENTS[e].models, *EXPERIMENTS[e].named_only)}
    assert named <= set(models.MODELS)
    assert all(model.theirs in (None, *models.PAPER_NAMES) for model in models.MODELS.values())
    assert all(model.plain in (None, *models.MODELS) for model in models.MODELS.values())
    assert set(FIRST_ORDER) <= set(models.in_block(models.FIRST))
    assert {*WITH_PAIRS, "lanam10-constant"} == set(models.in_block(models.PAIRS))
    assert {*INTERACTING, "catboost", models.CONTROL} == set(models.in_block(models.ALL))


def test_the_paper_s_own_code_stands_beside_its_figures():
    assert models.in_blocks(["public", "lanam-smooth", "unheard of"]) == {
        "First order": ["lanam-smooth", "public"],
        "Others": ["unheard of"],
    }
    text = beside_paper(frame(cells("public", 0.33)), read_published())
    assert line_of(text, "heart") == ["heart", "0.330 ± 0.071<br>*0.33 ± 0.02*"]
