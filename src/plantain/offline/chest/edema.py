"""Pulmonary edema: haze of both lungs around the hila or at the bases, blurred vessels, short septal lines."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.airspace import fill
from plantain.offline.chest.canvas import Canvas, blur, cloud, lung_coordinates, open_canvas
from plantain.offline.chest.clearing import between_ribs
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode, feather

ZONES = ("perihilar", "basal")
_DENSITY = (0.13, 0.24, 0.38)
_REACH = (0.24, 0.33, 0.44)
"""How far the haze reaches from the hilum or the base, in parts of the lung's height."""
_USUAL_RISE = {"perihilar": -0.05, "basal": 0.2}
"""How much brighter these places of a healthy lung are than its quiet part, in parts of the contrast."""
_LEAST_RISE = {"perihilar": 0.05, "basal": 0.33}
"""The mean of both lungs from which edema is believed."""
_ZONE_GIVEN_RISE = {"perihilar": 0.02, "basal": 0.27}
"""The same where the instruction names the zone."""


def add(scene: Scene) -> Rendering:
    """Draws haze on both sides, about symmetric, with the signs that go with it.

    Raises:
        CannotShow: no lungs are found.
    """
    canvas = open_canvas(scene)
    zone = canvas.zone(ZONES)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    drawn, mask = canvas.gray, np.zeros(canvas.gray.shape, bool)
    for side in ("right", "left"):
        contrast = canvas.contrast(side)
        reach = _REACH[extent] * canvas.rng.uniform(0.92, 1.08)
        weight = _haze(canvas, side, zone, reach, (0.10, 0.16, 0.22)[softness])
        density = _DENSITY[conspicuity] * canvas.rng.uniform(0.92, 1.08)
        drawn = fill(canvas, drawn, weight, density * contrast, 0.75)
        drawn = _cuffed(drawn, weight, conspicuity)
        shown = weight * density > 0.025
        if extent > 0 or conspicuity > 0:
            lines = _septal_lines(canvas, side, (3, 5, 8)[extent])
            drawn = drawn + (0.05, 0.08, 0.11)[conspicuity] * contrast * lines
            shown |= lines > 0.1
        mask |= shown
    note = f"symmetric {zone} haze of both lungs, vessels blurred, short septal lines at the lower lateral pleura"
    return canvas.finish(drawn.astype(np.float32), mask, "local", note)


def _haze(canvas: Canvas, side: str, zone: str, reach: float, border: float) -> Field:
    lung = canvas.chest.lung(side)
    share, down = lung_coordinates(canvas, side)
    if zone == "perihilar":
        # Wider than high in lung terms: like a wing that spares the edge of the lung.
        distance = np.hypot((1.0 - share) * 0.72, (down - 0.48) * 1.25)
        body = _logistic((reach - distance) / (0.32 * border))
        body = (body * np.clip((share - 0.04) / 0.22, 0, 1)).astype(np.float32)
    else:
        body = _logistic((down - (0.98 - 0.9 * reach)) / (0.32 * border))
    size = 0.07 * (lung.bottom - lung.top)
    uneven = (
        1
        + 0.16 * cloud(canvas.gray.shape, size, canvas.rng)
        + 0.10 * cloud(canvas.gray.shape, 2.5 * size, canvas.rng)
    )
    weight = np.clip(body * uneven, 0, 1.1) * feather(dilate(lung.mask, 5), 6.0)
    return blur(weight.astype(np.float32), 2.0)


def _logistic(value: Field) -> Field:
    curve: Field = (1 / (1 + np.exp(-np.clip(value, -30, 30)))).astype(np.float32)
    return curve


def _cuffed(gray: Field, weight: Field, conspicuity: int) -> Field:
    """Vessels with blurred edges: broader and softer where the haze lies."""
    broad = blur(gray, 2.4) - blur(gray, 7.0)
    lifted: Field = gray + (0.15, 0.3, 0.45)[conspicuity] * weight * np.clip(broad, -2.0, 8.0)
    return lifted


