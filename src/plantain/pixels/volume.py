"""Slices of a NIfTI volume in radiological display, chosen where there is something to see, as 8-bit grey.

The patient's right is image left; axial slices have the front on top, coronal and sagittal ones the head, and sagittal
ones look to the left of the image.
"""

from __future__ import annotations

import gzip
import io
import logging
import zlib
from dataclasses import dataclass

import cv2
import nibabel
import numpy as np
import numpy.typing as npt
from nibabel.filebasedimages import ImageFileError
from nibabel.orientations import OrientationError
from nibabel.spatialimages import HeaderDataError
from nibabel.wrapstruct import WrapStructError

from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import BadImage, one_line
from plantain.pixels.dicom.window import padding_above, without_padding

# nibabel prints how it repaired a header; an unreadable file is an error that names it anyway.
logging.getLogger("nibabel.global").setLevel(logging.CRITICAL)

AXES = {"sagittal": 0, "coronal": 1, "axial": 2}
"""The axis of right-anterior-superior space that each plane cuts across."""

_UNIFORM = 0.6
"""Share of equal neighbours above which whole numbers are labels; of the 8-bit MNI152 averages it is 0.05 to 0.11."""

MASK_VALUES = 16
"""A volume with no more values (BraTS has 4), or whole numbers below twice as many alone, is a mask or label map."""

_SATURATED = 0.2
"""Share of voxels above background at the greatest value above which values up to 1 are a probability map."""

_UNIT_MM = {1: 1000.0, 3: 0.001}
"""Millimetres by the code of space in `xyzt_units`: metres and microns; any other is millimetres or unknown."""

_IMAGE_INTENTS = (0, 1001, 1011, 2001)
"""None, ESTIMATE, DIMLESS and TIME_SERIES; others are labels, statistics, vectors or surfaces (nifti1.h)."""

MAX_VOXELS = 256 * 1024 * 1024
MAX_BYTES = 512 * 1024 * 1024
"""Most that one volume may unpack to: a head at 0.5 mm in 16 bits takes 270 MB."""

Voxels = npt.NDArray[np.integer] | npt.NDArray[np.floating]

_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, EOFError, zlib.error, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(ImageFileError, HeaderDataError, WrapStructError, OrientationError, NotImplementedError, MemoryError),
    np.linalg.LinAlgError,
)


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """A volume with axes towards right, front and head.

    Attributes:
        values: (X, Y, Z), right-anterior-superior.
        spacing_mm: voxel size along the three axes, in mm.
        low, high: values shown black and white: percentiles of the voxels above background.
        volumes: number of volumes in the file; this is the first.
        oblique_degrees: largest angle between an axis and the patient's, in degrees; the display does not correct it.
    """

    values: Voxels
    spacing_mm: tuple[float, float, float]
    low: float
    high: float
    volumes: int = 1
    oblique_degrees: float = 0.0


