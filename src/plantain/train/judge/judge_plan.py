"""What training a judge is to do; imports no torch, so that help needs none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plantain.records import InputError

LEAST = 50
"""Verdicts that passed, and as many that did not, that a judge must at least learn from."""


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What is trained.

    Attributes:
        steps: of training.
        held_out: share of the groups that are only measured on, in (0, 1).
        lora_rank: of the adapters.
        rate: learning rate.
        batch: verdicts per step.
        side: longer side in pixels at which pictures are shown; None for as they are.
        least: verdicts on each side, passed and not, that must be there to learn from.
        seed: of split, order and first weights.
        every: steps between checkpoints.
    """

    steps: int = 1000
    held_out: float = 0.2
    lora_rank: int = 16
    rate: float = 1e-4
    batch: int = 8
    side: int | None = None
    least: int = LEAST
    seed: int = 0
    every: int = 100

    def check(self) -> None:
        """Refuses what cannot be trained. Raises InputError naming the option."""
        for name in ("steps", "lora_rank", "batch", "least", "every"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.removeprefix('lora_')}: must be at least 1")
        if not 0 < self.held_out < 1:
            raise InputError(f"--held-out: {self.held_out:g} is not a share between 0 and 1")
        if self.rate <= 0 or (self.side is not None and self.side < 32):
            raise InputError("--rate must be above 0, --side at least 32 pixels")


@dataclass(frozen=True, slots=True)
class JudgeObserver:
    """Told how it goes on.

    Attributes:
        begin: a part begins, with its steps, 0 where nobody knows them.
        step: a step was done, with its loss.
    """

    begin: Callable[[str, int], None] = field(default=lambda part, steps: None)
    step: Callable[[int, float], None] = field(default=lambda step, loss: None)
