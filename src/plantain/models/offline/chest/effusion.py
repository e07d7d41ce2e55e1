"""Pleural effusion: fluid that fills the costophrenic angle and climbs the chest wall, or veils a supine lung."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.chest.canvas import (
    Canvas,
    add_opacity,
    blur,
    coordinates,
    masked_blur,
    open_canvas,
)
from plantain.models.offline.chest.drawing import FloatImage, Points
from plantain.models.offline.chest.outline import Lung
from plantain.models.offline.rendering import CannotShow, FindingRenderer, Mask, Rendering, Scene
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
    canvas: Canvas, gray: FloatImage, side: str, extent: int, conspicuity: int, softness: int
) -> tuple[FloatImage, Mask]:
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


def _column(canvas: Canvas, lung: Lung, side: str, rise: float, border: float) -> FloatImage:
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
    column: FloatImage = (weight * inside).astype(np.float32)
    return column


def _between(lung: Lung, columns: FloatImage) -> FloatImage:
    low, high = sorted((lung.angle[0], float(lung.medial[-1, 0])))
    rising = np.clip((columns - low) / 10 + 0.5, 0, 1)
    inside: FloatImage = (rising * np.clip((high - columns) / 10 + 0.5, 0, 1)).astype(np.float32)
    return inside


def _soft_tissue(canvas: Canvas, gray: FloatImage, lung: Lung) -> FloatImage:
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
    tissue: FloatImage = (level - 0.12 * canvas.contrast_of(lung) * height).astype(np.float32)
    return tissue


def blur_row(row: FloatImage, sigma: float) -> FloatImage:
    wide: FloatImage = cv2.GaussianBlur(
        row, (0, 0), sigmaX=sigma, sigmaY=0.1, borderType=cv2.BORDER_REPLICATE
    )
    return wide


def _veil(
    canvas: Canvas, gray: FloatImage, side: str, extent: int, conspicuity: int
) -> tuple[FloatImage, Mask]:
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


def remove(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    sides = [s for s in ("right", "left") if scene.intent.side in (None, s, "bilateral", "midline")]
    drawn, mask, done = canvas.gray, np.zeros(canvas.gray.shape, bool), []
    for side in sides:
        restored = _drain(canvas, drawn, side, named=scene.intent.side is not None)
        if restored is not None:
            drawn, part = restored
            mask |= part
            done.append(side)
    if not done:
        raise CannotShow("no pleural effusion found: both costophrenic angles are sharp")
    if scene.intent.side == "bilateral" and len(done) < 2:
        raise CannotShow(
            f"fluid found on the {done[0]} only: a base is restored after the other one, and with fluid on both "
            "sides there is none"
        )
    return canvas.finish(
        drawn, mask, "local", f"fluid drained, {' and '.join(done)}: sharp angle, dome and vessels"
    )


def _drain(canvas: Canvas, gray: FloatImage, side: str, *, named: bool) -> tuple[FloatImage, Mask] | None:
    """The lung's base drawn anew from the other side, mirrored and brought to this side's levels.

    Fluid is where this base is far whiter than the other one, mirrored, in one piece that holds the angle.
    """
    lung, other = canvas.chest.lung(side), canvas.chest.lung("left" if side == "right" else "right")
    height = other.bottom - other.top
    rows, _ = coordinates(gray.shape)
    donor, inside, share = _mirrored(gray, lung, other, _lift(lung, other, side))
    start = min(lung.bottom, other.bottom) - 0.42 * height
    shared = lung.mask & inside & (rows < start + 0.1 * height) & (rows > start - 0.25 * height)
    if shared.sum() < 500:
        return None
    donor = donor + float(np.clip(np.median(gray[shared]) - np.median(donor[shared]), -40, 40))
    whiter = inside & (blur(gray, 5.0) - blur(donor, 5.0) > 0.22 * canvas.contrast(side)) & (rows > start)
    lowest = int(np.flatnonzero((inside & (share < 0.4)).any(axis=1))[-1])
    angle = inside & (share < 0.4) & (rows > lowest - 0.13 * height)
    filled = float(whiter[angle].mean())
    # A sharp angle is dark to its tip, however high the dome stands: fluid fills it.
    if filled < (0.6 * LEAST_FILLED if named else LEAST_FILLED):
        return None
    fluid = (whiter & (rows > _highest(whiter & (share > 0.02) & (share < 0.14)))).astype(np.uint8)
    fluid = cv2.morphologyEx(fluid, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9)))
    _, labels = cv2.connectedComponents(fluid)
    corner = (fluid > 0) & angle
    if not corner.any():
        return None
    region = labels == np.bincount(labels[corner]).argmax()
    wide = (
        cv2.morphologyEx(dilate(region, 16).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((31, 31), np.uint8))
        > 0
    )
    alpha = feather(wide & (share > -0.04) & (share < 1.0), 10.0)
    return (gray + alpha * np.minimum(donor - gray, 0)).astype(np.float32), alpha > 0.04


def _highest(at_wall: Mask) -> int:
    """The row up to which fluid climbs the wall without a break; a meniscus is nowhere higher."""
    rows = np.flatnonzero(at_wall.sum(axis=1) > 2)
    if len(rows) == 0:
        return 0
    breaks = np.flatnonzero(np.diff(rows) > 10)
    return int(rows[breaks[-1] + 1] if len(breaks) else rows[0]) - 12


LEAST_FILLED = 0.75
"""Part of the costophrenic angle that fluid must fill to be found unasked."""


def _lift(lung: Lung, other: Lung, side: str) -> float:
    """How much higher this dome stands than the other, in parts of the lung's height: seen medially, else usual."""

    def middle(of: Lung) -> float:
        foot = float(of.medial[-1, 0])
        return float(of.dome_at(np.array([foot + 0.16 * (of.angle[0] - foot)]))[0])

    seen = (middle(other) - middle(lung)) / (other.bottom - other.top)
    usual = 0.02 if side == "right" else -0.02
    return seen if abs(seen - usual) < 0.13 else usual


