"""Verdicts on the paper's experiments, on made-up results."""

from functools import cache

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks.data.sets import ALL_SETS  # noqa: E402
from benchmarks.paper import verdicts  # noqa: E402
from benchmarks.paper.published import read_published  # noqa: E402
from benchmarks.paper.scores import METRIC, scores  # noqa: E402
from tests.benchmarks.made_up_results import (  # noqa: E402
    ERROR,
    cells,
    failed,
    frame,
    given_up,
)

PEERS = verdicts.EXPECTED


@cache
def whole_run(ours=0.0, theirs=0.5, worse_on=(), **more):
    """Every model on every set; ours is worse by one on some."""
    rows = []
    for name in ALL_SETS:
        own = theirs + 1.0 if name in worse_on else ours
        rows += [cells(m, own, name, **more) for m in ("lanam", "lanam10", "lanam-auto")]
        rows += [cells(m, theirs, name, **more) for m in PEERS]
    return frame(*rows)


#: Results, which are kept so that no others have their id, and the targets they were held against.
JUDGED = {}


def targets_of(results):
    """All targets, worked out once for the same results: tests ask for one verdict after the other."""
    if id(results) not in JUDGED:
        JUDGED[id(results)] = results, verdicts.all_targets(results, read_published())
    return JUDGED[id(results)][1]


def verdict(results, words, deciding=True):
    """The verdict whose requirement has these words, of those that decide or of the others."""
    targets = targets_of(results)
    found = [target.verdict for target in targets]
    if not deciding:
        found = [verdict for target in targets for verdict in target.others]
    (one,) = [v for v in found if all(word in v.requirement for word in words)]
    return one


FIRST = ("lanam: best", "first-order")
ALL = ("lanam10: with pairs",)


@pytest.mark.parametrize(("n_worse", "holds"), [(2, True), (3, False)])
def test_best_first_order_on_twelve(n_worse, holds):
    found = verdict(whole_run(worse_on=ALL_SETS[:n_worse]), FIRST)
    assert found.holds is holds
    lost = {2: "autompg and concrete", 3: "autompg, concrete and energy"}[n_worse]
    assert found.measured == f"{14 - n_worse} of 14; not {lost} (linear, pygam, nam, oak, ebm)"


@pytest.mark.parametrize(("n_worse", "holds"), [(5, True), (6, False)])
def test_best_of_all_with_pairs_on_nine(n_worse, holds):
    results = whole_run(worse_on=ALL_SETS[:n_worse])
    assert verdict(results, ALL).holds is holds
    auto = ("lanam-auto: with pairs", "of our mean")
    assert verdict(results, auto, deciding=False).holds is holds


def test_within_our_own_standard_error_but_not_within_the_paired_one():
    """All folds are worse by the same little: within the spread of folds, beyond doubt when paired."""
    results = whole_run(ours=0.5 + 0.9 * ERROR)
    assert verdict(results, FIRST).holds is True
    assert verdict(results, ("lanam: best", "paired"), deciding=False).holds is False
    assert verdict(whole_run(ours=0.5 + 1.1 * ERROR), FIRST).holds is False
    meeting = ("lanam: best", "bold")
    for gap, holds in ((1.9, True), (2.1, False)):
        results = whole_run(ours=0.5 + gap * ERROR)
        assert verdict(results, meeting, deciding=False).holds is holds


def test_undecided_while_a_peer_is_missing_unless_nothing_could_change():
    results = whole_run()
    without = results[results["model"] != "oak"]
    assert verdict(without, FIRST).holds is None
    assert "(oak not run)" in verdict(without, FIRST).measured
    # beaten by others already: what oak does cannot help
    lost = whole_run(worse_on=ALL_SETS[:3])
    assert verdict(lost[lost["model"] != "oak"], FIRST).holds is False
    # a peer that could not be fitted took part, and is named
    fell = frame(*(failed("oak", 0, name) for name in ALL_SETS))
    found = verdict(pd.concat([without, fell], ignore_index=True), FIRST)
    assert found.holds is True
    assert found.measured.endswith("parkinsons: oak failed")
    # one that we gave up did not
    late = frame(*(given_up("oak", 0, name) for name in ALL_SETS))
    found = verdict(pd.concat([without, late], ignore_index=True), FIRST)
    assert found.holds is None
    assert "(oak given up)" in found.measured
    assert verdict(results[results["model"] != "lanam"], FIRST).holds is None
    # one fold of ours is not a result yet
    young = results[(results["model"] != "lanam") | (results["fold"] == 0)]
    assert verdict(young, FIRST).holds is None


def test_a_peer_with_fewer_folds_is_compared_on_those_and_named():
    results = whole_run()
    some = (results["model"] == "oak") & (results["set"] == "naval") & (results["fold"] > 1)
    found = verdict(results[~some], FIRST)
    assert found.holds is True
    assert found.measured == "14 of 14; on naval: oak in 2 folds"
    # better where it was run: that is enough to lose the set
    there = (results["model"] == "oak") & (results["set"] == "naval")
    better = results.assign(nll=results["nll"].mask(there, -9.0))[~some]
    assert verdict(better, FIRST).measured == "13 of 14; not naval (oak in 2 folds)"


def test_rivals_beyond_the_paper_s_compete_where_they_were_run():
    for model in ("public", "deep-ensemble"):
        better = frame(*(cells(model, -9.0, name) for name in ALL_SETS))
        assert verdict(pd.concat([whole_run(), better], ignore_index=True), FIRST).holds is False


