"""DICOM files from outside to 8-bit pixels as a viewer shows them: no header, no overlay, one frame at a time.

Grey goes through one table of at most 65,536 entries, so that modality LUT, window, inversion and rounding are computed
once per stored value and not once per pixel.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
from pydicom import Dataset
from pydicom.encaps import get_frame
from pydicom.pixels import apply_color_lut, apply_modality_lut, apply_voi_lut, pixel_array
from pydicom.uid import JPEG2000, JPEG2000Lossless, JPEGBaseline8Bit, JPEGExtended12Bit, RLELossless

from plantain.pixels.apart import decode_apart
from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import MAX_DECODED_BYTES, MAX_PIXELS, BadImage, one_line
from plantain.pixels.dicom.files import DAMAGE, frame_count, read_dicom, unreadable
from plantain.pixels.dicom.frames import header_of_frame
from plantain.pixels.dicom.window import film_window, window

WINDOWS = ("file", "percentile", "film")
"""`file`: the file's first window or VOI LUT, percentiles where it has none that is valid. `film`: logarithmic, for
radiographs stored linear in dose."""

LARGEST = 1e9
"""Bound of what a window or a rescale may state; scanners stay below a million."""

FLAT_SHOWN, FLAT_STORED = 4, 16
"""A picture of fewer grey levels than the first, of more stored ones than the second, was not meant to look so."""

COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")

_JPEG_2000 = (JPEG2000, JPEG2000Lossless)
_SIZE = re.compile(
    rb"\xff\x4f\xff\x51.{4}(.{16})|\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf\xf7].{3}(.{4})", re.DOTALL
)


def decode_dicom(data: bytes, name: str, frame: int = 0, how: str = "file") -> Pixels:
    """One frame of a DICOM file as a viewer shows it: uint8 (H, W, 3), RGB, grey as three equal channels.

    Args:
        data: the file's bytes.
        name: how a message names it.
        frame: from 0.
        how: one of `WINDOWS`.

    Raises:
        BadImage: no pixels, too many, an unknown kind of colour, damage, or a codec that is not installed.
    """
    return render_frame(read_dicom(data, name), name, frame, how)


def render_frame(dataset: Dataset, name: str, frame: int = 0, how: str = "file") -> Pixels:
    """As `decode_dicom`, of a data set that was read already."""
    pixels = render_planes(dataset, name, frame, how)
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)


def render_planes(dataset: Dataset, name: str, frame: int = 0, how: str = "file") -> Pixels:
    """As `render_frame`, but grey comes back as (H, W): a third of the bytes to resize."""
    name = one_line(name)
    try:
        photometric = str(dataset.get("PhotometricInterpretation", ""))
        coded = _guard(dataset, name, frame)
        stored = _decode(dataset, coded, frame)
        if photometric in ("MONOCHROME1", "MONOCHROME2"):
            header = header_of_frame(dataset, frame)
            return _grey(_clear_unused_bits(stored, int(header.BitsStored)), header, how)
        if photometric == "PALETTE COLOR":
            colours = apply_color_lut(stored, dataset)
            # Some write 8-bit entries and call them 16-bit.
            return _eight_bits(colours, 16 if int(colours.max()) > 255 else 8)
        if photometric in COLOURS and stored.ndim == 3:
            return _eight_bits(stored, int(dataset.BitsStored))
    except BadImage:
        raise
    except DAMAGE as error:
        raise unreadable(name, error) from error
    raise BadImage(f"{name}: PhotometricInterpretation {one_line(photometric)!r} is not read")


def modality_values(dataset: Dataset, name: str, frame: int = 0) -> tuple[Floats, Dataset]:
    """One grey frame in the units of its modality (Hounsfield units of CT, else as its header scales them).

    Returns:
        float64 (H, W), before any window; and the frame's own header.

    Raises:
        BadImage: as `decode_dicom`, and for colour.
    """
    name = one_line(name)
    try:
        if str(dataset.get("PhotometricInterpretation", "")) not in ("MONOCHROME1", "MONOCHROME2"):
            raise BadImage(f"{name}: a colour picture has no modality values")
        stored = _decode(dataset, _guard(dataset, name, frame), frame)
        header = header_of_frame(dataset, frame)
        values = apply_modality_lut(_clear_unused_bits(stored, int(header.BitsStored)), header)
        return np.asarray(values, np.float64), header
    except BadImage:
        raise
    except DAMAGE as error:
        raise unreadable(name, error) from error


def _decode(dataset: Dataset, coded: bytes, frame: int) -> npt.NDArray[np.integer]:
    """A frame's stored values, by a decoder that a damaged stream does not crash, or else in a process of its own."""
    syntax = dataset.file_meta.TransferSyntaxUID
    plugin = "pydicom" if syntax == RLELossless else "pylibjpeg" if syntax in _JPEG_2000 else "pillow"
    if not syntax.is_encapsulated:
        plugin = ""
    elif syntax != JPEGBaseline8Bit and plugin == "pillow":
        return decode_apart(dataset, coded)
    values: npt.NDArray[np.integer] = pixel_array(dataset, index=frame, decoding_plugin=plugin)
    return values


