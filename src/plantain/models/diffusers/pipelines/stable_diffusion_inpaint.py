"""Stable Diffusion and SDXL as inpainting models: told where, they draw what the text says there.

Weights with nine input channels were trained to. Any others, such as those of a model of radiographs, are steered:
around the region the original's latents are put back at every step. (RadEdit does more: it inverts the original, and
has a second mask.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from diffusers import DiffusionPipeline, StableDiffusionInpaintPipeline, StableDiffusionXLInpaintPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner


class StableDiffusionInpaintRunner(runner.Runner):
    """Several regions go through together."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = StableDiffusionInpaintPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        width, height = pictures[0].size
        done = self.pipe(
            prompt=[job.instruction for job in jobs],
            image=pictures,
            mask_image=self.regions,
            width=width,
            height=height,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(
                num_inference_steps=steering.steps,
                guidance_scale=steering.guidance,
                strength=steering.strength,
            ),
        )
        return done.images, getattr(done, "nsfw_content_detected", None) or [False] * len(jobs)


class SdxlInpaintRunner(StableDiffusionInpaintRunner):
    """As Stable Diffusion, at a megapixel, without diffusers' own watermark."""

    pipeline_class = StableDiffusionXLInpaintPipeline

    def load(self, loading: Loading) -> DiffusionPipeline:
        return runner.load_pipeline(
            self.pipeline_class, loading, self.precision, self.device, add_watermarker=False
        )
