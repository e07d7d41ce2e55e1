"""ImageReward from the package `image-reward`, whose last release needs an old transformers: install its repository."""

from __future__ import annotations

from PIL import Image as Pillow

from plantain.pixels.arrays import Image


class ImageRewardModel:
    """The published reward model.

    Args:
        device: of torch.
    """

    name = "ImageReward-v1.0"

    def __init__(self, device: str = "cpu") -> None:
        import ImageReward

        self.model = ImageReward.load(self.name, device=device)

    def reward(self, image: Image, text: str) -> float:
        """The reward of a uint8 RGB image (H, W, 3) for a text; higher is better."""
        import torch

        with torch.inference_mode():
            return float(self.model.score(text, Pillow.fromarray(image)))
