"""The loop shared by every training: numbered steps, checkpoints, a log, and a stop that loses at most one step.

A kill cannot damage a checkpoint: it is written to a new folder, flushed, then renamed.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from plantain.files.opening import check_received
from plantain.journal.blobs import sync_folder
from plantain.records import InputError
from plantain.train.editor import cannot_write
from plantain.train.plans import TrainingProgress

CHECKPOINT = "checkpoint"
NEW, OLD = f"{CHECKPOINT}.new", f"{CHECKPOINT}.old"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a training, without weights and optimizer.

    Attributes:
        step: number of finished steps.
        identity: hash of data, base weights and settings; a training with another identity is not resumed.
        log: loss of each step so far.
        stopped: why the training ended before its last step; "" if it can be resumed.
    """

    step: int
    identity: str
    log: tuple[float, ...]
    stopped: str = ""


def save_checkpoint(
    folder: Path, weights: dict[str, nn.Parameter], optimizer: Optimizer, state: Checkpoint
) -> None:
    """Replace the checkpoint in `folder`, atomically.

    Raises:
        InputError: it cannot be written, e.g. the disk is full; the previous one is unchanged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    new, old, current = folder / NEW, folder / OLD, folder / CHECKPOINT
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        save_file(
            {name: weight.detach().cpu().contiguous() for name, weight in weights.items()},
            new / "weights.safetensors",
        )
        torch.save(optimizer.state_dict(), new / "optimizer.pt")
        (new / "state.json").write_text(json.dumps(asdict(state)), encoding="utf-8")
        for path in new.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(new)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch reports a full disk as a RuntimeError
        shutil.rmtree(new, ignore_errors=True)
        raise cannot_write(folder, f"the checkpoint of step {state.step}", error) from error
    shutil.rmtree(old, ignore_errors=True)
    if current.exists():
        current.rename(old)
    new.rename(current)
    sync_folder(folder)
    shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(
    folder: Path, weights: dict[str, nn.Parameter], optimizer: Optimizer, identity: str
) -> Checkpoint | None:
    """Restore weights and optimizer from a checkpoint and return its state; None without a checkpoint.

    Raises:
        InputError: it is of another training, or cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = next((p for p in (folder / CHECKPOINT, folder / OLD) if (p / "state.json").exists()), None)
    if path is None:
        return None
    check_received(path)
    try:
        text = json.loads((path / "state.json").read_text(encoding="utf-8"))
        state = Checkpoint(int(text["step"]), str(text["identity"]), tuple(text["log"]), str(text["stopped"]))
        stored: dict[str, Tensor] = load_file(path / "weights.safetensors")
        moments = torch.load(path / "optimizer.pt", weights_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: the checkpoint cannot be read: {error}") from error
    if state.identity != identity or stored.keys() != weights.keys():
        raise InputError(
            f"{path}: is of another training (other data, base weights or settings); choose another --to folder, or "
            "remove it to start again"
        )
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(stored[name])
    optimizer.load_state_dict(moments)
    return state


WEIGHT_DECAY, CLIP = 1e-2, 1.0
"""Of AdamW, and the largest norm of a step's gradient."""

AT_ONCE = 4
"""Examples back-propagated together; a larger batch sums the gradients of several such parts."""

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The settings of a training loop.

    Attributes:
        steps: total number of steps.
        learning_rate: constant learning rate of AdamW.
        batch: examples per step.
        seed: seed of order, noise and dropped conditions.
        checkpoint_every: steps between checkpoints.
    """

    steps: int
    learning_rate: float
    batch: int = 1
    seed: int = 0
    checkpoint_every: int = 100


@dataclass(frozen=True, slots=True)
class Session:
    """Folder, progress and stop of one run of a training, from start or checkpoint to its end or interruption.

    Attributes:
        folder: folder of the checkpoint.
        progress: receives the progress.
        stop: called before each step; True writes a checkpoint and ends the session.
    """

    folder: Path
    progress: TrainingProgress
    stop: Callable[[], bool] = lambda: False


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
    session: Session,
    identity: str,
    *,
    reason_to_end: Callable[[int], str] | None = None,
) -> Checkpoint:
    """Train, or resume from the checkpoint in the session's folder.

    Args:
        weights: weights by name, trained in place.
        loss_of: returns the summed loss of some examples of one canvas at a step.
        canvases: canvas size of each example.
        schedule: steps, learning rate, batch and seed.
        session: checkpoint, progress and stop.
        identity: hash of all that the weights depend on; only a checkpoint with the same one is resumed.
        reason_to_end: called at each checkpoint and at the end; a reason ends the training with the weights of the
            previous checkpoint, "" continues.

    Returns:
        The state in which it ended.

    Raises:
        InputError: the checkpoint is of another training, or cannot be written; loss or gradient is not finite.
    """
    optimizer = torch.optim.AdamW(weights.values(), lr=schedule.learning_rate, weight_decay=WEIGHT_DECAY)
    found = load_checkpoint(session.folder, weights, optimizer, identity)
    step, log = (found.step, list(found.log)) if found else (0, [])

    def keep(stopped: str = "") -> Checkpoint:
        state = Checkpoint(step, identity, tuple(log), stopped)
        save_checkpoint(session.folder, weights, optimizer, state)
        return state

    if found is None and reason_to_end is not None:
        found = keep()
    if found and found.stopped:
        return found
    while step < schedule.steps:
        if session.stop():
            if found is None or found.step != step:
                keep()
            return Checkpoint(step, identity, tuple(log), INTERRUPTED)
        optimizer.zero_grad(set_to_none=True)
        batch, loss = batch_of(schedule, step, canvases), 0.0
        for at in range(0, len(batch), AT_ONCE):
            part = loss_of(batch[at : at + AT_ONCE], step) / len(batch)
            part.backward()
            loss += float(part.detach())
        step += 1
        _check_finite(step, loss, float(nn.utils.clip_grad_norm_(weights.values(), CLIP)))
        optimizer.step()
        log.append(loss)
        session.progress.step(step, loss)
        if step % schedule.checkpoint_every and not (reason_to_end and step == schedule.steps):
            continue
        if reason_to_end is not None and (why := reason_to_end(step)):
            found = load_checkpoint(session.folder, weights, optimizer, identity)
            assert found is not None
            step, log = found.step, list(found.log)
            return keep(why)
        found = keep()
    return Checkpoint(step, identity, tuple(log))


def _check_finite(step: int, loss: float, gradient: float) -> None:
    """Raise InputError if loss or gradient is not finite, before any weight changes."""
    for what, value in (("loss", loss), ("gradient", gradient)):
        if not math.isfinite(value):
            raise InputError(
                f"training step {step}: the {what} is {value}; a smaller learning rate may help. The last checkpoint "
                "is kept for this rate; another rate needs another --to folder"
            )
