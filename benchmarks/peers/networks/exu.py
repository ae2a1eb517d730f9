"""ExU units (Agarwal et al. 2021), fast on a processor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.networks.masks import Masks


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
