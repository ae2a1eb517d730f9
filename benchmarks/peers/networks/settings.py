"""What is chosen before a fit: networks, and how long and in which way they are trained."""

from __future__ import annotations

from dataclasses import dataclass, replace


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


@dataclass(frozen=True)
class Budget:
    """How long a member may train.

    At most ``updates`` steps of Adam; it stops earlier when the score on held-out rows has not improved
    for ``patience`` steps, and the best is restored. Batches have ``batch`` rows, or all of them. The
    learning rate falls by ``decay`` a pass over the rows, or every step where a pass is one.
    """

    updates: int
    patience: int = 300
    batch: int = 512
    decay: float = 0.995

    def scored(self, step: int, steps_a_pass: int) -> bool:
        """Whether to look at the held-out rows now: after a pass, within 5 to 25 steps.

        ExU networks go from nothing to too much in fifty steps of a small set.
        """
        return step % min(25, max(5, steps_a_pass)) == 0 or step == self.updates

    def part(self, share: float) -> Budget:
        """This share of the updates and of the patience."""
        return replace(
            self, updates=round(share * self.updates), patience=round(share * self.patience)
        )


@dataclass(frozen=True)
class Training:
    """How an ensemble is trained: how long, at which of the paper's rates, with which penalty."""

    budget: Budget = Budget(updates=2000)
    rates: tuple[float, ...] = (0.01, 0.001)
    weight_decay: float = 1e-5


TRAINING = Training()
