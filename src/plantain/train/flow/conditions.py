"""What a flow-matching editor hands its transformer for an edit, taken where its own pipeline hands it over.

The pipeline is called as for an edit and left at the first call of the transformer: so text states, reference tokens,
positions and guidance are those of editing, on the canvas of editing, for every class alike. The picture after is
encoded in the same way, as a reference: these pipelines norm and pack both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Runner
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.train.encoded import Encoded, encode
from plantain.train.examples.pairs import PreferencePair, TrainingPair

PATCH = 16
"""Pixels along a token's side: two by two latents of an eighth of the picture."""

SHAPES = "img_shapes"

SOURCE, TARGET, WINNER, LOSER, WEIGHT = "source", "target", "winner", "loser", "weight"
"""Parts of an example that the transformer is not handed by name."""


class _Handed(Exception):  # no error: it ends the pipeline where its work for us is done
    """What the transformer was handed."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments


@dataclass(frozen=True, slots=True)
class FlowEncoder:
    """Encodes for one editor at one size.

    Attributes:
        runner: of the editor; everything in it is frozen.
        side: of the canvas that an edit is made on (`ProviderOptions.side`).
    """

    runner: Runner
    side: int

    def frame(self, pixels: Pixels) -> Frame:
        """The canvas on which the editor would edit this picture."""
        return self.runner.method.frame.frame(pixels.shape[1], pixels.shape[0], self.side)

    def parts(self, pair: TrainingPair) -> dict[str, Tensor]:
        """A pair as the transformer sees it.

        Returns:
            "source" and "target" (channels, h, w), tokens of the pictures before and after; "weight" (1, h, w), which
            share of each token shows the picture, not the border; and what else the transformer takes, by name.
        """
        return self._parts(pair.before, pair.instruction, {TARGET: pair.after})

    def preference_parts(self, pair: PreferencePair) -> dict[str, Tensor]:
        """A preference as the transformer sees it: as `parts`, with "winner" and "loser" in place of "target"."""
        return self._parts(pair.before, pair.instruction, {WINNER: pair.winner, LOSER: pair.loser})

    def _parts(self, before: Pixels, instruction: str, others: Mapping[str, Pixels]) -> dict[str, Tensor]:
        frame = self.frame(before)
        arguments = self._handed(frame.enter(before), instruction)
        height, width = frame.canvas_height // PATCH, frame.canvas_width // PATCH
        places = height * width
        if arguments["hidden_states"].shape[1] != 2 * places:
            raise ValueError(f"{arguments['hidden_states'].shape[1]} tokens are not twice {height} x {width}")
        parts = {
            name: value[0] if value.ndim > 1 and value.shape[0] == 1 else value
            for name, value in arguments.items()
            if isinstance(value, Tensor) and name not in ("hidden_states", "timestep")
        }
        if SHAPES in arguments:
            parts[SHAPES] = torch.tensor(arguments[SHAPES][0])
        handed = {name: self._handed(frame.enter(pixels), instruction) for name, pixels in others.items()}
        for name, given in {SOURCE: arguments, **handed}.items():
            parts[name] = given["hidden_states"][0, places:].T.reshape(-1, height, width)
        return {**parts, WEIGHT: _weight(frame)}

    def _handed(self, canvas: Pixels, instruction: str) -> dict[str, Any]:
        """What the transformer is handed for an edit of that picture."""

        def take(_module: nn.Module, _args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
            raise _Handed(arguments)

        hook = self.runner.pipe.transformer.register_forward_pre_hook(take, with_kwargs=True)
        try:
            self.runner.edit([canvas], [Job(b"", instruction, 0, side=self.side)], Steering.of({"steps": 1}))
        except _Handed as handed:
            return handed.arguments
        finally:
            hook.remove()
        raise ValueError("the pipeline called no transformer")


def encode_flow_pairs(encoder: FlowEncoder, pairs: Iterable[TrainingPair]) -> Encoded:
    """Encodes pairs one by one; neither pixels nor latents are kept in memory. Raises ValueError when there is none."""
    return encode((pair.id, encoder.parts(pair)) for pair in pairs)


def handed_again(row: Mapping[str, Tensor], noisy: Tensor, sigma: Tensor) -> dict[str, Any]:
    """The transformer's arguments for one encoded example.

    Args:
        row: of `Encoded.rows`, one example.
        noisy: tokens of the output, (1, places, channels).
        sigma: share of noise, (1,), as the pipelines say it: a timestep between 0 and 1.
    """
    precision = noisy.dtype
    arguments: dict[str, Any] = {
        name: value if name.endswith("_ids") else value.to(precision)
        for name, value in row.items()
        if name not in (SOURCE, TARGET, WEIGHT, SHAPES)
    }
    for name in ("txt_ids", "img_ids"):  # Kontext's have no batch
        if name in arguments and not _batched(row):
            arguments[name] = arguments[name][0]
    if "guidance" in arguments:
        arguments["guidance"] = arguments["guidance"].reshape(-1).float()
    if SHAPES in row:
        arguments[SHAPES] = [[tuple(int(side) for side in shape) for shape in row[SHAPES][0].tolist()]]
    return {
        **arguments,
        "hidden_states": torch.cat([noisy, tokens_of(row[SOURCE]).to(precision)], dim=1),
        "timestep": sigma.to(precision),
        "return_dict": False,
    }


def tokens_of(grid: Tensor) -> Tensor:
    """From (n, channels, h, w) to (n, places, channels), row by row."""
    return grid.flatten(2).transpose(1, 2)


def _batched(row: Mapping[str, Tensor]) -> bool:
    """Whether positions come with a batch: those of FLUX.2 do, those of FLUX.1 (which takes pooled states) do not."""
    return "pooled_projections" not in row


def _weight(frame: Frame) -> Tensor:
    shows = torch.zeros(1, frame.canvas_height, frame.canvas_width)
    shows[:, frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width] = 1.0
    return nn.functional.avg_pool2d(shows, PATCH)
