"""Decodes DICOM files from outside to 8-bit pixels as a viewer shows them, one frame at a time, without overlays.

Grey goes through a table of at most 65,536 entries: modality LUT, window, inversion and rounding are computed once per
stored value, not once per pixel.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable

import cv2
import numpy as np
import numpy.typing as npt
from pydicom import Dataset
from pydicom.encaps import get_frame
from pydicom.pixels import apply_color_lut, apply_modality_lut, apply_voi, apply_windowing, pixel_array
from pydicom.uid import JPEG2000, JPEG2000Lossless, JPEGBaseline8Bit, JPEGExtended12Bit, RLELossless

from plantain.pixels.apart import decode_apart
from plantain.pixels.arrays import Field, Floats, Pixels
from plantain.pixels.colour import colour_profile
from plantain.pixels.decode import MAX_DECODED_BYTES, MAX_PIXELS, BadImage, one_line
from plantain.pixels.dicom.files import DAMAGE, frame_count, unreadable
from plantain.pixels.dicom.frames import header_of_frame, own_header
from plantain.pixels.dicom.window import film_window, linear_window, without_padding

WINDOWS = ("file", "percentile", "film")
"""`file`: the file's first window or VOI LUT, percentiles where it has no valid one. `film`: logarithmic, for
radiographs stored linear in dose."""

LARGEST = 1e9
"""Largest number of a window or a rescale; scanners stay below a million."""

FLAT_SHOWN, FLAT_STORED = 4, 16
"""An image of fewer grey levels than the first, from more stored ones than the second, has a wrong header."""

COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")

_JPEG_2000 = (JPEG2000, JPEG2000Lossless)
_SIZE = re.compile(
    rb"\xff\x4f\xff\x51.{4}(.{16})|\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf\xf7].{3}(.{4})", re.DOTALL
)


Bounds = tuple[float, float]
"""Values, after the modality LUT, that become black and white."""


def render_planes(
    dataset: Dataset, name: str, frame: int = 0, how: str = "file", bounds: Bounds | None = None
) -> Pixels:
    """Return one frame as a viewer shows it: uint8 (H, W, 3), RGB, or grey as (H, W).

    Args:
        dataset: from `read_dicom`.
        name: of the file, for messages.
        frame: from 0.
        how: one of `WINDOWS`.
        bounds: values shown black and white, from the frame's series; None for the frame's own percentiles.

    Raises:
        BadImage: no pixels, too many, an unknown kind of colour, damage, or a codec that is not installed.
    """
    name = one_line(name)
    try:
        photometric = str(dataset.get("PhotometricInterpretation", ""))
        coded = _guard(dataset, name, frame)
        stored = _decode(dataset, coded, frame)
        if photometric in ("MONOCHROME1", "MONOCHROME2"):
            header = header_of_frame(dataset, frame)
            return _grey(stored, header, how, bounds)
        if photometric == "PALETTE COLOR":
            colours = apply_color_lut(stored, dataset)
            # Some write 8-bit entries and call them 16-bit.
            pixels = _eight_bits(colours[..., :3], 16 if int(colours.max()) > 255 else 8)
            return colour_profile(dataset.get("ICCProfile")).convert_pixels(pixels)
        if photometric in COLOURS and stored.ndim == 3:
            pixels = _eight_bits(stored, int(dataset.BitsStored))
            return colour_profile(dataset.get("ICCProfile")).convert_pixels(pixels)
    except BadImage:
        raise
    except DAMAGE as error:
        raise unreadable(name, error) from error
    raise BadImage(f"{name}: PhotometricInterpretation {one_line(photometric)!r} is not read")


def contrast_values(dataset: Dataset, name: str, frame: int) -> Floats:
    """Return up to 100,000 values of a grey frame, without padding, after the modality LUT: float64 (N,).

    Raises:
        BadImage: as `render_planes`.
    """
    try:
        stored = _decode(dataset, _guard(dataset, name, frame), frame)
        kept = _kept(stored, _padding(dataset, stored.dtype))
        values = without_padding(
            np.asarray(apply_modality_lut(kept, header_of_frame(dataset, frame)), np.float64)
        )
    except BadImage:
        raise
    except DAMAGE as error:
        raise unreadable(name, error) from error
    return values[:: max(1, values.size // 100_000)]


def _decode(dataset: Dataset, coded: bytes, frame: int) -> npt.NDArray[np.integer]:
    """Return a frame's stored values, by a decoder that survives damaged streams, or else in another process.

    pydicom clears the bits above those of the image, where old files keep overlays, which may be names.
    """
    syntax = dataset.file_meta.TransferSyntaxUID
    plugin = "pydicom" if syntax == RLELossless else "pylibjpeg" if syntax in _JPEG_2000 else "pillow"
    if not syntax.is_encapsulated:
        plugin = ""
    bits, high = int(dataset.BitsStored), int(dataset.get("HighBit") or 0)
    above = max(
        0, min(high, int(dataset.BitsAllocated) - 1) + 1 - bits
    )  # of old files, bits below the image's
    if plugin == "pillow" and syntax != JPEGBaseline8Bit:
        values = decode_apart(dataset, coded, bits + above)
    else:
        values = pixel_array(dataset, index=frame, decoding_plugin=plugin, bits_stored=bits + above)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if not above:
        return values
    most = max(int(values.max()), ~int(values.min()))  # of 12 signed bits, 2047 or -2048
    below = most >> (bits - int(dataset.PixelRepresentation)) or not (values & ((1 << above) - 1)).any()
    return values >> above if below else values


def _guard(dataset: Dataset, name: str, frame: int) -> bytes:
    """Refuse, before decoding, too large frames by their header and the codec's own header.

    Returns:
        The frame's compressed bytes; none where it is not compressed.
    """
    if "PixelData" not in dataset:
        real = "FloatPixelData" in dataset or "DoubleFloatPixelData" in dataset
        raise BadImage(f"{name}: {'floating-point pixels are not read' if real else 'has no pixel data'}")
    rows, columns = int(dataset.get("Rows", 0)), int(dataset.get("Columns", 0))
    samples, bits = int(dataset.get("SamplesPerPixel", 1)), int(dataset.get("BitsAllocated", 8))
    if not 0 < rows * columns <= MAX_PIXELS:
        raise BadImage(f"{name}: {columns}x{rows} pixels; 1 to {MAX_PIXELS // 10**6} million are read")
    if samples not in (1, 3) or rows * columns * samples * (bits // 8 or 1) > MAX_DECODED_BYTES:
        raise BadImage(f"{name}: {columns}x{rows} pixels of {samples} times {bits} bits, refused undecoded")
    if not 0 <= frame < frame_count(dataset):
        raise BadImage(f"{name}: has no frame {frame} of {frame_count(dataset)}")
    if dataset.file_meta.TransferSyntaxUID == JPEGExtended12Bit and int(dataset.get("BitsStored", 8)) > 8:
        raise BadImage(
            f"{name}: lossy JPEG of 12 bits has no free decoder; convert it to another transfer syntax"
        )
    coded = b""
    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        coded = bytes(get_frame(dataset.PixelData, frame, number_of_frames=frame_count(dataset)))
        # Only these begin with a marker; run lengths may hold its bytes by chance, and are bounded by the header.
        found = _SIZE.search(coded[:65536]) if coded[:2] in (b"\xff\x4f", b"\xff\xd8") else None
        if found and found[1]:
            across, down, left, top = struct.unpack(">4I", found[1])
            width, height = across - left, down - top
        elif found:
            height, width = struct.unpack(">2H", found[2])
        else:
            return coded
        if (width, height) != (columns, rows):
            raise BadImage(
                f"{name}: the header states {columns}x{rows} pixels, its image has {width}x{height}"
            )
    return coded


def _padding(dataset: Dataset, kind: np.dtype[np.integer]) -> tuple[int, int] | None:
    """Return the range of stored values outside of the detector's field (PS3.3, C.7.5.1.1.2); None without one."""
    ends = [dataset.get(name) for name in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
    stated = [end for end in ends if isinstance(end, int)]
    if not stated or not isinstance(ends[0], int):
        return None
    # Some write a negative value as the unsigned one of the same bits.
    bits = np.array([end & 0xFFFF_FFFF for end in stated], np.uint32).astype(f"u{kind.itemsize}").view(kind)
    return int(bits.min()), int(bits.max())


def _kept(stored: npt.NDArray[np.integer], padding: tuple[int, int] | None) -> npt.NDArray[np.integer]:
    """Return the values that are not padding, (N,); all of an image that is nothing else."""
    kept = stored.ravel()
    if padding is not None:
        kept = kept[(kept < padding[0]) | (kept > padding[1])]
    return kept if kept.size else stored.ravel()


def _grey(stored: npt.NDArray[np.integer], dataset: Dataset, how: str, bounds: Bounds | None) -> Pixels:
    """Return grey levels, uint8 (H, W), padding black.

    A header that makes one flat grey of an image is ignored: such an image is shown by its content.
    """
    padding = _padding(dataset, stored.dtype)
    # Percentiles of every fourth value are those of the image, in a quarter of the time.
    kept = _kept(stored, padding)
    kept = kept[:: 4 if kept.size > 1_000_000 else 1]
    if _is_sane(dataset):
        shown = _rendered(stored, kept, dataset, how, bounds)
        if bounds or not _is_flat(shown, FLAT_SHOWN) or _is_flat(kept, FLAT_STORED):
            return _blacken(shown, stored, padding)
    header = own_header(dataset)
    for name in ("RescaleSlope", "RescaleIntercept", "ModalityLUTSequence"):
        if name in header:
            del header[name]
    return _blacken(_rendered(stored, kept, header, "percentile"), stored, padding)


def _is_sane(dataset: Dataset) -> bool:
    """Return True if rescale slope and intercept are numbers that a scanner could mean."""
    slopes, intercepts = _floats(dataset.get("RescaleSlope", 1)), _floats(dataset.get("RescaleIntercept", 0))
    if not slopes or not intercepts:
        return False
    slope, intercept = slopes[0], intercepts[0]
    return 1e-9 < abs(slope) < LARGEST and abs(intercept) < LARGEST


def _is_flat(values: npt.NDArray[np.integer], levels: int) -> bool:
    """Return True if nearly all of an image is within so few levels."""
    low, high = np.percentile(values.ravel()[:: max(1, values.size // 250_000)], (0.5, 99.5))
    return bool(high - low < levels) and int(values.max()) - int(values.min()) < 8 * levels


def _rendered(
    stored: npt.NDArray[np.integer],
    kept: npt.NDArray[np.integer],
    dataset: Dataset,
    how: str,
    bounds: Bounds | None = None,
) -> Pixels:
    """Return grey levels by the header; by a table where there are few enough different values."""
    low, high = int(stored.min()), int(stored.max())
    real = without_padding(np.asarray(apply_modality_lut(kept, dataset), np.float32))
    if high - low >= 1 << 16:
        return _shown(apply_modality_lut(stored, dataset), real, dataset, how, bounds)
    levels = np.arange(low, high + 1, dtype=stored.dtype)
    table = _shown(apply_modality_lut(levels, dataset), real, dataset, how, bounds)
    # Indices may not be negative: signed values are moved up to start at 0.
    grey: Pixels = np.take(table, (stored - stored.dtype.type(low)).view(f"u{stored.dtype.itemsize}"))
    return grey


def _blacken(shown: Pixels, stored: npt.NDArray[np.integer], padding: tuple[int, int] | None) -> Pixels:
    """Make padding black like the air around a body, also where MONOCHROME1 would make it white.

    Only if it reaches the border: a lead letter may have the same value.
    """
    if padding is not None:
        filled = ((stored >= padding[0]) & (stored <= padding[1])).astype(np.uint8)
        ringed = cv2.copyMakeBorder(filled, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
        cv2.floodFill(ringed, None, (0, 0), 2)
        shown[ringed[1:-1, 1:-1] == 2] = 0
    return shown


def _shown(
    values: npt.NDArray[np.number], real: Field, dataset: Dataset, how: str, bounds: Bounds | None
) -> Pixels:
    """Return grey levels of `values`, which are the image's or one of each stored level.

    Args:
        real: the image's values without padding, after the modality LUT.
    """
    shape = dataset.get("PresentationLUTShape", "")  # applies after the VOI step, PS3.3 C.11.6
    if shape not in ("INVERSE", "IDENTITY"):
        shape = "INVERSE" if dataset.PhotometricInterpretation == "MONOCHROME1" else "IDENTITY"
    invert = shape == "INVERSE"
    share = _file_window(values, dataset) if how == "file" else None
    if share is not None:
        return np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)
    if how == "film" and (real > 0).any():
        low, high = np.percentile(real[real > 0], (0.5, 99.5))
        return film_window(values, (float(low), float(high)), invert=invert)
    low, high = bounds or np.percentile(real, (0.5, 99.5))
    if high <= low:
        low, high = float(real.min()), float(real.max())
    return linear_window(values.astype(np.float32), (float(low), float(high)), invert=invert)


def _file_window(values: npt.NDArray[np.number], dataset: Dataset) -> Floats | None:
    """Return grey in [0, 1] by the file's first VOI transformation; None where it has no valid one."""
    if dataset.get("VOILUTSequence"):
        entries = apply_voi(values.astype(np.int64), dataset)
        item = dataset.VOILUTSequence[0]
        largest, bits = int(np.max(item.LUTData)).bit_length(), int(item.LUTDescriptor[2])
        # Some write entries of 12 bits and call them 16-bit, which would be shown nearly black.
        bits = max(8, largest) if largest > bits or (bits == 16 and largest <= 12) else bits
        return np.asarray((entries / ((1 << bits) - 1)).clip(0.0, 1.0))
    if (window := _window(dataset)) is None:
        return None
    centre, width, function = window
    # pydicom's output has the range of the stored bits; of 16 bits it is [0, 65535].
    stated = Dataset()
    stated.PhotometricInterpretation, stated.BitsStored, stated.PixelRepresentation = "MONOCHROME2", 16, 0
    stated.WindowCenter, stated.WindowWidth, stated.VOILUTFunction = centre, width, function
    with np.errstate(over="ignore"):
        return np.asarray(apply_windowing(values.astype(np.float64), stated) / 65535.0)


def stated_bounds(dataset: Dataset) -> Bounds | None:
    """Return the (lower, upper) ends of a frame's first valid window; None if it has none."""
    window = _window(dataset)
    return None if window is None else (window[0] - window[1] / 2, window[0] + window[1] / 2)


def _window(dataset: Dataset) -> tuple[float, float, str] | None:
    """Return centre, width and function of the first valid window, if any: some scanners write a width of 0."""
    function = str(dataset.get("VOILUTFunction") or "LINEAR").upper()
    function = function if function in ("LINEAR_EXACT", "SIGMOID") else "LINEAR"
    least = 1.0 if function == "LINEAR" else np.finfo(float).tiny
    centres, widths = _floats(dataset.get("WindowCenter")), _floats(dataset.get("WindowWidth"))
    for centre, width in zip(centres, widths, strict=False):
        if abs(centre) < LARGEST and least <= width < LARGEST:
            return centre, width, function
    return None


def _eight_bits(values: npt.NDArray[np.integer], bits: int) -> Pixels:
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    return (values >> max(bits - 8, 0)).clip(0, 255).astype(np.uint8)


def _floats(value: object) -> list[float]:
    """Return the values of a DICOM decimal string, NaN where one is not a number."""
    several = value if not isinstance(value, (str, int, float)) and isinstance(value, Iterable) else [value]
    found = []
    for one in several:
        try:
            found.append(float(str(one)))
        except ValueError:
            found.append(math.nan)
    return found
