"""What a report is made of: explanations and facts, as a model hands them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanam.core.arrays import Array
from lanam.data import Schema
from lanam.explain import GlobalExplanation
from lanam.explain.portable import PortableModel
from lanam.metrics import CoverageReport
from lanam.summary import Summary


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that a reader can pick.

    Attributes
    ----------
    places
        Their numbers in the data.
    cells
        (n, D) numbers and codes, as the model reads them.
    observed
        Their targets, if they were given: numbers or labels.
    exposure
        Of counts.
    n_all
        How many rows the data has.
    """

    places: Sequence[int]
    cells: Array
    observed: Sequence[object] | None
    exposure: Array | None
    n_all: int


@dataclass(frozen=True)
class Level:
    """A coverage that a reader can choose, and how many standard deviations that is.

    ``z_new`` is the same for new observations, by calibration if there was one; None if it allows no
    such coverage, for which there is a ``reason``. ``tail_new`` is the probability beyond it on either
    side.
    """

    coverage: float
    z: float
    z_new: float | None
    tail_new: float | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Material:
    """Everything a report tells.

    Attributes
    ----------
    title
        What stands on top; None for the estimator's name.
    summary, explanation, portable, schema
        The model, in words, in curves, in tables, and its columns.
    arguments
        The constructor's arguments that are not the defaults.
    history
        Log evidence after every iteration.
    levels
        Coverages, of which ``first`` is shown first.
    calibrated
        How many held-out rows the intervals were calibrated with; 0 for the model's own.
    coverage
        How the model does on the data that was given, if there was any.
    rows
        Rows to pick, if there are any.
    normals
        Draws behind the intervals of several classes.
    noise
        Standard deviations of the noise of all rows that were given, if it differs between rows.
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
    rows: Rows | None
    normals: Array | None
    noise: Array | None

    @property
    def used(self) -> set[int]:
        """The columns that change anything: the mean, or how much rows vary around it."""
        tables = (*self.explanation.active, *self.portable.noise_tables)
        return {feature for table in tables for feature in table.features}
