"""The slice's own sharpness and grain, so that what is drawn looks as if the same scanner had seen it."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.brain.anatomy import Brain
from plantain.offline.brain.fields import FieldWindow
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate
from plantain.pixels.grain import grain_field, synthesise_grain

_EDGES = 400


def edge_sigma(brain: Brain) -> float:
    """Blur of the sharpest anatomical edges, as the sigma of a Gaussian in pixels, 0.8 to 3.5.

    An ideal step of height h blurred by sigma has the slope h / (sigma sqrt(2 pi)).
    """
    gray = cv2.GaussianBlur(brain.gray, (0, 0), 0.8)
    slope = np.hypot(
        cv2.Sobel(gray, cv2.CV_32F, 1, 0, scale=0.125), cv2.Sobel(gray, cv2.CV_32F, 0, 1, scale=0.125)
    )
    kernel = np.ones((13, 13), np.uint8)
    height = cv2.dilate(gray, kernel) - cv2.erode(gray, kernel)
    candidates = brain.depth > 6
    if candidates.sum() < _EDGES:
        return 1.5
    limit = np.partition(slope[candidates], -_EDGES)[-_EDGES]
    strong = candidates & (slope >= max(float(limit), 1e-3))
    sigma = float(np.median(height[strong] / slope[strong])) / float(np.sqrt(2 * np.pi))
    return float(np.clip(np.sqrt(max(sigma**2 - 0.64, 0.3)), 0.8, 3.5))


def tissue_grain(
    brain: Brain, window: FieldWindow, target: Mask, rng: np.random.Generator, *, quiet: float = 25.0
) -> Field:
    """Grain for a target inside the window, with the texture of the brain around and the level of its quiet parts.

    Args:
        brain: the analysed slice.
        window: where to draw.
        target: bool, the window's shape.
        rng: the only source of randomness.
        quiet: percentile of the deep brain's local grain that counts as quiet.

    Returns:
        float32, the window's shape, around 0.
    """
    gray = window.cut(brain.gray)
    deep = window.cut(brain.depth) > 10
    source = dilate(target, 45) & deep
    if source.sum() < 500 or not target.any():
        return np.zeros(window.shape, np.float32)
    residual = grain_field(gray)
    local = np.sqrt(np.maximum(cv2.blur(residual * residual, (15, 15)), 0))
    wanted = float(np.percentile(local[deep], quiet))
    field = synthesise_grain(gray, target, rng, source)
    level = float(field[target].std())
    if level < 1e-3:
        return np.zeros(window.shape, np.float32)
    return (field * np.float32(wanted / level)).astype(np.float32)
