"""Rectangles in an image, for text, faces and masks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels

Level = TypeVar("Level", bound=np.generic)


@dataclass(frozen=True, slots=True, order=True)
class Box:
    """A rectangle in pixels: it includes column `left` and row `top`, and excludes column `right` and row `bottom`."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The first column to the right of the box."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The first row below the box."""
        return self.top + self.height

    @property
    def middle(self) -> tuple[float, float]:
        """The centre (x, y) of the box in pixels."""
        return self.left + self.width / 2, self.top + self.height / 2

    def moved(self, across: int, down: int) -> Box:
        return Box(self.left + across, self.top + down, self.width, self.height)

    def grown(self, by: int, width: int, height: int) -> Box:
        """Return the box larger by `by` pixels on each side, clipped to an image of `width` x `height` pixels."""
        left, top = max(0, self.left - by), max(0, self.top - by)
        return Box(left, top, min(width, self.right + by) - left, min(height, self.bottom + by) - top)

    def overlaps(self, other: Box) -> bool:
        """Return True if both boxes have a pixel in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def cut(self, pixels: npt.NDArray[Level]) -> npt.NDArray[Level]:
        """Return the part of an image or mask, (H, W) or (H, W, 3), within the box, as a view."""
        return pixels[self.top : self.bottom, self.left : self.right]


def blacken(pixels: Pixels, boxes: Iterable[Box]) -> Pixels:
    """Return a copy of an image, uint8 (H, W, 3), with each box and 4 pixels around it black."""
    masked = pixels.copy()
    for box in boxes:
        box.grown(4, pixels.shape[1], pixels.shape[0]).cut(masked)[...] = 0
    return masked
