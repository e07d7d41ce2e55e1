"""The judge's map of a frontal chest radiograph: midline, lung fields, heart shadow, pleural bases.

Of all dark places at all levels the two that make the best pair are the lungs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import Anatomy, content_box, ellipse
from plantain.offline.instruments.pair import blur, grow, hull
from plantain.pixels.arrays import Field, Mask

ANGLE = 3.0
"""The angles lie at least this many times as far from the midline as they reach out past the lungs."""

_Box = tuple[int, int, int, int]
"""Top, bottom, left, right of the exposed field."""

WIDE = 0.23
"""Of the frame: what varies over more than that is exposure, and a soft film's bases are no lighter than its apices."""
LEVELS = np.linspace(6, 70, 17)
"""Percentiles at which dark places are cut out."""
OPENED, RIM = 7, 4
"""Pixels of the small frame: what ribs and clavicles part, and where the rise at a border is measured."""
AREA, HEIGHT, WIDTH = (0.02, 0.3), (0.18, 0.8), 0.5
"""Of one lung, in parts of the field."""
LEAST_SOLID = 0.55
MOST_AT_EDGE = 0.06
"""Of a place's width and height that may lie at the edge of the field: air beside the body does along all of it."""
LEAST_OVERLAP, LEAST_ALIKE, LEAST_WIDE = 0.5, 0.5, 0.3
"""Of a pair: common rows over the higher one's, the lesser area over the larger, width over the field's."""
MOST_APART, MOST_OFF = 0.35, 0.2
"""Gap between the two over the width of both (arms lie further apart), and their middle from the field's."""
TALL = (0.5, 1.5)
"""Height of a pair over its width."""


@dataclass(frozen=True, slots=True, eq=False)
class _DarkPlace:
    """One dark place: its hull, extent, centre and how much brighter its surroundings are, in grey levels."""

    hull: Mask
    top: int
    bottom: int
    left: int
    right: int
    x: float
    area: int
    solid: float
    rise: float


