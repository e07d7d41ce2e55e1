"""Edits for an engine from file to file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.remote import job_of
from plantain.models.frames import FramedRequest
from plantain.pixels.decode import declared_size
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import OK, Outcome

SEED = 20261122
REGION = np.zeros((101, 65), bool)
REGION[30:60, 15:50] = True
STEERING = {
    "imagic": Steering(steps=2, guidance=3.0, text_steps=1, model_steps=1),
    "flux2-klein": Steering(steps=2, guidance=1.0),
}


@dataclass(frozen=True)
class EditSpec:
    """An edit before the method, and so its canvas, is known."""

    image: bytes
    instruction: str = "Remove the dark mole on the cheek"
    seed: int = 0
    side: int | None = 64
    region: bytes | None = None


@dataclass(frozen=True)
class Edit:
    """The result: a PNG of the original's size, or the outcome that explains its absence."""

    image: bytes | None
    outcome: Outcome
    record: dict[str, object]


def image(height: int = 101, width: int = 65, seed: int = SEED) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return encode_png(pixels)


def job(number: int = 0, **changes: object) -> EditSpec:
    usual = EditSpec(image(seed=number), seed=number, region=encode_mask(REGION))
    return replace(usual, **changes)  # type: ignore[arg-type]


def framed(spec: EditSpec, method: str) -> FramedRequest:
    size = declared_size(spec.image)
    frame = METHODS[method].frame.frame(size[0], size[1], spec.side)
    return FramedRequest(spec.image, frame, spec.instruction, spec.seed, spec.region, spec.side)


def run(engine: Engine, loading: Loading, spec: EditSpec, steering: Steering | None = None) -> Edit:
    """Edit an image."""
    steering = steering or STEERING.get(loading.method, Steering(steps=2, guidance=4.0))
    if "image_guidance" in METHODS[loading.method].takes:
        steering = replace(steering, image_guidance=1.6)
    request = framed(spec, loading.method)
    done = engine.run(job_of(loading, steering, request))
    left = done.outcome if done.pixels is None else request.leave(done.pixels)
    failed = isinstance(left, Outcome)
    return Edit(None if failed else left, left if failed else OK, done.record)
