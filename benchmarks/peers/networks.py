"""Additive feature networks in torch: one small network a column, many members evaluated at once.

Parameters are a list of tensors whose first two axes are the member of the ensemble and the column, and
last the members' intercepts. A member is a plain network, a draw from a posterior, or a network with
units left out: all of them are predicted with, and explained, in the same way (``AdditiveEnsemble``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.datasets import Table, Task
from benchmarks.peers.interface import Fitted, Prediction

Parameters = list[Tensor]

CHUNK = 2**21  # hidden activations held at once outside training


# data


@dataclass(frozen=True)
class Scaling:
    """Columns as the networks see them, and back from their output to y.

    Columns are brought to [-1, 1] (``interval``) or to mean 0 and standard deviation 1; a constant one
    becomes 0 everywhere. Only regression scales y.
    """

    centre: np.ndarray
    factor: np.ndarray
    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, task: Task, interval: bool) -> Scaling:
        low, high = X.min(axis=0), X.max(axis=0)
        centre = (low + high) / 2 if interval else X.mean(axis=0)
        spread = (high - low) / 2 if interval else X.std(axis=0)
        constant = high == low
        factor = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))
        if task == "classification":
            return cls(centre, factor)
        return cls(centre, factor, float(y.mean()), float(y.std()) or 1.0)

    def inputs(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(((X - self.centre) * self.factor).astype(np.float32))

    def targets(self, y: np.ndarray) -> Tensor:
        return torch.from_numpy(((y - self.offset) / self.scale).astype(np.float32))


def as_numbers(X: Table) -> np.ndarray:
    """The table as an array; blank cells are an error that names their columns."""
    names = [str(name) for name in getattr(X, "columns", range(np.shape(X)[1]))]
    array = np.asarray(X, float)
    blank = [name for name, hit in zip(names, ~np.isfinite(array).all(axis=0), strict=True) if hit]
    if blank:
        raise ValueError(
            f"the networks cannot take missing or infinite cells, and there are some in column "
            f"{', '.join(blank)}; impute them first"
        )
    return array


# networks


@dataclass(frozen=True)
class Architecture:
    """Hidden sizes and activation of every feature network, and what is dropped in training.

    ``activation`` is "relu", "gelu", or "exu": exp(w) (x - b) cut to [0, 1], of one hidden layer.
    """

    hidden: tuple[int, ...]
    activation: str
    dropout: float = 0.0
    feature_dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.activation not in ("exu", "relu", "gelu"):
            raise ValueError(f"activation is exu, relu or gelu, not {self.activation!r}")
        if self.activation == "exu" and len(self.hidden) != 1:
            raise ValueError("ExU networks have one hidden layer")


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
        layers.append(normal(hidden[-1], std=1 / math.sqrt(hidden[-1])))
    return [*layers, torch.zeros(members)]


class Masks:
    """Random zeros and ones for dropout, fast.

    One pool of bytes is drawn a fit; a mask is a piece of it from a random place. Drawing anew for
    every mask would take as long as all the rest of an update.
    """

    SIZE = 2**23

    def __init__(self, rate: float, rng: np.random.Generator) -> None:
        self.rate = rate
        self._rng = rng
        self._pool = torch.from_numpy((rng.random(self.SIZE, np.float32) >= rate).view(np.uint8))

    def starts(self, count: int, length: int) -> list[int]:
        """Random places for masks of this length."""
        return self._rng.integers(0, self.SIZE - length, count).tolist()

    def at(self, start: int, shape: tuple[int, ...]) -> Tensor:
        return self._pool[start : start + math.prod(shape)].view(shape)

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        length = math.prod(shape)
        if length >= self.SIZE:
            return torch.cat([self.draw(shape[1:])[None] for _ in range(shape[0])])
        return self.at(self.starts(1, length)[0], shape)


class ExuNetworks(torch.autograd.Function):
    """ExU feature networks: sum_j v_j min(max(exp(w_j) (x - b_j), 0), 1), units dropped at random.

    One network at a time in one buffer that stays in the cache; activations are computed again for
    the gradient, which is cheaper than to keep them.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, v: Tensor, masks: Masks | None):
        members, columns, rows = x.shape
        units = w.shape[-1]
        slope = w.exp()
        shift = -slope * b
        keep = 1.0 if masks is None else 1 - masks.rate
        weight = v / keep
        starts = None if masks is None else masks.starts(members * columns, rows * units)
        hidden = torch.empty(rows, units)
        output = torch.empty(members * columns, rows)
        for k, (inputs, slopes, shifts, weights) in enumerate(
            zip(*(t.flatten(0, 1) for t in (x, slope, shift, weight)), strict=True)
        ):
            _exu_hidden(hidden, inputs, slopes, shifts, masks, starts and starts[k])
            torch.mv(hidden, weights, out=output[k])
        ctx.save_for_backward(x, slope, shift, b, weight)
        ctx.masks, ctx.starts, ctx.keep = masks, starts, keep
        return output.view(members, columns, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor):
        (gradient,) = gradients
        x, slope, shift, b, weight = ctx.saved_tensors
        members, columns, rows = x.shape
        units = slope.shape[-1]
        hidden, active = torch.empty(rows, units), torch.empty(rows, units)
        to_weight = torch.empty(members * columns, units)
        moments = torch.empty(members * columns, 2, units)
        pairs = torch.stack([gradient, gradient * x], 2).flatten(0, 1)
        for k, (inputs, slopes, shifts) in enumerate(
            zip(*(t.flatten(0, 1) for t in (x, slope, shift)), strict=True)
        ):
            _exu_hidden(hidden, inputs, slopes, shifts, ctx.masks, ctx.starts and ctx.starts[k])
            torch.mv(hidden.t(), pairs[k, 0], out=to_weight[k])
            # 1 where a unit is strictly between its bounds; a dropped one is at the lower bound
            torch.sub(hidden, 0.5, out=active).abs_().lt_(0.5)
            torch.mm(pairs[k], active, out=moments[k])
        shape = members, columns, units
        sums, products = (moment.reshape(shape) for moment in moments.unbind(1))
        steep = weight * slope
        to_w = steep * (products - b * sums)
        to_b = -steep * sums
        return None, to_w, to_b, to_weight.view(shape) / ctx.keep, None


