"""Qwen-Image-Edit, its successors (-Plus: 2509, 2511) and its inpainting: one edit at a time, about a megapixel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from diffusers import (
    DiffusionPipeline,
    QwenImageEditInpaintPipeline,
    QwenImageEditPipeline,
    QwenImageEditPlusPipeline,
)
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_inpaint as inpaint
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus
from diffusers.pipelines.qwenimage.pipeline_output import QwenImagePipelineOutput
from PIL import Image
from transformers import Qwen2_5_VLForConditionalGeneration

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner
from plantain.models.diffusers.pipelines.qwen_processor import QwenProcessor

NOTHING = " "
"""The negative prompt: without one its guidance is off."""


class QwenImageEditRunner(runner.Runner):
    """Guidance is the classifier-free one (`true_cfg_scale`); these models ignore `guidance_scale`."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = QwenImageEditPipeline

    def load(self, loading: Loading) -> DiffusionPipeline:
        pipe = runner.load_pipeline(
            self.pipeline_class,
            loading,
            self.precision,
            self.device,
            processor=QwenProcessor.of(loading.folder),
        )
        pipe.text_encoder.register_forward_pre_hook(name_image_tokens, with_kwargs=True)
        return pipe

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        with reference_area(job.side):
            done = self._call(picture, job, steering)
        return done.images, [False]

    def _call(self, picture: Image.Image, job: Job, steering: Steering) -> QwenImagePipelineOutput:
        return self.pipe(image=picture, **self._arguments(picture, job, steering))

    def _arguments(self, picture: Image.Image, job: Job, steering: Steering) -> dict[str, object]:
        return {
            "prompt": job.instruction,
            "negative_prompt": NOTHING,
            "width": picture.width,
            "height": picture.height,
            "generator": runner.generators([job]),
            "output_type": "np",
            **runner.given(num_inference_steps=steering.steps, true_cfg_scale=steering.guidance),
        }


class QwenImageEditPlusRunner(QwenImageEditRunner):
    """2509 and 2511, which could look at several images."""

    pipeline_class = QwenImageEditPlusPipeline

    def _call(self, picture: Image.Image, job: Job, steering: Steering) -> QwenImagePipelineOutput:
        return self.pipe(image=[picture], **self._arguments(picture, job, steering))


class QwenImageEditInpaintRunner(QwenImageEditRunner):
    """Draws within the region only; around it the latents are the original's."""

    pipeline_class = QwenImageEditInpaintPipeline

    def _call(self, picture: Image.Image, job: Job, steering: Steering) -> QwenImagePipelineOutput:
        (region,) = self.regions
        return self.pipe(
            image=picture,
            mask_image=region,
            **runner.given(strength=steering.strength),
            **self._arguments(picture, job, steering),
        )


def name_image_tokens(
    encoder: Qwen2_5_VLForConditionalGeneration, args: tuple[object, ...], keywords: dict[str, Any]
) -> tuple[tuple[object, ...], dict[str, Any]]:
    """Tells the text encoder which of its tokens are patches of an image: 1, and 0 for words.

    Since transformers 5.20 it places patches in height and width only when it is told; the pipelines of diffusers 0.42
    do not tell it, and it then numbers them like words, without an error (diffusers issues 14189, 14194).
    """
    if keywords.get("mm_token_type_ids") is None and keywords.get("image_grid_thw") is not None:
        keywords["mm_token_type_ids"] = (keywords["input_ids"] == encoder.config.image_token_id).int()
    return args, keywords


@contextmanager
def reference_area(side: int | None) -> Iterator[None]:
    """Another working size holds for the reference image too, which these pipelines bring to a megapixel by constants.

    Without this a smaller `side` would save neither memory nor time. Nothing changes where no side is keywords.
    """
    if side is None:
        yield
        return
    usual = edit.calculate_dimensions, plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE
    share = side**2 / plus.VAE_IMAGE_SIZE

    def scaled(area: float, ratio: float) -> object:
        return usual[0](area * share, ratio)

    edit.calculate_dimensions = inpaint.calculate_dimensions = scaled
    plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = side**2, round(usual[2] * share)
    try:
        yield
    finally:
        edit.calculate_dimensions, plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = usual
        inpaint.calculate_dimensions = usual[0]
