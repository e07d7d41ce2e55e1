"""Atelectasis: a thin band at the base, or a lobe that is denser and smaller, with what it pulls towards it."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.airspace import fill
from plantain.offline.chest.canvas import (
    Canvas,
    blur,
    cloud,
    coordinates,
    lung_coordinates,
    open_canvas,
)
from plantain.offline.chest.clearing import clear_opacity
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Floats, Mask
from plantain.pixels.blend import dilate, erode, feather

_THICK_MM = ((3.0, 4.5), (5.0, 7.0), (8.0, 10.0))
_LONG = ((0.16, 0.22), (0.28, 0.38), (0.45, 0.58))
"""Length of a band in parts of the lung's height."""
_BAND = (0.15, 0.25, 0.38)
_LOBE = (0.18, 0.34, 0.52)
LEAST_BAND = 0.13
"""How far a band must stand out along most of its length, in parts of the contrast; ribs seen flat reach 0.12."""
LEAST_BAND_PLACE_GIVEN = 0.07
"""The same where the instruction names the side or the base."""


def add(scene: Scene) -> Rendering:
    """Draws bands (basal) or a lobe of less volume (upper, mid, lower).

    Raises:
        CannotShow: no lungs, or no room for it.
    """
    canvas = open_canvas(scene)
    zone = canvas.zone(("basal", "basal", "upper", "lower") if scene.intent.zone is None else _ZONES)
    sides = ("right", "left") if scene.intent.side == "bilateral" else (canvas.side(),)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    drawn, mask = canvas.gray, np.zeros(canvas.gray.shape, bool)
    for side in sides:
        if zone == "basal":
            weight = _bands(canvas, side, extent, softness)
            drawn = fill(canvas, drawn, weight, _BAND[conspicuity] * canvas.contrast(side), 0.5)
            mask |= weight * _BAND[conspicuity] > 0.012
        else:
            drawn, part = _lobe(canvas, drawn, side, zone, extent, conspicuity, softness)
            mask |= part
    what = (
        "bands at the base"
        if zone == "basal"
        else f"dense {zone} lobe that has lost volume, vessels pulled to it"
    )
    return canvas.finish(
        drawn.astype(np.float32), mask, "local", f"{what}, {' and '.join(sides)}{canvas.scale_words}"
    )


_ZONES = ("basal", "upper", "mid", "lower")


def _bands(canvas: Canvas, side: str, extent: int, softness: int) -> Field:
    """One to three nearly level bands above the diaphragm that start at the pleura, 0..1."""
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    sheet = np.zeros(canvas.gray.shape, np.float32)
    slope = canvas.rng.normal(0.0, 0.13)
    for index in range(int(canvas.rng.integers(1, 2 + extent))):
        thick = canvas.rng.uniform(*_THICK_MM[extent]) * canvas.pixels_per_mm * (0.75 if index else 1.0)
        length = canvas.rng.uniform(*_LONG[extent]) * height * (0.7 if index else 1.0)
        points = _course(canvas, side, length, slope, index)
        at = np.linspace(0, 1, len(points))
        taper = np.clip(np.minimum(1.25, 1.8 * (1 - at) + 0.25), 0.25, 1)
        ripple = 1 + 0.15 * np.sin(at * canvas.rng.uniform(6, 14) + canvas.rng.uniform(0, 6.28))
        for start, end, share in zip(points[:-1], points[1:], taper * ripple, strict=False):
            a, b = (tuple(np.round(p * 16).astype(int).tolist()) for p in (start, end))
            cv2.line(sheet, a, b, float(0.7 + 0.3 * share), max(1, round(thick * share)), cv2.LINE_8, 4)
    soft = blur(sheet, max(1.0, (0.10, 0.2, 0.34)[softness] * _THICK_MM[extent][1] * canvas.pixels_per_mm))
    uneven = 1 + 0.1 * cloud(canvas.gray.shape, 14.0, canvas.rng)
    band: Field = soft * uneven * feather(dilate(lung.mask, 3), 4.0)
    return band


