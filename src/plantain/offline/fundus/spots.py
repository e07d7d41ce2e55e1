"""Small lesions, found: bright and dark spots that are no vessel, no disc and no fovea; and taking them away."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.restore import close_over, grow
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.blend import dilate

FEWEST_BRIGHT, FEWEST_DARK, FEWEST_WAXY = 10, 6, 3
"""Fewer spots than this are within what a normal retina and its reflexes show."""

COMPACT = 0.5
"""Least share of the circle round its longest axis that a spot fills."""

RISE, DIP = 0.035, 0.07
"""How much a bright or dark spot must differ from the ring round it, as a share of the background."""

REACH = 2.2
"""A spot reaches so many sigmas from its peak."""

SCALES = (0.9, 1.4, 2.2, 3.4, 5.0)
"""Sizes searched, as sigmas in pixels at half resolution."""

SEED, NOISE, ROUND = 0.016, 5.0, 0.4
"""A spot's peak curvature: at least so much of the background, and so many times the usual; and how round."""


def remove_drusen(scene: Scene) -> Rendering:
    """Finds bright spots round the fovea and restores even pigment under untouched vessels."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    spots, count = bright_spots(scene.pixels, anatomy, reach=2.0)
    if count < FEWEST_BRIGHT:
        raise CannotShow("no drusen found in the macula")
    mask = grow(spots, 0.018 * anatomy.disc.diameter + 1)
    pixels = close_over(scene.pixels, anatomy, mask, scene.rng, deep=True, fine=True)
    note = f"{count} bright spots taken away round the fovea, vessels carried across"
    return Rendering(pixels, grow(mask, 3), "local", note)


def remove_retinopathy(scene: Scene) -> Rendering:
    """Finds red dots, blots and waxy spots over the posterior pole and restores plain retina."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    dark, reds = dark_spots(scene.pixels, anatomy)
    if reds < FEWEST_DARK:
        raise CannotShow("no red lesions of diabetic retinopathy found")
    bright, waxy = bright_spots(scene.pixels, anatomy, reach=3.0)
    bright &= dilate(dark, 1.5 * anatomy.disc.diameter)
    pixels = scene.pixels
    margin = 0.016 * anatomy.disc.diameter + 1
    dark = grow(dark, margin)
    mask = dark
    if waxy >= FEWEST_WAXY:
        bright = grow(bright, margin)
        pixels = close_over(pixels, anatomy, bright & ~dark, scene.rng, deep=True)
        mask = dark | bright
    pixels = close_over(pixels, anatomy, dark, scene.rng, deep=False)
    note = (
        f"{reds} red and {waxy if waxy >= FEWEST_WAXY else 0} waxy spots taken away, vessels and fovea kept"
    )
    return Rendering(pixels, grow(mask, 3), "local", note)


def bright_spots(pixels: Pixels, anatomy: FundusAnatomy, *, reach: float) -> tuple[Mask, int]:
    """Small bright spots within `reach` disc diameters of the fovea, clear of disc and vessel reflexes.

    Returns:
        bool (H, W), their extent, and how many there are.
    """
    where = _near_fovea(anatomy, reach) & (anatomy.disc.distance(anatomy.aperture.mask.shape) > 1.7)
    large = grow(anatomy.vessels.mask & (anatomy.vessels.scale > 4), 5)
    return _spots(pixels, anatomy, where & ~large & (anatomy.aperture.depth > 24), sign=1)


def dark_spots(pixels: Pixels, anatomy: FundusAnatomy) -> tuple[Mask, int]:
    """Small dark compact spots that are no traced vessel and not the fovea; as `bright_spots`."""
    where = _near_fovea(anatomy, 3.0) & ~_near_fovea(anatomy, 0.2)
    where &= anatomy.disc.distance(anatomy.aperture.mask.shape) > 1.5
    where &= ~grow(long_vessels(anatomy), 2) & (anatomy.aperture.depth > 24)
    return _spots(pixels, anatomy, where, sign=-1)


