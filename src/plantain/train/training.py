"""The loop shared by every training: numbered steps, a log, and a stop between steps.

A training takes minutes, so nothing of an unfinished one is stored: a finished editor is, and is not trained again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from plantain.records import InputError
from plantain.train.plans import TrainingProgress

WEIGHT_DECAY, CLIP = 1e-2, 1.0
"""Of AdamW, and the largest norm of a step's gradient."""

AT_ONCE = 4
"""Examples back-propagated together; a larger batch sums the gradients of several such parts."""

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Trained:
    """The end of a training: `step` finished steps with their losses, `log`; `stopped`: why it ended early, or ""."""

    step: int
    log: tuple[float, ...]
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The settings of a training loop.

    Attributes:
        steps: total number of steps.
        learning_rate: constant learning rate of AdamW.
        batch: examples per step.
        seed: seed of order, noise and dropped conditions.
    """

    steps: int
    learning_rate: float
    batch: int = 1
    seed: int = 0


def batch_of(schedule: Schedule, step: int, canvases: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of a step's examples; the order of each epoch depends on seed and epoch only.

    `canvases` are the canvas sizes of all examples. A batch contains one canvas only, so the last of each canvas may be
    smaller; an epoch contains every example once.
    """
    counts = Counter(canvases)
    epoch, position = divmod(step, sum(-(-n // schedule.batch) for n in counts.values()))
    generator = torch.Generator().manual_seed((schedule.seed * 1_000_003 + epoch) % 2**63)
    order = torch.randperm(len(canvases), generator=generator).tolist()
    alike: dict[tuple[int, int], list[int]] = {}
    for number in order:
        alike.setdefault(canvases[number], []).append(number)
    batches = [
        numbers[at : at + schedule.batch]
        for numbers in alike.values()
        for at in range(0, len(numbers), schedule.batch)
    ]
    return batches[int(torch.randperm(len(batches), generator=generator)[position])]


def run(
    weights: dict[str, nn.Parameter],
    loss_of: Callable[[list[int], int], Tensor],
    canvases: Sequence[tuple[int, int]],
    schedule: Schedule,
    progress: TrainingProgress,
    stop: Callable[[], bool],
    *,
    every: int = 0,
    reason_to_end: Callable[[int], str] = lambda step: "",
) -> Trained:
    """Train weights in place.

    Args:
        weights: weights by name.
        loss_of: returns the summed loss of some examples of one canvas at a step.
        canvases: canvas size of each example.
        schedule: steps, learning rate, batch and seed.
        progress: receives the progress.
        stop: called before each step; True ends the training as `INTERRUPTED`.
        every: steps between calls of `reason_to_end`, which is also called after the last step; 0: never called.
        reason_to_end: a reason ends the training with the weights of its previous call, "" continues.

    Returns:
        The state in which it ended.

    Raises:
        InputError: loss or gradient is not finite.
    """
    optimizer = torch.optim.AdamW(weights.values(), lr=schedule.learning_rate, weight_decay=WEIGHT_DECAY)
    log: list[float] = []
    good, kept = 0, _copied(weights) if every else {}
    for step in range(1, schedule.steps + 1):
        if stop():
            return Trained(step - 1, tuple(log), INTERRUPTED)
        optimizer.zero_grad(set_to_none=True)
        batch, loss = batch_of(schedule, step - 1, canvases), 0.0
        for at in range(0, len(batch), AT_ONCE):
            part = loss_of(batch[at : at + AT_ONCE], step - 1) / len(batch)
            part.backward()
            loss += float(part.detach())
        _check_finite(step, loss, float(nn.utils.clip_grad_norm_(weights.values(), CLIP)))
        optimizer.step()
        log.append(loss)
        progress.step(step, loss)
        if every and (step % every == 0 or step == schedule.steps):
            if why := reason_to_end(step):
                with torch.no_grad():
                    for name, weight in weights.items():
                        weight.copy_(kept[name])
                return Trained(good, tuple(log[:good]), why)
            good, kept = step, _copied(weights)
    return Trained(schedule.steps, tuple(log))


def _copied(weights: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights.items()}


def _check_finite(step: int, loss: float, gradient: float) -> None:
    """Raise InputError if loss or gradient is not finite, before any weight changes."""
    for what, value in (("loss", loss), ("gradient", gradient)):
        if not math.isfinite(value):
            raise InputError(
                f"training step {step}: the {what} is {value}; a smaller learning rate may help (use another --to)"
            )
