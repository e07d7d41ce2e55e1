"""Decoding of images: guarded for files from outside, fast for our own blobs."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import warnings
import zlib
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, TiffImagePlugin

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.colour import STRIP_PIXELS, ColourProfile, profile_of
from plantain.records import InputError

MAX_PIXELS = 50_000_000
"""Largest image accepted, by its header; a flat-panel radiograph has about 15 million pixels."""

MAX_DECODED_BYTES = 256 * 1024 * 1024
"""Most memory that one decoded image may take before its conversion to 8-bit RGB."""

# Kinds of grey TIFF that Pillow has no row for; `_levels` inverts where white is zero, as Pillow does up to 8 bits.
for _order, _photometric in ((order, photometric) for order in (b"II", b"MM") for photometric in (0, 1)):
    _wide = "I;16" if _order == b"II" else "I;16B"
    for _bits, _modes in ((12, ("I;16", "I;12")), (16, (_wide, _wide))):
        TiffImagePlugin.OPEN_INFO.setdefault((_order, _photometric, (1,), 1, (_bits,), ()), _modes)
    _double = "F;64F" if _order == b"II" else "F;64BF"
    TiffImagePlugin.OPEN_INFO.setdefault((_order, _photometric, (3,), 1, (64,), ()), ("F", _double))

_PHOTOMETRIC, _WHITE_IS_ZERO, _BITS_PER_SAMPLE = 262, 0, 258
_PLANAR, _SEPARATE, _SAMPLE_FORMAT, _SIGNED = 284, 2, 339, 2
_EXTRA_SAMPLES, _ASSOCIATED = 338, 1

_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP")

_MODES = {"1": 1, "L": 1, "LA": 4, "La": 4, "P": 4, "PA": 4, "RGB": 4, "RGBA": 4, "RGBa": 4, "RGBX": 4}
_MODES |= {"CMYK": 4, "YCbCr": 4, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2, "I": 4, "F": 4}
"""Modes that we read, with the bytes per pixel that they take in memory. Programs disagree on the white of CIELab."""

# What Pillow's parsers raise on damaged files, collected from their sources; anything else is our own fault.
_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, ArithmeticError, AttributeError),
    *(struct.error, zlib.error, MemoryError, NotImplementedError, RuntimeError, Image.DecompressionBombError),
)

# Pillow warns of every odd tag; what matters becomes a BadImage. Set once, since catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", module=r"PIL\.")

_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)


class BadImage(InputError):
    """Raised for bytes that are not a usable image; the message is one line that names the file."""


def decode(data: bytes) -> Pixels:
    """Decode an image file that plantain wrote, JPEG or PNG; return uint8 (H, W, 3), RGB, also if it is grey.

    Raise BadImage if the bytes cannot be decoded.
    """
    pixels: Pixels | None = _imdecode(data, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise BadImage("stored image: its bytes cannot be decoded, the blob is damaged")
    return pixels


@lru_cache(maxsize=32)
def pixel_sha256(data: bytes) -> str:
    """Return the SHA-256 of an encoded image's decoded uint8 (H, W, 3) RGB bytes, row by row. Raise BadImage."""
    return sha256_of_pixels(decode(data))


