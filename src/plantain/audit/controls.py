"""The controls of a card: changes without meaning (codecs, a resize, a shift), and naive editors.

Lengths are pixels of a 1024-pixel frame, levels are grey levels; every image is uint8 (H, W, 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import cv2
import numpy as np

from plantain.audit import corruptions as spoiling
from plantain.audit.planted_defects import CleanEdit, NotApplicable
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import compressed
from plantain.records import Direction

DOTS = 14
BLOB_LEVELS, DOT_LEVELS, WASH_LEVELS = 40.0, 45.0, 22.0


def jpeg(pixels: Pixels, quality: int) -> Pixels:
    """Encode an image as JPEG (4:2:0, `quality` 0 to 100) and decode it; same shape."""
    return decode(compressed(".jpg", pixels, cv2.IMWRITE_JPEG_QUALITY, quality))


def resized(pixels: Pixels) -> Pixels:
    """Resize an image (H, W, 3) to three quarters of its size and back."""
    rows, columns = pixels.shape[:2]
    small = cv2.resize(pixels, (round(0.75 * columns), round(0.75 * rows)), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (columns, rows), interpolation=cv2.INTER_CUBIC), np.uint8)


def shifted(pixels: Pixels) -> Pixels:
    """Shift an image (H, W, 3) one pixel to the right; the left border is repeated."""
    return np.concatenate([pixels[:, :1], pixels[:, :-1]], axis=1)


def brighter(pixels: Pixels) -> Pixels:
    """Brighten an image (H, W, 3) by three grey levels, except in black padding."""
    lit = pixels.max(axis=2, keepdims=True) > 4
    raised = np.clip(pixels.astype(np.int16) + 3, 0, 255)
    return np.asarray(np.where(lit, raised, pixels), np.uint8)


REENCODED: Mapping[str, Callable[[Pixels], Pixels]] = {
    "jpeg 90": partial(jpeg, quality=90),
    "jpeg 75": partial(jpeg, quality=75),
    "resized and back": resized,
    "1 pixel": shifted,
    "3 grey levels": brighter,
}
"""Changes that a hosted editor makes to every image, by name."""


def blob(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw on the original, instead of the finding, a soft blob that is brighter or darker like the finding."""
    return _lifted(edit, [_middle(edit)], _unit(edit) * 90, BLOB_LEVELS)


def dots(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw up to 14 (`DOTS`) small blobs on the original, anywhere inside the content."""
    places = [spoiling.elsewhere(edit.original, np.zeros_like(edit.mask), 0, rng) for _ in range(DOTS)]
    return _lifted(edit, [place for place in places if place is not None], _unit(edit) * 12, DOT_LEVELS)


def grey_wash(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw a wide, flat veil on the original over half of the content, around the finding's place."""
    middle = _middle(edit)
    ys, xs = np.mgrid[: edit.mask.shape[0], : edit.mask.shape[1]]
    away = np.hypot(xs - middle[0], ys - middle[1]) / (_unit(edit) * 260)
    veil = np.clip(1.5 - away, 0, 1) * spoiling.content(edit.original)
    return _added(edit, WASH_LEVELS * _sign(edit) * veil.astype(np.float32))


def text(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Write the finding's name on the original, in the finding's place."""
    x, y = _middle(edit)
    height = 30 * _unit(edit)
    words = edit.finding.title
    place = (max(0, round(x - 0.45 * height * len(words))), max(0, round(y - height / 2)))
    return spoiling.written(edit.original, words, place, height, 90)


def copied_patch(edit: CleanEdit, rng: np.random.Generator) -> Pixels:
    """Draw on the original, instead of the finding, two copies of one patch side by side."""
    out = spoiling.with_copies(edit.original, edit.mask, round(88 * _unit(edit)), rng)
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)


NAIVE_EDITORS: Mapping[str, Callable[[CleanEdit, np.random.Generator], Pixels]] = {
    "blob": blob,
    "dots": dots,
    "grey wash": grey_wash,
    "text": text,
    "copied patch": copied_patch,
}
"""Editors that know no disease; each gets only the place of the finding from the clean edit."""


def naive(name: str, edit: CleanEdit, seed: int) -> Pixels:
    """Return the output of the naive editor `name` for an original to which a finding is added.

    Raises:
        NotApplicable: the edit is a removal or has an empty mask, or the drawing does not change this image.
    """
    if edit.direction is not Direction.ADD:
        raise NotApplicable("naive editors add")
    if not edit.mask.any():
        raise NotApplicable("the clean edit names no place")
    drawn = NAIVE_EDITORS[name](edit, np.random.default_rng(seed))
    if np.array_equal(drawn, edit.original):
        raise NotApplicable("the drawing does not change the image")
    return drawn


def _unit(edit: CleanEdit) -> float:
    return float(max(edit.original.shape[:2])) / 1024


def _middle(edit: CleanEdit) -> tuple[int, int]:
    """Return the pixel deepest inside the clean edit's mask, as (x, y)."""
    depth = cv2.distanceTransform(np.pad(edit.mask.astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
    y, x = np.unravel_index(int(depth.argmax()), depth.shape)
    return int(x), int(y)


def _sign(edit: CleanEdit) -> float:
    return -1.0 if edit.finding.polarity == "darker" else 1.0


def _lifted(edit: CleanEdit, places: list[tuple[int, int]], radius: float, levels: float) -> Pixels:
    hills = np.zeros(edit.mask.shape, np.float32)
    for place in places:
        hills = np.maximum(hills, spoiling.blob(edit.mask.shape, place, radius))
    return _added(edit, _sign(edit) * levels * hills)


def _added(edit: CleanEdit, change: np.ndarray) -> Pixels:
    lifted = np.clip(np.rint(edit.original + change[..., None]), 0, 255)
    return np.asarray(lifted, np.uint8)
