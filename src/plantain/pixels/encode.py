"""The prepared square of an image, the two JPEG forms in which it is written, and the test for being in one of them.

Both forms are JPEG quality 95, 4:4:4, baseline, standard Huffman tables, no metadata. An edited image is in
*normal form*: it carries one constant XMP packet that marks it as synthetic. A prepared original is in
*source form*, which is the same without the packet. So the bytes before the image data are known in
advance for a given size, and a file can be recognised without decoding it.
"""

from __future__ import annotations

import functools
import zlib

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import BadImage, decode_output
from plantain.records import Geometry


def prepare(pixels: Pixels, side: int = 1024, aspect: float = 1.0) -> tuple[Pixels, Geometry]:
    """Resize an image to a square: keep the object's proportions and centre it on black.

    Shrinking averages areas, enlarging uses Lanczos-4; an image that already fits is copied pixel by pixel.

    Args:
        pixels: uint8 (H, W, 3), or (H, W).
        side: side of the square in pixels.
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
    """Crop a prepared image's padding and resize it to the original's size, inverting `prepare`.

    Exact in geometry for every image, and in every pixel where `prepare` did not have to resize.

    Args:
        pixels: uint8 (S, S, 3), of the size that `prepare` made.
        geometry: the geometry that `prepare` returned.

    Returns:
        uint8 (geometry.height, geometry.width, 3).
    """
    inner = pixels[
        geometry.top : geometry.top + geometry.inner_height,
        geometry.left : geometry.left + geometry.inner_width,
    ]
    return np.ascontiguousarray(resize(inner, geometry.width, geometry.height))


def settle_grey(pixels: Pixels) -> Pixels:
    """Make the channels of uint8 (H, W, 3) equal if they differ only by compression noise; else change nothing.

    Grey radiographs saved as colour JPEG decode to channels a few levels apart. An image counts as grey if they
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
    """Resize uint8 (H, W) or (H, W, 3): areas are averaged to shrink, Lanczos-4 is used to enlarge."""
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


QUALITY = 95

_XMP_NAME = b"http://ns.adobe.com/xap/1.0/\x00"
_JFIF_END = 20
"""SOI (2 bytes) and the JFIF segment (18): an APP1 segment goes right behind them."""

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER_END = 33
"""Signature (8 bytes) and IHDR (25): other chunks may follow from here."""

_XMP_KEY = b"XML:com.adobe.xmp\x00\x00\x00\x00\x00"
"""Keyword, then: not compressed, no language, no translated keyword (PNG 11.3.3.4; XMP part 3, PNG)."""

