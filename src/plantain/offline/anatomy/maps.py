"""The anatomy map that editor and judge share, and the mask operations that it is made with."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as default
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Field, Mask, Pixels

SIDE = 256
"""Side of the frame that anatomy is mapped on; a prepared image is 1024 pixels wide."""


class CannotShow(Exception):
    """Raised if a finding cannot be shown, or found, on an image; the message is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class AnatomyMap:
    """The anatomical structures of an image, as masks on a frame of 256 x 256 pixels.

    Attributes:
        field: bool (256, 256), True for image content, not padding, collimation or aperture.
        organ: bool (256, 256), True in the organ that contains findings: lungs, brain or retina.
        places: bool (256, 256) by the name of a zone or structure, e.g. "apical", "heart", "macula".
        yard: the modality's unit of length in pixels of the frame: thorax width, head width or disc diameter.
        midline: column that separates the patient's right (image left) from the left; None without sides.
        points: landmarks (x, y) in pixels of the frame, e.g. "fovea".
    """

    field: Mask
    organ: Mask
    places: dict[str, Mask]
    yard: float
    midline: float | None
    points: dict[str, tuple[float, float]] = default(default_factory=dict)

    def place(self, name: str) -> Mask:
        """Return the mask of a named zone or structure: bool (256, 256).

        Raises:
            CannotShow: the map has no such place, or it is empty in this image.
        """
        found = self.places.get(name)
        if found is None or not found.any():
            raise CannotShow(f"no {name} region was found in this image")
        return found

    def side(self, name: str | None) -> Mask:
        """Return the patient's "left" or "right" half as bool (256, 256); the whole frame for any other name."""
        if self.midline is None or name not in ("left", "right"):
            return np.ones_like(self.field)
        right = np.arange(self.field.shape[1])[None, :] < self.midline
        return np.broadcast_to(right if name == "right" else ~right, self.field.shape)

    def depth(self) -> Field:
        """Return the distance to the organ's border, float32 (256, 256), in pixels; negative outside."""
        return signed_distance(self.organ)


def signed_distance(mask: Mask) -> Field:
    """Return the smoothed distance to a mask's border in pixels, float32 (H, W); negative outside."""
    inner = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
    outer = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)
    return blur(np.asarray(inner - outer, np.float32), 1.2)


def reduced(pixels: Pixels) -> Pixels:
    """Resize an image of any size to the map's frame: uint8 (256, 256, 3)."""
    return np.asarray(cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def largest_channel(image: npt.NDArray[np.generic]) -> npt.NDArray[Any]:
    """Return the maximum over the three channels of each pixel, (H, W)."""
    largest: npt.NDArray[Any] = np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])
    return largest


def colour_of(pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Return how coloured each pixel is, uint8 (H, W): its largest minus its smallest channel, 0 for grey."""
    least = np.minimum(np.minimum(pixels[..., 0], pixels[..., 1]), pixels[..., 2])
    return np.asarray(largest_channel(pixels) - least, np.uint8)


def enlarged(plane: npt.NDArray[np.generic], shape: tuple[int, int]) -> Field:
    """Resize a plane to `shape`, (height, width), by linear interpolation: float32."""
    size = (shape[1], shape[0])
    return np.asarray(cv2.resize(plane.astype(np.float32), size, interpolation=cv2.INTER_LINEAR), np.float32)


def blur(plane: Field, sigma: float) -> Field:
    """Blur a plane or an image (H, W, C) with a Gaussian of standard deviation `sigma` pixels.

    A wide mean is computed on a smaller copy.
    """
    step = int(sigma / 4)
    small = plane
    if step > 1:
        size = (max(1, plane.shape[1] // step), max(1, plane.shape[0] // step))
        small = cv2.resize(plane, size, interpolation=cv2.INTER_AREA)
    out = cv2.GaussianBlur(small, (0, 0), max(sigma / max(step, 1), 0.1))
    if step > 1:
        out = cv2.resize(out, plane.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return np.asarray(out, np.float32).reshape(plane.shape)


def grow(mask: Mask, radius: float) -> Mask:
    """Grow a mask, bool (H, W), by `radius` pixels."""
    if not mask.any():
        return mask
    away = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3)
    return np.asarray(away <= radius, bool)


def shrink(mask: Mask, radius: float) -> Mask:
    """Shrink a mask, bool (H, W), by `radius` pixels."""
    return np.asarray(cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3) > radius, bool)


def largest_part(mask: Mask) -> Mask:
    """Return the largest connected part of a mask."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count < 2:
        return mask
    return np.asarray(labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])), bool)


def filled(mask: Mask) -> Mask:
    """Fill the holes of a mask, bool (H, W)."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    out = np.zeros(mask.shape, np.uint8)
    cv2.drawContours(out, contours, -1, 1, cv2.FILLED)
    return out.astype(bool)


def hull(mask: Mask) -> Mask:
    """Return the convex hull of a mask, as a mask."""
    points = cv2.findNonZero(mask.astype(np.uint8))
    out = np.zeros(mask.shape, np.uint8)
    if points is not None:
        cv2.fillConvexPoly(out, cv2.convexHull(points), 1)
    return out.astype(bool)


def ellipse(centre: tuple[float, float], axes: tuple[float, float]) -> Mask:
    """Return a filled upright ellipse, bool (256, 256); `centre` and half axes are (x, y) in pixels."""
    ys, xs = np.mgrid[:SIDE, :SIDE]
    return np.asarray(((xs - centre[0]) / axes[0]) ** 2 + ((ys - centre[1]) / axes[1]) ** 2 <= 1.0, bool)
