"""What the networks are made of, and how it starts."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from benchmarks.peers.networks.settings import Architecture

Parameters = list[Tensor]


def initial_parameters(
    architecture: Architecture, members: int, columns: int, generator: torch.Generator
) -> Parameters:
    """Random parameters: ExU nearly as in the code of its authors, else of unit gain.

    ExU's log weights are N(4, 0.5) and its thresholds N(0, 0.5), both cut at two standard deviations.
    """

    def normal(*shape: int, mean: float = 0.0, std: float = 1.0, cut: float = math.inf) -> Tensor:
        values = torch.empty(members, columns, *shape)
        if math.isinf(cut):
            return values.normal_(mean, std, generator=generator)
        low, high = mean - cut * std, mean + cut * std
        return torch.nn.init.trunc_normal_(values, mean, std, low, high, generator=generator)

    hidden = architecture.hidden
    if architecture.activation == "exu":
        # A tenth of Glorot's, of which the authors' code has the whole: functions begin flat. Between the
        # rows of a small set nothing smooths their start. Chosen on folds of autompg, yacht, heart
        glorot = math.sqrt(2 / (hidden[0] + 1)) / 10
        layers = [
            normal(hidden[0], mean=4.0, std=0.5, cut=2.0),
            normal(hidden[0], std=0.5, cut=2.0),
            normal(hidden[0], std=glorot),
        ]
    else:
        # Thresholds of the first layer spread over the data, or all kinks would start at zero.
        layers = [normal(hidden[0]), normal(hidden[0])]
        for before, after in pairwise(hidden):
            layers += [
                normal(before, after, std=math.sqrt(2 / before)),
                torch.zeros(members, columns, after),
            ]
        # The sum over all columns starts with a spread of about one, however many there are
        layers.append(normal(hidden[-1], std=1 / math.sqrt(hidden[-1] * columns)))
    return [*layers, torch.zeros(members)]
