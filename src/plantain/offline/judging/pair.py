"""Two images laid over each other: their levels, what happened to the image as a whole, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.anatomy.maps import blur, largest_channel
from plantain.pixels.arrays import Field, Mask, Pixels

GREY = (0.299, 0.587, 0.114)
FUNDUS = (0.3, 0.6, 0.1)
"""Weights of red, green and blue in the level."""
LEAST, MOST = 2.0, 10.0
"""Grey levels from which a change is seen, after smoothing: in an image that is otherwise the same, and in any."""
MOST_SHIFT = 4
"""Pixels by which a whole image may have been moved; more is not looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The image with the finding and the image without it, whichever of them was edited.

    Attributes:
        clean, shown: float32 (H, W), levels without and with the finding.
        before, after: uint8 (H, W, 3), original and edited image, in one position.
        delta: float32 (h, w) at half size, shown minus clean, smoothed, without the shift of the whole image.
        changed: bool (h, w) at half size.
        brighter: grey levels by which the whole edited image changed.
        moved: pixels (x, y) by which the whole edited image was moved.
    """

    clean: Field
    shown: Field
    before: Pixels
    after: Pixels
    delta: Field
    changed: Mask
    brighter: float
    moved: tuple[int, int]

    @property
    def unit(self) -> float:
        """Pixels of this image for each pixel of a 1024-pixel image."""
        return float(max(self.clean.shape)) / 1024


def pair_of(before: Pixels, after: Pixels, *, added: bool, fundus: bool) -> Pair:
    """Compare an original with its edit.

    Args:
        before, after: uint8 (H, W, 3).
        added: the finding was added; otherwise it was removed, and the original shows it.

    Raises:
        ValueError: the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"original {before.shape[:2]} and edited {after.shape[:2]} differ in size")
    weights = np.array([FUNDUS if fundus else GREY], np.float32)
    moved = _moved(_level(before, weights), _level(after, weights))
    after = _shifted(after, moved)
    first, second = _level(before, weights), _level(after, weights)
    field = halved((first > 6).astype(np.float32)) > 0.5
    difference = halved(second - first)
    smooth = blur(difference, 1.3)
    inside = smooth[field] if field.any() else smooth.ravel()
    brighter = float(np.median(inside))
    smooth = smooth - np.where(field, np.float32(brighter), np.float32(0))
    noise = float(1.4826 * np.median(np.abs(inside - brighter)))
    # Codecs and resampling change places with much fine texture more than others.
    fine = blur(np.abs(halved(first - blur(first, 2.0))), 2.0) + np.float32(0.1)
    usual = float(np.median((np.abs(smooth) / fine)[field])) if field.any() else 0.0
    least = np.clip(np.maximum(2.5 * noise, 3.0 * usual * fine), LEAST, MOST)
    colour = blur(halved(largest_channel(cv2.absdiff(after, before)).astype(np.float32)), 2.0) - abs(brighter)
    changed = (np.abs(smooth) > least) | (colour > 3 * least)
    clean, shown = (first, second) if added else (second, first)
    delta = smooth if added else -smooth
    return Pair(clean, shown, before, after, delta, changed, brighter, moved)


def halved(plane: Field) -> Field:
    """Return a plane at half its size."""
    size = (max(1, plane.shape[1] // 2), max(1, plane.shape[0] // 2))
    return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.float32)


def doubled(mask: Mask, pair: Pair) -> Mask:
    """Return a smaller mask at the size of the image."""
    size = (pair.clean.shape[1], pair.clean.shape[0])
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0, bool)


def _level(pixels: Pixels, weights: np.ndarray) -> Field:
    return np.asarray(cv2.transform(pixels.astype(np.float32), weights), np.float32).reshape(pixels.shape[:2])


def _moved(first: Field, second: Field) -> tuple[int, int]:
    """Shift (x, y) of the second image in whole pixels; (0, 0) if unknown."""
    one, other = first - blur(first, 3.0), second - blur(second, 3.0)
    if np.abs(one - other).mean() < 0.5 * np.abs(one).mean():
        return 0, 0
    (x, y), response = cv2.phaseCorrelate(one, other, cv2.createHanningWindow(first.shape[::-1], cv2.CV_32F))
    if response < 0.1 or max(abs(x), abs(y)) > MOST_SHIFT:
        return 0, 0
    return round(x), round(y)


def _shifted(pixels: Pixels, moved: tuple[int, int]) -> Pixels:
    if moved == (0, 0):
        return pixels
    matrix = np.array([[1, 0, -moved[0]], [0, 1, -moved[1]]], np.float32)
    size = (pixels.shape[1], pixels.shape[0])
    return np.asarray(cv2.warpAffine(pixels, matrix, size, borderMode=cv2.BORDER_REPLICATE), np.uint8)
