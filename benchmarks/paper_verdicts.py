"""What the reproduction was asked to show beside what it shows; nothing is typed in but the limits.

A set is decided against us as soon as one model beats us there, and for us when every model that should
take part has a result, or has failed. A count that the sets still open could tip is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.datasets import ALL_SETS, CLASSIFICATION_SETS, REGRESSION_SETS
from benchmarks.experiments.uci import FIRST_ORDER, INTERACTING, WITH_PAIRS
from benchmarks.markdown import in_order, markdown
from benchmarks.paper_scores import (
    CONTROL,
    FOLDS,
    METRIC,
    OURS,
    Metric,
    Scores,
    Summary,
    difference,
    failures,
    on_common_folds,
    on_par,
    part,
    scores,
    summarise,
)
from benchmarks.paper_tables import paragraphs, worded
from benchmarks.verdicts import Verdict, against_paper, unmeasured

ALL_MODELS = (*FIRST_ORDER, *WITH_PAIRS, *INTERACTING)
SLACK_AUROC = 0.005
WORDS = {True: "pass", False: "FAIL", None: "undecided"}

#: Whether ours is as good as a peer's on the folds both have; None where that cannot be told.
Rule = Callable[[pd.Series, pd.Series, Metric], bool | None]


# rules


def own_error(mine: pd.Series, theirs: pd.Series, metric: Metric) -> bool | None:
    """Worse by no more than the standard error of our own mean over its folds."""
    ours, other = on_common_folds(mine, theirs)
    if not ours.folds:
        return None
    worse, se = metric.sign * (ours.mean - other.mean), summarise(mine).se
    return bool(worse <= 0 or worse <= se) if not np.isnan(se) else bool(worse <= 0) or None


def paired_error(mine: pd.Series, theirs: pd.Series, metric: Metric) -> bool | None:
    """Worse by no more than the standard error of the differences fold by fold."""
    found = difference(mine, theirs, metric)
    if not found.folds:
        return None
    return (
        bool(found.mean <= 0 or found.mean <= found.se)
        if found.folds > 1
        else found.mean <= 0 or None
    )


def overlapping(mine: pd.Series, theirs: pd.Series, metric: Metric) -> bool | None:
    """The paper's bold: the two means touch when each is given its standard error."""
    return on_par(mine, theirs, metric) if len(mine.index.intersection(theirs.index)) else None


def near_the_best(
    values: Scores, ours: str, peers: Iterable[str], failed: Mapping[str, int], rule: Rule
) -> tuple[bool | None, list[str]]:
    """Whether a model is the best of a set or near it, and who beats it or is missing.

    Variants of our own compete where they were run, and are not missed where they were not.
    """
    if failed.get(ours):
        return False, [f"{ours} failed"]
    if ours not in values:
        return None, [f"{ours} not run"]
    if len(values[ours]) < FOLDS:
        return None, [f"{len(values[ours])} of {FOLDS} folds"]
    beaten_by, missing = [], []
    for peer in peers:
        if peer in values:
            holds = rule(values[ours], values[peer], METRIC["nll"])
            if holds is None:
                missing.append(peer)
            elif not holds:
                beaten_by.append(peer)
        elif not failed.get(peer) and peer not in OURS:
            missing.append(peer)
    if beaten_by:
        return False, beaten_by
    return (None, missing) if missing else (True, [])


def count(decided: Mapping[str, bool | None], needed: int, n_sets: int) -> bool | None:
    """Whether enough sets hold; None while those that are open could tip it."""
    holding = sum(holds is True for holds in decided.values())
    still_open = n_sets - sum(holds is not None for holds in decided.values())
    return True if holding >= needed else False if holding + still_open < needed else None


# verdicts


def against_the_paper(uci: pd.DataFrame, paper: pd.DataFrame) -> list[Verdict]:
    """NLL of ours and of the paper's LA-NAM on every set."""
    n_sets = len(ALL_SETS)
    requirement = (
        f"lanam: at least as good as the paper's LA-NAM in NLL on all {n_sets} sets "
        "within a standard error"
    )
    nll = paper[(paper["metric"] == "nll") & paper["set"].isin(ALL_SETS)]
    mine = uci[uci["model"] == "lanam"]
    if mine.empty:
        return [unmeasured(requirement)]
    compared = against_paper(uci, nll, "lanam").set_index("set")
    verdicts = []
    for column, rule in (
        ("within", "the paper's standard error"),
        ("within_both", "the standard error of the difference of both means"),
    ):
        holds = {
            name: bool(value) if (mine["set"] == name).sum() >= FOLDS else None
            for name, value in compared[column].items()
        }
        verdicts.append(_counted(f"{requirement} ({rule})", holds, {}, n_sets, n_sets))
    return verdicts


