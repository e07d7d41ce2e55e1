"""Cataract: the media, not the retina. Haze over the whole field, and taking it away again."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.fundus.anatomy import Anatomy, read_anatomy
from plantain.models.offline.fundus.aperture import Aperture, find_aperture
from plantain.models.offline.fundus.levels import choose_levels
from plantain.models.offline.rendering import CannotShow, Pixels, Rendering, Scene
from plantain.pixels.grain import grain_field

Field = npt.NDArray[np.float32]

VEIL = (0.22, 0.42, 0.62)
BLUR_SHARE = (0.0016, 0.0032, 0.0055)
"""Blur sigma as a share of the field's diameter."""

TINT = (1.02, 0.96, 0.80)
"""The veil's colour relative to the field's mean: yellow-brown, as an ageing lens filters."""

CLEAR_DIP = 0.15
"""How much darker than the retina beside it a large vessel is, in green, where the media are clear enough."""


def add_cataract(scene: Scene) -> Rendering:
    """Lowers contrast and sharpness over the whole field; the aperture's border stays sharp, its outside untouched."""
    aperture = find_aperture(scene.pixels)
    levels = choose_levels(scene.intent, scene.rng)
    inside = aperture.mask.astype(np.float32)
    original = scene.pixels.astype(np.float32)
    grain = np.stack([grain_field(original[..., c]) for c in range(3)], axis=-1)
    sigma = BLUR_SHARE[levels.conspicuity] * 2 * aperture.radius
    seen = _blur_inside(original, inside, sigma)
    mean = original[aperture.mask].mean(axis=0)
    local = _blur_inside(original, inside, 0.10 * aperture.radius)
    veil = (0.6 * mean + 0.4 * local) * np.asarray(TINT, np.float32)
    strength = VEIL[levels.conspicuity] * _unevenness(scene, aperture)
    hazy = seen * (1 - strength[..., None]) + veil * strength[..., None]
    # The sensor's noise comes after the lens: it is not blurred with the retina.
    flat = cv2.GaussianBlur(np.abs(original - seen).max(axis=2), (0, 0), 4.0)
    quiet = np.exp(-np.square(flat / 6.0))[..., None]
    hazy += grain * quiet * 0.9
    out = np.rint(np.clip(hazy, 0, 255)).astype(np.uint8)
    pixels = np.where(aperture.mask[..., None], out, scene.pixels)
    note = f"media haze over the whole field, {levels.words()}, border of the field kept sharp"
    return Rendering(pixels, aperture.mask.copy(), "diffuse", note)


def remove_cataract(scene: Scene) -> Rendering:
    """Gives back contrast, colour and sharpness to what can already be traced; invents no vessel.

    Raises:
        CannotShow: the vessels are as dark as in clear media, so there is no haze to take away.
    """
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    dip = vessel_dip(scene.pixels, anatomy)
    if dip >= CLEAR_DIP:
        raise CannotShow("no media haze found: the large vessels stand out as in clear media")
    aperture = anatomy.aperture
    inside = aperture.mask.astype(np.float32)
    original = scene.pixels.astype(np.float32)
    gain = float(np.clip(0.24 / max(dip, 0.06), 1.15, 2.2))
    wide = _blur_inside(original, inside, 0.05 * aperture.radius)
    calm = _blur_inside(original, inside, 1.3)
    structure = calm - wide
    grain = original - calm
    mean = original[aperture.mask].mean(axis=0)
    shading = wide + 0.25 * (gain - 1) * (wide - mean)
    colour = shading * _without_tint(mean)
    restored = colour + gain * structure + 0.5 * gain * (calm - _blur_inside(calm, inside, 2.5)) + grain
    out = np.rint(np.clip(restored, 0, 255)).astype(np.uint8)
    pixels = np.where(aperture.mask[..., None], out, scene.pixels)
    note = f"contrast of what is traceable raised {gain:.2f} times, tint taken back; nothing invented"
    return Rendering(pixels, aperture.mask.copy(), "diffuse", note)


def vessel_dip(pixels: Pixels, anatomy: Anatomy) -> float:
    """How much darker large vessels are than the retina beside them, in green, as a share; 0 when none is traced."""
    large = anatomy.vessels.mask & (anatomy.vessels.scale > 3) & (anatomy.aperture.depth > 30)
    if int(large.sum()) < 300:
        return 0.0
    ratio = pixels[large][:, 1] / np.maximum(anatomy.flat[large][:, 1], 8.0)
    return float(1.0 - np.quantile(ratio, 0.3))


def _blur_inside(image: Field, inside: Field, sigma: float) -> Field:
    """Gaussian blur that takes nothing from outside the field."""
    weight = np.maximum(cv2.GaussianBlur(inside, (0, 0), sigma), 1e-3)[..., None]
    return np.asarray(cv2.GaussianBlur(image * inside[..., None], (0, 0), sigma) / weight, dtype=np.float32)


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
