"""Places on the retina by name: where a zone of an instruction lies on this photograph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy

GOLDEN_ANGLE = 2.399963


@dataclass(frozen=True, slots=True)
class FundusPlace:
    """A patch of retina: centre and spread (one standard deviation) in pixels, and its name."""

    x: float
    y: float
    spread: float
    name: str


def macular_place(anatomy: FundusAnatomy, zone: str | None, variant: int) -> FundusPlace:
    """A place in the macula; quadrants are those round the fovea."""
    diameter = anatomy.disc.diameter
    x, y = anatomy.fovea
    across, down = _quadrant(zone)
    spread = 0.5 * diameter
    if across or down:
        x += 0.62 * diameter * across * anatomy.temporal
        y += 0.62 * diameter * down
        spread = 0.32 * diameter
    dx, dy = _variant_shift(variant, 0.3 * diameter)
    return FundusPlace(x + dx, y + dy, spread, zone or "macula")


def polar_place(anatomy: FundusAnatomy, zone: str | None, variant: int) -> FundusPlace:
    """A place at the posterior pole; temporal quadrants lie beyond the fovea, nasal ones beyond the disc."""
    diameter = anatomy.disc.diameter
    across, down = _quadrant(zone)
    fovea_x, fovea_y = anatomy.fovea
    if zone is not None and ("macul" in zone or "fove" in zone):
        x, y, spread = fovea_x, fovea_y, 0.7 * diameter
    elif across or down:
        x = 0.5 * (fovea_x + anatomy.disc.x)
        if across > 0:
            x = fovea_x + 0.55 * diameter * anatomy.temporal
        elif across < 0:
            x = anatomy.disc.x - 0.5 * diameter * anatomy.temporal
        y = 0.5 * (fovea_y + anatomy.disc.y) + 1.5 * diameter * down
        spread = 0.6 * diameter
    elif zone is not None and "periphery" in zone:
        x, y, spread = 0.75 * fovea_x + 0.25 * anatomy.disc.x, fovea_y, 1.9 * diameter
    else:
        x, y, spread = 0.75 * fovea_x + 0.25 * anatomy.disc.x, fovea_y, 1.1 * diameter
    dx, dy = _variant_shift(variant, 0.4 * diameter)
    return FundusPlace(x + dx, y + dy, spread, zone or "posterior pole")


def scatter(place: FundusPlace, rng: np.random.Generator) -> tuple[float, float]:
    """One random point of a place."""
    dx, dy = rng.normal(0.0, place.spread, 2)
    return place.x + float(dx), place.y + float(dy)


def _quadrant(zone: str | None) -> tuple[int, int]:
    """(+1 temporal or -1 nasal, +1 inferior or -1 superior), 0 where the zone does not say."""
    words = (zone or "").lower().replace("infra", "infero").replace("supra", "supero")
    across = 1 if "temporal" in words else -1 if "nasal" in words else 0
    down = 1 if "infer" in words or "lower" in words else -1 if "super" in words or "upper" in words else 0
    return across, down


def _variant_shift(variant: int, length: float) -> tuple[float, float]:
    """A small fixed shift per variant, so that "another placement" is another one."""
    if variant == 0:
        return 0.0, 0.0
    turn = variant * GOLDEN_ANGLE
    return length * math.cos(turn), length * math.sin(turn)