def sha256_of_pixels(pixels: Pixels) -> str:
    """Return the SHA-256 (hex) of a decoded image, equal to `pixel_sha256` of its bytes: uint8 (H, W, 3), RGB."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


def decode_mask(data: bytes) -> Mask:
    """Decode a mask that `encode_mask` wrote: bool (H, W), True inside. Raise BadImage if it is damaged."""
    plane = _imdecode(data, cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION)
    if plane is None:
        raise BadImage("stored mask: its bytes cannot be decoded, the blob is damaged")
    mask: Mask = plane > 127
    return mask


def decode_untrusted(data: bytes, name: str, bits: int = 0) -> Pixels:
    """Decode a file from outside, of any kind: uint8 (H, W, 3), RGB, upright.

    Size and kind are taken from the header and checked before a pixel is decoded. EXIF orientation is
    honoured; transparency is laid on black, the colour of the padding; colours of another profile or gamma,
    CMYK and palettes become sRGB; grey TIFF where white is zero is inverted; 16-bit grey is scaled by the
    number of bits in use (8 to 16), so a 12-bit radiograph keeps its range, 16-bit colours by 8, 12 or 16 bits.
    Grey in floating point is read from 0 to 1, as scikit-image writes it, or as whole numbers.

    Args:
        data: the file's bytes.
        name: the file's name in messages.
        bits: bits in use by which 16-bit grey is scaled, so that related images share a scale; 0: `grey_bits(data)`.

    Raises:
        BadImage: the bytes cannot be used; no other error is raised.
    """
    pixels = decode_planes(data, name, bits)
    return pixels if pixels.ndim == 3 else _grey_to_rgb(pixels)


def decode_output(data: bytes, name: str = "edited image", bits: int = 8) -> Pixels:
    """Decode an edit of a `bits`-bit image as `decode_untrusted` does: uint8 (H, W, 3).

    16-bit grey is scaled by 8, `bits`, 12 or 16 bits, the first that contain its values; one bit more still counts as
    `bits`.

    Raises:
        BadImage: the bytes cannot be used.
    """
    used = grey_bits(data, name)
    scales = (8, bits if bits > 8 else 12, 12, 16)  # an edit may be a little brighter than its original
    return decode_untrusted(data, name, next(one for one in scales if used <= one + (one == bits > 8)))


def grey_bits(data: bytes, name: str) -> int:
    """Return how many bits a 16-bit grey image uses, 8 to 16; 0 for any other image. Raise BadImage."""
    name = one_line(name)
    image = _open(data, name)
    if image.mode[0] not in "IF":
        return 0
    try:
        return _levels(image, name)[1]
    except BadImage:
        raise
    except _DAMAGE as error:
        raise BadImage(f"{name}: damaged or cut short ({_why(error)})") from error


def decode_planes(data: bytes, name: str, bits: int = 0) -> Pixels:
    """Decode a file as `decode_untrusted` does and raise as it, but a grey JPEG to uint8 (H, W), faster to resize."""
    name = one_line(name)
    image = _open(data, name)
    try:
        if getattr(image, "is_animated", False) and image.format != "MPO":
            raise BadImage(f"{name}: has several frames or pages; save the one that you mean as PNG")
        if image.format == "PNG" and not _is_whole_png(data):
            raise BadImage(f"{name}: damaged (its pixels do not have the checksum that the file states)")
        profile = profile_of(image)
        if profile.fault:
            raise BadImage(f"{name}: {profile.fault}")
        if image.format in ("JPEG", "MPO"):
            return _decode_jpeg(image, profile, data, name)
        if _is_deep(image, data):
            return _decode_deep(image, profile, data, name)
        return _decode_pillow(image, profile, name, bits)
    except BadImage:
        raise
    except _DAMAGE as error:
        raise BadImage(f"{name}: damaged or cut short ({_why(error)})") from error


def check_header(data: bytes, name: str) -> None:
    """Check, from its header only, that an image has a known format and is not too large.

    Raises:
        BadImage: the format is unknown, or the image is too large; one line gives the reason.
    """
    _open(data, one_line(name))


def declared_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in pixels from a file's header; (0, 0) for DICOM and for unusable files."""
    if data[128:132] == b"DICM":  # the preamble may look like a broken TIFF
        return 0, 0
    try:
        image = _open(data, "")
    except BadImage:
        return 0, 0
    return image.width, image.height


def colour_note(data: bytes) -> str:
    """Return "colours converted to sRGB from NAME" if `decode_untrusted` converts a file's colours, else ""."""
    if data[128:132] == b"DICM":
        return ""
    try:
        return profile_of(_open(data, "")).note
    except BadImage:
        return ""


def one_line(text: str) -> str:
    """Return text safe for a one-line message: control characters escaped, overlong names shortened."""
    if text.isprintable() and len(text) <= 300:
        return text
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in text
    )
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 300 else text[:140] + "…" + text[-140:]


def _imdecode(data: bytes, flags: int) -> Pixels | None:
    if not data:
        return None
    try:
        pixels: Pixels | None = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        return None
    return pixels


def _open(data: bytes, name: str) -> Image.Image:
    """Read the header; refuse images that are too large or of an unknown kind."""
    if not data:
        raise BadImage(f"{name}: empty file (0 bytes)")
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        width, height = image.size
    except Image.DecompressionBombError as error:
        # Pillow's own limit, far above ours; only its message contains the size.
        found = re.search(r"\((\d+) pixels\)", str(error))
        raise BadImage(
            _too_large(name, f"{int(found[1]) // 10**6} million" if found else "too many")
        ) from error
    except _DAMAGE as error:
        raise BadImage(f"{name}: {_kind(data)}") from error
    if width < 1 or height < 1:
        raise BadImage(f"{name}: the header states {width}x{height} pixels")
    if width * height > MAX_PIXELS:
        raise BadImage(_too_large(name, f"{width}x{height}"))
    if image.mode not in _MODES:
        raise BadImage(f"{name}: pixels of kind {image.mode} are not read; save as 8-bit or 16-bit PNG")
    if _tag(image, _SAMPLE_FORMAT) == _SIGNED and image.mode == "L":
        raise BadImage(f"{name}: signed 8-bit pixels are not read; save as 8-bit or 16-bit PNG")
    if width * height * (8 if _is_deep(image, data) else _MODES[image.mode]) > MAX_DECODED_BYTES:
        raise BadImage(
            f"{name}: {width}x{height} {image.mode} pixels take more memory than allowed, refused undecoded"
        )
    return image


