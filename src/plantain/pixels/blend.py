"""Growing, softening and laying one image over another: how a change meets what surrounds it."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Mask, Pixels


def dilate(mask: Mask, radius_px: float) -> Mask:
    """Every pixel within `radius_px` (Euclidean) of the mask: bool (H, W)."""
    if radius_px <= 0 or not mask.any():
        return mask.copy()
    grown: Mask = _distance_to(mask) <= radius_px
    return grown


def erode(mask: Mask, radius_px: float) -> Mask:
    """Every pixel of the mask farther than `radius_px` from its outside, which the image's border is not."""
    if radius_px <= 0 or mask.all():
        return mask.copy()
    shrunk: Mask = _distance_to(~mask) > radius_px
    return shrunk


def feather(mask: Mask, radius_px: float) -> Field:
    """A soft version of a mask: float32 (H, W) in [0, 1].

    Rises from 0 at `radius_px` outside the border through 0.5 on it to 1 at `radius_px` inside, without
    a kink at either end (smoothstep of the signed Euclidean distance). A structure thinner than twice
    the radius does not reach 1: dilate it first to keep its full strength.
    """
    if radius_px <= 0 or mask.all() or not mask.any():
        return mask.astype(np.float32)
    # Distances count from pixel centres; half a pixel puts zero on the edge between two pixels.
    signed = np.where(mask, _distance_to(~mask) - 0.5, 0.5 - _distance_to(mask))
    ramp = np.clip((signed + radius_px) / (2 * radius_px), 0.0, 1.0)
    return (ramp * ramp * (3.0 - 2.0 * ramp)).astype(np.float32)


def composite(before: Pixels, after: Pixels, alpha: Field | Mask) -> Pixels:
    """`before` where alpha is 0, `after` where it is 1, exactly; mixed in between and rounded.

    Args:
        before, after: uint8 (H, W, 3) or (H, W), same shape.
        alpha: (H, W), bool or float in [0, 1].

    Returns:
        uint8, same shape as `before`.
    """
    weight = alpha.astype(np.float32)
    if before.ndim == 3:
        weight = weight[:, :, None]
    old = before.astype(np.float32)
    mixed = old + weight * (after.astype(np.float32) - old)
    return np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def _distance_to(mask: Mask) -> Field:
    """Euclidean distance in pixels to the nearest True of a mask that has one: float32 (H, W)."""
    distance: Field = cv2.distanceTransform((~mask).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return distance
