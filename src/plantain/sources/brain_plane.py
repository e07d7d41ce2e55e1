"""The plane of a brain slice told from the outline of the head alone, with how sure one can be; often "unknown".

An axial head is an ellipse, longer from front to back than wide, and alike left and right; a sagittal one has a face.
Sequence and contrast are not told here: T1 and FLAIR both show fluid dark, and a bright lesion is no contrast medium.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.pixels.arrays import Pixels

_SIDE = 192
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlaneEstimate:
    """A plane ("axial", "sagittal" or "unknown") and a confidence in [0, 1]; 0 where nothing can be said."""

    plane: str
    confidence: float


def estimate_plane(pixels: Pixels) -> PlaneEstimate:
    """Compares the outline with its mirror image and with its ellipse.

    Args:
        pixels: uint8 (H, W, 3) or (H, W), a slice with dark air around the head.
    """
    outline = _outline(pixels)
    if outline is None:
        return PlaneEstimate(UNKNOWN, 0.0)
    height, width = outline.shape
    mirrored = _overlap(outline, outline[:, ::-1])
    ellipse = np.zeros(outline.shape, np.uint8)
    cv2.ellipse(ellipse, ((width / 2, height / 2), (width, height), 0.0), 1, -1)
    round_ = _overlap(outline, ellipse.astype(np.bool_))
    if mirrored >= 0.92 and round_ >= 0.91 and height >= 1.08 * width:
        return PlaneEstimate("axial", round(min(0.9, 0.6 + 3 * min(mirrored - 0.92, round_ - 0.91)), 2))
    if mirrored < 0.84:
        return PlaneEstimate("sagittal", round(min(0.9, 0.6 + 3 * (0.84 - mirrored)), 2))
    return PlaneEstimate(UNKNOWN, 0.0)


def _outline(pixels: Pixels) -> np.ndarray | None:
    """The head filled, cut to its bounding box, bool; None where it does not stand out or is cut by the border."""
    height, width = pixels.shape[:2]
    scale = _SIDE / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    gray = cv2.GaussianBlur(small if small.ndim == 2 else cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), (5, 5), 0)
    border = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    air = float(np.percentile(border, 50))
    if air > 40 or float(gray.max()) - air < 40:
        return None
    head = (gray > air + 0.12 * (float(np.percentile(gray, 99)) - air)).astype(np.uint8)
    shapes, _ = cv2.findContours(head, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    largest = max(shapes, key=cv2.contourArea)
    if cv2.contourArea(largest) < 0.15 * gray.size:
        return None
    filled = np.zeros(gray.shape, np.uint8)
    cv2.drawContours(filled, [largest], 0, 1, -1)
    left, top, wide, tall = cv2.boundingRect(largest)
    box: np.ndarray = filled[top : top + tall, left : left + wide].astype(np.bool_)
    return box


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union."""
    return float((one & other).sum() / max(1, (one | other).sum()))
