"""Shared by all editing methods: load a pipeline from a folder, seed each edit, read the drawn images.

While a pipeline is loaded it gets weights in fewer bits and compiled blocks.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from diffusers import (
    BitsAndBytesConfig,
    DiffusionPipeline,
    PipelineQuantizationConfig,
    TorchAoConfig,
)
from PIL import Image
from torch import nn

from plantain.files.installed import install_line
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, Outcome, OutcomeKind

WHERE = "providers.diffusers"


def quantization(bits: int, device: str, precision: torch.dtype, part: str) -> dict[str, object]:
    """Return the arguments of `from_pretrained` that quantise the denoiser; {} for 0 `bits`.

    NVIDIA's GPUs use bitsandbytes if installed, else torchao; CPUs support only torchao's 8 bits.

    Args:
        part: name of the denoiser among the pipeline's parts.

    Raises:
        InputError: the device does not support so few bits, or the package is missing.
    """
    if not bits:
        return {}
    gpu = device.startswith("cuda")
    if bits == 4 and not gpu:
        raise InputError(
            f"{WHERE}.bits: 4 bits run on NVIDIA's GPUs only, and the device is {device}; 8 run here"
        )
    if gpu and importlib.util.find_spec("bitsandbytes") is not None:
        how: object = (
            BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=precision)
            if bits == 4
            else BitsAndBytesConfig(load_in_8bit=True)
        )
    elif importlib.util.find_spec("torchao") is not None:
        how = TorchAoConfig(_torchao_bits(bits, precision))
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
    """Return the name of a pipeline's denoising network: "transformer" or "unet"."""
    names = pipeline_class._get_signature_keys(pipeline_class)[0]
    return "transformer" if "transformer" in names else "unet"


Drawing: TypeAlias = tuple[np.ndarray, bool]
"""Float (H, W, 3) in [0, 1], and True if a safety checker blacked it out."""

CHECKER = Outcome(OutcomeKind.REFUSED, "the weights' safety checker blacked the image out")
NOT_FINITE = Outcome(
    OutcomeKind.MALFORMED,
    "the model returned values that are not finite (overflow in half precision? use float32)",
)
BLACK = Outcome(OutcomeKind.MALFORMED, "the model returned a black image")
LORA = "providers.diffusers.lora"

_LORA_LAYER = re.compile(r"(lora_A|down)\.weight$")
"""Name of the first matrix of each layer, in peft's and older files."""


class Runner(ABC):
    """A pipeline loaded onto a device, with which images are edited; the base of all editing methods.

    Args:
        loading: the pipeline to load.
        device: name of the torch device, e.g. "cpu", "cuda:0".

    Raises:
        InputError: the method does not support a setting on this device.
        OSError, ValueError, ImportError: the folder cannot be loaded.
    """

    pipeline_class: ClassVar[type[DiffusionPipeline]]
    parts: ClassVar[Mapping[str, object]] = {}
    """Arguments of `from_pretrained` for this class."""

    names: ClassVar[Mapping[str, str]] = {
        "steps": "num_inference_steps",
        "guidance": "guidance_scale",
        "image_guidance": "image_guidance_scale",
        "strength": "strength",
    }
    """Settings -> arguments of the pipeline."""

    inference: ClassVar[bool] = True
    """False for a method that trains on each image."""

    def __init__(self, loading: Loading, device: str) -> None:
        self.method = METHODS[loading.method]
        self.device = device
        precision = loading.dtype or ("float32" if device.startswith("cpu") else self.method.precision)
        self.precision: torch.dtype = getattr(torch, precision)
        self.tf32 = loading.tf32
        if self.tf32 and not device.startswith("cuda"):
            raise InputError(f"{WHERE}.tf32: needs an NVIDIA GPU; the device is {device}")
        self.pipe = self.load(loading)
        if loading.lora is not None:
            add_lora(self.pipe, loading.lora)
        if loading.compile:
            denoiser = getattr(self.pipe, denoiser_name(self.pipeline_class))
            if not getattr(denoiser, "_repeated_blocks", None):
                raise InputError(
                    f"{WHERE}.compile: {type(denoiser).__name__} names no repeated blocks to compile"
                )
            denoiser.compile_repeated_blocks()
        self.pipe.set_progress_bar_config(disable=True)
        place(self.pipe, loading.offload, device)

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        """Load the pipeline in a folder, without downloads; `parts` replace components of the folder."""
        without: dict[str, object] = {}
        if not loading.safety_checker and "safety_checker" in self.pipeline_class._optional_components:
            without = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
        denoiser = denoiser_name(self.pipeline_class)
        return self.pipeline_class.from_pretrained(
            loading.folder,
            dtype=self.precision,
            variant=loading.variant or None,
            local_files_only=True,
            **quantization(loading.bits, self.device, self.precision, denoiser),
            **without,
            **self.parts,
            **parts,
        )

    def edit(self, job: Job) -> Pixels | Outcome:
        """Edit one image; return the canvas, uint8 (H, W, 3), or an outcome."""
        original, region = Image.fromarray(job.canvas, "RGB"), None
        if self.method.region and job.region is not None:
            region = Image.fromarray(job.region.astype(np.uint8) * 255, "L")
        if self.device.startswith("cuda"):  # before each edit: torch's switch is shared by all pipelines
            torch.backends.cuda.matmul.allow_tf32 = self.tf32
        with torch.inference_mode(self.inference):
            drawn, blacked = self.draw(job, original, region)
        return read_drawn(drawn, blacked, job.canvas)

    @abstractmethod
    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        """Return the drawn image; `region` is a mask, for methods that require one."""

    def call(self, job: Job, **arguments: Any) -> Drawing:
        """Call the pipeline with the edit's own generator; return its image and the safety checker's flag."""
        done = self.pipe(
            generator=generator_of(job), output_type="np", **self.arguments(job.steering), **arguments
        )
        flags = getattr(done, "nsfw_content_detected", None)
        return done.images[0], bool(flags and flags[0])

    def arguments(self, steering: Steering) -> dict[str, object]:
        """Return the settings that are not None and that the method supports, as arguments of the pipeline."""
        settings = steering.settings
        return {
            argument: settings[name]
            for name, argument in self.names.items()
            if name in settings and name in self.method.takes
        }

    def close(self) -> None:
        """Release the weights and their memory."""
        del self.pipe


