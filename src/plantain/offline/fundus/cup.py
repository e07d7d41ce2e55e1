"""Glaucoma as drawn here: a cup too large for its disc, taller than wide, a rim thinned or notched; disc unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.levels import choose_levels
from plantain.offline.fundus.restore import vessel_free
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask, Pixels

VERTICAL = (0.70, 0.78, 0.87)
"""Vertical cup over vertical disc by extent; up to about 0.6 is within the normal range."""

HORIZONTAL = (0.56, 0.62, 0.70)
PALLOR = (0.45, 0.65, 0.85)
EDGE = (0.07, 0.12, 0.20)
NOTCH = (0.03, 0.07, 0.09)
EDGE_PALE, CUP_PALE = 0.10, 0.30
"""How far a restored rim goes from pink to the cup's tone at the disc's edge, and how much further at the cup."""

ENLARGED = 0.64
HEALTHY = 0.40


@dataclass(frozen=True, slots=True, eq=False)
class DiscPatch:
    """The disc cut out, in its own coordinates.

    Attributes:
        rows, columns: where it lies.
        radius: float32 (h, w), 0 in the centre, 1 on the disc's edge.
        u, v: float32 (h, w), horizontal (temporal positive) and vertical (down positive), in disc radii.
        surface: float32 (h, w, 3), the disc without vessels.
    """

    rows: slice
    columns: slice
    radius: Field
    u: Field
    v: Field
    surface: Field


def add_cup(scene: Scene) -> Rendering:
    """Enlarges the cup inside the disc's own outline."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    _require_whole_disc(anatomy)
    levels = choose_levels(scene.intent, scene.rng)
    patch = cut_disc(scene.pixels, anatomy)
    high = VERTICAL[levels.extent] + float(scene.rng.uniform(-0.015, 0.015))
    wide = min(HORIZONTAL[levels.extent] + float(scene.rng.uniform(-0.03, 0.03)), high - 0.06)
    zone, chance = scene.intent.zone or "", bool(scene.rng.random() < 0.7)
    below = "inferior" in zone or ("superior" not in zone and chance != bool(scene.intent.variant % 2))
    turn = np.arctan2(patch.v, patch.u - 0.03)
    notch_at = np.float32(1.05 if below else -1.05)
    notch = NOTCH[levels.extent] * np.exp(-np.square(_angle(turn - notch_at) / 0.35))
    outline = 1 / np.sqrt(np.square(np.cos(turn) / wide) + np.square(np.sin(turn) / high)) + notch
    reach = np.hypot(patch.u - 0.03, patch.v)
    edge = EDGE[levels.softness]
    cup = _ramp((np.minimum(outline, 0.95) - reach) / edge)
    moved = _stretched(scene.pixels, anatomy, patch, 0.72)
    changed = _tinted(moved, patch, cup * PALLOR[levels.conspicuity], _cup_tone(patch), 0.75)
    note = (
        f"cup enlarged to {high:.2f} of the disc's height, rim thinnest {'infero' if below else 'supero'}temporally, "
        f"disc unchanged, {levels.words()}, {anatomy.eye} eye"
    )
    return _laid_back(scene.pixels, patch, changed, note)


