"""The brain in one MR slice, by classical means: head, brain inside the inner table, tissue levels, midline.

Everything is measured on a quarter-size copy (256 x 256 for a prepared image) and brought back to full size, so that
a whole analysis costs a few tens of milliseconds. What the image record does not say (sequence, plane) is estimated
in `plantain.offline.brain.protocol`.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
from skimage.segmentation import watershed

from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.frame import without_frame

STEP = 4
"""Full-size pixels per working pixel."""


@dataclass(frozen=True, slots=True, eq=False)
class Brain:
    """What was found in a slice. Arrays are full size (H, W) unless said otherwise; lengths are in pixels.

    Attributes:
        gray: float32, grey levels 0..255.
        head: the head with its scalp (or the brain itself where the skull was removed).
        inside: everything inside the inner table: brain, sulci, ventricles.
        tissue: brain tissue, without CSF at its surface, closed over the sulci.
        stripped: the skull was removed from this image.
        vague: the inner table is only roughly known; brain and scalp touch nearly everywhere.
        depth: float32, distance in pixels from the inner table, 0 outside.
        low, high: float, 2nd and 98th percentile of the grey levels inside.
        centre: (x, y) of `inside`.
        width, height: size in pixels of the bounding box of `inside`.
        centre_of_box: (x, y) of that box.
    """

    gray: Field
    head: Mask
    inside: Mask
    tissue: Mask
    stripped: bool
    vague: bool
    depth: Field
    low: float
    high: float
    centre: tuple[float, float]
    width: int
    height: int
    centre_of_box: tuple[float, float]


def analyse(pixels: Pixels) -> Brain:
    """Finds the brain in a prepared slice.

    Args:
        pixels: uint8 (H, W, 3), H and W multiples of 4.

    Raises:
        CannotShow: the image does not look like a brain MR slice.
    """
    spread = np.ptp(pixels[::STEP, ::STEP].astype(np.int16), axis=2)
    if float(spread.mean()) > 2.0:
        raise CannotShow("not a brain MR slice: the image is in colour")
    full = pixels[..., 1].astype(np.float32)
    side = (full.shape[1] // STEP, full.shape[0] // STEP)
    reduced = without_frame(np.asarray(cv2.resize(full, side, interpolation=cv2.INTER_AREA), np.float32))
    small = cv2.GaussianBlur(reduced, (0, 0), 0.8)
    head = _head(small)
    brain, stripped, vague = _brain(small, head)
    inside = _inside(small, head, brain, stripped)
    _check(small, head, inside)
    inside_full = _enlarge(inside, full.shape)
    depth = cv2.distanceTransform(inside_full.astype(np.uint8), cv2.DIST_L2, 5).astype(np.float32)
    values = small[inside]
    ys, xs = np.nonzero(inside)
    return Brain(
        gray=full,
        head=_enlarge(head, full.shape),
        inside=inside_full,
        tissue=_enlarge(brain, full.shape),
        stripped=stripped,
        vague=vague,
        depth=depth,
        low=float(np.percentile(values, 2)),
        high=float(np.percentile(values, 98)),
        centre=((float(xs.mean()) + 0.5) * STEP, (float(ys.mean()) + 0.5) * STEP),
        width=int(np.ptp(xs) + 1) * STEP,
        height=int(np.ptp(ys) + 1) * STEP,
        centre_of_box=((xs.min() + xs.max() + 1) / 2 * STEP, (ys.min() + ys.max() + 1) / 2 * STEP),
    )


def _disk(radius: int) -> npt.NDArray[np.uint8]:
    return np.asarray(
        cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8
    )


def _largest(mask: npt.NDArray[np.uint8], near: tuple[float, float] | None = None) -> npt.NDArray[np.uint8]:
    """The biggest connected part, by area weighted with its nearness to a point where one is given."""
    count, labels, stats, centres = cv2.connectedComponentsWithStats(mask, connectivity=4)
    if count < 2:
        return np.zeros_like(mask)
    weight = stats[1:, cv2.CC_STAT_AREA].astype(np.float64)
    if near is not None:
        away = np.hypot(centres[1:, 0] - near[0], centres[1:, 1] - near[1]) / max(mask.shape)
        weight *= np.exp(-((away / 0.25) ** 2))
    return np.asarray(labels == 1 + int(np.argmax(weight)), np.uint8)


def _filled(mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    padded = np.pad(1 - mask, 1, constant_values=1)
    flood = padded.copy()
    cv2.floodFill(flood, None, (0, 0), 2)
    return np.asarray(flood != 2, np.uint8)[1:-1, 1:-1]


def _head(small: Field) -> Mask:
    bright = float(np.percentile(small, 99))
    if bright < 25:
        raise CannotShow("not a brain MR slice: the image is blank")
    threshold = max(6.0, 0.10 * bright)
    mask = np.asarray(small > threshold, np.uint8)
    mask = np.asarray(cv2.morphologyEx(mask, cv2.MORPH_OPEN, _disk(2)), np.uint8)
    mask = np.asarray(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, _disk(5)), np.uint8)
    return np.asarray(_filled(_largest(mask)), np.bool_)


def _brain(small: Field, head: Mask) -> tuple[Mask, bool, bool]:
    """The brain's own tissue, whether there was no skull to cut it from, and whether the cut is only rough."""
    area = int(head.sum())
    if area < 0.04 * head.size:
        raise CannotShow("not a brain MR slice: no head found")
    padded = np.pad(head.astype(np.uint8), 1)
    depth = cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
    core = depth > 0.45 * depth.max()
    ys, xs = np.nonzero(core)
    near = (float(xs.mean()), float(ys.mean()))
    level = float(np.median(small[core]))
    scalp = (small > 1.35 * level) & (depth < 0.25 * depth.max())
    best = _parted(small, head & ~scalp, depth, level, near)
    vague = False
    if best is None or best.sum() < 0.3 * area:
        if _trough(small, depth) < 0.09 * level:
            tissue = np.asarray((small > 0.55 * level) & head, np.uint8)
            body = np.asarray(cv2.morphologyEx(tissue, cv2.MORPH_CLOSE, _disk(3)), np.uint8)
            return np.asarray(_filled(_largest(body)), np.bool_), True, False
        best, vague = _flooded(small, head, depth), True
    if best is None or best.sum() < 0.3 * area:
        raise CannotShow("the brain cannot be told from skull and scalp")
    return best, False, vague


