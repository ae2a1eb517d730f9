"""What was asked for beside what was measured; nothing is typed in but the limits."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import markdown
from benchmarks.scale.cells import Cell, Results, Sizes, cells
from benchmarks.verdicts import Verdict, limit, unmeasured

Row = dict[str, Any]
PASSES = {"y": 4.0, "ill": 15.0}  # a fit, in reference passes
PEAK = 1.5e9  # bytes
SPEED_UP = 1.6  # of all row passes of a fit, by the second worker
EXACT, CLOSE = 1e-6, 1e-2  # differences of predictions, in standard deviations of the target
WORDS = {True: "met", False: "**missed**", None: "not run"}
LIKELIHOODS = {"y": "Gaussian", "ill": "Bernoulli"}


def finished(results: Results, cell: Cell) -> Row | None:
    """The answer of a cell that has figures."""
    row = results.get(cell)
    return None if row is None or "error" in row or "cut" in row else row


def verdicts(results: Results, sizes: Sizes) -> list[Verdict]:
    """Every target of the page."""
    return [
        *large_verdicts(results, sizes),
        *worker_verdicts(results, sizes),
        *agreement_verdicts(results, sizes),
    ]


def large_verdicts(results: Results, sizes: Sizes) -> list[Verdict]:
    """Time and memory of first-order fits from files."""
    judged = []
    for cell in cells(2, sizes):
        if cell.model != "lanam":
            continue
        row, most = finished(results, cell), PASSES[cell.target]
        what = f"{cell.rows:,} x {cell.columns} from Parquet, {LIKELIHOODS[cell.target]}"
        time = f"{what}: at most {most:.0f} reference passes"
        memory = f"{what}: peak memory under {PEAK / 1e9:g} GB"
        if row is None:
            judged += [unmeasured(time), unmeasured(memory)]
            continue
        judged.append(limit(time, row["fit_seconds"] / row["whole_reference_seconds"], most))
        judged.append(limit(memory, row["peak_bytes"] / 1e9, PEAK / 1e9, " GB"))
    return judged


def speed_up(results: Results, sizes: Sizes, target: str, figure: str) -> float | None:
    """How many times faster two workers are than one; a row pass compares with the same only."""
    one, two = (finished(results, c) or {} for c in cells(4, sizes) if c.target == target)
    other = figure == "pass_seconds" and one.get("pass_job") != two.get("pass_job")
    return None if other or figure not in one or figure not in two else one[figure] / two[figure]


def worker_verdicts(results: Results, sizes: Sizes) -> list[Verdict]:
    """Row passes of the fit by two workers against one: those of all jobs, the first reading the files."""
    judged = []
    for target, likelihood in LIKELIHOODS.items():
        requirement = (
            f"{sizes.most:,} rows, {likelihood}: two Dask workers at least {SPEED_UP} times faster "
            "than one on the row passes"
        )
        factor = speed_up(results, sizes, target, "passes_seconds")
        if factor is None:
            judged.append(unmeasured(requirement))
        else:
            judged.append(Verdict(requirement, f"{factor:.2f}", factor >= SPEED_UP))
    return judged


def agreement_verdicts(results: Results, sizes: Sizes) -> list[Verdict]:
    """Predictions of the same model, wherever its rows lived."""
    judged = []
    for stepped, most in ((True, EXACT), (False, CLOSE)):
        kind = "exact sketches" if stepped else "sketches that are not exact"
        requirement = (
            f"memory, files and Dask, {kind}: predictions differ by at most {most:g} standard "
            "deviations"
        )
        rows = [finished(results, c) for c in cells(5, sizes) if c.stepped == stepped]
        places = [place for row in rows if row is not None for place in row["places"].values()]
        failed = sum("error" in place for place in places)
        known = [place["mean"] for place in places if "error" not in place]
        if not known or None in rows:
            judged.append(unmeasured(requirement))
            continue
        note = f"; {failed} fits failed" if failed else ""
        holds = not failed and max(known) <= most
        judged.append(Verdict(requirement, f"{max(known):.1e}{note}", holds))
    return judged


def target_table(judged: list[Verdict]) -> str:
    """All targets, the missed ones as visible as the others."""
    rows = [[one.requirement, one.measured, WORDS[one.holds]] for one in judged]
    return markdown(["target", "measured", "verdict"], rows, "Targets")
