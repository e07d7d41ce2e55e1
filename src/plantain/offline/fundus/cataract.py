"""Cataract: the media, not the retina. Haze over the whole field, and taking it away again."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.fundus.aperture import Aperture, find_aperture
from plantain.offline.fundus.levels import choose_levels
from plantain.offline.fundus.vessels import find_vessels
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Pixels

VEIL = (0.22, 0.42, 0.62)
BLUR_SHARE = (0.0016, 0.0032, 0.0055)
"""Blur sigma as a share of the field's diameter."""

LENS = (0.85, 0.62, 0.36)
"""Colour of the light that an ageing lens scatters, relative to the field's mean red: yellow-brown."""

CLEAR_DIP, CLEAR_FINE = 0.16, 0.034
"""Large vessels darker than this, or fine detail stronger, are what clear media show (shares of the background)."""

OPAQUE_DIP = 0.06
"""Vessels fainter than this leave no view that haze could still take away."""


def add_cataract(scene: Scene) -> Rendering:
    """Lowers contrast and sharpness over the whole field; the aperture's border stays sharp, its outside untouched.

    Raises:
        CannotShow: no round lit field, or a field that is already too hazy.
    """
    aperture = find_aperture(scene.pixels)
    dip, _ = clarity(scene.pixels, aperture)
    if dip < OPAQUE_DIP:
        raise CannotShow("the field is already too hazy to show a cataract")
    levels = choose_levels(scene.intent, scene.rng)
    original = scene.pixels.astype(np.float32)
    core = (aperture.depth > 5).astype(np.float32)
    seen = _blur_inside(original, core, BLUR_SHARE[levels.conspicuity] * 2 * aperture.radius)
    mean = original[aperture.mask].mean(axis=0)
    local = _blur_inside(original, core, 0.10 * aperture.radius)
    scattered = np.asarray(LENS, np.float32) * mean[0]
    veil = 0.45 * mean + 0.33 * local + 0.22 * scattered
    strength = VEIL[levels.conspicuity] * _unevenness(scene, aperture)[..., None]
    hazy = seen + strength * (veil - seen)
    # The sensor's noise comes after the lens: it is not blurred with the retina.
    fine = original - cv2.GaussianBlur(original, (0, 0), 1.5)
    detail = cv2.GaussianBlur(np.abs(original[..., 1] - seen[..., 1]), (0, 0), 4.0)
    hazy += fine * np.exp(-np.square(detail / 6.0))[..., None]
    hazy = _keep_border(original, hazy, aperture, core)
    out = np.rint(np.clip(hazy, 0, 255)).astype(np.uint8)
    pixels = np.where(aperture.mask[..., None], out, scene.pixels)
    note = f"media haze over the whole field, {levels.words()}, border of the field kept sharp"
    return Rendering(pixels, aperture.mask.copy(), "diffuse", note)


def remove_cataract(scene: Scene) -> Rendering:
    """Gives back contrast, colour and sharpness to what can already be traced; invents no vessel.

    Raises:
        CannotShow: no round lit field, or no haze in it.
    """
    aperture = find_aperture(scene.pixels)
    dip, fine = clarity(scene.pixels, aperture)
    if dip >= CLEAR_DIP or fine >= CLEAR_FINE:
        raise CannotShow("no media haze found: vessels and fine detail stand out as in clear media")
    original = scene.pixels.astype(np.float32)
    core = (aperture.depth > 3).astype(np.float32)
    gain = float(np.clip(0.18 / max(dip, 0.05), 1.25, 2.3))
    wide = _blur_inside(original, core, 0.06 * aperture.radius)
    calm = cv2.GaussianBlur(original, (0, 0), 1.3)
    crisp = calm - _blur_inside(calm, core, 3.0)
    mean = original[aperture.mask].mean(axis=0)
    untinted = (wide + 0.3 * (gain - 1) * (wide - mean)) * _without_tint(mean)
    # The soft limit keeps what is already strong, such as the disc, from overshooting.
    structure = calm - wide
    structure = gain * structure / (1 + np.abs(structure) / 120)
    restored = untinted + structure + 0.6 * gain * crisp + (original - calm)
    restored = _keep_border(original, restored, aperture, core)
    out = np.rint(np.clip(restored, 0, 255)).astype(np.uint8)
    pixels = np.where(aperture.mask[..., None], out, scene.pixels)
    note = f"contrast of what is traceable raised {gain:.2f} times, tint taken back; nothing invented"
    return Rendering(pixels, aperture.mask.copy(), "diffuse", note)


