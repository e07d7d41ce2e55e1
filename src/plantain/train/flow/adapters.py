"""LoRA adapters on a flow-matching editor's transformer: fresh, or as a training before left them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from plantain.models.diffusers.pipelines.runner import Runner
from plantain.records import InputError

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTunerLayer

TARGETS = ("to_q", "to_k", "to_v", "to_out.0", "to_qkv_mlp_proj")
"""Layers that get adapters: the projections of every attention; the last is that of FLUX.2's single blocks."""

DEFAULT, REFERENCE = "default", "reference"
"""Adapters that learn, and those that a preference is measured against."""


def make_adapters(runner: Runner, rank: int, seed: int, start: Path | None = None) -> dict[str, nn.Parameter]:
    """Freezes everything and hangs LoRA adapters on the transformer, in float32; these by name.

    Args:
        runner: fresh from its base weights.
        rank: of the adapters.
        seed: of their first weights.
        start: a file of adapters to begin with, as `save_lora` writes it.

    Raises:
        InputError: those of `start` are of another rank or for other layers.
    """
    from diffusers.training_utils import cast_training_params

    for part in runner.pipe.components.values():
        if isinstance(part, nn.Module):
            part.requires_grad_(False)
            part.eval()
    torch.manual_seed(seed)
    _hang(runner, DEFAULT, rank)
    transformer = runner.pipe.transformer
    cast_training_params(transformer, dtype=torch.float32)
    if start is not None:
        _fill(transformer, start)
    return {name: weight for name, weight in transformer.named_parameters() if weight.requires_grad}


def add_reference(runner: Runner) -> None:
    """Keeps the adapters as they are now beside those that learn, frozen, under the name `REFERENCE`."""
    from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict

    transformer = runner.pipe.transformer
    rank = transformer.peft_config[DEFAULT].r
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Already found a `peft_config`")  # two adapters are meant
        _hang(runner, REFERENCE, rank)
    state = {name: weight.detach().clone() for name, weight in get_peft_model_state_dict(transformer).items()}
    set_peft_model_state_dict(transformer, state, adapter_name=REFERENCE)
    for name, weight in transformer.named_parameters():
        if f".{REFERENCE}." in name:
            weight.data = weight.data.float()
            weight.requires_grad_(False)
    transformer.set_adapter(DEFAULT)


def adapted_layers(runner: Runner) -> list[BaseTunerLayer]:
    """The transformer's layers that have adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    return [layer for layer in runner.pipe.transformer.modules() if isinstance(layer, BaseTunerLayer)]


def _hang(runner: Runner, name: str, rank: int) -> None:
    from peft import LoraConfig

    config = LoraConfig(r=rank, lora_alpha=rank, init_lora_weights="gaussian", target_modules=list(TARGETS))
    runner.pipe.transformer.add_adapter(config, adapter_name=name)


def _fill(transformer: nn.Module, start: Path) -> None:
    from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import load_file

    wanted = get_peft_model_state_dict(transformer)
    found = {name.removeprefix("transformer."): weight for name, weight in load_file(start).items()}
    differ = sorted(
        name
        for name in wanted.keys() | found.keys()
        if name not in wanted or name not in found or wanted[name].shape != found[name].shape
    )
    if differ:
        raise InputError(
            f"{start}: LoRA weights of another rank or for other layers ({differ[0]}) cannot be gone on with; give the "
            "rank that they were trained with, or merge them into the weights first"
        )
    set_peft_model_state_dict(transformer, {name: weight.float() for name, weight in found.items()})
