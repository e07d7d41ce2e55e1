"""Record cross-attention of a diffusion editor: a running sum per token, which leaves the edit unchanged.

Hooks on the projections of every cross-attention layer recompute the softmax for the text-conditioned rows only. The
model's own attention stays as it is, so the image is bit-identical with and without the recorder; nothing is kept of a
step but its sum. Not to be combined with fused projections or a compiled UNet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from plantain.models.diffusers.attention.recorder import AttentionRecorder, last_output


class CrossAttentionRecorder(AttentionRecorder):
    """Sum the cross-attention of a UNet while a pipeline runs inside its `with` block.

    Args:
        unet: the pipeline's UNet; LoRA layers must be on it already.
        latent: (height, width) of the latents.
        chunks: number of conditions in one pass, the text-conditioned first (3 for InstructPix2Pix under guidance,
            else 1).

    Example:
        with CrossAttentionRecorder(pipe.unet, (64, 64), chunks=3) as recorder:
            pipe(prompt, image=image)
        maps = recorder.maps()
    """

    def __init__(self, unet: nn.Module, latent: tuple[int, int], *, chunks: int = 3) -> None:
        super().__init__(unet)
        self._unet, self._latent, self._chunks = unet, latent, chunks

    def hang(self) -> None:
        """Register hooks on queries and keys of all cross-attention layers."""
        found = [pair for pair in self._unet.named_modules() if pair[0].endswith("attn2")]
        for _, attention in found:
            waiting: dict[str, Tensor] = {}
            self.keep(attention.to_q.register_forward_hook(last_output(waiting, "queries")))
            self.keep(attention.to_k.register_forward_hook(self._add(attention, waiting)))
        self.layers = tuple(name for name, _ in found)

    def _add(
        self, attention: nn.Module, waiting: dict[str, Tensor]
    ) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
        heads, scale = int(attention.heads), float(attention.scale)

        def hook(_module: nn.Module, _inputs: tuple[Any, ...], keys: Tensor) -> None:
            queries = waiting.pop("queries")
            height, width = self._size(queries.shape[1])
            if not self.wanted:
                return
            with torch.no_grad():
                scores = self._rows(queries, heads) @ self._rows(keys, heads).transpose(-1, -2) * scale
                seen = scores.softmax(-1).mean(1).transpose(1, 2).unflatten(-1, (height, width))
                seen = functional.interpolate(seen, size=self._latent, mode="bilinear", align_corners=False)
            self.add(seen)

        return hook

    def _rows(self, states: Tensor, heads: int) -> Tensor:
        """(n, heads, length, dim) in float32, of the text-conditioned rows."""
        rows = states[: states.shape[0] // self._chunks]
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2).float()

    def _size(self, positions: int) -> tuple[int, int]:
        """Height and width of a level with so many positions: each level halves the latents, rounding up."""
        height, width = self._latent
        while height * width > positions:
            height, width = -(-height // 2), -(-width // 2)
        if height * width != positions:
            raise ValueError(f"{positions} positions do not fit latents of {self._latent}")
        return height, width
