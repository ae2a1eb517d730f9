"""One adapter a file; ``make_peers`` gives them by name."""

from __future__ import annotations

from benchmarks.peers.ebm import ExplainableBoosting
from benchmarks.peers.interface import Fitted, Peer, Prediction
from benchmarks.peers.lanam import LaplaceAdditive
from benchmarks.peers.lightgbm import LightGBM
from benchmarks.peers.linear import Linear
from benchmarks.peers.mean import Mean
from benchmarks.peers.public import PublicImplementation
from benchmarks.peers.pygam import SplineGAM

DEFAULT_MODELS = ("lanam", "lanam-smooth", "ebm", "lightgbm", "linear", "mean")
OPTIONAL_MODELS = ("lanam-paper", "pygam")


def all_peers(public_python: str | None = None) -> dict[str, Peer]:
    """Every model the benchmark knows, by name, installed or not."""
    paper = {
        "level_effects": False,
        "posterior": "block",
        "curvature": "kron",
        "solver": "adam",
        "prior_groups": "layer",
    }
    peers: list[Peer] = [
        LaplaceAdditive("lanam"),
        LaplaceAdditive("lanam-smooth", level_effects=False),
        LaplaceAdditive("lanam-paper", **paper),
        ExplainableBoosting(),
        ExplainableBoosting("ebm10", interactions=10),
        LightGBM(),
        SplineGAM(),
        Linear(),
        Mean(),
        PublicImplementation(public_python),
    ]
    return {peer.name: peer for peer in peers}


__all__ = [
    "DEFAULT_MODELS",
    "OPTIONAL_MODELS",
    "Fitted",
    "Peer",
    "Prediction",
    "all_peers",
]
