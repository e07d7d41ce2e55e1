"""Qwen-Image-Edit and its successors, about a megapixel.

Their text encoder is a vision-language model that is shown the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from diffusers import (
    DiffusionPipeline,
    QwenImageEditPipeline,
    QwenImageEditPlusPipeline,
)
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus
from PIL import Image
from transformers import (
    BatchFeature,
    ProcessorMixin,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Tokenizer,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from plantain.models.diffusers.jobs import Job, Loading
from plantain.models.diffusers.pipelines.runner import Drawing, Runner

NO_PROMPT = " "
"""The negative prompt: without one, guidance is off."""

PLACE = "<|image_pad|>"
"""Token in a prompt for each image; repeated for each of its patches."""


class QwenProcessor(ProcessorMixin):  # type: ignore[misc]  # transformers is untyped
    """The processor of Qwen's vision-language model without the part for videos, which needs torchvision."""

    def __init__(self, image_processor: Qwen2VLImageProcessorPil, tokenizer: Qwen2Tokenizer) -> None:
        self.image_processor = image_processor
        self.tokenizer = tokenizer

    @classmethod
    def of(cls, folder: Path) -> QwenProcessor:
        """Load the processor of a saved pipeline, with the pipeline's tokenizer."""
        images = Qwen2VLImageProcessorPil.from_pretrained(folder / "processor", local_files_only=True)
        return cls(images, Qwen2Tokenizer.from_pretrained(folder / "tokenizer", local_files_only=True))

    def __call__(
        self,
        text: list[str],
        images: Image.Image | list[Image.Image],
        padding: bool = True,
        return_tensors: str = "pt",
    ) -> BatchFeature:
        """Return tokens and patches; each image's place is repeated once for each merged patch.

        Raises:
            ValueError: the text has another number of places than there are images.
        """
        seen = self.image_processor(images=images, return_tensors=return_tensors)
        merged = self.image_processor.merge_size**2
        counts = [int(grid.prod()) // merged for grid in seen["image_grid_thw"]]
        filled = []
        for prompt in text:
            before, *after = prompt.split(PLACE)
            if len(after) != len(counts):
                raise ValueError(f"{len(after)} places for {len(counts)} images in the prompt")
            filled.append(before + "".join(PLACE * n + rest for n, rest in zip(counts, after, strict=True)))
        words = self.tokenizer(filled, padding=padding, return_tensors=return_tensors)
        return BatchFeature({**words, **seen})


def name_image_tokens(
    encoder: Qwen2_5_VLForConditionalGeneration, args: tuple[object, ...], keywords: dict[str, Any]
) -> tuple[tuple[object, ...], dict[str, Any]]:
    """Add `mm_token_type_ids` to a text encoder's arguments: 1 for patches of an image, 0 for words.

    Since transformers 5.20 the encoder needs them to know the height and width of a patch; the pipelines of diffusers
    0.42 omit them, and patches are then numbered like words, without an error (diffusers issues 14189, 14194).
    """
    if keywords.get("mm_token_type_ids") is None and keywords.get("image_grid_thw") is not None:
        keywords["mm_token_type_ids"] = (keywords["input_ids"] == encoder.config.image_token_id).int()
    return args, keywords


class QwenRunner(Runner):
    """Qwen-Image-Edit. Guidance is classifier-free (`true_cfg_scale`); `guidance_scale` has no effect."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = QwenImageEditPipeline
    names: ClassVar[Mapping[str, str]] = {**Runner.names, "guidance": "true_cfg_scale"}

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        pipe = super().load(loading, processor=QwenProcessor.of(loading.folder), **parts)
        pipe.text_encoder.register_forward_pre_hook(name_image_tokens, with_kwargs=True)
        return pipe

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        with reference_area(job.side):
            return self.call(
                job,
                image=self.shown(original),
                prompt=job.instruction,
                negative_prompt=NO_PROMPT,
                width=width,
                height=height,
            )

    def shown(self, original: Image.Image) -> Image.Image | list[Image.Image]:
        """Return the original in the form that the pipeline's argument `image` takes: one image or a list."""
        return original


class QwenPlusRunner(QwenRunner):
    """Qwen-Image-Edit 2509 and 2511, which can read several images."""

    pipeline_class = QwenImageEditPlusPipeline

    def shown(self, original: Image.Image) -> list[Image.Image]:
        return [original]


@contextmanager
def reference_area(side: int | None) -> Iterator[None]:
    """Make pipelines resize reference images to `side` squared pixels instead of a megapixel; None changes nothing.

    Without this a smaller `side` would save neither memory nor time.
    """
    if side is None:
        yield
        return
    usual = edit.calculate_dimensions
    areas = plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE
    share = side**2 / 1024**2
    edit.calculate_dimensions = lambda area, ratio: usual(area * share, ratio)
    plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = (round(area * share) for area in areas)
    try:
        yield
    finally:
        edit.calculate_dimensions = usual
        plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE = areas


RUNNERS = {
    "qwen-image-edit": QwenRunner,
    "qwen-image-edit-plus": QwenPlusRunner,
}
