"""InstructPix2Pix (Brooks et al. 2023), and Paint-by-Inpaint, whose weights are of the same class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import StableDiffusionInstructPix2PixPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines import runner


class InstructPix2PixRunner(runner.Runner):
    """Instruction and image each have a guidance of their own; a batch is as good as single runs."""

    pipeline_class = StableDiffusionInstructPix2PixPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        done = self.pipe(
            prompt=[job.instruction for job in jobs],
            image=pictures,
            generator=runner.generators(jobs),
            output_type="np",
            **self.guidance(steering),
        )
        return done.images, done.nsfw_content_detected or [False] * len(jobs)

    def guidance(self, steering: Steering) -> dict[str, object]:
        """The pipeline's own names for what is set."""
        return runner.given(
            num_inference_steps=steering.steps,
            guidance_scale=steering.guidance,
            image_guidance_scale=steering.image_guidance,
        )