def chest_view(level: Field) -> Anatomy:
    """Maps a frontal radiograph (bright bone, dark air).

    Args:
        level: float32 (h, w) grey levels on the small frame.
    """
    smooth = blur(level, 2.0)
    top, bottom, left, right = content_box(smooth, 12.0)
    height, width = bottom - top, right - left
    field = np.zeros(level.shape, bool)
    field[top:bottom, left:right] = True
    pair = _lung_fields(smooth, (top, bottom, left, right))
    midline = _between(*pair) if pair else left + width / 2
    right_lung, left_lung = pair or (
        ellipse(
            level.shape, (midline + sign * 0.23 * width, top + 0.42 * height), (0.17 * width, 0.32 * height)
        )
        & field
        for sign in (-1, 1)
    )
    both = right_lung | left_lung
    rows = np.flatnonzero(both.any(axis=1))
    apex, base = int(rows[0]), int(rows[-1])
    depth = base - apex
    columns = np.flatnonzero(both.any(axis=0))
    thorax = float(columns[-1] - columns[0])
    down = np.zeros_like(both)
    shift = max(1, round(0.22 * depth))
    down[shift:] = both[:-shift]
    # Behind the dome of the diaphragm and the heart there is lung too, and a lesion may lie there.
    lower = np.zeros_like(both)
    lower[shift // 2 :] = both[: -(shift // 2)] if shift > 1 else both
    rows_all = np.arange(level.shape[0])[:, None]
    columns_all = np.arange(level.shape[1])[None, :]
    chest = hull(both) & field
    heart = ellipse(
        level.shape, (midline + 0.09 * thorax, apex + 0.72 * depth), (0.42 * thorax, 0.40 * depth)
    )
    # The clavicles reach from the apices up and out, past the lungs.
    shoulders = (np.abs(columns_all - midline) < 0.7 * thorax) & (
        np.abs(rows_all - apex - 0.06 * depth) < 0.18 * depth
    )
    mediastinum = (np.abs(columns_all - midline) < 0.2 * thorax) & (rows_all > apex - 0.1 * depth)
    return Anatomy(
        field,
        {
            "lungs": grow(both | lower, 0.04 * thorax) & field,
            "pleura": (grow(both | down, 0.05 * thorax)) & field,
            "bases": grow(_with_angles(both | lower, down, midline, 0.08 * thorax), 0.05 * thorax)
            & (rows_all > apex + 0.35 * depth)
            & field,
            "heart": heart & field,
            "mediastinum": mediastinum & (rows_all < base) & field,
            "chest": (grow(chest | down, 0.06 * thorax) | shoulders) & field,
        },
        midline,
        thorax,
        () if pair else ("lung fields not found, taken from proportions",),
    )


def _lung_fields(smooth: Field, box: _Box) -> tuple[Mask, Mask] | None:
    """The lungs on the left and on the right of the picture; None where no two dark places make a pair.

    Args:
        smooth: float32 (h, w), grey levels on the small frame, smoothed.
        box: of the exposed field.
    """
    places = list(_dark_places(smooth, box))
    pairs = [(_worth(one, other, box), one, other) for one in places for other in places if one.x < other.x]
    worth, first, second = max(pairs, key=lambda pair: pair[0], default=(0.0, None, None))
    return (first.hull, second.hull) if first and second and worth > 0 else None


def _dark_places(smooth: Field, box: _Box) -> Iterator[_DarkPlace]:
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    inside = np.zeros(smooth.shape, bool)
    inside[top:bottom, left:right] = True
    edge = inside.copy()
    edge[top + 1 : bottom - 1, left + 1 : right - 1] = False
    share = blur(inside.astype(np.float32), WIDE * smooth.shape[1])
    even = smooth - blur(smooth * inside, WIDE * smooth.shape[1]) / np.maximum(share, np.float32(1e-3))
    for level in np.percentile(even[inside], LEVELS):
        dark = ((even < level) & inside).astype(np.uint8)
        dark = cv2.morphologyEx(dark, cv2.MORPH_OPEN, np.ones((OPENED, OPENED), np.uint8))
        count, labels, stats, centres = cv2.connectedComponentsWithStats(dark, connectivity=4)
        for index in range(1, count):
            x, y, wide, high, area = (int(one) for one in stats[index])
            own = np.asarray(labels == index, bool)
            if (
                not AREA[0] < area / (height * width) < AREA[1]
                or not HEIGHT[0] < high / height < HEIGHT[1]
                or wide > WIDTH * width
                or (own & edge).sum() > MOST_AT_EDGE * (wide + high)
            ):
                continue
            whole = hull(own)
            solid = area / float(whole.sum())
            around, rim = grow(whole, RIM) & ~whole & inside, whole & grow(~whole, RIM)
            if solid >= LEAST_SOLID and around.any():
                rise = float(even[around].mean() - even[rim].mean())
                across = float(centres[index][0])
                yield _DarkPlace(whole, y, y + high, x, x + wide, across, int(whole.sum()), solid, rise)


def _worth(first: _DarkPlace, second: _DarkPlace, box: _Box) -> float:
    """How good a pair two places make: clear, side by side, alike and large; 0 where they make none."""
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    both = max(first.right, second.right) - min(first.left, second.left)
    tall = max(first.bottom, second.bottom) - min(first.top, second.top)
    common = min(first.bottom, second.bottom) - max(first.top, second.top)
    overlap = common / max(first.bottom - first.top, second.bottom - second.top)
    alike = min(first.area, second.area) / max(first.area, second.area)
    apart = (second.left - first.right) / both
    off = abs((min(first.left, second.left) + both / 2) - (left + right) / 2) / width
    if (
        min(first.rise, second.rise) <= 1.0
        or overlap < LEAST_OVERLAP
        or alike < LEAST_ALIKE
        or both < LEAST_WIDE * width
        or not -0.05 < apart < MOST_APART
        or not TALL[0] < tall / both < TALL[1]
        or off > MOST_OFF
    ):
        return 0.0
    clear = np.sqrt(first.rise * second.rise * first.solid * second.solid)
    return float(clear * overlap * (first.area + second.area) / (height * width) * (1 - 2 * off))


def _between(first: Mask, second: Mask) -> float:
    """The column midway between the inner borders of two lungs, in the upper half, which the heart does not reach."""
    rows = np.flatnonzero(first.any(axis=1) & second.any(axis=1))
    upper = rows[: max(1, len(rows) // 2)]
    inner = first.shape[1] - 1 - first[upper, ::-1].argmax(axis=1)
    return float(np.median((inner + second[upper].argmax(axis=1)) / 2))


def _with_angles(lungs: Mask, below: Mask, midline: float, outward: float) -> Mask:
    """The lungs and what lies below, and at the sides as low on one as on the other and further out: the angles."""
    columns = np.rint(2 * midline - np.arange(lungs.shape[1])).astype(int)
    inside = (columns >= 0) & (columns < lungs.shape[1])
    even = lungs | below
    even[:, inside] |= lungs[:, columns[inside]]
    step, middle = max(1, round(outward)), min(max(1, round(midline)), lungs.shape[1] - 1)
    out = even.copy()
    out[:, : middle - step] |= even[:, step:middle]
    out[:, middle + step :] |= even[:, middle : even.shape[1] - step]
    beside = np.abs(np.arange(lungs.shape[1]) - midline)[None, :] > ANGLE * outward
    return np.asarray(lungs & ~beside | below & ~beside | out & beside, bool)