def place(pipe: DiffusionPipeline, offload: str, device: str) -> None:
    """Move a pipeline to a device: as a whole ("none" or ""), by parts ("model") or by layers ("sequential").

    Raises:
        InputError: parts cannot be offloaded from a CPU.
    """
    if offload in ("", "none"):
        pipe.to(device)
        return
    if device.startswith("cpu"):
        raise InputError(
            f'providers.diffusers.offload: "{offload}" moves parts between a GPU and main memory; the device is cpu'
        )
    if offload == "model":
        pipe.enable_model_cpu_offload(device=device)
    else:
        pipe.enable_sequential_cpu_offload(device=device)


def generator_of(job: Job) -> torch.Generator:
    """Return the edit's seeded generator, of the CPU, so that noise is the same on every device."""
    return torch.Generator("cpu").manual_seed(job.seed)


def read_drawn(image: np.ndarray, blacked: bool, canvas: Pixels) -> Pixels | Outcome:
    """Convert a drawn float image in [0, 1] to uint8 (H, W, 3), or to an outcome if it cannot be used.

    It cannot if a safety checker has `blacked` it, if it is not finite, or if it is black and its `canvas` is not.
    """
    if blacked:
        return CHECKER
    if not np.isfinite(image).all():
        return NOT_FINITE
    pixels: Pixels = (np.clip(image, 0.0, 1.0) * 255.0).round().astype(np.uint8)
    return BLACK if not pixels.any() and canvas.any() else pixels


def add_lora(pipe: DiffusionPipeline, path: Path) -> None:
    """Add LoRA weights to a pipeline.

    Layers that do not fit the pipeline raise an error, whereas diffusers only warns and continues without them.

    Raises:
        InputError: the pipeline does not support LoRA, or the file has layers that the model does not have.
        OSError, ValueError, RuntimeError: the file cannot be read.
    """
    if not hasattr(pipe, "load_lora_weights"):
        raise InputError(f"{LORA}: diffusers cannot load LoRA weights into {type(pipe).__name__}")
    before = _lora_layers(pipe)
    pipe.load_lora_weights(str(path), local_files_only=True)
    placed = _lora_layers(pipe) - before
    state = pipe.lora_state_dict(str(path), local_files_only=True)
    keys = state[0] if isinstance(state, tuple) else state
    layers = sum(bool(_LORA_LAYER.search(key)) for key in keys)
    if placed < layers:
        raise InputError(
            f"{LORA}: {path}: {layers - placed} of its {layers} layers have no place in this "
            f"{type(pipe).__name__}: it is of another model"
        )


def _lora_layers(pipe: DiffusionPipeline) -> int:
    """Count the layers with adapters."""
    parts = (part for part in pipe.components.values() if isinstance(part, nn.Module))
    return sum(".lora_A." in name for part in parts for name, _ in part.named_parameters())


def runner_for(loading: Loading, device: str) -> Runner:
    """Load weights onto a device and return their method's runner; raise as `Runner`."""
    method = METHODS[loading.method]
    module = importlib.import_module(f"plantain.models.diffusers.pipelines.{method.module}")
    made: Runner = module.RUNNERS[method.name](loading, device)
    return made
