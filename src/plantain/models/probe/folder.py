"""A probe on disk: its weights, its card, and what it says of pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from plantain.files.opening import check_inside, read_inside
from plantain.files.writing import replace_file
from plantain.models.extras import require_extra
from plantain.models.probe.card import ProbeCard
from plantain.models.probe.frame import Frame, levelled
from plantain.records import InputError

if TYPE_CHECKING:
    from plantain.models.probe.network import ProbeNetwork

CARD, WEIGHTS = "probe.json", "probe.safetensors"
_CARD = TypeAdapter(ProbeCard)
_BATCH = 128


@dataclass(frozen=True)
class Probe:
    """A trained network with what its card says of it.

    Attributes:
        folder: where it lies.
        card: see `ProbeCard`.
        digest: SHA-256 of card and weights.
    """

    folder: Path
    card: ProbeCard
    digest: str

    @classmethod
    def open(cls, folder: Path) -> Probe:
        """Reads a probe's folder; weights are loaded when it is first asked.

        Raises:
            InputError: it is none, or its card is not what a card holds.
        """
        if not (folder / CARD).is_file():
            raise InputError(f"{folder}: no probe here (no {CARD}); make one with `plantain train probe`")
        data = read_inside(folder, folder / CARD)
        try:
            card = _CARD.validate_json(data)
        except ValidationError as error:
            raise InputError(
                f"{folder / CARD}: not the card of a probe: {error.errors()[0]['msg']}"
            ) from error
        weights = read_inside(folder, folder / WEIGHTS)
        return cls(folder, card, hashlib.sha256(data + weights).hexdigest())

    @cached_property
    def network(self) -> ProbeNetwork:
        """The network, ready to be asked. Raises InputError where torch or the right weights are missing."""
        require_extra(f"probe/{self.folder}", "torch", "torch", "safetensors")
        from plantain.models.probe.network import ProbeNetwork

        check_inside(self.folder, self.folder / WEIGHTS)
        return load_weights(ProbeNetwork(len(self.card.findings), self.card.width), self.folder / WEIGHTS)

    def logits(self, frames: Sequence[Frame] | npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Calibrated logits (N, findings) of frames (N, SIDE, SIDE): 0 is an even chance."""
        raw = logits_of(self.network, frames)
        return np.asarray(raw / np.array(self.card.temperatures) - np.array(self.card.shifts))


def logits_of(
    network: ProbeNetwork, frames: Sequence[Frame] | npt.NDArray[np.uint8]
) -> npt.NDArray[np.float64]:
    """What the network says before it is calibrated: (N, findings)."""
    import torch

    network.eval()
    found = []
    with torch.inference_mode():
        for first in range(0, len(frames), _BATCH):
            levels = np.stack([levelled(frame) for frame in frames[first : first + _BATCH]])
            found.append(network(torch.from_numpy(levels)).numpy())
    return np.concatenate(found).astype(np.float64) if found else np.zeros((0, 0))


def load_weights(network: ProbeNetwork, path: Path) -> ProbeNetwork:
    """Weights from disk. Raises InputError where they are not those of such a network."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not the weights of this probe: {str(error).splitlines()[0]}") from error
    network.eval()
    return network


def write_probe(folder: Path, network: ProbeNetwork, card: ProbeCard) -> None:
    """Writes a probe; the card comes last, so that its absence says that a training did not end."""
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    replace_file(
        folder / WEIGHTS, save({name: value.contiguous() for name, value in network.state_dict().items()})
    )
    replace_file(folder / CARD, _CARD.dump_json(card, indent=1))
