"""The loop that every training shares: numbered steps, checkpoints, a log, and a stop that loses at most one step."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from plantain.records import InputError
from plantain.train.loop import checkpoints
from plantain.train.loop.averages import Averages
from plantain.train.loop.checkpoints import Checkpoint
from plantain.train.loop.rates import rate_factor


@dataclass(frozen=True, slots=True)
class Schedule:
    """How weights are changed.

    Attributes:
        steps: in all.
        learning_rate: of AdamW.
        batch: examples per step.
        weight_decay: of AdamW.
        clip: largest norm of a step's gradient.
        seed: of order, noise and dropping.
        checkpoint_every: steps between checkpoints; the last step always has one. 0: none unless it is stopped.
        rates: how the learning rate goes, one of `RATES`.
        warmup: steps in which it rises from 0.
        ema: decay of the running average of the weights, with which the training ends; 0 for none.
    """

    steps: int
    learning_rate: float
    batch: int = 1
    weight_decay: float = 1e-2
    clip: float = 1.0
    seed: int = 0
    checkpoint_every: int = 100
    rates: str = "constant"
    warmup: int = 0
    ema: float = 0.0


_LATER = {"rates": "constant", "warmup": 0, "ema": 0.0}
"""Settings that came later: where they have these values, a training is the one that it was before them."""


@dataclass(frozen=True, slots=True)
class Trained:
    """How a training ended.

    Attributes:
        step: steps done.
        log: what was noted of each.
        stopped: why it ended before its last step; "" when it did not.
    """

    step: int
    log: tuple[dict[str, float], ...]
    stopped: str = ""


def identity_of(schedule: Schedule, parts: Mapping[str, object]) -> str:
    """What a checkpoint must share with a training to be continued by it; how often it is written does not count."""
    settings = {**asdict(schedule), **parts}
    settings.pop("checkpoint_every")
    for name, usual in _LATER.items():
        if settings[name] == usual:
            settings.pop(name)
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def batch_of(schedule: Schedule, step: int, canvases: Sequence[tuple[int, int]]) -> list[int]:
    """Which examples a step sees: every epoch has its own order, drawn from the seed and the epoch alone.

    A batch holds one canvas only, so the last of each canvas may be smaller; an epoch sees every example once.
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
    loss_of: Callable[[int], tuple[Tensor, dict[str, float]]],
    schedule: Schedule,
    folder: Path,
    identity: str,
    *,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, noted: None,
    stop: Callable[[], bool] = lambda: False,
    enough: Callable[[int], str] = lambda step: "",
) -> Trained:
    """Trains, or goes on where the checkpoint in `folder` stands.

    Args:
        weights: what learns.
        loss_of: step number -> loss to descend and what to note of it. It may send parts of the loss back itself, which
            then are constants in what it returns.
        schedule: how.
        folder: of the checkpoint.
        identity: of this training.
        on_step: told each step and what was noted.
        stop: asked before each step whether someone wants to stop; a checkpoint is written first.
        enough: asked every `checkpoint_every` steps whether the weights have become worse, and why; "" to go on. The
            training then ends with the weights of the checkpoint before.

    Raises:
        InputError: the checkpoint is of another training, or cannot be written; the loss, or its gradient, is not
            finite.
    """
    optimizer = torch.optim.AdamW(
        weights.values(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay
    )
    averages = Averages(weights, schedule.ema) if schedule.ema else None
    found = checkpoints.load(folder, weights, optimizer, identity, averages)
    step, log = (found.step, list(found.log)) if found else (0, [])
    if found and found.stopped:
        return Trained(step, found.log, found.stopped)

    def keep(stopped: str = "") -> None:
        state = Checkpoint(step, identity, tuple(log), stopped)
        checkpoints.save(folder, weights, optimizer, state, averages)

    every = schedule.checkpoint_every
    if found is None and every:
        keep()
    saved = step
    while step < schedule.steps:
        if stop():
            if saved != step:
                keep()
            return Trained(step, tuple(log), "interrupted")
        optimizer.zero_grad(set_to_none=True)
        loss, noted = loss_of(step)
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * rate_factor(
                schedule.rates, step - 1, schedule.steps, schedule.warmup
            )
        _descend(loss, weights, optimizer, schedule.clip, step)
        if averages is not None:
            averages.add(weights)
        log.append(noted)
        on_step(step, noted)
        if every and (step % every == 0 or step == schedule.steps):
            if why := enough(step):
                checkpoints.load(folder, weights, optimizer, identity, averages)
                step = saved
                del log[saved:]
                keep(why)
                return Trained(step, tuple(log), why)
            keep()
            saved = step
    if averages is not None:
        averages.put_into(weights)
    return Trained(step, tuple(log))


def _descend(
    loss: Tensor, weights: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer, clip: float, step: int
) -> None:
    """One step down. Raises InputError when loss or gradient is not finite, before any weight is changed."""
    if not torch.isfinite(loss):
        raise _diverged(step, f"the loss is {float(loss.detach())}")
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(weights.values(), clip)
    if not torch.isfinite(
        norm
    ):  # one such step makes every weight NaN, and the loss shows it a step too late
        raise _diverged(step, f"the gradient is {float(norm)}")
    optimizer.step()


def _diverged(step: int, what: str) -> InputError:
    return InputError(
        f"training step {step}: {what}; a smaller learning rate may help. What was learned up to the last checkpoint "
        "is kept for this rate; another rate needs another --out folder"
    )
