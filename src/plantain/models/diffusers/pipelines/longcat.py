"""LongCat-Image-Edit (6B), at about one megapixel, one edit at a time; its text encoder also sees the image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from diffusers import DiffusionPipeline, LongCatImageEditPipeline
from diffusers.pipelines.longcat_image import pipeline_longcat_image_edit as edit
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner
from plantain.models.diffusers.pipelines.qwen_image_edit import name_image_tokens
from plantain.models.diffusers.pipelines.qwen_processor import QwenProcessor


class LongCatImageEditRunner(runner.Runner):
    """The pipeline sizes its canvas itself, from the image's proportions: ours give themselves back."""

    pipeline_class = LongCatImageEditPipeline

    def load(self, loading: Loading) -> DiffusionPipeline:
        processor = QwenProcessor.of(loading.folder, "text_processor")
        pipe = runner.load_pipeline(
            self.pipeline_class, loading, self.precision, self.device, text_processor=processor
        )
        pipe.text_encoder.register_forward_pre_hook(name_image_tokens, with_kwargs=True)
        return pipe

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        with canvas_area(job.side):
            done = self.pipe(
                image=picture,
                prompt=job.instruction,
                negative_prompt="",
                generator=runner.generators(jobs),
                output_type="np",
                **runner.given(num_inference_steps=steering.steps, guidance_scale=steering.guidance),
            )
        return done.images, [False]


@contextmanager
def canvas_area(side: int | None) -> Iterator[None]:
    """Another working size holds for the canvas, which the pipeline brings to a megapixel by a constant."""
    if side is None:
        yield
        return
    usual = edit.calculate_dimensions
    share = side**2 / 1024**2
    edit.calculate_dimensions = lambda area, ratio: usual(area * share, ratio)
    try:
        yield
    finally:
        edit.calculate_dimensions = usual
