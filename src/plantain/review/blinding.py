"""Images of a study: marked as synthetic on disk, but served so that only their pixels differ."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.encode import PNG_MARK, compressed, marked, png_chunk

STEP = 65536
"""Served files of a case are padded to a multiple of this."""

_CHUNK = 12
"""Bytes of an empty PNG chunk; IEND, the last one, is empty."""


def stored_images(
    images: Iterable[Pixels], size: tuple[int, int], synthetic: Iterable[bool]
) -> tuple[list[bytes], int]:
    """Encode the images of a case as PNG.

    Args:
        images: uint8 (H, W, 3).
        size: (width, height) in pixels to which all are resized.
        synthetic: for each image, True if its file is marked as synthetic (XMP, IPTC's digital source type).

    Returns:
        The files, greyscale only if all are grey, and the length to which `served` pads each of them.
    """
    resized = [fitted(pixels, size) for pixels in images]
    grey = all(bool((pixels[..., :1] == pixels).all()) for pixels in resized)
    shown = [np.ascontiguousarray(pixels[..., 0]) if grey else pixels for pixels in resized]
    plain = [compressed(".png", pixels, cv2.IMWRITE_PNG_COMPRESSION, 6) for pixels in shown]
    length = -(-(max(map(len, plain)) + _CHUNK) // STEP) * STEP
    return [marked(data) if mark else data for data, mark in zip(plain, synthetic, strict=True)], length


def served(data: bytes, length: int) -> bytes:
    """Remove a stored PNG's synthetic mark, and pad it to `length` bytes by a chunk that decoders ignore."""
    plain = data.replace(PNG_MARK, b"", 1)
    return plain[:-_CHUNK] + png_chunk(b"paDd", bytes(length - len(plain) - _CHUNK)) + plain[-_CHUNK:]


def fitted_mask(mask: Mask, size: tuple[int, int]) -> Mask:
    """Resize a mask, bool (H, W), to `size`, (width, height), by nearest neighbour."""
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0)


def fitted(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize an image, uint8 (H, W, 3), to `size`, (width, height): areas averaged to shrink, else cubic."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    shrinks = pixels.shape[1] > size[0]
    resized = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    return np.asarray(resized, np.uint8)
