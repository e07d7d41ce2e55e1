"""The judge's map of a colour fundus photograph: aperture, optic disc, fovea and macula."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import Anatomy, ellipse
from plantain.offline.instruments.pair import blur, filled, largest_part, shrunken
from plantain.pixels.arrays import Field, Mask, Pixels

DISC_SHARE = 0.135
"""Disc diameter over aperture diameter in a photograph of about 45 to 50 degrees."""

MACULA = 2.7
"""Two disc diameters around the fovea, and a third more for what this map gets wrong."""


def fundus_view(small: Pixels) -> Anatomy:
    """Maps a fundus photograph.

    Args:
        small: uint8 (h, w, 3) on the small frame.
    """
    brightest = blur(small.max(axis=2).astype(np.float32), 1.0)
    aperture = filled(largest_part(brightest > 18.0))
    columns, rows = np.flatnonzero(aperture.any(axis=0)), np.flatnonzero(aperture.any(axis=1))
    diameter = float(max(columns.size, rows.size, 8))
    disc_size = DISC_SHARE * diameter
    middle = ((columns[0] + columns[-1]) / 2, (rows[0] + rows[-1]) / 2) if columns.size else (128.0, 128.0)
    disc = _disc(small, aperture, disc_size, middle)
    toward = 1.0 if disc[0] < middle[0] else -1.0
    fovea = _fovea(
        small, aperture, (disc[0] + toward * 2.6 * disc_size, disc[1] + 0.25 * disc_size), disc_size
    )
    shape = aperture.shape
    retina = shrunken(aperture, 0.02 * diameter)
    return Anatomy(
        aperture,
        {
            "retina": retina,
            "macula": ellipse(shape, fovea, (MACULA * disc_size, MACULA * disc_size)) & retina,
            "disc": ellipse(shape, disc, (1.3 * disc_size, 1.3 * disc_size)) & retina,
            "pole": ellipse(shape, fovea, (4.2 * disc_size, 4.2 * disc_size)) & retina,
            "field": aperture,
        },
        None,
        disc_size,
    )


def _disc(small: Pixels, aperture: Mask, size: float, middle: tuple[float, float]) -> tuple[float, float]:
    """The brightest spot of disc size against its surroundings, near the horizontal meridian, with vessels in it."""
    level: Field = small[..., 1].astype(np.float32)
    weight = aperture.astype(np.float32)
    outer = blur(weight, 1.6 * size) + 1e-3
    contrast = blur(level * weight, 0.35 * size) / (blur(weight, 0.35 * size) + 1e-3)
    contrast = contrast - blur(level * weight, 1.6 * size) / outer
    dark_lines = np.clip(cv2.morphologyEx(level, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8)) - level, 0, None)
    vessels = blur(dark_lines.astype(np.float32), 0.5 * size)
    rows = np.arange(level.shape[0], dtype=np.float32)[:, None]
    columns = np.arange(level.shape[1], dtype=np.float32)[None, :]
    radius = max(4.0, float(aperture.any(axis=0).sum()) / 2)
    eccentric = np.abs(columns - middle[0]) / radius
    prior = np.exp(-(((rows - middle[1]) / (0.35 * radius)) ** 2)) * (
        0.35 + 0.65 * np.clip(eccentric / 0.4, 0, 1)
    )
    score = (contrast / (contrast.std() + 1e-3) + 0.7 * vessels / (vessels.std() + 1e-3)) * prior
    score = np.where(shrunken(aperture, 0.45 * size), score, -np.inf)
    y, x = np.unravel_index(int(np.argmax(score)), score.shape)
    return float(x), float(y)


def _fovea(small: Pixels, aperture: Mask, guess: tuple[float, float], size: float) -> tuple[float, float]:
    """The darkest smooth spot within three quarters of a disc diameter of where it should be."""
    level = blur(small[..., 1].astype(np.float32), 0.3 * size)
    near = ellipse(aperture.shape, guess, (0.75 * size, 0.75 * size)) & aperture
    if not near.any():
        return guess
    y, x = np.unravel_index(int(np.argmin(np.where(near, level, np.inf))), level.shape)
    return (float(x) + guess[0]) / 2, (float(y) + guess[1]) / 2