def test_a_failed_fold_of_ours_loses_the_set():
    results = whole_run(worse_on=ALL_SETS[:2])
    last = (results["set"] == ALL_SETS[-1]) & (results["model"] == "lanam") & (results["fold"] == 0)
    results = results.assign(
        nll=results["nll"].mask(last), error=np.where(last, "ValueError", None)
    )
    assert verdict(results, FIRST).holds is False
    assert "lanam failed" in verdict(results, FIRST).measured


@pytest.mark.parametrize("variant", ["lanam-paper", "lanam-smooth"])
def test_variants_of_our_own_are_no_rivals(variant):
    better = frame(*(cells(variant, -9.0, name) for name in ALL_SETS))
    results = pd.concat([whole_run(), better], ignore_index=True)
    assert verdict(results, FIRST).holds is True


@pytest.mark.parametrize(("shift", "holds"), [(0.0, True), (0.9, True), (1.6, False)])
def test_against_the_paper_s_la_nam(shift, holds):
    """Ours moved up by so many of the paper's standard errors on one set: by that rule, and by ours."""
    paper = read_published()
    theirs = paper[(paper["model"] == "la-nam") & (paper["metric"] == "nll")].set_index("set")
    rows = []
    for name in ALL_SETS:
        moved = shift * theirs.loc[name, "se"] if name == "yacht" else 0.0
        rows.append(cells("lanam", theirs.loc[name, "value"] + moved, name))
    words = ("paper's LA-NAM", "the paper's standard error")
    assert verdict(frame(*rows), words, deciding=False).holds is holds
    left_out = verdict(frame(*rows[:-1]), words, deciding=False)
    assert left_out.holds is (None if holds else False)


@pytest.mark.parametrize(("gap", "holds"), [(0.9, True), (1.2, False)])
def test_against_the_paper_our_own_standard_error_decides(gap, holds):
    paper = read_published()
    theirs = paper[(paper["model"] == "la-nam") & (paper["metric"] == "nll")].set_index("set")
    shift = {"yacht": gap * ERROR}
    rows = [cells("lanam", theirs.loc[n, "value"] + shift.get(n, 0.0), n) for n in ALL_SETS]
    found = verdict(frame(*rows), ("paper's LA-NAM", "within a standard error"))
    assert found.holds is holds
    fell = frame(*rows[1:], cells("lanam", 0.0, ALL_SETS[0])[:4], failed("lanam", 4, ALL_SETS[0]))
    assert verdict(fell, ("paper's LA-NAM", "within a standard error")).holds is False


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
    found = verdicts.average_difference(scores(frame(two), metric), "lanam", "ebm", METRIC[metric])
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


@cache
def icu(ours, ebm, lightgbm=0.85, seeds=5, grid=None):
    rows = []
    values = {"lanam": ours, "lanam10": ours, "ebm": ebm, "lightgbm": lightgbm}
    for model, value in (values | {"lightgbm-grid": lightgbm if grid is None else grid}).items():
        more = {"experiment": "icu", "auprc": value, "nll": 1 - value}
        folds = seeds if model in ("ebm", "lightgbm") else 5
        rows.append(cells(model, value, "physionet2012", folds, metric="auroc", **more))
    return frame(*rows)


def test_intensive_care_against_ebm_and_lightgbm():
    for words in (("lanam's AUROC",), ("lanam's AUPRC",), ("lanam's NLL",)):
        assert verdict(icu(0.8501, 0.85), words).holds is True
        assert verdict(icu(0.8499, 0.85), words).holds is False
    pairs = ("lanam10 within 0.005 AUROC of LightGBM's",)
    assert verdict(icu(0.846, 0.8), pairs).holds is True
    assert verdict(icu(0.844, 0.8), pairs).holds is False
    # the better one of the two counts
    assert verdict(icu(0.846, 0.8, grid=0.86), pairs).holds is False


def test_intensive_care_is_undecided_before_all_seeds_are_there():
    young = icu(0.9, 0.85, seeds=2)
    found = verdict(young, ("lanam's AUROC",))
    assert found.holds is None
    assert "(2 of 5 seeds)" in found.measured
    late = given_up("ebm", 2, "physionet2012", "icu")
    found = verdict(pd.concat([young, frame(late)], ignore_index=True), ("lanam's AUROC",))
    assert "(2 of 5 seeds, others given up)" in found.measured
    without = young[young["model"] != "lightgbm"]
    found = verdict(without, ("lanam10 within", "AUROC"))
    assert found.holds is None
    assert "lightgbm not run" in found.measured


def test_how_much_of_an_error_is_chance():
    rows = [
        {"model": model, "set": name, "fold": 0, "ece": ece, "ece_by_chance": chance}
        for model, name, ece, chance in [
            ("ebm", "heart", 0.10, 0.08),
            ("lanam", "heart", 0.12, 0.12),
            ("lanam", "breast", 0.04, 0.03),
            ("ebm", "breast", 0.06, 0.04),
            ("oak", "heart", 0.05, 0.04),
            ("oak", "breast", 0.05, np.nan),
        ]
    ]
    text = verdicts.chance_table(pd.DataFrame(rows))
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[-2:]]
    assert lines == [
        ["lanam", "0.0800", "0.0750", "0.0050", "2"],
        ["ebm", "0.0800", "0.0600", "0.0200", "2"],
    ]
    assert verdicts.chance_table(pd.DataFrame(rows).drop(columns="ece_by_chance")) == ""
