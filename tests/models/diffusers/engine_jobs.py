"""Jobs for an engine, and a device with little room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Batch, Done, Job, Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines.runner import Drawn, Runner
from plantain.pixels.encode import encode_mask, encode_png

SEED = 20261122
REGION = np.zeros((101, 65), bool)
REGION[30:60, 15:50] = True
STEERING = {
    "imagic": Steering(steps=2, guidance=3.0, text_steps=1, model_steps=1),
    "ledits": Steering(steps=3, guidance=5.0),
    "flux2-klein": Steering(steps=2, guidance=1.0),
}


def picture(height: int = 101, width: int = 65, seed: int = SEED) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return encode_png(pixels)


def job(number: int = 0, **changes: object) -> Job:
    usual = Job(
        picture(seed=number), "Remove the dark mole on the cheek", number, side=64, region=encode_mask(REGION)
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def run(engine: Engine, loading: Loading, jobs: Sequence[Job]) -> list[Done]:
    steering = STEERING.get(loading.method, Steering(steps=2, guidance=4.0))
    if "image_guidance" in METHODS[loading.method].takes:
        steering = replace(steering, image_guidance=1.6)
    return engine.run(Batch(loading, steering, tuple(jobs)))


class Cramped(Runner):
    """A device with room for so many edits at once; it raises what torch raises."""

    def __init__(self, room: int) -> None:
        self.method = METHODS["instruct-pix2pix"]
        self.precision = torch.float32
        self.room = room
        self.sizes: list[int] = []

    def edit(
        self,
        canvases: Sequence[np.ndarray],
        jobs: Sequence[Job],
        steering: Steering,
        regions: Sequence[np.ndarray] = (),
    ) -> list[Drawn]:
        self.sizes.append(len(jobs))
        if len(jobs) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return [Drawn(canvas) for canvas in canvases]

    def draw(self, *args: object) -> tuple[np.ndarray, Sequence[bool]]:
        raise NotImplementedError
