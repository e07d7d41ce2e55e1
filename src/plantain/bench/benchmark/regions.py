"""Reading a region of interest out of a mask's file: soft, 0 and 1, coloured or kept in transparency."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from plantain.pixels.arrays import Mask
from plantain.pixels.decode import decode_untrusted

Grey = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

SOFT = 0.001
"""Share of pixels between the darkest and the brightest eighth from which a mask counts as soft."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredMask:
    """A mask's file, read.

    Attributes:
        grey: uint8 (H, W), what the published code sees: luminance, transparency ignored.
        region: bool (H, W), what the file means.
        kind: "binary", "soft", "0 and 1", "transparency", "empty", "full".
        remark: why the two readings differ, or what else is odd; "" for a plain binary mask.
    """

    grey: Grey
    region: Mask
    kind: str
    remark: str


def read_mask(data: bytes, name: str) -> StoredMask:
    """Reads a mask's file at its own size.

    The region is where the mask exceeds half of its brightest level, so that 0 and 1, 0 and 255 and soft edges
    are read alike. Where the colours are the same everywhere, or blank, transparency carries the mask.

    Raises:
        BadImage: the bytes are no image.
    """
    shown = decode_untrusted(data, name)
    grey, alpha = _bands(data, shown)
    carrier, kind, remark = grey, "binary", ""
    if alpha is not None and int(alpha.min()) != int(alpha.max()):
        if int(grey.min()) == int(grey.max()):
            carrier, kind = alpha, "transparency"
            remark = "its transparency carries the mask, which the published code ignores"
        else:
            carrier = np.rint(grey.astype(np.float32) * alpha / 255).astype(np.uint8)
            remark = "it is partly transparent, which the published code ignores"
    top = int(carrier.max())
    if top == 0:
        return StoredMask(grey, np.zeros(grey.shape, bool), "empty", "it marks nothing")
    region: Mask = carrier > top / 2
    if region.all():
        return StoredMask(grey, region, "full", "it marks the whole image")
    if top == 1:
        kind, remark = "0 and 1", "stored as 0 and 1, which the published code takes for almost no mask"
    elif kind == "binary":
        middle = float(((carrier > top / 8) & (carrier < top * 7 / 8)).mean())
        if middle > SOFT:
            kind = "soft"
            remark = f"soft edges: {middle:.1%} of pixels are neither in nor out; cut at half of the brightest level"
        elif top != 255 and not remark:
            remark = (
                f"its brightest level is {top}, not 255, so the published code hides only part of the region"
            )
    return StoredMask(grey, region, kind, remark)


def _bands(data: bytes, shown: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> tuple[Grey, Grey | None]:
    """Luminance and, where there is one, transparency; the file has been found sound before."""
    image: Image.Image = Image.open(io.BytesIO(data))
    if image.mode.startswith("I"):
        return shown[..., 0], None
    alpha = None
    if image.mode in ("LA", "La", "PA", "RGBa", "RGBA") or "transparency" in image.info:
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
        image = image.convert("RGBA").convert("RGB")
    return np.asarray(image.convert("L")), alpha


def resized_grey(grey: Grey, size: tuple[int, int]) -> Grey:
    """A grey mask at another (width, height) by nearest neighbour, as published."""
    if (grey.shape[1], grey.shape[0]) == size:
        return grey
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.NEAREST))


def resized_region(region: Mask, size: tuple[int, int]) -> Mask:
    """A region at another (width, height) by nearest neighbour."""
    made: Mask = resized_grey(region.astype(np.uint8), size) > 0
    return made
