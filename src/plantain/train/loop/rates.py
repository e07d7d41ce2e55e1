"""How the learning rate goes over a training: warm-up, then constant, linear or cosine."""

from __future__ import annotations

import math

RATES = ("constant", "linear", "cosine")
"""What follows the warm-up, by the names of diffusers and transformers."""


def rate_factor(kind: str, step: int, steps: int, warmup: int = 0) -> float:
    """The share of the learning rate at a step, in [0, 1].

    Args:
        kind: one of `RATES`: "linear" and "cosine" go down to 0 at the end.
        step: steps done before this one.
        steps: in all.
        warmup: steps of rising from 0; 0 for none.
    """
    if step < warmup:
        return step / max(1, warmup)
    if kind == "constant":
        return 1.0
    done = (step - warmup) / max(1, steps - warmup)
    if kind == "linear":
        return max(0.0, 1.0 - done)
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * done)))
