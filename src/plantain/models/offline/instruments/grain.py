"""Whether the changed place kept the image's grain: fine noise before and after, and against its surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.models.offline.instruments.pair import Mask, Plane, blur, grow, shrink

BLOCK = 8
CODING = 0.15
"""Variance that rounding to whole grey levels and JPEG at quality 95 leave in the finest octave of a smooth image."""
LEAST_GRAIN = 0.35
"""Blocks whose grain lies below this many grey levels have none to lose."""
LEAST_BLOCKS = 6
LEAST_SHARE = 0.25
"""Where fewer of the blocks have grain (an average brain, a drawn background), the place has none to speak of."""


@dataclass(frozen=True, slots=True)
class Grain:
    """Grain of the changed place, in the finest octave, as root mean square in grey levels.

    Attributes:
        blocks: number of blocks in which the original has measurable grain; 0 when too few to say.
        before: median over those blocks in the original.
        after: median over the same blocks in the edited image.
        around: median over the blocks just outside the change in the edited image.
    """

    blocks: int
    before: float
    after: float
    around: float

    @property
    def kept(self) -> float:
        """Grain after over what the place had or its surroundings have, whichever is nearer to it.

        A finding that is drawn or taken away changes structure as well as grain, so a place counts as having
        lost grain only when it lies below both.
        """
        ratios = [self.after / level for level in (self.before, self.around) if level > 0]
        return min(ratios, key=lambda ratio: abs(np.log(max(ratio, 1e-3))), default=1.0)


def grain_of(before: Plane, after: Plane, where: Mask, reach: float) -> Grain:
    """Compares fine texture block by block.

    Args:
        before, after: float32 (H, W) grey levels around the change, at full size.
        where: bool (H, W), the changed place.
        reach: how far the surroundings go, in pixels.
    """
    first, second = _texture(before), _texture(after)
    covered = _cover(where)
    ring = (_cover(grow(where, reach)) > 0.75) & (covered == 0)
    inside = _plain(first, covered > 0.75)
    if inside.sum() < max(LEAST_BLOCKS, LEAST_SHARE * float((covered > 0.75).sum())):
        return Grain(0, 0.0, 0.0, 0.0)
    outside = _plain(second, ring)
    around = float(np.median(second[outside])) if outside.sum() >= LEAST_BLOCKS else 0.0
    return Grain(int(inside.sum()), float(np.median(first[inside])), float(np.median(second[inside])), around)


def _cover(mask: Mask) -> Plane:
    """Share of each block that the mask covers."""
    return shrink(mask.astype(np.float32), BLOCK)


def _plain(texture: Plane, blocks: Mask) -> Mask:
    """Of the given blocks those that have grain, without the fifth with the most structure (a vessel, a rib's edge)."""
    lit = blocks & (texture > LEAST_GRAIN)
    return np.asarray(lit & (texture <= np.percentile(texture[lit], 80)), bool) if lit.any() else lit


def _texture(plane: Plane) -> Plane:
    """Root mean square of the finest octave in each block, without the part that coding makes."""
    band = plane - blur(plane, 1.0)
    size = (max(1, plane.shape[1] // BLOCK), max(1, plane.shape[0] // BLOCK))
    power = cv2.resize(band * band, size, interpolation=cv2.INTER_AREA)
    return np.asarray(np.sqrt(np.clip(power - CODING, 0.0, None)), np.float32)