def _too_large(name: str, size: str) -> str:
    return f"{name}: {size} pixels, refused undecoded; at most {MAX_PIXELS // 10**6} million are read"


def _tag(image: Image.Image, tag: int) -> object:
    """Return a TIFF tag, of several samples the first one's; None without it or for another format."""
    value = image.tag_v2.get(tag) if isinstance(image, TiffImagePlugin.TiffImageFile) else None
    return value[0] if isinstance(value, tuple) and value else value


def _is_deep(image: Image.Image, data: bytes) -> bool:
    """Return True for colours or grey and alpha of 16 bits, of which Pillow keeps the high byte."""
    if image.mode not in ("RGB", "RGBA", "RGBX", "LA"):
        return False
    return data[24] == 16 if image.format == "PNG" else _tag(image, _BITS_PER_SAMPLE) == 16


def _decode_deep(image: Image.Image, profile: ColourProfile, data: bytes, name: str) -> Pixels:
    """Return 16-bit colours as 8 bits; scaled by 8 or 12 bits if no more are in use."""
    if _tag(image, _PLANAR) == _SEPARATE:
        raise BadImage(f"{name}: 16-bit colours in separate planes are not read; save as PNG")
    values = _imdecode(data, cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION)
    if values is None or values.dtype != np.uint16 or values.shape[:2] != (image.height, image.width):
        raise BadImage(f"{name}: damaged or of an unknown kind (its 16-bit colours cannot be decoded)")
    used = int(values[..., :3].max()).bit_length()
    shift = _widening(values[..., :3]) or next(bits for bits in (8, 12, 16) if used <= bits) - 8
    pixels = profile.convert_pixels((values[..., 2::-1] >> shift).astype(np.uint8))
    if values.shape[2] == 4 and image.mode != "RGBX" and _tag(image, _EXTRA_SAMPLES) != _ASSOCIATED:
        alpha = (values[..., 3:] >> 8).astype(np.uint16)
        pixels = ((pixels * alpha + 127) // 255).astype(np.uint8)
    # OpenCV turns a TIFF upright by itself, whatever its flags say.
    return _upright(pixels, image.getexif().get(0x0112, 1)) if image.format == "PNG" else pixels


def _decode_jpeg(image: Image.Image, profile: ColourProfile, data: bytes, name: str) -> Pixels:
    """Decode grey and RGB by OpenCV, which leaves other threads running; other colours by Pillow.

    OpenCV fills a truncated file with grey and reports nothing, so completeness is checked beforehand.
    """
    scans, complete = _jpeg_scans(data)
    if not complete:
        raise BadImage(f"{name}: damaged or cut short (the JPEG has no end)")
    # A small file can ask for thousands of passes over a large image; real ones make about ten.
    if scans * image.width * image.height > 20 * MAX_PIXELS:
        raise BadImage(f"{name}: {scans} scans over {image.width}x{image.height} pixels, refused undecoded")
    if image.mode not in ("L", "RGB"):
        return _decode_pillow(image, profile, name)
    try:
        orientation = image.getexif().get(0x0112, 1)
    except _DAMAGE:
        orientation = 1
    flags = cv2.IMREAD_GRAYSCALE if image.mode == "L" else cv2.IMREAD_COLOR_RGB
    pixels = _imdecode(data, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None or pixels.shape[:2] != (image.height, image.width):
        raise BadImage(f"{name}: damaged (the image data cannot be decoded)")
    return _upright(profile.convert_pixels(pixels), orientation)


def _jpeg_scans(data: bytes) -> tuple[int, bool]:
    """Return the number of scans, and True if the file reaches its end-of-image marker."""
    at, scans = 2, 0
    while (found := _MARKER.search(data, at)) is not None:
        marker, at = data[found.start() + 1], found.end()
        if marker == 0xD9:
            return scans, scans > 0
        if marker == 0x01:
            continue
        scans += marker == 0xDA
        at += int.from_bytes(data[at : at + 2], "big")
    return scans, False


def _is_whole_png(data: bytes) -> bool:
    """Return False if pixels of a PNG have another checksum than stated (PNG, 13.1), which Pillow ignores."""
    at, view = 8, memoryview(data)
    while (kind := data[at + 4 : at + 8]) not in (b"", b"IEND"):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if kind == b"IDAT" and zlib.crc32(view[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            return False
        at = end + 4
    return True


def _upright(pixels: Pixels, orientation: object) -> Pixels:
    """Apply EXIF orientation 1..8 (EXIF 2.32, 4.6.4 A); anything else means upright."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _decode_pillow(image: Image.Image, profile: ColourProfile, name: str, bits: int = 0) -> Pixels:
    """Convert any known mode to RGB, a strip at a time: copies of 50 million pixels would add up."""
    if image.mode[0] in "IF":
        levels, used = _levels(image, name)
        shift = (bits or used) - 8 if used else 0
        return _grey_to_rgb(profile.convert_pixels((levels >> shift).clip(0, 255).astype(np.uint8)))
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    rows = max(1, STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        pixels[top:bottom] = np.asarray(_flatten(image.crop((0, top, image.width, bottom)), profile))
    return pixels


def _flatten(image: Image.Image, profile: ColourProfile) -> Image.Image:
    """Convert to sRGB, transparency on black."""
    if image.mode in ("LA", "La", "PA", "RGBa", "RGBA") or "transparency" in image.info:
        grey = image.mode in ("LA", "La")
        image = image.convert("RGBA")
        alpha, opaque = image.getchannel("A"), image.convert("RGB")
        opaque = profile.convert(opaque.convert("L") if grey else opaque).convert("RGBA")
        opaque.putalpha(alpha)
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), opaque)
        return image.convert("RGB")
    if image.mode in ("P", "RGBX"):
        image = image.convert("RGB")
    return profile.convert(image).convert("RGB")


def _levels(image: Image.Image, name: str) -> tuple[npt.NDArray[np.uint16], int]:
    """Return integers of up to 16 bits, uint16 (H, W), black at 0, and the bits in use; 0 for certain 8 bits."""
    white_is_zero = _tag(image, _PHOTOMETRIC) == _WHITE_IS_ZERO
    packed = _tag(image, _BITS_PER_SAMPLE) == 12
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    values = np.asarray(image)
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind == "f":
        if low >= 0.0 and high <= 1.0:
            share = 1.0 - values if white_is_zero else values
            return (np.rint(share * 65535.0) // 256).astype(np.uint16), 0
        if not np.array_equal(values, np.rint(values)):
            why = "floating point is read from 0 to 1 or as whole numbers; save as 16-bit PNG"
            raise BadImage(f"{name}: values from {low:g} to {high:g}; {why}")
    if low < 0 or high > 0xFFFF:
        raise BadImage(f"{name}: values from {low:.0f} to {high:.0f}; only 8-bit and 16-bit grey is read")
    levels = values.astype(np.uint16)
    shift = _widening(levels)
    levels >>= shift
    if white_is_zero:  # files of 16 bits use fewer without stating it: 12 bits are inverted within 12
        used = 12 if packed and not shift else max(8, int(levels.max()).bit_length())
        levels = ((1 << used) - 1 - levels).astype(np.uint16)
    return levels, 0 if shift else max(8, int(levels.max()).bit_length())


def _widening(levels: npt.NDArray[np.unsignedinteger]) -> int:
    """Return 8 if a program has widened 8-bit levels to 16 bits, by 256 or, rounded, by 257; else 0."""
    parts = (levels[::16], levels) if levels.max() > 255 else ()
    widened = [not (part & 255).any() or int(((part + 1) % 257).max()) <= 2 for part in parts]
    return 8 if widened and all(widened) else 0


def _grey_to_rgb(plane: Pixels) -> Pixels:
    pixels: Pixels = cv2.cvtColor(plane, cv2.COLOR_GRAY2RGB)
    return pixels


_KINDS = (
    (rb"(?s).{128}DICM", "a DICOM file; read it with `plantain ingest dicom`"),
    (rb"(?s).{4}ftyp(heic|heix|mif1|msf1|hevc|avif)", "a HEIC or AVIF image; convert it to JPEG or PNG"),
    (rb"II[*+]\x00|MM\x00[*+]", "a TIFF of a kind that we do not read; save it as 8-bit or 16-bit PNG"),
    (rb"version https://git-lfs", "a Git LFS pointer; fetch the real file with `git lfs pull`"),
    (rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8", "damaged: its header cannot be read"),
)


def _kind(data: bytes) -> str:
    """Return the kind of an unreadable file by its first bytes."""
    head = data[:512]
    for pattern, kind in _KINDS:
        if re.match(pattern, head):
            return kind
    return "not an image that we read; JPEG, PNG, TIFF, BMP, WebP and still GIF are"


def _why(error: BaseException) -> str:
    return one_line(str(error) or type(error).__name__)[:120]
