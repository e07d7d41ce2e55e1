"""The pixel operations behind the planted defects."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.pixels.arrays import Field, Mask, Pixels


def content(pixels: Pixels) -> Mask:
    """Return a mask, bool (H, W), of an image's (H, W, 3) content: not black padding, holes filled."""
    smooth = cv2.GaussianBlur(pixels.max(axis=2), (0, 0), 3.0)
    contours, _ = cv2.findContours((smooth > 10).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    out = np.zeros(smooth.shape, np.uint8)
    cv2.drawContours(out, contours, -1, 1, cv2.FILLED)
    return out.astype(bool)


def middle_column(pixels: Pixels) -> float:
    """Return the x coordinate of the content's middle in pixels; of the image's middle if it has no content."""
    columns = np.flatnonzero(content(pixels).mean(axis=0) > 0.05)
    return float(columns[0] + columns[-1]) / 2 if columns.size else pixels.shape[1] / 2


def mirrored(values: Field, axis: float) -> Field:
    """Mirror values (H, W) about the column `axis`; same shape, filled with 0."""
    return moved(np.ascontiguousarray(values[:, ::-1]), round(2 * axis - (values.shape[1] - 1)), 0)


def moved(values: Field, dx: int, dy: int) -> Field:
    """Shift values (H, W) by `dx` pixels right and `dy` down; float32 of the same shape, filled with 0."""
    matrix = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
    return np.asarray(
        cv2.warpAffine(values, matrix, values.shape[1::-1], flags=cv2.INTER_NEAREST), np.float32
    )


def solid(mask: Mask, join: float, grow: float) -> Mask:
    """Join a mask's parts across gaps of up to twice `join` pixels, fill holes, and grow it by `grow` pixels."""
    joined = cv2.morphologyEx(_padded(mask, join), cv2.MORPH_CLOSE, _round(join))
    contours, _ = cv2.findContours(joined, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(joined, contours, -1, 1, cv2.FILLED)
    margin = _margin(join)
    inner = joined[margin:-margin, margin:-margin]
    return np.asarray(cv2.dilate(inner, _round(grow)), bool)


def deep_area(mask: Mask, depth: float) -> int:
    """Count the pixels of a mask that are more than `depth` pixels from its border."""
    return int((cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3) > depth).sum())


def soft(mask: Mask, width: float) -> Field:
    """Return a mask as weights, float32 (H, W): 1 inside, falling to 0 within `width` pixels outside."""
    distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3)
    return np.asarray(np.clip(1.0 - distance / width, 0.0, 1.0), np.float32)


def plainest_grain(pixels: Pixels, mask: Mask) -> float:
    """Return the fine texture of the tiles near a mask, in grey levels: their 20th percentile; 0.0 without tiles."""
    plane = pixels[..., 1].astype(np.float32)
    fine = plane - cv2.GaussianBlur(plane, (0, 0), 1.0)
    size = (mask.shape[1] // 16, mask.shape[0] // 16)
    power = cv2.resize(fine * fine, size, interpolation=cv2.INTER_AREA)
    near = (
        cv2.resize(cv2.dilate(mask.astype(np.float32), _round(40)), size, interpolation=cv2.INTER_AREA) > 0.8
    )
    return float(np.sqrt(np.percentile(power[near], 20))) if near.any() else 0.0


def corner(mask: Mask, box: tuple[int, int], apart: int, rng: np.random.Generator) -> tuple[int, int] | None:
    """Return the top left (x, y) of a box in an image corner that is away from the mask; None if no corner is.

    Args:
        mask: bool (H, W).
        box: height and width in pixels.
        apart: least distance from the mask in pixels.
        rng: chooses among the corners.
    """
    (rows, columns), (high, wide) = mask.shape, box
    margin = round(0.03 * rows)
    places = [(x, y) for y in (margin, rows - margin - high) for x in (margin, columns - margin - wide)]
    for index in rng.permutation(len(places)):
        x, y = places[int(index)]
        near = mask[max(0, y - apart) : y + high + apart, max(0, x - apart) : x + wide + apart]
        if x >= 0 and y >= 0 and not near.any():
            return x, y
    return None


def written(pixels: Pixels, text: str, place: tuple[int, int], height: float, level: float) -> Pixels:
    """Burn text into an image, `level` grey levels brighter than the pixels below it.

    Args:
        pixels: uint8 (H, W, 3); the result is a new array like it.
        text: the words, on one line.
        place: (x, y) of the top left corner of the text.
        height: height of capitals in pixels.
        level: brightness added to the image, in grey levels.
    """
    layer = np.zeros(pixels.shape[:2], np.uint8)
    thickness = max(1, round(height / 9))
    scale = height / 21.0
    origin = (place[0], place[1] + round(height))
    cv2.putText(layer, text, origin, cv2.FONT_HERSHEY_SIMPLEX, scale, 255, thickness, cv2.LINE_AA)
    alpha = layer.astype(np.float32)[..., None] / 255.0
    out = pixels + alpha * level
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)


