"""What preference training is to do; imports no torch, so that help needs none."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.records import InputError
from plantain.train.study_plan import LORA_RATE

BETA = 5000.0
"""Strength of the tie to the reference model (Wallace et al. 2024, 5.1)."""

BOUND = 1.05
"""The winner's error on held-out pairs may grow to so many times the reference's before training ends."""


@dataclass(frozen=True, slots=True)
class Preference:
    """How a model stands to its reference on some pairs, with fixed noise.

    Attributes:
        accuracy: share of pairs and draws whose winner gained more on its loser than in the reference, in [0, 1].
        winner_ratio: the winner's error over the reference's; 1 at the start.
        loser_ratio: the same of the loser.
    """

    accuracy: float
    winner_ratio: float
    loser_ratio: float


@dataclass(frozen=True, slots=True)
class PreferencePlan:
    """What is trained.

    Attributes:
        steps: of preference training.
        supervised_steps: on the winners, before; 0 where the base was fine-tuned already.
        held_out: share of the clusters that are only watched, in (0, 1).
        side: of the canvas, in pixels: the longer side of every image, and of the edits of what was trained.
        lora_rank: of the adapters, in both parts.
        supervised_rate, rate: learning rates.
        batch: pairs per step.
        beta, bound: see `plantain.train.preference.prefer`.
        seed: of split, order and noise.
        every: steps between looks at the held-out pairs; each is a checkpoint.
    """

    steps: int = 400
    supervised_steps: int = 200
    held_out: float = 0.2
    side: int = 512
    lora_rank: int = 8
    supervised_rate: float = LORA_RATE
    rate: float = 1e-5
    batch: int = 1
    beta: float = BETA
    bound: float = BOUND
    seed: int = 0
    every: int = 50

    def check(self) -> None:
        """Refuses what cannot be trained. Raises InputError naming the option."""
        for name, least in (
            ("steps", 1),
            ("supervised_steps", 0),
            ("lora_rank", 1),
            ("batch", 1),
            ("every", 1),
        ):
            if getattr(self, name) < least:
                raise InputError(f"--{name.replace('_', '-')}: must be at least {least}")
        if self.side < 64 or self.side % 8:
            raise InputError(f"--side: {self.side} is not a multiple of 8 from 64 pixels on")
        if not 0 < self.held_out < 1:
            raise InputError(f"--held-out: {self.held_out:g} is not a share between 0 and 1")
        if min(self.rate, self.supervised_rate, self.beta) <= 0 or self.bound < 1:
            raise InputError("--rate, --supervised-rate and --beta must be above 0, --bound at least 1")


class PreferenceObserver:
    """Told how it goes on; every method may be overridden."""

    def begin(self, part: str, steps: int) -> None:
        """A part begins or goes on: "supervised" or "preference"."""

    def step(self, step: int, loss: float) -> None:
        """A step was done."""

    def stands(self, step: int, where: Preference) -> None:
        """The held-out pairs were looked at."""
