"""The page: conditions, targets, and a table or picture of every part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.markdown import MISSING, markdown, number
from benchmarks.paper.tables.conditions import condition_lines
from benchmarks.paper.tables.words import folded, paragraphs, worded
from benchmarks.scale.cells import COLUMNS, PARTS, Cell, Results, Sizes, cells
from benchmarks.scale.growth import Sweep, all_series, sweep_cells
from benchmarks.scale.targets import (
    LIKELIHOODS,
    finished,
    speed_up,
    target_table,
    verdicts,
)

Row = dict[str, Any]
MODELS = {"lanam": "none", "lanam-auto": "auto"}  # pairs
CAPTIONS = {
    "scale-time": "Seconds of a fit against rows and columns.",
    "scale-memory": "Peak memory of all processes of a fit against rows, from files and in memory.",
}


def write_page(
    results: Results, sizes: Sizes, limit: float, pictures: dict[str, Path], where: str
) -> str:
    """The page of what has been measured; ``where`` is the folder of pictures as seen from it."""
    return paragraphs(
        [
            conditions(results, sizes),
            not_run(results, sizes),
            target_table(verdicts(results, sizes)),
            reference_lines(results, sizes),
            large_tables(results, sizes),
            *growth_tables(results, sizes, limit),
            *(_picture(name, path, where) for name, path in pictures.items()),
            worker_table(results, sizes),
            agreement_table(results, sizes),
        ]
    )


def _picture(name: str, path: Path, where: str) -> str:
    return f"![{CAPTIONS[name]}]({where}/{path.name})\n\n*{CAPTIONS[name]}*"


def _all(sizes: Sizes) -> list[Cell]:
    return [cell for part in PARTS for cell in cells(part, sizes)]


def conditions(results: Results, sizes: Sizes) -> str:
    """Machine, versions, dates and commits of what the page shows."""
    rows = [row for cell in _all(sizes) if (row := results.get(cell)) is not None]
    if not rows:
        return "### Conditions\n\nNothing has been measured yet."
    told = "\n".join(dict.fromkeys(row["conditions"] for row in rows))
    frame = pd.DataFrame(
        [
            {"model": row["cell"]["model"], **{k: row[k] for k in ("code", "started")}}
            for row in rows
        ]
    )
    return condition_lines(frame, told)


def not_run(results: Results, sizes: Sizes) -> str:
    """What the page has no figures for, and why."""
    lines = []
    for part, title in PARTS.items():
        own = cells(part, sizes)
        missing = [cell for cell in own if results.get(cell) is None]
        if missing:
            lines.append(f"- {title}: {len(missing)} of {len(own)} measurements not run.")
        failed: dict[str, list[Cell]] = {}
        for cell in own:
            if "error" in (row := results.get(cell) or {}):
                failed.setdefault(_flat(row["error"]), []).append(cell)
        for error, those in failed.items():
            others = f" and {len(those) - 1} more" if len(those) > 1 else ""
            lines.append(f"- {title}: **failed: {those[0]}{others}**: {error}")
    return "### Not run, and failed\n\n" + "\n".join(lines) if lines else ""


def _flat(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "/")


def reference_lines(results: Results, sizes: Sizes) -> str:
    """The unit of time."""
    (cell,) = cells(1, sizes)
    row = finished(results, cell)
    if row is None:
        return ""
    return (
        f"### One reference pass\n\nReading {cell.rows:,} rows of {cell.columns} numeric columns from "
        f"Parquet and sorting each column took **{row['whole_seconds']:.2f} s** "
        f"({cell.threads} thread{'s' if cell.threads > 1 else ''}); reading a row group at a time and "
        f"sorting each column of it, {row['seconds']:.2f} s. Each fit below has a pass of its own before "
        "and after it; the mean of the two is its unit."
    )


def large_tables(results: Results, sizes: Sizes) -> str:
    """Fits from files: time, memory, passes and truth."""
    rows, jobs = [], []
    for cell in cells(2, sizes):
        row = finished(results, cell)
        if row is None:
            continue
        unit, whole = row["reference_seconds"], row["whole_reference_seconds"]
        rows.append(
            [
                LIKELIHOODS[cell.target],
                MODELS[cell.model],
                number(row["fit_seconds"], 1),
                number(row["fit_seconds"] / whole, 1),
                number(row["fit_seconds"] / unit, 1),
                number(row["peak_bytes"] / 1e9, 2),
                number(row["summed_bytes"] / 1e9, 2),
                _known(row, "passes", 0),
                f"{row['nll']:.4f}",
                f"{row['nll_truth']:.4f}",
                f"{row['recovered']:.5f}",
                _known(row, "worst_effect", 4),
                f"{row['terms_active'] - row['pairs_active']} + {row['pairs_active']}",
            ]
        )
        for job, told in row.get("jobs", {}).items():
            jobs.append([LIKELIHOODS[cell.target], MODELS[cell.model], f"`{job}`", *_job(told)])
    if not rows:
        return ""
    header = ["likelihood", "pairs", "fit s", "reference passes", "of row groups", "peak GB"]
    header += ["sum of peaks", "passes over rows", "NLL", "true model's", "signal recovered"]
    header += ["worst function's error", "columns + pairs active"]
    title = f"{sizes.most:,} rows of {COLUMNS} numeric columns, from Parquet"
    legend = (
        "Held-out rows: NLL beside that of the true functions; the fraction of the "
        "signal's variance that is recovered; the root mean squared error of the worst column's "
        "function, in standard deviations of the signal. Peak memory is that of all processes of the fit "
        "at one moment, Python and libraries included, shared pages counted once, sampled ten "
        "times a second; the sum of peaks is an upper bound: the peak of each process, at whatever time, "
        "with its own copy of the libraries."
    )
    job_header = ["likelihood", "pairs", "job", "passes", "seconds"]
    details = folded("Passes over the rows, by purpose", worded(job_header, jobs)) if jobs else ""
    return paragraphs([markdown(header, rows, title), legend, details])


def _job(told: Row) -> tuple[str, str]:
    return str(told["passes"]), number(told["seconds"], 2)


def _known(row: Row, name: str, decimals: int) -> str:
    return number(row[name], decimals) if name in row else MISSING


def growth_tables(results: Results, sizes: Sizes, limit: float) -> Iterable[str]:
    """Seconds by size, and slopes."""
    slopes = []
    sweeps: tuple[Sweep, Sweep] = ("rows", "columns")
    for sweep in sweeps:
        found = all_series(results, sizes, sweep)
        if not found:
            continue
        along = sorted({getattr(cell, sweep) for cell in sweep_cells(sweep, sizes)})
        lines = []
        for size in along:
            cut = [f"> {limit:.0f}" if size in one.cut else MISSING for one in found]
            seconds = [dict(zip(one.sizes, one.values, strict=True)).get(size) for one in found]
            shown = [c if s is None else _seconds(s) for c, s in zip(cut, seconds, strict=True)]
            lines.append([f"{size:,}", *shown])
        fixed = f"{COLUMNS} columns" if sweep == "rows" else f"{sizes.sweep_columns_rows:,} rows"
        title = f"Seconds of a fit against {sweep} ({fixed})"
        yield markdown([sweep, *(one.title for one in found)], lines, title)
        for one in found:
            largest = f"{one.sizes[-1]:,}" if one.sizes else MISSING
            figures = (number(one.slope, 2), number(one.last_slope, 2))
            slopes.append([sweep, one.title, *figures, largest])
    if slopes:
        header = ["along", "model", "slope", "between the two largest", "largest size"]
        yield markdown(header, slopes, "Fitted slopes of log time (1: linear)")
        yield (
            f"A peer that needed more than {limit:.0f} s was given up there and not tried on more. EBM "
            "has its default bags; all have the same number of threads."
        )


def _seconds(value: float) -> str:
    return number(value, 2 if value < 10 else 1 if value < 100 else 0)


def worker_table(results: Results, sizes: Sizes) -> str:
    """One worker and two: a pass over rows in memory, all passes of the fit, and the fit."""
    figures: Sequence[tuple[str, str]] = (
        ("pass_seconds", "a row pass, rows in memory"),
        ("passes_seconds", "all passes of the fit, reading too"),
        ("fit_seconds", "the whole fit"),
    )
    rows = []
    for target, likelihood in LIKELIHOODS.items():
        own = [finished(results, cell) for cell in cells(4, sizes) if cell.target == target]
        if not any(own):
            continue
        for figure, title in figures:
            seconds = [MISSING if row is None else _known(row, figure, 2) for row in own]
            factor = speed_up(results, sizes, target, figure)
            rows.append(
                [likelihood, title, *seconds, MISSING if factor is None else f"{factor:.2f}"]
            )
        peak = [MISSING if row is None else number(row["worker_bytes"] / 1e9, 2) for row in own]
        rows.append([likelihood, "peak GB of a worker", *peak, MISSING])
    if not rows:
        return ""
    title = f"Two Dask workers against one, {sizes.most:,} rows"
    header = ["likelihood", "seconds of", "one worker", "two workers", "times faster"]
    legend = (
        "Workers are processes of one thread on this machine, which the client shares with them. The row "
        "pass sums the cross-tables of all pairs of columns, repeated: the median of five."
    )
    return paragraphs([markdown(header, rows, title), legend])


def agreement_table(results: Results, sizes: Sizes) -> str:
    """Greatest differences from the model that was fitted in memory."""
    rows = []
    for cell in cells(5, sizes):
        answer = finished(results, cell)
        for place, told in (answer or {"places": {}})["places"].items():
            head = [
                LIKELIHOODS[cell.target],
                MODELS[cell.model],
                "exact" if cell.stepped else "not exact",
                place,
            ]
            if "error" in told:
                rows.append([*head, f"failed: {_flat(told['error'])}", MISSING, MISSING])
                continue
            figures = [
                f"{told[k]:.1e}" if k in told else MISSING for k in ("mean", "std", "evidence")
            ]
            rows.append([*head, *figures])
    if not rows:
        return ""
    header = [
        "likelihood",
        "pairs",
        "sketch",
        "rows in",
        "prediction",
        "its std",
        "log evidence a row",
    ]
    title = f"Greatest difference from the fit in memory, {sizes.agreement:,} rows"
    legend = (
        "Predictions of 10,000 held-out rows, in standard deviations of the target. A sketch is exact "
        "where columns have at most 201 values; the others are continuous."
    )
    return paragraphs([markdown(header, rows, title), legend])
