"""A deep ensemble of additive networks: the same networks as lanam's, fitted many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.peers.interface import Fitted
from benchmarks.peers.networks.peer import NetworkPeer
from benchmarks.peers.networks.settings import TRAINING, Training

if TYPE_CHECKING:
    from benchmarks.peers.networks.scaling import TrainingRows


@dataclass(frozen=True)
class DeepEnsemble(NetworkPeer):
    """Maximum a posteriori, ``members`` times: 64 GELU units a column, a weak prior, no dropout.

    Every member has the noise of its own training residuals; the variance of a prediction is their mean
    plus the members' variance.
    """

    name: str = "deep-ensemble"
    members: int = 10
    training: Training = TRAINING

    def learn(self, rows: TrainingRows, seed: int) -> Fitted:
        from benchmarks.peers.networks.ensembles import train_ensemble
        from benchmarks.peers.networks.predicting import noise_around_members

        model = train_ensemble(rows, self.architecture, self.members, self.training, seed)
        return model.fitted(noise_around_members)
