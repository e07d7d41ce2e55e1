"""Reading text at the scale at which a reader recognises it: in originals larger and smaller than the prepared image.

A film of 3000 pixels becomes 1024, and letters 10 pixels high become 3.4: too small for a reader of whole images.
Reading such a film whole would cost nine times as much. Fine strokes are detected in the original instead, and only the
places that have them are read, packed on a few canvases, at twice their size.

A slice of 224 pixels becomes 1024, which shows a reader hardly more than 512 does. Of 116 lines, 5 to 14 pixels high,
mostly faint, that were drawn on such slices 61 were read at 1024 and 64 at 512: four others were lost, seven won, in
0.25 of the time (`benchmarks/burned_in_text.py --slices FOLDER`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.privacy.text import Text, TextReader, enlarged
from plantain.records import Geometry

LARGELY = 2.5
"""Images that were enlarged by more than this factor are read at a smaller size."""

READ_AT = 2.25
"""Times their own size at which they are read."""

LEAST_SIDE = 512
"""Side in pixels below which nothing is read, however small the original."""


def read_prepared(pixels: Pixels, geometry: Geometry, reader: TextReader) -> tuple[Text, ...]:
    """Read the text in a prepared image, from top to bottom; boxes are in its pixels.

    Args:
        pixels: uint8 (H, W, 3), prepared.
        geometry: position of the original in it.
        reader: the text reader.
    """
    height, width = pixels.shape[:2]
    larger = max(geometry.inner_width / geometry.width, geometry.inner_height / geometry.height)
    side = max(height, width)
    wanted = max(LEAST_SIDE, round(side * READ_AT / larger))
    if larger <= LARGELY or wanted >= side:
        return reader.read(pixels)
    by = wanted / side
    size = (round(width * by), round(height * by))
    smaller = cv2.resize(np.ascontiguousarray(pixels), size, interpolation=cv2.INTER_AREA)
    return tuple(enlarged(text, 1 / by) for text in reader.read(smaller))


LARGE = 1.25
"""From this multiple of a prepared image's side on, an original has letters that the prepared image does not show."""

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
    """A part of the original and its position on a canvas, `scale` times as large."""

    source: Box
    canvas: int
    left: int
    top: int
    scale: int


def small_texts(pixels: Pixels, reader: TextReader, side: int = CANVAS) -> tuple[Text, ...]:
    """Read small text in a large original, which would not be legible in the prepared image.

    Args:
        pixels: the original, uint8 (H, W, 3) or (H, W).
        reader: the text reader.
        side: side of the prepared image in pixels; originals that are hardly larger are not read.

    Returns:
        Text in coordinates of the original, from top to bottom; some of it may be legible in the prepared image too.
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
    """Find boxes with many fine strokes in an image, uint8 (H, W, 3) or (H, W), the densest first."""
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    strokes = _strokes(np.ascontiguousarray(gray))
    # One window for horizontal and one for vertical lines of text; tilted ones are dense in both.
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
    """Return 255 where a line is as narrow as a letter's stroke and its contrast is well above the grain."""
    window = np.ones((_STROKE_PX, _STROKE_PX), np.uint8)
    fine = cv2.subtract(gray, cv2.morphologyEx(gray, cv2.MORPH_OPEN, window))
    fine = cv2.max(fine, cv2.subtract(cv2.morphologyEx(gray, cv2.MORPH_CLOSE, window), gray))
    # The usual strength around each pixel: letters are too few to raise the median of a wide place.
    coarse = cv2.resize(fine, None, fx=1 / _COARSE, fy=1 / _COARSE, interpolation=cv2.INTER_AREA)
    grain = cv2.convertScaleAbs(cv2.medianBlur(coarse, 31), alpha=_OVER_GRAIN)
    least = cv2.resize(cv2.max(grain, np.full_like(grain, _LEAST_LEVELS)), gray.shape[::-1])
    return np.asarray(cv2.compare(fine, least, cv2.CMP_GT), np.uint8)


def _packed(boxes: Sequence[Box]) -> list[_Place]:
    """Pack boxes on shelves of square canvases, in their order; omit those beyond the last canvas."""
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
    """Return the parts of a box that fit a canvas, with an overlap so that no word is cut in all of them."""
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
    """Return a text of a canvas in coordinates of the original, once for each place that it overlaps."""
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
