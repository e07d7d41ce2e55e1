"""ICEdit (Zhang et al. 2025): an image beside itself, whose right half FLUX Fill paints anew as the prompt says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import FluxFillPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines import runner

DIPTYCH = (
    "A diptych with two side-by-side images of the same scene. On the right, the scene is exactly the same as on the "
    "left but {instruction}"
)
"""The prompt that its LoRA was trained with (ICEdit's repository); another wording is another model."""


class ICEditRunner(runner.Runner):
    """Canvases are 512 wide, as its LoRA was trained; the diptych is twice that."""

    pipeline_class = FluxFillPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        width, height = pictures[0].size
        mask = Image.new("L", (2 * width, height), 0)
        mask.paste(255, (width, 0, 2 * width, height))
        done = self.pipe(
            prompt=[DIPTYCH.replace("{instruction}", job.instruction) for job in jobs],
            image=[_diptych(picture) for picture in pictures],
            mask_image=[mask] * len(pictures),
            width=2 * width,
            height=height,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, guidance_scale=steering.guidance),
        )
        return done.images[:, :, width:], [False] * len(jobs)


def _diptych(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    both = Image.new("RGB", (2 * width, height))
    both.paste(picture, (0, 0))
    both.paste(picture, (width, 0))
    return both
