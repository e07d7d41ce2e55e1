"""LEDITS++ (Brack et al. 2024): inverts an image, then steers it towards or away from a concept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import DiffusionPipeline, DPMSolverMultistepScheduler, LEditsPPPipelineStableDiffusion
from PIL import Image

from plantain.models.diffusers.concepts import NoConcept, concept_of
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner


class LeditsRunner(runner.Runner):
    """Reads no sentences: it is handed the finding's name, or the words that stand for it in the instruction."""

    pipeline_class = LEditsPPPipelineStableDiffusion

    def load(self, loading: Loading) -> DiffusionPipeline:
        pipe = super().load(loading)
        pipe.scheduler = DPMSolverMultistepScheduler.from_config(
            pipe.scheduler.config, algorithm_type="sde-dpmsolver++", solver_order=2
        )
        return pipe

    def recorded(self, job: Job) -> dict[str, object]:
        try:
            concept = concept_of(job)
        except NoConcept:
            return {}
        return {"concept": concept.words, "removes": concept.removes}

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        concept = concept_of(job)
        (generator,) = runner.generators(jobs)
        self.pipe.invert(
            picture,
            generator=generator,
            **runner.given(num_inversion_steps=steering.steps),
        )
        done = self.pipe(
            editing_prompt=[concept.words],
            reverse_editing_direction=[concept.removes],
            generator=generator,
            output_type="np",
            **runner.given(edit_guidance_scale=steering.guidance),
        )
        return done.images, done.nsfw_content_detected or [False]
