"""The paper's tables of the UCI sets: nine regressions and five classifications, five folds each."""

from __future__ import annotations

from benchmarks.data.sets import ALL_SETS, Dataset
from benchmarks.data.sources import load
from benchmarks.experiments.interface import Experiment, Source
from benchmarks.experiments.pairs import found_pairs

FIRST_ORDER = ("linear", "pygam", "nam", "lanam", "lanam-paper", "oak", "ebm")
WITH_PAIRS = (
    *("lanam-auto", "lanam10", "lanam10-mi", "lanam10-gain", "lanam10-paper"),
    *("oak2", "ebm10"),
)
INTERACTING = ("lightgbm", "lightgbm-grid")
INFERENCE = ("deep-ensemble", "mean-field", "mc-dropout")
#: What our lead owes to noise that differs from row to row.
CONSTANT_NOISE = ("lanam-constant", "lanam10-constant")
NETWORKS = ("nam-relu-deep", "nam-relu", "nam-gelu")


def load_set(name: str, seed: int, source: Source) -> Dataset:
    """One of the paper's sets."""
    return load(name, source.directory, source.cache)


EXPERIMENT = Experiment(
    name="uci",
    title="UCI regression and classification",
    sets=ALL_SETS,
    models=(*FIRST_ORDER, *WITH_PAIRS, *INTERACTING, "catboost", "mean"),
    load=load_set,
    observe=found_pairs,
    named_only=(*INFERENCE, *NETWORKS, *CONSTANT_NOISE, "lanam-smooth", "public"),
)
