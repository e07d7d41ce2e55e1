"""Where things lie on a colour fundus photograph, found by classical means: field, disc, fovea, vessels, scale.

Everything is measured on the image itself, at half resolution where that loses nothing, and everything that a
renderer needs to place a lesion medically is on one frozen record.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.fundus.aperture import Aperture, find_aperture
from plantain.offline.fundus.disc import Disc, find_disc
from plantain.offline.fundus.vessels import Vessels, find_vessels
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Pixels

DISC_MM = 1.5
"""Diameter of an average optic disc in millimetres; the only ruler on an uncalibrated photograph."""

FOVEA_DISTANCE = 2.6
"""Disc centre to fovea, in disc diameters (about 15.5 degrees against a disc of about 6)."""


@dataclass(frozen=True, slots=True, eq=False)
class FundusAnatomy:
    """What was found. Coordinates are (x, y) in pixels of the prepared image.

    Attributes:
        aperture: the lit field.
        disc: the optic disc.
        vessels: the vessel map.
        fovea: centre of the macula.
        fovea_seen: the foveal darkening itself was measured; otherwise its place follows from the disc.
        temporal: +1 when temporal is to the image's right, -1 when it is to the left.
        eye: "right" or "left", as recorded, else from the disc's side.
        flat: float32 (H, W, 3), slowly varying background without vessels, in grey levels.
    """

    aperture: Aperture
    disc: Disc
    vessels: Vessels
    fovea: tuple[float, float]
    fovea_seen: bool
    temporal: int
    eye: str
    flat: Field

    @property
    def px_per_um(self) -> float:
        """Pixels per micrometre on the retina, by the disc's diameter."""
        return self.disc.diameter / (DISC_MM * 1000.0)

    def fovea_in_field(self, margin: float) -> bool:
        """Whether the fovea lies inside the field by at least `margin` pixels."""
        x, y = (round(value) for value in self.fovea)
        depth = self.aperture.depth
        return 0 <= y < depth.shape[0] and 0 <= x < depth.shape[1] and float(depth[y, x]) >= margin


def read_anatomy(pixels: Pixels, laterality: str = "unknown") -> FundusAnatomy:
    """Finds the anatomy of a colour fundus photograph.

    Args:
        pixels: uint8 (H, W, 3), RGB.
        laterality: "left" or "right" where recorded; used for the eye's name, and for the fovea's side
            when the disc lies in the middle.

    Raises:
        CannotShow: no lit round field in colour, or no optic disc.
    """
    aperture = find_aperture(pixels)
    vessels = find_vessels(pixels, aperture)
    disc = find_disc(pixels, aperture, vessels)
    offset = (disc.x - aperture.x) / aperture.radius
    if abs(offset) >= 0.12:
        temporal = -1 if offset > 0 else 1
    elif laterality in ("left", "right"):
        temporal = -1 if laterality == "right" else 1
    else:
        temporal = -1 if offset > 0 else 1
    eye = laterality if laterality in ("left", "right") else ("right" if temporal < 0 else "left")
    flat = _flat_background(pixels, aperture, vessels, disc)
    fovea, seen = _find_fovea(flat, aperture, disc, temporal)
    return FundusAnatomy(aperture, disc, vessels, fovea, seen, temporal, eye, flat)


def require_macula(anatomy: FundusAnatomy) -> None:
    """Raises CannotShow when the macula is not in the field."""
    if not anatomy.fovea_in_field(0.6 * anatomy.disc.diameter):
        raise CannotShow("the macula lies outside the photographed field")


def _flat_background(pixels: Pixels, aperture: Aperture, vessels: Vessels, disc: Disc) -> Field:
    """Vessel-free smooth background: a normalised blur over field pixels that are neither vessel nor outside."""
    height, width = pixels.shape[:2]
    small = cv2.resize(pixels, (width // 4, height // 4), interpolation=cv2.INTER_AREA).astype(np.float32)
    size = (width // 4, height // 4)
    keep = cv2.resize((aperture.depth > 3).astype(np.float32), size, interpolation=cv2.INTER_AREA)
    keep *= 1.0 - cv2.resize(vessels.wide.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    keep = np.clip(keep, 1e-4, 1.0)
    sigma = max(disc.diameter / 4 / 10, 1.0)
    weight = cv2.GaussianBlur(keep, (0, 0), sigma)
    blurred = cv2.GaussianBlur(small * keep[..., None], (0, 0), sigma) / weight[..., None]
    return np.asarray(cv2.resize(blurred, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def _find_fovea(
    flat: Field, aperture: Aperture, disc: Disc, temporal: int
) -> tuple[tuple[float, float], bool]:
    """The darkest smooth spot near where the fovea must lie, else the expected place."""
    step = 4
    green = flat[::step, ::step, 1] + 0.4 * flat[::step, ::step, 0]
    diameter = disc.diameter / step
    near = cv2.GaussianBlur(green, (0, 0), 0.22 * diameter)
    around = cv2.GaussianBlur(green, (0, 0), 0.9 * diameter)
    darkness = (around - near) / np.maximum(around, 8.0)
    expected_x = disc.x + temporal * FOVEA_DISTANCE * disc.diameter
    expected_y = disc.y + 0.28 * disc.diameter
    ys, xs = np.mgrid[0 : green.shape[0], 0 : green.shape[1]].astype(np.float32) * step
    along = (xs - expected_x) / (0.55 * disc.diameter)
    across = (ys - expected_y) / (0.38 * disc.diameter)
    prior = np.exp(-0.5 * (along**2 + across**2))
    inside = aperture.depth[::step, ::step] > 0.25 * disc.diameter
    score = np.where(inside, np.maximum(darkness, 0.0) * prior, 0.0)
    best = int(np.argmax(score))
    y, x = divmod(best, score.shape[1])
    if score[y, x] > 0.01:
        return (float(xs[y, x]), float(ys[y, x])), True
    return (expected_x, expected_y), False
