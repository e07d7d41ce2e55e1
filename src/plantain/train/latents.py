"""Images and texts as an InstructPix2Pix sees them when it edits: on the same canvas, encoded by its frozen parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from plantain.models.diffusers.methods import METHODS
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels

if TYPE_CHECKING:
    from diffusers import StableDiffusionInstructPix2PixPipeline

InstructionPipeline: TypeAlias = "StableDiffusionInstructPix2PixPipeline"

METHOD = "instruct-pix2pix"
"""The only way of editing whose UNet is conditioned as these trainings assume."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes for one pipeline at one size.

    Attributes:
        pipe: whose VAE and text encoder are used, frozen.
        side: of the canvas that an edit is made on (`ProviderOptions.side`): its longer side, in pixels.
    """

    pipe: InstructionPipeline
    side: int

    def frame(self, pixels: Pixels) -> Frame:
        """The canvas on which the editor would edit this image; nothing is learned from another one."""
        return METHODS[METHOD].frame.frame(pixels.shape[1], pixels.shape[0], self.side)

    def condition(self, pixels: Pixels) -> Tensor:
        """Latents of the image before: float32 (4, h, w), unscaled, as the UNet is conditioned on them."""
        return self._latents(pixels)

    def target(self, pixels: Pixels) -> Tensor:
        """Latents of an image to be generated: float32 (4, h, w), scaled."""
        return self._latents(pixels) * self.pipe.vae.config.scaling_factor

    def weight(self, pixels: Pixels) -> Tensor:
        """Which share of each latent pixel shows the image, not the border around it: float32 (1, h, w), in [0, 1]."""
        frame = self.frame(pixels)
        shows = torch.zeros(1, frame.canvas_height, frame.canvas_width)
        shows[:, frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width] = (
            1.0
        )
        scale = self.pipe.vae_scale_factor
        return torch.nn.functional.avg_pool2d(shows, scale)

    def texts(self, texts: Sequence[str]) -> Tensor:
        """Text states: float32 (n, tokens, width); a text beyond the model's length is cut."""
        tokenizer = self.pipe.tokenizer
        tokens = tokenizer(
            list(texts),
            padding="max_length",
            max_length=tokenizer.model_max_length,
            truncation=True,
            return_tensors="pt",
        )
        device = next(self.pipe.text_encoder.parameters()).device
        with torch.no_grad():
            return self.pipe.text_encoder(tokens.input_ids.to(device))[0].float()

    def _latents(self, pixels: Pixels) -> Tensor:
        canvas = self.frame(pixels).enter(pixels)
        reference = next(self.pipe.vae.parameters())
        image = torch.from_numpy(np.ascontiguousarray(canvas)).permute(2, 0, 1)[None]
        with torch.no_grad():
            image = image.to(reference.device, reference.dtype) / 127.5 - 1.0
            return self.pipe.vae.encode(image).latent_dist.mode()[0].float()
