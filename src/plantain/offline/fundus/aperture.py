"""The lit field of a fundus camera: the round aperture, its border, and how deep inside it a pixel lies."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Mask, Pixels


@dataclass(frozen=True, slots=True, eq=False)
class Aperture:
    """The lit field.

    Attributes:
        mask: bool (H, W), True inside the field (registration notches included).
        depth: float32 (H, W), distance in pixels to the field's border, 0 outside.
        x, y, radius: the circle fitted to the border, in pixels; the field may be cut off at top and bottom.
    """

    mask: Mask
    depth: npt.NDArray[np.float32]
    x: float
    y: float
    radius: float


def find_aperture(pixels: Pixels) -> Aperture:
    """Finds the lit field on a dark surround.

    Raises:
        CannotShow: the picture is grey, has no dark surround, or what is lit is not round.
    """
    height, width = pixels.shape[:2]
    brightest = cv2.GaussianBlur(pixels.max(axis=2), (0, 0), 1.5)
    corner = max(height // 40, 4)
    corners = np.concatenate([brightest[ys, xs].ravel() for ys in _ends(corner) for xs in _ends(corner)])
    surround = float(np.median(corners))
    if surround > 40:
        raise CannotShow("no fundus field found: the corners of the picture are not dark")
    lit = (brightest > max(surround + 9.0, 13.0)).astype(np.uint8)
    lit = cv2.morphologyEx(lit, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not contours:
        raise CannotShow("no fundus field found: the picture is dark")
    contour = max(contours, key=cv2.contourArea)
    area = float(cv2.contourArea(contour))
    if area < 0.2 * height * width:
        raise CannotShow("no fundus field found: the lit region is too small")
    filled = np.zeros((height, width), np.uint8)
    cv2.drawContours(filled, [contour], -1, 1, cv2.FILLED)
    x, y, radius, share = _fit_circle(contour[:, 0, :].astype(np.float64), height, width)
    if share < 0.6 or area < 0.6 * np.pi * radius**2 or radius < 0.25 * min(height, width):
        raise CannotShow("no fundus field found: the lit region is not round")
    mask = filled.astype(bool)
    _require_colour(pixels, mask)
    depth = cv2.distanceTransform(cv2.copyMakeBorder(filled, 1, 1, 1, 1, cv2.BORDER_CONSTANT), cv2.DIST_L2, 5)
    return Aperture(mask, depth[1:-1, 1:-1].astype(np.float32), x, y, radius)


def _ends(size: int) -> tuple[slice, slice]:
    return slice(None, size), slice(-size, None)


def _require_colour(pixels: Pixels, mask: Mask) -> None:
    red, green, blue = (float(pixels[..., channel][mask].mean()) for channel in range(3))
    if red < 1.12 * green or red < 1.2 * blue or red < 20:
        raise CannotShow("not a colour fundus photograph: the field is not red to orange")


def _fit_circle(
    points: npt.NDArray[np.float64], height: int, width: int
) -> tuple[float, float, float, float]:
    """Robust circle through border points; returns x, y, radius and the share of border points on it.

    Points on the picture's edge, or on a straight horizontal or vertical cut, do not count.
    """
    free = (points[:, 0] > 1) & (points[:, 0] < width - 2) & (points[:, 1] > 1) & (points[:, 1] < height - 2)
    for axis in (0, 1):
        counts = np.bincount(points[:, axis].astype(np.int64))
        free &= counts[points[:, axis].astype(np.int64)] < 0.14 * max(height, width)
    points = points[free]
    if len(points) < 200:
        return 0.0, 0.0, 1.0, 0.0
    chosen = np.ones(len(points), dtype=bool)
    x = y = radius = 0.0
    for _ in range(6):
        inner = points[chosen]
        design = np.column_stack([inner * 2.0, np.ones(len(inner))])
        solution, *_ = np.linalg.lstsq(design, (inner**2).sum(axis=1), rcond=None)
        x, y = float(solution[0]), float(solution[1])
        radius = float(np.sqrt(max(solution[2] + x * x + y * y, 1.0)))
        error = np.abs(np.hypot(points[:, 0] - x, points[:, 1] - y) - radius)
        chosen = error < max(0.01 * radius, 2.0 * float(np.median(error)))
        if chosen.sum() < 100:
            break
    error = np.abs(np.hypot(points[:, 0] - x, points[:, 1] - y) - radius)
    return x, y, radius, float((error < 0.025 * radius).mean())
