"""The causes and intervals of a survival model as plain values and arrays, checked when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanam.core.model.fitted import FittedModel
from lanam.core.rows.follow_up import Timeline
from lanam.data import NUMERIC, Schema
from lanam.families import SURVIVAL
from lanam.storage.errors import require
from lanam.storage.fields import Arrays, Fields, each
from lanam.storage.models import read_model, write_model

#: More causes than this, or later times, are none.
_MOST_CAUSES = 1000
_LARGEST_TIME = 1e100


@dataclass(frozen=True, eq=False)
class SavedFollowUp:
    """What a survival model has besides the model of its first cause: intervals, and the others' models."""

    timeline: Timeline
    causes: np.ndarray
    others: tuple[FittedModel, ...]


def write_follow_up(saved: SavedFollowUp, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Plain values; the arrays are added to ``arrays``."""
    arrays["follow-up edges"] = saved.timeline.edges
    arrays["follow-up events"] = saved.timeline.n_events
    arrays["follow-up causes"] = saved.causes.astype(np.int32)
    models = []
    for k, model in enumerate(saved.others):
        inner: dict[str, np.ndarray] = {}
        models.append(write_model(model, inner))
        arrays.update({f"{_prefix(k)}{name}": array for name, array in inner.items()})
    return {"unit": float(saved.timeline.unit), "models": models}


def read_follow_up(values: object, arrays: Arrays, schema: Schema) -> SavedFollowUp:
    """The inverse of :func:`write_follow_up`."""
    fields = Fields(values, "the follow-up", ("unit", "models"))
    edges = arrays.take("follow-up edges", "f8", (None,), _LARGEST_TIME)
    require(len(edges) > 1 and bool((np.diff(edges) > 0.0).all()), "the intervals of follow-up")
    n_events = arrays.take("follow-up events", "f8", (len(edges) - 1,))
    require(bool((n_events >= 0.0).all()), "the events of follow-up")
    causes = arrays.take("follow-up causes", "i4", (None,)).astype(int)
    known = 0 < len(causes) <= _MOST_CAUSES and bool((np.diff(causes) > 0).all())
    require(known and causes[0] > 0, "the causes")
    require(schema.n_columns > 1 and schema.columns[-1].kind == NUMERIC, "the time of follow-up")
    others = []
    for k, content in each(fields.values["models"], "the models of causes"):
        inner = arrays.within(_prefix(k))
        model = read_model(content, inner, schema.n_levels)
        inner.require_none_left()
        require(model.likelihood == SURVIVAL.name, "the likelihood")
        others.append(model)
    require(len(others) == len(causes) - 1, "how many causes there are")
    timeline = Timeline(edges, fields.number("unit", 0.0), n_events)
    return SavedFollowUp(timeline, causes, tuple(others))


def _prefix(k: int) -> str:
    return f"cause {k} "
