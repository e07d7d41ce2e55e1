"""Faces: in colour photographs by a trained cascade, in slices and volumes of heads by geometry.

The cascade is the one that arrives with scikit-image (frontal faces, local binary patterns). It finds an upright face
that looks at the camera; it misses profiles and faces that are turned upside down or mostly covered.

Of a head, what lies as low as nose and cheeks and in front of the middle is face: brains that were taken out of the
skull, and heads that were defaced, hold nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt
import skimage.data
from skimage.feature import Cascade

from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.boxes import Box

SIDE = 512
"""Longest side in pixels at which faces are looked for; faces below a tenth of it are not."""

HEAD_MM = 185.0
"""Length of an adult's head from front to back, where the scale of a slice is not known."""

ORBITS_MM, NOSE_MM, LIPS_MM = 85.0, 120.0, 150.0
"""Below the vertex: where the orbits begin, and between which heights nose and cheeks lie, in adults."""

FACE_CM2 = 6.0
"""Least area of tissue in front of the middle and as low as the nose, in a slice or in a volume seen from the side."""


def photographed_faces(pixels: Pixels) -> tuple[Box, ...]:
    """Faces in a colour photograph, uint8 (H, W, 3); none in a grey picture, which is no photograph of a person."""
    if pixels.ndim != 3 or not _coloured(pixels):
        return ()
    scale = min(1.0, SIDE / max(pixels.shape[:2]))
    small = cv2.resize(np.ascontiguousarray(pixels), None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    shorter = min(small.shape[:2])
    if shorter < 48:
        return ()
    found = _cascade().detect_multi_scale(
        img=small, scale_factor=1.2, step_ratio=1, min_size=(48, 48), max_size=(shorter, shorter)
    )
    boxes = {
        Box(*(round(float(part[key]) / scale) for key in ("c", "r", "width", "height"))) for part in found
    }
    return tuple(sorted(boxes))


@dataclass(frozen=True, slots=True)
class Head:
    """Where a volume of a head shows a face, in indices of right-anterior-superior space.

    Attributes:
        front: from this index on the voxels lie in front of the middle.
        below: up to this index (not included) they lie below the upper rim of the orbits.
    """

    front: int
    below: int


def face_of_volume(
    values: npt.NDArray[np.integer] | npt.NDArray[np.floating],
    spacing_mm: tuple[float, float, float],
    threshold: float,
) -> Head | None:
    """Where a volume (X, Y, Z), right-anterior-superior, shows a face; None where it reaches no face or has none.

    Args:
        values: voxels.
        spacing_mm: of the three axes.
        threshold: above it is tissue.
    """
    side = np.asarray((values > threshold).any(axis=0))
    height, depth = spacing_mm[2], spacing_mm[1]
    # Seen from the side, with the front to the left and the vertex on top, as a sagittal slice is shown.
    seen = side[::-1, ::-1].T
    region = _face_region(seen, depth, height)
    if region is None:
        return None
    across, orbits, _ = region
    return Head(front=values.shape[1] - across, below=values.shape[2] - orbits)


def profile_in_slice(pixels: Pixels, spacing_mm: float | None) -> Box | None:
    """The face in a sagittal slice of a head, shown with the front to the left and the vertex on top; None without.

    Args:
        pixels: uint8 (H, W) or (H, W, 3).
        spacing_mm: of a pixel; where unknown, the head is taken to be as long as an adult's.
    """
    grey = pixels if pixels.ndim == 2 else pixels[:, :, 1]
    smooth = cv2.GaussianBlur(grey, (0, 0), max(1.0, min(grey.shape) / 200))
    tissue = _largest(smooth > max(12.0, 0.12 * float(np.percentile(smooth, 99))))
    if spacing_mm is None:
        columns = np.flatnonzero(tissue.any(axis=0))
        spacing_mm = HEAD_MM / max(1, int(np.ptp(columns)) + 1) if columns.size else 1.0
    region = _face_region(tissue, spacing_mm, spacing_mm)
    if region is None:
        return None
    across, orbits, left = region
    rows = np.flatnonzero(tissue.any(axis=1))
    return Box(left, orbits, max(1, across - left), max(1, int(rows[-1]) + 1 - orbits))


def _face_region(tissue: Mask, across_mm: float, down_mm: float) -> tuple[int, int, int] | None:
    """Column of the middle, row of the orbits and first column of a head seen from the side; None without a face."""
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
    """The largest connected part: letters and noise around a head are no head."""
    count, labels, sizes, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2:
        return mask
    return np.asarray(labels == 1 + int(sizes[1:, cv2.CC_STAT_AREA].argmax()))


def _coloured(pixels: Pixels) -> bool:
    few = pixels[:: max(1, pixels.shape[0] // 256), :: max(1, pixels.shape[1] // 256)].astype(np.int16)
    return bool((few.max(axis=2) - few.min(axis=2)).mean() >= 4.0)


@lru_cache(maxsize=1)
def _cascade() -> Cascade:
    return Cascade(skimage.data.lbp_frontal_face_cascade_filename())
