"""No seed in the default fit: the same predictions for any seed, order of columns and order of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.data.sets import ALL_SETS, Array, Dataset
from benchmarks.environment import say
from benchmarks.markdown import in_order, markdown
from benchmarks.trust import design
from benchmarks.trust.fits import estimator
from benchmarks.trust.scores import load, split, there
from benchmarks.trust.section import Plan, Section, finished, guarded
from benchmarks.verdicts import Verdict, unmeasured

MODELS = {"lanam": {"interactions": 0}, "lanam-auto": {}}
#: Counts, several classes, raw tables with categories and missing values; large ones by some rows.
FURTHER = ("bike_hour", "hpc", "iris", "cultivars", "adult", "ames")
QUICK = ("heart", "yacht", "iris")
MOST_ROWS = 2000  # of the further sets
VARIANTS = ("seed 1", "seed 2", "columns 1", "columns 2", "rows 1", "rows 2", "finer")
SAME = 1e-6  # posterior standard deviations
FINER_MEAN, FINER_MOST = 0.05, 0.3


def cells(plan: Plan) -> list[Cell]:
    names = QUICK if plan.quick else (*ALL_SETS, *FURTHER)
    known = [n for n in names if n in ("iris", "cultivars") or there(plan.data, n)]
    variants = range(len(VARIANTS)) if design.available() else range(len(VARIANTS) - 1)
    if not design.available():
        say("SKIPPED finer: this version has no design of features to refine")
    return [
        Cell("seeds", name, model, variant)
        for name in known
        for model in MODELS
        for variant in variants
    ]


@dataclass(frozen=True)
class Predictions:
    """Test rows on the link scale: mean, posterior standard deviation, and that of an observation."""

    mean: Array
    std: Array
    observation: Array


def table_of(dataset: Dataset) -> pd.DataFrame:
    """The features as a frame with names, so that columns can change places."""
    if isinstance(dataset.X, pd.DataFrame):
        return dataset.X
    names = dataset.columns or [f"x{d}" for d in range(dataset.X.shape[1])]
    return pd.DataFrame(dataset.X, columns=list(names))


def measure(cells: Sequence[Cell], plan: Plan) -> Iterator[Row]:
    """Variants of one set and model, each against the same first fit."""
    name, arguments = cells[0].set, MODELS[cells[0].model]
    dataset = few_rows(load(plan.data, name)) if name in FURTHER else load(plan.data, name)
    train, test = split(replace(dataset, n_train=None), 0)
    first = predictions(dataset, train, test, "", arguments)
    for cell in cells:
        variant = VARIANTS[cell.fold]
        yield guarded(
            lambda variant=variant: (
                difference(first, predictions(dataset, train, test, variant, arguments))
                | {"variant": variant}
            )
        )


def few_rows(dataset: Dataset) -> Dataset:
    """Some rows of a large set, drawn at random."""
    if len(dataset.y) <= MOST_ROWS:
        return dataset
    rows = np.sort(np.random.default_rng(0).permutation(len(dataset.y))[:MOST_ROWS])
    X = dataset.rows(rows)
    X = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X
    return replace(dataset, X=X, y=dataset.y[rows], n_train=None)


def predictions(
    dataset: Dataset, train: Array, test: Array, variant: str, arguments: dict[str, Any]
) -> Predictions:
    """Fit a variant and predict the test rows."""
    frame = table_of(dataset)
    kind, _, number = variant.partition(" ")
    seed = int(number or 0)
    rng = np.random.default_rng(seed)
    if kind == "columns":
        frame = frame[list(rng.permutation(frame.columns))]
    rows = rng.permutation(train) if kind == "rows" else train
    own = {"random_state": seed if kind == "seed" else 0}
    with design.finer() if kind == "finer" else nullcontext():
        model = estimator(dataset.task, **own, **arguments).fit(frame.iloc[rows], dataset.y[rows])
        return predict(model, frame.iloc[test])


def predict(model: Any, X: pd.DataFrame) -> Predictions:
    """Moments on the link scale, where bands are symmetric; no public call has them for all families."""
    from lanam.core.model.scoring import link_moments

    mean, variance = link_moments(model._model, model._columns(X))
    several = mean.ndim == 2
    std = np.sqrt(np.diagonal(variance, axis1=1, axis2=2) if several else variance)
    numbers = hasattr(model, "predict_noise")
    observation = model.predict(X, return_std=True)[1] if numbers else np.zeros(len(mean))
    return Predictions(mean, std, observation)


def difference(first: Predictions, second: Predictions) -> Row:
    """Differences of the means in posterior standard deviations, of standard deviations relative ones.

    A model without an active term has a posterior standard deviation too, that of its intercept.
    """
    apart = np.abs(second.mean - first.mean) / first.std
    row: Row = {"largest": float(apart.max()), "mean": float(apart.mean())}
    row["band"] = float(np.abs(second.std / first.std - 1).max())
    known = first.observation > 0
    if known.any():
        ratio = second.observation[known] / first.observation[known]
        row["spread"] = float(np.abs(ratio - 1).max())
    return row


def kinds(results: pd.DataFrame) -> pd.DataFrame:
    """Finished rows with the kind of their variant."""
    rows = finished(results)
    return rows.assign(kind=rows["variant"].str.split(" ").str[0])


def tables(results: pd.DataFrame) -> list[str]:
    rows, blocks = kinds(results), []
    for model in in_order(rows["model"], tuple(MODELS)):
        lines = []
        for name in in_order(rows["set"], (*ALL_SETS, *FURTHER)):
            own = rows[(rows["set"] == name) & (rows["model"] == model)]
            figures = []
            for kind in ("seed", "columns", "rows", "finer"):
                part = own[own["kind"] == kind]
                shown = f"{part['largest'].max():.1e} ({part['mean'].mean():.1e})"
                figures.append(shown if len(part) else "-")
            others = own[own["kind"] != "finer"].reindex(columns=["band", "spread"])
            spread = others.max().max()
            lines.append([name, *figures, f"{spread:.1e}"])
        header = [
            "set",
            "seed",
            "order of columns",
            "order of rows",
            "finer design",
            "bands, noise",
        ]
        title = "Without interactions" if model == "lanam" else "With interactions"
        blocks.append(markdown(header, lines, title))
    legend = (
        "Largest (and mean) difference of the predictions of the test rows of fold 0 from a first fit, in "
        "posterior standard deviations, on the link scale: two other seeds, orders of columns, orders of "
        "rows, and a design of features twice as fine. *bands, noise*: largest relative difference of the "
        "standard deviation of the mean, or of an observation, without the finer design. Sets other than "
        f"the paper's have {MOST_ROWS:,} rows at most."
    )
    return [*blocks, legend]


def targets(results: pd.DataFrame) -> list[Verdict]:
    rows = kinds(results) if len(results) else results
    judged = []
    for model, words in (("lanam", "without interactions"), ("lanam-auto", "with interactions")):
        own = rows[rows["model"] == model] if len(rows) else rows
        for kind, title in (
            ("seed", "seed"),
            ("columns", "order of columns"),
            ("rows", "order of rows"),
        ):
            what = f"{title}, {words}: predictions the same to 1e-6 posterior sd on every set"
            part = own[own["kind"] == kind] if len(own) else own
            judged.append(_same(what, part) if len(part) else unmeasured(what))
        paper = own[(own["kind"] == "finer") & own["set"].isin(ALL_SETS)] if len(own) else own
        what = f"finer design, {words}: mean difference under .05 on the paper's sets, largest under .3"
        if paper.empty:
            judged.append(unmeasured(what))
            continue
        mean, most = paper["mean"].max(), paper["largest"].max()
        holds = mean < FINER_MEAN and most < FINER_MOST
        judged.append(Verdict(what, f"{mean:.3f}, {most:.2f}", bool(holds)))
    return judged


def _same(what: str, part: pd.DataFrame) -> Verdict:
    largest = part.groupby("set")["largest"].max()
    other = largest[largest > SAME]
    shown = f"{largest.max():.1e} ({largest.idxmax()}); {len(other)} of {len(largest)} sets differ"
    return Verdict(what, shown, other.empty)


SECTION = Section(
    "seeds",
    "No seed",
    cells,
    measure,
    tables,
    targets,
    batch=len(VARIANTS),
    needs_data=True,
)
