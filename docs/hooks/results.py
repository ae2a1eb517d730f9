"""Tables of README and the benchmark pages, made from the files of ``docs/results``.

A page marks the place of a table with ``<!-- results: NAME -->`` and ``<!-- end of results -->``. The site
fills it when it is built; ``python docs/hooks/results.py README.md`` fills it in a file, and a test
compares the two. ``<!-- trust: SECTION -->`` stands for the tables of a section of ``benchmarks.trust``.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results" / "paper.csv"
TRUST = RESULTS.parent / "trust"

#: Models by the name they have in the results.
MODELS = {
    "lanam-auto": "lanam",
    "ebm": "EBM",
    "ebm10": "EBM, 10 pairs",
    "lightgbm": "LightGBM",
    "lightgbm-grid": "LightGBM, tuned",
    "catboost": "CatBoost",
    "oak2": "OAK-GP, pairs",
    "pygam": "pyGAM",
    "nam": "NAM",
    "public": "LA-NAM, paper's code",
}
FIRST_ORDER = {
    "lanam": "lanam, no pairs",
    "ebm": "EBM",
    "oak": "OAK-GP",
    "pygam": "pyGAM",
    "nam": "NAM",
    "linear": "linear",
    "lanam-paper": "lanam, paper's options",
    "public": "LA-NAM, paper's code",
}
FOLDS = 5

_PLACE = re.compile(
    r"(<!-- results: ([\w-]+) -->\n).*?(^<!-- end of results -->$)", re.DOTALL | re.MULTILINE
)

_TRUST = re.compile(r"^<!-- trust: ([\w-]+) -->$", re.MULTILINE)


def _rows() -> Iterator[dict[str, str]]:
    """The cells of the UCI sets."""
    with RESULTS.open(encoding="utf-8", newline="") as lines:
        yield from (row for row in csv.DictReader(lines) if row["experiment"] == "uci")


#: The regression sets, then the classification sets.
SETS = tuple(
    name for _, name in sorted({(row["task"] == "classification", row["set"]) for row in _rows()})
)


def cells(column: str, models: Iterable[str]) -> dict[tuple[str, str], list[float]]:
    """The folds' figures of a column, by set and model."""
    wanted = set(models)
    values = defaultdict(list)
    for row in _rows():
        if row["model"] in wanted and row[column]:
            values[row["set"], row["model"]].append(float(row[column]))
    return dict(values)


def best(models: Iterable[str] = MODELS) -> dict[str, set[str]]:
    """The models with the lowest mean NLL on each set, to the two decimals that are shown."""
    nll = {cell: f"{statistics.fmean(folds):.2f}" for cell, folds in cells("nll", models).items()}
    lowest = {
        name: min((nll[name, m] for m in models if (name, m) in nll), key=float) for name in SETS
    }
    return {name: {m for m in models if nll.get((name, m)) == lowest[name]} for name in SETS}


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):.0f}"


def nll_table(models: dict[str, str] = MODELS) -> str:
    """Mean test NLL of every set and model, how often each is ahead of lanam, and how long a fit takes."""
    nll, seconds = cells("nll", models), cells("fit_seconds", models)
    ours = next(iter(models))
    winners = best(models)
    lines = []
    for name in SETS:
        figures = []
        for model in models:
            folds = nll.get((name, model), [])
            figure = f"{statistics.fmean(folds):.2f}" if folds else "-"
            figure = f"**{figure}**" if model in winners[name] else figure
            figures.append(figure + ("*" if folds and len(folds) < FOLDS else ""))
        lines.append((name, figures))
    ahead = []
    for model in models:
        both = [name for name in SETS if (name, model) in nll]
        fewer = sum(statistics.fmean(nll[n, model]) < statistics.fmean(nll[n, ours]) for n in both)
        ahead.append("" if model == ours else f"{fewer} of {len(both)}")
    lines.append(("sets with a lower NLL than ours", ahead))
    times = []
    for model in models:
        medians = [
            statistics.median(seconds[name, model]) for name in SETS if (name, model) in seconds
        ]
        times.append(_two_digits(statistics.geometric_mean(medians)))
    lines.append(("fit, seconds (geometric mean)", times))
    header = f"| | {' | '.join(models.values())} |\n| --- |{' ---: |' * len(models)}\n"
    return header + "".join(f"| {name} | {' | '.join(figures)} |\n" for name, figures in lines)


def metric_table(column: str, digits: int, models: dict[str, str] = MODELS) -> str:
    """Mean and standard error over folds of one metric."""
    values = cells(column, models)
    header = f"| | {' | '.join(models.values())} |\n| --- |{' ---: |' * len(models)}\n"
    lines = ""
    for name in SETS:
        if not any((name, model) in values for model in models):
            continue
        figures = []
        for model in models:
            folds = values.get((name, model), [])
            mean = f"{statistics.fmean(folds):.{digits}f}" if folds else "-"
            error = (
                f" ± {statistics.stdev(folds) / math.sqrt(len(folds)):.{digits}f}"
                if len(folds) > 1
                else ""
            )
            figures.append(mean + error)
        lines += f"| {name} | {' | '.join(figures)} |\n"
    return header + lines


TABLES: dict[str, Callable[[], str]] = {
    "nll": nll_table,
    "nll-first-order": lambda: nll_table(FIRST_ORDER),
    "rmse": lambda: metric_table("rmse", 3),
    "auroc": lambda: metric_table("auroc", 3),
    "coverage": lambda: metric_table("coverage90", 3),
    "ece": lambda: metric_table("ece", 3),
    "seconds": lambda: metric_table("fit_seconds", 2),
}


def fill(text: str) -> str:
    """Put the tables into their places."""
    return _PLACE.sub(lambda place: place[1] + TABLES[place[2]]() + place[3], text)


def include_trust(text: str, folder: Path = TRUST) -> str:
    """Put the tables of the benchmark of trust into their places, or that it was not run."""

    def tables(place: re.Match[str]) -> str:
        path = folder / f"{place[1]}.md"
        return path.read_text(encoding="utf-8") if path.exists() else "*Not yet run.*"

    return _TRUST.sub(tables, text)


def on_page_markdown(markdown, page, config, files):
    """Fill the tables of a page when the site is built."""
    return include_trust(fill(markdown))


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
