"""Prepare images for a hosted model (square, base64) and check and restore the ones it returns."""

from __future__ import annotations

import asyncio
import binascii
import re

from plantain.pixels.decode import BadImage, declared_size, decode_output, decode_untrusted
from plantain.pixels.encode import encode_clear, encode_mask, encode_png
from plantain.pixels.prepare import prepare, resize, restore
from plantain.privacy.permission import made_from
from plantain.records import Geometry
from plantain.roles import EncodedImage

SMALLEST_SIDE = 128
"""Least side of an edited image in pixels; a smaller one is an icon."""

_DATA_URL = re.compile(r"\s*data:[^,]{0,100};base64,")
_URL_SAFE = str.maketrans("-_", "+/")
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


async def to_square(original: EncodedImage) -> tuple[EncodedImage, Geometry | None]:
    """Return the square image for a hosted editor and its geometry; None for a square original, sent unchanged.

    Others are padded with black to a square of their longer side, without resampling, as PNG: aspect ratios of
    providers are only nominal, but all return exact squares.
    """
    width, height = declared_size(original.data)
    return (original, None) if width == height else await asyncio.to_thread(_padded, original)


def _padded(original: EncodedImage) -> tuple[EncodedImage, Geometry]:
    pixels = decode_untrusted(original.data, "original")
    square, geometry = prepare(pixels, side=max(pixels.shape[:2]))
    return EncodedImage(made_from(encode_png(square), original.data), "image/png"), geometry


def shown_at(image: EncodedImage, side: int) -> EncodedImage:
    """Return an image whose longer side is at most `side` pixels, for a model that reads it."""
    width, height = declared_size(image.data)
    longer = max(width, height)
    if longer <= side:
        return image
    pixels = decode_untrusted(image.data, "image")
    small = resize(pixels, max(1, round(width * side / longer)), max(1, round(height * side / longer)))
    return EncodedImage(made_from(encode_png(small), image.data), "image/png")


def mask_for(region: EncodedImage, original: EncodedImage, *, clear: bool) -> EncodedImage:
    """Return the mask of the region of the change, in the size of the image that is sent.

    Args:
        region: 255 inside the region; of the original's size.
        original: the image that the mask belongs to, for its lineage.
        clear: mark the region by a transparent alpha channel, as OpenAI does; else in white.
    """
    plane = decode_untrusted(region.data, "region")
    if plane.shape[0] != plane.shape[1]:
        plane, _ = prepare(plane, side=max(plane.shape[:2]))
    inside = plane[:, :, 0] > 127
    data = encode_clear(inside) if clear else encode_mask(inside)
    return EncodedImage(made_from(data, original.data), "image/png")


async def from_square(data: bytes, geometry: Geometry | None) -> EncodedImage:
    """Return an editor's image at the original's geometry.

    A square image comes back untouched, whatever its size; a padded one is cut and resized by the exact inverse.

    Raises:
        BadImage: it cannot be read, is not square, or is too small.
    """
    width, height = declared_size(data)
    if width == 0:
        raise BadImage("the editor returned bytes that are not an image")
    if width != height:
        raise BadImage(f"the editor returned {width}x{height} pixels, not a square")
    if width < SMALLEST_SIDE:
        raise BadImage(f"the editor returned only {width}x{height} pixels")
    if geometry is None:
        return EncodedImage(data, media_type(data))
    return EncodedImage(await asyncio.to_thread(_unpadded, data, geometry), "image/png")


def _unpadded(data: bytes, geometry: Geometry) -> bytes:
    side = max(geometry.width, geometry.height)
    return encode_png(restore(resize(decode_output(data), side, side), geometry))


def media_type(data: bytes) -> str:
    """Return the media type by the first bytes."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "application/octet-stream")


def from_base64(text: str) -> bytes:
    """Decode standard or URL-safe base64, with line breaks, without padding, or as a data URL. Raise BadImage."""
    import pybase64  # comes with the extras of hosted models

    if start := _DATA_URL.match(text):
        text = text[start.end() :]
    if "\n" in text:
        text = "".join(text.split())
    if "-" in text or "_" in text:
        text = text.translate(_URL_SAFE)
    try:
        return pybase64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("the editor's image is not valid base64") from None


def to_base64(data: bytes) -> str:
    """Encode bytes in standard base64."""
    import pybase64

    return pybase64.b64encode_as_string(data)
