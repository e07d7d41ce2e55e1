"""FLUX.1 Kontext: edits by instruction at about one megapixel, anywhere or within a region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import FluxKontextInpaintPipeline, FluxKontextPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines import runner


class FluxKontextRunner(runner.Runner):
    """Canvases already have one of the sizes that it was trained on, so its own resizing is off."""

    pipeline_class = FluxKontextPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        width, height = pictures[0].size
        done = self.pipe(
            image=pictures,
            prompt=[job.instruction for job in jobs],
            width=width,
            height=height,
            max_area=width * height,
            _auto_resize=False,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, guidance_scale=steering.guidance),
        )
        return done.images, [False] * len(jobs)


class FluxKontextInpaintRunner(runner.Runner):
    """Kontext that draws within the region only, one edit at a time; around it the latents are the original's."""

    pipeline_class = FluxKontextInpaintPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (region,)) = pictures, self.regions
        done = self.pipe(
            image=picture,
            mask_image=region,
            prompt=jobs[0].instruction,
            width=picture.width,
            height=picture.height,
            max_area=picture.width * picture.height,
            _auto_resize=False,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(
                num_inference_steps=steering.steps,
                guidance_scale=steering.guidance,
                strength=steering.strength,
            ),
        )
        return done.images, [False]
