"""How crisp the outline of a mass in the brain is, against the contrast of the brain itself."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.instruments.pair import blur, filled, grow, largest_part, shrunken
from plantain.pixels.arrays import Field, Mask

LEAST_LEVELS, SHARE = 4.0, 0.3
"""A mass reaches as far as the change has this many grey levels and this share of its strongest."""
BAND = 2.0
"""Pixels of the small frame on either side of the outline in which its steepest place may lie."""


def mass_of(change: Field) -> Mask:
    """The largest connected place of a change on the small frame, its holes filled."""
    strength = np.abs(blur(change, 1.5))
    seen = strength[strength > LEAST_LEVELS]
    if not seen.size:
        return np.zeros(change.shape, bool)
    return filled(largest_part(strength > max(LEAST_LEVELS, SHARE * float(np.percentile(seen, 95)))))


def outline_of(level: Field, mass: Mask, brain: Mask) -> float:
    """Steepness along the outline of a mass, as a share of the brain's contrast a pixel of the small frame.

    The upper quartile along the outline: a mass at the dura has no edge of its own where it meets the skull.

    Args:
        level: float32 (h, w), grey levels of the image that holds the mass, on the small frame.
        mass: bool (h, w).
        brain: bool (h, w).

    Returns:
        0 for no mass, and for one that fills the brain.
    """
    rest = brain & ~mass
    if not mass.any() or not rest.any():
        return 0.0
    smooth = blur(level, 1.0)
    dark, bright = np.percentile(smooth[rest], (10, 90))
    steep = np.hypot(cv2.Sobel(smooth, cv2.CV_32F, 1, 0), cv2.Sobel(smooth, cv2.CV_32F, 0, 1)) / 8
    along = grow(mass, BAND) & ~shrunken(mass, BAND)
    return float(np.percentile(steep[along], 75) / (bright - dark + 1.0))