def _guard(dataset: Dataset, name: str, frame: int) -> bytes:
    """Refuses before decoding what would take too much memory, by the header and by the codec's own header.

    Returns:
        The frame's compressed bytes; none where it is not compressed.
    """
    if "PixelData" not in dataset:
        raise BadImage(f"{name}: holds no pixel data")
    rows, columns = int(dataset.get("Rows", 0)), int(dataset.get("Columns", 0))
    samples, bits = int(dataset.get("SamplesPerPixel", 1)), int(dataset.get("BitsAllocated", 8))
    if not 0 < rows * columns <= MAX_PIXELS:
        raise BadImage(f"{name}: {columns}x{rows} pixels; 1 to {MAX_PIXELS // 10**6} million are read")
    if samples not in (1, 3) or rows * columns * samples * (bits // 8 or 1) > MAX_DECODED_BYTES:
        raise BadImage(f"{name}: {columns}x{rows} pixels of {samples} times {bits} bits, refused undecoded")
    if not 0 <= frame < frame_count(dataset):
        raise BadImage(f"{name}: has no frame {frame}; it says {frame_count(dataset)} in all")
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
                f"{name}: the header says {columns}x{rows} pixels, the picture in it {width}x{height}"
            )
    return coded


def _clear_unused_bits(stored: npt.NDArray[np.integer], used: int) -> npt.NDArray[np.integer]:
    """Old files keep overlays in the bits above those of the image; they are annotations, and may be names."""
    stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    allocated = stored.dtype.itemsize * 8
    if not 0 < used < allocated:
        return stored
    room = allocated - used
    unsigned = stored.view(f"u{stored.dtype.itemsize}")
    if stored.dtype.kind == "u":
        kept: npt.NDArray[np.integer] = unsigned & stored.dtype.type((1 << used) - 1)
    else:
        kept = np.right_shift((unsigned << unsigned.dtype.type(room)).view(stored.dtype), room)
    return kept


