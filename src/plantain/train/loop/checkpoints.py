"""Checkpoints that a kill cannot spoil: written beside, flushed, renamed; the newest whole one is where to go on."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from plantain.files.opening import check_received
from plantain.journal.disk.blobs import sync_folder
from plantain.records import InputError
from plantain.train.loop.averages import Averages
from plantain.train.written import cannot_write

NAME = "checkpoint"
AVERAGES = "averages.safetensors"
NEW, OLD = f"{NAME}.new", f"{NAME}.old"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a training stands.

    Attributes:
        step: steps done.
        identity: of the training: data, base weights and settings; another one is not continued.
        log: what was noted of each step so far.
        stopped: why the training has ended here before its last step; "" when it may go on.
    """

    step: int
    identity: str
    log: tuple[dict[str, float], ...]
    stopped: str = ""


def save(
    folder: Path,
    weights: dict[str, nn.Parameter],
    optimizer: Optimizer,
    state: Checkpoint,
    averages: Averages | None = None,
) -> None:
    """Replaces the checkpoint in `folder` by this one, at once or not at all.

    Raises:
        InputError: it cannot be written, as on a full disk; the one before is left as it was.
    """
    from safetensors import SafetensorError

    folder.mkdir(parents=True, exist_ok=True)
    new, old, whole = folder / NEW, folder / OLD, folder / NAME
    shutil.rmtree(new, ignore_errors=True)
    try:
        _write(new, weights, optimizer, state, averages)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch reports a full disk as a RuntimeError
        shutil.rmtree(new, ignore_errors=True)
        raise cannot_write(folder, f"the checkpoint of step {state.step}", error) from error
    shutil.rmtree(old, ignore_errors=True)
    if whole.exists():
        whole.rename(old)
    new.rename(whole)
    sync_folder(folder)
    shutil.rmtree(old, ignore_errors=True)


def _write(
    new: Path,
    weights: dict[str, nn.Parameter],
    optimizer: Optimizer,
    state: Checkpoint,
    averages: Averages | None,
) -> None:
    """All files of a checkpoint, flushed to the disk."""
    from safetensors.torch import save_file

    new.mkdir()
    save_file(
        {name: weight.detach().cpu().contiguous() for name, weight in weights.items()},
        new / "weights.safetensors",
    )
    if averages is not None:
        means = {name: value.cpu().contiguous() for name, value in averages.values.items()}
        save_file(means, new / AVERAGES)
    torch.save(optimizer.state_dict(), new / "optimizer.pt")
    (new / "state.json").write_text(json.dumps(asdict(state)), encoding="utf-8")
    for path in new.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(new)


def load(
    folder: Path,
    weights: dict[str, nn.Parameter],
    optimizer: Optimizer,
    identity: str,
    averages: Averages | None = None,
) -> Checkpoint | None:
    """Puts the checkpoint's weights and optimizer back; None when there is none.

    Raises:
        InputError: it is of another training, or cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = next((p for p in (folder / NAME, folder / OLD) if (p / "state.json").exists()), None)
    if path is None:
        return None
    check_received(path)
    try:
        text = json.loads((path / "state.json").read_text(encoding="utf-8"))
        state = Checkpoint(int(text["step"]), str(text["identity"]), tuple(text["log"]), str(text["stopped"]))
        stored: dict[str, Tensor] = load_file(path / "weights.safetensors")
        means = load_file(path / AVERAGES) if averages is not None else {}
        moments = torch.load(path / "optimizer.pt", weights_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: the checkpoint cannot be read: {error}") from error
    if state.identity != identity or stored.keys() != weights.keys():
        raise InputError(
            f"{path}: is of another training (other data, base weights or settings); choose another --out folder, or "
            "remove it to begin again"
        )
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(stored[name])
            if averages is not None:
                averages.values[name].copy_(means[name])
    if averages is not None:
        averages.steps = state.step
    optimizer.load_state_dict(moments)
    return state
