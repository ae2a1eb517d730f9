"""A fitted estimator as a value, and that value as the bytes of a file, of any version."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from lanam.conformal import Calibration
from lanam.core.model.fitted import FittedModel
from lanam.data import Schema
from lanam.editing import Edit
from lanam.engines.dialects import Dialect
from lanam.families import FAMILIES, SURVIVAL, find_family
from lanam.provenance import Provenance
from lanam.storage import container
from lanam.storage.container import Contents
from lanam.storage.errors import DamageError, ModelFileError, require
from lanam.storage.fields import Arrays, Fields
from lanam.storage.follow_up import SavedFollowUp, read_follow_up, write_follow_up
from lanam.storage.models import read_model, write_model
from lanam.storage.origins import read_provenance, write_provenance
from lanam.storage.schemas import (
    read_classes,
    read_edits,
    read_schema,
    write_classes,
    write_schema,
)
from lanam.storage.soundness import require_sound
from lanam.storage.values import decode, decode_all, encode
from lanam.version import __version__

_REGRESSOR, _CLASSIFIER, _SURVIVAL = "LANAMRegressor", "LANAMClassifier", "LANAMSurvival"
_ESTIMATORS = (_REGRESSOR, _CLASSIFIER, _SURVIVAL)

#: For each readable version of the format, the fields that models got later: heteroscedastic noise in
#: version 2, residual distributions other than the Gaussian in version 3. Version 4 has infinitely wide
#: networks and the noise's degrees of freedom, which earlier files lack. Versions are never removed.
READERS: dict[int, tuple[str, ...]] = {
    1: ("noise", "noise_shape"),
    2: ("noise_shape",),
    3: (),
    4: (),
}

#: Containers of scikit-learn's ``set_output``.
_OUTPUTS = ("default", "pandas", "polars")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The complete state of a fitted estimator.

    ``estimator`` is the name of its class, ``output`` the container of ``set_output``, ``notes`` are for
    readers of the file, ``metadata`` is the user's: names with strings, numbers, booleans or None.
    ``exposed`` is whether counts were fitted with exposures or trials, ``offset`` whether any family with
    offsets, ``dialect`` that of the fit's CSV files, ``provenance`` the fit's data and date, which older
    files lack; ``follow_up`` is of survival models.
    """

    estimator: str
    parameters: dict[str, Any]
    model: FittedModel
    schema: Schema
    n_rows: int
    interaction_score: str
    feature_names: tuple[str, ...] | None = None
    classes: np.ndarray | None = None
    calibration: Calibration | None = None
    edits: tuple[Edit, ...] = ()
    output: str | None = None
    notes: tuple[str, ...] = ()
    metadata: dict[str, object] | None = None
    exposed: bool = False
    dialect: Dialect | None = None
    provenance: Provenance | None = None
    offset: bool = False
    family_scores: tuple[tuple[str, float], ...] = ()
    follow_up: SavedFollowUp | None = None


#: Keys that not every file has, and those that every file has; the calibration is in arrays.
_OPTIONAL = ("dialect", "provenance", "offset", "family_scores", "follow_up")
_KEYS = {field.name for field in fields(SavedModel)} - {"calibration", *_OPTIONAL} | {"lanam"}


def of_estimator(estimator: Any) -> SavedModel:
    """The state of a fitted estimator, which must be one of lanam's classes."""
    name = type(estimator).__name__
    if name not in _ESTIMATORS or type(estimator).__module__.split(".")[0] != "lanam":
        raise ValueError(
            f"{name} is not a class of lanam, and model files have no code: save a LANAMRegressor, a "
            "LANAMClassifier or a LANAMSurvival, or pickle this one"
        )
    parameters, notes = _plain_parameters(estimator.get_params(deep=False))
    names = getattr(estimator, "feature_names_in_", None)
    return SavedModel(
        name,
        parameters,
        estimator._model,
        estimator._schema,
        estimator._n_rows,
        estimator.interaction_scores_.score,
        None if names is None else tuple(names),
        getattr(estimator, "classes_", None),
        getattr(estimator, "calibration_", None),
        tuple(getattr(estimator, "edits_", ())),
        getattr(estimator, "_sklearn_output_config", {}).get("transform"),
        notes,
        getattr(estimator, "metadata_", None),
        getattr(estimator, "_exposed", False),
        getattr(estimator, "dialect_", None),
        estimator.provenance_,
        getattr(estimator, "_has_offset", False),
        tuple(estimator.family_scores_.scores) if hasattr(estimator, "family_scores_") else (),
        estimator._follow_up,
    )


