"""Taking small lesions away: finding bright and dark spots that are no vessel, disc or fovea, and closing over them."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.fundus.anatomy import Anatomy, read_anatomy
from plantain.models.offline.rendering import CannotShow, Mask, Pixels, Rendering, Scene
from plantain.pixels.blend import dilate, feather
from plantain.pixels.grain import inpaint_smooth, synthesise_grain

Field = npt.NDArray[np.float32]

FEWEST = 4
"""Fewer spots than this are within what a normal retina and its reflexes show."""

DARK_DIP = 0.06
BRIGHT_RISE = 0.05
SEED_SHARE = 0.35


def remove_drusen(scene: Scene) -> Rendering:
    """Finds bright spots round the fovea and restores even pigment under untouched vessels."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    height, width = scene.pixels.shape[:2]
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
    near = np.hypot(xs - anatomy.fovea[0], ys - anatomy.fovea[1]) < 2.4 * anatomy.disc.diameter
    spots, count = bright_spots(scene.pixels, anatomy)
    spots &= near
    count = _count(spots)
    if count < FEWEST:
        raise CannotShow("no drusen found in the macula")
    return _closed(
        scene, anatomy, spots, f"{count} bright spots taken away round the fovea, vessels untouched"
    )


def remove_retinopathy(scene: Scene) -> Rendering:
    """Finds red dots, blots and waxy spots over the posterior pole and restores plain retina."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    dark, reds = dark_spots(scene.pixels, anatomy)
    bright, waxy = bright_spots(scene.pixels, anatomy)
    if reds < FEWEST:
        raise CannotShow("no red lesions of diabetic retinopathy found")
    spots = dark | bright if waxy >= FEWEST else dark
    note = (
        f"{reds} red and {waxy if waxy >= FEWEST else 0} bright spots taken away, vessels and fovea untouched"
    )
    return _closed(scene, anatomy, spots, note)


def bright_spots(pixels: Pixels, anatomy: Anatomy) -> tuple[Mask, int]:
    """bool (H, W) of small bright spots outside disc and large vessels, and how many there are."""
    rise = _relative(pixels, anatomy, 0.30)
    where = _allowed(anatomy, 1.45) & ~_beside_vessels(anatomy)
    return _grown(rise, where, BRIGHT_RISE, anatomy, largest=0.5)


def dark_spots(pixels: Pixels, anatomy: Anatomy) -> tuple[Mask, int]:
    """bool (H, W) of small dark compact spots that are no vessel and not the fovea, and how many there are."""
    dip = -_relative(pixels, anatomy, 0.22)
    ys, xs = np.mgrid[0 : dip.shape[0], 0 : dip.shape[1]].astype(np.float32)
    fovea = np.hypot(xs - anatomy.fovea[0], ys - anatomy.fovea[1]) < 0.22 * anatomy.disc.diameter
    where = _allowed(anatomy, 1.5) & ~_long_vessels(anatomy) & ~fovea
    return _grown(dip, where, DARK_DIP, anatomy, largest=0.35)


def _grown(height: Field, where: Mask, floor: float, anatomy: Anatomy, *, largest: float) -> tuple[Mask, int]:
    """Spots grown from round peaks: a ridge bends one way only, a spot bends down on all sides (least curvature)."""
    floor = max(floor, 4.0 * _spread(height[where]))
    least = np.zeros_like(height)
    for share in (0.016, 0.028, 0.05, 0.085):
        sigma = max(share * anatomy.disc.diameter, 1.5)
        smooth = cv2.GaussianBlur(height, (0, 0), sigma)
        xx = cv2.Sobel(smooth, cv2.CV_32F, 2, 0, ksize=3) / 4
        yy = cv2.Sobel(smooth, cv2.CV_32F, 0, 2, ksize=3) / 4
        xy = cv2.Sobel(smooth, cv2.CV_32F, 1, 1, ksize=3) / 4
        weaker = -0.5 * (xx + yy + np.sqrt((xx - yy) ** 2 + 4 * xy**2))
        least = np.maximum(least, weaker * sigma**2)
    seeds = where & (least > max(SEED_SHARE * floor, 8.0 * _spread(least[where])))
    grown = where & (height > max(0.5 * floor, 2.0 * _spread(height[where])))
    grown = cv2.morphologyEx(grown.astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)).astype(bool)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(grown.astype(np.uint8), connectivity=4)
    seeded = np.bincount(labels.ravel(), weights=seeds.ravel(), minlength=len(stats)) > 0
    peak = np.zeros(len(stats), np.float32)
    np.maximum.at(peak, labels.ravel(), np.where(grown, height, 0).ravel())
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]).astype(np.float64)
    fill = stats[:, cv2.CC_STAT_AREA] / (np.pi / 4 * np.maximum(extent, 1) ** 2)
    keep = seeded & (peak > floor) & (extent <= largest * anatomy.disc.diameter)
    keep &= fill > 0.35 * np.clip(extent / 10, 0, 1)
    keep[0] = False
    return np.asarray(keep[labels], dtype=bool), int(keep.sum())


def _relative(pixels: Pixels, anatomy: Anatomy, window: float) -> Field:
    """Green against its local median over a window of so many disc diameters, as a share; long vessels count as
    background, so that what lies between them is not bright by comparison.
    """
    green = _luminance(pixels)
    calm = cv2.GaussianBlur(green, (0, 0), 1.0)
    plain = np.where(_long_vessels(anatomy), anatomy.flat[..., 1], calm)
    small = cv2.resize(plain, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    levels = np.clip(small, 0, 255).astype(np.uint8)
    base = cv2.medianBlur(levels, _odd(window * anatomy.disc.diameter / 4)).astype(np.float32)
    base = cv2.GaussianBlur(base, (0, 0), 2.0)
    base = cv2.resize(base, green.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return np.asarray(calm / np.maximum(base, 12.0) - 1.0, dtype=np.float32)


def _spread(values: npt.NDArray[np.float32]) -> float:
    """Robust standard deviation."""
    middle = float(np.median(values))
    return 1.4826 * float(np.median(np.abs(values - middle)))


def _luminance(pixels: Pixels) -> Field:
    return np.asarray(pixels[..., 1], dtype=np.float32)


def _allowed(anatomy: Anatomy, disc_margin: float) -> Mask:
    disc = anatomy.disc.distance(anatomy.aperture.mask.shape)
    return np.asarray((disc > disc_margin) & (anatomy.aperture.depth > 22), dtype=bool)


def _beside_vessels(anatomy: Anatomy) -> Mask:
    """Large vessels with their light reflex; small ones cross drusen and do not hide them."""
    large = anatomy.vessels.mask & (anatomy.vessels.scale > 4)
    return dilate(large, 6)


def _long_vessels(anatomy: Anatomy) -> Mask:
    """Traced vessels that are long for their width; a blot that was traced as a ridge is short."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        anatomy.vessels.mask.astype(np.uint8), connectivity=8
    )
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    long = extent > 0.55 * anatomy.disc.diameter
    long[0] = False
    assert count == len(long)
    return dilate(np.asarray(long[labels], dtype=bool), 2)


