"""The line between the hemispheres, and each half laid over the other: what is where, and what it should look like."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.pixels.arrays import Field, Mask

_COARSE = 8


@dataclass(frozen=True, slots=True)
class Midline:
    """A line through (x, y) whose direction is `angle` radians off the vertical; lengths in full pixels."""

    x: float
    y: float
    angle: float

    @property
    def normal(self) -> tuple[float, float]:
        """Unit vector towards image right, that is the patient's left."""
        return float(np.cos(self.angle)), float(np.sin(self.angle))

    @property
    def along(self) -> tuple[float, float]:
        """Unit vector down the line."""
        return -float(np.sin(self.angle)), float(np.cos(self.angle))

    def offset(self, x: Field, y: Field) -> Field:
        """Signed distance from the line, positive on image right."""
        nx, ny = self.normal
        return ((x - np.float32(self.x)) * np.float32(nx) + (y - np.float32(self.y)) * np.float32(ny)).astype(
            np.float32
        )

    def mirrored(self, plane: Field) -> Field:
        """The plane reflected across the line."""
        matrix = _reflection(self.x, self.y, self.angle)
        size = (plane.shape[1], plane.shape[0])
        turned: Field = cv2.warpAffine(plane, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        return turned

    def mirrored_mask(self, mask: Mask) -> Mask:
        return np.asarray(self.mirrored(mask.astype(np.float32)) > 0.5, np.bool_)


def find_midline(brain: Brain) -> Midline:
    """The axis of best mirror symmetry of an axial or coronal slice, searched around the brain's centre."""
    size = (brain.gray.shape[1] // _COARSE, brain.gray.shape[0] // _COARSE)
    small = cv2.resize(brain.gray, size, interpolation=cv2.INTER_AREA)
    inside = brain.inside[::_COARSE, ::_COARSE].astype(np.float32)
    calm = cv2.GaussianBlur(small, (0, 0), 1.5) * inside
    scale = max(float(calm.max()), 1.0)
    stack = np.dstack([calm / scale, inside])
    cx, cy = brain.centre[0] / _COARSE, brain.centre[1] / _COARSE
    best, found = np.inf, (cx, 0.0)
    for angles, shifts in ((np.linspace(-0.2, 0.2, 9), np.linspace(-5, 5, 11)), (None, None)):
        if angles is None or shifts is None:
            angles = found[1] + np.linspace(-0.04, 0.04, 5)
            shifts = found[0] - cx + np.linspace(-0.8, 0.8, 5)
        for angle in angles:
            for shift in shifts:
                matrix = _reflection(cx + float(shift), cy, float(angle))
                other = cv2.warpAffine(stack, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
                cost = float(np.abs(stack - other).mean())
                if cost < best:
                    best, found = cost, (cx + float(shift), float(angle))
    return Midline(found[0] * _COARSE + _COARSE / 2, brain.centre[1], found[1])


def _reflection(x: float, y: float, angle: float) -> Field:
    """2x3 matrix that reflects across the line through (x, y) at `angle` off the vertical (its own inverse)."""
    nx, ny = np.cos(angle), np.sin(angle)
    turn = np.array([[1 - 2 * nx * nx, -2 * nx * ny], [-2 * nx * ny, 1 - 2 * ny * ny]])
    point = np.array([x, y])
    return np.column_stack([turn, point - turn @ point]).astype(np.float32)


def working(plane: Field) -> Field:
    """A quarter-size, lightly blurred copy for analysis."""
    size = (plane.shape[1] // STEP, plane.shape[0] // STEP)
    small: Field = cv2.GaussianBlur(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), (0, 0), 1.0)
    return small
