"""What the reproduction was asked to show beside what it shows; nothing is typed in but the limits.

A set is decided against us as soon as one model beats us there, and for us when every model that should
take part has a result or could not be fitted; one that was not run, or given up for the time it took,
leaves the set open. A count that open sets could tip is undecided. One rule decides each target; what
other rules would say is told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.data.sets import ALL_SETS, CLASSIFICATION_SETS, REGRESSION_SETS
from benchmarks.experiments.uci import FIRST_ORDER, INTERACTING, WITH_PAIRS
from benchmarks.markdown import in_order, markdown
from benchmarks.paper.models import ALL, CONTROL, FIRST, NETWORKS, OURS, PAIRS, in_block
from benchmarks.paper.published import published
from benchmarks.paper.scores import (
    FOLDS,
    METRIC,
    Metric,
    Scores,
    Summary,
    difference,
    on_common_folds,
    on_par,
    part,
    scores,
    summarise,
)
from benchmarks.paper.tables.words import folded, paragraphs, worded
from benchmarks.verdicts import Verdict, unmeasured

SLACK_AUROC = 0.005
WORDS = {True: "pass", False: "FAIL", None: "undecided"}
#: Those without which a set is open, and those that compete where they were run.
EXPECTED = tuple(m for m in (*FIRST_ORDER, *WITH_PAIRS, *INTERACTING) if m not in OURS)
FIRST_ORDER_RIVALS = (*in_block(FIRST), *in_block(NETWORKS))
ALL_RIVALS = (*FIRST_ORDER_RIVALS, *in_block(PAIRS), *(m for m in in_block(ALL) if m != CONTROL))

#: Whether ours is as good as a peer's on the folds both have; None where that cannot be told.
Rule = Callable[[pd.Series, pd.Series, Metric], bool | None]


@dataclass(frozen=True)
class Target:
    """What was asked for: the verdict that decides, and those of other rules and variants."""

    verdict: Verdict
    others: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Standing:
    """Whether a model holds its own on a set, why not or why that is open, and what to know of it."""

    holds: bool | None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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


RULES: tuple[tuple[str, Rule], ...] = (
    ("standard error of our mean", own_error),
    ("standard error of the paired differences", paired_error),
    ("the paper's bold: intervals of one standard error meet", overlapping),
)


# sets


def troubles(results: pd.DataFrame) -> dict[str, dict[str, str]]:
    """By set and model, what became of cells without a result: "failed", or "given up" by us."""
    found: dict[str, dict[str, str]] = {}
    failed = results[results["error"].notna()]
    for (name, model), errors in failed.groupby(["set", "model"], sort=False)["error"]:
        ours_to_blame = errors.astype(str).str.startswith("given up").any()
        found.setdefault(name, {})[model] = "given up" if ours_to_blame else "failed"
    return found


def near_the_best(
    values: Scores, ours: str, rivals: Iterable[str], trouble: Mapping[str, str], rule: Rule
) -> Standing:
    """How a model stands among its rivals on one set.

    Variants of our own are no rivals.
    """
    if ours in trouble:
        return Standing(False, (f"{ours} {trouble[ours]}",))
    if ours not in values:
        return Standing(None, (f"{ours} not run",))
    if len(values[ours]) < FOLDS:
        return Standing(None, (f"{ours} in {_folds(len(values[ours]))}",))
    beaten_by, missing, failed = [], [], []
    few: dict[int, list[str]] = {}
    for rival in rivals:
        if rival in OURS:
            continue
        if rival in values:
            holds = rule(values[ours], values[rival], METRIC["nll"])
            common = len(values[ours].index.intersection(values[rival].index))
            told = rival if common == FOLDS else f"{rival} in {_folds(common)}"
            if holds is None:
                missing.append(told)
            elif not holds:
                beaten_by.append(told)
            elif common < FOLDS:
                few.setdefault(common, []).append(rival)
        elif trouble.get(rival) == "failed":
            failed.append(rival)
        elif rival in EXPECTED or rival in trouble:
            missing.append(f"{rival} {trouble.get(rival, 'not run')}")
    notes = [f"{', '.join(names)} in {_folds(common)}" for common, names in sorted(few.items())]
    notes += [f"{', '.join(failed)} failed"] if failed else []
    holds = False if beaten_by else None if missing else True
    return Standing(holds, tuple(beaten_by or missing), tuple(notes))


def _folds(count: int) -> str:
    return f"{count} fold{'' if count == 1 else 's'}"


def count(decided: Mapping[str, bool | None], needed: int, n_sets: int) -> bool | None:
    """Whether enough sets hold; None while those that are open could tip it."""
    holding = sum(holds is True for holds in decided.values())
    still_open = n_sets - sum(holds is not None for holds in decided.values())
    return True if holding >= needed else False if holding + still_open < needed else None


def counted(
    requirement: str, standings: Mapping[str, Standing], needed: int, n_sets: int = len(ALL_SETS)
) -> Verdict:
    """How many sets hold, which do not and why, which are open, and whom we met only in part."""
    holding = sum(standing.holds is True for standing in standings.values())
    parts = [f"{holding} of {n_sets}"]
    for answer, word in ((False, "not"), (None, "open:")):
        sets = {name: s.reasons for name, s in standings.items() if s.holds is answer}
        if sets:
            parts.append(f"{word} {', '.join(_alike(sets, '{} ({})'))}")
    if len(standings) < n_sets:
        parts.append(f"{n_sets - len(standings)} sets not run")
    noted = {name: s.notes for name, s in standings.items() if s.holds and s.notes}
    parts += _alike(noted, "on {}: {}")
    decided = {name: standing.holds for name, standing in standings.items()}
    return Verdict(requirement, "; ".join(parts), count(decided, needed, n_sets))


def _alike(sets: Mapping[str, Sequence[str]], form: str) -> list[str]:
    """Sets of which the same is told, together."""
    together: dict[str, list[str]] = {}
    for name, told in sets.items():
        together.setdefault(", ".join(told), []).append(name)
    listed = {
        told: ", ".join([*names[:-2], " and ".join(names[-2:])]) for told, names in together.items()
    }
    return [form.format(names, told) if told else names for told, names in listed.items()]


# targets


def against_the_paper(uci: pd.DataFrame, paper: pd.DataFrame, ours: str = "lanam") -> Target:
    """NLL of ours and of the paper's LA-NAM on every set, ours rounded as the paper's is."""
    requirement = (
        f"{ours}: NLL at least as good as the paper's LA-NAM's on all {len(ALL_SETS)} sets"
    )
    by_set, trouble = scores(uci, "nll"), troubles(uci)
    if not any(ours in values for values in by_set.values()):
        return Target(unmeasured(f"{requirement}, within a standard error"))

    def verdict(words: str, error: Callable[[float, float], float]) -> Verdict:
        standings = {}
        for name in in_order({*by_set, *trouble}):
            alone = near_the_best(by_set.get(name, {}), ours, (), trouble.get(name, {}), own_error)
            theirs = published(paper, name, "la-nam", "nll")
            if alone.holds and theirs is not None:
                mine = summarise(by_set[name][ours])
                worse = round(mine.mean, 2) - theirs.mean
                holds = bool(worse <= error(mine.se, theirs.se) + 1e-9)
                told = () if holds else (f"{mine.mean:.2f}, theirs {theirs.mean:.2f}",)
                alone = Standing(holds, told)
            standings[name] = alone
        return counted(f"{requirement}, within {words}", standings, len(ALL_SETS))

    return Target(
        verdict("a standard error", lambda mine, theirs: mine),
        (
            verdict("the paper's standard error", lambda mine, theirs: theirs),
            verdict("the standard error of the difference of both means", np.hypot),
        ),
    )


def best_on(
    uci: pd.DataFrame, ours: Sequence[str], rivals: Sequence[str], needed: int, what: str
) -> Target:
    """On how many sets a model is the best or near it; the first of ours and of the rules decides."""
    by_set, trouble = scores(uci, "nll"), troubles(uci)

    def verdict(mine: str, rule: Rule, words: str) -> Verdict:
        requirement = f"{mine}: {what} on at least {needed} of {len(ALL_SETS)}{words}"
        if not any(mine in values for values in by_set.values()):
            return unmeasured(requirement)
        standings = {
            name: near_the_best(by_set.get(name, {}), mine, rivals, trouble.get(name, {}), rule)
            for name in in_order({*by_set, *trouble})
        }
        return counted(requirement, standings, needed)

    others = [verdict(mine, rule, f" ({title})") for mine in ours for title, rule in RULES]
    return Target(verdict(ours[0], own_error, ""), tuple(others[1:]))


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


def calibration(
    uci: pd.DataFrame, metric: str, words: str, sets: Sequence[str], ours: str = "lanam"
) -> Target:
    """A calibration error against every peer's, on average over sets."""
    requirement = f"{ours}: {words} at least as good as every peer's on average"
    by_set = scores(uci, metric)
    found = {
        peer: average_difference(by_set, ours, peer, METRIC[metric])
        for peer in calibration_peers(uci)
    }
    found = {peer: summary for peer, summary in found.items() if summary.folds}
    if not found:
        return Target(unmeasured(requirement))
    worse = {peer: s for peer, s in found.items() if s.mean > 0}
    missing = [peer for peer in EXPECTED if peer not in found]
    text = f"as good as {len(found) - len(worse)} of {len(found)} peers"
    if worse:
        told = [f"{p} by {s.mean:.4f} ({s.folds} sets)" for p, s in worse.items()]
        text += f"; worse than {', '.join(told)}"
    if missing:
        text += f"; not run: {', '.join(missing)}"
    few = [
        f"{peer} on {_whole(by_set, peer)}" for peer in found if _whole(by_set, peer) < len(sets)
    ]
    if few:
        text += f"; in all folds of fewer than {len(sets)} sets: {', '.join(few)}"
    # an average is nothing before all of its sets are there
    young = [s for s in sets if len(by_set.get(s, {}).get(ours, ())) < FOLDS]
    if young:
        text += f"; {ours} has not run all folds of {', '.join(young)}"
    holds = None if young else False if worse else None if missing else True
    return Target(Verdict(requirement, text, holds))


