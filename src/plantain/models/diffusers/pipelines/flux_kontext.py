"""FLUX.1 Kontext: edits by instruction at about one megapixel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import FluxKontextPipeline
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
