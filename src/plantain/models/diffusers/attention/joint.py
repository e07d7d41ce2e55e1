"""Record joint attention: the share that each place of the image takes from the words of a phrase.

FLUX.1 Kontext, FLUX.2 and Qwen-Image-Edit have no cross-attention: words, output image and reference
image are one sequence, in this order, and attend to each other. The share that a place takes from a word is an entry
of that attention's softmax, over all keys. It is recomputed here from queries and keys as the model normed them, with
its own rotation, by one more attention whose values are the unit vectors of the phrase's tokens: its output is those
columns of the softmax, and no matrix of places by places exists at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from diffusers.models.embeddings import apply_rotary_emb
from diffusers.models.transformers.transformer_qwenimage import apply_rotary_emb_qwen
from torch import Tensor, nn
from torch.nn import functional

from plantain.models.diffusers.attention.recorder import AttentionRecorder, last_output
from plantain.models.diffusers.attention.watching import SOME, spread, usual_steps

NORMS = ("norm_q", "norm_k", "norm_added_q", "norm_added_k")


class JointAttentionRecorder(AttentionRecorder):
    """Sum the attention of the output to a phrase while a pipeline runs inside its `with` block.

    Args:
        transformer: the one of Kontext, FLUX.2 or Qwen-Image-Edit; LoRA layers must be on it already.
        grid: (height, width) of the output in tokens.
        tokens: positions of the phrase among the text's tokens; negative ones count from the text's end.
        total: returns the number of steps; called at the first step. `SOME` evenly spaced layers and steps are
            recorded, fewer steps if a run is short (`usual_steps`).

    Example:
        with JointAttentionRecorder(pipe.transformer, (64, 64), (3,), total=lambda: len(pipe.scheduler.timesteps)) as r:
            pipe(prompt=prompt, image=image)
        maps = r.maps()
    """

    def __init__(
        self,
        transformer: nn.Module,
        grid: tuple[int, int],
        tokens: Sequence[int],
        *,
        total: Callable[[], int],
    ) -> None:
        super().__init__(transformer)
        self._transformer, self._grid, self._tokens = transformer, grid, tuple(tokens)
        self._ask = total
        self._words = 0
        self.count = 0

    def hang(self) -> None:
        """Register hooks on up to 4 (`SOME`) layers and on their normed queries and keys."""
        found = [
            (name, layer)
            for name, layer in self._transformer.named_modules()
            if isinstance(getattr(layer, "norm_q", None), nn.Module)
        ]
        self.count = len(found)
        found = [found[number] for number in spread(self.count, SOME)]
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
            self._steps = spread(total, usual_steps(self.count, len(self.layers), total))

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
        """From (n, length, heads, dim) to (n, tokens, height, width), float32, of the output's places."""
        places = self._grid[0] * self._grid[1]
        if keys.shape[1] != self._words + 2 * places:
            raise ValueError(
                f"{keys.shape[1]} tokens are not {self._words} words and an output and a reference of {self._grid}"
            )
        queries, keys = (states.transpose(1, 2) for states in (queries, keys))
        queries = queries[:, :, self._words : self._words + places]
        columns = [token % self._words for token in self._tokens]
        width = max(len(columns), queries.shape[-1])  # fast kernels want values as wide as keys
        units = keys.new_zeros(1, 1, keys.shape[2], width)
        units[..., columns, range(len(columns))] = 1.0
        units = units.expand(*keys.shape[:2], -1, -1)
        shares = functional.scaled_dot_product_attention(queries, keys, units)[..., : len(columns)]
        mean = shares.float().mean(1).unflatten(1, self._grid)
        return mean.permute(0, 3, 1, 2).contiguous()


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
