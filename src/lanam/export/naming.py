"""Names at the two ends of an export: columns in, results out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lanam.data import Schema, find_column
from lanam.errors import InputError, Setting
from lanam.explain.portable import PortableModel

Hook = TypeVar("Hook", bound=Callable[..., Any])


def model_names(
    schema: Schema, features: Sequence[int], columns: Mapping[str, str] | None
) -> dict[int, str]:
    """What the columns that are read are called elsewhere: ``columns`` says where that differs."""
    names = list(schema.names)
    for name, other in (columns or {}).items():
        names[find_column(name, schema.names, "columns")] = other
    return {feature: names[feature] for feature in features}


def require_apart(names: Sequence[str], why: str) -> None:
    """Refuse names that differ in nothing but capital letters."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"{seen[name.lower()]!r} and {name!r} both name a column, and {why}")
        seen[name.lower()] = name


def hook_of(hooks: Mapping[str, Hook], portable: PortableModel) -> Hook:
    """How a format writes the predictions of a model's family.

    Raises
    ------
    ValueError
        If it has no way to.
    """
    name = portable.family.name
    if name not in hooks:
        problem = "predictions of {family} cannot be written in this format"
        remedy = "{pass variance=False} for the link's mean alone"
        raise InputError(problem, remedy, family=Setting("likelihood", name))
    return hooks[name]


def results_of(portable: PortableModel, variance: bool) -> list[str]:
    """The names of an export's results, in their order.

    With several classes one each; classes whose names cannot be told apart have numbers.
    """
    labels = [str(label) for label in portable.classes or ()]
    if len({label.lower() for label in labels}) < len(labels):
        labels = [str(number) for number in range(len(labels))]
    names = ["link_mean"] + (["link_variance"] if variance else [])
    if portable.family.link.several:
        names = [f"{kind}_{label}" for kind in names for label in labels]
    if not variance:
        return names
    if not portable.family.link.classes:
        return [*names, "prediction", "observation_variance"]
    return [*names, *(f"probability_{label}" for label in labels)]
