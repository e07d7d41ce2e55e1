"""CLIP from transformers as an encoder of images and texts, with the model's own preprocessing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Image


class ClipEncoder:
    """A CLIP model; its name is that of its weights, and only the published ones report as "clip_...".

    Args:
        weights: a name on the Hugging Face hub or a local folder.
        device: of torch.
        local_files_only: never download.
    """

    def __init__(
        self,
        weights: str = "openai/clip-vit-large-patch14",
        device: str = "cpu",
        *,
        local_files_only: bool = False,
    ) -> None:
        from transformers import CLIPModel, CLIPProcessor

        self.name = weights
        self.device = device
        self.model = CLIPModel.from_pretrained(weights, local_files_only=local_files_only).to(device).eval()
        self.processor = CLIPProcessor.from_pretrained(weights, local_files_only=local_files_only)

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.float32]:
        """Projected image features (n, d), not normalised."""
        import torch

        batch = self.processor(images=list(images), return_tensors="pt").to(self.device)
        with torch.inference_mode():
            inner = self.model.vision_model(pixel_values=batch["pixel_values"])
            rows = self.model.visual_projection(inner.pooler_output)
        return np.asarray(rows.float().cpu().numpy(), np.float32)

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Projected text features (n, d), not normalised; texts are cut at the model's context."""
        import torch

        batch = self.processor(text=list(texts), return_tensors="pt", padding=True, truncation=True)
        batch = batch.to(self.device)
        with torch.inference_mode():
            inner = self.model.text_model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            )
            rows = self.model.text_projection(inner.pooler_output)
        return np.asarray(rows.float().cpu().numpy(), np.float32)

    def truncated(self, text: str) -> bool:
        """Whether the text has more tokens than the model's context."""
        tokenizer = self.processor.tokenizer
        return len(tokenizer(text, truncation=False)["input_ids"]) > int(
            self.model.config.text_config.max_position_embeddings
        )
