"""The argument of the drawing primitives, and the shapes and paint that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.anatomy.maps import SIDE, AnatomyMap, CannotShow, blur, enlarged, signed_distance
from plantain.pixels.arrays import Field, Mask
from plantain.records import Stroke

Point = tuple[float, float]
"""(x, y) in pixels of the image."""


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The input of one drawing step.

    Attributes:
        image: float32 (H, W, C), the image so far, in grey levels; C is 1 for grey modalities.
        anatomy: the map of the original.
        where: bool (256, 256), True where the step may be placed.
        side: "left" or "right" of the patient, "" if the step has no side.
        stroke: the finding's data for this step.
        extent: position in the stroke's size range, in [0, 1].
        strength: factor on the stroke's grey levels, by the contrast of the image.
        anchor: place of the finding's first step; None for the first.
        rng: random generator of shape and texture.
        placing: random generator of the place, so that another size is drawn at the same place.
    """

    image: Field
    anatomy: AnatomyMap
    where: Mask
    side: str
    stroke: Stroke
    extent: float
    strength: float
    anchor: Point | None
    rng: np.random.Generator
    placing: np.random.Generator

    @property
    def scale(self) -> float:
        """The number of pixels of the image for each pixel of the map, along one axis."""
        return float(self.image.shape[1]) / SIDE

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of the image."""
        return int(self.image.shape[0]), int(self.image.shape[1])

    @property
    def yard(self) -> float:
        """The map's unit of length (thorax width, head width or disc diameter) in pixels of the image."""
        return self.anatomy.yard * self.scale

    @property
    def size(self) -> float:
        """The size to draw, in pixels of the image."""
        small, large = self.stroke.size
        return (small + self.extent * (large - small)) * self.yard

    def level(self) -> Field:
        """Return grey levels to add at full strength, float32 (C,)."""
        return np.asarray(self.stroke.level, np.float32) * np.float32(self.strength)

    @property
    def middle(self) -> float:
        """The middle of the stroke's size range, divided by the size that is drawn."""
        return 0.5 * sum(self.stroke.size) * self.yard / self.size

    def spot(self, margin: float) -> Point:
        """Choose a random (x, y) in `where`, in image pixels, `margin` pixels inside its border if possible.

        The point is chosen for the middle size and moved inwards if the drawn size needs more space. Raise CannotShow
        if `where` is empty.
        """
        depth = cv2.distanceTransform(np.pad(self.where, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1]
        if not depth.max() > 0:
            raise CannotShow("no space for it in this image")
        deepest = 0.75 * float(depth.max())
        first, allowed = (depth >= min(share * margin / self.scale, deepest) for share in (self.middle, 1.0))
        x, y = self.chosen(first, allowed)
        return (x + 0.5) * self.scale, (y + 0.5) * self.scale

    def chosen(self, first: Mask, allowed: Mask) -> Point:
        """Return the pixel (x, y) of `allowed` that is nearest to a random pixel of `first`."""
        ys, xs = np.nonzero(first)
        pick = int(self.placing.integers(ys.size))
        rows, columns = np.nonzero(allowed)
        nearest = int(np.argmin((rows - ys[pick]) ** 2 + (columns - xs[pick]) ** 2))
        return float(columns[nearest]), float(rows[nearest])

    def rim(self) -> Mask:
        """Return the pixels just outside the organ, bool (H, W)."""
        depth = enlarged(self.anatomy.depth(), self.shape) * np.float32(self.scale)
        return np.asarray((depth < -0.02 * self.yard) & (depth > -0.08 * self.yard), bool)

    def inside(self, soften: float) -> Field:
        """Return weights, float32 (H, W): 1 inside the organ on this side, falling to 0 over `soften` pixels."""
        half = self.anatomy.organ & self.anatomy.side(self.side)
        depth = enlarged(signed_distance(half), self.shape) * np.float32(self.scale)
        return ramp(depth / np.float32(soften))


def ramp(values: npt.NDArray[np.floating]) -> Field:
    """Return the smoothstep of each value, float32: 0 up to 0, 1 from 1 on."""
    cut = np.clip(values, 0, 1)
    return np.asarray(cut * cut * (3 - 2 * cut), np.float32)


def lobed(
    sketch: Sketch, centre: Point, radius: float, *, edge: float, oval: float = 1, turn: float = 0
) -> Field:
    """Return a rounded, slightly lobed shape, 1 inside and 0 outside, float32 (H, W).

    Args:
        centre, radius: centre (x, y) and radius in pixels.
        edge: share of the radius over which the border fades.
        oval: length over width.
        turn: direction of the long axis in radians, image axes.
    """
    out = np.zeros(sketch.shape, np.float32)
    reach = round(radius * 1.5 * max(1.0, math.sqrt(oval))) + 8
    top, left = max(0, round(centre[1]) - reach), max(0, round(centre[0]) - reach)
    box = (slice(top, max(0, round(centre[1]) + reach)), slice(left, max(0, round(centre[0]) + reach)))
    ys, xs = np.mgrid[: out[box].shape[0], : out[box].shape[1]].astype(np.float32)
    x, y = xs + np.float32(left - centre[0]), ys + np.float32(top - centre[1])
    along = (x * math.cos(turn) + y * math.sin(turn)) / math.sqrt(oval)
    across = (-x * math.sin(turn) + y * math.cos(turn)) * math.sqrt(oval)
    angle = np.arctan2(across, along)
    outline = np.ones_like(angle)
    lobes = 0.06 if sketch.stroke.oval else 0.16
    for waves in (2, 3, 5, 7):
        outline += np.float32(lobes / waves * sketch.rng.normal()) * np.cos(
            waves * angle + sketch.rng.uniform(0, 2 * np.pi)
        )
    soft = max(edge, 9.0 / max(radius, 1.0))
    out[box] = ramp((1 + soft / 2 - np.hypot(along, across) / (radius * np.maximum(outline, 0.5))) / soft)
    return out


def texture(sketch: Sketch, grain: float) -> Field:
    """Return smooth noise of mean 0 and standard deviation 1 that varies over `grain` pixels, float32 (H, W)."""
    step = max(1, int(grain / 3))
    height, width = (-(-side // step) + 2 for side in sketch.shape)
    coarse = blur(sketch.rng.standard_normal((height, width)).astype(np.float32), max(grain / step / 2, 0.6))
    whole = cv2.resize(coarse, (width * step, height * step), interpolation=cv2.INTER_CUBIC)
    whole = whole[: sketch.shape[0], : sketch.shape[1]]
    return np.asarray((whole - whole.mean()) / max(float(whole.std()), 1e-6), np.float32)


def paint(
    sketch: Sketch, alpha: Field, *, hides: float = 0.0, reach: float = 12.0, within: Mask | None = None
) -> Field:
    """Add the stroke's grey levels to the image, weighted by `alpha`; noise is kept.

    Args:
        alpha: float32 (H, W), 0 to 1.
        hides: share of the structure under it that disappears, 0 to 1.
        reach: size in pixels below which structure disappears.
        within: bool (H, W), True for pixels that change and whose mean replaces the structure; None for all.
    """
    image = sketch.image
    share = np.ones(sketch.shape, np.float32) if within is None else within.astype(np.float32)
    soft = blur(share, 1.2)
    if hides:
        weight = share[..., None]
        mean = blur(image * weight, reach) / np.maximum(blur(share, reach), 1e-2)[..., None]
        flat = np.asarray(soft[..., None] * mean - blur(image * weight, 1.2), np.float32)
        image = image + (np.float32(hides) * alpha)[..., None] * flat
    level, alpha = sketch.level(), alpha * soft
    # Near white and black there is less room, so that nothing is cut off.
    room = np.where(level > 0, (250 - image) / 70, image / 35)
    return np.asarray(image + alpha[..., None] * level * np.clip(room, 0.1, 1), np.float32)
