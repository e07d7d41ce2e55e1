"""Stray changes: what changed away from the finding, and whether it looks like a mark or text."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.change import Change, ChangedPart
from plantain.offline.instruments.pair import ImagePair, blur, grow, shrink
from plantain.pixels.arrays import Field, Mask

FACTOR = 2
BEYOND_LEVELS, BEYOND_AREA = 16.0, 20
"""Grey levels and half-size pixels of a change on the black outside the field."""
STEEP, ACROSS = 0.04, 13
"""Where a picture was resampled, its steep borders differ by up to this share of their height over so many pixels."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A change away from the finding.

    Attributes:
        x, y: its middle, in pixels of the image.
        area: in pixels of the image.
        peak: its strongest change, in grey levels.
        mark: True where it is made of strokes: a letter, a marker, a line that appeared, vanished or changed.
    """

    x: int
    y: int
    area: int
    peak: float
    mark: bool


def strays_of(
    pair: ImagePair,
    change: Change,
    parts: tuple[ChangedPart, ...],
    *,
    least_area: int,
    least_peak: float,
    touched: bool = False,
) -> tuple[Stray, ...]:
    """Lists the stray changes that are large and strong enough to be seen, by falling area.

    Args:
        pair, change: the two images, and how they differ.
        parts: changes that are not the edit.
        least_area, least_peak: in pixels at half size and grey levels.
        touched: something happened to the whole picture, so that its steep borders may differ a little.
    """
    height = _heights(pair.before_level) if touched else None
    strokes = np.maximum(
        _strokes(shrink(pair.before_level, FACTOR)), _strokes(shrink(pair.after_level, FACTOR))
    )
    found = []
    for part in parts:
        if part.area < least_area or part.peak < least_peak:
            continue
        where = change.labels == part.label
        if height is not None and _beyond(change, height, where) < least_peak:
            continue
        mark = bool(np.percentile(strokes[where], 75) > 0.25 * part.peak and part.peak > 12.0)
        found.append(
            Stray(round(part.x * FACTOR), round(part.y * FACTOR), part.area * FACTOR**2, part.peak, mark)
        )
    return tuple(sorted(found, key=lambda stray: -stray.area))


def beyond_field(pair: ImagePair, field: Mask) -> tuple[Stray, ...]:
    """What changed on the black outside the field, where a change of the whole field has no business.

    Args:
        pair: the two images.
        field: bool (h, w) at half size, what is image.
    """
    largest = shrink(pair.largest, FACTOR)
    changed = (largest > BEYOND_LEVELS) & ~grow(field, pair.px(24) / FACTOR)
    area = int(changed.sum())
    if area < BEYOND_AREA * pair.unit**2:
        return ()
    ys, xs = np.nonzero(changed)
    x, y = round(float(xs.mean()) * FACTOR), round(float(ys.mean()) * FACTOR)
    return (Stray(x, y, area * FACTOR**2, float(largest[changed].max()), True),)


def _strokes(plane: Field) -> Field:
    """Strength of thin structure: the fine band's local root mean square."""
    fine = plane - blur(plane, 2.5)
    return np.sqrt(blur(fine * fine, 2.0))


def _heights(plane: Field) -> Field:
    """At half size, how far apart the levels around each place lie."""
    near = np.ones((ACROSS, ACROSS), np.uint8)
    return shrink(np.asarray(cv2.dilate(plane, near) - cv2.erode(plane, near), np.float32), FACTOR)


def _beyond(change: Change, height: Field, where: Mask) -> float:
    """The strongest change of a part beyond what a resampling does to borders so high."""
    return float((np.abs(change.smooth[where]) - STEEP * height[where]).max())
