"""Record cross-attention of a diffusion editor: a running sum per token, which leaves the edit unchanged.

Hooks on the projections of every cross-attention layer recompute the softmax for the text-conditioned rows only. The
model's own attention stays as it is, so the image is bit-identical with and without the recorder; nothing is kept of a
step but its sum. Not to be combined with fused projections or a compiled UNet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional


class CrossAttentionRecorder:
    """A recorder of a UNet's cross-attention: sums it while a pipeline runs in its `with` block; `maps` averages it.

    If a pipeline calls its UNet twice for a timestep (with the words, then without), the first call is recorded.

    Args:
        unet: the pipeline's UNet; LoRA layers must be on it already.
        latent: (height, width) of the latents, and of the maps.
        chunks: number of conditions in one pass of the UNet; the first must be the text. 3 for InstructPix2Pix under
            guidance, 1 if a pass has one condition. Passes with the unconditional part first are not supported.

    Attributes:
        layers: names of the layers that are recorded.
        recorded: number of maps in the sum, one for each layer and step.

    Example:
        with CrossAttentionRecorder(pipe.unet, (64, 64), chunks=3) as recorder:
            pipe(prompt, image=image)
        maps = recorder.maps()
    """

    def __init__(self, unet: nn.Module, latent: tuple[int, int], *, chunks: int = 3) -> None:
        self._unet, self._latent, self._chunks = unet, latent, chunks
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._timestep: float | None = None
        self._repeated = False
        self._total: Tensor | None = None
        self.layers: tuple[str, ...] = ()
        self.recorded = 0

    def __enter__(self) -> Self:
        found = [pair for pair in self._unet.named_modules() if pair[0].endswith("attn2")]
        self._handles.append(self._unet.register_forward_pre_hook(self._see_step, with_kwargs=True))
        for _, attention in found:
            waiting: list[Tensor] = []
            self._handles.append(attention.to_q.register_forward_hook(_last_output(waiting)))
            self._handles.append(attention.to_k.register_forward_hook(self._add(attention, waiting)))
        self.layers = tuple(name for name, _ in found)
        return self

    def __exit__(self, *ended: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def maps(self) -> Tensor:
        """Return the mean attention over heads, layers and steps: float32, in [0, 1].

        Of shape (n, tokens, height, width): the attention of each place of the output to each token; all tokens sum to
        1 at each place.

        Raises:
            ValueError: nothing was recorded.
        """
        if self._total is None:
            raise ValueError("no attention was recorded: nothing ran")
        return self._total / self.recorded

    def _see_step(self, _unet: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        timestep = arguments["timestep"] if "timestep" in arguments else args[1]
        now = float(timestep.flatten()[0]) if isinstance(timestep, Tensor) else float(timestep)
        self._repeated, self._timestep = now == self._timestep, now

    def _add(
        self, attention: nn.Module, waiting: list[Tensor]
    ) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
        heads, scale = int(attention.heads), float(attention.scale)

        def hook(_module: nn.Module, _inputs: tuple[Any, ...], keys: Tensor) -> None:
            queries = waiting.pop()
            height, width = self._size(queries.shape[1])
            if self._repeated:
                return
            with torch.no_grad():
                scores = self._rows(queries, heads) @ self._rows(keys, heads).transpose(-1, -2) * scale
                seen = scores.softmax(-1).mean(1).transpose(1, 2).unflatten(-1, (height, width))
                seen = functional.interpolate(seen, size=self._latent, mode="bilinear", align_corners=False)
            self._total = seen if self._total is None else self._total.add_(seen)
            self.recorded += 1

        return hook

    def _rows(self, states: Tensor, heads: int) -> Tensor:
        """(n, heads, length, dim) in float32, of the text-conditioned rows."""
        rows = states[: states.shape[0] // self._chunks]
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2).float()

    def _size(self, positions: int) -> tuple[int, int]:
        """Height and width of the level with this number of positions: each level halves the latents, rounding up."""
        height, width = self._latent
        while height * width > positions:
            height, width = -(-height // 2), -(-width // 2)
        if height * width != positions:
            raise ValueError(f"{positions} positions do not fit latents of {self._latent}")
        return height, width


def _last_output(waiting: list[Tensor]) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
    """Return a forward hook that keeps a module's last output, detached, in `waiting`."""

    def hook(_module: nn.Module, _inputs: tuple[Any, ...], states: Tensor) -> None:
        waiting[:] = [states.detach()]

    return hook
