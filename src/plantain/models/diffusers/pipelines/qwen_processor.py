"""The processor of Qwen's vision-language model without its video half, which needs torchvision."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from transformers import BatchFeature, ProcessorMixin, Qwen2Tokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

PLACE = "<|image_pad|>"
"""Stands once for each image in a prompt, and is repeated for each of its patches."""


class QwenProcessor(ProcessorMixin):  # type: ignore[misc]  # transformers is untyped
    """Text with places for images, and the images, to what the text encoder reads."""

    def __init__(self, image_processor: Qwen2VLImageProcessorPil, tokenizer: Qwen2Tokenizer) -> None:
        self.image_processor = image_processor
        self.tokenizer = tokenizer

    @classmethod
    def of(cls, folder: Path, part: str = "processor") -> QwenProcessor:
        """That of a saved pipeline, which has it under that name."""
        images = Qwen2VLImageProcessorPil.from_pretrained(folder / part, local_files_only=True)
        tokens = Qwen2Tokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)
        return cls(images, tokens)

    def __call__(
        self,
        text: list[str],
        images: Image.Image | list[Image.Image],
        padding: bool = True,
        return_tensors: str = "pt",
    ) -> BatchFeature:
        """Tokens and patches; each image's place is repeated once for each merged patch.

        Raises:
            ValueError: the text has another number of places than there are images.
        """
        seen = self.image_processor(images=images, return_tensors=return_tensors)
        grids = seen["image_grid_thw"]
        counts = [int(grid.prod()) // self.image_processor.merge_size**2 for grid in grids]
        filled = []
        for prompt in text:
            before, *after = prompt.split(PLACE)
            if len(after) != len(counts):
                raise ValueError(f"{len(after)} places for {len(counts)} images in the prompt")
            filled.append(
                before + "".join(PLACE * count + rest for count, rest in zip(counts, after, strict=True))
            )
        words = self.tokenizer(filled, padding=padding, return_tensors=return_tensors)
        return BatchFeature({**words, **seen})