def _exu_hidden(
    out: Tensor, x: Tensor, slope: Tensor, shift: Tensor, masks: Masks | None, start: int | None
) -> None:
    torch.addcmul(shift, x[:, None], slope, out=out).clamp_(0, 1)
    if masks is not None and start is not None:
        out.mul_(masks.at(start, tuple(out.shape)))


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


# training


@dataclass(frozen=True)
class Budget:
    """How long a member may train.

    At most ``updates`` steps of Adam; it stops earlier when the score on held-out rows has not improved
    for ``patience`` steps, and the best is restored. Batches have ``batch`` rows, or all of them. The
    learning rate falls by ``decay`` a pass over the rows, or every step where a pass is one.
    """

    updates: int = 1500
    patience: int = 300
    batch: int = 512
    decay: float = 0.995

    def scored(self, step: int, steps_a_pass: int) -> bool:
        """Whether to look at the held-out rows now: after a pass, within 5 to 25 steps.

        ExU networks go from nothing to too much in fifty steps of a small set.
        """
        return step % min(25, max(5, steps_a_pass)) == 0 or step == self.updates


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


@dataclass(frozen=True)
class Ensemble:
    """Members trained in the same way from different starts."""

    parameters: Parameters
    info: dict[str, Any]


def train_ensemble(
    X: Tensor,
    y: Tensor,
    task: Task,
    architecture: Architecture,
    members: int,
    rates: tuple[float, ...],
    weight_decay: float,
    budget: Budget,
    seed: int,
) -> Ensemble:
    """Members of one ensemble; an eighth of the rows is held out to stop, and to choose the rate.

    The first member is trained once with every rate, the others with the best of them. The penalty is
    half ``weight_decay`` times the sum of the squared parameters, over the number of columns.
    """
    generator = torch.Generator().manual_seed(seed)
    masks = Masks(architecture.dropout, np.random.Generator(np.random.SFC64(seed)))
    columns = X.shape[1]
    order = torch.randperm(len(X), generator=generator)
    held, used = order.tensor_split([max(1, len(X) // 8)])
    held_x, held_y = X[held].t(), y[held]
    hidden_masks = masks if architecture.dropout else None

    def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
        parts = contributions(parameters, x, architecture, hidden_masks)
        if architecture.feature_dropout:
            keep = 1 - architecture.feature_dropout
            parts = parts * (torch.rand(parts.shape, generator=generator) < keep) / keep
        penalty = sum(p.square().flatten(1).sum(1) for p in parameters[:-1])
        output = parts.sum(1) + parameters[-1][:, None]
        return target_loss(output, y, task) + 0.5 * weight_decay / columns * penalty

    def score(parameters: Parameters) -> Tensor:
        return target_loss(totals(parameters, held_x, architecture), held_y, task)

    def run(start: Parameters, rates: list[float]) -> Trained:
        return train(start, loss, score, X[used], y[used], torch.tensor(rates), budget, generator)

    start = initial_parameters(architecture, 1, columns, generator)
    if task == "classification":
        share = y.mean().clamp(1e-3, 1 - 1e-3)
        start[-1] += torch.logit(share)
    first = run([torch.cat([p] * len(rates)) for p in start], list(rates))
    winner = int(first.score.argmin())
    parameters = [p[winner : winner + 1] for p in first.parameters]
    runs = [first]
    if members > 1:
        others = initial_parameters(architecture, members - 1, columns, generator)
        others[-1] += start[-1]
        runs.append(run(others, [rates[winner]] * (members - 1)))
        parameters = [torch.cat(pair) for pair in zip(parameters, runs[1].parameters, strict=True)]
    info = {
        "learning_rate": rates[winner],
        "updates": max(r.updates for r in runs),
        "stopped_early": all(r.stopped_early for r in runs),
    }
    return Ensemble(parameters, info)


def without_units(parameters: Parameters, rate: float, passes: int, seed: int) -> Parameters:
    """One network with hidden units left out at random, ``passes`` times; one hidden layer."""
    first, thresholds, last, intercept = (p.repeat_interleave(passes, 0) for p in parameters)
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(last.shape, generator=generator) >= rate
    return [first, thresholds, last * kept / (1 - rate), intercept]


# variational posterior


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
    X: Tensor,
    y: Tensor,
    task: Task,
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
    rows, columns = X.shape
    members = len(prior_stds)
    mean = initial_parameters(architecture, members, columns, generator)
    if task == "classification":
        mean[-1] += torch.logit(y.mean().clamp(1e-3, 1 - 1e-3))
    stds = torch.tensor(prior_stds)
    # Hidden units are N(0, 1) of standardised columns; the intercept is as good as free.
    priors = [
        torch.ones(members, 1, 1),
        torch.ones(members, 1, 1),
        (stds / math.sqrt(units)).view(-1, 1, 1),
        torch.full((members,), 10.0),
    ]
    mean[2] *= stds.view(-1, 1, 1)
    count = len(mean)
    log_std = [
        torch.log(fraction * prior).expand_as(m).clone()
        for m, prior, fraction in zip(mean, priors, (0.3, 0.3, 0.3, 0.01), strict=True)
    ]
    log_noise = torch.full((members,), math.log(0.5))
    bounds: list[Tensor] = []

    def noisy(mean: Tensor, variance: Tensor) -> Tensor:
        return mean + (variance + 1e-12).sqrt() * torch.randn(mean.shape, generator=generator)

    def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
        means, log_stds = parameters[:count], parameters[count : 2 * count]
        variances = [(2 * s).exp() for s in log_stds]
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
        output = noisy(centre, spread)[..., 0]
        if task == "classification":
            misfit = target_loss(output, y, task)
        else:
            log_sd = parameters[-1]  # of every member
            misfit = (
                0.5 * target_loss(output, y, task) * (-2 * log_sd).exp()
                + log_sd
                + 0.5 * math.log(2 * math.pi)
            )
        divergence = sum(
            (0.5 * (m.square() + s2) / p**2 - s + p.log() - 0.5).view(members, -1).sum(1)
            for m, s2, s, p in zip(means, variances, log_stds, priors, strict=True)
        )
        bound = misfit + divergence / rows
        bounds.append(-bound.detach())
        return bound

    start = [*mean, *log_std] + ([log_noise] if task == "regression" else [])
    rates = torch.full((members,), rate)
    trained = train(start, loss, None, X, y, rates, budget, generator).parameters
    elbo = torch.stack(bounds[-100:]).mean(0)
    best = int(elbo.argmax())
    trained = [p[best : best + 1] for p in trained]
    return Posterior(
        trained[:count],
        [s.exp() for s in trained[count : 2 * count]],
        float(trained[-1].exp()) if task == "regression" else math.nan,
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


# predictions


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


class AdditiveEnsemble:
    """Members of equal weight; knows the rows it was fitted to."""

    def __init__(
        self,
        parameters: Parameters,
        architecture: Architecture,
        scaling: Scaling,
        task: Task,
        X: np.ndarray,
    ) -> None:
        self.parameters, self.architecture = parameters, architecture
        self.scaling, self.task = scaling, task
        self._rows = scaling.inputs(X)

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Every member's mean of y, or its log odds: (members, rows)."""
        x = self.scaling.inputs(X).t()
        values = totals(self.parameters, x, self.architecture).double().numpy()
        return self.scaling.offset + self.scaling.scale * values

    def effects(self, x: Tensor, column: int) -> np.ndarray:
        """What members say that a column adds, not centred; ``x`` as the networks see it."""
        single = [p[:, column : column + 1] for p in self.parameters[:-1]]
        single.append(torch.zeros_like(self.parameters[-1]))
        values = totals(single, x[None, :], self.architecture).double().numpy()
        return self.scaling.scale * values

    def fitted(self, noise: float | None, info: dict[str, Any]) -> Fitted:
        """Mean and variance over the members; ``noise`` is a standard deviation in units of y.

        Classification has none, and averages probabilities.
        """

        def predict(X: Table) -> Prediction:
            outputs = self.outputs(as_numbers(X))
            if self.task == "classification":
                return Prediction((1 / (1 + np.exp(-outputs))).mean(axis=0))
            std = np.sqrt(outputs.var(axis=0) + noise**2)
            return Prediction(outputs.mean(axis=0), std)

        def effect(X: Table, column: int) -> tuple[np.ndarray, np.ndarray]:
            x = self.scaling.inputs(as_numbers(X))[:, column]
            level = self.effects(self._rows[:, column], column).mean(axis=1, keepdims=True)
            values = self.effects(x, column) - level
            return values.mean(axis=0), values.std(axis=0)

        return Fitted(predict, effect=effect, info=info)


def use_threads(task: Task, threads: int) -> None:
    """Every fit begins here."""
    if task not in ("regression", "classification"):
        raise ValueError(f"the networks do regression and classification, not {task}")
    torch.set_num_threads(threads)


def ensemble_fit(
    X: Table,
    y: np.ndarray,
    task: Task,
    seed: int,
    threads: int,
    architecture: Architecture,
    **settings: Any,
) -> tuple[AdditiveEnsemble, dict[str, Any]]:
    """Scale, train and wrap an ensemble; ``settings`` are those of ``train_ensemble``."""
    use_threads(task, threads)
    array, target = as_numbers(X), np.asarray(y, float)
    scaling = Scaling.of(array, target, task, interval=architecture.activation == "exu")
    trained = train_ensemble(
        scaling.inputs(array), scaling.targets(target), task, architecture, seed=seed, **settings
    )
    model = AdditiveEnsemble(trained.parameters, architecture, scaling, task, array)
    return model, trained.info
