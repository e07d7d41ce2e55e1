"""Finds pieces of rib and clavicle on a frontal radiograph: where they run, which way and how wide they are."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, coordinates, lung_coordinates
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate

ZONES = ("lateral rib", "posterior rib", "clavicle")
_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Bone:
    """A short piece of bone: its middle, the unit vector along it (x >= 0), half its width, how far it stands out."""

    x: float
    y: float
    along_x: float
    along_y: float
    half: float
    strength: float


def find_bones(canvas: Canvas, side: str, zone: str) -> list[Bone]:
    """Pieces of bone in one zone, the clearest first; at most 60, apart from each other."""
    sigma = 0.016 * canvas.chest.thoracic_width / _FACTOR
    contrast = canvas.contrast(side)
    small = cv2.resize(canvas.gray, None, fx=1 / _FACTOR, fy=1 / _FACTOR, interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small, (0, 0), sigma)
    across = cv2.Sobel(soft, cv2.CV_32F, 2, 0, ksize=3) / 4
    down = cv2.Sobel(soft, cv2.CV_32F, 0, 2, ksize=3) / 4
    mixed = cv2.Sobel(soft, cv2.CV_32F, 1, 1, ksize=3) / 4
    half = (across + down) / 2
    spread = np.sqrt(((across - down) / 2) ** 2 + mixed**2)
    strong, weak = half - spread, half + spread
    # A bone curves strongly one way only, a nodule both ways.
    ridge = (
        np.maximum(-strong, 0)
        * sigma**2
        * np.clip(1.5 - 2.5 * np.abs(weak / np.minimum(strong, -1e-6)), 0, 1)
    )
    angle = 0.5 * np.arctan2(2 * mixed, across - down)
    # Of the two axes, the one along which it curves least.
    angle = np.where(
        np.cos(2 * angle) * (across - down) + 2 * np.sin(2 * angle) * mixed > 0, angle, angle + np.pi / 2
    )
    region = cv2.resize(_region(canvas, side, zone).astype(np.uint8), small.shape[::-1], interpolation=0) > 0
    peaks = _on_the_crest(ridge, angle) & region & (ridge > 0.02 * contrast)
    found: list[Bone] = []
    lateral = -1.0 if side == "right" else 1.0
    for row, column in np.argwhere(peaks):
        tilt = float(angle[row, column])
        along = np.array([np.cos(tilt), np.sin(tilt)])
        along *= 1.0 if along[0] >= 0 else -1.0
        if _runs(zone, along[1] / max(along[0], 1e-3) * lateral):
            found.append(
                Bone(
                    (column + 0.5) * _FACTOR, (row + 0.5) * _FACTOR, float(along[0]), float(along[1]),
                    1.25 * sigma * _FACTOR, float(ridge[row, column] / contrast),
                )
            )  # fmt: skip
    found.sort(key=lambda bone: (-bone.strength, bone.y, bone.x))
    kept: list[Bone] = []
    for bone in found:
        if all(np.hypot(bone.x - k.x, bone.y - k.y) > 0.022 * canvas.chest.thoracic_width for k in kept):
            kept.append(bone)
        if len(kept) == 60:
            break
    return kept


def _runs(zone: str, fall: float) -> bool:
    """Whether a bone that falls by `fall` for each step outwards may be one of the zone's."""
    if zone == "clavicle":
        # A clavicle rises outwards, the upper ribs behind it fall: that alone tells them apart where they cross.
        return -0.9 < fall < 0.1
    if zone == "posterior rib":
        return -0.12 < fall < 1.0
    return abs(fall) < 2.5


def _region(canvas: Canvas, side: str, zone: str) -> Mask:
    lung = canvas.chest.lung(side)
    share, down = lung_coordinates(canvas, side)
    if zone == "clavicle":
        rows, columns = coordinates(canvas.gray.shape)
        height = lung.bottom - lung.top
        outer = float(lung.wall_at(np.array([lung.top + 0.25 * height]))[0])
        inner = float(lung.medial_at(np.array([lung.top + 0.12 * height]))[0])
        lateral = (columns - inner) / (outer - inner)
        # Beyond the chest wall the scapula and the ends of several ribs cross.
        region = (lateral > 0.1) & (lateral < 0.9) & (rows > lung.top - 0.05 * height)
        region = region & (rows < lung.top + 0.24 * height)
    elif zone == "posterior rib":
        region = lung.mask & (share > 0.35) & (share < 0.78) & (down > 0.08) & (down < 0.5)
    else:
        region = dilate(lung.mask, 6) & (share > -0.02) & (share < 0.3) & (down > 0.22) & (down < 0.88)
    found: Mask = region & canvas.chest.field & ~dilate(canvas.chest.protected, 16)
    return found


def _on_the_crest(ridge: Field, angle: Field) -> Mask:
    """Where the ridge is highest across its own direction."""
    rows, columns = coordinates(ridge.shape)
    held = np.ones(ridge.shape, bool)
    for step in (-1.5, 1.5):
        x = np.broadcast_to(columns, ridge.shape) - step * np.sin(angle)
        y = np.broadcast_to(rows, ridge.shape) + step * np.cos(angle)
        beside = cv2.remap(ridge, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
        held &= ridge >= beside
    return held


def bone_frame(canvas: Canvas, bone: Bone, reach: float) -> tuple[tuple[slice, slice], Field, Field]:
    """A box around a bone's middle with, for each pixel, how far along and how far across the bone it lies."""
    half = int(np.ceil(reach))
    top, left = max(0, int(bone.y) - half), max(0, int(bone.x) - half)
    box = (slice(top, int(bone.y) + half + 1), slice(left, int(bone.x) + half + 1))
    rows, columns = np.mgrid[0 : canvas.gray[box].shape[0], 0 : canvas.gray[box].shape[1]].astype(np.float32)
    down, right = rows + top - bone.y, columns + left - bone.x
    along = (right * bone.along_x + down * bone.along_y).astype(np.float32)
    across = (down * bone.along_x - right * bone.along_y).astype(np.float32)
    return box, along, across


def fitted(soft: Field, bone: Bone) -> Bone | None:
    """The bone with its width measured from cortex to cortex; None where it has no two edges.

    Args:
        soft: float32 (H, W), the picture blurred by about a pixel.
        bone: a piece of bone as found.
    """
    reach = 2.2 * bone.half
    at = np.arange(-reach, reach + 1)
    along = np.arange(-26, 27, 4.0)[:, None]
    x = bone.x + along * bone.along_x - at[None] * bone.along_y
    y = bone.y + along * bone.along_y + at[None] * bone.along_x
    profile = cv2.remap(soft, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR).mean(axis=0)
    slope = cv2.GaussianBlur(np.gradient(profile)[None].astype(np.float32), (0, 0), 1.5)[0]
    before, after = at < -0.35 * bone.half, at > 0.35 * bone.half
    upper = int(np.where(before, slope, -1e9).argmax())
    lower = int(np.where(after, -slope, -1e9).argmax())
    half = (at[lower] - at[upper]) / 2
    rise = min(float(slope[upper]), float(-slope[lower]))
    if not 0.45 * bone.half < half < 1.8 * bone.half or rise < 0.25:
        return None
    shift = (at[lower] + at[upper]) / 2
    x_new, y_new = bone.x - shift * bone.along_y, bone.y + shift * bone.along_x
    return Bone(x_new, y_new, bone.along_x, bone.along_y, float(half), rise)