def _counted(
    requirement: str,
    decided: Mapping[str, bool | None],
    reasons: Mapping[str, Sequence[str]],
    needed: int,
    n_sets: int,
    note: str = "",
) -> Verdict:
    """How many sets hold, which do not and why, and which are open."""
    holding = [name for name, holds in decided.items() if holds is True]
    failing = [name for name, holds in decided.items() if holds is False]
    unknown = [name for name, holds in decided.items() if holds is None]
    text = f"{len(holding)} of {n_sets}"
    if failing:
        text += "; not " + ", ".join(_with_reason(name, reasons) for name in failing)
    if unknown:
        text += "; open: " + ", ".join(_with_reason(name, reasons) for name in unknown)
    not_run = n_sets - len(decided)
    if not_run:
        text += f"; {not_run} sets not run"
    return Verdict(requirement, text + note, count(decided, needed, n_sets))


def _with_reason(name: str, reasons: Mapping[str, Sequence[str]]) -> str:
    given = reasons.get(name)
    return f"{name} ({', '.join(given)})" if given else name


def best_on(
    uci: pd.DataFrame, ours: str, peers: Sequence[str], needed: int, what: str
) -> list[Verdict]:
    """On how many sets a model is the best or near it; by three rules, of which the first decides."""
    by_set = scores(uci, "nll")
    failed: dict[str, dict[str, int]] = {}
    for (name, model), n_failed in failures(uci).items():
        failed.setdefault(name, {})[model] = n_failed
    others = [model for model in peers if model != ours]
    verdicts = []
    rules: tuple[tuple[str, Rule], ...] = (
        ("standard error of our mean", own_error),
        ("standard error of the paired differences", paired_error),
        ("the paper's bold: intervals of one standard error meet", overlapping),
    )
    for title, rule in rules:
        decided: dict[str, bool | None] = {}
        reasons: dict[str, Sequence[str]] = {}
        for name in in_order({*by_set, *failed}):
            decided[name], reasons[name] = near_the_best(
                by_set.get(name, {}), ours, others, failed.get(name, {}), rule
            )
        n_sets = len(ALL_SETS)
        requirement = f"{ours}: {what} on at least {needed} of {n_sets} ({title})"
        note = _few_folds(by_set, others, ours) if rule is own_error else ""
        if any(ours in values for values in by_set.values()):
            verdicts.append(_counted(requirement, decided, reasons, needed, n_sets, note))
        else:
            verdicts.append(unmeasured(requirement))
    return verdicts


def _few_folds(by_set: Mapping[str, Scores], peers: Iterable[str], ours: str) -> str:
    """A note on comparisons with fewer folds than there should be."""
    few = [
        f"{peer} on {name}: {n}"
        for name, values in by_set.items()
        for peer in peers
        if ours in values and peer in values
        for n in [len(values[ours].index.intersection(values[peer].index))]
        if n < FOLDS
    ]
    return f"; {len(few)} comparisons on fewer than {FOLDS} folds" if few else ""


def average_difference(
    by_set: Mapping[str, Scores], ours: str, peer: str, metric: Metric
) -> Summary:
    """Ours less theirs, mean over the sets that both have; on each, the mean over common folds."""
    found = {
        name: difference(values[ours], values[peer], metric).mean
        for name, values in by_set.items()
        if ours in values and peer in values
    }
    return summarise(pd.Series(found, dtype=float).dropna())


def calibration_peers(uci: pd.DataFrame) -> list[str]:
    """Every model that is not a variant of ours nor the control."""
    return [m for m in dict.fromkeys(uci["model"]) if m not in (*OURS, CONTROL)]


