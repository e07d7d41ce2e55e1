"""Which weights learn: all of a UNet, or low-rank adapters beside it; how they are stored and given back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from plantain.train.latents import InstructionPipeline

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline

TARGETS = ("to_q", "to_k", "to_v", "to_out.0")
"""Layers that get adapters: the projections of every attention."""


def make_trainable(pipe: InstructionPipeline, lora_rank: int | None, seed: int) -> dict[str, nn.Parameter]:
    """Freezes everything but what is to learn, and returns that by name.

    Args:
        pipe: whose UNet learns.
        lora_rank: of the adapters; None to train the whole UNet.
        seed: of the adapters' first weights.
    """
    for part in (pipe.vae, pipe.text_encoder, pipe.unet):
        part.requires_grad_(False)
        part.eval()
    if lora_rank is None:
        pipe.unet.requires_grad_(True)
    else:
        from peft import LoraConfig

        torch.manual_seed(seed)
        config = LoraConfig(
            r=lora_rank, lora_alpha=lora_rank, init_lora_weights="gaussian", target_modules=list(TARGETS)
        )
        pipe.unet.add_adapter(config)
    return {name: weight for name, weight in pipe.unet.named_parameters() if weight.requires_grad}


def without_adapters(unet: nn.Module) -> None:
    """Switches adapters off: the UNet is the reference model until `with_adapters`."""
    unet.disable_adapters()


def with_adapters(unet: nn.Module) -> None:
    """Switches adapters on again."""
    unet.enable_adapters()


def digest(weights: dict[str, nn.Parameter] | dict[str, Tensor]) -> str:
    """SHA-256 of weights by name, to tell whether two trainings ended alike."""
    total = hashlib.sha256()
    for name in sorted(weights):
        total.update(name.encode())
        total.update(weights[name].detach().float().cpu().numpy().tobytes())
    return total.hexdigest()


def save_lora(pipe: DiffusionPipeline, folder: Path) -> None:
    """Writes the adapters of a UNet or a transformer as diffusers loads them: `pytorch_lora_weights.safetensors`."""
    from diffusers.utils import convert_state_dict_to_diffusers
    from peft.utils import get_peft_model_state_dict

    if "unet" in pipe.components:
        layers = convert_state_dict_to_diffusers(get_peft_model_state_dict(pipe.unet))
        pipe.save_lora_weights(folder, unet_lora_layers=layers, safe_serialization=True)
    else:
        layers = get_peft_model_state_dict(pipe.transformer)
        pipe.save_lora_weights(folder, transformer_lora_layers=layers, safe_serialization=True)