def remove_cup(scene: Scene) -> Rendering:
    """Fills the rim in again: a small round cup, pink rim, the disc's size as it was."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    _require_whole_disc(anatomy)
    patch = cut_disc(scene.pixels, anatomy)
    ratio = cup_ratio(patch)
    if ratio < ENLARGED:
        raise CannotShow(f"no enlarged cup found (about {ratio:.2f} of the disc's height)")
    moved = _stretched(scene.pixels, anatomy, patch, 1.45)
    reach = np.hypot(patch.u - 0.05, patch.v * 1.04)
    rim = 0.8 * _ramp((reach - HEALTHY) / 0.22)
    # Pink at the edge, paler towards the cup: a rim of one tone looks like a plate.
    inward = np.clip((1 - reach) / (1 - HEALTHY), 0, 1)[..., None]
    pink = _rim_tone(patch)
    tone = pink + (_cup_tone(patch) - pink) * (EDGE_PALE + CUP_PALE * np.square(inward))
    changed = _tinted(moved, patch, rim, np.asarray(tone, dtype=np.float32), 1.0)
    note = f"cup taken back from about {ratio:.2f} to {HEALTHY:.2f} of the disc's height, rim filled, disc unchanged"
    return _laid_back(scene.pixels, patch, changed, note)


def cut_disc(pixels: Pixels, anatomy: FundusAnatomy) -> DiscPatch:
    """Cuts the disc out with half a radius around it."""
    disc = anatomy.disc
    reach = round(0.85 * max(disc.width, disc.height))
    rows = slice(max(round(disc.y) - reach, 0), min(round(disc.y) + reach, pixels.shape[0]))
    columns = slice(max(round(disc.x) - reach, 0), min(round(disc.x) + reach, pixels.shape[1]))
    ys, xs = np.mgrid[rows, columns].astype(np.float32)
    u = (xs - disc.x) / (disc.width / 2) * anatomy.temporal
    v = (ys - disc.y) / (disc.height / 2)
    surface = vessel_free(np.ascontiguousarray(pixels[rows, columns]), 2 * round(0.09 * disc.diameter) + 1)
    return DiscPatch(rows, columns, np.hypot(u, v).astype(np.float32), u, v, surface)


def cup_ratio(patch: DiscPatch) -> float:
    """Vertical cup over vertical disc: how far the pale middle reaches up and down the temporal half of the disc."""
    tone = patch.surface[..., 1] + 0.5 * patch.surface[..., 2]
    inside = patch.radius < 0.97
    rim, pale = np.quantile(tone[inside], (0.08, 0.94))
    column = inside & (np.abs(patch.u - 0.1) < 0.28)
    steps = np.linspace(-0.95, 0.95, 39)
    profile = [
        float(np.median(tone[column & (np.abs(patch.v - step) < 0.05)]))
        if np.any(column & (np.abs(patch.v - step) < 0.05))
        else float(rim)
        for step in steps
    ]
    above = np.asarray(profile) > rim + 0.55 * (pale - rim)
    return float(np.ptp(steps[above])) / 2 if above.any() else 0.0


def _require_whole_disc(anatomy: FundusAnatomy) -> None:
    disc = anatomy.disc
    depth = float(anatomy.aperture.depth[round(disc.y), round(disc.x)])
    if depth < 0.5 * disc.diameter + 4:
        raise CannotShow("the optic disc is cut off by the border of the field")


def _cup_tone(patch: DiscPatch) -> Field:
    """The palest that this disc shows, a little whitened."""
    values = patch.surface[patch.radius < 0.9]
    light = values.sum(axis=1)
    pale = values[light >= np.quantile(light, 0.85)].mean(axis=0)
    whiter = pale + pale[0] * np.asarray((0.0, 0.02, 0.06))
    return np.asarray(whiter.clip(0, 248), dtype=np.float32)


def _rim_tone(patch: DiscPatch) -> Field:
    """Pink: the nasal rim's own colour, the part that a cup reaches last, never darker than the retina beside it."""
    ring = (patch.radius > 0.70) & (patch.radius < 0.90) & (patch.u < -0.2)
    values = patch.surface[ring]
    light = values.sum(axis=1)
    chosen = (light >= np.quantile(light, 0.45)) & (light <= np.quantile(light, 0.9))
    rim = values[chosen].mean(axis=0)
    beside = (patch.radius > 1.15) & (patch.radius < 1.5) & (patch.surface.min(axis=2) > 8)
    retina = np.median(patch.surface[beside], axis=0) if beside.any() else rim
    lift = max(1.0, 1.08 * float(retina.sum()) / max(float(rim.sum()), 1.0))
    return np.asarray(rim * lift, dtype=np.float32).clip(0, 248)


def _stretched(pixels: Pixels, anatomy: FundusAnatomy, patch: DiscPatch, scale: float) -> Field:
    """The disc's inside pulled outward (`scale` below 1) or inward (above 1); its edge stays where it is."""
    factor = scale + (1 - scale) * _ramp((patch.radius - 0.45) / 0.55 * 2 - 1)
    factor = np.where(patch.radius < 1, factor, 1.0)
    disc = anatomy.disc
    map_x = disc.x + patch.u * anatomy.temporal * (disc.width / 2) * factor
    map_y = disc.y + patch.v * (disc.height / 2) * factor
    moved = cv2.remap(pixels, map_x.astype(np.float32), map_y.astype(np.float32), cv2.INTER_CUBIC)
    return np.asarray(moved, dtype=np.float32)


def _tinted(moved: Field, patch: DiscPatch, alpha: Field, tone: Field, keep: float) -> Field:
    """Gives a region a tone while vessels stay on it, `keep` of their contrast."""
    surface = vessel_free(np.clip(moved, 0, 255).astype(np.uint8), 15)
    # A closing lies a little above the surface that it closes over: what is barely darker is no vessel.
    calm = cv2.GaussianBlur(moved, (0, 0), 1.0)
    passing = np.clip(1.06 * calm / np.maximum(surface, 8.0), 0.25, 1.0)
    passing = 1 + keep * (passing - 1)
    shade = 1 - 0.05 * np.square(patch.radius)[..., None]
    return np.asarray(moved + alpha[..., None] * (tone * shade * passing - calm), dtype=np.float32)


def _laid_back(pixels: Pixels, patch: DiscPatch, changed: Field, note: str) -> Rendering:
    """The changed disc in its place; nothing outside the disc's outline is touched."""
    out = pixels.copy()
    before = pixels[patch.rows, patch.columns]
    alpha = _ramp((0.985 - patch.radius) / 0.05)[..., None]
    mixed = before + alpha * (changed - before)
    out[patch.rows, patch.columns] = np.rint(np.clip(mixed, 0, 255)).astype(np.uint8)
    mask: Mask = np.zeros(pixels.shape[:2], dtype=bool)
    mask[patch.rows, patch.columns] = patch.radius < 1.0
    return Rendering(out, mask, "local", note)


def _ramp(value: npt.NDArray[np.float32]) -> Field:
    """Smooth step from 0 at -1 to 1 at +1."""
    t = np.clip(0.5 + value / 2, 0, 1)
    return np.asarray(t * t * (3 - 2 * t), dtype=np.float32)


def _angle(value: Field) -> Field:
    return np.asarray((value + np.pi) % (2 * np.pi) - np.pi, dtype=np.float32)
