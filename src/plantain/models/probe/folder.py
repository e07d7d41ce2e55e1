"""A probe on disk: its weights, its card, and what it says of pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from plantain.files.opening import read_inside
from plantain.files.writing import replace_file
from plantain.models.extras import require_extra
from plantain.models.probe.card import ProbeCard, why_not
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
        why_not: why it may not judge; empty where it may.
        weights: as they were when it was opened.
    """

    folder: Path
    card: ProbeCard
    digest: str
    why_not: tuple[str, ...]
    weights: bytes = field(repr=False)

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
        digest = hashlib.sha256(data + weights).hexdigest()
        return cls(folder, card, digest, _barred(card, weights), weights)

    @cached_property
    def network(self) -> ProbeNetwork:
        """The network, ready to be asked. Raises InputError where torch or the right weights are missing."""
        require_extra(f"probe/{self.folder}", "torch", "torch", "safetensors")
        from plantain.models.probe.network import ProbeNetwork

        network = ProbeNetwork(len(self.card.findings), self.card.width)
        return load_weights(network, self.weights, self.folder / WEIGHTS)

    def logits(self, frames: Sequence[Frame] | npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Calibrated logits (N, findings) of frames (N, SIDE, SIDE): 0 is an even chance."""
        raw = logits_of(self.network, frames)
        return np.asarray(raw / np.array(self.card.temperatures) - np.array(self.card.shifts))


def seal_of(card: ProbeCard, weights: bytes) -> str:
    """What a card is sealed with: SHA-256 of all else in it and of its weights.

    It tells a card that was edited, or lies beside other weights. It is no signature: who writes a card anew seals it
    anew, and only measuring again (`plantain train probe-check`) would tell.
    """
    return hashlib.sha256(_CARD.dump_json(replace(card, seal="")) + weights).hexdigest()


def _barred(card: ProbeCard, weights: bytes) -> tuple[str, ...]:
    """Why a probe may not judge: its card is not its own, or its figures do not pass today's gate."""
    lacks = why_not(card.findings, card.held_out, card.ece, card.controls, card.areas_under)
    if card.seal == seal_of(card, weights):
        return lacks
    broken = (
        "its card was changed, or belongs to other weights"
        if card.seal
        else "its card has no seal, so nothing says that it belongs to these weights; train the probe again"
    )
    return (broken, *lacks)


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


def load_weights(network: ProbeNetwork, weights: bytes, path: Path) -> ProbeNetwork:
    """Weights of a file. Raises InputError where they are not those of such a network."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        network.load_state_dict(load(weights))
    except (SafetensorError, RuntimeError) as error:
        raise InputError(f"{path}: not the weights of this probe: {str(error).splitlines()[0]}") from error
    network.eval()
    return network


def write_probe(folder: Path, network: ProbeNetwork, card: ProbeCard) -> ProbeCard:
    """Writes a probe and seals its card; the card comes last, so that its absence says that a training did not end.

    Returns:
        The card as written, with its seal.
    """
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    weights = save({name: value.contiguous() for name, value in network.state_dict().items()})
    replace_file(folder / WEIGHTS, weights)
    sealed = replace(card, seal=seal_of(card, weights))
    replace_file(folder / CARD, _CARD.dump_json(sealed, indent=1))
    return sealed
