"""Bringing an image to the prepared square, and back by the exact inverse of the same geometry."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.records import Geometry


def prepare(pixels: Pixels, side: int = 1024, aspect: float = 1.0) -> tuple[Pixels, Geometry]:
    """Resize to a square: keep the proportions of the object and centre the image on black.

    Shrinking averages areas, enlarging uses Lanczos-4; an image that already fits is copied pixel by pixel.

    Args:
        pixels: uint8 (H, W, 3), or (H, W).
        side: of the square, in pixels.
        aspect: height of a pixel over its width.

    Returns:
        uint8 (side, side, 3) or (side, side), and the place of the original in it.
    """
    height, width = pixels.shape[:2]
    tall = height * aspect
    scale = side / max(width, tall)
    inner_width = min(side, max(1, round(width * scale)))
    inner_height = min(side, max(1, round(tall * scale)))
    left, top = (side - inner_width) // 2, (side - inner_height) // 2
    geometry = Geometry(width, height, "pad", left, top, inner_width, inner_height)
    inner = resize(pixels, inner_width, inner_height)
    if inner.shape[:2] == (side, side):
        return np.ascontiguousarray(inner), geometry
    square = np.zeros((side, side, *pixels.shape[2:]), np.uint8)
    square[top : top + inner_height, left : left + inner_width] = inner
    return square, geometry


def restore(pixels: Pixels, geometry: Geometry) -> Pixels:
    """Invert `prepare`: crop the padding and resize to the original's size.

    Exact in geometry for every image, and in every pixel where `prepare` did not have to resize.

    Args:
        pixels: uint8 (S, S, 3), of the size that `prepare` made.
        geometry: what `prepare` returned.

    Returns:
        uint8 (geometry.height, geometry.width, 3).
    """
    inner = pixels[
        geometry.top : geometry.top + geometry.inner_height,
        geometry.left : geometry.left + geometry.inner_width,
    ]
    return np.ascontiguousarray(resize(inner, geometry.width, geometry.height))


def settle_grey(pixels: Pixels) -> Pixels:
    """Give three equal channels to an image that is grey but for a codec's noise; keep colour.

    Grey radiographs saved as colour JPEG come back with channels a few levels apart. Grey means: the channels
    differ by less than 2 levels on average and by less than 16 in all but one pixel of a thousand.
    """
    red, green, blue = (pixels[:, :, channel] for channel in range(3))
    if np.array_equal(red, green) and np.array_equal(green, blue):
        return pixels
    apart = np.maximum(cv2.absdiff(red, green), cv2.absdiff(green, blue))
    if apart.mean() >= 2.0 or np.count_nonzero(apart >= 16) > apart.size // 1000:
        return pixels
    gray = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.repeat(gray[:, :, None], 3, axis=2)


def resize(pixels: Pixels, width: int, height: int) -> Pixels:
    """Resize uint8 (H, W) or (H, W, 3): areas averaged on the way down, Lanczos-4 on the way up."""
    old_height, old_width = pixels.shape[:2]
    if (old_width, old_height) == (width, height):
        return pixels
    shrink = min(width, old_width) * min(height, old_height) < old_width * old_height
    if shrink and (width > old_width or height > old_height):
        # One side shrinks and the other grows (pixels that are not square): each with the filter that suits it.
        between = resize(pixels, min(width, old_width), min(height, old_height))
        return resize(between, width, height)
    method = cv2.INTER_AREA if shrink else cv2.INTER_LANCZOS4
    resized: Pixels = cv2.resize(pixels, (width, height), interpolation=method)
    return resized