def _septal_lines(canvas: Canvas, side: str, count: int) -> Field:
    """Thin, nearly level lines of 10 to 20 mm that start at the lower lateral pleura, 0..1."""
    lung = canvas.chest.lung(side)
    inward = 1.0 if side == "right" else -1.0
    height = lung.bottom - lung.top
    sheet = np.zeros(canvas.gray.shape, np.float32)
    rows = np.linspace(lung.bottom - 0.30 * height, lung.bottom - 0.07 * height, count)
    for row in rows + canvas.rng.normal(0, 0.006 * height, count):
        wall = float(lung.wall_at(np.array([row]))[0])
        length = canvas.rng.uniform(10, 19) * canvas.pixels_per_mm
        slope = canvas.rng.normal(0, 0.10)
        start = np.array([wall + inward * canvas.rng.uniform(2, 6), row])
        end = start + np.array([inward * length, slope * length])
        middle = (start + end) / 2 + np.array([0, canvas.rng.normal(0, 0.04 * length)])
        strength = canvas.rng.uniform(0.6, 1.0)
        points = np.round(np.stack([start, middle, end]) * 16).astype(np.int32)
        cv2.polylines(sheet, [points], False, float(strength), 1, cv2.LINE_8, 4)
    lines: Field = np.clip(blur(sheet, 0.9) * 2.0, 0, 1) * lung.mask
    return lines


def rises(canvas: Canvas, side: str) -> dict[str, float]:
    """How much brighter hilum's surroundings and base are than the quiet part of one lung, in parts of the contrast."""
    lung = canvas.chest.lung(side)
    inner: Mask = erode(lung.mask, 4) & ~canvas.chest.protected
    level = between_ribs(canvas, inner)
    share, down = lung_coordinates(canvas, side)
    quiet = inner & (share > 0.1) & (share < 0.4) & (down > 0.2) & (down < 0.6)
    hilar = inner & (share > 0.5) & (share < 0.85) & (down > 0.35) & (down < 0.65)
    base = inner & (share > 0.15) & (share < 0.75) & (down > 0.76)
    middle = inner & (share > 0.15) & (share < 0.75) & (down > 0.25) & (down < 0.55)
    if min(quiet.sum(), hilar.sum(), base.sum(), middle.sum()) < 100:
        return {"perihilar": 0.0, "basal": 0.0}
    contrast = canvas.contrast(side)
    return {
        "perihilar": float(np.median(level[hilar]) - np.median(level[quiet])) / contrast,
        "basal": float(np.median(level[base]) - np.median(level[middle])) / contrast,
    }


def remove(scene: Scene) -> Rendering:
    """Takes haze off both lungs where both rise more than healthy ones do.

    Raises:
        CannotShow: one lung at least is as clear as a healthy one.
    """
    canvas = open_canvas(scene)
    zone_given = scene.intent.zone in ZONES
    least = _ZONE_GIVEN_RISE if zone_given else _LEAST_RISE
    measured = [rises(canvas, side) for side in ("right", "left")]
    mean = {zone: (measured[0][zone] + measured[1][zone]) / 2 for zone in ZONES}
    over = {zone: mean[zone] - least[zone] for zone in ZONES if not zone_given or zone == scene.intent.zone}
    zone = max(over, key=lambda each: over[each])
    if over[zone] < 0:
        raise CannotShow("no edema found: the lungs are not hazy on both sides alike")
    # The quiet part has its own share of a haze around the hilum, so the rise understates that one.
    amount = min((mean[zone] - _USUAL_RISE[zone]) * (1.25 if zone == "perihilar" else 0.9), 0.45)
    drawn, mask = canvas.gray, np.zeros(canvas.gray.shape, bool)
    for side in ("right", "left"):
        share, down = lung_coordinates(canvas, side)
        if zone == "perihilar":
            distance = np.hypot((1.0 - share) * 0.72, (down - 0.48) * 1.25)
            shape = _logistic((0.34 - distance) / 0.05) * np.clip((share - 0.04) / 0.22, 0, 1)
        else:
            shape = _logistic((down - 0.68) / 0.05)
        shape = (shape * feather(canvas.chest.lung(side).mask, 5.0)).astype(np.float32)
        fine = blur(drawn, 1.1) - blur(drawn, 5.0)
        sharper = 0.8 * shape * np.clip(fine, -10.0, 10.0)
        drawn = drawn - amount * canvas.contrast(side) * shape + sharper
        mask |= shape > 0.05
    note = f"haze taken off both lungs ({zone}), vessels sharper"
    return canvas.finish(drawn.astype(np.float32), mask, "local", note)


RENDERER = FindingRenderer(add, remove)
