"""What the networks say: column by column, and altogether."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.peers.networks.exu import ExuNetworks
from benchmarks.peers.networks.masks import Masks
from benchmarks.peers.networks.parameters import Parameters
from benchmarks.peers.networks.settings import Architecture

CHUNK = 2**21  # hidden activations held at once outside training


def contributions(
    parameters: Parameters, x: Tensor, architecture: Architecture, masks: Masks | None = None
) -> Tensor:
    """What every column adds, without the intercept: (members, columns, rows) of the same for ``x``.

    ``masks`` drop hidden units.
    """
    if architecture.activation == "exu":
        w, b, v = parameters[:3]
        return ExuNetworks.apply(x, w, b, v, masks)
    activation = functional.relu if architecture.activation == "relu" else functional.gelu
    keep = 1.0 if masks is None else 1 - masks.rate
    first, thresholds, *rest, last = parameters[:-1]
    hidden = torch.addcmul(thresholds[:, :, None], x[..., None], first[:, :, None])
    for weights, biases in [*zip(rest[::2], rest[1::2], strict=True), (None, None)]:
        hidden = activation(hidden)
        if masks is not None:
            hidden = hidden * masks.draw(tuple(hidden.shape))
        if weights is not None:
            hidden = (hidden @ weights) / keep + biases[:, :, None]
    return (hidden @ last[..., None])[..., 0] / keep


@torch.no_grad()
def totals(parameters: Parameters, x: Tensor, architecture: Architecture) -> Tensor:
    """The members' outputs, intercept included: (members, rows) for (columns, rows)."""
    members = len(parameters[-1])
    step = max(1, CHUNK // (members * len(x) * max(architecture.hidden)))
    return torch.cat(
        [
            contributions(parameters, piece.expand(members, -1, -1), architecture).sum(1)
            for piece in x.split(step, dim=1)
        ],
        dim=1,
    ) + parameters[-1].unsqueeze(1)
