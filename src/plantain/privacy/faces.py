"""Faces in photographs, by a trained cascade, and colour where no radiograph or slice has any.

The cascade arrives with scikit-image (frontal faces, local binary patterns). It finds an upright face that looks at the
camera; it misses profiles, and faces that are turned upside down or mostly covered. Other photographs are quarantined
by their colour: a coloured scene among radiographs is a photograph, with or without a detected face.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box

if TYPE_CHECKING:
    from skimage.feature import Cascade

SIDE = 512
"""Longest side in pixels at which faces are looked for; faces below a tenth of it are not."""

NEIGHBOURS, NEIGHBOURS_GREY = 4, 8
"""Detections that must agree on a face, in colour and in grey: in grey, six agree on ventricles, discs and ribs.

The number for grey also applies to a round field on black, where six agree on the vessels and disc of an eye.
"""

_DARK, _ROUND = 24, 0.92
"""Brightest channel outside of a round field, and the least share of its circle that the field fills."""

_SCENE_LEVELS, _SCENE_SHARE = 40, 0.1


def photographed_faces(pixels: Pixels) -> tuple[Box, ...]:
    """Detect faces in an image, uint8 (H, W, 3) or (H, W); return their boxes in pixels, sorted.

    In grey images, and in a round field on black, more overlapping detections are required.
    """
    scale = min(1.0, SIDE / max(pixels.shape[:2]))
    small = cv2.resize(np.ascontiguousarray(pixels), None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    shorter = min(small.shape[:2])
    if shorter < 48:
        return ()
    coloured = pixels.ndim == 3 and float(_chroma(pixels).mean()) >= 4.0
    found = _cascade().detect_multi_scale(
        img=small,
        scale_factor=1.2,
        step_ratio=1,
        min_size=(48, 48),
        max_size=(shorter, shorter),
        min_neighbor_number=NEIGHBOURS if coloured and not round_field(pixels) else NEIGHBOURS_GREY,
    )
    boxes = {
        Box(*(round(float(part[key]) / scale) for key in ("c", "r", "width", "height"))) for part in found
    }
    return tuple(sorted(boxes))


def round_field(pixels: Pixels) -> bool:
    """Return True if an image is a round field on black, as fundus cameras record it, maybe cut above and below.

    Args:
        pixels: uint8 (H, W, 3) or (H, W).
    """
    scale = min(1.0, 256 / max(pixels.shape[:2]))
    small = cv2.resize(np.ascontiguousarray(pixels), None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    height, width = small.shape[:2]
    bright = small.max(axis=2) if small.ndim == 3 else small
    outlines, _ = cv2.findContours(
        (bright > _DARK).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    )
    if not outlines:
        return False
    # The hull, since the field itself may be dark at its rim; letters next to it are outlines of their own.
    hull = cv2.convexHull(max(outlines, key=cv2.contourArea))
    (x, y), radius = cv2.minEnclosingCircle(hull)
    circle, field = np.zeros((2, height, width), np.uint8)
    cv2.circle(circle, (round(x), round(y)), round(radius), 1, -1)
    cv2.fillConvexPoly(field, hull, 1)
    corners = circle[[0, 0, -1, -1], [0, -1, 0, -1]]
    return not corners.any() and float(field[circle > 0].mean()) >= _ROUND


def coloured_scene(pixels: Pixels) -> bool:
    """Return True if a tenth of an image, uint8 (H, W, 3), is strongly coloured, unlike radiographs."""
    return pixels.ndim == 3 and float((_chroma(pixels) >= _SCENE_LEVELS).mean()) >= _SCENE_SHARE


def _chroma(pixels: Pixels) -> npt.NDArray[np.int16]:
    """Return the difference of the strongest and the weakest channel, on a coarse grid of pixels."""
    few = pixels[:: max(1, pixels.shape[0] // 256), :: max(1, pixels.shape[1] // 256)].astype(np.int16)
    difference: npt.NDArray[np.int16] = few.max(axis=2) - few.min(axis=2)
    return difference


@lru_cache(maxsize=1)
def _cascade() -> Cascade:
    import skimage.data  # heavy
    from skimage.feature import Cascade

    return Cascade(skimage.data.lbp_frontal_face_cascade_filename())