def _course(canvas: Canvas, side: str, length: float, slope: float, index: int) -> Floats:
    """A nearly level line that lies in the lung, above the one before: of several at random the one least outside."""
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    inward = 1.0 if side == "right" else -1.0
    at = np.linspace(0, 1, 40)
    best, course = -1.0, np.zeros((40, 2))
    for _ in range(14):
        row = lung.bottom - (canvas.rng.uniform(0.12, 0.20) + 0.1 * index) * height
        wall, middle = (float(border(np.array([row]))[0]) for border in (lung.wall_at, lung.medial_at))
        reach = min(length, 0.8 * abs(middle - wall))
        start = wall + inward * canvas.rng.choice([2.0, 0.15 * abs(middle - wall)])
        tilt, bow = slope + canvas.rng.normal(0.0, 0.03), canvas.rng.normal(0, 0.03)
        x = np.clip(start + inward * at * reach, 0, canvas.gray.shape[1] - 1)
        y = np.clip(row + tilt * at * reach + bow * reach * 4 * at * (1 - at), 0, canvas.gray.shape[0] - 9)
        inside = lung.mask[y.astype(int), x.astype(int)] & lung.mask[y.astype(int) + 8, x.astype(int)]
        share = float(inside.mean()) * reach / length
        if share > best:
            best, course = share, np.stack([x, y], axis=1)
    if best * length < 0.1 * height:
        raise CannotShow(f"no room for a band of {length / canvas.pixels_per_mm:.0f} mm at the {side} base")
    return course


def _lobe(
    canvas: Canvas, gray: Field, side: str, zone: str, extent: int, conspicuity: int, softness: int
) -> tuple[Field, Mask]:
    """A wedge against the mediastinum bounded by a displaced fissure; the rest of the lung drawn towards it."""
    lung = canvas.chest.lung(side)
    share, down = lung_coordinates(canvas, side)
    inside = feather(dilate(lung.mask, 5), 6.0)
    size = (0.20, 0.28, 0.36)[extent] * canvas.rng.uniform(0.9, 1.1)
    from_middle = np.clip(1.0 - share, 0.0, 1.2)
    if zone == "upper":
        edge = size - down + 0.35 * size * np.clip(from_middle, 0, 1) * -1.0
        pull = np.array([0.0, -1.0])
    elif zone == "lower":
        # A triangle along the spine and heart, its fissure running down and outwards.
        edge = (down - (1.0 - 1.6 * size)) * 0.62 - (from_middle - 0.12)
        pull = np.array([0.0, 1.0])
    else:
        edge = 0.55 * size * (1.15 - from_middle) - np.abs(down - 0.62)
        pull = np.array([0.0, 0.25])
    edge = edge + 0.012 * cloud(gray.shape, 0.14 * (lung.bottom - lung.top), canvas.rng)
    border = (0.02, 0.04, 0.075)[softness]
    weight = np.clip(0.5 + edge / (2 * border), 0, 1)
    weight = blur((weight * weight * (3 - 2 * weight) * inside).astype(np.float32), 1.5)
    moved, near = _pulled(
        canvas, gray, side, weight, pull * 0.05 * (lung.bottom - lung.top) * (0.4 + 0.3 * extent)
    )
    strength = _LOBE[conspicuity] * canvas.contrast(side)
    drawn = fill(canvas, moved, weight, strength, 0.7)
    # The rest of that lung takes up the room: a little more lucent next to the lobe.
    rest = near * (1 - weight)
    drawn = drawn - 0.03 * (1 + conspicuity) * canvas.contrast(side) * rest
    return drawn.astype(np.float32), (weight > 0.04) | (near > 0.08)


