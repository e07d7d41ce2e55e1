"""Myopic fundus as drawn here: a pale temporal crescent beside the disc, and choroidal vessels through thin pigment."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.fundus.anatomy import Anatomy, read_anatomy
from plantain.models.offline.fundus.levels import choose_levels
from plantain.models.offline.fundus.paint import mottle
from plantain.models.offline.fundus.restore import close_over, grow, vessel_free
from plantain.models.offline.rendering import CannotShow, Mask, Pixels, Rendering, Scene

Field = npt.NDArray[np.float32]

WIDTH = (0.22, 0.42, 0.70)
"""Width of the crescent at its widest, in disc radii."""

PALE = (0.35, 0.6, 0.85)
EDGE = (0.05, 0.09, 0.16)
STRIPES = (0.0, 0.04, 0.065)
"""Contrast of the choroidal pattern round the disc, by extent."""

LEAST_PALER = 0.025
"""How much the share of green must rise across an edge inside the bright ellipse to be the disc's true edge;
of six discs without a crescent none reaches 0.015."""

FEWEST_SHARE = 0.10
"""Pale area beside the disc, as a share of the disc's, below which there is no crescent to take away."""


def add_crescent(scene: Scene) -> Rendering:
    """Draws the crescent under the vessels; from moderate extent on, choroidal stripes round it. The disc stays."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    levels = choose_levels(scene.intent, scene.rng)
    rng, shape = scene.rng, scene.pixels.shape[:2]
    radius, turn = _polar(anatomy, shape)
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
    target = _sclera(surface, anatomy) * (1 + 0.012 * mottle(shape, 4.0, rng))[..., None]
    change = (zone * PALE[levels.conspicuity])[..., None] * (target - surface) * passing
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


def remove_crescent(scene: Scene) -> Rendering:
    """Finds pale tissue along the disc's edge and closes even pigment over it."""
    anatomy = _own_disc(read_anatomy(scene.pixels, scene.image.laterality), scene.pixels)
    pale, share = pale_beside_disc(scene, anatomy)
    if share < FEWEST_SHARE:
        raise CannotShow("no pale crescent found beside the disc")
    radius, _ = _polar(anatomy, scene.pixels.shape[:2])
    spots = grow(pale, 4) & (radius > 1.0)
    pixels = close_over(
        scene.pixels, anatomy, spots, scene.rng, deep=True, avoid=np.asarray(radius < 1.06, dtype=bool)
    )
    inner = radius < 0.97
    pixels = np.where(inner[..., None], scene.pixels, pixels)
    note = f"pale crescent of {share:.2f} disc areas closed over, disc and vessels unchanged"
    return Rendering(pixels, grow(spots, 4), "local", note)


def pale_beside_disc(scene: Scene, anatomy: Anatomy) -> tuple[Mask, float]:
    """bool (H, W), pale tissue that joins the disc's edge, and its area as a share of the disc's."""
    radius, turn = _polar(anatomy, scene.pixels.shape[:2])
    surface = vessel_free(scene.pixels, 15)
    tone = surface[..., 1] / np.maximum(surface[..., 0], 8.0)
    light = surface[..., 1]
    temporal = (np.abs(turn) < 1.35) & (anatomy.aperture.depth > 8)
    around = (radius > 2.0) & (radius < 2.6) & temporal
    ring = (radius > 1.03) & (radius < 1.95) & temporal
    if around.sum() < 200:
        return np.zeros(radius.shape, dtype=bool), 0.0
    usual = float(np.median(light[around]))
    usual_tone = float(np.median(tone[around]))
    pale = ring & (light > usual * 1.30) & (tone > usual_tone * 1.03)
    joined = (pale | (radius <= 1.03)).astype(np.uint8)
    joined = cv2.morphologyEx(joined, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    _, labels = cv2.connectedComponents(joined, connectivity=4)
    own = labels[round(anatomy.disc.y), round(anatomy.disc.x)]
    found = np.asarray((labels == own) & ring & pale, dtype=bool)
    area = np.pi / 4 * anatomy.disc.width * anatomy.disc.height
    return found, float((found & (radius > 1.12)).sum()) / area


def _own_disc(anatomy: Anatomy, pixels: Pixels) -> Anatomy:
    """The anatomy with the disc's own width: the edge found beyond a crescent makes it too large temporally.

    The nasal edge stands. Across the true temporal edge the tissue turns paler outwards, which inside a disc
    without a crescent it does nowhere; where no such edge is seen, a disc wider than usual is narrowed.
    """
    disc = anatomy.disc
    best, rise = None, LEAST_PALER
    surface = vessel_free(pixels, 15)
    half = round(1.2 * disc.height)
    top, left = max(0, round(disc.y) - half), max(0, round(disc.x) - half)
    box = np.s_[top : round(disc.y) + half, left : round(disc.x) + half]
    tone = surface[box][..., 1] / np.maximum(surface[box][..., 0], 8.0)
    for share in np.arange(0.70, 0.97, 0.03):
        width, height = float(share) * disc.width, (0.4 + 0.6 * float(share)) * disc.height
        x = disc.x - anatomy.temporal * (disc.width - width) / 2
        tried = replace(disc, x=x, width=width, height=height)
        moved = replace(anatomy, disc=replace(tried, x=x - left, y=disc.y - top))
        radius, turn = _polar(moved, tone.shape)
        facing = np.abs(turn) < 0.9
        inside, beyond = (facing & (radius > a) & (radius < b) for a, b in ((0.86, 0.97), (1.03, 1.14)))
        if min(inside.sum(), beyond.sum()) < 40:
            continue
        paler = float(np.median(tone[beyond]) / np.median(tone[inside])) - 1
        if paler > rise:
            best, rise = tried, paler
    if best is not None:
        return replace(anatomy, disc=best)
    width = 0.88 * disc.height
    if disc.width <= width:
        return anatomy
    x = disc.x - anatomy.temporal * (disc.width - width) / 2
    return replace(anatomy, disc=replace(disc, x=x, width=width))


def _polar(anatomy: Anatomy, shape: tuple[int, ...]) -> tuple[Field, Field]:
    """Distance from the disc's centre in disc radii, and the direction: 0 temporal, positive downward."""
    ys, xs = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    u = (xs - anatomy.disc.x) / (anatomy.disc.width / 2) * anatomy.temporal
    v = (ys - anatomy.disc.y) / (anatomy.disc.height / 2)
    return np.hypot(u, v).astype(np.float32), np.arctan2(v, u).astype(np.float32)


def _sclera(surface: Field, anatomy: Anatomy) -> Field:
    """Bare sclera lit as the retina beside it: yellow-white, never brighter than the disc at its palest."""
    value = np.minimum(surface[..., :1] * 1.12 + 10, 245.0)
    tone = value * np.asarray((1.0, 0.82, 0.54), np.float32)
    disc = surface[anatomy.disc.distance(surface.shape) < 0.9]
    most = np.quantile(disc, 0.85, axis=0) if disc.size else np.full(3, 245.0)
    return np.asarray(np.maximum(np.minimum(tone, most), surface), dtype=np.float32)


def _tessellation(scene: Scene, anatomy: Anatomy, radius: Field, contrast: float) -> tuple[Field, Field]:
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
