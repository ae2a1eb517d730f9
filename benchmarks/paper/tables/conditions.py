"""Under which conditions the cells were made, what is missing, and what the names mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from benchmarks.environment import library_of
from benchmarks.experiments import EXPERIMENTS, PAPER, Experiment
from benchmarks.markdown import MISSING, in_order
from benchmarks.paper.models import MODELS, OURS, model_of
from benchmarks.paper.scores import FOLDS, part
from benchmarks.paper.tables.words import folded, paragraphs, worded

SKIPPED = "SKIPPED"


def condition_lines(results: pd.DataFrame, conditions: str) -> str:
    """Machine, versions, dates and commits; all that differ, where there are several."""
    told = [line for line in conditions.splitlines() if line and not line.startswith(SKIPPED)]
    if not told:
        machine = "The run has left no line on its machine and versions (it is not over)."
    elif len(told) == 1:
        machine = told[0]
    else:
        bullets = "\n".join(f"- {line}" for line in told)
        machine = f"The run was made in several parts, under these conditions:\n\n{bullets}"
    days = sorted({str(text)[:10] for text in results["started"].dropna()})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    date = f"Run {'on' if len(days) == 1 else 'from'} {when}." if days else ""
    dated = f"{date} {commit_lines(results)}".strip()
    return paragraphs(["### Conditions", machine, dated, peer_commits(results)])


def commit_lines(results: pd.DataFrame) -> str:
    """Of which commits our cells are; they are compared with each other."""
    codes = results.loc[results["model"].isin(OURS), "code"].dropna()
    if codes.empty:
        return ""
    if codes.nunique() == 1:
        return f"Our cells are all of commit `{codes.iloc[0]}`."
    if same_library(codes.unique()):
        commits = ", ".join(f"`{code}`" for code in codes.unique())
        return f"Our cells are of the commits {commits}, with the same library in all."
    told = f"**MIXED: our cells are of several commits: {_counted(codes)}.**"
    commonest = codes.mode().iloc[0]
    alike = [
        f"`{model}`"
        for model, own in codes.groupby(results["model"], sort=False)
        if same_library([commonest, *own.unique()])
    ]
    if not alike:
        return told
    return f"{told} Of one library, that of `{commonest}`, are all cells of {', '.join(alike)}."


def peer_commits(results: pd.DataFrame) -> str:
    """Of which commits each peer's cells are, where they are of several; its adapter may have changed."""
    peers = results[~results["model"].isin(OURS) & results["code"].notna()]
    lines = [
        f"- `{model}`: {_counted(codes)}"
        for model, codes in peers.groupby("model", sort=False)["code"]
        if codes.nunique() > 1
    ]
    return folded("Cells of peers that are of several commits", "\n".join(lines)) if lines else ""


def _counted(codes: pd.Series) -> str:
    return ", ".join(f"`{code}` ({count})" for code, count in Counter(codes).most_common())


def same_library(commits: Iterable[str]) -> bool:
    """Whether commits differ only outside of the library, as far as git knows them."""
    libraries = {library_of(commit) for commit in commits}
    return len(libraries) == 1 and None not in libraries


def missing_lines(results: pd.DataFrame, conditions: str) -> str:
    """What was not run, what could not be run, and what failed."""
    lines = [f"- **{line}**" for line in conditions.splitlines() if line.startswith(SKIPPED)]
    for name in PAPER:
        experiment, rows = EXPERIMENTS[name], part(results, name)
        if rows.empty:
            lines.append(f"- **{name}: not run.**")
            continue
        absent = [m for m in experiment.models if m not in set(rows["model"])]
        if absent:
            lines.append(f"- **{name}: not run: {', '.join(absent)}.**")
        unrun = [s for s in experiment.sets if s not in set(rows["set"])]
        if unrun:
            lines.append(f"- **{name}: sets not run: {', '.join(unrun)}.**")
        few = _fewer_folds(rows, experiment)
        if few:
            lines.append(f"- **{name}: of {FOLDS} folds or seeds only some: {'; '.join(few)}.**")
    failed = results[results["error"].notna()]
    lines.append(f"- {len(results)} cells, {len(failed)} of them failed.")
    rows = []
    for (experiment, model), own in failed.groupby(["experiment", "model"], sort=False):
        places = Counter(own["set"])
        where = ", ".join(f"{name} ({count})" for name, count in places.items())
        why = "; ".join(dict.fromkeys(_first_words(text) for text in own["error"]))
        rows.append([str(experiment), str(model), str(len(own)), where, why])
    table = worded(["experiment", "model", "failed", "sets", "why"], rows) if rows else ""
    return paragraphs(["### Not run, and failed", "\n".join(lines), table])


def _fewer_folds(rows: pd.DataFrame, experiment: Experiment) -> list[str]:
    """Models that were run, on which sets in fewer than all folds, and in how many."""
    counts = Counter(zip(rows["model"], rows["set"], strict=True))
    sets = in_order([name for name in experiment.sets if name in set(rows["set"])])
    told = []
    for model in experiment.models:
        fewer = {name: counts[model, name] for name in sets if counts[model, name] < FOLDS}
        if fewer and model in set(rows["model"]):
            where = ", ".join(f"{name} ({count})" for name, count in fewer.items())
            told.append(f"`{model}` on {where}")
    return told


def _first_words(text: str, most: int = 120) -> str:
    """The beginning of a message; bars and line breaks would end the cell."""
    plain = " ".join(str(text).split()).replace("|", "/")
    return plain if len(plain) <= most else plain[:most] + "…"


def complaint_lines(results: pd.DataFrame) -> str:
    """Fits that warned or did not converge, by model."""
    rows = []
    for (experiment, model), own in results.groupby(["experiment", "model"], sort=False):
        told: Counter[str] = Counter()
        if "warnings" in own:
            told.update(_first_words(text) for text in own["warnings"].dropna() if text)
        if "converged" in own:
            told["not converged"] += int((own["converged"].astype(str) == "False").sum())
        rows += [[experiment, model, f"{n} of {len(own)}", what] for what, n in told.items() if n]
    if not rows:
        return ""
    table = worded(["experiment", "model", "cells", "what"], rows)
    return folded("Fits that warned or did not converge", table)


def model_key(models: Iterable[str]) -> str:
    """What the names of models mean."""
    known = [model_of(name) for name in in_order(models, list(MODELS))]
    rows = [[f"`{m.name}`", m.in_paper or MISSING, m.what or MISSING] for m in known]
    return folded("Names of the models", worded(["here", "in the paper", "what"], rows))
