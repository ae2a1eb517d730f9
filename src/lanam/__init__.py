"""Laplace-approximated neural additive models: curves you can read, with bands you can believe.

The estimators are loaded on first use, because scikit-learn takes longer to import than all else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lanam.version import __version__

if TYPE_CHECKING:
    from lanam import metrics
    from lanam.classifier import LANAMClassifier
    from lanam.engines.dialects import csv_files
    from lanam.metrics import coverage_report
    from lanam.persistence import load
    from lanam.regressor import LANAMRegressor
    from lanam.survival import LANAMSurvival

__all__ = [
    "LANAMClassifier",
    "LANAMRegressor",
    "LANAMSurvival",
    "__version__",
    "coverage_report",
    "csv_files",
    "load",
    "metrics",
]


_HOMES = {
    "LANAMClassifier": "lanam.classifier",
    "LANAMRegressor": "lanam.regressor",
    "LANAMSurvival": "lanam.survival",
    "coverage_report": "lanam.metrics",
    "csv_files": "lanam.engines.dialects",
    "load": "lanam.persistence",
}
_MODULES = ("metrics",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"lanam.{name}")  # which sets it here
    if name not in _HOMES:
        raise AttributeError(f"module 'lanam' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
