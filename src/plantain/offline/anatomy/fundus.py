"""Anatomy of a colour fundus photograph: aperture, optic disc, fovea and the zones around them."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.anatomy.maps import (
    SIDE,
    AnatomyMap,
    CannotShow,
    blur,
    ellipse,
    filled,
    largest_part,
    reduced,
    shrink,
)
from plantain.pixels.arrays import Field, Mask, Pixels

DISC = 0.135
"""Diameter of the disc over that of the aperture, in a photograph of 45 to 50 degrees."""
FOVEA = (2.5, 0.25)
"""Way from the disc to the fovea, temporally and down, in disc diameters (about 15.5 degrees)."""


def fundus_map(pixels: Pixels) -> AnatomyMap:
    """Return the anatomy map of a fundus photograph; its unit of length is the diameter of the optic disc.

    Args:
        pixels: uint8 (H, W, 3), RGB.

    Raises:
        CannotShow: no round, bright field in colour was found.
    """
    small = reduced(pixels)
    aperture = filled(largest_part(blur(small.max(axis=2).astype(np.float32), 1.0) > 18.0))
    columns, rows = np.flatnonzero(aperture.any(axis=0)), np.flatnonzero(aperture.any(axis=1))
    diameter = float(max(columns.size, rows.size))
    if diameter < 0.4 * SIDE or aperture[:8, :8].any() or aperture.sum() < 0.5 * columns.size * rows.size:
        raise CannotShow("not a fundus photograph: no round, lit field on black was found")
    red, green, blue = (float(small[..., channel][aperture].mean()) for channel in range(3))
    if red < 1.12 * green or red < 1.2 * blue:
        raise CannotShow("not a colour fundus photograph: the field is not red to orange")
    size = DISC * diameter
    middle = ((columns[0] + columns[-1]) / 2, (rows[0] + rows[-1]) / 2)
    level = small[..., 1].astype(np.float32)
    vessels = dark_lines(level, 7)
    disc = _disc(level, vessels, aperture, size, middle)
    temporal = 1.0 if disc[0] < middle[0] else -1.0
    fovea = _fovea(level, aperture, (disc[0] + temporal * FOVEA[0] * size, disc[1] + FOVEA[1] * size), size)
    retina = shrink(aperture, 0.02 * diameter)
    away = (np.arange(SIDE)[None, :] - disc[0]) * temporal
    around = ellipse(disc, (0.55 * size, 0.55 * size))
    pole = ellipse(fovea, (3.6 * size, 2.2 * size)) & retina & ~around
    rim = ellipse(disc, (0.5 * size, 0.56 * size))
    down = np.broadcast_to(np.arange(SIDE)[:, None] > disc[1], rim.shape)
    places = {
        "macula": ellipse(fovea, (1.5 * size, 1.5 * size)) & retina & ~around,
        "disc": rim & retina,
        "inferior rim": rim & retina & down,
        "superior rim": rim & retina & ~down,
        "peripapillary": ellipse(disc, (2.2 * size, 2.2 * size)) & retina & ~around,
        "disc edge": ellipse(disc, (1.05 * size, 1.05 * size)) & retina & (away > -0.3 * size),
        "posterior pole": pole,
        "mid-periphery": retina & ~ellipse(fovea, (2.0 * size, 2.0 * size)) & ~around,
        "field": aperture,
    }
    points = {"disc": disc, "fovea": fovea, "temporal": (temporal, 0.0)}
    return AnatomyMap(aperture, retina, places, size, None, points)


def dark_lines(level: Field, width: int) -> Field:
    """Measure how much darker lines narrower than `width` pixels are than their surroundings: float32 (H, W)."""
    closed = cv2.morphologyEx(level, cv2.MORPH_CLOSE, np.ones((width, width), np.uint8))
    return np.asarray(np.clip(closed - level, 0, None), np.float32)


def _disc(
    level: Field, vessels: Field, aperture: Mask, size: float, middle: tuple[float, float]
) -> tuple[float, float]:
    """The brightest spot of the disc's size against its surroundings, near the horizontal, with vessels in it."""
    weight = aperture.astype(np.float32)
    inner, outer = (
        blur(level * weight, sigma * size) / (blur(weight, sigma * size) + 1e-3) for sigma in (0.35, 1.6)
    )
    contrast, crossed = inner - outer, blur(vessels, 0.5 * size)
    rows, columns = (
        np.arange(SIDE, dtype=np.float32)[axis] for axis in ((slice(None), None), (None, slice(None)))
    )
    radius = max(4.0, float(aperture.any(axis=0).sum()) / 2)
    eccentric = np.clip(np.abs(columns - middle[0]) / radius / 0.4, 0, 1)
    prior = np.exp(-(((rows - middle[1]) / (0.35 * radius)) ** 2)) * (0.35 + 0.65 * eccentric)
    score = (contrast / (contrast.std() + 1e-3) + 0.7 * crossed / (crossed.std() + 1e-3)) * prior
    score = np.where(shrink(aperture, 0.45 * size), score, -np.inf)
    y, x = np.unravel_index(int(np.argmax(score)), score.shape)
    return float(x), float(y)


def _fovea(level: Field, aperture: Mask, guess: tuple[float, float], size: float) -> tuple[float, float]:
    """The point midway between the expected place and the darkest smooth spot near it."""
    near = ellipse(guess, (0.75 * size, 0.75 * size)) & aperture
    if not near.any():
        return guess
    dark = np.where(near, blur(level, 0.3 * size), np.inf)
    y, x = np.unravel_index(int(np.argmin(dark)), level.shape)
    return (float(x) + guess[0]) / 2, (float(y) + guess[1]) / 2
