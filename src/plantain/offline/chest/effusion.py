"""Pleural effusion: fluid that fills the costophrenic angle and climbs the chest wall, or veils a supine lung."""

from __future__ import annotations

import numpy as np

from plantain.offline.chest.canvas import (
    Canvas,
    add_opacity,
    blur,
    blur_row,
    coordinates,
    masked_blur,
    open_canvas,
)
from plantain.offline.chest.draining import remove
from plantain.offline.chest.outline import Lung
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode, feather

_RISE = ((0.035, 0.055), (0.12, 0.18), (0.30, 0.42))
"""How far fluid climbs the chest wall above the costophrenic angle, in parts of the lung's height."""
_DENSITY = (0.62, 0.82, 0.95)
_BORDER = (0.006, 0.012, 0.022)


def add(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    both = scene.intent.side == "bilateral"
    sides = ("right", "left") if both else (canvas.side(),)
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    drawn, mask, words = canvas.gray, np.zeros(canvas.gray.shape, bool), ""
    for side in sides:
        if canvas.supine:
            drawn, part = _veil(canvas, drawn, side, extent, conspicuity)
            words = "veil over the dependent lung, no meniscus (supine)"
        else:
            drawn, part = _fluid(canvas, drawn, side, extent, conspicuity, softness)
            words = f"fluid in the costophrenic angle with a meniscus{canvas.position_words}"
        mask |= part
    return canvas.finish(drawn, mask, "local", f"{words}, {' and '.join(sides)}")


def _fluid(
    canvas: Canvas, gray: Field, side: str, extent: int, conspicuity: int, softness: int
) -> tuple[Field, Mask]:
    lung = canvas.chest.lung(side)
    height = lung.bottom - lung.top
    rise = canvas.rng.uniform(*_RISE[extent]) * height
    weight = _column(canvas, lung, side, rise, max(2.5, _BORDER[softness] * height)) * _DENSITY[conspicuity]
    level = _soft_tissue(canvas, gray, lung)
    coarse = masked_blur(gray, lung.mask, 22.0)
    # Ribs are still faintly seen through fluid; vessels and the diaphragm's edge are not.
    detail = blur(gray, 3.0) - coarse
    grain = gray - blur(gray, 1.4)
    ribs = np.clip(detail, -30, 30) * 0.25 * feather(erode(lung.mask, 8), 7.0)
    filled = level + ribs + grain
    # Fluid only ever whitens: bone and soft tissue beside the lung stay where they are brighter already.
    drawn = gray + weight * np.maximum(filled - gray, 0)
    return drawn.astype(np.float32), weight > 0.05


def _column(canvas: Canvas, lung: Lung, side: str, rise: float, border: float) -> Field:
    """0..1: how much of the beam's way through fluid; concave above, higher laterally, hidden diaphragm below."""
    rows, columns = coordinates(canvas.gray.shape)
    angle_x, angle_y = lung.angle
    foot_x = float(lung.medial[-1, 0])
    across = np.clip((columns[0] - angle_x) / (foot_x - angle_x), -0.3, 1.6)
    peak = float(lung.diaphragm[:, 1].min())
    # The surface: at `rise` above the angle on the wall, falling towards the middle and never level.
    drop = np.clip(across, 0, 1.3)
    level_medial = max(0.0, rise - (angle_y - peak)) * 0.62
    fall = np.exp(-drop / 0.34) - 0.05 * drop
    surface = angle_y - (level_medial + (rise - level_medial) * fall)
    surface += 0.012 * rise * np.sin(drop * 5 + canvas.rng.uniform(0, 6.28))
    above = (rows - surface[None, :].astype(np.float32)) / border
    ramp = 1 / (1 + np.exp(-np.clip(1.8 * above, -30, 30)))
    # A thin veil climbs the wall above the surface: fluid in front of and behind the lung.
    veil = 0.22 * np.exp(-np.clip((surface[None, :] - rows) / (0.30 * rise + 8), 0, 20)) * (above < 0)
    weight = np.maximum(ramp, veil * np.exp(-np.clip(drop, 0, 2) / 0.30)[None, :])
    # A few pixels past the lung's border, so that the edges of wall and diaphragm go as well.
    inside = feather(dilate(lung.mask, 13), 6.0)
    near_heart = np.abs(columns - lung.medial_at(rows[:, 0].astype(np.float64))[:, None])
    beyond = (columns - lung.medial_at(rows[:, 0].astype(np.float64))[:, None]) * (foot_x - angle_x) > 0
    inside = inside * np.where(beyond, np.clip(1 - near_heart / 6, 0, 1), 1.0)
    column: Field = (weight * inside).astype(np.float32)
    return column


def _between(lung: Lung, columns: Field) -> Field:
    low, high = sorted((lung.angle[0], float(lung.medial[-1, 0])))
    rising = np.clip((columns - low) / 10 + 0.5, 0, 1)
    inside: Field = (rising * np.clip((high - columns) / 10 + 0.5, 0, 1)).astype(np.float32)
    return inside


def _soft_tissue(canvas: Canvas, gray: Field, lung: Lung) -> Field:
    """Grey level of the abdomen under this lung, carried up into it."""
    rows, columns = coordinates(gray.shape)
    dome = lung.dome_at(columns[0].astype(np.float64)).astype(np.float32)[None]
    under = (rows > dome + 14) & (rows < dome + 40) & (_between(lung, columns) > 0.5) & canvas.chest.field
    if under.sum() < 200:
        raise CannotShow("too little of the abdomen is in view to know what fluid would look like")
    # Gas in the stomach or bowel is no measure of soft tissue.
    usual = float(np.percentile(gray[under], 60))
    solid = under & (gray > usual - 30)
    weight = solid.sum(axis=0).astype(np.float32)[None]
    total = np.where(solid, gray, 0).sum(axis=0, dtype=np.float32)[None]
    spread = 0.05 * canvas.chest.thoracic_width
    level = blur_row(total, spread) / np.maximum(blur_row(weight, spread), 1e-3)
    level = np.where(blur_row(weight, spread) > 0.05, level, usual)
    # Less fluid in the beam's way towards the surface.
    height = np.clip((dome - rows) / (0.3 * (lung.bottom - lung.top)), 0, 1)
    tissue: Field = (level - 0.12 * canvas.contrast_of(lung) * height).astype(np.float32)
    return tissue


def _veil(canvas: Canvas, gray: Field, side: str, extent: int, conspicuity: int) -> tuple[Field, Mask]:
    """Supine: a haze over the lung, denser towards the base, vessels seen through it, angle and dome blurred."""
    lung = canvas.chest.lung(side)
    rows, _ = coordinates(gray.shape)
    down = np.clip((rows - lung.top) / (lung.bottom - lung.top), 0, 1)
    start = (0.55, 0.3, 0.0)[extent]
    ramp = 0.25 + 0.75 * np.clip((down - start) / (1 - start), 0, 1)
    ramp = ramp * np.clip((down - start + 0.15) / 0.15, 0, 1)
    strength = (0.14, 0.26, 0.42)[conspicuity] * canvas.contrast(side)
    cap = np.exp(-down / 0.05) * 0.6 if extent == 2 else 0.0
    haze = feather(lung.mask, 12.0) * np.maximum(ramp, cap) * feather(dilate(lung.mask, 8), 6.0)
    haze = haze.astype(np.float32)
    return add_opacity(gray, strength * haze), haze > 0.05


RENDERER = FindingRenderer(add, remove)