def _whole(by_set: Mapping[str, Scores], model: str) -> int:
    """On how many sets a model has all folds."""
    return sum(len(values.get(model, ())) >= FOLDS for values in by_set.values())


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
        "Mean difference of the calibration errors over the sets that both have; negative: ours is "
        "better. The control, which predicts the mean for every row, is calibrated but uninformative, and "
        "is not a peer."
    )
    return f"{note}\n\n{markdown(header, rows)}"


def chance_table(uci: pd.DataFrame) -> str:
    """How much of each model's calibration error of classes is chance, on average over the sets."""
    if "ece_by_chance" not in uci:
        return ""
    known = uci.dropna(subset=["ece_by_chance"])
    n_cells = known.groupby("model")["model"].transform("size")
    known = known[n_cells == n_cells.max()]  # errors of different folds do not compare
    by_set = known.groupby(["model", "set"], sort=False)[["ece", "ece_by_chance"]].mean()
    means, n_sets = by_set.groupby("model").mean(), by_set.groupby("model").size()
    means["beyond"] = means["ece"] - means["ece_by_chance"]
    rows = [
        [str(model), *(f"{value:.4f}" for value in values), str(n_sets[model])]
        for model, values in means.sort_values("beyond").iterrows()
    ]
    note = (
        "How much of the calibration error of classes is sampling noise: *if calibrated* is the mean error "
        "on labels that are drawn from the model's own probabilities. Test folds have 39 to 138 rows, and "
        "more confident models have less of it. Only models with all folds."
    )
    header = ["model", "ECE", "if calibrated", "excess", "sets"]
    return f"{note}\n\n{markdown(header, rows)}" if rows else ""


