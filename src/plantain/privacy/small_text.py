"""Letters that are small on a large film: found in the original, before it is shrunk, and read at twice their size.

A film of 3000 pixels becomes 1024, and letters 10 pixels high become 3.4: too small for a reader of whole images, not
for a patient person with a magnifying glass. Reading such a film whole would cost nine times as much. Fine strokes
stand out at their own scale, so only the places that have them are read, put together on a few canvases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.privacy.text import Text, TextReader, enlarged

LARGE = 1.25
"""From this many times the side of a prepared image on, an original holds what the prepared image does not."""

MOST_PIXELS = 24_000_000
"""Larger originals, as scans at several hundred dots an inch, are shrunk to it first, so that memory stays bounded."""

CANVAS = 1024
MOST_CANVASES = 4
"""A film full of fine strokes is read in its densest places only, so that no image takes more than some seconds."""

_STROKE_PX = 5
"""Strokes of letters up to about 25 pixels high are narrower; larger letters survive the shrinking."""

_LEAST_LEVELS = 20
_OVER_GRAIN = 3.2
_DENSE = 0.12
_COARSE = 4
_MARGIN = 12
_TWICE_BELOW = 64
"""Height in pixels of a place, margins included, below which it is read at twice its size."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of the original and where it lies on its canvas, `scale` times as large."""

    source: Box
    canvas: int
    left: int
    top: int
    scale: int


def small_texts(pixels: Pixels, reader: TextReader, side: int = CANVAS) -> tuple[Text, ...]:
    """Text in fine strokes of a large original.

    Args:
        pixels: the original, uint8 (H, W, 3) or (H, W).
        reader: of text.
        side: of the prepared image; originals that are hardly larger hold nothing more than it.

    Returns:
        What was read, told in pixels of the original, from top to bottom; letters that the prepared image shows as well
        may be among them.
    """
    height, width = pixels.shape[:2]
    if max(height, width) < LARGE * side:
        return ()
    if height * width > MOST_PIXELS:
        shrink = float(np.sqrt(MOST_PIXELS / (height * width)))
        size = (max(1, int(width * shrink)), max(1, int(height * shrink)))
        smaller = cv2.resize(np.ascontiguousarray(pixels), size, interpolation=cv2.INTER_AREA)
        return tuple(enlarged(text, 1 / shrink) for text in small_texts(smaller, reader, side))
    places = _packed(fine_strokes(pixels))
    texts: list[Text] = []
    for number in range(1 + max((place.canvas for place in places), default=-1)):
        here = [place for place in places if place.canvas == number]
        for text in reader.read(_canvas(pixels, here)):
            texts += _in_original(text, here)
    return tuple(sorted(texts, key=lambda text: (text.box.top, text.box.left, text.text)))


def fine_strokes(pixels: Pixels) -> list[Box]:
    """Places where fine strokes lie close together, the densest first."""
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    strokes = _strokes(np.ascontiguousarray(gray))
    # Lines of text lie or stand; tilted ones are dense in both windows.
    dense = cv2.max(cv2.blur(strokes, (33, 17)), cv2.blur(strokes, (17, 33)))
    coarse = cv2.resize((dense > 255 * _DENSE).astype(np.uint8), None, fx=1 / _COARSE, fy=1 / _COARSE)
    near = cv2.dilate(coarse, np.ones((3, 3), np.uint8))
    count, _, found, _ = cv2.connectedComponentsWithStats(near)
    height, width = gray.shape
    weighed = []
    for label in range(1, count):
        left, top, wide, high = (_COARSE * int(value) for value in found[label][:4])
        box = Box(min(left, width - 1), min(top, height - 1), wide, high).grown(_MARGIN, width, height)
        weighed.append((float(box.cut(strokes).mean()), box))
    return [box for _, box in sorted(weighed, key=lambda one: (-one[0], one[1]))]


