"""Round opacities in the lungs: found by their curvature, lifted by the profile that they add to what is under them."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.chest.canvas import Canvas, blur
from plantain.offline.chest.outline import cheapest_path
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode

_ANGLES = 96
_LEAST_CURVATURE = 0.03
LEAST_RISE = 0.08
"""By how much nearly all of a lesion's rim rises above its surroundings, in parts of lung-to-soft-tissue contrast."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A round opacity: centre and radius in pixels, the lung it lies in, and how far it stands out (relative)."""

    x: float
    y: float
    radius: float
    side: str
    strength: float


def find_blobs(canvas: Canvas, *, place_given: bool = False) -> list[Blob]:
    """Round bright places inside the lungs, the strongest first; ribs and vessels curve one way only.

    Args:
        canvas: the picture and its anatomy.
        place_given: whether somebody says where to look; a rim that ribs break up is then believed.
    """
    factor = 4
    small = cv2.resize(canvas.gray, None, fx=1 / factor, fy=1 / factor, interpolation=cv2.INTER_AREA)
    sigmas = canvas.chest.thoracic_width * np.array([0.009, 0.013, 0.018, 0.025, 0.034, 0.046, 0.062])
    stack = np.stack([_roundness(small, sigma / factor) for sigma in sigmas])
    peaks = cv2.dilate(stack.max(axis=0), np.ones((7, 7), np.uint8))
    scale = stack.argmax(axis=0)
    found: list[Blob] = []
    for side in ("right", "left"):
        contrast = canvas.contrast(side)
        lung = erode(_closed(canvas, side), 0.02 * canvas.chest.thoracic_width)
        lung &= ~canvas.chest.protected
        inside = cv2.resize(lung.astype(np.uint8), small.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0
        best = stack.max(axis=0)
        for row, column in np.argwhere(inside & (best == peaks) & (best > _LEAST_CURVATURE * contrast)):
            sigma = sigmas[scale[row, column]]
            found.append(
                Blob(
                    (column + 0.5) * factor, (row + 0.5) * factor, 1.5 * float(sigma), side,
                    float(best[row, column] / contrast),
                )
            )  # fmt: skip
    found = sorted(found, key=lambda blob: (-blob.strength, blob.y, blob.x))[:36]
    soft = blur(canvas.gray, 1.5)
    rims = [(blob, _rim(soft, blob, place_given=place_given) / canvas.contrast(blob.side)) for blob in found]
    standing = [
        Blob(b.x, b.y, b.radius, b.side, r)
        for b, r in rims
        if r > LEAST_RISE * (2.6 if near_hilum(canvas, b) and not place_given else 1.0)
    ]
    return _apart(sorted(standing, key=lambda blob: (-blob.strength * blob.radius, blob.y, blob.x)))


def _closed(canvas: Canvas, side: str) -> Mask:
    """The lung with the dents that a mass at its border makes in the outline filled again."""
    small = canvas.chest.lung(side).mask[::8, ::8].astype(np.uint8)
    size = int(0.16 * canvas.chest.thoracic_width / 8) | 1
    framed = cv2.copyMakeBorder(small, size, size, size, size, cv2.BORDER_CONSTANT, value=0)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    closed = cv2.morphologyEx(framed, cv2.MORPH_CLOSE, kernel)[size:-size, size:-size]
    filled: Mask = cv2.resize(closed, canvas.gray.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0
    return filled


def near_hilum(canvas: Canvas, blob: Blob) -> bool:
    """Whether a small round shape lies where vessels are seen end-on and cross."""
    lung = canvas.chest.lung(blob.side)
    height = (blob.y - lung.top) / (lung.bottom - lung.top)
    aside = abs(blob.x - float(lung.medial_at(np.array([blob.y]))[0])) / canvas.chest.thoracic_width
    return 0.3 < height < 0.75 and aside < 0.12 and blob.radius < 0.05 * canvas.chest.thoracic_width


def _rim(soft: Field, blob: Blob, *, place_given: bool) -> float:
    """The rise of the inside over the outside that all but a fifth of the rays reach; told, all but two fifths."""
    radii = np.arange(0, 2.3 * blob.radius, 1.0)
    angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
    rays = _rays(soft, blob, angles, radii)
    border = _border(rays, blob.radius)
    inner = (radii[None] < 0.75 * border[:, None]).astype(float)
    outer = ((radii[None] > 1.2 * border[:, None]) & (radii[None] < 1.6 * border[:, None])).astype(float)
    outer[:, -1] += 1e-6
    rise = (rays * inner).sum(1) / inner.sum(1) - (rays * outer).sum(1) / outer.sum(1)
    if border.std() > (0.45 if place_given else 0.24) * border.mean():
        return 0.0
    return float(np.percentile(rise, 40 if place_given else 20))


def _roundness(small: Field, sigma: float) -> Field:
    """The weaker of the two downward curvatures at a scale, times the scale squared."""
    soft = cv2.GaussianBlur(small, (0, 0), sigma)
    across = cv2.Sobel(soft, cv2.CV_32F, 2, 0, ksize=3) / 4
    down = cv2.Sobel(soft, cv2.CV_32F, 0, 2, ksize=3) / 4
    mixed = cv2.Sobel(soft, cv2.CV_32F, 1, 1, ksize=3) / 4
    half = (across + down) / 2
    weaker = half + np.sqrt(((across - down) / 2) ** 2 + mixed**2)
    round_: Field = np.maximum(-weaker, 0) * sigma**2
    return round_


def _apart(blobs: list[Blob]) -> list[Blob]:
    kept: list[Blob] = []
    for blob in blobs:
        if all(np.hypot(blob.x - k.x, blob.y - k.y) > 0.8 * max(blob.radius, k.radius) for k in kept):
            kept.append(blob)
    return kept


def lift_blob(gray: Field, blob: Blob) -> tuple[Field, Mask] | None:
    """Takes a round opacity away by the smooth profile that it adds, so that ribs and vessels under it stay.

    Its border is the strongest fall of brightness along each ray. The profile is the mean over all rays of the
    brightness against the distance in units of that border: what crosses the lesion on some rays only averages out.

    Returns:
        The new picture and the region changed, or None where no border of its own is found.
    """
    radii = np.arange(0, 2.3 * blob.radius, 1.0)
    angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
    rays = _rays(blur(gray, 1.5), blob, angles, radii)
    border = _border(rays, blob.radius)
    steps = np.linspace(0, 1.9, 77)
    at = steps[None] * border[:, None]
    known = np.stack([np.interp(a, radii, ray) for a, ray in zip(at, rays, strict=True)])
    outer = (steps > 1.25) & (steps < 1.75)
    inner = steps < 0.75
    rise = known[:, inner].mean(axis=1) - known[:, outer].mean(axis=1)
    if float(np.median(rise)) < 2.5 or np.mean(rise > 0) < 0.6:
        return None
    profile = known - np.median(known[:, outer], axis=1, keepdims=True)
    mean = np.sort(profile, axis=0)[_ANGLES // 5 : -_ANGLES // 5].mean(axis=0)
    mean = np.minimum.accumulate(mean - mean[steps > 1.3].mean())
    mean = np.maximum(mean, 0)
    mean[steps > 1.45] = 0
    mean = np.convolve(np.pad(mean, 4, mode="edge"), np.full(9, 1 / 9), mode="valid")
    return _subtract(gray, blob, angles, border, steps, mean)


def _rays(
    soft: Field, blob: Blob, angles: npt.NDArray[np.float64], radii: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    x = blob.x + np.cos(angles)[:, None] * radii[None]
    y = blob.y + np.sin(angles)[:, None] * radii[None]
    looked = cv2.remap(
        soft, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(looked, np.float64)


def _border(rays: npt.NDArray[np.float64], radius: float) -> npt.NDArray[np.float64]:
    """Distance of the strongest fall along each ray, smooth around the ring."""
    window = max(2, int(0.22 * radius))
    fall = np.zeros_like(rays)
    fall[:, window:-window] = rays[:, : -2 * window] - rays[:, 2 * window :]
    distance = np.arange(rays.shape[1])
    cost = -fall + 0.25 * np.abs(fall).max() * ((distance - radius) / radius)[None] ** 2
    cost[:, : max(2, int(0.4 * radius))] = 1e3
    cost[:, int(1.7 * radius) :] = 1e3
    twice = np.concatenate([cost, cost]).astype(np.float32)
    path = cheapest_path(twice, 2, 0.05 * float(np.abs(fall).max()))
    ring = np.concatenate([path[_ANGLES : _ANGLES + _ANGLES // 2], path[_ANGLES // 2 : _ANGLES]])
    spectrum = np.fft.rfft(ring)
    spectrum[7:] = 0
    return np.fft.irfft(spectrum, _ANGLES)


def _subtract(
    gray: Field, blob: Blob, angles: npt.NDArray[np.float64], border: npt.NDArray[np.float64],
    steps: npt.NDArray[np.float64], mean: npt.NDArray[np.float64],
) -> tuple[Field, Mask] | None:  # fmt: skip
    reach = int(np.ceil(1.9 * border.max())) + 2
    top, left = max(0, int(blob.y) - reach), max(0, int(blob.x) - reach)
    part = gray[top : int(blob.y) + reach + 1, left : int(blob.x) + reach + 1]
    rows = np.arange(part.shape[0])[:, None] + top - blob.y
    columns = np.arange(part.shape[1])[None] + left - blob.x
    angle = np.mod(np.arctan2(rows, columns), 2 * np.pi)
    limit = np.interp(angle, np.append(angles, 2 * np.pi), np.append(border, border[0]))
    relative = np.hypot(rows, columns) / limit
    opacity = np.interp(relative, steps, mean).astype(np.float32)
    if opacity.max() < 2.0:
        return None
    drawn = gray.copy()
    drawn[top : top + part.shape[0], left : left + part.shape[1]] = part - opacity
    mask = np.zeros(gray.shape, bool)
    mask[top : top + part.shape[0], left : left + part.shape[1]] = opacity > max(0.5, 0.05 * opacity.max())
    return drawn, dilate(mask, 1)
