"""Stable Diffusion and SDXL: InstructPix2Pix, InstructDiffusion and inpainting.

InstructDiffusion (Geng et al. 2023) runs inside the InstructPix2Pix loop (Brooks et al. 2023). With e(text, image) the
predicted noise, InstructDiffusion steps along

    0.5 * (e(0, i) + e(t, 0)) + s_t * (e(t, i) - e(0, i)) + s_i * (e(t, i) - e(t, 0)),

and InstructPix2Pix, whose third prediction is given the prompt as well, along

    e(t, 0) + g * (e(t, i) - e(0, i)) + h * (e(0, i) - e(t, 0)).

Both agree for g = s_t + s_i and h = 0.5 + s_i.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from diffusers import (
    DiffusionPipeline,
    StableDiffusionInpaintPipeline,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionXLInpaintPipeline,
    StableDiffusionXLInstructPix2PixPipeline,
)
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines.runner import Drawing, Runner

NO_WATERMARK = {"add_watermarker": False}
"""diffusers' own watermark depends on installed packages; a release adds plantain's."""


class InstructPix2PixRunner(Runner):
    """InstructPix2Pix, or Paint-by-Inpaint, whose weights are of the same class."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = StableDiffusionInstructPix2PixPipeline

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        return self.call(job, prompt=job.instruction, image=original)


class InstructDiffusionPipeline(StableDiffusionInstructPix2PixPipeline):  # type: ignore[misc]  # diffusers is untyped
    """InstructPix2Pix's pipeline, except that the third prediction, which sees no image, still reads the prompt."""

    def _encode_prompt(self, *args: object, **kwargs: object) -> torch.Tensor:
        embedded: torch.Tensor = super()._encode_prompt(*args, **kwargs)
        if self.do_classifier_free_guidance:
            prompt, empty, _ = embedded.chunk(3)
            embedded = torch.cat([prompt, empty, prompt])
        return embedded


def identity(text: float, image: float) -> tuple[float, float]:
    """Convert InstructDiffusion's (cfg_text, cfg_image) to InstructPix2Pix's guidances: (5.0, 1.25) to (6.25, 1.75)."""
    return text + image, 0.5 + image


class InstructDiffusionRunner(InstructPix2PixRunner):
    """InstructDiffusion with its published guidances, 5.0 and 1.25 by default."""

    pipeline_class = InstructDiffusionPipeline

    def arguments(self, steering: Steering) -> dict[str, object]:
        text = 5.0 if steering.guidance is None else steering.guidance
        image = 1.25 if steering.image_guidance is None else steering.image_guidance
        guidance, image_guidance = identity(text, image)
        both = {"guidance_scale": guidance, "image_guidance_scale": image_guidance}
        return super().arguments(steering) | both


class SdxlInstructPix2PixRunner(InstructPix2PixRunner):
    """InstructPix2Pix on SDXL, which takes the image's size as an input."""

    pipeline_class = StableDiffusionXLInstructPix2PixPipeline
    parts = NO_WATERMARK

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        return self.call(job, prompt=job.instruction, image=original, width=width, height=height)


class InpaintRunner(Runner):
    """Inpainting: the prompt is drawn inside the region.

    Weights with nine input channels were trained for it. For any others, such as a model of radiographs, the original's
    latents are restored around the region at every step.
    """

    pipeline_class: ClassVar[type[DiffusionPipeline]] = StableDiffusionInpaintPipeline

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        return self.call(
            job,
            prompt=job.instruction,
            image=original,
            mask_image=region,
            width=width,
            height=height,
        )


class SdxlInpaintRunner(InpaintRunner):
    """Inpainting with SDXL: the prompt is drawn inside the region."""

    pipeline_class = StableDiffusionXLInpaintPipeline
    parts = NO_WATERMARK


RUNNERS = {
    "instruct-pix2pix": InstructPix2PixRunner,
    "instruct-diffusion": InstructDiffusionRunner,
    "sdxl-instruct-pix2pix": SdxlInstructPix2PixRunner,
    "sd-inpaint": InpaintRunner,
    "sdxl-inpaint": SdxlInpaintRunner,
}