XMP_PACKET = b"""<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"
 Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/compositeSynthetic">
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">Synthetic: an edited medical image made for research. \
Not for clinical use.</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>"""
"""The mark. `compositeSynthetic` is the IPTC term that is true of rendered and generated edits alike."""


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG: length, kind, data and checksum (PNG 5.3)."""
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


PNG_MARK = png_chunk(b"iTXt", _XMP_KEY + XMP_PACKET)
_MARK = b"\xff\xe1" + (2 + len(_XMP_NAME) + len(XMP_PACKET)).to_bytes(2, "big") + _XMP_NAME + XMP_PACKET


def encode_source(pixels: Pixels) -> bytes:
    """Encode a prepared original as JPEG: quality 95, 4:4:4, no metadata.

    Args:
        pixels: uint8 (H, W, 3), RGB.

    Returns:
        The same bytes for the same pixels (one library version, one processor architecture).
    """
    _check(pixels)
    sampling = cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
    return compressed(".jpg", pixels, cv2.IMWRITE_JPEG_QUALITY, QUALITY, *sampling)


def encode_jpeg(pixels: Pixels) -> bytes:
    """Encode an edited image, uint8 (H, W, 3), like `encode_source`, with the packet that marks it synthetic."""
    return _mark(encode_source(pixels))


def marked(data: bytes) -> bytes:
    """Add to a PNG or JPEG file the XMP packet that marks it synthetic; its pixels are unchanged."""
    if not data.startswith(_PNG):
        return _mark(data)
    return data[:_PNG_HEADER_END] + PNG_MARK + data[_PNG_HEADER_END:]


def encode_prepared(pixels: Pixels, *, synthetic: bool) -> bytes:
    """Encode a prepared image, uint8 (H, W, 3), as JPEG; mark it if the source itself is synthetic."""
    return encode_jpeg(pixels) if synthetic else encode_source(pixels)


def is_normal_form(data: bytes, side: int = 1024) -> bool:
    """Return True if a file is a JPEG of `side` x `side` pixels as `encode_jpeg` writes it, without decoding it."""
    return _has_form(data, _mark(_header(side)))


def is_source_form(data: bytes, side: int = 1024) -> bool:
    """Return True if a file is a JPEG of `side` x `side` pixels as `encode_source` writes it, without decoding it."""
    return _has_form(data, _header(side))


def normalise(data: bytes, side: int = 1024, pixels: Pixels | None = None) -> bytes:
    """Convert an editor's output to normal form, a JPEG of `side` x `side` pixels; idempotent.

    Bytes in normal form come back unchanged; bytes in source form are marked without being encoded
    again; anything else is decoded, resized if it is a square of another size, and encoded once.

    Args:
        data: a file's bytes.
        side: side of the resulting square in pixels.
        pixels: `decode_output(data)`, if it was computed before.

    Raises:
        BadImage: it cannot be decoded, or it is not square.
    """
    if is_normal_form(data, side):
        return data
    if is_source_form(data, side):
        return _mark(data)
    if pixels is None:
        pixels = decode_output(data)
    height, width = pixels.shape[:2]
    if height != width:
        raise BadImage(f"edited image: {width}x{height} pixels returned where a square was required")
    return encode_jpeg(resize(pixels, side, side))


def encode_png(pixels: Pixels) -> bytes:
    """Return uint8 (H, W, 3) as PNG, lossless and deterministic."""
    _check(pixels)
    return compressed(".png", pixels, cv2.IMWRITE_PNG_COMPRESSION, 3)


def holds_pixels_only(data: bytes) -> bool:
    """Return True if a file is a PNG of 8-bit RGB that contains only IHDR, IDAT and IEND, and ends there."""
    if data[:8] != _PNG or data[24:26] != b"\x08\x02":  # depth 8, colour type RGB
        return False
    at, kinds = 8, []
    while at + 12 <= len(data):
        kinds.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return (
        at == len(data)
        and len(kinds) > 2
        and (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
        and set(kinds[1:-1]) == {b"IDAT"}
    )


def encode_mask(mask: Mask) -> bytes:
    """Encode bool (H, W) as a PNG of one 8-bit channel: 0 outside, 255 inside. Lossless and deterministic."""
    return compressed(".png", mask.astype(np.uint8) * 255, cv2.IMWRITE_PNG_COMPRESSION, 6)


def compressed(ending: str, levels: npt.NDArray[np.unsignedinteger], *options: int) -> bytes:
    """Return the file that OpenCV encodes from an image.

    Args:
        ending: ".jpg" or ".png".
        levels: uint8 or uint16, (H, W) grey, (H, W, 3) RGB or (H, W, 4) RGBA.
        options: OpenCV's flags, each followed by its value.

    Raises:
        ValueError: OpenCV cannot encode such an image.
    """
    orders = {3: cv2.COLOR_RGB2BGR, 4: cv2.COLOR_RGBA2BGRA}
    shown = levels if levels.ndim == 2 else cv2.cvtColor(levels, orders[levels.shape[2]])
    done, data = cv2.imencode(ending, shown, options)
    if not done:
        raise ValueError(f"cannot encode an image of shape {levels.shape}")
    return bytes(data.tobytes())


def _check(pixels: Pixels) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ValueError(f"expected uint8 (H, W, 3), got {pixels.dtype} {pixels.shape}")


def _mark(data: bytes) -> bytes:
    return data[:_JFIF_END] + _MARK + data[_JFIF_END:]


@functools.lru_cache(maxsize=8)
def _header(side: int) -> bytes:
    """Return the bytes before the image data of a source-form image of this size (it depends on nothing else)."""
    data = encode_source(np.zeros((side, side, 3), np.uint8))
    at = 2
    while data[at + 1] != 0xDA:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return data[: at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")]


def _has_form(data: bytes, header: bytes) -> bool:
    """The header is the known one, one scan follows, it ends the file, and nothing is hidden behind it."""
    if not (data.startswith(header) and data.endswith(b"\xff\xd9")):
        return False
    begin = len(header)
    # In image data every 0xFF is followed by a zero byte; any other marker would be a second segment.
    return data.count(b"\xff", begin) == data.count(b"\xff\x00", begin) + 1
