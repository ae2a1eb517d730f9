"""Fitted models as bytes: plain values and arrays, no code (docs/file-format.md)."""

from lanam.storage.container import LARGEST
from lanam.storage.errors import ModelFileError
from lanam.storage.follow_up import SavedFollowUp
from lanam.storage.saved import SavedModel, from_bytes, of_estimator, to_bytes

__all__ = [
    "LARGEST",
    "ModelFileError",
    "SavedFollowUp",
    "SavedModel",
    "from_bytes",
    "of_estimator",
    "to_bytes",
]