def _strokes(gray: Pixels) -> Pixels:
    """255 where a line is narrower than a letter's stroke and stands out from beside it, well above the grain."""
    window = np.ones((_STROKE_PX, _STROKE_PX), np.uint8)
    fine = cv2.subtract(gray, cv2.morphologyEx(gray, cv2.MORPH_OPEN, window))
    fine = cv2.max(fine, cv2.subtract(cv2.morphologyEx(gray, cv2.MORPH_CLOSE, window), gray))
    # The usual strength around each pixel: letters are too few to raise the median of a wide place.
    coarse = cv2.resize(fine, None, fx=1 / _COARSE, fy=1 / _COARSE, interpolation=cv2.INTER_AREA)
    grain = cv2.convertScaleAbs(cv2.medianBlur(coarse, 31), alpha=_OVER_GRAIN)
    least = cv2.resize(cv2.max(grain, np.full_like(grain, _LEAST_LEVELS)), gray.shape[::-1])
    return np.asarray(cv2.compare(fine, least, cv2.CMP_GT), np.uint8)


def _packed(boxes: Sequence[Box]) -> list[_Place]:
    """Shelves of boxes on square canvases, in their order; what finds no place on the last canvas is left out."""
    places: list[_Place] = []
    canvas, left, top, shelf = 0, 0, 0, 0
    for box in [part for whole in boxes for part in _parts(whole)]:
        scale = (
            2 if min(box.width, box.height) < _TWICE_BELOW and max(box.width, box.height) * 2 <= CANVAS else 1
        )
        width, height = box.width * scale, box.height * scale
        if left + width > CANVAS:
            left, top, shelf = 0, top + shelf, 0
        if top + height > CANVAS:
            canvas, left, top, shelf = canvas + 1, 0, 0, 0
        if canvas == MOST_CANVASES:
            break
        places.append(_Place(box, canvas, left, top, scale))
        left, shelf = left + width, max(shelf, height)
    return places


def _parts(box: Box) -> list[Box]:
    """A box cut into parts that fit a canvas, with some overlap so that no word is cut everywhere."""
    step = CANVAS - 128
    return [
        Box(left, top, min(CANVAS, box.right - left), min(CANVAS, box.bottom - top))
        for top in range(box.top, max(box.top + 1, box.bottom - 128), step)
        for left in range(box.left, max(box.left + 1, box.right - 128), step)
    ]


def _canvas(pixels: Pixels, places: Sequence[_Place]) -> Pixels:
    height = max(place.top + place.source.height * place.scale for place in places)
    width = max(place.left + place.source.width * place.scale for place in places)
    canvas = np.zeros((height, width, 3), np.uint8)
    for place in places:
        part = np.ascontiguousarray(place.source.cut(pixels))
        if part.ndim == 2:
            part = cv2.cvtColor(part, cv2.COLOR_GRAY2RGB)
        if place.scale > 1:
            part = cv2.resize(part, None, fx=place.scale, fy=place.scale, interpolation=cv2.INTER_CUBIC)
        canvas[place.top : place.top + part.shape[0], place.left : place.left + part.shape[1]] = part
    return canvas


def _in_original(text: Text, places: Sequence[_Place]) -> list[Text]:
    """A text on a canvas where it lies in the original; in each of the places that it reaches into."""
    found = []
    for place in places:
        there = Box(
            place.left, place.top, place.source.width * place.scale, place.source.height * place.scale
        )
        if there.overlaps(text.box):
            left, top = max(there.left, text.box.left), max(there.top, text.box.top)
            right, bottom = min(there.right, text.box.right), min(there.bottom, text.box.bottom)
            inside = Box(
                (left - place.left) // place.scale,
                (top - place.top) // place.scale,
                max(1, (right - left) // place.scale),
                max(1, (bottom - top) // place.scale),
            )
            found.append(replace(text, box=inside.moved(place.source.left, place.source.top)))
    return found
