"""The retinal vessels: a multi-scale map of dark ridges in the green channel, with width and direction."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.fundus.aperture import Aperture
from plantain.pixels.arrays import Field, Mask, Pixels


@dataclass(frozen=True, slots=True, eq=False)
class Vessels:
    """What was found, at full resolution.

    Attributes:
        ridge: float32 (H, W), strength of the dark ridge relative to the background (0 none, 0.1 a clear vessel).
        angle: float32 (H, W), direction along the vessel in radians, image axes (x right, y down).
        scale: float32 (H, W), sigma in pixels of the best scale; the vessel is about 2.5 times as wide.
        mask: bool (H, W), traced vessels: long connected ridges.
        wide: bool (H, W), the mask widened to cover each vessel's whole width and its shoulders.
    """

    ridge: Field
    angle: Field
    scale: Field
    mask: Mask
    wide: Mask


def find_vessels(pixels: Pixels, aperture: Aperture) -> Vessels:
    """Finds the vessels.

    Args:
        pixels: uint8 (H, W, 3), RGB.
        aperture: the lit field; its border is filled over so that it gives no ridge.
    """
    height, width = pixels.shape[:2]
    half = (width // 2, height // 2)
    green = cv2.resize(pixels, half, interpolation=cv2.INTER_AREA)[..., 1].astype(np.float32)
    inside = cv2.resize(aperture.mask.astype(np.float32), half, interpolation=cv2.INTER_AREA)
    core = (inside > 0.99).astype(np.float32)
    relative = _relative_to_background(green, core)
    ridge = np.zeros_like(relative)
    angle = np.zeros_like(relative)
    scale = np.ones_like(relative)
    for sigma in (1.1, 1.7, 2.6, 3.8):
        strength, direction = _dark_ridge(relative, sigma)
        better = strength > ridge
        ridge = np.where(better, strength, ridge)
        angle = np.where(better, direction, angle)
        scale = np.where(better, np.float32(sigma), scale)
    deep = cv2.erode(core, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (11, 11)))
    ridge *= deep
    traced = _trace(ridge, deep > 0)
    wide = _widen(traced, scale)
    size = (width, height)
    return Vessels(
        ridge=cv2.resize(ridge, size, interpolation=cv2.INTER_LINEAR),
        angle=cv2.resize(angle, size, interpolation=cv2.INTER_NEAREST),
        scale=2 * cv2.resize(scale, size, interpolation=cv2.INTER_NEAREST),
        mask=cv2.resize(traced.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(bool),
        wide=cv2.resize(wide.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(bool),
    )


def _relative_to_background(green: Field, core: Field) -> Field:
    """Green over its smooth background; outside the field it continues the border's values."""
    sigma = green.shape[0] / 40
    weight = cv2.GaussianBlur(core, (0, 0), sigma)
    background = cv2.GaussianBlur(green * core, (0, 0), sigma) / np.maximum(weight, 1e-3)
    relative = np.where(core > 0, green / np.maximum(background, 8.0), 1.0)
    # The gap round a bright spot is not a vessel: small bright things are cut off, the bright disc is not.
    cap = 1.05 * np.maximum(cv2.GaussianBlur(relative.astype(np.float32), (0, 0), sigma), 1.0)
    relative = np.minimum(relative, cap)
    return np.asarray(np.clip(relative, 0.3, 1.8), dtype=np.float32)


def _dark_ridge(image: Field, sigma: float) -> tuple[Field, Field]:
    """Scale-normalised curvature across a dark ridge, less that along it, and the direction along it."""
    smooth = cv2.GaussianBlur(image, (0, 0), sigma)
    xx = cv2.Sobel(smooth, cv2.CV_32F, 2, 0, ksize=3) / 4 * sigma**1.5
    yy = cv2.Sobel(smooth, cv2.CV_32F, 0, 2, ksize=3) / 4 * sigma**1.5
    xy = cv2.Sobel(smooth, cv2.CV_32F, 1, 1, ksize=3) / 4 * sigma**1.5
    root = np.sqrt((xx - yy) ** 2 + 4 * xy**2)
    across = 0.5 * (xx + yy + root)
    along = 0.5 * (xx + yy - root)
    strength = np.maximum(across - np.maximum(np.abs(along) * 1.0, 0.0), 0.0)
    direction = 0.5 * np.arctan2(2 * xy, xx - yy) + np.float32(np.pi / 2)
    return strength.astype(np.float32), direction.astype(np.float32)


def _trace(ridge: Field, inside: Mask) -> Mask:
    """Hysteresis: weak ridges that belong to a long component holding strong ones."""
    values = ridge[inside]
    if values.size == 0:
        return np.zeros(ridge.shape, dtype=bool)
    low = max(float(np.quantile(values, 0.88)), 0.008)
    high = max(float(np.quantile(values, 0.955)), 0.016)
    weak = (ridge > low).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(weak, connectivity=8)
    strong = np.bincount(labels.ravel(), weights=(ridge > high).ravel(), minlength=len(stats))
    extent = np.hypot(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    keep = (strong > 8) & (extent > ridge.shape[0] * 0.05)
    keep[0] = False
    return np.asarray(keep[labels], dtype=bool)


def _widen(traced: Mask, scale: Field) -> Mask:
    wide = np.zeros(traced.shape, dtype=np.uint8)
    for sigma in np.unique(scale):
        size = 2 * round(float(sigma) * 1.3) + 1
        level = (traced & (scale == sigma)).astype(np.uint8)
        wide |= cv2.dilate(level, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    return wide.astype(bool)
