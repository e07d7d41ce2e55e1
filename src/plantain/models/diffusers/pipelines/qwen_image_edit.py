"""Qwen-Image-Edit and its successors (-Plus: 2509, 2511), at about one megapixel, one edit at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from diffusers import DiffusionPipeline, QwenImageEditPipeline, QwenImageEditPlusPipeline
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus
from diffusers.pipelines.qwenimage.pipeline_output import QwenImagePipelineOutput
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner
from plantain.models.diffusers.pipelines.qwen_processor import QwenProcessor

NOTHING = " "
"""The negative prompt: without one its guidance is off."""


class Runner(runner.Runner):
    """Guidance is the classifier-free one (`true_cfg_scale`); these models ignore `guidance_scale`."""

    def load(self, loading: Loading) -> DiffusionPipeline:
        plus = loading.method == "qwen-image-edit-plus"
        pipeline_class = QwenImageEditPlusPipeline if plus else QwenImageEditPipeline
        return runner.load_pipeline(
            pipeline_class, loading, self.precision, processor=QwenProcessor.of(loading.folder)
        )

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        with reference_area(job.side):
            done = self._call(picture, job, steering)
        return done.images, [False]

    def _call(self, picture: Image.Image, job: Job, steering: Steering) -> QwenImagePipelineOutput:
        return self.pipe(
            image=[picture] if isinstance(self.pipe, QwenImageEditPlusPipeline) else picture,
            prompt=job.instruction,
            negative_prompt=NOTHING,
            width=picture.width,
            height=picture.height,
            generator=runner.generators([job]),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, true_cfg_scale=steering.guidance),
        )


@contextmanager
def reference_area(side: int | None) -> Iterator[None]:
    """Another working size holds for the reference image too, which these pipelines bring to a megapixel by constants.

    Without this a smaller `side` would save neither memory nor time. Nothing changes where no side is said.
    """
    if side is None:
        yield
        return
    usual = edit.calculate_dimensions, plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE
    share = side**2 / plus.VAE_IMAGE_SIZE
    edit.calculate_dimensions = lambda area, ratio: usual[0](area * share, ratio)
    plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = side**2, round(usual[2] * share)
    try:
        yield
    finally:
        edit.calculate_dimensions, plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = usual