def _trough(small: Field, depth: Field) -> float:
    """How far grey levels fall and rise again on the way in from the border: bone between scalp and brain."""
    reach = max(int(0.35 * float(depth.max())), 6)
    ring = np.ceil(depth).astype(np.intp)
    profile = [float(np.median(small[ring == step])) for step in range(1, reach + 1) if (ring == step).any()]
    outer = np.maximum.accumulate(profile)
    inner = np.maximum.accumulate(profile[::-1])[::-1]
    return float(np.max(np.minimum(outer, inner) - np.asarray(profile)))


def _parted(
    small: Field, allowed: Mask, depth: Field, level: float, near: tuple[float, float]
) -> Mask | None:
    """The best body that erosion at some threshold parts from the head's rim."""
    rim = (depth > 0) & (depth < 0.08 * depth.max())
    best, score = None, 0.0
    for share in (0.4, 0.55, 0.7):
        tissue = np.asarray((small > share * level) & allowed, np.uint8)
        for radius in range(1, 9):
            seed = _largest(np.asarray(cv2.erode(tissue, _disk(radius)), np.uint8), near)
            if int(seed.sum()) < 0.1 * int(allowed.sum()):
                break
            grown = np.asarray(cv2.dilate(seed, _disk(radius + 1)), np.uint8) & tissue
            body = np.asarray(_filled(grown), np.uint8)
            solidity = _solidity(body)
            if int(body[rim].sum()) > 0.02 * int(rim.sum()) or solidity < 0.86:
                continue
            if float(body.sum()) * solidity**2 > score:
                best, score = np.asarray(body, np.bool_), float(body.sum()) * solidity**2
            break
    return best