def intensive_care(icu: pd.DataFrame, name: str = "physionet2012") -> list[Target]:
    """AUROC, AUPRC and NLL against EBM's; with pairs, AUROC against the better LightGBM's."""
    rows = icu[icu["set"] == name]
    targets = [
        Target(
            at_least(
                rows,
                f"{name}: lanam's {metric.name.upper()} at least EBM's",
                "lanam",
                ["ebm"],
                metric,
            )
        )
        for metric in (METRIC["auroc"], METRIC["auprc"], METRIC["nll"])
    ]
    pairs = [
        at_least(
            rows,
            f"{name}: {ours} within {SLACK_AUROC} AUROC of LightGBM's, one fit and grid",
            ours,
            INTERACTING,
            METRIC["auroc"],
            SLACK_AUROC,
        )
        for ours in ("lanam10", "lanam-auto")
    ]
    return [*targets, Target(pairs[0], tuple(pairs[1:]))]


def at_least(
    rows: pd.DataFrame,
    requirement: str,
    ours: str,
    peers: Sequence[str],
    metric: Metric,
    slack: float = 0.0,
) -> Verdict:
    """Whether ours is as good as every peer's; undecided before all have all seeds."""
    values = next(iter(scores(rows, metric.name).values()), {})
    trouble = next(iter(troubles(rows).values()), {})
    if ours in trouble:
        return Verdict(requirement, f"{ours} {trouble[ours]}", False)
    if ours not in values:
        return unmeasured(requirement)
    answers: list[bool | None] = []
    told = []
    for peer in peers:
        word = trouble.get(peer, "not run")
        if peer not in values:
            told.append(f"{peer} {word}")
            answers.append(None)
            continue
        mine, theirs = on_common_folds(values[ours], values[peer])
        text = f"{mine.mean:.4f}, {peer} {theirs.mean:.4f}"
        if mine.folds < FOLDS:
            others = f", others {word}" if peer in trouble else ""
            text += f" ({mine.folds} of {FOLDS} seeds{others})"
        told.append(text)
        worse = metric.sign * (mine.mean - theirs.mean)
        answers.append(bool(worse <= slack) if mine.folds >= FOLDS else None)
    holds = False if False in answers else None if None in answers else True
    return Verdict(requirement, "; ".join(told), holds)