def _count(mask: Mask) -> int:
    return int(cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)[0]) - 1


def _closed(scene: Scene, anatomy: Anatomy, spots: Mask, note: str) -> Rendering:
    """Closes over the spots: smooth background from around them, the image's own grain, vessels left as they are."""
    reach = 0.035 * anatomy.disc.diameter + 3.0
    mask = dilate(spots, reach) & (anatomy.aperture.depth > 8)
    vessels = dilate(anatomy.vessels.mask & ~spots, 1.5)
    hole = mask | (vessels & dilate(mask, 12))
    source = ~dilate(hole, 4) & (anatomy.aperture.depth > 20)
    out = scene.pixels.astype(np.float32)
    green = _luminance(scene.pixels)
    grain = synthesise_grain(green, mask, scene.rng, source=source)
    alpha = feather(mask, 2.5) * ~(anatomy.vessels.mask & ~spots)
    for channel in range(3):
        plane = inpaint_smooth(out[..., channel], hole) + grain * (0.6 if channel == 0 else 1.0)
        out[..., channel] += alpha * (plane - out[..., channel])
    pixels = np.rint(np.clip(out, 0, 255)).astype(np.uint8)
    changed = dilate(mask, 4)
    return Rendering(np.where(changed[..., None], pixels, scene.pixels), changed, "local", note)


def _odd(value: float) -> int:
    return 2 * (max(round(value), 3) // 2) + 1
