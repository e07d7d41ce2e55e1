"""Images and texts as an InstructPix2Pix sees them, encoded once by its frozen parts and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from plantain.pixels.arrays import Pixels
from plantain.pixels.prepare import prepare

if TYPE_CHECKING:
    from diffusers import StableDiffusionInstructPix2PixPipeline

InstructionPipeline: TypeAlias = "StableDiffusionInstructPix2PixPipeline"


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes for one pipeline at one size.

    Attributes:
        pipe: whose VAE and text encoder are used, frozen.
        size: side of the square that images are fitted into, pixels, a multiple of 8.
    """

    pipe: InstructionPipeline
    size: int

    def condition(self, pixels: Pixels) -> Tensor:
        """Latents of the image before: float32 (4, size/8, size/8), unscaled, as the UNet is conditioned on them."""
        return self._latents(pixels)

    def target(self, pixels: Pixels) -> Tensor:
        """Latents of an image to be generated: float32 (4, size/8, size/8), scaled."""
        return self._latents(pixels) * self.pipe.vae.config.scaling_factor

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
        square, _ = prepare(pixels, self.size, "pad")
        reference = next(self.pipe.vae.parameters())
        image = torch.from_numpy(np.ascontiguousarray(square)).permute(2, 0, 1)[None]
        with torch.no_grad():
            image = image.to(reference.device, reference.dtype) / 127.5 - 1.0
            return self.pipe.vae.encode(image).latent_dist.mode()[0].float()
