"""MC dropout on additive networks: units are left out of predictions too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.peers.interface import Fitted
from benchmarks.peers.networks.peer import NetworkPeer
from benchmarks.peers.networks.settings import TRAINING, Architecture, Training

if TYPE_CHECKING:
    from benchmarks.peers.networks.scaling import TrainingRows


@dataclass(frozen=True)
class DropoutSampling(NetworkPeer):
    """One network of 64 GELU units a column, predicted with ``passes`` times.

    A pass leaves the same units out for all rows, so it is a function that can be drawn, and effects can be
    centred. Noise is that of the training residuals around the mean of the passes.
    """

    name: str = "mc-dropout"
    passes: int = 50
    dropout: float = 0.2
    training: Training = TRAINING

    @property
    def architecture(self) -> Architecture:
        return replace(super().architecture, dropout=self.dropout)

    def learn(self, rows: TrainingRows, seed: int) -> Fitted:
        from benchmarks.peers.networks.ensembles import train_ensemble, without_units
        from benchmarks.peers.networks.predicting import noise_around_the_mean

        network = train_ensemble(rows, self.architecture, 1, self.training, seed)
        passes = without_units(network.parameters, self.dropout, self.passes, seed)
        return replace(network, parameters=passes).fitted(noise_around_the_mean)
