"""The content of a report, gathered from a fitted estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from lanam.conformal import Calibration
from lanam.core.arrays import Array
from lanam.core.model.distributions import FARTHEST, tail_beyond
from lanam.data import Schema
from lanam.explain import GlobalExplanation
from lanam.explain.portable import PortableModel
from lanam.metrics import Adequacy, CoverageReport
from lanam.provenance import Provenance, Target
from lanam.summary import Summary

#: Coverages to choose from.
_COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

#: Families for which the page's script computes prediction intervals (score.js).
_SCRIPTED = ("gaussian", "student", "lognormal", "poisson")


@dataclass(frozen=True, eq=False)
class ExampleRows:
    """Rows of the data to choose from: their indices, encoded cells (n, D), targets and exposures.

    ``n_all`` is the number of rows of the data.
    """

    indices: Sequence[int]
    cells: Array
    observed: Sequence[object] | None
    exposure: Array | None
    n_all: int


@dataclass(frozen=True)
class Level:
    """A coverage to choose, and the half-width of its intervals in standard deviations.

    ``z_new`` and ``tail_new`` are half-width and tail probability for new observations, calibrated if the
    model is; None if they cannot be computed, for the ``reason``.
    """

    coverage: float
    z: float
    z_new: float | None
    tail_new: float | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Material:
    """The content of a report.

    Attributes
    ----------
    title
        None for the estimator's name.
    summary, explanation, portable, schema
        The fitted model and its columns.
    arguments
        The constructor's arguments that are not the defaults.
    history
        Log evidence after every iteration.
    levels
        Coverages, of which ``first`` is selected initially.
    calibrated
        Number of held-out rows of the conformal calibration; 0 without.
    coverage
        Calibration and scores on the given data, if any.
    rows
        Rows to choose from, if any.
    normals
        Normal draws for the intervals of several classes.
    noise
        Noise standard deviations of the given rows, if the noise is heteroscedastic.
    noise_explanation
        The functions of heteroscedastic noise, or None.
    provenance
        Where the model comes from; None if its file is too old to know.
    part
        What the given rows were to the fit: "training", "held out", "both" or "unknown".
    adequacy
        What a black box would gain, if that was asked for.
    follow_up
        The ends of the intervals of a survival model, whose time is the last column; None for others.
    """

    title: str | None
    summary: Summary
    explanation: GlobalExplanation
    portable: PortableModel
    schema: Schema
    arguments: Mapping[str, object]
    history: Sequence[float]
    levels: Sequence[Level]
    first: float
    calibrated: int
    coverage: CoverageReport | None
    rows: ExampleRows | None
    normals: Array | None
    noise: Array | None
    noise_explanation: GlobalExplanation | None
    provenance: Provenance | None
    part: str
    adequacy: Adequacy | None = None
    follow_up: Array | None = None

    @property
    def target(self) -> Target | None:
        """What the model predicts; None if its file is too old to know."""
        return None if self.provenance is None else self.provenance.target

    @property
    def target_name(self) -> str | None:
        """The name of the target, if it is known."""
        return None if self.target is None else self.target.name

    @property
    def events(self) -> tuple[str, ...] | None:
        """The classes as text; two of them as values of the target, if its name is known."""
        classes = self.explanation.classes
        if classes is None or len(classes) > 2 or self.target_name is None:
            return None if classes is None else tuple(map(str, classes))
        return tuple(f"{self.target_name} = {label}" for label in classes)

    @property
    def unit(self) -> str:
        """The unit of contributions."""
        return self.explanation.family.words.unit_of(self.events)

    @property
    def used(self) -> set[int]:
        """The columns that affect the mean or the noise."""
        tables = (*self.explanation.active, *self.portable.noise_tables)
        return {feature for table in tables for feature in table.features}


def gather(
    model: Any,
    *,
    portable: PortableModel,
    schema: Schema,
    normals: Array | None,
    title: str | None,
    coverage: float,
    report: CoverageReport | None,
    rows: ExampleRows | None,
    noise: Array | None,
    part: str,
    adequacy: Adequacy | None = None,
) -> Material:
    """The content of the report of a fitted estimator."""
    calibration = getattr(model, "calibration_", None) if portable.classes is None else None
    family, defaults = portable.family, inspect.signature(type(model)).parameters
    return Material(
        title=title,
        summary=model.summary(),
        explanation=model.explain_global(),
        portable=portable,
        schema=schema,
        arguments={
            name: value
            for name, value in model.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        },
        history=[record["log_evidence"] for record in model.history_],
        levels=[
            _level(
                chosen,
                calibration,
                near=family.discrete or portable.shape is not None,
                scripted=family.link.classes or family.name in _SCRIPTED,
            )
            for chosen in sorted({*_COVERAGES, coverage})
        ],
        first=coverage,
        calibrated=0 if calibration is None else calibration.n_rows,
        coverage=report,
        rows=rows,
        normals=normals,
        noise=noise,
        noise_explanation=model.explain_noise() if portable.noise_tables else None,
        provenance=model.provenance_,
        part=part,
        adequacy=adequacy,
        follow_up=getattr(model, "unique_times_", None),
    )


def _level(
    coverage: float, calibration: Calibration | None, *, near: bool, scripted: bool
) -> Level:
    """The intervals of a coverage.

    Some distributions can only be computed ``near`` their centre, some not at all by the page's script.
    """
    z = float(ndtri(0.5 + 0.5 * coverage))
    if not scripted:
        reason = "not computed here: see predict_interval"
    elif calibration is None:
        return Level(coverage, z, z, float(ndtr(-z)))
    elif coverage > calibration.most_coverage:
        reason = f"{calibration.n_rows} held-out rows are too few to calibrate this coverage"
    elif near and calibration.threshold(coverage) > FARTHEST:
        reason = "too far out in the tails to be computed here: see predict_interval"
    else:
        score = calibration.threshold(coverage)
        return Level(coverage, z, score, tail_beyond(score))
    return Level(coverage, z, None, None, reason)


def pick_rows(
    cells: Array, n_rows: int, observed: ArrayLike | None = None, exposure: Array | None = None
) -> ExampleRows | None:
    """Rows that are evenly spread over the data; None for ``n_rows=0``."""
    if not isinstance(n_rows, int | np.integer) or n_rows < 0:
        raise ValueError(f"n_rows={n_rows!r} must be a number of rows, or 0 for none")
    if n_rows == 0:
        return None
    chosen = np.unique(np.linspace(0, len(cells) - 1, min(n_rows, len(cells))).round().astype(int))
    return ExampleRows(
        indices=chosen.tolist(),
        cells=cells[chosen],
        observed=None if observed is None else np.asarray(observed)[chosen].tolist(),
        exposure=None if exposure is None else exposure[chosen],
        n_all=len(cells),
    )
