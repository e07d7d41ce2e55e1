"""The two images of an edit, side by side, as numbers that can be measured."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Mask, Pixels

GREEN_WEIGHTS = {"fundus": (0.0, 1.0, 0.0)}
"""Retinal contrast stands in the green channel; grey images have three equal ones."""
GREY_WEIGHTS = (0.299, 0.587, 0.114)


@dataclass(frozen=True, slots=True, eq=False)
class ImagePair:
    """Original and edited image of one size.

    Attributes:
        before, after: uint8 (H, W, 3).
        before_level, after_level: float32 (H, W), the plane in which the modality shows its contrast, in
            grey levels.
        delta: float32 (H, W), after minus before in that plane.
        largest: float32 (H, W), the largest absolute difference over the channels.
        unit: length of one pixel of a 1024-pixel frame, in pixels.
    """

    before: Pixels
    after: Pixels
    before_level: Field
    after_level: Field
    delta: Field
    largest: Field
    unit: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.before.shape[0], self.before.shape[1]

    def px(self, length: float) -> int:
        """A length given in pixels of a 1024-pixel frame, in pixels of this one; at least 1."""
        return max(1, round(length * self.unit))


def pair_of(before: Pixels, after: Pixels, modality: str) -> ImagePair:
    """Sets two images beside each other.

    Raises:
        ValueError: the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"original {before.shape[:2]} and edited {after.shape[:2]} differ in size")
    weights = np.array(GREEN_WEIGHTS.get(modality, GREY_WEIGHTS), np.float32).reshape(1, 3)
    before_level = cv2.transform(before.astype(np.float32), weights)
    after_level = cv2.transform(after.astype(np.float32), weights)
    red, green, blue = cv2.split(cv2.absdiff(before, after))
    largest = cv2.max(cv2.max(red, green), blue).astype(np.float32)
    return ImagePair(
        before,
        after,
        before_level,
        after_level,
        after_level - before_level,
        largest,
        max(before.shape[:2]) / 1024,
    )


def shrink(plane: Field, factor: int) -> Field:
    """The plane at 1/factor of its size, each value the mean of what it covers."""
    size = (max(1, plane.shape[1] // factor), max(1, plane.shape[0] // factor))
    return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.float32)


def blur(plane: Field, sigma: float) -> Field:
    """Gaussian mean with the given spread in pixels."""
    return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma), np.float32)


def grow(mask: Mask, radius: float) -> Mask:
    """The mask and everything within `radius` pixels of it."""
    if not mask.any():
        return mask
    distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3)
    return np.asarray(distance <= radius, bool)


def shrunken(mask: Mask, radius: float) -> Mask:
    """What of the mask lies further than `radius` pixels from its outside."""
    distance = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3)
    return np.asarray(distance > radius, bool)


def largest_part(mask: Mask) -> Mask:
    """The largest connected part of a mask."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count < 2:
        return mask
    return np.asarray(labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])), bool)


def filled(mask: Mask) -> Mask:
    """The mask with its holes closed."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    out = np.zeros(mask.shape, np.uint8)
    cv2.drawContours(out, contours, -1, 1, cv2.FILLED)
    return out.astype(bool)


def hull(mask: Mask) -> Mask:
    """The smallest convex area that holds a mask."""
    points = cv2.findNonZero(mask.astype(np.uint8))
    out = np.zeros(mask.shape, np.uint8)
    if points is not None:
        cv2.fillConvexPoly(out, cv2.convexHull(points), 1)
    return out.astype(bool)
