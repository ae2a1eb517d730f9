"""Mean-field variational inference on additive networks (Bayes by Backprop, Blundell et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.peers.interface import Fitted
from benchmarks.peers.networks.peer import NetworkPeer
from benchmarks.peers.networks.settings import Budget

if TYPE_CHECKING:
    from benchmarks.peers.networks.scaling import TrainingRows


@dataclass(frozen=True)
class MeanField(NetworkPeer):
    """A Gaussian posterior with a mean and a standard deviation of its own for every parameter.

    64 GELU units a column. The prior of the hidden layer is N(0, 1), that of the output weights has a
    variance of s^2 / 64 with the s of ``prior_stds`` whose bound is best; in regression the noise is
    learned with the posterior. There is nothing to stop on but the bound itself, so all rows train for
    ``updates`` steps at a rate that falls from ``rate`` to zero. Predictions are those of ``draws``
    networks from the posterior.
    """

    name: str = "mean-field"
    prior_stds: tuple[float, ...] = (0.03, 0.1, 0.3)
    draws: int = 50
    rate: float = 0.01
    updates: int = 1500

    def learn(self, rows: TrainingRows, seed: int) -> Fitted:
        from benchmarks.peers.networks.predicting import AdditiveEnsemble
        from benchmarks.peers.networks.variational import posterior_draws, train_posterior

        posterior = train_posterior(
            rows, self.architecture, self.prior_stds, self.rate, Budget(self.updates), seed
        )
        networks = posterior_draws(posterior, self.draws, seed)
        info = {"updates": self.updates, "elbo": posterior.elbo, "prior_std": posterior.prior_std}
        model = AdditiveEnsemble(networks, self.architecture, rows, info)
        noise = posterior.noise * rows.scaling.scale
        return model.fitted(lambda _: noise)
