"""Small images inside a page as data URIs, and outlines of masks."""

from __future__ import annotations

import base64
import io

import cv2
import numpy as np
from PIL import Image

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.encode import XMP_PACKET


def data_uri(pixels: Pixels, side: int, limit: int, *, synthetic: bool) -> str:
    """Return `thumbnail` as a data URI."""
    data = thumbnail(pixels, side, limit, synthetic=synthetic)
    return "data:image/jpeg;base64," + base64.b64encode(data).decode("ascii")


def thumbnail(pixels: Pixels, side: int, limit: int, *, synthetic: bool) -> bytes:
    """Return a JPEG thumbnail, greyscale if the image is grey.

    Args:
        pixels: uint8 (H, W, 3) RGB.
        side: longest side of the thumbnail in pixels.
        limit: maximum size in bytes; quality, then size, are reduced until it fits.
        synthetic: True if rendered or edited: the thumbnail then gets the mark for synthetic images.
    """
    pixels, xmp = shrink(pixels, side), XMP_PACKET if synthetic else b""
    grey = bool((pixels[..., :1] == pixels).all())
    while True:
        image = Image.fromarray(pixels[..., 0] if grey else pixels)
        for quality in (82, 70, 55, 40):
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", quality=quality, optimize=True, xmp=xmp)
            if buffer.tell() <= limit or (quality == 40 and max(image.size) <= 32):
                return buffer.getvalue()
        pixels = shrink(pixels, max(32, max(image.size) * 3 // 4))


def outline(region: Mask) -> str:
    """Return the border of a region, bool (H, W), as an SVG path in pixel coordinates.

    Example:
        >>> import numpy as np
        >>> mask = np.zeros((8, 8), bool)
        >>> mask[2:5, 1:4] = True
        >>> outline(mask)
        'M1 2L1 4L3 4L3 2Z'
    """
    tolerance = max(region.shape) / 1000
    contours, _ = cv2.findContours(region.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    paths = [cv2.approxPolyDP(contour, tolerance, True).reshape(-1, 2) for contour in contours]
    return "".join(
        sorted("M" + "L".join(f"{x} {y}" for x, y in path) + "Z" for path in paths if len(path) > 2)
    )


def changed_region(before: Pixels, after: Pixels) -> Mask:
    """Find the pixels that an edit changed, bool (H, W), ignoring compression noise.

    Both images are uint8 (H, W, 3) of the same shape. A pixel counts if its largest change over the channels, smoothed,
    exceeds 4 grey levels and a quarter of the image's largest change.
    """
    change = cv2.absdiff(before, after).max(axis=2).astype(np.float32)
    smooth = cv2.GaussianBlur(change, (0, 0), max(before.shape) / 200)
    return np.asarray(smooth > max(4.0, float(smooth.max()) / 4), dtype=np.bool_)


def box_around(region: Mask) -> Box:
    """Return a square with a margin around a region, bool (H, W); the largest central square for an empty region."""
    height, width = region.shape
    rows, columns = np.flatnonzero(region.any(axis=1)), np.flatnonzero(region.any(axis=0))
    if not len(rows):
        rows, columns = np.array([0, height - 1]), np.array([0, width - 1])
    longest = max(int(np.ptp(rows)), int(np.ptp(columns))) + 1
    side = min(height, width, max(round(1.4 * longest), max(height, width) // 4))
    top, left = (
        min(max((int(found[0]) + int(found[-1]) + 1 - side) // 2, 0), length - side)
        for found, length in ((rows, height), (columns, width))
    )
    return Box(left, top, side, side)


def shrink(pixels: Pixels, side: int) -> Pixels:
    """Reduce an image, uint8 (H, W, 3), to `side` pixels on its longer side; smaller ones are unchanged."""
    size = _size(pixels.shape[0], pixels.shape[1], side)
    if size == (pixels.shape[1], pixels.shape[0]):
        return pixels
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _size(height: int, width: int, side: int) -> tuple[int, int]:
    scale = min(1.0, side / max(height, width))
    return max(1, round(width * scale)), max(1, round(height * scale))
