"""What every way of running weights shares: loading them from a folder, seeding each edit, reading what was drawn."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from diffusers import DiffusionPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.methods import METHODS, EditingMethod
from plantain.models.diffusers.pipelines.loras import put_on_loras
from plantain.models.diffusers.pipelines.running import (
    apply_running,
    check_running,
    denoiser_name,
    quantization,
    set_tf32,
)
from plantain.pixels.arrays import Mask, Pixels
from plantain.records import OK, InputError, Outcome, OutcomeKind

CHECKER = Outcome(OutcomeKind.REFUSED, "the weights' safety checker blacked the image out")
NOT_FINITE = Outcome(
    OutcomeKind.MALFORMED,
    "the model returned values that are no numbers (overflow in half precision? use float32)",
)
BLACK = Outcome(OutcomeKind.MALFORMED, "the model returned a black image")


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a pipeline drew for one edit: uint8 (H, W, 3) of the canvas, or why there is none."""

    pixels: Pixels | None
    outcome: Outcome = OK


class Runner(ABC):
    """Weights on a device, and how they are called to edit.

    Args:
        loading: what to load.
        device: of torch, e.g. "cpu", "cuda:0".

    Raises:
        InputError: a setting that this method cannot follow on this device.
        OSError, ValueError, ImportError: the folder cannot be loaded; says why.
    """

    pipeline_class: ClassVar[type[DiffusionPipeline]]

    def __init__(self, loading: Loading, device: str) -> None:
        self.method: EditingMethod = METHODS[loading.method]
        self.device = device
        self.precision = precision_on(device, loading, self.method)
        self.running = loading.running
        check_running(self.running, device)
        self.pipe = self.load(loading)
        put_on_loras(self.pipe, loading)
        apply_running(self.pipe, self.running)
        self.pipe.set_progress_bar_config(disable=True)
        place(self.pipe, loading.offload, device)

    def load(self, loading: Loading) -> DiffusionPipeline:
        """The pipeline, from its folder only: nothing is fetched."""
        return load_pipeline(self.pipeline_class, loading, self.precision, self.device)

    def edit(
        self,
        canvases: Sequence[Pixels],
        jobs: Sequence[Job],
        steering: Steering,
        regions: Sequence[Mask] = (),
    ) -> list[Drawn]:
        """Edits images of one size together.

        Args:
            canvases: uint8 (H, W, 3), RGB, all of one size.
            jobs: of the same length; each seeds its own generator.
            steering: how the pipeline is called.
            regions: bool (H, W) of the canvases, for methods that are told where to edit.
        """
        pictures = [Image.fromarray(canvas, "RGB") for canvas in canvases]
        self.regions = [Image.fromarray(region.astype(np.uint8) * 255, "L") for region in regions]
        if self.device.startswith("cuda"):
            set_tf32(self.running)
        with torch.inference_mode(self.inference):
            images, blacked = self.draw(pictures, jobs, steering)
        return [
            read_drawn(image, black, canvas)
            for image, black, canvas in zip(images, blacked, canvases, strict=True)
        ]

    inference: ClassVar[bool] = True
    """False where a method learns something from each image."""

    @abstractmethod
    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        """Float (N, H, W, 3) in [0, 1], and for each whether a safety checker blacked it out."""

    def recorded(self, job: Job) -> dict[str, object]:
        """What the record says beside the instruction, where the model is handed something else."""
        return {}

    def close(self) -> None:
        """Gives the memory back as far as Python can."""
        del self.pipe


def precision_on(device: str, loading: Loading, method: EditingMethod) -> torch.dtype:
    """The precision of the weights: as said, else the method's on a GPU and float32 on a processor."""
    precision_name = loading.dtype or ("float32" if device.startswith("cpu") else method.precision)
    precision: torch.dtype = getattr(torch, precision_name)
    return precision


def load_pipeline(
    pipeline_class: type[DiffusionPipeline],
    loading: Loading,
    precision: torch.dtype,
    device: str,
    **parts: object,
) -> DiffusionPipeline:
    """The one way in which weights are loaded: `from_pretrained` of a folder, with nothing fetched.

    Args:
        pipeline_class: whatever class the folder names.
        loading: which folder.
        precision: of the weights.
        device: on which they will run.
        **parts: components that replace the folder's own.
    """
    without: dict[str, object] = {}
    if not loading.safety_checker and "safety_checker" in pipeline_class._optional_components:
        without = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
    return pipeline_class.from_pretrained(
        loading.folder,
        dtype=precision,
        variant=loading.variant or None,
        local_files_only=True,
        **quantization(loading.running, device, precision, denoiser_name(pipeline_class)),
        **without,
        **parts,
    )


def place(pipe: DiffusionPipeline, offload: str, device: str) -> None:
    """Puts a pipeline onto a device, whole or in parts.

    Raises:
        InputError: offloading from a processor to itself.
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


def generators(jobs: Sequence[Job]) -> list[torch.Generator]:
    """One generator for each edit, on the processor: the same noise on every device and in every batch."""
    return [torch.Generator("cpu").manual_seed(job.seed) for job in jobs]


def read_drawn(image: np.ndarray, blacked: bool, canvas: Pixels) -> Drawn:
    """From a float image to pixels; black and broken ones become outcomes, never pixels to be scored."""
    if blacked:
        return Drawn(None, CHECKER)
    if not np.isfinite(image).all():
        return Drawn(None, NOT_FINITE)
    pixels = (np.clip(image, 0.0, 1.0) * 255.0).round().astype(np.uint8)
    if not pixels.any() and canvas.any():
        return Drawn(None, BLACK)
    return Drawn(pixels)


def given(**settings: object) -> dict[str, object]:
    """The settings that are set."""
    return {name: value for name, value in settings.items() if value is not None}


def runner_for(loading: Loading, device: str) -> Runner:
    """What runs these weights, loaded onto a device; raises as `Runner` does."""
    method = METHODS[loading.method]
    module = importlib.import_module(f"plantain.models.diffusers.pipelines.{method.module}")
    made: Runner = getattr(module, method.runner)(loading, device)
    return made
