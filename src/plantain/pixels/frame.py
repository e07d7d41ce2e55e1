"""The field of view of an image, and removal of thin bright lines along its borders, as screenshots have them."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Mask, Pixels

_WIDEST = 0.02
"""Of the shorter side: a line at the border that is wider is part of the image."""

_CONTRAST = 30.0
"""Grey levels by which the median of a line exceeds that of the row within."""

_DARK = 10
"""Brightest grey level of a background: padding is 0, the surround of a fundus or a head is a little brighter."""
_LEAST = 0.02
"""A field of view smaller than this share of the frame is ignored: the whole frame is taken."""


def field_of_view(pixels: Pixels) -> Mask:
    """Return the part that is brighter than a dark background, with its holes closed, bool (H, W).

    Dark parts that touch the frame are background; enclosed ones, such as ventricles and lungs, are not. An image
    without a dark surround is field all over.
    """
    brightest = cv2.medianBlur(np.ascontiguousarray(pixels.max(axis=2)), 5)
    lit = (brightest > _DARK).astype(np.uint8)
    contours, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    field = np.zeros(lit.shape, np.uint8)
    large = [contour for contour in contours if cv2.contourArea(contour) >= _LEAST / 10 * lit.size]
    cv2.drawContours(field, large, -1, 1, cv2.FILLED)
    found = field.astype(bool)
    return found if float(found.mean()) >= _LEAST else np.ones(lit.shape, bool)


def without_frame(level: Field) -> Field:
    """Return the image with such lines at the level of the row within; unchanged without lines.

    Args:
        level: float32 (h, w), grey levels.
    """
    deep = max(2, round(_WIDEST * min(level.shape)))
    if min(level.shape) <= deep:
        return level
    cleared = level
    for turns in range(4):
        side = np.rot90(cleared, turns)
        within = side[deep]
        course = np.median(side[:deep], axis=1) - float(np.median(within))
        lines = np.flatnonzero(course > _CONTRAST)
        if lines.size:
            side = side.copy()
            side[: int(lines[-1]) + 2] = np.minimum(side[: int(lines[-1]) + 2], within)
            cleared = np.rot90(side, -turns)
    return np.ascontiguousarray(cleared)