def _padding(dataset: Dataset, kind: np.dtype[np.integer]) -> tuple[int, int] | None:
    """The range of stored values that fill up what the detector did not see (PS3.3, C.7.5.1.1.2); None without."""
    ends = [dataset.get(name) for name in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
    stated = [end for end in ends if isinstance(end, int)]
    if not stated or not isinstance(ends[0], int):
        return None
    # Some write a negative value as the unsigned one of the same bits, or in more bits than the image has.
    bits = np.array([end & 0xFFFF_FFFF for end in stated], np.uint32).astype(f"u{kind.itemsize}").view(kind)
    settled = _clear_unused_bits(bits, int(dataset.BitsStored))
    return int(settled.min()), int(settled.max())


def _grey(stored: npt.NDArray[np.integer], dataset: Dataset, how: str) -> Pixels:
    """Stored values to grey levels, padding black.

    A header that makes one flat grey of a picture is not believed: such a picture is read by its content.
    """
    if _is_sane(dataset):
        shown = _rendered(stored, dataset, how)
        if not _is_flat(shown, FLAT_SHOWN) or _is_flat(_without_padding(stored, dataset), FLAT_STORED):
            return shown
    return _rendered(stored, _without_scales(dataset), "percentile")


def _is_sane(dataset: Dataset) -> bool:
    """Whether rescale slope and intercept, where there are any, are numbers that a scanner could mean."""
    slope, intercept = _first(dataset.get("RescaleSlope", 1)), _first(dataset.get("RescaleIntercept", 0))
    if slope is None or intercept is None or not np.isfinite([slope, intercept]).all():
        return False
    return 1e-9 < abs(slope) < LARGEST and abs(intercept) < LARGEST


def _without_scales(dataset: Dataset) -> Dataset:
    """The header of a frame, of which nothing is believed that maps stored values to others."""
    header = Dataset()
    header.update({tag: dataset.get_item(tag) for tag in list(dataset.keys()) if tag.group < 0x7FE0})
    for name in ("RescaleSlope", "RescaleIntercept", "ModalityLUTSequence"):
        if name in header:
            del header[name]
    return header


def _is_flat(values: npt.NDArray[np.integer], levels: int) -> bool:
    """Whether nearly all of a picture lies within so few levels."""
    low, high = np.percentile(values.ravel()[:: max(1, values.size // 250_000)], (0.5, 99.5))
    return bool(high - low < levels) and int(values.max()) - int(values.min()) < 8 * levels


def _rendered(stored: npt.NDArray[np.integer], dataset: Dataset, how: str) -> Pixels:
    """As `_grey`, by the header as it is; by a table where there are few enough different values."""
    invert = dataset.PhotometricInterpretation == "MONOCHROME1"
    low, high = int(stored.min()), int(stored.max())
    if high - low >= 1 << 16:
        shown = _shown(apply_modality_lut(stored, dataset), stored, dataset, how, invert)
        return _blacken(shown, stored, _padding(dataset, stored.dtype))
    levels = np.arange(low, high + 1, dtype=stored.dtype)
    table = _shown(apply_modality_lut(levels, dataset), stored, dataset, how, invert)
    # Indices may not be negative: signed values are moved up to begin at 0, in place of a copy twice as wide.
    places = (stored - stored.dtype.type(low)).view(f"u{stored.dtype.itemsize}")
    grey: Pixels = np.take(table, places)
    return _blacken(grey, stored, _padding(dataset, stored.dtype))


def _blacken(shown: Pixels, stored: npt.NDArray[np.integer], padding: tuple[int, int] | None) -> Pixels:
    """Padding is black like the air around a body, also where MONOCHROME1 would make it white.

    Only what reaches the border: on a film whose padding is 0, a lead letter may hold zeros as well.
    """
    if padding is None:
        return shown
    filled = ((stored >= padding[0]) & (stored <= padding[1])).astype(np.uint8)
    if filled.any():
        ringed = cv2.copyMakeBorder(filled, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
        cv2.floodFill(ringed, None, (0, 0), 2)
        shown[ringed[1:-1, 1:-1] == 2] = 0
    return shown


def _shown(
    values: npt.NDArray[np.floating],
    stored: npt.NDArray[np.integer],
    dataset: Dataset,
    how: str,
    invert: bool,
) -> Pixels:
    """Grey levels of `values`, which are the image's or one of each stored level."""
    chosen: Callable[[npt.NDArray[np.floating]], Pixels] | None = None
    if how == "file":
        chosen = _file_window(dataset, invert)
    if chosen is not None:
        return chosen(values)
    real = apply_modality_lut(_without_padding(stored, dataset), dataset).astype(np.float32)
    if how == "film" and (real > 0).any():
        low, high = np.percentile(real[real > 0], (0.5, 99.5))
        return film_window(values.clip(low, high), 0.0, 100.0, invert=invert)
    low, high = np.percentile(real, (0.5, 99.5))
    if high <= low:
        low, high = float(real.min()), float(real.max())
    if high <= low:
        return np.zeros(values.shape, np.uint8)
    share = ((values.astype(np.float32) - low) / (high - low)).clip(0.0, 1.0)
    shown: Pixels = np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)
    return shown


def _file_window(dataset: Dataset, invert: bool) -> Callable[[npt.NDArray[np.floating]], Pixels] | None:
    """The file's own VOI transformation; None where it has none that is valid (some scanners write a width of 0)."""
    if dataset.get("VOILUTSequence"):
        return lambda values: _looked_up(values, dataset, invert)
    centre, width = _first(dataset.get("WindowCenter")), _first(dataset.get("WindowWidth"))
    if centre is None or width is None or not (abs(centre) < LARGEST and 0 < width < LARGEST):
        return None
    function = str(dataset.get("VOILUTFunction") or "LINEAR").upper()
    if function == "SIGMOID":
        return lambda values: _sigmoid(values, centre, width, invert)
    if function == "LINEAR_EXACT":
        # The standard's linear window reaches from centre - width/2 to centre + width/2 - 1; this one is whole.
        return lambda values: window(values, centre + 0.5, width + 1.0, invert=invert)
    return (lambda values: window(values, centre, width, invert=invert)) if width >= 1 else None


def _looked_up(values: npt.NDArray[np.floating], dataset: Dataset, invert: bool) -> Pixels:
    """By the file's first VOI LUT, whose entries have as many bits as the largest of them needs.

    Some write entries of 12 bits and call them 16-bit, which would be shown nearly black.
    """
    entries = apply_voi_lut(values.astype(np.int64), dataset, prefer_lut=True)
    held = dataset.VOILUTSequence[0].LUTData
    largest = int(np.frombuffer(held, "<u2").max()) if isinstance(held, bytes) else int(np.max(held))
    share = (entries / ((1 << max(8, largest.bit_length())) - 1)).clip(0.0, 1.0)
    shown: Pixels = np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)
    return shown


def _sigmoid(values: npt.NDArray[np.floating], centre: float, width: float, invert: bool) -> Pixels:
    share = 1.0 / (
        1.0 + np.exp(-4.0 * (values.astype(np.float64) - centre).clip(-50 * width, 50 * width) / width)
    )
    return np.rint((1.0 - share if invert else share) * 255.0).astype(np.uint8)


def _without_padding(stored: npt.NDArray[np.integer], dataset: Dataset) -> npt.NDArray[np.integer]:
    padding = _padding(dataset, stored.dtype)
    kept = stored.ravel()
    if padding is not None:
        kept = stored[(stored < padding[0]) | (stored > padding[1])]
    # Percentiles of every fourth value are those of the image, in a quarter of the time.
    return (kept if kept.size else stored.ravel())[:: 4 if kept.size > 1_000_000 else 1]


def _eight_bits(values: npt.NDArray[np.integer], bits: int) -> Pixels:
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    return (values >> max(bits - 8, 0)).clip(0, 255).astype(np.uint8)


def _first(value: object) -> float | None:
    """The first of the values that a DICOM decimal string may hold; None where it is empty or no number."""
    if not isinstance(value, (str, int, float)) and hasattr(value, "__iter__"):
        value = next(iter(value), None)
    try:
        return float(str(value))
    except ValueError:
        return None
