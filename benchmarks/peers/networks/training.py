"""Adam for many members at once, each with the rate, the batches and the end that are its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.data.sets import Task
from benchmarks.peers.networks.parameters import Parameters
from benchmarks.peers.networks.settings import Budget


@dataclass(frozen=True)
class Trained:
    """The best parameters of every member, their scores and how long it took to find them."""

    parameters: Parameters
    score: Tensor
    updates: int
    stopped_early: bool


class Adam:
    """Adam with a learning rate of its own for every member."""

    def __init__(self, parameters: Parameters, rates: Tensor) -> None:
        self.parameters = parameters
        self.rates = [rates.view(-1, *[1] * (p.dim() - 1)) for p in parameters]
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.square = [torch.zeros_like(p) for p in parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self, factor: float, first: float = 0.9, second: float = 0.999) -> None:
        self.steps += 1
        correct = math.sqrt(1 - second**self.steps) / (1 - first**self.steps)
        for p, rate, mean, square in zip(
            self.parameters, self.rates, self.mean, self.square, strict=True
        ):
            mean.lerp_(p.grad, 1 - first)
            square.mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
            p.sub_(rate * (factor * correct) * mean / square.sqrt().add_(1e-8))
            p.grad = None


def train(
    parameters: Parameters,
    loss: Callable[[Parameters, Tensor, Tensor], Tensor],
    score: Callable[[Parameters], Tensor] | None,
    x: Tensor,
    y: Tensor,
    rates: Tensor,
    budget: Budget,
    generator: torch.Generator,
) -> Trained:
    """Minimise every member's ``loss(parameters, x, y)`` on batches of its own, by Adam.

    ``score(parameters)``, the less the better, decides when to stop and which parameters are kept;
    without one all updates are made, at a rate that falls to zero like a cosine, and the last are kept.
    """
    members, rows = len(rates), len(x)
    batch = min(budget.batch, rows)
    a_pass = rows // batch
    parameters = [p.clone().requires_grad_(True) for p in parameters]
    optimiser = Adam(parameters, rates)
    best = [p.detach().clone() for p in parameters]
    best_score = torch.full((members,), math.inf)
    best_step = torch.zeros(members, dtype=torch.long)
    order = torch.empty(0)
    step = 0
    for step in range(1, budget.updates + 1):
        place = (step - 1) % a_pass
        if place == 0:
            order = torch.rand(members, rows, generator=generator).argsort(dim=1)
        chosen = order[:, place * batch : (place + 1) * batch]
        loss(parameters, x[chosen].transpose(1, 2), y[chosen]).sum().backward()
        optimiser.step(
            budget.decay ** ((step - 1) // a_pass)
            if score is not None
            else 0.5 * (1 + math.cos(math.pi * step / budget.updates))
        )
        if score is not None and budget.scored(step, a_pass):
            with torch.no_grad():
                now = score(parameters)
            better = now < best_score
            best_score = torch.where(better, now, best_score)
            best_step[better] = step
            for kept, p in zip(best, parameters, strict=True):
                kept[better] = p.detach()[better]
            if step - int(best_step.max()) >= budget.patience:
                break
    if score is None:
        best = [p.detach() for p in parameters]
    return Trained(best, best_score, step, step < budget.updates)


def target_loss(output: Tensor, y: Tensor, task: Task) -> Tensor:
    """Mean squared error or log loss of every member; ``output`` and ``y`` are (members, rows)."""
    if task == "classification":
        return functional.binary_cross_entropy_with_logits(
            output, y.expand_as(output), reduction="none"
        ).mean(-1)
    return (output - y).square().mean(-1)