def _spots(pixels: Pixels, anatomy: FundusAnatomy, where: Mask, sign: int) -> tuple[Mask, int]:
    half = (pixels.shape[1] // 2, pixels.shape[0] // 2)
    relative = relative_green(pixels, anatomy, half)
    inside = cv2.resize(where.astype(np.uint8), half, interpolation=cv2.INTER_NEAREST).astype(bool)
    if not inside.any():
        return np.zeros(where.shape, dtype=bool), 0
    calm = cv2.GaussianBlur(sign * relative, (0, 0), 0.8)
    spread = 1.4826 * float(np.median(np.abs(calm[inside])))
    body = inside & (calm > max(0.018, 1.3 * spread))
    found = np.zeros(inside.shape, dtype=np.uint8)
    for sigma in SCALES:
        strength = _blobness(sign * relative, sigma)
        seeds = inside & body & (strength > SEED) & (strength > NOISE * _usual(strength, inside))
        size = 2 * round(REACH * sigma) + 1
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
        found |= cv2.dilate(seeds.astype(np.uint8), disc)
    found &= body.astype(np.uint8)
    most = RISE if sign > 0 else DIP
    # A calm picture shows fainter spots than one full of texture.
    need = float(np.clip(5.5 * spread, 0.6 * most, most))
    kept, count = _standing_out(found, calm, need, ragged=0.15 if sign > 0 else 0.5 * COMPACT)
    return cv2.resize(kept, where.shape[::-1], interpolation=cv2.INTER_NEAREST).astype(bool), count


def _standing_out(
    found: npt.NDArray[np.uint8], calm: Field, need: float, *, ragged: float
) -> tuple[npt.NDArray[np.uint8], int]:
    """Keeps spots that differ from a ring round them by `need` on average, and that run on nowhere as a vessel does;
    plain ones may fill as little as `ragged` of their circle."""
    total, labels, stats, _ = cv2.connectedComponentsWithStats(found, connectivity=8)
    kept = np.zeros_like(found)
    count = 0
    near = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    far = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (11, 11))
    for index in range(1, total):
        x, y, wide, high, area = (int(value) for value in stats[index])
        if area < 6:
            continue
        window = np.s_[max(y - 7, 0) : y + high + 7, max(x - 7, 0) : x + wide + 7]
        spot = labels[window] == index
        shape = spot.astype(np.uint8)
        ring = (cv2.dilate(shape, far) > cv2.dilate(shape, near)) & (found[window] == 0)
        if ring.sum() < 12:
            continue
        level, around = float(calm[window][spot].mean()), calm[window][ring]
        rise, fill = level - float(around.mean()), _compactness(spot)
        ends = float(np.quantile(around, 0.92)) / level
        count += rise >= need and ends < 0.5 and fill > COMPACT
        # Fainter, merged or ragged ones are no evidence by themselves, but go with the rest.
        alike = rise >= 0.65 * need and ends < 0.62 and fill > 0.8 * COMPACT
        if alike or (rise >= 2.0 * need and fill > ragged):
            kept[window] |= shape
    return kept, count


def _compactness(spot: Mask) -> float:
    """A spot's area as a share of the circle round its longest axis."""
    ys, xs = np.nonzero(spot)
    longest = 4 * float(np.sqrt(np.linalg.eigvalsh(np.cov(xs, ys) + np.eye(2) / 12)[-1]))
    return len(xs) / (np.pi / 4 * longest**2)


def _usual(strength: Field, inside: Mask) -> Field:
    """What texture alone does hereabouts; capped, so that the lesions themselves hardly raise it."""
    cap = 4 * float(np.median(strength[inside])) + 1e-4
    weight = inside.astype(np.float32)
    size = (strength.shape[1] // 8, strength.shape[0] // 8)
    total = cv2.resize(np.minimum(strength, cap) * weight, size, interpolation=cv2.INTER_AREA)
    below = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    usual = cv2.GaussianBlur(total, (0, 0), 3.0) / (cv2.GaussianBlur(below, (0, 0), 3.0) + 1e-3) + 1e-4
    return np.asarray(cv2.resize(usual, strength.shape[::-1]), dtype=np.float32)


def relative_green(pixels: Pixels, anatomy: FundusAnatomy, half: tuple[int, int]) -> Field:
    """Green over a local median background, less one, at half resolution; long vessels count as background."""
    green = cv2.resize(pixels, half, interpolation=cv2.INTER_AREA)[..., 1].astype(np.float32)
    vessels = cv2.resize(long_vessels(anatomy).astype(np.uint8), half, interpolation=cv2.INTER_NEAREST) > 0
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (15, 15))
    plain = np.where(vessels, cv2.morphologyEx(green, cv2.MORPH_CLOSE, kernel), green)
    quarter = cv2.resize(plain, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    window = 2 * (max(round(0.5 * anatomy.disc.diameter / 4), 3) // 2) + 1
    base = cv2.medianBlur(np.clip(quarter, 0, 255).astype(np.uint8), window).astype(np.float32)
    base = cv2.resize(cv2.GaussianBlur(base, (0, 0), 3.0), half, interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.clip(plain / np.maximum(base, 10.0), 0.3, 2.0) - 1.0, dtype=np.float32)


def _blobness(image: Field, sigma: float) -> Field:
    """Scale-normalised curvature of a bright spot in the direction in which it is least: a streak has none."""
    smooth = cv2.GaussianBlur(image, (0, 0), sigma)
    scale = np.float32(sigma * sigma / 4)
    xx = cv2.Sobel(smooth, cv2.CV_32F, 2, 0, ksize=3) * scale
    yy = cv2.Sobel(smooth, cv2.CV_32F, 0, 2, ksize=3) * scale
    xy = cv2.Sobel(smooth, cv2.CV_32F, 1, 1, ksize=3) * scale
    root = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
    flattest, steepest = -0.5 * (xx + yy + root), -0.5 * (xx + yy - root)
    return np.asarray(np.where(flattest > ROUND * steepest, np.maximum(flattest, 0.0), 0.0), dtype=np.float32)


def _near_fovea(anatomy: FundusAnatomy, reach: float) -> Mask:
    height, width = anatomy.aperture.mask.shape
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
    away = np.hypot(xs - anatomy.fovea[0], ys - anatomy.fovea[1])
    return np.asarray(away < reach * anatomy.disc.diameter, dtype=bool)


def long_vessels(anatomy: FundusAnatomy) -> Mask:
    """Traced vessels that are long for a lesion; a blot that was traced as a ridge is short."""
    mask = anatomy.vessels.mask.astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    extent = np.hypot(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    long = extent > 0.55 * anatomy.disc.diameter
    long[0] = False
    return np.asarray(long[labels], dtype=bool)
