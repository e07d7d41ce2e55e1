"""LoRA weights put onto a pipeline: one set as it is, or several with their weights, and no layer left out unsaid."""

from __future__ import annotations

import re
from pathlib import Path

from diffusers import DiffusionPipeline
from torch import nn

from plantain.models.diffusers.jobs import Loading
from plantain.records import InputError

WHERE = "providers.diffusers.loras"

_LAYER = re.compile(r"(lora_A|down)\.weight$")
"""How the first matrix of each layer is called, by peft and by older files."""


def put_on_loras(pipe: DiffusionPipeline, loading: Loading) -> None:
    """Puts on what is to be loaded.

    Raises:
        InputError: the pipeline takes none, or a file has layers that this model has not.
        OSError, ValueError, RuntimeError: a file cannot be read, as diffusers says it.
    """
    if (loading.lora or loading.loras) and not hasattr(pipe, "load_lora_weights"):
        raise InputError(f"{WHERE}: diffusers has no loader of LoRA weights for {type(pipe).__name__}")
    if loading.lora is not None:
        _put_on(pipe, loading.lora)
    names = [f"lora{number}" for number in range(len(loading.loras))]
    for name, (path, _) in zip(names, loading.loras, strict=True):
        _put_on(pipe, path, name)
    if names:
        pipe.set_adapters(names, [weight for _, weight in loading.loras])


def _put_on(pipe: DiffusionPipeline, path: Path, name: str | None = None) -> None:
    """diffusers only warns of layers that find no place, and edits with the rest: it would be another model's edit."""
    before = _layers(pipe)
    pipe.load_lora_weights(str(path), local_files_only=True, adapter_name=name)
    placed = _layers(pipe) - before
    state = pipe.lora_state_dict(str(path), local_files_only=True)
    state = state[0] if isinstance(state, tuple) else state
    told = sum(bool(_LAYER.search(key)) for key in state)
    if placed < told:
        raise InputError(
            f"{WHERE}: {path}: {told - placed} of its {told} layers have no place in this {type(pipe).__name__}: it "
            "is of another model"
        )


def _layers(pipe: DiffusionPipeline) -> int:
    """Layers with adapters, one for each set of LoRA weights."""
    parts = (part for part in pipe.components.values() if isinstance(part, nn.Module))
    return sum(".lora_A." in name for part in parts for name, _ in part.named_parameters())
