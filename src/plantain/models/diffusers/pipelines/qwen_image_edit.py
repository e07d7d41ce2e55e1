"""Qwen-Image-Edit and its successors (-Plus: 2509, 2511), at about one megapixel, one edit at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diffusers import DiffusionPipeline, QwenImageEditPipeline, QwenImageEditPlusPipeline
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
        done = self.pipe(
            image=[picture] if isinstance(self.pipe, QwenImageEditPlusPipeline) else picture,
            prompt=job.instruction,
            negative_prompt=NOTHING,
            width=picture.width,
            height=picture.height,
            generator=runner.generators(jobs),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, true_cfg_scale=steering.guidance),
        )
        return done.images, [False]
