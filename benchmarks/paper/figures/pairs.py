"""Figures of pairs: correlations by which they are chosen, and what the strongest add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Store
from benchmarks.paper.figures.common import Look, NothingToDraw

N_CORRELATED = 25
#: Sets with pairs worth showing, the first that has them; the open patients have hardly any.
EXAMPLES = ("concrete", "kin8nm")


def correlations(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Last-layer posterior correlations of the columns that have the largest; dots at the pairs chosen."""
    look = Look(store, results, "icu", "physionet2012")
    found = look.firsts(["lanam10-mi"], "pair_scores")
    if not found:
        raise NothingToDraw("no finished cell of icu lanam10-mi with the scores of pairs")
    arrays = found["lanam10-mi"]
    matrix = correlation_of(arrays["pair_scores"])
    columns = arrays.get("columns", np.arange(len(matrix)).astype(str))
    strongest = np.nan_to_num(matrix).max(axis=1)
    kept = np.sort(np.argsort(-strongest, kind="stable")[:N_CORRELATED])
    figure, ax = plt.subplots(figsize=(8.6, 7.6), layout="constrained")
    image = ax.imshow(matrix[np.ix_(kept, kept)], cmap="cividis", vmin=0.0)
    names = [str(columns[k]).replace("_", " ") for k in kept]
    ax.set_xticks(range(len(kept)), names, rotation=90, fontsize=9)
    ax.set_yticks(range(len(kept)), names, fontsize=9)
    place = {int(k): position for position, k in enumerate(kept)}
    for i, j in arrays["pairs_active"]:
        if i in place and j in place:
            for a, b in ((i, j), (j, i)):
                ax.plot(
                    place[b], place[a], "o", color="white", markeredgecolor="black", markersize=5
                )
    bar = figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("|posterior correlation| of the output weights", fontsize=10)
    return figure


def correlation_of(mutual_information: np.ndarray) -> np.ndarray:
    """Absolute correlation of two Gaussians with this mutual information; not a number on the diagonal."""
    matrix = np.sqrt(-np.expm1(-2.0 * np.asarray(mutual_information, float)))
    np.fill_diagonal(matrix, np.nan)
    return matrix


def examples(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Two pairs of a set: what they add beyond each column by itself, and its standard deviation."""
    found: dict[str, Arrays] = {}
    for name in EXAMPLES:
        found = Look(store, results, "uci", name).firsts(["lanam10"], "pair_names")
        if found:
            break
    else:
        raise NothingToDraw(f"no finished cell of uci lanam10 on {' or '.join(EXAMPLES)} has pairs")
    arrays = found["lanam10"]
    n_pairs = len(arrays["pair_names"])
    figure, axes = plt.subplots(
        n_pairs, 2, figsize=(9.2, 0.4 + 3.5 * n_pairs), squeeze=False, layout="constrained"
    )
    for k, row in enumerate(axes):
        draw_pair(figure, row, arrays, k)
    axes[0, 0].set_title(f"mean ({name})", fontsize=11)
    axes[0, 1].set_title("standard deviation", fontsize=11)
    return figure


def draw_pair(figure: Any, axes: Any, arrays: Arrays, k: int) -> None:
    """Mean and standard deviation of the kth pair, training rows as dots."""
    x, y, mean, std, rows = (arrays[f"pair{k}_{w}"] for w in ("x", "y", "mean", "std", "rows"))
    # corners without data may be far off, and would take all the colours
    largest, widest = np.quantile(np.abs(mean), 0.98), np.quantile(std, 0.98)
    looks = (
        (mean, {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}),
        (std, {"cmap": "viridis", "vmin": 0.0, "vmax": widest}),
    )
    names = [str(name).replace("_", " ") for name in arrays["pair_names"][k]]
    for ax, (values, look) in zip(axes, looks, strict=True):
        image = ax.pcolormesh(x, y, values.T, shading="gouraud", **look)
        ax.scatter(*rows.T, s=5, color="black", alpha=0.5, linewidths=0)
        ax.set_xlim(x[0], x[-1])
        ax.set_ylim(y[0], y[-1])
        ax.set_xlabel(names[0], fontsize=11)
        ax.set_ylabel(names[1], fontsize=11)
        ax.tick_params(labelsize=9)
        figure.colorbar(image, ax=ax, extend="both" if values is mean else "max")