def with_copies(pixels: Pixels, mask: Mask, side: int, rng: np.random.Generator) -> Field:
    """Copy a patch of the image twice over the mask's middle, matched in level; float32 (H, W, 3).

    Without a textured patch of `side` by `side` pixels, the image is returned unchanged.
    """
    ys, xs = np.nonzero(mask)
    cy, cx = int(np.median(ys)), int(np.median(xs))
    lit = content(pixels)
    source = _textured(pixels, lit, (cx, cy), side, rng)
    out = pixels.astype(np.float32)
    if source is None:
        return out
    patch = out[source[1] : source[1] + side, source[0] : source[0] + side].copy()
    ramp = np.minimum(np.arange(side) + 1, side - np.arange(side)) / max(2.0, 0.06 * side)
    weight = np.clip(np.minimum.outer(ramp, ramp), 0, 1)[..., None].astype(np.float32)
    for start in (cx - side, cx):
        x = min(max(0, start), pixels.shape[1] - side)
        y = min(max(0, cy - side // 2), pixels.shape[0] - side)
        under = out[y : y + side, x : x + side]
        matched = patch - patch.mean(axis=(0, 1)) + under.mean(axis=(0, 1))
        out[y : y + side, x : x + side] = under + weight * (matched - under)
    return out


def _textured(
    pixels: Pixels, lit: Mask, away: tuple[int, int], side: int, rng: np.random.Generator
) -> tuple[int, int] | None:
    """Return the top left corner of the most textured of 60 random patches that do not overlap the pasted row."""
    plane = pixels[..., 1].astype(np.float32)
    fine = plane - cv2.GaussianBlur(plane, (0, 0), 4.0)
    best, found = 0.0, None
    for _ in range(60):
        x = int(rng.integers(0, pixels.shape[1] - side))
        y = int(rng.integers(0, pixels.shape[0] - side))
        if not lit[y : y + side, x : x + side].all():
            continue
        apart = max(abs(x + side / 2 - away[0]) - side, abs(y + side / 2 - away[1]) - side / 2)
        if apart < 0.6 * side:
            continue
        texture = float(fine[y : y + side, x : x + side].std())
        if texture > best:
            best, found = texture, (x, y)
    return found


def elsewhere(
    pixels: Pixels, mask: Mask, distance: float, rng: np.random.Generator
) -> tuple[int, int] | None:
    """Choose a random (x, y) over `distance` pixels from the mask and 20 inside the content; None if no place is."""
    far = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 3) > distance
    lit = cv2.erode(content(pixels).astype(np.uint8), np.ones((41, 41), np.uint8)).astype(bool)
    ys, xs = np.nonzero(far & lit)
    if ys.size == 0:
        return None
    pick = int(rng.integers(ys.size))
    return int(xs[pick]), int(ys[pick])


def blob(shape: tuple[int, ...], place: tuple[int, int], radius: float) -> Field:
    """Return a smooth bump, float32 (H, W): 1 at `place`, falling to 0 at `radius` pixels."""
    ys, xs = np.mgrid[: shape[0], : shape[1]]
    squared = ((xs - place[0]) ** 2 + (ys - place[1]) ** 2) / radius**2
    return np.asarray(np.clip(1.0 - squared, 0.0, None) ** 2, np.float32)


ANYWHERE = ("Diabetes", "Hypertension")
"""Findings of many foci that may be anywhere in the image."""


def foreign_place(pixels: Pixels, modality: str, finding: str, mask: Mask) -> tuple[float, float] | None:
    """Return a place (x, y) where a finding cannot be by definition; None if it can be anywhere or the image is empty.

    Chest: below the diaphragm at the lower border of the film, under the middle of the spine. Brain: the
    background or scalp outside the head for a glioma; for a meningioma the middle of the hemisphere, far from
    any dura. Fundus: the corner of the frame, outside the aperture.
    """
    lit = content(pixels)
    ys, xs = np.nonzero(lit)
    if ys.size == 0:
        return None
    top, bottom, left, right = ys.min(), ys.max(), xs.min(), xs.max()
    cy, cx = (top + bottom) / 2, (left + right) / 2
    half = float(np.ptp(np.flatnonzero(mask.any(axis=1)))) / 2
    if modality == "chest_xray":
        return cx, bottom - 0.4 * half
    my, mx = (float(values.mean()) for values in np.nonzero(mask))
    if modality == "brain_mri" and finding == "meningioma":
        return (cx + 0.24 * (right - left) * (1 if mx > cx else -1), cy)
    if finding in ANYWHERE:
        return None
    if modality == "fundus":
        rows, columns = pixels.shape[:2]
        corners = [(x * columns, y * rows) for x in (0.06, 0.94) for y in (0.06, 0.94)]
        return max(corners, key=lambda corner: np.hypot(corner[0] - mx, corner[1] - my))
    angle = np.arctan2(my - cy, mx - cx)
    reach = 0.5 * max(right - left, bottom - top) + half
    x = float(np.clip(cx + reach * np.cos(angle), 0, pixels.shape[1] - 1))
    y = float(np.clip(cy + reach * np.sin(angle), 0, pixels.shape[0] - 1))
    return x, y


def at_dura(pixels: Pixels, delta: Field) -> float:
    """Return the share in [0, 1] of a change's core near the head's border or midline; 1 without a core.

    Args:
        pixels: the original, uint8 (H, W, 3).
        delta: the change in grey levels, float32 (H, W, 3).
    """
    lit = content(pixels)
    width = float(np.ptp(np.flatnonzero(lit.any(axis=0)))) + 1
    depth = cv2.distanceTransform(lit.astype(np.uint8), cv2.DIST_L2, 3)
    columns = np.arange(lit.shape[1])[None, :]
    near = (depth < 0.05 * width) | (np.abs(columns - middle_column(pixels)) < 0.04 * width)
    strength = np.abs(delta).max(axis=2)
    core = strength > 0.4 * float(np.percentile(strength[strength > 1], 95)) if (strength > 1).any() else near
    return float(near[core].mean()) if core.any() else 1.0


def _round(radius: float) -> np.ndarray:
    size = 2 * max(1, round(radius)) + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))


def _margin(radius: float) -> int:
    return 2 * max(1, round(radius)) + 1


def _padded(mask: Mask, radius: float) -> np.ndarray:
    return np.pad(mask.astype(np.uint8), _margin(radius))