def read_volume(data: bytes, name: str) -> Volume:
    """Read a NIfTI file, .nii or .nii.gz; of a series only the first volume.

    Args:
        data: the file's bytes.
        name: the file's name in messages.

    Raises:
        BadImage: not NIfTI, damaged, over 512 MB unpacked, colour, a mask, or without a consistent orientation.
    """
    name = one_line(name)
    try:
        raw = _unpack(data, name)
        image = (
            nibabel.Nifti1Image.from_bytes(raw)
            if raw[:4] not in (b"\x1c\x02\0\0", b"\0\0\x02\x1c")
            else nibabel.Nifti2Image.from_bytes(raw)
        )
        shape = tuple(int(n) for n in image.shape)
        if (
            not 3 <= len(shape) <= 5
            or min(shape) < 1
            or int(np.prod(shape[:3], dtype=np.float64)) > MAX_VOXELS
        ):
            raise BadImage(
                f"{name}: {'x'.join(map(str, shape))} voxels; one volume of up to 268 million is read"
            )
        if image.header.get_data_dtype().kind not in "iuf":
            raise BadImage(f"{name}: voxels of kind {image.header.get_data_dtype()} are not read")
        if int(np.prod(shape[:3], dtype=np.float64)) * image.header.get_data_dtype().itemsize > len(raw):
            raise BadImage(f"{name}: cut short: its header announces more voxels than it holds")
        if int(image.dataobj.offset) < int(image.header["sizeof_hdr"]):
            raise BadImage(f"{name}: its header places the voxels within itself (vox_offset)")
        _check_orientation(image, name)
        first = (
            image.slicer[(slice(None),) * 3 + (slice(0, 1),) * (len(shape) - 3)] if len(shape) > 3 else image
        )
        canonical = nibabel.as_closest_canonical(first)
        values = np.asarray(canonical.dataobj).reshape(canonical.shape[:3])
        unit_mm = _UNIT_MM.get(int(image.header["xyzt_units"]) & 7, 1.0)
        zooms = [float(zoom) * unit_mm for zoom in np.linalg.norm(canonical.affine[:3, :3], axis=0)]
        intent = int(image.header["intent_code"])
        straight = float(np.abs(_directions(canonical.affine)).max(axis=0).min())
    except BadImage:
        raise
    except _DAMAGE as error:
        raise BadImage(
            f"{name}: no NIfTI that can be read ({one_line(' '.join(str(error).split()))[:160]})"
        ) from error
    if intent not in _IMAGE_INTENTS:
        raise BadImage(f"{name}: its header declares a label map, statistics or vectors (intent {intent})")
    if not all(0.001 <= zoom <= 100 for zoom in zooms):
        raise BadImage(f"{name}: voxels of {'x'.join(f'{zoom:g}' for zoom in zooms)} mm")
    values = _unpadded(values)
    bottom, top = _range(values, name)
    if _is_label_map(values, counted=image.header.get_data_dtype().kind in "iu"):
        raise BadImage(f"{name}: whole numbers in uniform regions: a mask or label map, not an image")
    oblique = round(float(np.degrees(np.arccos(min(1.0, straight)))), 1)
    volumes = int(np.prod(shape[3:]))
    return Volume(values, (zooms[0], zooms[1], zooms[2]), bottom, top, volumes, oblique)


def choose_slices(volume: Volume, plane: str, count: int) -> list[int]:
    """Return the indices of up to `count` slices, evenly through the middle 60 % of the voxels above background.

    The outer slices of a head, which show scalp or face, are omitted. A thin volume gives fewer slices.
    """
    axis = AXES[plane]
    threshold = volume.low + 0.1 * (volume.high - volume.low)
    others = tuple(other for other in range(3) if other != axis)
    filled = np.count_nonzero(volume.values > threshold, axis=others)
    where = np.flatnonzero(filled > 0.1 * filled.max()) if filled.max() else np.arange(filled.size)
    first, last = int(where[0]), int(where[-1])
    wanted = first + (last - first) * (0.2 + 0.6 * (np.arange(count) + 0.5) / count)
    return sorted({round(float(place)) for place in wanted})


def show_slice(volume: Volume, plane: str, index: int) -> Pixels:
    """Return one slice in radiological display with square pixels: uint8 (H, W, 3). Raise IndexError without it."""
    axis = AXES[plane]
    cut = np.take(volume.values, index, axis=axis).astype(np.float32)
    across, down = (volume.spacing_mm[other] for other in range(3) if other != axis)
    # Both remaining axes grow towards right or front, and front or head: the display runs the other way in each.
    shown = np.nan_to_num(cut[::-1, ::-1].T, nan=volume.low, posinf=volume.high, neginf=volume.low)
    span = max(volume.high - volume.low, 1e-12)
    grey = np.rint(((shown - volume.low) / span).clip(0.0, 1.0) * 255.0).astype(np.uint8)
    if abs(across - down) > 0.01 * min(across, down):
        finest = min(across, down)
        height, width = grey.shape
        size = (
            min(4096, max(1, round(width * across / finest))),
            min(4096, max(1, round(height * down / finest))),
        )
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_CUBIC)
    return np.repeat(np.ascontiguousarray(grey)[:, :, None], 3, axis=2)