def _flooded(small: Field, head: Mask, depth: Field) -> Mask | None:
    """Where erosion fails: brain and scalp grow through bright tissue until they meet in the dark of the bone."""
    smooth = cv2.GaussianBlur(small, (0, 0), 1.5)
    markers = np.zeros(small.shape, np.int32)
    markers[depth > 0.42 * depth.max()] = 1
    markers[(depth < 0.06 * depth.max())] = 2
    body = np.asarray((watershed(-smooth, markers) == 1) & head, np.uint8)
    body = np.asarray(cv2.morphologyEx(body, cv2.MORPH_OPEN, _disk(5)), np.uint8)
    return np.asarray(_filled(_largest(body)), np.bool_) if body.any() and _solidity(body) > 0.9 else None


def _solidity(mask: npt.NDArray[np.uint8]) -> float:
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(contours, key=cv2.contourArea)
    return float(cv2.contourArea(outline) / max(cv2.contourArea(cv2.convexHull(outline)), 1.0))


def _inside(small: Field, head: Mask, brain: Mask, stripped: bool) -> Mask:
    """The space inside the inner table: sulci closed over, and grown through surface CSF up to bone or scalp."""
    body = np.pad(brain.astype(np.uint8), 24)
    closed = np.asarray(cv2.morphologyEx(body, cv2.MORPH_CLOSE, _disk(10)), np.uint8)
    closed = np.asarray(cv2.morphologyEx(closed, cv2.MORPH_OPEN, _disk(4)), np.uint8)[24:-24, 24:-24]
    closed = np.asarray(_filled(_largest(closed)), np.uint8)
    if stripped:
        return np.asarray(closed & head, np.bool_)
    grown = np.asarray(cv2.dilate(closed, _disk(2)), np.uint8)
    return np.asarray(grown & head, np.bool_)


def _check(small: Field, head: Mask, inside: Mask) -> None:
    """Refuses what cannot be a brain slice, each with its reason."""
    frame = np.concatenate([small[:4].ravel(), small[-4:].ravel()])
    sides = np.concatenate([small[:, :4].ravel(), small[:, -4:].ravel()])
    if float(np.median(frame)) > 40 or float(np.median(sides)) > 40:
        raise CannotShow("not a brain MR slice: no dark background around a head")
    corner = 20
    dark = [
        float(np.median(part))
        for part in (small[:corner, :corner], small[:corner, -corner:], small[-corner:, :corner])
    ]
    if max(dark) > 40:
        raise CannotShow("not a brain MR slice: no dark background around a head")
    share = float(inside.mean())
    if not 0.03 < share < 0.75:
        raise CannotShow("not a brain MR slice: no brain found inside a head")
    if _solidity(inside.astype(np.uint8)) < 0.80:
        raise CannotShow("not a brain MR slice: what was found is not shaped like a brain")
    if _is_circle(head):
        raise CannotShow("not a brain MR slice: the field is a circular aperture")
    values = small[inside]
    if float(np.percentile(values, 95) - np.percentile(values, 5)) < 8:
        raise CannotShow("not a brain MR slice: grey and white matter look alike")


def _is_circle(mask: Mask) -> bool:
    ys, xs = np.nonzero(mask)
    radius = float(np.sqrt(mask.sum() / np.pi))
    yy, xx = np.mgrid[: mask.shape[0], : mask.shape[1]]
    disk = np.hypot(yy - ys.mean(), xx - xs.mean()) <= radius
    return float((disk & mask).sum() / (disk | mask).sum()) > 0.975


def _enlarge(mask: Mask, shape: tuple[int, ...]) -> Mask:
    soft = cv2.resize(mask.astype(np.float32), (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    return np.asarray(soft > 0.5, np.bool_)
