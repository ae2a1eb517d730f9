"""A Gaussian posterior with independent parameters, by the bound on the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.peers.networks.parameters import Parameters, initial_parameters
from benchmarks.peers.networks.scaling import TrainingRows
from benchmarks.peers.networks.settings import Architecture, Budget
from benchmarks.peers.networks.training import target_loss, train


@dataclass(frozen=True)
class Posterior:
    """Means and standard deviations of all parameters, the noise of standardised y, and the bound.

    ``elbo`` is the last bound on the log evidence, over the rows: an average of the last batches.
    """

    mean: Parameters
    std: Parameters
    noise: float
    elbo: float
    prior_std: float


def train_posterior(
    rows: TrainingRows,
    architecture: Architecture,
    prior_stds: tuple[float, ...],
    rate: float,
    budget: Budget,
    seed: int,
) -> Posterior:
    """Maximise the evidence's bound by Adam, drawing what units receive rather than their weights.

    Each row has draws of its own that way (Kingma et al. 2015), which makes gradients much less noisy.
    All priors are trained side by side, as members; that of the best bound is kept. One hidden layer.
    """
    (units,) = architecture.hidden
    generator = torch.Generator().manual_seed(seed)
    number, columns = rows.x.shape
    members = len(prior_stds)
    mean = initial_parameters(architecture, members, columns, generator)
    mean[-1] += rows.intercept
    stds = torch.tensor(prior_stds).view(-1, 1, 1)
    # Hidden units are N(0, 1) of standardised columns; the intercept is as good as free.
    priors = [
        torch.ones(members, 1, 1),
        torch.ones(members, 1, 1),
        stds / math.sqrt(units),
        torch.full((members,), 10.0),
    ]
    mean[2] *= stds
    count = len(mean)
    log_std = [
        torch.log(fraction * prior).expand_as(m).clone()
        for m, prior, fraction in zip(mean, priors, (0.3, 0.3, 0.3, 0.01), strict=True)
    ]
    log_noise = [torch.full((members,), math.log(0.5))] if rows.task == "regression" else []
    bounds: list[Tensor] = []

    def noisy(mean: Tensor, variance: Tensor) -> Tensor:
        return mean + (variance + 1e-12).sqrt() * torch.randn(mean.shape, generator=generator)

    def drawn_output(means: Parameters, variances: Parameters, x: Tensor) -> Tensor:
        w, b, v, intercept = means
        w_var, b_var, v_var, intercept_var = variances
        inputs = x[..., None]
        hidden = functional.gelu(
            noisy(
                torch.addcmul(b[:, :, None], inputs, w[:, :, None]),
                torch.addcmul(b_var[:, :, None], inputs.square(), w_var[:, :, None]),
            )
        )
        centre = (hidden @ v[..., None]).sum(1) + intercept[:, None, None]
        spread = (hidden.square() @ v_var[..., None]).sum(1) + intercept_var[:, None, None]
        return noisy(centre, spread)[..., 0]

    def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
        means, log_stds = parameters[:count], parameters[count : 2 * count]
        variances = [(2 * s).exp() for s in log_stds]
        misfit = target_loss(drawn_output(means, variances, x), y, rows.task)
        if rows.task == "regression":
            log_sd = parameters[-1]  # of every member
            misfit = 0.5 * misfit * (-2 * log_sd).exp() + log_sd + 0.5 * math.log(2 * math.pi)
        divergence = sum(
            (0.5 * (m.square() + s2) / p**2 - s + p.log() - 0.5).view(members, -1).sum(1)
            for m, s2, s, p in zip(means, variances, log_stds, priors, strict=True)
        )
        bound = misfit + divergence / number
        bounds.append(-bound.detach())
        return bound

    start = [*mean, *log_std, *log_noise]
    rates = torch.full((members,), rate)
    trained = train(start, loss, None, rows.x, rows.y, rates, budget, generator).parameters
    elbo = torch.stack(bounds[-100:]).mean(0)
    best = int(elbo.argmax())
    trained = [p[best : best + 1] for p in trained]
    return Posterior(
        trained[:count],
        [s.exp() for s in trained[count : 2 * count]],
        float(trained[-1].exp()) if log_noise else math.nan,
        float(elbo[best]),
        prior_stds[best],
    )


def posterior_draws(posterior: Posterior, draws: int, seed: int) -> Parameters:
    """Networks from the posterior; half of them mirror the others, which takes noise off their mean."""
    generator = torch.Generator().manual_seed(seed)
    networks = []
    for mean, std in zip(posterior.mean, posterior.std, strict=True):
        half = torch.randn(draws // 2, *mean.shape[1:], generator=generator)
        networks.append(mean + std * torch.cat([half, -half]))
    return networks
