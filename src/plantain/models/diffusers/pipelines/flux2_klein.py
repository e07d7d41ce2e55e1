"""FLUX.2 klein: distilled to a few steps; a list of images is references for one edit there, not a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import Flux2KleinPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.pipelines import runner


class Flux2KleinRunner(runner.Runner):
    """One edit at a time."""

    pipeline_class = Flux2KleinPipeline

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        layers = self.pipe.text_encoder.config.num_hidden_layers
        usual = (9, 18, 27)  # of the published text encoder, which has more layers than that
        done = self.pipe(
            image=[picture],
            prompt=job.instruction,
            width=picture.width,
            height=picture.height,
            generator=runner.generators(jobs),
            text_encoder_out_layers=usual if layers > usual[-1] else (layers,),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, guidance_scale=steering.guidance),
        )
        return done.images, [False]