def _plain_parameters(given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Constructor arguments without the state of a random generator, and a note if there was one."""
    state = given.get("random_state")
    if isinstance(state, np.random.RandomState | np.random.Generator):
        note = (
            f"random_state was a {type(state).__name__}, which files cannot store: it is None here"
        )
        return {**given, "random_state": None}, (note,)
    return given, ()


def to_bytes(saved: SavedModel) -> bytes:
    """The bytes of a file, which can be read again."""
    arrays: dict[str, np.ndarray] = {}
    if saved.calibration is not None:
        arrays["calibration scores"] = saved.calibration.scores
        arrays["calibration weight"] = saved.calibration.weight
    content = {
        "lanam": __version__,
        "estimator": saved.estimator,
        "parameters": {name: _encode(name, value) for name, value in saved.parameters.items()},
        "notes": list(saved.notes),
        "n_rows": int(saved.n_rows),
        "interaction_score": saved.interaction_score,
        "feature_names": None if saved.feature_names is None else list(saved.feature_names),
        "classes": write_classes(saved.classes),
        "output": saved.output,
        "edits": list(saved.edits),
        "metadata": _require_flat(saved.metadata),
        "exposed": bool(saved.exposed),
        "schema": write_schema(saved.schema),
        "model": write_model(saved.model, arrays),
    }
    if saved.dialect is not None and saved.dialect != Dialect():
        content["dialect"] = asdict(saved.dialect)
    if saved.family_scores:
        content["family_scores"] = [[name, encode(score)] for name, score in saved.family_scores]
    if saved.offset:
        content["offset"] = True
    if saved.provenance is not None:
        content["provenance"] = write_provenance(saved.provenance, arrays)
    if saved.follow_up is not None:
        content["follow_up"] = write_follow_up(saved.follow_up, arrays)
    data = container.pack(Contents(content, arrays))
    try:
        from_bytes(data)
    except ModelFileError as error:
        raise ValueError(f"this model cannot be saved: its file {error}") from None
    return data


def _require_flat(metadata: object) -> object:
    """The user's metadata, if it is plain and not nested."""
    if metadata is None or _is_flat(metadata):
        return metadata
    raise ValueError(
        "metadata_ cannot be saved: it must map names to strings, finite numbers, booleans or None"
    )


def _is_flat(metadata: object) -> bool:
    return isinstance(metadata, dict) and all(
        isinstance(name, str)
        and (value is None or type(value) in (str, bool, int, float))
        and (type(value) is not float or math.isfinite(value))
        for name, value in metadata.items()
    )


def _encode(name: str, value: object) -> object:
    try:
        return encode(value)
    except TypeError as error:
        raise ValueError(
            f"{name}={value!r} cannot be saved, because {error}: set it to a plain value with "
            f"set_params({name}=...) first"
        ) from None


def from_bytes(data: bytes) -> SavedModel:
    """The model in a file; `ModelFileError` for anything but a sound model of a known version."""
    try:
        version = container.version_of(data)
        if version > container.VERSION:
            raise ModelFileError(
                f"was written by a newer lanam (format version {version}, and this one reads up to "
                f"{container.VERSION}): upgrade with `pip install --upgrade lanam`"
            )
        require(version in READERS, f"there is no format version {version}")
        return _read(_since(container.unpack(data), *READERS[version]))
    except DamageError as error:
        raise ModelFileError(
            f"is damaged ({error}): save the model again, or copy the file again"
        ) from None


def _since(contents: Contents, *names: str) -> Contents:
    """Contents of an older version, whose models and noise models lack these fields, which become None."""
    content = contents.content
    require(isinstance(content, dict) and isinstance(content.get("model"), dict), "the model")
    return replace(contents, content={**content, "model": _with_none(content["model"], names)})


def _with_none(model: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    require(not any(name in model for name in names), "the model")
    noise = model.get("noise")
    inner = {"noise": _with_none(noise, names)} if isinstance(noise, dict) else {}
    return {**model, **dict.fromkeys(names), **inner}


def _read(contents: Contents) -> SavedModel:
    values, arrays = contents.content, Arrays(contents.arrays)
    fields = Fields(values, "the content", _KEYS, _OPTIONAL)
    schema = read_schema(values["schema"])
    model = read_model(values["model"], arrays, schema.n_levels)
    classes = read_classes(values["classes"])
    estimator = fields.text("estimator", _ESTIMATORS)
    _require_task(estimator, model, classes)
    follow_up = None
    if estimator == _SURVIVAL:
        follow_up = read_follow_up(values.get("follow_up"), arrays, schema)
    fields.text("lanam")
    saved = SavedModel(
        estimator=estimator,
        parameters=decode_all(values["parameters"], "the parameters"),
        model=model,
        schema=schema,
        n_rows=fields.whole("n_rows", 1),
        interaction_score=fields.text("interaction_score"),
        feature_names=_read_names(fields, schema, estimator),
        classes=classes,
        calibration=_read_calibration(arrays),
        edits=read_edits(values["edits"]),
        output=None if values["output"] is None else fields.text("output", _OUTPUTS),
        notes=tuple(map(str, fields.items("notes"))),
        metadata=values["metadata"],
        exposed=fields.flag("exposed"),
        dialect=_read_dialect(values.get("dialect"), values["metadata"]),
        provenance=read_provenance(values.get("provenance"), arrays),
        offset="offset" in values and fields.flag("offset"),
        family_scores=_read_scores(values.get("family_scores", [])),
        follow_up=follow_up,
    )
    family = find_family(model.likelihood)
    require(not saved.exposed or family.takes_exposure or family.takes_trials, "the exposure")
    require(not (saved.offset and family.link.several), "the offset")
    require(saved.metadata is None or _is_flat(saved.metadata), "the metadata")
    arrays.require_none_left()
    for each_model in (model, *(() if follow_up is None else follow_up.others)):
        require_sound(each_model, schema, saved.calibration)
    return saved


def _read_scores(values: object) -> tuple[tuple[str, float], ...]:
    """Names of families and their log evidences."""
    require(isinstance(values, list), "the scores of families")
    scores = []
    for item in values if isinstance(values, list) else []:
        require(isinstance(item, list) and len(item) == 2, "the scores of families")
        name, score = item[0], decode(item[1])
        require(isinstance(name, str) and name in FAMILIES, "the scores of families")
        require(type(score) is float, "the scores of families")
        scores.append((name, float(score)))
    return tuple(scores)


def _read_dialect(values: object, metadata: object) -> Dialect | None:
    if values is None:
        # The command line once saved the missing markers in the metadata.
        words = metadata.get("missing") if isinstance(metadata, dict) else None
        return Dialect(missing=tuple(words.split("\n"))) if isinstance(words, str) else None
    fields = Fields(values, "the dialect", ("delimiter", "decimal", "encoding", "missing"))
    try:
        return Dialect(**{**fields.values, "missing": tuple(fields.items("missing"))})
    except ValueError:
        raise DamageError("the dialect") from None


def _read_names(fields: Fields, schema: Schema, estimator: str) -> tuple[str, ...] | None:
    if fields.values["feature_names"] is None:
        return None
    names = tuple(fields.items("feature_names"))
    # The time of follow-up is no feature.
    inputs = schema.names[:-1] if estimator == _SURVIVAL else schema.names
    fields.require(names == inputs, "feature_names")
    return names


def _read_calibration(arrays: Arrays) -> Calibration | None:
    if "calibration scores" not in arrays:
        return None
    scores = arrays.take("calibration scores", "f8", (None,))
    weight = arrays.take("calibration weight", "f8", (len(scores),))
    require(len(scores) > 0, "the calibration's scores")
    require(bool((np.diff(scores) >= 0.0).all()), "the order of the calibration's scores")
    require(bool((weight >= 0.0).all() and weight.any()), "the calibration's weights")
    return Calibration(scores, weight)


def _require_task(estimator: str, model: FittedModel, classes: np.ndarray | None) -> None:
    """A classifier has as many classes as its model, and others have none."""
    survival = model.likelihood == SURVIVAL.name
    require((estimator == _SURVIVAL) == survival, "the likelihood")
    n_classes = find_family(model.likelihood).n_classes(model)
    require((estimator == _CLASSIFIER) == (n_classes > 0), "the likelihood")
    require(n_classes == (0 if classes is None else len(classes)), "how many classes there are")
