"""A fitted estimator to the material of a report."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from lanam.conformal import Calibration
from lanam.core.arrays import Array
from lanam.core.model.distributions import FARTHEST, tail_beyond
from lanam.data import Schema
from lanam.explain.portable import PortableModel
from lanam.metrics import CoverageReport
from lanam.report.material import Level, Material, Rows

#: Coverages that a reader can choose from.
_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

#: Families whose new observations the page's script can predict (score.js).
_SCRIPTED = ("gaussian", "poisson")


def gather(
    model: Any,
    *,
    portable: PortableModel,
    schema: Schema,
    normals: Array | None,
    title: str | None,
    coverage: float,
    report: CoverageReport | None,
    rows: Rows | None,
    noise: Array | None,
) -> Material:
    """What a fitted estimator has to say, by its public methods, and what it hands over by itself."""
    own = getattr(model, "calibration_", None) if portable.classes is None else None
    return Material(
        title=title,
        summary=model.summary(),
        explanation=model.explain_global(),
        portable=portable,
        schema=schema,
        arguments=_own_arguments(model),
        history=[record["log_evidence"] for record in model.history_],
        levels=_levels(
            sorted({*_COVERAGES, coverage}),
            own,
            near=portable.family.discrete or portable.shape is not None,
            scripted=portable.family.link.classes or portable.family.name in _SCRIPTED,
        ),
        first=coverage,
        calibrated=0 if own is None else own.n_rows,
        coverage=report,
        rows=rows,
        normals=normals,
        noise=noise,
    )


def _own_arguments(model: Any) -> dict[str, object]:
    """The constructor's arguments that differ from the defaults."""
    defaults = inspect.signature(type(model)).parameters
    given = model.get_params(deep=False)
    return {
        name: value for name, value in given.items() if repr(value) != repr(defaults[name].default)
    }


def _levels(
    coverages: Sequence[float], calibration: Calibration | None, *, near: bool, scripted: bool
) -> list[Level]:
    """What intervals of each coverage take.

    Some distributions are known ``near`` their middle only, and some not at all to the page's script.
    """

    def level(coverage: float) -> Level:
        z = float(ndtri(0.5 + 0.5 * coverage))
        if not scripted:
            reason = "not computed here: see predict_interval"
        elif calibration is None:
            return Level(coverage, z, z, float(ndtr(-z)))
        elif coverage > calibration.most_coverage:
            reason = f"{calibration.n_rows} held-out rows are too few to calibrate so much"
        elif near and calibration.threshold(coverage) > FARTHEST:
            reason = "too far out in the tails to be computed here: see predict_interval"
        else:
            score = calibration.threshold(coverage)
            return Level(coverage, z, score, tail_beyond(score))
        return Level(coverage, z, None, None, reason)

    return list(map(level, coverages))


def pick_rows(
    cells: Array, n_rows: int, observed: ArrayLike | None = None, exposure: Array | None = None
) -> Rows | None:
    """Some rows of the data, evenly spread over it; None if there are to be none."""
    if not isinstance(n_rows, int | np.integer) or n_rows < 0:
        raise ValueError(f"n_rows={n_rows!r} must be a number of rows, or 0 for none")
    if n_rows == 0:
        return None
    places = np.unique(np.linspace(0, len(cells) - 1, min(n_rows, len(cells))).round().astype(int))
    return Rows(
        places=places.tolist(),
        cells=cells[places],
        observed=None if observed is None else np.asarray(observed)[places].tolist(),
        exposure=None if exposure is None else exposure[places],
        n_all=len(cells),
    )