def clarity(pixels: Pixels, aperture: Aperture) -> tuple[float, float]:
    """How clear the view is, in green: how much darker large vessels are than the retina beside them, and how
    strong the finest dark detail is, both as shares of the background. The first is 0 when no vessel is traced.
    """
    vessels = find_vessels(pixels, aperture)
    green = pixels[..., 1:2].astype(np.float32)
    base = np.maximum(_blur_inside(green, (aperture.depth > 3).astype(np.float32), 14.0)[..., 0], 8.0)
    inside = aperture.depth > 30
    plane = green[..., 0]
    detail = (cv2.GaussianBlur(plane, (0, 0), 3.0) - cv2.GaussianBlur(plane, (0, 0), 1.0)) / base
    fine = float(np.quantile(detail[inside][::7], 0.98))
    large = vessels.mask & (vessels.scale > 3) & inside
    if int(large.sum()) < 300:
        return 0.0, fine
    return float(1.0 - np.quantile(plane[large] / base[large], 0.3)), fine


def _keep_border(original: Field, changed: Field, aperture: Aperture, core: Field) -> Field:
    """Gives the outermost pixels of the field the fall-off that they had, so that its border is as sharp as before."""
    step = _blur_inside(original, core, 4.0)
    fall = np.clip(original / np.maximum(step, 6.0), 0, 1).min(axis=2, keepdims=True)
    rim = np.clip((6.0 - aperture.depth) / 3.0, 0, 1)[..., None]
    return np.asarray(changed * (1 + rim * (fall - 1)), dtype=np.float32)


def _blur_inside(image: Field, inside: Field, sigma: float) -> Field:
    """Gaussian blur that takes nothing from where `inside` is 0; wide ones are computed on a smaller grid."""
    size = image.shape[1::-1]
    step = max(int(sigma / 3), 1)
    weighted = image * inside[..., None]
    if step > 1:
        small = (size[0] // step, size[1] // step)
        weighted = cv2.resize(weighted, small, interpolation=cv2.INTER_AREA).reshape(*small[::-1], -1)
        inside = cv2.resize(inside, small, interpolation=cv2.INTER_AREA)
    below = np.maximum(cv2.GaussianBlur(inside, (0, 0), sigma / step), 1e-4)[..., None]
    above = cv2.GaussianBlur(weighted, (0, 0), sigma / step).reshape(weighted.shape)
    blurred = above / below
    if step > 1:
        blurred = cv2.resize(blurred, size, interpolation=cv2.INTER_LINEAR).reshape(image.shape)
    return np.asarray(blurred, dtype=np.float32)


def _unevenness(scene: Scene, aperture: Aperture) -> Field:
    """A slow variation of the veil round 1, sometimes denser towards the middle."""
    height, width = scene.pixels.shape[:2]
    coarse = scene.rng.normal(0, 0.08, (5, 5)).astype(np.float32)
    field = 1 + cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    if scene.rng.random() < 0.5:
        ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
        away = np.hypot(xs - aperture.x, ys - aperture.y) / aperture.radius
        field += 0.18 * np.exp(-np.square(away / 0.55)) - 0.06
    return np.asarray(np.clip(field, 0.6, 1.35), dtype=np.float32)


def _without_tint(mean: Field) -> Field:
    """Per-channel factors that take a little yellow back, never more than a tenth."""
    green, blue = float(mean[1]), float(mean[2])
    lift = float(np.clip(1 + 0.10 * (1 - blue / max(green, 1.0)), 1.0, 1.10))
    return np.asarray((1.0, 0.985, lift), dtype=np.float32)
