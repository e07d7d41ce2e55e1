"""Pictures on their way to a hosted editor and back: always square there, exactly inverted here, checked on arrival."""

from __future__ import annotations

import binascii
import re
from functools import lru_cache

import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, declared_size, decode_untrusted
from plantain.pixels.encode import encode_clear, encode_mask, encode_png
from plantain.pixels.prepare import prepare, resize, restore
from plantain.privacy.lineage import made_from
from plantain.records import Geometry
from plantain.roles import EditedImage, EncodedImage

SMALLEST_SIDE = 128
"""A hosted editor that returns less than this many pixels a side has returned an icon, not the edited picture."""

SPARSE = 64
"""Rows and columns between the pixels at which an edit is first compared with its original."""

UNCHANGED = "the editor returned the picture unchanged"

_DATA_URL = re.compile(r"\s*data:[^,]{0,100};base64,")

_URL_SAFE = str.maketrans("-_", "+/")

_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


def to_square(original: EncodedImage) -> tuple[EncodedImage, Geometry | None]:
    """The picture as a hosted editor gets it, and how to come back.

    Square pictures go untouched and need no way back. Others are padded with black to a square of their longer side,
    without resampling, as a lossless PNG: providers' own aspect ratios are only nominal, a square is exact everywhere.
    """
    width, height = declared_size(original.data)
    if width == height:
        return original, None
    pixels = decode_untrusted(original.data, "original")
    square, geometry = prepare(pixels, side=max(pixels.shape[:2]), mode="pad")
    return EncodedImage(made_from(encode_png(square), original.data), "image/png"), geometry


def shown_at(picture: EncodedImage, side: int) -> EncodedImage:
    """A picture as it is shown to who only looks: no longer than `side` pixels, smaller ones as they are. Decodes."""
    width, height = declared_size(picture.data)
    longer = max(width, height)
    if longer <= side:
        return picture
    pixels = decode_untrusted(picture.data, "picture")
    small = resize(pixels, max(1, round(width * side / longer)), max(1, round(height * side / longer)))
    return EncodedImage(made_from(encode_png(small), picture.data), "image/png")


def mask_for(region: EncodedImage, original: EncodedImage, *, clear: bool) -> EncodedImage:
    """The region where the change belongs, as an editor takes it: of the size of the picture that it is sent.

    Args:
        region: 255 where the change belongs; of the original's size.
        original: whose shape decides how both are made square.
        clear: as OpenAI has it, by an alpha channel that is clear where the change belongs; else white there.
    """
    plane = decode_untrusted(region.data, "region")
    if plane.shape[0] != plane.shape[1]:
        plane, _ = prepare(plane, side=max(plane.shape[:2]), mode="pad")
    inside = plane[:, :, 0] > 127
    data = encode_clear(inside) if clear else encode_mask(inside)
    return EncodedImage(made_from(data, original.data), "image/png")


def looks_at_pixels(data: bytes, geometry: Geometry | None) -> bool:
    """Whether `from_square` decodes: all but a square JPEG that is to stay as it is."""
    return geometry is not None or media_type(data) != "image/jpeg"


def from_square(data: bytes, original: EncodedImage, geometry: Geometry | None) -> EditedImage:
    """What an editor returned, at the original's geometry. May decode: run it in a thread.

    A square picture comes back untouched, whatever its size; a padded one is cut and resized by the exact inverse.
    One that equals the original is kept and its note says so.

    Raises:
        BadImage: no picture that we read, not square, or too small to be one.
    """
    width, height = declared_size(data)
    if width == 0:
        raise BadImage("the editor returned bytes that are not a picture")
    if width != height:
        raise BadImage(f"the editor returned {width}x{height} pixels, not a square")
    if width < SMALLEST_SIDE:
        raise BadImage(f"the editor returned only {width}x{height} pixels")
    if geometry is None:
        pixels = _decoded(data)
        note = UNCHANGED if _unchanged(data, pixels, original) else ""
        return EditedImage(EncodedImage(data, media_type(data)), note=note, pixels=pixels)
    side = max(geometry.width, geometry.height)
    pixels = restore(resize(decode_untrusted(data, "edited image"), side, side), geometry)
    note = UNCHANGED if np.array_equal(pixels, decode_untrusted(original.data, "original")) else ""
    return EditedImage(EncodedImage(encode_png(pixels), "image/png"), note=note)


def media_type(data: bytes) -> str:
    """By the first bytes, not by what the provider says."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "application/octet-stream")


def from_base64(text: str) -> bytes:
    """Bytes of standard or URL-safe base64, also in lines or without padding, as protocol buffers' JSON may have it;
    some servers put before it what data URLs begin with.

    Raises:
        BadImage: it is not base64.
    """
    import pybase64  # comes with the extras of hosted models, and local judges have their prompts from this room too

    if begins := _DATA_URL.match(text):
        text = text[begins.end() :]
    if "\n" in text:
        text = "".join(text.split())
    if "-" in text or "_" in text:
        text = text.translate(_URL_SAFE)
    try:
        return pybase64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("the editor's picture is not valid base64") from None


def to_base64(data: bytes) -> str:
    """Standard base64 of bytes."""
    import pybase64

    return pybase64.b64encode_as_string(data)


def _decoded(data: bytes) -> Pixels | None:
    """The pixels of a picture that may be the original without loss; None for a JPEG, and for what is damaged.

    The damage is for those to tell who keep the picture.
    """
    if media_type(data) == "image/jpeg":
        return None
    try:
        return decode_untrusted(data, "edited image")
    except BadImage:
        return None


def _unchanged(data: bytes, pixels: Pixels | None, original: EncodedImage) -> bool:
    if data == original.data:
        return True
    if pixels is None or pixels.shape[1::-1] != declared_size(original.data):
        return False
    if _sample(pixels) != _sample_of(original.data):
        return False
    return np.array_equal(pixels, decode_untrusted(original.data, "original"))


def _sample(pixels: Pixels) -> bytes:
    """A pixel in 4,096: enough to see that two pictures differ."""
    return pixels[::SPARSE, ::SPARSE].tobytes()


@lru_cache(maxsize=32)
def _sample_of(data: bytes) -> bytes:
    """The same of a picture in a file, which is decoded once for all the rounds of its tasks."""
    return _sample(decode_untrusted(data, "original"))