def _check_orientation(image: nibabel.Nifti1Image, name: str) -> None:
    """Refuse a file without an orientation, or with two that contradict each other.

    A file has room for two orientations: qform, of the scanner, and sform, which goes before it. After a change by a
    careless tool one of them may be mirrored, and the file does not state which.
    """
    ways = [way for way in ("qform", "sform") if int(image.header[f"{way}_code"])]
    if not ways:
        raise BadImage(f"{name}: states no orientation (qform and sform are 0): left and right are unknown")
    if len(ways) == 2:
        cosines = (_directions(image.get_qform()) * _directions(image.get_sform())).sum(axis=0)
        if float(cosines.min()) < 0.5:
            raise BadImage(f"{name}: qform and sform state two orientations: left and right are unknown")
    if not np.allclose(np.linalg.norm(image.affine[:3, :3], axis=0), image.header.get_zooms()[:3], rtol=0.1):
        raise BadImage(f"{name}: pixdim and sform state two sizes of a voxel")


def _directions(affine: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The unit vectors of an affine's three axes, as columns."""
    axes = affine[:3, :3].astype(np.float64)
    lengths = np.linalg.norm(axes, axis=0)
    if not (np.isfinite(axes).all() and lengths.min() > 0):
        raise ValueError("its axes have no direction")
    return np.asarray(axes / lengths)


def _unpack(data: bytes, name: str) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BadImage(f"{name}: unpacks to more than {MAX_BYTES >> 20} MB")
    return raw


def _is_label_map(values: npt.NDArray[np.generic], *, counted: bool) -> bool:
    """Return True if values are `counted` (stored as whole numbers) or whole, and nearly all neighbours are equal.

    Background is not compared. Noise makes neighbours differ in an image, however few its levels; a segmentation
    differs at borders alone.
    """
    slices = np.asarray(values[:, :, :: max(1, values.shape[2] // 32)], np.float64)
    levels, counts = np.unique(slices.ravel()[:: max(1, slices.size // 250_000)], return_counts=True)
    inside = ~np.isin(slices, (slices.min(), levels[counts.argmax()]))  # padding and background are uniform
    inside = inside[1:] & inside[:-1]
    one, other = slices[1:][inside], slices[:-1][inside]
    if one.size == 0 or not (counted or np.array_equal(one, np.rint(one))):
        return False
    return one.min() != one.max() and float((one == other).mean()) > _UNIFORM


def _unpadded(values: Voxels) -> Voxels:
    """Return the volume with its least value, or 0, where a program filled its corners with a large one."""
    sample = _sample(values)
    finite = sample[np.isfinite(sample)]
    above = padding_above(finite) if finite.size else None
    above = np.inf if finite.size and np.isposinf(sample).any() else above
    last = [max(1, length - 1) for length in values.shape]
    if above is None or not (values[:: last[0], :: last[1], :: last[2]] == above).any():
        return values
    return np.where(values == above, values.dtype.type(min(0.0, finite.min())), values)


def _sample(values: npt.NDArray[np.generic]) -> Floats:
    return values.ravel()[:: max(1, values.size // 2_000_000)].astype(np.float64)


def _range(values: npt.NDArray[np.generic], name: str) -> tuple[float, float]:
    """Return the 1st and 99.5th percentile of the voxels that are not background, from every few of a large volume."""
    sample = _sample(values)
    total, sample = sample.size, sample[np.isfinite(sample)]
    if sample.size == 0:
        raise BadImage(f"{name}: holds no finite value")
    levels = np.unique(sample)
    few = 2 * MASK_VALUES if np.isin(levels, np.arange(2 * MASK_VALUES)).all() else MASK_VALUES
    if 1 < levels.size <= few:
        raise BadImage(f"{name}: only {levels.size} different values: a mask or label map, not an image")
    least, most = (np.count_nonzero(sample == end) for end in (sample.min(), sample.max()))
    if sample.max() <= 1.0 and least > most > _SATURATED * (sample.size - least):
        raise BadImage(f"{name}: many voxels at its greatest value: a mask or probability map, not an image")
    sample = without_padding(sample)
    floor, ceiling = (float(bound) for bound in np.percentile(sample, (0.5, 99.5)))
    if sample.size < 0.99 * total:  # where padding or NaN is all the background, nothing else shows its level
        floor = min(floor, 0.0)
    above = sample[sample > floor + 0.05 * (ceiling - floor)]
    if above.size == 0:
        raise BadImage(f"{name}: all its voxels are alike")
    # Where the background is dark, black stays at the background: fluid must not fall below it.
    bottom, top = min(floor, float(np.percentile(above, 1.0))), float(np.percentile(above, 99.5))
    if top <= bottom:
        raise BadImage(f"{name}: all its voxels are alike")
    return bottom, top
