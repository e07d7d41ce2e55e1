"""Whether a piece of the changed place was copied from elsewhere in the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.pair import ImagePair, blur, grow, shrink
from plantain.pixels.arrays import Field, Mask

FACTOR = 2
BLOCK = 24
STEP = 8
MOST_BLOCKS = 8
CANDIDATE = 0.65
"""Correlation of a block with another place from which the shift between them is looked at more closely."""
PLACES = 2
"""How many of the places that resemble a block most are looked at: chance may beat a copy that was encoded."""
DIFFERS = 0.1
"""Texture is copied where its difference from another place holds less than this share of its power.

Two places that resemble each other by chance share structure and differ in grain: a tenth and more of their power. What
was copied differs by what encoding left, in half of its area by less than a fiftieth."""
CODING = 0.12
"""Power of that difference that encoding may leave in any texture, in grey levels squared."""
WINDOW = 13
NEW = 0.6
"""A block whose texture correlates less than this with the original's at the same place has new texture."""
MOST_ALIGNED = 0.92
"""Coherence of the gradients in a window: 1 on a straight edge, 0 where they point everywhere."""
LEAST_POWER = 0.35
"""Texture power below which a likeness means nothing, in grey levels squared."""


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


def repetition_of(pair: ImagePair, where: Mask) -> Repetition:
    """Looks up the new texture of the changed place everywhere else in the edited image.

    An added haze leaves the texture under it alone, so only blocks whose texture is no longer the original's
    are looked up. Where one resembles another place, the whole change is compared with itself under that
    shift: a copy is the same over an area, a chance resemblance is not.

    Args:
        pair: the two images.
        where: bool (h, w) at half size, the changed place.
    """
    before, after = (_band(shrink(level, FACTOR)) for level in (pair.before_level, pair.after_level))
    fresh = _newness(before, after)
    blocks = _new_blocks(fresh & where, after)
    near = grow(where, 12.0) & fresh & _many_ways(after)
    flat = _flat_places(after)
    shifts: dict[tuple[int, int], float] = {}
    for block in blocks:
        for shift, likeness in _places_like(after, block, flat):
            shifts[shift] = max(likeness, shifts.get(shift, 0.0))
    best = max(shifts.values(), default=0.0)
    found = Repetition(len(blocks), best, 0, (0, 0))
    for shift in shifts:
        copied = int((_repeats(after, shift) & near).sum()) * FACTOR**2
        if copied > found.copied:
            found = Repetition(len(blocks), best, copied, (FACTOR * shift[0], FACTOR * shift[1]))
    return found


def _places_like(after: Field, block: tuple[int, int], flat: Mask) -> Iterator[tuple[tuple[int, int], float]]:
    """The shifts (dx, dy) to the places that resemble a block most, with their correlation, best first."""
    y, x = block
    surface = cv2.matchTemplate(after, after[y : y + BLOCK, x : x + BLOCK], cv2.TM_CCOEFF_NORMED)
    surface[flat] = -1
    _put_out(surface, y, x, BLOCK // 2)
    for _ in range(PLACES):
        row, column = (int(i) for i in np.unravel_index(int(surface.argmax()), surface.shape))
        likeness = float(surface[row, column])
        if likeness < CANDIDATE:
            return
        yield (column - x, row - y), likeness
        _put_out(surface, row, column, BLOCK // 4)


def _put_out(surface: np.ndarray, row: int, column: int, reach: int) -> None:
    """Leaves out a place and what lies within `reach` of it."""
    surface[max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1] = -1


def _band(plane: Field) -> Field:
    return blur(plane, 0.6) - blur(plane, 4.0)


def _mean(values: Field) -> Field:
    return np.asarray(cv2.boxFilter(values, cv2.CV_32F, (WINDOW, WINDOW)), np.float32)


def _newness(before: Field, after: Field) -> Mask:
    """Where there is texture that is no longer the original's."""
    powers = _mean(before * before), _mean(after * after)
    alike = _mean(before * after) / np.sqrt(np.maximum(powers[0] * powers[1], 1e-6))
    return np.asarray(((alike < NEW) | (powers[0] < LEAST_POWER)) & (powers[1] >= LEAST_POWER), bool)


def _repeats(after: Field, shift: tuple[int, int]) -> Mask:
    """Where the image is the same again at (x + dx, y + dy), but for what encoding leaves."""
    matrix = np.array([[1, 0, -shift[0]], [0, 1, -shift[1]]], np.float32)
    moved = cv2.warpAffine(after, matrix, after.shape[::-1], flags=cv2.INTER_NEAREST)
    there = np.asarray(moved, np.float32)
    powers = _mean(after * after), _mean(there * there)
    difference = _mean((after - there) ** 2)
    same = difference <= 0.5 * DIFFERS * (powers[0] + powers[1]) + CODING
    return np.asarray(same & (np.minimum(*powers) >= LEAST_POWER), bool)


def _many_ways(after: Field) -> Mask:
    """Where texture runs in more than one direction: a straight edge resembles itself all along, and proves nothing."""
    gx, gy = cv2.Sobel(after, cv2.CV_32F, 1, 0), cv2.Sobel(after, cv2.CV_32F, 0, 1)
    xx, yy, xy = (
        cv2.boxFilter(values, cv2.CV_32F, (WINDOW, WINDOW)) for values in (gx * gx, gy * gy, gx * gy)
    )
    along = np.hypot(xx - yy, 2 * xy) / np.maximum(xx + yy, 1e-6)
    return np.asarray(along < MOST_ALIGNED, bool)


def _flat_places(after: Field) -> Mask:
    """Where a block would lie on next to no texture, so that its correlation means nothing."""
    power = cv2.boxFilter(after * after, cv2.CV_32F, (BLOCK, BLOCK), anchor=(0, 0))
    rows, columns = after.shape[0] - BLOCK + 1, after.shape[1] - BLOCK + 1
    return np.asarray(power[:rows, :columns] < LEAST_POWER, bool)


def _new_blocks(fresh: Mask, after: Field) -> list[tuple[int, int]]:
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
