"""What likelihoods of amounts share: words, and an excess where tails are heavier than the family's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from lanam.core.likelihoods import Likelihood
from lanam.families.links import Words

#: How amounts read on the log scale.
AMOUNT = Words(
    response="mean",
    total="log mean",
    unit="log mean",
    scale="the logarithm of the mean",
    ratio="ratio",
    factor="relativity",
    reading=(
        "The logarithm of the mean is the intercept plus the contributions of all terms: a contribution of "
        "0.1 makes the mean about a tenth larger, whatever the other terms. Each curve below is one term "
        "with its 95% credible band, which is wide where there is little data."
    ),
)


@dataclass(frozen=True)
class Amount(Likelihood):
    """A likelihood whose residuals may vary more than it says."""

    beyond: float = field(default=1.0, kw_only=True)

    @property
    def excess(self) -> float:
        return self.beyond

    def with_excess(self, excess: float) -> Self:
        return replace(self, beyond=excess)
