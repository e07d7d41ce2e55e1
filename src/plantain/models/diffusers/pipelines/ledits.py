"""LEDITS++ (Brack et al. 2024): inverts an image, then steers it towards or away from a concept."""

from __future__ import annotations

from collections.abc import Sequence

from diffusers import DiffusionPipeline, DPMSolverMultistepScheduler, LEditsPPPipelineStableDiffusion

from plantain.models.diffusers.concepts import NoConcept, concept_of
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines.runner import Drawings, Images, Runner, generators


class LeditsRunner(Runner):
    """LEDITS++, which reads no sentences: it gets the finding's name, or its words in the instruction."""

    pipeline_class = LEditsPPPipelineStableDiffusion

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        pipe = super().load(loading, **parts)
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

    def draw(self, jobs: Sequence[Job], originals: Images, regions: Images, steering: Steering) -> Drawings:
        concept = concept_of(jobs[0])
        (generator,) = generators(jobs)
        steps = {} if steering.steps is None else {"num_inversion_steps": steering.steps}
        guidance = {} if steering.guidance is None else {"edit_guidance_scale": steering.guidance}
        self.pipe.invert(originals[0], generator=generator, **steps)
        done = self.pipe(
            editing_prompt=[concept.words],
            reverse_editing_direction=[concept.removes],
            generator=generator,
            output_type="np",
            **guidance,
        )
        return done.images, done.nsfw_content_detected or [False]


RUNNERS = {"ledits": LeditsRunner}
