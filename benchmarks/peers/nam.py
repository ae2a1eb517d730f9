"""Neural additive models (Agarwal et al. 2021) as the paper sets them, written in torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.peers.interface import Fitted
from benchmarks.peers.networks.peer import NetworkPeer
from benchmarks.peers.networks.settings import Architecture, Budget, Training

if TYPE_CHECKING:
    from benchmarks.peers.networks.scaling import TrainingRows

TRAINING = Training(Budget(updates=1200, patience=200))
WIDE = 40  # columns from which on the budget shrinks as they grow, so that a fit takes minutes


@dataclass(frozen=True)
class NeuralAdditive(NetworkPeer):
    """An ensemble of feature networks with dropout; its noise is that of the training residuals.

    ``hidden`` and ``activation`` are those of every feature network: by default 1024 ExU units.
    ``members`` networks are averaged, and their spread says how sure the model is of an effect.

    ``training`` has the learning rates, of which the better one on an eighth of the training rows is
    taken, and the budget, of which a wide table (``WIDE``) gets less. The results say how many updates
    were made and whether training stopped by itself.
    """

    name: str = "nam"
    hidden: tuple[int, ...] = (1024,)
    activation: str = "exu"
    members: int = 5
    dropout: float = 0.2
    feature_dropout: float = 0.05
    training: Training = TRAINING

    @property
    def architecture(self) -> Architecture:
        return Architecture(self.hidden, self.activation, self.dropout, self.feature_dropout)

    def learn(self, rows: TrainingRows, seed: int) -> Fitted:
        from benchmarks.peers.networks.ensembles import train_ensemble
        from benchmarks.peers.networks.predicting import noise_around_the_mean

        share = min(1.0, WIDE / rows.x.shape[1])
        training = replace(self.training, budget=self.training.budget.part(share))
        model = train_ensemble(rows, self.architecture, self.members, training, seed)
        return model.fitted(noise_around_the_mean)
