"""Anatomy of a frontal chest radiograph: lung fields, their zones, heart and mediastinum.

Of all dark areas at 17 levels, the two that make the best pair are the lungs; the rest follows by proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.anatomy.maps import (
    SIDE,
    AnatomyMap,
    CannotShow,
    blur,
    ellipse,
    grow,
    hull,
    reduced,
)
from plantain.pixels.arrays import Field, Floats, Mask, Pixels

LEVELS = np.linspace(6, 70, 17)
"""Percentiles of the film at which dark areas are cut out."""
LEAST_AREA, MOST_AREA = 0.02, 0.3
"""Area of one lung over that of the exposed film."""
LEAST_CONTRAST = 8.0
"""Spread of grey levels below which an image is blank."""

_Box = tuple[int, int, int, int]
"""Top, bottom, left, right of the exposed film."""


@dataclass(frozen=True, slots=True, eq=False)
class _DarkArea:
    """A candidate for a lung: its convex hull, bounding box, solidity, and brightness step at its border."""

    hull: Mask
    top: int
    bottom: int
    left: int
    right: int
    x: float
    area: int
    solid: float
    rise: float


def chest_map(pixels: Pixels) -> AnatomyMap:
    """Return the anatomy map of a frontal chest radiograph.

    Args:
        pixels: uint8 (H, W, 3), bright bone, dark air.

    Raises:
        CannotShow: the image is blank, or no pair of lungs was found.
    """
    level = reduced(pixels)[..., 1].astype(np.float32)
    if float(level.std()) < LEAST_CONTRAST:
        raise CannotShow("not a chest radiograph: the image is blank")
    smooth = blur(level, 2.0)
    box = _film(smooth)
    pair = _lungs(smooth, box)
    if pair is None:
        raise CannotShow("no pair of lungs was found in this image")
    right, left = pair
    film = np.zeros(level.shape, bool)
    film[box[0] : box[1], box[2] : box[3]] = True
    both = right | left
    columns = np.flatnonzero(both.any(axis=0))
    thorax = float(columns[-1] - columns[0])
    midline = _midline(right, left)
    places = {name: place & film for name, place in _places(right, left, midline, thorax).items()}
    places["aerated"] = _aerated(smooth, both & film, places["base"])
    return AnatomyMap(film, both & film, places, thorax, midline)


def _film(smooth: Field) -> _Box:
    """The exposed film: rows and columns of which more than a tenth is brighter than the border."""
    lit = smooth > 12
    rows, columns = np.flatnonzero(lit.mean(axis=1) > 0.1), np.flatnonzero(lit.mean(axis=0) > 0.1)
    if rows.size == 0 or columns.size == 0:
        return 0, SIDE, 0, SIDE
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _places(right: Mask, left: Mask, midline: float, thorax: float) -> dict[str, Mask]:
    rows, columns = (axis.astype(np.float64) for axis in np.mgrid[:SIDE, :SIDE])
    lungs = right | left
    ends = np.flatnonzero(lungs.any(axis=1))
    apex, depth = float(ends[0]), float(ends[-1] - ends[0])
    away = np.abs(columns - midline) / thorax
    lateral, perihilar, base = (np.zeros((SIDE, SIDE), bool) for _ in range(3))
    height = np.zeros((SIDE, SIDE))  # of each lung: 0 at its top, 1 at its bottom
    for lung, half, sign in ((right, columns < midline, -1), (left, columns >= midline, 1)):
        own = np.flatnonzero(lung.any(axis=1))
        top, tall = float(own[0]), float(own[-1] - own[0])
        height[half] = ((rows - top) / tall)[half]
        lateral |= lung & (_outward(lung, midline) > 0.6)
        hilum = (midline + sign * 0.13 * thorax, top + 0.52 * tall)
        perihilar |= half & ellipse(hilum, (0.2 * thorax, 0.26 * tall))
        lowered = lung.copy()
        for step in range(1, max(2, round(0.14 * depth))):
            lowered[step:] |= lung[:-step]
        base |= lowered & half
    return {
        "lungs": lungs,
        "lateral": lateral,
        "perihilar": perihilar,
        "base": base,
        "apical": lungs & (height < 0.3),
        "upper": lungs & (height < 0.42),
        "mid": lungs & (height > 0.25) & (height < 0.72),
        "lower": lungs & (height > 0.5),
        "basal": lungs & (height > 0.6),
        "lateral rib": lungs & lateral & (height > 0.15) & (height < 0.85),
        "posterior rib": lungs & ~lateral & (away > 0.14) & (height > 0.08) & (height < 0.6),
        "upper mediastinum": (away < 0.24) & (rows > apex - 0.02 * depth) & (rows < apex + 0.5 * depth),
        "heart": ellipse((midline + 0.09 * thorax, apex + 0.74 * depth), (0.36 * thorax, 0.34 * depth)),
    }


def _aerated(smooth: Field, lungs: Mask, base: Mask) -> Mask:
    """The dark part of the hemithoraces: its borders are those of heart and diaphragm, not of a convex hull."""
    around = grow(lungs, 8) & ~lungs
    middle = (float(np.median(smooth[lungs])) + float(np.percentile(smooth[around], 55))) / 2
    dark = ((smooth < middle) & (lungs | base)).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(dark, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8)), bool)


def _outward(lung: Mask, midline: float) -> Floats:
    """How far out in its row a pixel of a lung is: 0 at the medial border, 1 at the chest wall."""
    columns = np.arange(SIDE)[None, :]
    any_row = lung.any(axis=1)
    first = lung.argmax(axis=1).astype(np.float64)
    last = SIDE - 1 - lung[:, ::-1].argmax(axis=1).astype(np.float64)
    middle = np.median((first + last)[any_row]) / 2
    inner, outer = (first, last) if middle > midline else (last, first)
    width = np.where(np.abs(outer - inner) < 1, 1, outer - inner)
    share: Floats = (columns - inner[:, None]) / width[:, None]
    return share


def _lungs(smooth: Field, box: _Box) -> tuple[Mask, Mask] | None:
    """The convex hulls of the lungs on the left and on the right of the image."""
    areas = list(_dark_areas(smooth, box))
    pairs = [(_worth(one, other, box), one, other) for one in areas for other in areas if one.x < other.x]
    worth, first, second = max(pairs, key=lambda pair: pair[0], default=(0.0, None, None))
    return (first.hull, second.hull) if first and second and worth > 0 else None


def _dark_areas(smooth: Field, box: _Box) -> Iterator[_DarkArea]:
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    inside = np.zeros(smooth.shape, bool)
    inside[top:bottom, left:right] = True
    edge = inside.copy()
    edge[top + 1 : bottom - 1, left + 1 : right - 1] = False
    # Brightness that varies over a quarter of the frame is exposure.
    wide = 0.23 * SIDE
    even = smooth - blur(smooth * inside, wide) / np.maximum(blur(inside.astype(np.float32), wide), 1e-3)
    for level in np.percentile(even[inside], LEVELS):
        dark = cv2.morphologyEx(((even < level) & inside).astype(np.uint8), cv2.MORPH_OPEN, np.ones((7, 7)))
        count, labels, stats, centres = cv2.connectedComponentsWithStats(dark, connectivity=4)
        for index in range(1, count):
            x, y, broad, high, area = (int(one) for one in stats[index])
            own = np.asarray(labels == index, bool)
            if (
                not LEAST_AREA < area / (height * width) < MOST_AREA
                or not 0.18 < high / height < 0.8
                or broad > 0.5 * width
                or (own & edge).sum() > 0.06 * (broad + high)  # air next to the body touches the film's edge
            ):
                continue
            whole = hull(own)
            solid = area / float(whole.sum())
            around, rim = grow(whole, 4) & ~whole & inside, whole & grow(~whole, 4)
            if solid >= 0.55 and around.any():
                rise = float(even[around].mean() - even[rim].mean())
                across = float(centres[index][0])
                yield _DarkArea(whole, y, y + high, x, x + broad, across, int(whole.sum()), solid, rise)


def _worth(first: _DarkArea, second: _DarkArea, box: _Box) -> float:
    """How good a pair two areas make: contrasted, side by side, alike and large; 0 where they make none."""
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
        or min(overlap, alike) < 0.5
        or both < 0.3 * width
        or not -0.05 < apart < 0.35
        or not 0.5 < tall / both < 1.5
        or off > 0.2
    ):
        return 0.0
    contrast = np.sqrt(first.rise * second.rise * first.solid * second.solid)
    return float(contrast * overlap * (first.area + second.area) / (height * width) * (1 - 2 * off))


def _midline(first: Mask, second: Mask) -> float:
    """The column midway between the inner borders of two lungs, in the upper half, above the heart."""
    rows = np.flatnonzero(first.any(axis=1) & second.any(axis=1))
    upper = rows[: max(1, len(rows) // 2)]
    inner = SIDE - 1 - first[upper, ::-1].argmax(axis=1)
    return float(np.median((inner + second[upper].argmax(axis=1)) / 2))
