"""Whether a piece of the changed place was copied from elsewhere in the image."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.models.offline.instruments.pair import Mask, Pair, Plane, blur, grow, shrink

FACTOR = 2
BLOCK = 24
STEP = 8
MOST_BLOCKS = 8
CANDIDATE = 0.65
"""Correlation of a block with another place from which the shift between them is looked at more closely."""
SAME = 0.92
"""Local correlation under that shift from which a pixel counts as copied."""
WINDOW = 13
NEW = 0.6
"""A block whose texture correlates less than this with the original's at the same place has new texture."""
MOST_ALIGNED = 0.8
"""Coherence of the gradients in a window: 1 on a straight edge, 0 where they point everywhere."""
LEAST_POWER = 0.7
"""Texture power below which a correlation means nothing, in grey levels squared."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """The largest copy found.

    Attributes:
        blocks: blocks whose texture is new, and which were looked up.
        best: highest normalised correlation of one of them with another place, in [-1, 1].
        copied: pixels of the full size that repeat another place under one shift.
        offset: (dx, dy) of that shift in pixels of the full size.
    """

    blocks: int
    best: float
    copied: int
    offset: tuple[int, int]


def repetition_of(pair: Pair, where: Mask) -> Repetition:
    """Looks up the new texture of the changed place everywhere else in the edited image.

    An added haze leaves the texture under it alone, so only blocks whose texture is no longer the original's
    are looked up. Where one resembles another place, the whole change is compared with itself under that
    shift: a copy matches over an area, a chance resemblance does not.

    Args:
        pair: the two images.
        where: bool (h, w) at half size, the changed place.
    """
    before, after = (_band(shrink(level, FACTOR)) for level in (pair.before_level, pair.after_level))
    blocks = _new_blocks(_newness(before, after) & where, after)
    flat = _flat_places(after)
    near = grow(where, 12.0) & _newness(before, after) & _many_ways(after)
    found = Repetition(len(blocks), 0.0, 0, (0, 0))
    best = 0.0
    for y, x in blocks:
        surface = cv2.matchTemplate(after, after[y : y + BLOCK, x : x + BLOCK], cv2.TM_CCOEFF_NORMED)
        surface[flat] = -1
        surface[max(0, y - BLOCK // 2) : y + BLOCK // 2 + 1, max(0, x - BLOCK // 2) : x + BLOCK // 2 + 1] = -1
        peak = float(surface.max())
        best = max(best, peak)
        if peak < CANDIDATE:
            continue
        row, column = np.unravel_index(int(surface.argmax()), surface.shape)
        shift = (int(column) - x, int(row) - y)
        copied = int((_repeats(after, shift) & near).sum()) * FACTOR**2
        if copied > found.copied:
            found = Repetition(len(blocks), peak, copied, (FACTOR * shift[0], FACTOR * shift[1]))
    return Repetition(len(blocks), best, found.copied, found.offset)


def _band(plane: Plane) -> Plane:
    return blur(plane, 0.6) - blur(plane, 4.0)


def _local_correlation(first: Plane, second: Plane) -> Plane:
    """Correlation of two planes of mean 0 in the window around each pixel; 0 where either has next to no texture."""

    def mean(values: Plane) -> Plane:
        return np.asarray(cv2.boxFilter(values, cv2.CV_32F, (WINDOW, WINDOW)), np.float32)

    powers = mean(first * first), mean(second * second)
    weak = np.minimum(powers[0], powers[1]) < LEAST_POWER
    correlation = mean(first * second) / np.sqrt(np.maximum(powers[0] * powers[1], 1e-6))
    return np.asarray(np.where(weak, 0.0, correlation), np.float32)


def _newness(before: Plane, after: Plane) -> Mask:
    power = cv2.boxFilter(after * after, cv2.CV_32F, (WINDOW, WINDOW))
    return np.asarray((_local_correlation(before, after) < NEW) & (power >= LEAST_POWER), bool)


def _repeats(after: Plane, shift: tuple[int, int]) -> Mask:
    """Where the image resembles itself at (x + dx, y + dy)."""
    matrix = np.array([[1, 0, -shift[0]], [0, 1, -shift[1]]], np.float32)
    there = cv2.warpAffine(after, matrix, after.shape[::-1], flags=cv2.INTER_NEAREST)
    return np.asarray(_local_correlation(after, np.asarray(there, np.float32)) > SAME, bool)


def _many_ways(after: Plane) -> Mask:
    """Where texture runs in more than one direction: a straight edge resembles itself all along, and proves nothing."""
    gx, gy = cv2.Sobel(after, cv2.CV_32F, 1, 0), cv2.Sobel(after, cv2.CV_32F, 0, 1)
    xx, yy, xy = (
        cv2.boxFilter(values, cv2.CV_32F, (WINDOW, WINDOW)) for values in (gx * gx, gy * gy, gx * gy)
    )
    along = np.hypot(xx - yy, 2 * xy) / np.maximum(xx + yy, 1e-6)
    return np.asarray(along < MOST_ALIGNED, bool)


def _flat_places(after: Plane) -> Mask:
    """Where a block would lie on next to no texture, so that its correlation means nothing."""
    power = cv2.boxFilter(after * after, cv2.CV_32F, (BLOCK, BLOCK), anchor=(0, 0))
    rows, columns = after.shape[0] - BLOCK + 1, after.shape[1] - BLOCK + 1
    return np.asarray(power[:rows, :columns] < LEAST_POWER, bool)


def _new_blocks(fresh: Mask, after: Plane) -> list[tuple[int, int]]:
    """Top left corners of blocks of new texture, strongest first, spread out, at most `MOST_BLOCKS`."""
    share = cv2.boxFilter(fresh.astype(np.float32), cv2.CV_32F, (BLOCK, BLOCK), anchor=(0, 0))
    share = share[: fresh.shape[0] - BLOCK + 1, : fresh.shape[1] - BLOCK + 1]
    ys, xs = np.nonzero(share[::STEP, ::STEP] > 0.7)
    power = cv2.boxFilter(after * after, cv2.CV_32F, (BLOCK, BLOCK), anchor=(0, 0))
    order = np.argsort(-power[ys * STEP, xs * STEP], kind="stable")
    chosen: list[tuple[int, int]] = []
    for index in order:
        y, x = int(ys[index]) * STEP, int(xs[index]) * STEP
        if all(max(abs(y - b), abs(x - a)) >= BLOCK // 2 for b, a in chosen):
            chosen.append((y, x))
        if len(chosen) == MOST_BLOCKS:
            break
    return chosen