def _mirrored(
    gray: FloatImage, lung: Lung, other: Lung, lift: float
) -> tuple[FloatImage, Mask, npt.NDArray[np.float64]]:
    """The other lung row by row from wall to mediastinum laid into this one: picture, mask, place (0 wall..1)."""
    rows = np.arange(gray.shape[0], dtype=np.float64)
    height = other.bottom - other.top
    wall_there = other.wall_at(rows)
    # Fluid pulls this side's border inwards: below its upper edge the other side's wall, mirrored, stands in.
    start = lung.bottom - 0.2 * height
    wall_here = lung.wall_at(rows)
    turned = wall_here[int(start)] - (wall_there - wall_there[int(start)])
    wall_here = np.where(rows > start, turned, wall_here)
    medial_here, medial_there = _extended(lung.medial, rows, 0.9), _extended(other.medial, rows, 0.9)
    if lung.angle[0] > float(lung.medial[-1, 0]):
        # The left heart border runs outwards all the way down; hidden in fluid, it is carried on so.
        foot = float(lung.medial[-1, 1])
        medial_here = np.where(
            rows > foot, np.maximum(medial_here, lung.medial[-1, 0] + 0.5 * (rows - foot)), medial_here
        )
    width = medial_here - wall_here
    width = np.where(np.abs(width) < 8, np.copysign(8.0, width), width)
    columns = np.arange(gray.shape[1], dtype=np.float64)[None]
    share = (columns - wall_here[:, None]) / width[:, None]
    source_x = (wall_there[:, None] + share * (medial_there - wall_there)[:, None]).astype(np.float32)
    # Both angles lie about level; the domes between them need not.
    rising = np.clip(share / 0.55, 0, 1)
    source_y = (rows[:, None] + lift * height * rising * rising * (3 - 2 * rising)).astype(np.float32)
    donor = cv2.remap(gray, source_x, source_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    lit = cv2.remap(other.mask.astype(np.float32), source_x, source_y, cv2.INTER_LINEAR)
    return donor, (lit > 0.5) & (share > -0.02) & (share < 1.0), share


def _extended(border: Points, rows: npt.NDArray[np.float64], steepest: float) -> npt.NDArray[np.float64]:
    """A border carried on below its end along its last direction."""
    order = np.argsort(border[:, 1], kind="stable")
    across: npt.NDArray[np.float64] = np.interp(rows, border[order, 1], border[order, 0])
    end_y = float(border[-1, 1])
    last = border[(border[:, 1] > end_y - 70) & (border[:, 1] < end_y - 12)]
    slope = float(np.polyfit(last[:, 1], last[:, 0], 1)[0]) if len(last) > 8 else 0.0
    below = rows > end_y - 12
    start = float(np.interp(end_y - 12, border[order, 1], border[order, 0]))
    across[below] = start + np.clip(slope, -steepest, steepest) * (rows[below] - (end_y - 12))
    return across


RENDERER = FindingRenderer(add, remove)
