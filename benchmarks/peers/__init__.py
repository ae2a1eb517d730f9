"""One adapter a file; ``all_peers`` gives them by name."""

from __future__ import annotations

from benchmarks.peers.catboost import CatBoost
from benchmarks.peers.completed import Completed
from benchmarks.peers.deep_ensemble import DeepEnsemble
from benchmarks.peers.ebm import ExplainableBoosting
from benchmarks.peers.interface import Fitted, Peer, Prediction
from benchmarks.peers.lanam import LaplaceAdditive
from benchmarks.peers.lightgbm import LightGBM
from benchmarks.peers.linear import Linear
from benchmarks.peers.mc_dropout import DropoutSampling
from benchmarks.peers.mean import Mean
from benchmarks.peers.mean_field import MeanField
from benchmarks.peers.nam import NeuralAdditive
from benchmarks.peers.oak import OrthogonalAdditiveGP
from benchmarks.peers.public import PublicImplementation
from benchmarks.peers.pygam import SplineGAM

DEFAULT_MODELS = ("lanam", "lanam-smooth", "ebm", "lightgbm", "linear", "mean")
PAIR_MODELS = ("lanam", "lanam10", "lanam-auto", "ebm10", "lightgbm")
TABLE_MODELS = {  # by part of the benchmark of real tables
    "quality": ("lanam", "lanam-auto", "ebm", "ebm-pairs", "lightgbm", "mean"),
    "missing": ("lanam", "ebm", "lightgbm"),
    "classes": ("lanam", "ebm", "lightgbm", "linear", "mean"),
    "levels": ("lanam", "ebm", "lightgbm"),
}


def all_peers(public_python: str | None = None) -> dict[str, Peer]:
    """Every model the benchmark knows, by name, installed or not."""
    peers: list[Peer] = [
        LaplaceAdditive("lanam", interactions=0),
        LaplaceAdditive("lanam-smooth", interactions=0, level_effects=False),
        LaplaceAdditive("lanam-constant", interactions=0, noise="constant"),
        LaplaceAdditive("lanam-auto"),
        LaplaceAdditive("lanam10", interactions=10),
        LaplaceAdditive("lanam10-constant", interactions=10, noise="constant"),
        LaplaceAdditive("lanam10-mi", interactions=10, interaction_score="mutual_information"),
        LaplaceAdditive("lanam10-gain", interactions=10, interaction_score="evidence_gain"),
        LaplaceAdditive("lanam-paper", paper=True),
        LaplaceAdditive("lanam10-paper", paper=True, interactions=10),
        ExplainableBoosting(),
        ExplainableBoosting("ebm10", interactions=10),
        ExplainableBoosting("ebm-pairs", interactions=None),
        LightGBM(),
        LightGBM("lightgbm-grid", search=True),
        CatBoost(),
        Mean(),
        PublicImplementation(public_python),
    ]
    need_numbers: list[Peer] = [
        SplineGAM(),
        Linear(),
        NeuralAdditive(),
        NeuralAdditive("nam-relu-deep", hidden=(64, 64, 32), activation="relu"),
        NeuralAdditive("nam-relu", hidden=(64,), activation="relu"),
        NeuralAdditive("nam-gelu", hidden=(64,), activation="gelu"),
        DeepEnsemble(),
        MeanField(),
        DropoutSampling(),
        OrthogonalAdditiveGP(),
        OrthogonalAdditiveGP("oak2", order=2),
    ]
    peers += [Completed(peer) for peer in need_numbers]
    return {peer.name: peer for peer in peers}


__all__ = [
    "DEFAULT_MODELS",
    "PAIR_MODELS",
    "TABLE_MODELS",
    "Fitted",
    "Peer",
    "Prediction",
    "all_peers",
]
