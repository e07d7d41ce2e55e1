"""For a removal: whether what was taken away is still there, measured by its own pattern."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.change import FACTOR as CHANGE_FACTOR
from plantain.offline.instruments.change import Change
from plantain.offline.instruments.pair import ImagePair, blur, grow, shrink
from plantain.pixels.arrays import Mask

FURTHER = 4
"""The pattern is compared at an eighth of the size."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """How much of the pattern that was taken away the edited image still shows.

    Attributes:
        share: 0 none, 1 as much again as was taken, below 0 a hole in its shape.
        beyond_chance: distance of that share from the typical share at other places of the region, in robust
            spreads.
    """

    share: float
    beyond_chance: float


def leftover_of(pair: ImagePair, change: Change, where: Mask, region: Mask) -> Leftover:
    """Projects the edited image's own relief onto the removed pattern, here and at every other place of the
    region.

    Anatomy has relief too: only a share that stands out from what the same pattern finds elsewhere tells
        anything.

    Args:
        pair: the two images.
        change: the change map, at half size.
        where: bool (h, w), the edit, at half size.
        region: bool (h, w), where the finding may lie, at half size.
    """
    if not where.any():
        return Leftover(0.0, 0.0)
    taken = shrink(np.where(where, -change.smooth, 0.0).astype(np.float32), FURTHER)
    after = blur(shrink(pair.after_level, CHANGE_FACTOR * FURTHER), 0.7)
    near = shrink(grow(where, pair.px(32) / CHANGE_FACTOR).astype(np.float32), FURTHER) > 0.5
    ys, xs = np.nonzero(near)
    if ys.size < 9:
        return Leftover(0.0, 0.0)
    box = (slice(int(ys.min()), int(ys.max()) + 1), slice(int(xs.min()), int(xs.max()) + 1))
    pattern = np.where(near, taken - float(taken[near].mean()), 0.0).astype(np.float32)[box]
    energy = float((pattern * pattern).sum())
    if energy <= 0:
        return Leftover(0.0, 0.0)
    shares = cv2.matchTemplate(after, pattern, cv2.TM_CCORR) / energy
    own = float(shares[box[0].start, box[1].start])
    allowed = shrink(region.astype(np.float32), FURTHER) > 0.5
    half = (pattern.shape[0] // 2, pattern.shape[1] // 2)
    centred = allowed[half[0] : half[0] + shares.shape[0], half[1] : half[1] + shares.shape[1]]
    elsewhere = shares[centred]
    if elsewhere.size < 20:
        return Leftover(own, 0.0)
    middle = float(np.median(elsewhere))
    spread = 1.4826 * float(np.median(np.abs(elsewhere - middle)))
    return Leftover(own, (own - middle) / (spread + 0.05))
