"""Where a diffusion editor looked: a running sum of its attention to words, step by step, that changes no pixel.

Cross-attention: hooks on the projections of every cross-attention layer recompute the softmax for the text-conditioned
rows only. The model's own attention stays as it is, so the image is bit-identical with and without the recorder;
nothing is kept of a step but its sum. Not to be combined with fused projections or a compiled UNet.

Joint attention: FLUX.1 Kontext, FLUX.2 and Qwen-Image-Edit have no cross-attention: words, output image and reference
image are one sequence, in this order, and attend to each other. The share that a place takes from a word is an entry
of that attention's softmax, over all keys. It is recomputed here from queries and keys as the model normed them, with
its own rotation, by one more attention whose values are the unit vectors of the phrase's tokens: its output is those
columns of the softmax, and no matrix of places by places exists at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import torch
from diffusers.models.embeddings import apply_rotary_emb
from diffusers.models.transformers.transformer_qwenimage import apply_rotary_emb_qwen
from torch import Tensor, nn
from torch.nn import functional

from plantain.models.diffusers.attention.watching import LEVELS, SOME, Choice, chosen, usual_steps
from plantain.records import InputError


class AttentionRecorder:
    """Sum attention while a pipeline runs inside its `with` block; the edit is unchanged.

    Args:
        network: the pipeline's UNet or transformer; LoRA layers must be on it already.
        heads: which count, all alike.
        steps: which count. A step is a new timestep: where a pipeline calls its network twice for one (with the words,
            then without), the first call is recorded.

    Attributes:
        layers: names of the layers that are recorded.
        recorded: maps that went into the sum, one for each layer and step.
        step: number of the step that runs, from 0.
    """

    def __init__(self, network: nn.Module, *, heads: Choice = "all", steps: Choice = "all") -> None:
        self._network, self._heads, self._steps = network, heads, steps
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._timestep: float | None = None
        self._repeated = False
        self._total: Tensor | None = None
        self.layers: tuple[str, ...] = ()
        self.recorded = 0
        self.step = -1

    def hang(self) -> None:
        """Register the hooks; defined by subclasses."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._handles.append(self._network.register_forward_pre_hook(self._count, with_kwargs=True))
        try:
            self.hang()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def keep(self, handle: torch.utils.hooks.RemovableHandle) -> None:
        """Register a hook for removal with the others."""
        self._handles.append(handle)

    @property
    def wanted(self) -> bool:
        """Return True if the current call of the network is recorded."""
        return not self._repeated and (not isinstance(self._steps, tuple) or self.step in self._steps)

    def add(self, seen: Tensor) -> None:
        """Add one layer's map of one step, float32."""
        self._total = seen if self._total is None else self._total.add_(seen)
        self.recorded += 1

    def _count(self, _network: nn.Module, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        timestep = arguments["timestep"] if "timestep" in arguments else args[1]
        now = float(timestep.flatten()[0]) if isinstance(timestep, Tensor) else float(timestep)
        self._repeated = now == self._timestep
        if not self._repeated:
            self.step += 1
            self._timestep = now

    def heads_of(self, states: Tensor) -> Tensor:
        """Return the chosen heads of (n, heads, length, dim). Raise InputError for a missing head."""
        if not isinstance(self._heads, tuple):
            return states
        if max(self._heads) >= states.shape[1]:
            raise InputError(f"--set heads: a layer has {states.shape[1]}, counted from 0")
        return states[:, list(self._heads)]

    def maps(self) -> Tensor:
        """Average layers and steps; see the subclass for the shape.

        Raises:
            ValueError: nothing was recorded.
        """
        if self._total is None:
            raise ValueError("no attention was recorded: no layer or step was chosen, or nothing ran")
        return self._total / self.recorded


def last_output(
    waiting: dict[str, Tensor], name: str
) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
    """Return a hook that keeps a module's last output."""

    def hook(_module: nn.Module, _inputs: tuple[Any, ...], states: Tensor) -> None:
        waiting[name] = states.detach()

    return hook


class CrossAttentionRecorder(AttentionRecorder):
    """Sums the cross-attention of a UNet while a pipeline runs inside its `with` block.

    Args:
        unet: the pipeline's UNet; LoRA layers must be on it already.
        latent: (height, width) of the latents.
        chunks: how many conditions one pass holds, the text-conditioned first (3 for InstructPix2Pix under guidance,
            else 1).
        parts: of the UNet, from `LEVELS`.
        resolutions: heights of attention maps to include; empty for all.
        layers: of those parts, by number; "some" is all.
        heads, steps: which count.

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
        parts: Sequence[str] = LEVELS,
        resolutions: Sequence[int] = (),
        layers: Choice = "all",
        heads: Choice = "all",
        steps: Choice = "all",
    ) -> None:
        super().__init__(unet, heads=heads, steps=steps)
        self._unet, self._latent, self._chunks = unet, latent, chunks
        self._parts, self._resolutions = tuple(parts), frozenset(resolutions)
        self._choice = layers

    def hang(self) -> None:
        """Register hooks on queries and keys of the chosen cross-attention layers."""
        found = [
            (name, attention)
            for name, attention in self._unet.named_modules()
            if name.endswith("attn2") and name.split("_")[0] in self._parts
        ]
        found = [found[number] for number in chosen(self._choice, len(found))]
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
            if not self.wanted or (self._resolutions and height not in self._resolutions):
                return
            with torch.no_grad():
                scores = self._rows(queries, heads) @ self._rows(keys, heads).transpose(-1, -2) * scale
                seen = scores.softmax(-1).mean(1).transpose(1, 2).unflatten(-1, (height, width))
                seen = functional.interpolate(seen, size=self._latent, mode="bilinear", align_corners=False)
            self.add(seen)

        return hook

    def _rows(self, states: Tensor, heads: int) -> Tensor:
        """(n, heads, length, dim) in float32, of the text-conditioned rows and the chosen heads."""
        rows = states[: states.shape[0] // self._chunks]
        return self.heads_of(rows.unflatten(-1, (heads, -1)).transpose(1, 2)).float()

    def _size(self, positions: int) -> tuple[int, int]:
        """Height and width of a level with so many positions: each level halves the latents, rounding up."""
        height, width = self._latent
        while height * width > positions:
            height, width = -(-height // 2), -(-width // 2)
        if height * width != positions:
            raise ValueError(f"{positions} positions do not fit latents of {self._latent}")
        return height, width

    def maps(self) -> Tensor:
        """Average layers and steps: float32 (n, tokens, height, width) in [0, 1], sum 1 over tokens at each place.

        Raises:
            ValueError: nothing was recorded.
        """
        return super().maps()


NORMS = ("norm_q", "norm_k", "norm_added_q", "norm_added_k")


class JointAttentionRecorder(AttentionRecorder):
    """Sums what output and reference take from a phrase while a pipeline runs inside its `with` block.

    Args:
        transformer: of Kontext, FLUX.2 or Qwen-Image-Edit; LoRA layers must be on it already.
        grid: (height, width) of the output in tokens.
        tokens: of the phrase among the text's; negative ones count from the text's end.
        total: number of steps; called at the first step.
        layers, steps: which count; "some" are `SOME` evenly spaced ones, of steps fewer where a run is short
            (`usual_steps`), unless layers were chosen.
        heads: which count.

    Example:
        with JointAttentionRecorder(pipe.transformer, (64, 64), (3,), total=lambda: len(pipe.scheduler.timesteps)) as r:
            pipe(prompt=prompt, image=image)
        output, reference = r.maps().unbind(1)
    """

    def __init__(
        self,
        transformer: nn.Module,
        grid: tuple[int, int],
        tokens: Sequence[int],
        *,
        total: Callable[[], int],
        layers: Choice = "some",
        heads: Choice = "all",
        steps: Choice = "some",
    ) -> None:
        super().__init__(transformer, heads=heads, steps=steps)
        self._transformer, self._grid, self._tokens = transformer, grid, tuple(tokens)
        self._choice, self._planned, self._ask = layers, steps, total
        self._words = 0
        self.count = 0

    def hang(self) -> None:
        """Register hooks on the chosen layers and on their normed queries and keys."""
        found = [
            (name, layer)
            for name, layer in self._transformer.named_modules()
            if isinstance(getattr(layer, "norm_q", None), nn.Module)
        ]
        self.count = len(found)
        found = [found[number] for number in chosen(self._choice, self.count, some=SOME)]
        self.keep(self._transformer.register_forward_pre_hook(self._begin, with_kwargs=True))
        for _, layer in found:
            waiting: dict[str, Tensor] = {}
            rotation: list[Any] = []
            self.keep(layer.register_forward_pre_hook(_take_rotation(rotation), with_kwargs=True))
            for name in NORMS:
                if isinstance(getattr(layer, name, None), nn.Module):
                    self.keep(getattr(layer, name).register_forward_hook(last_output(waiting, name)))
            self.keep(layer.register_forward_hook(self._add(waiting, rotation)))
        self.layers = tuple(name for name, _ in found)

    def _begin(self, _module: nn.Module, _args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        self._words = int(arguments["encoder_hidden_states"].shape[1])
        if self.step == 0 and not self._repeated:
            total = self._ask()
            some = SOME if self._choice != "some" else usual_steps(self.count, len(self.layers), total)
            self._steps = chosen(self._planned, total, some=some)

    def _add(
        self, waiting: dict[str, Tensor], rotation: list[Any]
    ) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def hook(_module: nn.Module, _inputs: tuple[Any, ...], _states: Any) -> None:
            if self.wanted:
                with torch.no_grad():
                    self.add(self._seen(*_queries_and_keys(waiting, rotation[-1])))
            waiting.clear()
            rotation.clear()

        return hook

    def _seen(self, queries: Tensor, keys: Tensor) -> Tensor:
        """From (n, length, heads, dim) to (n, 2, tokens, height, width), float32: output, then reference."""
        places = self._grid[0] * self._grid[1]
        if keys.shape[1] != self._words + 2 * places:
            raise ValueError(
                f"{keys.shape[1]} tokens are not {self._words} words and an output and a reference of {self._grid}"
            )
        queries, keys = (self.heads_of(states.transpose(1, 2)) for states in (queries, keys))
        queries = queries[:, :, self._words :]
        columns = [token % self._words for token in self._tokens]
        width = max(len(columns), queries.shape[-1])  # fast kernels want values as wide as keys
        units = keys.new_zeros(1, 1, keys.shape[2], width)
        units[..., columns, range(len(columns))] = 1.0
        units = units.expand(*keys.shape[:2], -1, -1)
        shares = functional.scaled_dot_product_attention(queries, keys, units)[..., : len(columns)]
        mean = shares.float().mean(1).unflatten(1, (2, *self._grid))
        return mean.permute(0, 1, 4, 2, 3).contiguous()

    def maps(self) -> Tensor:
        """Average heads, layers and steps: float32 (n, 2, tokens, height, width), in [0, 1].

        Second axis: what places of the output take from each token of the phrase, as a share of all they take; then
        what places of the reference take.

        Raises:
            ValueError: nothing was recorded.
        """
        return super().maps()


def _take_rotation(
    rotation: list[Any],
) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
    def hook(_module: nn.Module, _args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        rotation[:] = [arguments.get("image_rotary_emb")]

    return hook


def _queries_and_keys(waiting: dict[str, Tensor], rotation: Any) -> tuple[Tensor, Tensor]:
    """Queries and keys of the whole sequence as the layer multiplied them: (n, length, heads, dim)."""
    pairs = (("norm_added_q", "norm_q"), ("norm_added_k", "norm_k"))
    if torch.is_complex(rotation[0]):  # Qwen's: one tensor for images, one for words; FLUX's: cosines, sines
        images, words = rotation
        turned = {
            name: apply_rotary_emb_qwen(states, words if "added" in name else images, use_real=False)
            for name, states in waiting.items()
        }
        queries, keys = (torch.cat([turned[added], turned[own]], dim=1) for added, own in pairs)
        return queries, keys
    joined = [
        torch.cat([waiting[added], waiting[own]], dim=1) if added in waiting else waiting[own]
        for added, own in pairs
    ]
    queries, keys = (apply_rotary_emb(states, rotation, sequence_dim=1) for states in joined)
    return queries, keys
