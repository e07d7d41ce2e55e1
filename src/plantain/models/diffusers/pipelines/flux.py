"""FLUX.1: Kontext, anywhere or within a region, and ICEdit on FLUX.1 Fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from diffusers import (
    DiffusionPipeline,
    FluxFillPipeline,
    FluxKontextInpaintPipeline,
    FluxKontextPipeline,
)
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Drawings, Images, Runner

DIPTYCH = (
    "A diptych with two side-by-side images of the same scene. On the right, the scene is exactly the same as on the "
    "left but {instruction}"
)
"""The prompt that ICEdit's LoRA was trained with (ICEdit's repository); another wording is another model."""


class KontextRunner(Runner):
    """Canvases have one of the sizes that Kontext was trained on, so its own resizing is off."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = FluxKontextPipeline

    def draw(self, jobs: Sequence[Job], originals: Images, regions: Images, steering: Steering) -> Drawings:
        width, height = originals[0].size
        more: dict[str, Any] = {"mask_image": regions[0]} if regions else {}
        return self.call(
            jobs,
            steering,
            image=originals,
            prompt=[job.instruction for job in jobs],
            width=width,
            height=height,
            max_area=width * height,
            _auto_resize=False,
            **more,
        )


class KontextInpaintRunner(KontextRunner):
    """Draws within the region only, one edit at a time; around it the latents are the original's."""

    pipeline_class = FluxKontextInpaintPipeline


class ICEditRunner(Runner):
    """ICEdit draws the right half of a diptych of the original. Canvases are 512 wide, as its LoRA was trained."""

    pipeline_class = FluxFillPipeline

    def draw(self, jobs: Sequence[Job], originals: Images, regions: Images, steering: Steering) -> Drawings:
        width, height = originals[0].size
        mask = Image.new("L", (2 * width, height), 0)
        mask.paste(255, (width, 0, 2 * width, height))
        diptychs = [Image.new("RGB", mask.size) for _ in originals]
        for diptych, original in zip(diptychs, originals, strict=True):
            diptych.paste(original, (0, 0))
            diptych.paste(original, (width, 0))
        drawn, blacked = self.call(
            jobs,
            steering,
            prompt=[DIPTYCH.replace("{instruction}", job.instruction) for job in jobs],
            image=diptychs,
            mask_image=[mask] * len(jobs),
            width=2 * width,
            height=height,
        )
        return drawn[:, :, width:], blacked


RUNNERS = {
    "flux-kontext": KontextRunner,
    "flux-kontext-inpaint": KontextInpaintRunner,
    "icedit": ICEditRunner,
}
