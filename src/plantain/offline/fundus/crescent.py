"""Myopic fundus as drawn here: a pale temporal crescent beside the disc, and choroidal vessels through thin pigment."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.levels import choose_levels
from plantain.offline.fundus.paint import mottle
from plantain.offline.fundus.restore import grow, vessel_free
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field

WIDTH = (0.22, 0.42, 0.70)
"""Width of the crescent at its widest, in disc radii."""

PALE = (0.40, 0.74, 0.90)
EDGE = (0.05, 0.09, 0.16)
STRIPES = (0.0, 0.04, 0.065)
"""Contrast of the choroidal pattern round the disc, by extent."""

PALER = 1.11
"""Green over red of bare sclera, as a multiple of the disc rim's."""

LEAST_SEEN = 4.0
"""Grey levels in green and blue by which a crescent must change what it lies on to be seen."""


def add_crescent(scene: Scene) -> Rendering:
    """Draws the crescent under the vessels; from moderate extent on, choroidal stripes round it. The disc stays."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    levels = choose_levels(scene.intent, scene.rng)
    rng, shape = scene.rng, scene.pixels.shape[:2]
    radius, turn = polar(anatomy, shape)
    width = WIDTH[levels.extent] * float(rng.uniform(0.9, 1.1))
    tilt = float(rng.uniform(-0.25, 0.35)) + 0.2 * scene.intent.variant
    lean = np.clip(np.cos((turn - tilt) * 0.80), 0, 1) ** 1.3
    if levels.extent == 2:
        lean = np.clip(np.cos((turn - tilt) * 0.62), 0, 1) ** 1.3
    ragged = 1 + 0.06 * mottle(shape, 0.3 * anatomy.disc.diameter, rng)
    outer = 1 + width * lean * ragged
    edge = EDGE[levels.softness]
    zone = (
        _ramp((outer - radius) / edge) * _ramp((radius - 0.99) / 0.035) * _ramp((width * lean - 0.03) / 0.03)
    )
    inside = np.clip((anatomy.aperture.depth - 4) / 6, 0, 1)
    zone *= inside
    surface = vessel_free(scene.pixels, 15)
    passing = np.clip(scene.pixels / np.maximum(surface, 8.0), 0.3, 1.15)
    target = _sclera(surface, anatomy, radius) * (1 + 0.012 * mottle(shape, 4.0, rng))[..., None]
    change = (zone * PALE[levels.conspicuity])[..., None] * (target - surface) * passing
    if float(np.median(change[zone > 0.5][:, 1:])) < LEAST_SEEN:
        raise CannotShow("the retina beside the disc is as pale as a crescent would be")
    # Pigment is heaped along the outer border.
    line = np.exp(-np.square((radius - outer - 0.02) / 0.035)) * _ramp((width * lean - 0.08) / 0.05) * inside
    line *= np.clip(0.35 + 0.35 * mottle(shape, 14.0, rng), 0, 1)
    change -= (0.16 * PALE[levels.conspicuity] * line)[..., None] * scene.pixels
    seen = np.maximum(zone, line)
    if levels.extent > 0:
        stripes, where = _tessellation(
            scene, anatomy, radius, STRIPES[levels.extent] * (0.6 + 0.3 * levels.conspicuity)
        )
        fade = (1 - zone)[..., None]
        change += stripes * fade
        seen = np.maximum(seen, where)
    mask = seen > 0.05
    out = np.rint(np.clip(scene.pixels + change, 0, 255)).astype(np.uint8)
    near = grow(mask, 12)[..., None]
    note = (
        f"temporal crescent {width:.2f} disc radii wide, {levels.words()}, disc unchanged, {anatomy.eye} eye"
    )
    return Rendering(np.where(near, out, scene.pixels), mask, "local", note)


def polar(anatomy: FundusAnatomy, shape: tuple[int, ...]) -> tuple[Field, Field]:
    """Distance from the disc's centre in disc radii, and the direction: 0 temporal, positive downward."""
    ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    u = (xs - anatomy.disc.x) / (anatomy.disc.width / 2) * anatomy.temporal
    v = (ys - anatomy.disc.y) / (anatomy.disc.height / 2)
    return np.hypot(u, v).astype(np.float32), np.arctan2(v, u).astype(np.float32)


def _sclera(surface: Field, anatomy: FundusAnatomy, radius: Field) -> Field:
    """Bare sclera lit as the retina beside it: yellow-white, less pink than the rim that it borders on, never
    brighter than the disc at its palest."""
    value = np.minimum(surface[..., :1] * 1.12 + 10, 245.0)
    rim = surface[(radius > 0.84) & (radius < 0.98) & (anatomy.aperture.depth > 6)]
    pink = float(np.median(rim[:, 1] / np.maximum(rim[:, 0], 8.0))) if len(rim) else 0.7
    tone = value * np.asarray(
        (1.0, np.clip(PALER * pink, 0.82, 0.96), 0.54 + 0.5 * max(pink - 0.75, 0)), np.float32
    )
    disc = surface[radius < 0.9]
    most = float(np.quantile(disc.sum(axis=1), 0.92)) if disc.size else 735.0
    tone *= np.minimum(1.0, most / np.maximum(tone.sum(axis=2, keepdims=True), 1.0))
    return np.asarray(np.maximum(tone, surface), dtype=np.float32)


def _tessellation(
    scene: Scene, anatomy: FundusAnatomy, radius: Field, contrast: float
) -> tuple[Field, Field]:
    """Choroidal stripes: orange vessels fanning out from the disc with darker gaps; faint at the fovea."""
    shape = radius.shape
    strokes = np.zeros(shape, np.float32)
    disc, rng = anatomy.disc, scene.rng
    for _ in range(150):
        turn, away = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.6, 1.9)) * disc.diameter
        x, y = disc.x + away * np.cos(turn), disc.y + away * np.sin(turn)
        heading, bend = turn + float(rng.normal(0, 0.35)), float(rng.normal(0, 0.05))
        path = [(x, y)]
        for _ in range(int(rng.integers(8, 20))):
            heading += bend + float(rng.normal(0, 0.08))
            x, y = x + 8 * np.cos(heading), y + 8 * np.sin(heading)
            path.append((x, y))
        points = np.rint(np.asarray(path) * 8).astype(np.int32)
        weight = 0.045 * disc.diameter * float(rng.uniform(0.7, 1.8))
        cv2.polylines(
            strokes, [points], False, float(rng.uniform(0.5, 1.0)), max(round(weight), 1), cv2.LINE_8, 3
        )
    field = cv2.GaussianBlur(strokes, (0, 0), 3.2)
    field -= cv2.GaussianBlur(field, (0, 0), 18.0)
    where = _ramp((radius - 1.25) / 0.2) * _ramp((3.6 - radius) / 0.9)
    ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    fovea = np.hypot(xs - anatomy.fovea[0], ys - anatomy.fovea[1]) / (0.6 * anatomy.disc.diameter)
    where *= (1 - np.exp(-np.square(fovea))) * np.clip((anatomy.aperture.depth - 4) / 10, 0, 1)
    tone = np.asarray((0.8, 0.9, 0.45), np.float32)
    stripes = (2.0 * contrast * field * where)[..., None] * tone * scene.pixels
    return np.asarray(stripes, dtype=np.float32), np.asarray(where, dtype=np.float32)


def _ramp(value: Field) -> Field:
    """Smooth step from 0 at -1 to 1 at +1."""
    t = np.clip(0.5 + value / 2, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), dtype=np.float32)
