"""Loading of fitted models from files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import numpy as np

from lanam import storage
from lanam.classifier import LANAMClassifier
from lanam.family_scores import FamilyScores
from lanam.regressor import LANAMRegressor
from lanam.storage import ModelFileError, SavedModel
from lanam.survival import LANAMSurvival

__all__ = ["ModelFileError", "load"]

AnyModel: TypeAlias = LANAMRegressor | LANAMClassifier | LANAMSurvival

_CLASSES: dict[str, type[AnyModel]] = {
    estimator.__name__: estimator for estimator in (LANAMRegressor, LANAMClassifier, LANAMSurvival)
}


def load(path: str | os.PathLike[str]) -> AnyModel:
    """A fitted model from the file that its method ``save`` wrote (:meth:`LANAMRegressor.save`).

    Predictions and all other results are bitwise those of the model that was saved. A file holds values
    and arrays only and cannot run code; invalid content is an error.

    Parameters
    ----------
    path : str or path-like
        The file, such as "model.lanam".

    Returns
    -------
    model : LANAMRegressor, LANAMClassifier or LANAMSurvival
        The fitted model.

    Raises
    ------
    ModelFileError
        A ``ValueError``: the file is not a model, is damaged, or was written by a newer lanam.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import lanam
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = lanam.LANAMRegressor(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = lanam.load(model.save(f"{folder}/model.lanam"))
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: pass the name of a file, such as model.lanam")
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}: models are written by model.save(path)")
    try:
        if not file.is_file():
            raise ModelFileError("is not a file: models are read from files only")
        if file.stat().st_size > storage.LARGEST:
            remedy = "such files are written by {model.save(path)}"
            raise ModelFileError("is too large for a model", remedy)
        return _restored(storage.from_bytes(file.read_bytes()))
    except ModelFileError as error:
        raise error.located(f"{file} ") from None


def _restored(saved: SavedModel) -> AnyModel:
    """The estimator that was saved."""
    kind = _CLASSES[saved.estimator]
    unknown = set(saved.parameters) - set(kind().get_params(deep=False))
    if unknown:
        raise ModelFileError(
            f"has the argument {min(unknown)!r}, which {saved.estimator} does not know: it was written "
            "by a newer lanam, upgrade with `pip install --upgrade lanam`"
        )
    model = kind(**saved.parameters)
    model.n_features_in_ = saved.schema.n_columns
    if saved.feature_names is not None:
        model.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    if saved.classes is not None:
        model.classes_ = saved.classes
    model._set_fitted(saved.model, saved.schema, saved.n_rows, saved.interaction_score)
    model._restore(saved)
    model.edits_ = saved.edits
    model.provenance_ = saved.provenance
    if saved.metadata is not None:
        model.metadata_ = saved.metadata
    if saved.dialect is not None:
        model.dialect_ = saved.dialect
    if saved.calibration is not None:
        model.calibration_ = saved.calibration
    model._exposed, model._has_offset = saved.exposed, saved.offset
    if saved.family_scores:
        model.family_scores_ = FamilyScores.of(saved.family_scores, saved.schema.backend)
    if saved.output is not None:
        model.set_output(transform=saved.output)
    return model
