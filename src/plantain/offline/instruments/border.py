"""Whether the change begins with a step: the seam that pasting leaves."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.pair import blur
from plantain.pixels.arrays import Field, Mask

NEAR = 1.5
"""A step happens within this many pixels to either side; after a blur of one pixel it holds 0.87 of its height."""
FAR = 6.0
"""A soft ramp goes on rising over this many pixels to either side."""
SHARP = (0.55, 1.2)
"""Share of the whole rise within the near pixels between which it is a step: a straight ramp has 0.25, and a line drawn
along the border (the pleura, a capsule) overshoots what lies behind it."""
LEAST_POINTS = 40
"""Fewer outline pixels than this, away from the edges of the anatomy, say nothing."""
SEARCH = 5.0
"""How far from the outline the step may lie."""


@dataclass(frozen=True, slots=True)
class Border:
    """How a change begins along its outline.

    Attributes:
        length: number of outline pixels measured: those where the anatomy itself has no edge.
        step: median height of the steepest rise across the outline, in grey levels.
        seam: share of those that begin with a step.
        spread: spread of the heights of all rises over their mean: next to 0 where one level was pasted all along.
    """

    length: int
    step: float
    seam: float
    spread: float


NO_BORDER = Border(0, 0.0, 0.0, 1.0)


def border_of(
    delta: Field, clean: Field, after: Field, *, tau: float, step_levels: float, smallest: float, unit: float
) -> Border:
    """Measures the outline of a change at full size.

    Args:
        delta: float32 (H, W), after minus before without the global shift, around the change.
        clean: float32 (H, W), the image without the finding: its own edges excuse a step in the change.
        after: float32 (H, W), the edited image: only a step that is seen in it is a seam.
        tau: grey levels at which the change begins.
        step_levels: a rise of at least this many levels within the near pixels counts.
        smallest: parts into which no disc of this radius in pixels fits are lesions of their own and left
            out.
        unit: pixels of this image per pixel of a 1024-pixel frame.
    """
    mask, points = _outline(delta, tau, smallest)
    if len(points) == 0:
        return NO_BORDER
    normals = _outward(mask)[:, points[:, 1], points[:, 0]]
    offsets = np.arange(-(SEARCH + FAR), SEARCH + FAR + 0.25, 0.5)
    change = _profiles(blur(delta, 1.0), points, normals, offsets * unit)
    own = _profiles(blur(clean, 1.0), points, normals, offsets * unit)
    seen = _profiles(blur(after, 1.0), points, normals, offsets * unit)
    near, far = round(2 * NEAR), round(2 * FAR)
    centres = np.arange(far, len(offsets) - far)
    rise = change[:, centres + near] - change[:, centres - near]
    whole = change[:, centres + far] - change[:, centres - far]
    own_rise = np.abs(own[:, centres + near] - own[:, centres - near]).max(axis=1)
    steepest = np.abs(rise).argmax(axis=1)
    rows = np.arange(len(points))
    height = np.abs(rise[rows, steepest])
    share = height / np.maximum(np.abs(whole[rows, steepest]), 1e-3)
    sharp = (share >= SHARP[0]) & (share <= SHARP[1])
    seen_rise = np.abs(seen[:, centres + near] - seen[:, centres - near])[rows, steepest]
    visible = seen_rise >= 0.6 * height
    # Where the anatomy itself has an edge, a step of the change says nothing.
    free = own_rise < np.maximum(1.5 * height, 6.0)
    if free.sum() < LEAST_POINTS * unit:
        return NO_BORDER
    seam = sharp & (height >= step_levels) & visible
    heights = height[free]
    return Border(
        int(free.sum()),
        float(np.median(heights)),
        float(seam[free].mean()),
        float(heights.std() / max(float(heights.mean()), 1e-3)),
    )


def _outline(delta: Field, tau: float, smallest: float) -> tuple[Mask, np.ndarray]:
    """The larger parts of a change, filled, and the points (N, 2), x and y, of their outlines."""
    support = np.abs(blur(delta, 1.5)) > tau
    support = cv2.morphologyEx(support.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    depth = cv2.distanceTransform(support, cv2.DIST_L2, 3)
    count, labels = cv2.connectedComponents(support, connectivity=8)
    widest = np.zeros(count)
    np.maximum.at(widest, labels.ravel(), depth.ravel())
    wide = np.isin(labels, np.flatnonzero(widest >= smallest)).astype(np.uint8)
    kept, _ = cv2.findContours(wide, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    mask = np.zeros(support.shape, np.uint8)
    cv2.drawContours(mask, kept, -1, 1, cv2.FILLED)
    if not kept:
        return mask.astype(bool), np.zeros((0, 2), int)
    points = np.concatenate([contour[:, 0, :] for contour in kept])
    inner = (points > 2).all(axis=1) & (points < np.array(mask.shape)[::-1] - 3).all(axis=1)
    return mask.astype(bool), points[inner]


def _outward(mask: Mask) -> np.ndarray:
    """Unit vectors (2, H, W), x and y, pointing out of the mask."""
    distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)
    distance -= cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
    distance = blur(distance, 2.5)
    gx = cv2.Sobel(distance, cv2.CV_32F, 1, 0, ksize=3)
    gy = cv2.Sobel(distance, cv2.CV_32F, 0, 1, ksize=3)
    norm = np.hypot(gx, gy) + 1e-6
    return np.stack([gx / norm, gy / norm])


def _profiles(plane: Field, points: np.ndarray, normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Values (N, K) along the normal of each point, from inside to outside."""
    xs = (points[:, 0, None] + normals[0][:, None] * offsets[None, :]).astype(np.float32)
    ys = (points[:, 1, None] + normals[1][:, None] * offsets[None, :]).astype(np.float32)
    return np.asarray(cv2.remap(plane, xs, ys, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
