"""Mean-field variational inference on additive networks (Bayes by Backprop, Blundell et al. 2015)."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Table, Task
from benchmarks.peers.interface import Fitted, missing_module


class MeanField:
    """A Gaussian posterior with a mean and a standard deviation of its own for every parameter.

    64 GELU units a column. The prior of the hidden layer is N(0, 1), that of the output weights has a
    variance of s^2 / 64 with the s of ``prior_stds`` whose bound is best; in regression the noise is
    learned with the posterior. There is nothing to stop on but the bound itself, so all rows train for
    ``updates`` steps at a rate that falls from ``rate`` to zero. Predictions are those of ``draws``
    networks from the posterior.
    """

    def __init__(
        self,
        name: str = "mean-field",
        prior_stds: tuple[float, ...] = (0.03, 0.1, 0.3),
        draws: int = 50,
        rate: float = 0.01,
        updates: int = 1500,
    ) -> None:
        self.name = name
        self.prior_stds, self.draws = prior_stds, draws
        self.rate, self.updates = rate, updates

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from benchmarks.peers.networks import (
            AdditiveEnsemble,
            Architecture,
            Budget,
            Scaling,
            as_numbers,
            posterior_draws,
            train_posterior,
            use_threads,
        )

        use_threads(task, threads)
        array = as_numbers(X)
        scaling = Scaling.of(array, np.asarray(y, float), task, interval=False)
        architecture = Architecture((64,), "gelu")
        posterior = train_posterior(
            scaling.inputs(array),
            scaling.targets(np.asarray(y, float)),
            task,
            architecture,
            prior_stds=self.prior_stds,
            rate=self.rate,
            budget=Budget(self.updates),
            seed=seed,
        )
        model = AdditiveEnsemble(
            posterior_draws(posterior, self.draws, seed), architecture, scaling, task, array
        )
        noise = None if task == "classification" else posterior.noise * scaling.scale
        info = {
            "updates": self.updates,
            "elbo": posterior.elbo,
            "prior_std": posterior.prior_std,
        }
        return model.fitted(noise, info)
