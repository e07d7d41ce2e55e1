"""Which layers and steps of a transformer are recorded, and the records. Imports no torch: command lines read it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels

SOME = 4
"""Layers, and steps, of a transformer that are recorded, at most."""

SHARE = 12
"""At most one of so many calls of a transformer's attention is recorded: each costs about itself again."""


def spread(count: int, some: int) -> tuple[int, ...]:
    """Return the middles of `some` equal parts of `count` indices, or all indices if there are no more.

    Example:
        >>> spread(57, 4), spread(3, 4)
        ((7, 21, 35, 49), (0, 1, 2))
    """
    if count <= some:
        return tuple(range(count))
    return tuple((2 * part + 1) * count // (2 * some) for part in range(some))


def usual_steps(layers: int, recorded: int, total: int) -> int:
    """Return how many of an edit's `total` steps to record, 1 to 4, if `recorded` of `layers` layers are recorded.

    Example:
        >>> usual_steps(57, 4, 28), usual_steps(25, 4, 4), usual_steps(12, 4, 8)
        (4, 2, 2)
    """
    return max(1, min(SOME, layers * total // (SHARE * recorded)))


@dataclass(frozen=True, slots=True)
class AttentionLook:
    """An editor's attention, or the reason why it was not recorded.

    Attributes:
        attention: float32 (h, w), at latent size, on the model's canvas; None with a `reason`.
        frame: position of the image on that canvas.
        tokens: positions of the concept in the prompt.
        edited: uint8 (H, W, 3), the edit at the image's own size; None if there is none.
        what: description of the recorded attention.
    """

    attention: npt.NDArray[np.float32] | None
    frame: Frame
    tokens: tuple[int, ...]
    edited: Pixels | None
    what: str
    reason: str = ""

    def on_image(self) -> npt.NDArray[np.float32]:
        """Resize the map to the image's size, float32 (H, W), bilinear. Raise ValueError without a map."""
        if self.attention is None:
            raise ValueError(self.reason)
        frame = self.frame
        canvas = cv2.resize(self.attention, frame.canvas, interpolation=cv2.INTER_LINEAR)
        inner = canvas[
            frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width
        ]
        size = (frame.width, frame.height)
        return np.asarray(cv2.resize(inner, size, interpolation=cv2.INTER_LINEAR), np.float32)
