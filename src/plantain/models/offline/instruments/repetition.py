"""Whether a piece of the changed place was copied from elsewhere in the image."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.models.offline.instruments.pair import Mask, Pair, Plane, blur, shrink

FACTOR = 2
BLOCK = 32
MOST_BLOCKS = 10


@dataclass(frozen=True, slots=True)
class Repetition:
    """The best match of a changed block with another place.

    Attributes:
        blocks: blocks whose texture is new, and which were looked up.
        best: highest normalised correlation of one of them with another place, in [-1, 1].
        copies: number of blocks that match another place like a copy.
        offset: (dx, dy) in pixels of the full size, from the best block to its match.
    """

    blocks: int
    best: float
    copies: int
    offset: tuple[int, int]


def repetition_of(pair: Pair, where: Mask, *, copy_level: float) -> Repetition:
    """Looks up the new texture of the changed place everywhere else in the edited image.

    An added haze leaves the texture under it alone, so only blocks whose texture is no longer the original's
    are looked up. A match along a straight edge is no copy: the correlation must fall off in every direction.

    Args:
        pair: the two images.
        where: bool (h, w) at half size, the changed place.
        copy_level: correlation from which a match is called a copy.
    """
    before, after = (_band(shrink(level, FACTOR)) for level in (pair.before_level, pair.after_level))
    blocks = _new_blocks(before, after, where)
    flat = _flat_places(after)
    best, copies, offset = 0.0, 0, (0, 0)
    for y, x in blocks:
        block = after[y : y + BLOCK, x : x + BLOCK]
        surface = cv2.matchTemplate(after, block, cv2.TM_CCOEFF_NORMED)
        surface[flat] = -1
        surface[max(0, y - BLOCK // 2) : y + BLOCK // 2 + 1, max(0, x - BLOCK // 2) : x + BLOCK // 2 + 1] = -1
        peak, (px, py) = float(surface.max()), np.unravel_index(int(surface.argmax()), surface.shape)[::-1]
        if not _isolated(surface, int(px), int(py), peak):
            continue
        copies += peak >= copy_level
        if peak > best:
            best, offset = peak, (FACTOR * (int(px) - x), FACTOR * (int(py) - y))
    return Repetition(len(blocks), best, copies, offset)


def _band(plane: Plane) -> Plane:
    return blur(plane, 0.6) - blur(plane, 4.0)


def _flat_places(after: Plane) -> Mask:
    """Where a block would lie on next to no texture, so that its correlation means nothing."""
    power = cv2.boxFilter(after * after, cv2.CV_32F, (BLOCK, BLOCK), anchor=(0, 0))
    rows, columns = after.shape[0] - BLOCK + 1, after.shape[1] - BLOCK + 1
    return np.asarray(power[:rows, :columns] < 0.5, bool)


def _new_blocks(before: Plane, after: Plane, where: Mask) -> list[tuple[int, int]]:
    """Top left corners of the blocks with the most new texture, at most `MOST_BLOCKS`."""
    ranked: list[tuple[float, int, int]] = []
    ys, xs = np.nonzero(where)
    if ys.size == 0:
        return []
    step = BLOCK // 2
    for y in range(max(0, int(ys.min()) - step), min(int(ys.max()), after.shape[0] - BLOCK) + 1, step):
        for x in range(max(0, int(xs.min()) - step), min(int(xs.max()), after.shape[1] - BLOCK) + 1, step):
            if where[y : y + BLOCK, x : x + BLOCK].mean() < 0.6:
                continue
            new = after[y : y + BLOCK, x : x + BLOCK]
            old = before[y : y + BLOCK, x : x + BLOCK]
            energy = float(new.std())
            if energy < 1.0:
                continue
            changed = float((new - old).std()) / energy
            if changed > 0.6:
                ranked.append((-changed * energy, y, x))
    ranked.sort()
    return [(y, x) for _, y, x in ranked[:MOST_BLOCKS]]


def _isolated(surface: Plane, x: int, y: int, peak: float) -> bool:
    """True when the correlation falls by a quarter or more four pixels away in every direction."""
    radius = 4
    angles = np.arange(8) * np.pi / 4
    xs = np.clip(np.round(x + radius * np.cos(angles)).astype(int), 0, surface.shape[1] - 1)
    ys = np.clip(np.round(y + radius * np.sin(angles)).astype(int), 0, surface.shape[0] - 1)
    return bool(surface[ys, xs].max() < 0.75 * peak)
