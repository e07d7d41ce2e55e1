"""Whether the changed place kept the image's grain: fine noise before and after, and against its surroundings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.offline.instruments.pair import blur, grow, shrink
from plantain.pixels.arrays import Field, Mask

BLOCK = 8
LAPLACIAN = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32) / 6.0
"""Blind to slopes and curvature, with gain 1 for white noise (Immerkaer 1996)."""


@dataclass(frozen=True, slots=True)
class Band:
    """One way to see grain.

    Attributes:
        name: "finest" sees single pixels and no structure; "fine" sees the finest octave and some structure
            with it.
        coding: variance that rounding and JPEG at quality 95 leave in it on a smooth image.
        least: grain below this many grey levels is none.
    """

    name: str
    coding: float
    least: float


BANDS = (Band("finest", 0.075, 0.22), Band("fine", 0.15, 0.35))
USUAL = 95
"""Quality at which the bands were measured."""
LEAST_BLOCKS = 6
EVERYWHERE = 0.15
"""Grey levels of grain that even the plainest fifth of the blocks must have."""
LEAST_SHARE = 0.25
"""Where fewer of the blocks have grain (an average brain, a drawn background), the place has none to speak of."""


@dataclass(frozen=True, slots=True)
class Grain:
    """Grain of the changed place, as root mean square in grey levels.

    Attributes:
        blocks: number of blocks in which the original has measurable grain; 0 when too few to say.
        before: typical of those blocks in the original.
        after: typical of the same blocks in the edited image.
        around: typical of the blocks just outside the change in the edited image.
        lost: share of the blocks that kept less than half of their own grain, as far as the surroundings kept theirs.
    """

    blocks: int
    before: float
    after: float
    around: float
    lost: float

    @property
    def kept(self) -> float:
        """Grain after over what the place had or its surroundings have, whichever is nearer to it.

        A finding that is drawn or taken away changes structure as well as grain, so a place counts as having
        lost grain only when it lies below both.
        """
        ratios = [self.after / level for level in (self.before, self.around) if level > 0]
        return min(ratios, key=lambda ratio: abs(np.log(max(ratio, 1e-3))), default=1.0)


NOTHING = Grain(0, 0.0, 0.0, 0.0, 0.0)


def grain_of(before: Field, after: Field, where: Mask, reach: float, quality: int | None = None) -> Grain:
    """Compares fine texture block by block, in both bands; the one in which less was kept is reported.

    Args:
        before, after: float32 (H, W) grey levels around the change, at full size.
        where: bool (H, W), the changed place.
        reach: how far the surroundings go, in pixels.
        quality: of a JPEG that both went through; None where none is known. What is finer than its steps is not grain
            but what the blocks made of it, which hangs on what else lies there.
    """
    coarse = max(1.0, _step(quality) / _step(USUAL)) if quality is not None else 1.0
    bands = [replace(band, least=band.least * coarse) for band in BANDS]
    covered = _cover(where)
    ring = (_cover(grow(where, reach)) > 0.75) & (covered == 0)
    measured = [_in_band(band, before, after, covered > 0.75, ring) for band in bands]
    usable = [grain for grain in measured if grain.blocks]
    if not usable:
        return NOTHING
    # Single pixels are few: only the wider band tells of one block.
    return replace(min(usable, key=lambda grain: grain.kept), lost=measured[-1].lost)


def _in_band(band: Band, before: Field, after: Field, inside: Mask, ring: Mask) -> Grain:
    first, second = _texture(before, band), _texture(after, band)
    # Noise is everywhere; structure is not. Where a fifth of the blocks are as smooth as coding leaves them
    # (an average of many brains, a drawing), what fine texture there is belongs to the structure.
    nearby = first[inside | ring]
    if nearby.size == 0 or float(np.percentile(nearby, 20)) < EVERYWHERE:
        return NOTHING
    measurable = _plain(first, inside, band.least)
    if measurable.sum() < max(LEAST_BLOCKS, LEAST_SHARE * float(inside.sum())):
        return NOTHING
    outside = _plain(second, ring, band.least)
    around = _typical(second[outside]) if outside.sum() >= LEAST_BLOCKS else 0.0
    # A codec or a resampling takes grain from the whole picture, the surroundings too.
    everywhere = min(1.0, around / _typical(first[outside])) if around else 1.0
    return Grain(
        int(measurable.sum()),
        _typical(first[measurable]),
        _typical(second[measurable]),
        around,
        float((second[measurable] < 0.5 * everywhere * first[measurable]).mean()),
    )


def _step(quality: int) -> float:
    """Of a JPEG's quantisation, in parts of that of quality 50 (the IJG's scale)."""
    return 50.0 / quality if quality < 50 else 2.0 - quality / 50.0


def _typical(texture: Field) -> float:
    """The grain of the plainer blocks: structure, of the anatomy or of a finding's own edges, only ever adds to it."""
    return float(np.percentile(texture, 30))


def _cover(mask: Mask) -> Field:
    """Share of each block that the mask covers."""
    return shrink(mask.astype(np.float32), BLOCK)


def _plain(texture: Field, blocks: Mask, least: float) -> Mask:
    """Of the given blocks those with grain, without the fifth with most structure (a vessel, a rib's edge)."""
    lit = blocks & (texture > least)
    return np.asarray(lit & (texture <= np.percentile(texture[lit], 80)), bool) if lit.any() else lit


def _texture(plane: Field, band: Band) -> Field:
    """Root mean square of the band in each block, without the part that coding makes."""
    fine = cv2.filter2D(plane, cv2.CV_32F, LAPLACIAN) if band.name == "finest" else plane - blur(plane, 1.0)
    size = (max(1, plane.shape[1] // BLOCK), max(1, plane.shape[0] // BLOCK))
    power = cv2.resize(fine * fine, size, interpolation=cv2.INTER_AREA)
    return np.asarray(np.sqrt(np.clip(power - band.coding, 0.0, None)), np.float32)
