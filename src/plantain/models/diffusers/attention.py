"""Where a diffusion editor looked: a running sum of its cross-attention, token by token, that changes no pixel.

Hooks on the projections of every cross-attention layer recompute the softmax for the text-conditioned rows only. The
model's own attention stays as it is, so the image is bit-identical with and without the recorder; nothing is kept of a
step but its sum. Not to be combined with fused projections or a compiled UNet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = ("down", "mid", "up")
"""Parts of a UNet by which layers can be chosen."""


class OffsetTokenizer(Protocol):
    """A tokenizer that says which letters each token covers."""

    model_max_length: int

    def __call__(
        self, text: str, *, return_offsets_mapping: bool, truncation: bool, max_length: int
    ) -> dict[str, list[tuple[int, int]]]: ...


def concept_tokens(tokenizer: OffsetTokenizer, prompt: str, concept: str) -> tuple[int, ...]:
    """The tokens of a concept in a prompt, as positions that count the begin token; () where it is not to be found.

    Whole words only ("ear" is not in "tear"), letter case ignored, the last mention that the model still sees.

    Args:
        tokenizer: the editor's own.
        prompt: the whole text that the editor is handed.
        concept: the words looked for.
    """
    words = concept.strip()
    if not words:
        return ()
    offsets = tokenizer(
        prompt, return_offsets_mapping=True, truncation=True, max_length=tokenizer.model_max_length
    )["offset_mapping"]
    mentions = list(re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", prompt, re.IGNORECASE))
    for mention in reversed(mentions):
        hits = [i for i, (a, b) in enumerate(offsets) if a < b and a < mention.end() and b > mention.start()]
        if hits and offsets[hits[-1]][1] >= mention.end():
            return tuple(hits)
    return ()


class CrossAttentionRecorder:
    """Sums the cross-attention of a UNet while a pipeline runs inside its `with` block.

    Args:
        unet: the pipeline's UNet; LoRA layers must be on it already.
        latent: (height, width) of the latents.
        chunks: how many conditions one pass holds (3 for InstructPix2Pix under guidance, 2 for text-to-image, else 1).
        row: which of them is text-conditioned (0 for InstructPix2Pix).
        parts: of the UNet, from `LEVELS`.
        resolutions: heights of attention maps to include; empty for all.

    Example:
        with CrossAttentionRecorder(pipe.unet, (64, 64), chunks=3) as recorder:
            pipe(prompt, image=image)
        maps = recorder.maps()
    """

    def __init__(
        self,
        unet: nn.Module,
        latent: tuple[int, int],
        *,
        chunks: int = 3,
        row: int = 0,
        parts: Sequence[str] = LEVELS,
        resolutions: Sequence[int] = (),
    ) -> None:
        unknown = set(parts) - set(LEVELS)
        if unknown or not parts:
            raise ValueError(f"parts must be some of {LEVELS}, not {tuple(parts)}")
        if not 0 <= row < chunks:
            raise ValueError(f"row {row} of {chunks} chunks")
        self._unet, self._latent, self._chunks, self._row = unet, latent, chunks, row
        self._parts, self._resolutions = tuple(parts), frozenset(resolutions)
        self._total: Tensor | None = None
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self.layers: tuple[str, ...] = ()
        self.recorded = 0

    def __enter__(self) -> Self:
        names = []
        for name, attention in self._unet.named_modules():
            if name.endswith("attn2") and name.split("_")[0] in self._parts:
                names.append(name)
                waiting: list[Tensor] = []
                self._handles.append(attention.to_q.register_forward_hook(_keep(waiting)))
                self._handles.append(attention.to_k.register_forward_hook(self._add(attention, waiting)))
        self.layers = tuple(names)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _add(
        self, attention: nn.Module, waiting: list[Tensor]
    ) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        heads, scale = int(attention.heads), float(attention.scale)

        def hook(_module: nn.Module, _inputs: tuple[Tensor, ...], keys: Tensor) -> None:
            queries = waiting.pop()
            height, width = self._size(queries.shape[1])
            if self._resolutions and height not in self._resolutions:
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
        n = states.shape[0] // self._chunks
        chosen = states[self._row * n : (self._row + 1) * n]
        return chosen.float().unflatten(-1, (heads, -1)).transpose(1, 2)

    def _size(self, positions: int) -> tuple[int, int]:
        """Height and width of a level with so many positions: each level halves the latents, rounding up."""
        height, width = self._latent
        while height * width > positions:
            height, width = -(-height // 2), -(-width // 2)
        if height * width != positions:
            raise ValueError(f"{positions} positions do not fit latents of {self._latent}")
        return height, width

    def maps(self) -> Tensor:
        """Mean over layers and steps: float32 (n, tokens, height, width) in [0, 1]; tokens sum to 1 at each place.

        Raises:
            ValueError: nothing was recorded.
        """
        if self._total is None:
            raise ValueError("no cross-attention was recorded: no layer was chosen, or nothing ran")
        return self._total / self.recorded


def _keep(waiting: list[Tensor]) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
    def hook(_module: nn.Module, _inputs: tuple[Tensor, ...], queries: Tensor) -> None:
        waiting.append(queries.detach())

    return hook
