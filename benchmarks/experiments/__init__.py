"""One experiment of the paper a file; ``EXPERIMENTS`` gives them by name."""

from __future__ import annotations

from benchmarks.experiments import icu, redundancy, smoke, toy, uci
from benchmarks.experiments.interface import Experiment, Source

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        toy.EXPERIMENT,
        toy.INFERENCE_METHODS,
        uci.EXPERIMENT,
        icu.EXPERIMENT,
        icu.DEPTH,
        redundancy.EXPERIMENT,
        smoke.EXPERIMENT,
    )
}
#: What a run without a name runs.
PAPER = tuple(name for name in EXPERIMENTS if name != "smoke")

__all__ = ["EXPERIMENTS", "PAPER", "Experiment", "Source"]