def all_targets(results: pd.DataFrame, paper: pd.DataFrame) -> list[Target]:
    """Every target, in the order in which they were set."""
    uci, icu = part(results, "uci"), part(results, "icu")
    first = "best or within one standard error of the best first-order model"
    pairs = "with pairs, best or within one standard error of the best of all models"
    return [
        against_the_paper(uci, paper),
        best_on(uci, ["lanam"], FIRST_ORDER_RIVALS, 12, first),
        best_on(uci, ["lanam10", "lanam-auto"], ALL_RIVALS, 9, pairs),
        calibration(uci, "ece", "ECE", CLASSIFICATION_SETS),
        calibration(uci, "qce", "quantile calibration", REGRESSION_SETS),
        *intensive_care(icu),
    ]


def verdict_page(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """All targets, those that fail as visible as those that hold."""
    targets = all_targets(results, paper)
    note = (
        "One rule decides: a standard error is that of our mean over folds. Models are compared on the "
        "folds that both have, and who has fewer is named. A set is open while a peer was not run there, "
        "or was given up for the time it took."
    )
    others = [verdict for target in targets for verdict in target.others]
    more = "The paired rule is the stricter one: what folds have in common drops out of it."
    fold = folded(
        "The same by other rules and variants; these do not decide", f"{more}\n\n{_table(others)}"
    )
    main = _table([target.verdict for target in targets])
    uci = part(results, "uci")
    tables = [calibration_table(uci), chance_table(uci)]
    return paragraphs(["### Targets", note, main, fold, *tables])


def _table(verdicts: Iterable[Verdict]) -> str:
    rows = [[v.requirement, v.measured, WORDS[v.holds]] for v in verdicts]
    return worded(["target", "measured", "verdict"], rows)
