"""Faces in colour photographs, by a trained cascade.

The cascade arrives with scikit-image (frontal faces, local binary patterns). It finds an upright face that looks at the
camera; it misses profiles, and faces that are turned upside down or mostly covered.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import skimage.data
from skimage.feature import Cascade

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box

SIDE = 512
"""Longest side in pixels at which faces are looked for; faces below a tenth of it are not."""


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


def _coloured(pixels: Pixels) -> bool:
    few = pixels[:: max(1, pixels.shape[0] // 256), :: max(1, pixels.shape[1] // 256)].astype(np.int16)
    return bool((few.max(axis=2) - few.min(axis=2)).mean() >= 4.0)


@lru_cache(maxsize=1)
def _cascade() -> Cascade:
    return Cascade(skimage.data.lbp_frontal_face_cascade_filename())
