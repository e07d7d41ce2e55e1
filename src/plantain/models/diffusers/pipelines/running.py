"""Weights in fewer bits, compiled blocks, attention backends, tiles and caches: put on while a pipeline is loaded."""

from __future__ import annotations

import importlib.util

import torch
from diffusers import (
    BitsAndBytesConfig,
    DiffusionPipeline,
    FirstBlockCacheConfig,
    PipelineQuantizationConfig,
    TorchAoConfig,
)

from plantain.files.installed import install_line
from plantain.models.diffusers.jobs import Running
from plantain.records import InputError

WHERE = "providers.diffusers"


def quantization(running: Running, device: str, precision: torch.dtype, part: str) -> dict[str, object]:
    """Return arguments of `from_pretrained` for weights of fewer bits; {} for unchanged weights.

    bitsandbytes on NVIDIA's GPUs where it is installed, else torchao; on a processor torchao's 8 bits only.

    Args:
        part: name of the denoiser among the pipeline's parts.

    Raises:
        InputError: the device has no way of running so few bits, or the package is missing.
    """
    if not running.bits:
        return {}
    gpu = device.startswith("cuda")
    if running.bits == 4 and not gpu:
        raise InputError(
            f"{WHERE}.bits: 4 bits run on NVIDIA's GPUs only, and the device is {device}; 8 run here"
        )
    if gpu and importlib.util.find_spec("bitsandbytes") is not None:
        how: object = (
            BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=precision)
            if running.bits == 4
            else BitsAndBytesConfig(load_in_8bit=True)
        )
    elif importlib.util.find_spec("torchao") is not None:
        how = TorchAoConfig(_torchao_bits(running.bits, precision))
    else:
        raise InputError(f"{WHERE}.bits: needs torchao or bitsandbytes: {install_line('bits')}")
    return {"quantization_config": PipelineQuantizationConfig(quant_mapping={part: how})}


def _torchao_bits(bits: int, precision: torch.dtype) -> object:
    """Of torchao's ways of 4 bits the one whose kernel is torch's own: its usual one needs a package of its own (mslk).

    Raises:
        InputError: 4 bits with a precision other than bfloat16, which that kernel does not support.
    """
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig

    if bits == 8:
        return Int8WeightOnlyConfig()
    if precision is not torch.bfloat16:
        raise InputError(
            f'{WHERE}.bits: torchao\'s 4 bits go with dtype = "bfloat16" only; or install bitsandbytes'
        )
    return Int4WeightOnlyConfig(int4_packing_format="tile_packed_to_4d")


def denoiser_name(pipeline_class: type[DiffusionPipeline]) -> str:
    """Return a pipeline's attribute for the denoising network."""
    names = pipeline_class._get_signature_keys(pipeline_class)[0]
    return "transformer" if "transformer" in names else "unet"


def check_running(running: Running, device: str) -> None:
    """Raise InputError for a setting that this device cannot apply: it would be recorded without an effect.

    Raises:
        InputError: names the setting.
    """
    if running.tf32 and not device.startswith("cuda"):
        raise InputError(f"{WHERE}.tf32: is of NVIDIA's GPUs, and the device is {device}")
    if running.attention_backend.endswith("_hub"):
        raise InputError(
            f"{WHERE}.attention_backend: {running.attention_backend!r} fetches a kernel from the hub, and nothing is "
            "fetched while weights are run; install the package and name its backend"
        )


def apply_running(pipe: DiffusionPipeline, running: Running) -> None:
    """Apply these settings to a loaded pipeline.

    Raises:
        InputError: its networks do not know the setting.
        ValueError, RuntimeError, ImportError: from diffusers, about a backend.
    """
    denoiser = getattr(pipe, denoiser_name(type(pipe)))
    if running.attention_backend:
        denoiser.set_attention_backend(running.attention_backend)
    if running.step_cache:
        denoiser.enable_cache(FirstBlockCacheConfig(threshold=running.step_cache))
    if running.vae_tiling:
        pipe.vae.enable_tiling()
    if running.compile:
        if not getattr(denoiser, "_repeated_blocks", None):
            raise InputError(
                f"{WHERE}.compile: {type(denoiser).__name__} names no repeated blocks to compile"
            )
        denoiser.compile_repeated_blocks()


def set_tf32(running: Running) -> None:
    """Set TF32 before each batch: all pipelines share the switch."""
    torch.backends.cuda.matmul.allow_tf32 = running.tf32
