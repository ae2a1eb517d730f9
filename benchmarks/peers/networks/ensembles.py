"""Networks trained in the same way from different starts, and one network with units left out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.peers.networks.masks import Masks
from benchmarks.peers.networks.outputs import contributions, totals
from benchmarks.peers.networks.parameters import Parameters, initial_parameters
from benchmarks.peers.networks.predicting import AdditiveEnsemble
from benchmarks.peers.networks.scaling import TrainingRows
from benchmarks.peers.networks.settings import Architecture, Training
from benchmarks.peers.networks.training import Trained, target_loss, train


def train_ensemble(
    rows: TrainingRows, architecture: Architecture, members: int, training: Training, seed: int
) -> AdditiveEnsemble:
    """Members of one ensemble; an eighth of the rows is held out to stop, and to choose the rate.

    The first member is trained once with every rate, the others with the best of them. The penalty is
    half the weight decay times the sum of the squared parameters, over the number of columns.
    """
    generator = torch.Generator().manual_seed(seed)
    masks = None
    if architecture.dropout:
        masks = Masks(architecture.dropout, np.random.Generator(np.random.SFC64(seed)))
    columns = rows.x.shape[1]
    order = torch.randperm(len(rows.x), generator=generator)
    held, used = order.tensor_split([max(1, len(rows.x) // 8)])
    held_x, held_y = rows.x[held].t(), rows.y[held]

    def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
        parts = contributions(parameters, x, architecture, masks)
        if architecture.feature_dropout:
            keep = 1 - architecture.feature_dropout
            parts = parts * (torch.rand(parts.shape, generator=generator) < keep) / keep
        penalty = sum(p.square().flatten(1).sum(1) for p in parameters[:-1])
        output = parts.sum(1) + parameters[-1][:, None]
        return target_loss(output, y, rows.task) + 0.5 * training.weight_decay / columns * penalty

    def score(parameters: Parameters) -> Tensor:
        return target_loss(totals(parameters, held_x, architecture), held_y, rows.task)

    def start(members: int) -> Parameters:
        parameters = initial_parameters(architecture, members, columns, generator)
        parameters[-1] += rows.intercept
        return parameters

    def run(parameters: Parameters, rates: list[float]) -> Trained:
        x, y = rows.x[used], rows.y[used]
        return train(parameters, loss, score, x, y, torch.tensor(rates), training.budget, generator)

    rates = training.rates
    first = run([torch.cat([p] * len(rates)) for p in start(1)], list(rates))
    winner = int(first.score.argmin())
    parameters = [p[winner : winner + 1] for p in first.parameters]
    runs = [first]
    if members > 1:
        runs.append(run(start(members - 1), [rates[winner]] * (members - 1)))
        parameters = [torch.cat(pair) for pair in zip(parameters, runs[1].parameters, strict=True)]
    info = {
        "learning_rate": rates[winner],
        "updates": max(r.updates for r in runs),
        "stopped_early": all(r.stopped_early for r in runs),
    }
    return AdditiveEnsemble(parameters, architecture, rows, info)


def without_units(parameters: Parameters, rate: float, passes: int, seed: int) -> Parameters:
    """One network with hidden units left out at random, ``passes`` times; one hidden layer."""
    first, thresholds, last, intercept = (p.repeat_interleave(passes, 0) for p in parameters)
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(last.shape, generator=generator) >= rate
    return [first, thresholds, last * kept / (1 - rate), intercept]
