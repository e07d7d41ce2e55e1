"""InstructPix2Pix on SDXL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import DiffusionPipeline, StableDiffusionXLInstructPix2PixPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner


class SdxlInstructPix2PixRunner(runner.Runner):
    """As InstructPix2Pix; the size is said, because the model was trained with it as an input."""

    pipeline_class = StableDiffusionXLInstructPix2PixPipeline

    def load(self, loading: Loading) -> DiffusionPipeline:
        """Without diffusers' own watermark, which depends on what else is installed; ours comes with a release."""
        return runner.load_pipeline(
            self.pipeline_class, loading, self.precision, self.device, add_watermarker=False
        )

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        width, height = pictures[0].size
        done = self.pipe(
            prompt=[job.instruction for job in jobs],
            image=pictures,
            width=width,
            height=height,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(
                num_inference_steps=steering.steps,
                guidance_scale=steering.guidance,
                image_guidance_scale=steering.image_guidance,
            ),
        )
        return done.images, [False] * len(jobs)
