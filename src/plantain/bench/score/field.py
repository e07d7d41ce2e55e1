"""The field of view of an image: what is picture rather than padding, aperture or empty background."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Mask, Pixels

DARK = 10
"""Grey levels up to which a background may reach; padding is 0, what surrounds a fundus or a head a little more."""
LEAST = 0.02
"""A field smaller than this share of the frame is no field: the whole frame is taken."""


def field_of_view(pixels: Pixels) -> Mask:
    """The parts of an image that are brighter than a dark background, with their holes closed.

    Dark regions enclosed by the picture belong to it, as ventricles and lungs do; dark regions that touch the frame do
    not. A photograph without a dark surround is field all over.

    Args:
        pixels: uint8 (H, W, 3).

    Returns:
        bool (H, W).
    """
    brightest = cv2.medianBlur(np.ascontiguousarray(pixels.max(axis=2)), 5)
    lit = (brightest > DARK).astype(np.uint8)
    contours, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    field = np.zeros(lit.shape, np.uint8)
    least = LEAST / 10 * lit.size
    large = [contour for contour in contours if cv2.contourArea(contour) >= least]
    cv2.drawContours(field, large, -1, 1, cv2.FILLED)
    found = field.astype(bool)
    return found if float(found.mean()) >= LEAST else np.ones(lit.shape, bool)