def _pulled(canvas: Canvas, gray: Field, side: str, weight: Field, shift: np.ndarray) -> tuple[Field, Field]:
    """Vessels around the lobe moved towards it (ribs stay), and how near each place is to it, 0..1."""
    lung = canvas.chest.lung(side)
    rows, columns = coordinates(gray.shape)
    inner = erode(lung.mask, 10)
    reach = blur((weight > 0.3).astype(np.float32), 0.09 * (lung.bottom - lung.top))
    near = np.clip(2.2 * reach, 0, 1) * feather(inner, 9.0)
    near = blur(near.astype(np.float32), 4.0) * feather(dilate(inner, 6), 6.0)
    # Only vessels and fissures move; ribs, which are broad, stay: the finer bands are carried, the coarse one is not.
    fine = blur(gray, 1.0) - blur(gray, 6.0)
    vessel = fine * np.clip(2.0 - np.abs(fine) / 8.0, 0, 1)
    x = np.broadcast_to(columns, gray.shape) - np.float32(shift[0]) * near
    y = np.broadcast_to(rows, gray.shape) - np.float32(shift[1]) * near
    carried = cv2.remap(vessel, x.astype(np.float32), y.astype(np.float32), cv2.INTER_CUBIC)
    moved: Field = gray + np.clip(3 * near, 0, 1) * (carried - vessel)
    return moved, near


def remove(scene: Scene) -> Rendering:
    """Lifts a basal band that is found, else clears the denser of the two lungs.

    Raises:
        CannotShow: neither is found.
    """
    canvas = open_canvas(scene)
    sides = [side for side in ("right", "left") if scene.intent.side in (None, side, "bilateral", "midline")]
    if scene.intent.zone in (None, "basal"):
        drawn, mask, done = canvas.gray, np.zeros(canvas.gray.shape, bool), []
        for side in sides:
            band = _find_bands(canvas, side)
            if band is None:
                continue
            drawn = drawn - band
            mask |= band > 0.6
            done.append(side)
        if done:
            note = f"bands lifted from the base, {' and '.join(done)}"
            return canvas.finish(drawn.astype(np.float32), mask, "local", note)
        if scene.intent.zone == "basal":
            raise CannotShow("no atelectasis found: no band crosses the base of the lung")
    return clear_opacity(canvas, np.zeros(canvas.gray.shape, bool), "atelectasis")


def _find_bands(canvas: Canvas, side: str) -> Field | None:
    """What level bands add to the base of one lung, in grey levels; ribs slope and so do not answer."""
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    rows, _ = coordinates(canvas.gray.shape)
    base = erode(lung.mask, 6) & (rows > lung.bottom - 0.48 * height)
    thick = 7.0 * canvas.pixels_per_mm
    soft = blur(canvas.gray, 1.5)
    length = int(0.075 * height) | 1
    best = np.zeros_like(soft)
    for slope in np.linspace(-0.3, 0.3, 7):
        kernel = _oriented(length, slope)
        along = cv2.filter2D(soft, cv2.CV_32F, kernel)
        gap = round(1.2 * thick)
        sides = np.maximum(np.roll(along, gap, axis=0), np.roll(along, -gap, axis=0))
        best = np.maximum(best, along - sides)
    contrast = canvas.contrast(side)
    place_given = canvas.scene.intent.zone == "basal" or canvas.scene.intent.side in ("left", "right")
    least = LEAST_BAND_PLACE_GIVEN if place_given else LEAST_BAND
    ridge = np.where(base, best / contrast, 0.0)
    count, labels, stats, _ = cv2.connectedComponentsWithStats((ridge > 0.5 * least).astype(np.uint8))
    kept = np.zeros(count, bool)
    for label in range(1, count):
        wide, high = stats[label, cv2.CC_STAT_WIDTH], stats[label, cv2.CC_STAT_HEIGHT]
        values = ridge[labels == label]
        kept[label] = wide > 0.13 * height and high < 0.55 * wide and float(np.median(values)) > least
    if not kept.any():
        return None
    region = kept[labels]
    lifted = np.where(region, best, 0.0).astype(np.float32)
    result: Field = np.maximum(blur(lifted, 2.0), 0) * feather(dilate(region, 3), 3.0)
    return result


def _oriented(length: int, slope: float) -> Field:
    """A line of a given slope as an averaging kernel."""
    half = length // 2
    kernel = np.zeros((length, length), np.float32)
    rise = slope * half
    start, end = (0, round((half - rise) * 16)), ((length - 1) * 16, round((half + rise) * 16))
    cv2.line(kernel, start, end, 1.0, 1, cv2.LINE_8, 4)
    averaging: Field = kernel / kernel.sum()
    return averaging


RENDERER = FindingRenderer(add, remove)
