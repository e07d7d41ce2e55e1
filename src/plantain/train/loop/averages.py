"""A running average of weights (EMA), which is what maintainers publish: smoother than the weights of the last step."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Averages:
    """Exponential moving averages of weights, by name, in float32 on their device.

    The decay grows with the steps, min(decay, (1 + n) / (10 + n)), so that a short training is no average of its
    beginning; `EMAModel` of diffusers does the same.

    Args:
        weights: as they are before the first step.
        decay: of the average, in (0, 1).
    """

    def __init__(self, weights: dict[str, nn.Parameter], decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self.values: dict[str, Tensor] = {name: weight.detach().clone() for name, weight in weights.items()}

    def add(self, weights: dict[str, nn.Parameter]) -> None:
        """After a step."""
        self.steps += 1
        before = self.steps - 1
        decay = 0.0 if before <= 0 else min(self.decay, (1 + before) / (10 + before))
        with torch.no_grad():
            for name, weight in weights.items():
                average = self.values[name]
                average.sub_((1 - decay) * (average - weight))

    def put_into(self, weights: dict[str, nn.Parameter]) -> None:
        """Makes the averages the weights."""
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(self.values[name])
