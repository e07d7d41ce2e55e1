"""Flame haemorrhages, found: dark streaks too short for a vessel, too thick for its end, and going on nowhere."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.fundus.anatomy import FundusAnatomy
from plantain.offline.fundus.spots import long_vessels
from plantain.pixels.arrays import Field, Mask, Pixels

STRAIGHT = 0.30
"""Half length, in disc diameters, of the lines that vessels hold and streaks do not."""

CORE = 0.05
"""Share of the background's green by which a streak's thick part is darker."""

SURE = {"area": 0.009, "dark": 0.08, "ends": 0.18, "width": 0.075, "length": 0.5}
ALIKE = {"area": 0.006, "dark": 0.07, "ends": 0.13, "width": 0.07, "length": 0.4}
"""A streak's least area (squared disc diameters), darkness of its thick part, share of the ring round it that is dark
as well, width and length (disc diameters). Nine healthy photographs hold no sure one; those alike go with it."""

TRACED = 0.3
"""A streak that was traced as vessel by more than this share must go on nowhere at all."""


def flame_spots(pixels: Pixels, anatomy: FundusAnatomy) -> tuple[Mask, int]:
    """Dark streaks round the disc.

    Returns:
        bool (H, W), the extent of all of them, and how many are sure; none at all where none is.
    """
    half = (pixels.shape[1] // 2, pixels.shape[0] // 2)
    diameter = anatomy.disc.diameter / 2
    dark = _darkness(pixels, anatomy, half)
    rest = dark - cv2.dilate(_straight(dark, max(round(STRAIGHT * diameter), 3)), np.ones((3, 3), np.uint8))
    away = anatomy.disc.distance(pixels.shape[:2])[::2, ::2]
    inside = (away > 1.35) & (away < 5.0) & (anatomy.aperture.depth[::2, ::2] > 24)
    rest = np.where(inside[: half[1], : half[0]], rest, 0).astype(np.float32)
    thick = cv2.morphologyEx(rest, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3)))
    total, labels, stats, _ = cv2.connectedComponentsWithStats(
        (thick > CORE).astype(np.uint8), connectivity=8
    )
    vessels = long_vessels(anatomy)[::2, ::2]
    kept = np.zeros(rest.shape, np.uint8)
    sure = 0
    for index in range(1, total):
        if stats[index, cv2.CC_STAT_AREA] < ALIKE["area"] * diameter**2:
            continue
        window = _around(stats[index], 10)
        spot = labels[window] == index
        measured = _measured(spot, dark[window], thick[window], diameter)
        traced = float(vessels[window][spot].mean())
        certain = _is(measured, SURE) and (traced < TRACED or measured["ends"] < 0.05)
        sure += certain
        if certain or (_is(measured, ALIKE) and traced < TRACED):
            kept[window] |= spot.astype(np.uint8)
    if not sure:
        return np.zeros(pixels.shape[:2], dtype=bool), 0
    near = cv2.dilate(kept, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9)))
    body = kept | (near & (rest > 0.4 * CORE).astype(np.uint8))
    full = cv2.resize(body, pixels.shape[1::-1], interpolation=cv2.INTER_NEAREST)
    return np.asarray(full > 0), sure


def _darkness(pixels: Pixels, anatomy: FundusAnatomy, half: tuple[int, int]) -> Field:
    """How much darker than its background each place is, as a share, at half resolution."""
    green = cv2.resize(pixels, half, interpolation=cv2.INTER_AREA)[..., 1].astype(np.float32)
    flat = cv2.resize(np.ascontiguousarray(anatomy.flat[..., 1]), half, interpolation=cv2.INTER_AREA)
    calm = cv2.GaussianBlur(green, (0, 0), 0.8)
    return np.asarray(np.clip(1 - calm / np.maximum(flat, 8.0), 0, 0.5), dtype=np.float32)


def _straight(dark: Field, reach: int) -> Field:
    """What of the darkness lies along straight lines of twice `reach` pixels, in any direction."""
    found = np.zeros_like(dark)
    for turn in np.linspace(0, np.pi, 18, endpoint=False):
        line = np.zeros((2 * reach + 1, 2 * reach + 1), np.uint8)
        dx, dy = round(reach * float(np.cos(turn))), round(reach * float(np.sin(turn)))
        cv2.line(line, (reach - dx, reach - dy), (reach + dx, reach + dy), 1)
        found = np.maximum(found, cv2.morphologyEx(dark, cv2.MORPH_OPEN, line))
    return np.asarray(found, dtype=np.float32)


def _around(box: npt.NDArray[np.int32], margin: int) -> tuple[slice, slice]:
    x, y, wide, high = (int(value) for value in box[:4])
    return slice(max(y - margin, 0), y + high + margin), slice(max(x - margin, 0), x + wide + margin)


def _measured(spot: Mask, dark: Field, thick: Field, diameter: float) -> dict[str, float]:
    shape = spot.astype(np.uint8)
    near = cv2.dilate(shape, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7)))
    far = cv2.dilate(shape, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (15, 15)))
    ring = far > near
    ys, xs = np.nonzero(spot)
    axes = 4 * np.sqrt(np.linalg.eigvalsh(np.cov(xs, ys) + np.eye(2) / 12)) / diameter
    return {
        "area": len(xs) / diameter**2,
        "dark": float(thick[spot].mean()),
        "ends": float((dark[ring] > 0.55 * float(dark[spot].mean())).mean()) if ring.any() else 1.0,
        "width": float(axes[0]),
        "length": float(axes[1]),
    }


def _is(measured: dict[str, float], limits: dict[str, float]) -> bool:
    most = ("ends", "length")
    return all(
        (measured[key] < limit) if key in most else (measured[key] > limit) for key, limit in limits.items()
    )
