"""Checkpoints that a kill cannot damage: written to a new folder, flushed, then renamed."""

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
from plantain.journal.blobs import sync_folder
from plantain.records import InputError
from plantain.train.editor_folder import cannot_write

NAME = "checkpoint"
NEW, OLD = f"{NAME}.new", f"{NAME}.old"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State of a training without its weights and optimizer.

    Attributes:
        step: steps done.
        identity: of data, base weights and settings; a training with another identity is not resumed.
        log: loss of each step so far.
        stopped: why the training ended before its last step; "" if it can be resumed.
    """

    step: int
    identity: str
    log: tuple[float, ...]
    stopped: str = ""


def save(folder: Path, weights: dict[str, nn.Parameter], optimizer: Optimizer, state: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, completely or not at all.

    Raises:
        InputError: it cannot be written, e.g. the disk is full; the previous one is unchanged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    new, old, current = folder / NEW, folder / OLD, folder / NAME
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


def load(
    folder: Path, weights: dict[str, nn.Parameter], optimizer: Optimizer, identity: str
) -> Checkpoint | None:
    """Restore weights and optimizer from a checkpoint; return None if there is none.

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
