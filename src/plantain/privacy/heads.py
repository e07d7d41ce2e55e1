"""Faces in slices and volumes of heads, by geometry.

Tissue as low as nose and cheeks and in front of the middle is face: skull-stripped brains and defaced heads have
none there.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.boxes import Box

HEAD_MM = 185.0
"""Length of an adult's head from front to back, where the scale of a slice is not known."""

ORBITS_MM, NOSE_MM, LIPS_MM = 85.0, 120.0, 150.0
"""Distance below the vertex of the orbits, and of the upper and lower end of nose and cheeks, in adults."""

APART_MM = 20.0
"""Slices of a volume that are further apart show outlines, from which no face can be reconstructed."""

FACE_CM2 = 6.0
"""Least area of tissue in front of the middle and as low as the nose, in a slice or in a volume seen from the side."""


@dataclass(frozen=True, slots=True)
class Head:
    """The position of the face in a volume of a head, in voxel indices of right-anterior-superior space.

    Attributes:
        front: voxels from this index on are in front of the middle.
        below: voxels up to this index (exclusive) are below the upper rim of the orbits.
    """

    front: int
    below: int


def face_of_volume(
    values: npt.NDArray[np.integer] | npt.NDArray[np.floating],
    spacing_mm: tuple[float, float, float],
    threshold: float,
) -> Head | None:
    """Locate the face in a volume (X, Y, Z), right-anterior-superior; return None if no face is found.

    Args:
        values: voxel values.
        spacing_mm: voxel size along the three axes, in mm.
        threshold: value above which a voxel is tissue.
    """
    # A centimetre of tissue on a line from ear to ear: single voxels of noise in the air make no head.
    side = np.count_nonzero(values > threshold, axis=0) * spacing_mm[0] >= 10.0
    # Seen from the side, with the front to the left and the vertex on top, as a sagittal slice is shown.
    seen = _largest(np.ascontiguousarray(side[::-1, ::-1].T))
    region = _face_region(seen, spacing_mm[1], spacing_mm[2])
    if region is None or max(spacing_mm[1:]) > APART_MM:
        return None
    across, orbits, _ = region
    return Head(front=values.shape[1] - across, below=values.shape[2] - orbits)


def level_of_air(values: npt.NDArray[np.integer] | npt.NDArray[np.floating]) -> float | None:
    """Return the value of all voxels on the six sides of a volume; None if they differ, as in a raw scan."""
    first = values[0, 0, 0]
    sides = (side for axis in range(3) for side in (values.take(0, axis), values.take(-1, axis)))
    return float(first) if all(bool((side == first).all()) for side in sides) else None


def face_in_slice(
    head: Head, shape: tuple[int, int, int], plane: str, index: int, pixels: Pixels
) -> tuple[Box, ...]:
    """Return the box of the face in a displayed slice of a volume; () if the slice shows none.

    Args:
        head: position of the face in the volume.
        shape: shape of the volume, right-anterior-superior.
        plane, index: plane and index of the slice.
        pixels: the slice in radiological display, uint8 (H, W) or (H, W, 3).
    """
    height, width = pixels.shape[:2]
    front = 1.0 - head.front / shape[1]
    below = head.below / shape[2]
    if plane == "axial":
        share = (1.0, front, 0.0) if index < head.below else None
    elif plane == "coronal":
        share = (1.0, below, 1.0 - below) if index >= head.front else None
    else:
        share = (front, below, 1.0 - below)
    if share is None:
        return ()
    box = Box(0, round(share[2] * height), max(1, round(share[0] * width)), max(1, round(share[1] * height)))
    # A slice next to the face shows only air there.
    return (box,) if np.count_nonzero(box.cut(pixels) > 24) > 0.02 * box.cut(pixels).size else ()


def profile_in_slice(pixels: Pixels, spacing_mm: float | None, aspect: float = 1.0) -> Box | None:
    """Return the box of the face in a sagittal slice (front to the left, vertex on top); None if it shows none.

    Args:
        pixels: uint8 (H, W) or (H, W, 3).
        spacing_mm: width of a pixel in mm; None: the head is assumed to be as long as an adult's.
        aspect: height of a pixel over its width.
    """
    grey = pixels if pixels.ndim == 2 else pixels[:, :, 1]
    smooth = cv2.GaussianBlur(grey, (0, 0), max(1.0, min(grey.shape) / 200))
    tissue = _largest(smooth > max(12.0, 0.12 * float(np.percentile(smooth, 99))))
    if spacing_mm is None:
        columns = np.flatnonzero(tissue.any(axis=0))
        spacing_mm = HEAD_MM / max(1, int(np.ptp(columns)) + 1) if columns.size else 1.0
    region = _face_region(tissue, spacing_mm, spacing_mm * aspect)
    if region is None:
        return None
    across, orbits, left = region
    rows = np.flatnonzero(tissue.any(axis=1))
    return Box(left, orbits, max(1, across - left), max(1, int(rows[-1]) + 1 - orbits))


def _face_region(tissue: Mask, across_mm: float, down_mm: float) -> tuple[int, int, int] | None:
    """Return middle column, row of the orbits and first column of a head from the side; None without a face."""
    rows, columns = np.flatnonzero(tissue.any(axis=1)), np.flatnonzero(tissue.any(axis=0))
    if rows.size == 0:
        return None
    vertex = int(rows[0])
    # The length of the skull is taken above the orbits: shoulders and chin reach further.
    upper = np.flatnonzero(tissue[vertex : vertex + max(1, round(ORBITS_MM / down_mm))].any(axis=0))
    left, right = int(upper[0]), int(upper[-1]) + 1
    middle = left + round(0.4 * (right - left))
    slab = tissue[vertex + round(NOSE_MM / down_mm) : vertex + round(LIPS_MM / down_mm), : max(1, middle)]
    if np.count_nonzero(slab) * across_mm * down_mm / 100.0 < FACE_CM2:
        return None
    return middle, vertex + round(ORBITS_MM / down_mm), int(columns[0])


def _largest(mask: Mask) -> Mask:
    """Return the largest connected part: letters and noise around a head are not the head."""
    count, labels, sizes, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2:
        return mask
    return np.asarray(labels == 1 + int(sizes[1:, cv2.CC_STAT_AREA].argmax()))