def calibration(uci: pd.DataFrame, ours: str = "lanam") -> list[Verdict]:
    """ECE and quantile calibration against every peer, on average over sets."""
    verdicts = []
    expected = [m for m in ALL_MODELS if m not in OURS]
    for name, words, sets in (
        ("ece", "ECE", CLASSIFICATION_SETS),
        ("qce", "quantile calibration", REGRESSION_SETS),
    ):
        requirement = f"{ours}: {words} at least as good as every peer's on average"
        by_set = scores(uci, name)
        found = {
            peer: average_difference(by_set, ours, peer, METRIC[name])
            for peer in calibration_peers(uci)
        }
        found = {peer: summary for peer, summary in found.items() if summary.folds}
        if not found:
            verdicts.append(unmeasured(requirement))
            continue
        worse = {peer: s for peer, s in found.items() if s.mean > 0}
        missing = [peer for peer in expected if peer not in found]
        text = f"as good as {len(found) - len(worse)} of {len(found)} peers"
        if worse:
            told = [f"{p} by {s.mean:.4f} ({s.folds} sets)" for p, s in worse.items()]
            text += f"; worse than {', '.join(told)}"
        if missing:
            text += f"; not run: {', '.join(missing)}"
        # an average is nothing before all of its sets are there
        young = [s for s in sets if len(by_set.get(s, {}).get(ours, ())) < FOLDS]
        if young:
            text += f"; {ours} has not run all folds of {', '.join(young)}"
        holds = None if young else False if worse else None if missing else True
        verdicts.append(Verdict(requirement, text, holds))
    return verdicts


def calibration_table(uci: pd.DataFrame, ours: Sequence[str] = ("lanam", "lanam10")) -> str:
    """Average differences of the calibration errors, peer by peer, the control too."""
    rows = []
    by_metric = {name: scores(uci, name) for name in ("ece", "qce")}
    for mine in ours:
        for peer in [*calibration_peers(uci), CONTROL]:
            cells = []
            for name, by_set in by_metric.items():
                found = average_difference(by_set, mine, peer, METRIC[name])
                cells += [f"{found.mean:+.4f}" if found.folds else "-", str(found.folds)]
            if any(cell not in ("-", "0") for cell in cells):
                rows.append([mine, peer, *cells])
    if not rows:
        return ""
    header = ["ours", "peer", "ECE: ours less theirs", "sets", "quantile calibration", "sets"]
    note = (
        "Calibration errors on average over the sets that both have; below zero ours is better. "
        "The control, which gives everyone the mean, is calibrated without knowing anything, and is "
        "not a peer."
    )
    return f"{note}\n\n{markdown(header, rows)}"


def intensive_care(icu: pd.DataFrame, name: str = "physionet2012") -> list[Verdict]:
    """AUROC, AUPRC and NLL against EBM's; with pairs, AUROC against LightGBM's."""
    rows = icu[icu["set"] == name]
    verdicts = [
        _at_least(
            rows, f"{name}: lanam's {metric.name.upper()} at least EBM's", "lanam", "ebm", metric
        )
        for metric in (METRIC["auroc"], METRIC["auprc"], METRIC["nll"])
    ]
    for ours in ("lanam10", "lanam-auto"):
        for peer in INTERACTING:
            requirement = f"{name}: {ours} within {SLACK_AUROC} AUROC of {peer}'s"
            verdicts.append(_at_least(rows, requirement, ours, peer, METRIC["auroc"], SLACK_AUROC))
    return verdicts


def _at_least(
    rows: pd.DataFrame, requirement: str, ours: str, peer: str, metric: Metric, slack: float = 0.0
) -> Verdict:
    values = scores(rows, metric.name)
    both = next(iter(values.values()), {})
    failed = failures(rows)
    if any(model == ours for _, model in failed):
        return Verdict(requirement, f"{ours} failed", False)
    if ours not in both or peer not in both:
        return unmeasured(requirement)
    mine, theirs = on_common_folds(both[ours], both[peer])
    if not mine.folds:
        return unmeasured(requirement)
    worse = metric.sign * (mine.mean - theirs.mean)
    text = f"{mine.mean:.4f}, theirs {theirs.mean:.4f}"
    text += "" if mine.folds >= FOLDS else f" ({mine.folds} seeds)"
    return Verdict(requirement, text, bool(worse <= slack))


def all_verdicts(results: pd.DataFrame, paper: pd.DataFrame) -> list[Verdict]:
    """Every target, in the order in which they were set."""
    uci, icu = part(results, "uci"), part(results, "icu")
    first = "best or within one standard error of the best first-order model"
    pairs = "with pairs, best or within one standard error of the best of all models"
    return [
        *against_the_paper(uci, paper),
        *best_on(uci, "lanam", FIRST_ORDER, 12, first),
        *best_on(uci, "lanam10", ALL_MODELS, 9, pairs),
        *best_on(uci, "lanam-auto", ALL_MODELS, 9, pairs),
        *calibration(uci),
        *intensive_care(icu),
    ]


def verdict_page(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """All targets, those that fail as visible as those that hold."""
    rows = [[v.requirement, v.measured, WORDS[v.holds]] for v in all_verdicts(results, paper)]
    table = worded(["target", "measured", "verdict"], rows)
    return paragraphs(["### Targets", table, calibration_table(part(results, "uci"))])
