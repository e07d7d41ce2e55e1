"""Painting on a retina: irregular spots, deposits under the vessels, blood, and the mask that goes with them.

All paint is added to the image as a smooth change of its low frequencies, so the camera's grain stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy
from plantain.pixels.arrays import Field, Mask, Pixels

VISIBLE = 0.05
"""Paint below this opacity is not seen; the mask begins here."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One lesion's shape. `edge` is the width in pixels over which it fades, `ragged` its irregularity in [0, 1]."""

    x: float
    y: float
    radius: float
    edge: float
    ragged: float = 0.15
    stretch: float = 1.0
    angle: float = 0.0
    opacity: float = 1.0


def stamp(layer: Field, spot: Spot, rng: np.random.Generator) -> None:
    """Paints a spot into an opacity layer in [0, 1], in place; overlapping spots merge and never exceed 1."""
    reach = int(np.ceil(spot.radius * spot.stretch * (1 + spot.ragged) + 3 * spot.edge)) + 1
    left, top = int(spot.x) - reach, int(spot.y) - reach
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + 2 * reach + 1, layer.shape[1]), min(top + 2 * reach + 1, layer.shape[0])
    phases = rng.uniform(0, 2 * np.pi, 4)
    weights = rng.uniform(0.3, 1.0, 4) / (1.0, 1.2, 1.7, 2.3)
    if x0 >= x1 or y0 >= y1:
        return
    ys, xs = np.mgrid[y0:y1, x0:x1].astype(np.float32)
    xs -= np.float32(spot.x)
    ys -= np.float32(spot.y)
    cos, sin = np.cos(spot.angle), np.sin(spot.angle)
    along = (xs * cos + ys * sin) / spot.stretch
    across = -xs * sin + ys * cos
    theta = np.arctan2(across, along)
    wave = np.zeros_like(theta)
    for index, (phase, weight) in enumerate(zip(phases, weights, strict=True)):
        wave += np.float32(weight) * np.sin((index + 2) * theta + np.float32(phase))
    outline = spot.radius * (1 + spot.ragged * 0.5 * wave)
    inside = (outline - np.hypot(along, across)) / max(spot.edge, 0.35)
    ramp = np.clip(0.5 + inside / 2, 0, 1)
    painted = (ramp * ramp * (3 - 2 * ramp) * spot.opacity).astype(np.float32)
    window = layer[y0:y1, x0:x1]
    window[...] = 1 - (1 - window) * (1 - painted)


def mottle(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Field:
    """Smooth random field, mean 0, standard deviation 1; coarse noise enlarged, so that it costs little."""
    step = max(int(sigma), 1)
    coarse = rng.standard_normal((shape[0] // step + 3, shape[1] // step + 3)).astype(np.float32)
    field = cv2.resize(coarse, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    return np.asarray(field / max(float(field.std()), 1e-6), dtype=np.float32)


def deposit(
    pixels: Pixels,
    anatomy: FundusAnatomy,
    layer: Field,
    *,
    tone: tuple[float, float, float],
    contrast: float,
    under_vessels: bool,
) -> Field:
    """The change, in grey levels, that a yellow-white deposit makes.

    Args:
        pixels: uint8 (H, W, 3).
        anatomy: its anatomy; the deposit is lit as the retina beside it is.
        layer: opacity in [0, 1].
        tone: colour of the full deposit, relative to the local red.
        contrast: rise in green of the full deposit over the local background, as a share of it.
        under_vessels: vessels keep their contrast against it.
    """
    flat = anatomy.flat
    value = np.minimum(flat[..., :1] * 1.10 + 8.0, 250.0)
    target = value * np.asarray(tone, dtype=np.float32)
    room = np.maximum(target[..., 1:2] - flat[..., 1:2], 4.0)
    share = np.clip(contrast * flat[..., 1:2] / room, 0.0, 0.92)
    change = np.maximum(target - flat, 0.0) * share * layer[..., None]
    if under_vessels:
        smooth = cv2.GaussianBlur(pixels, (0, 0), 0.7).astype(np.float32)
        change *= np.clip(smooth / np.maximum(flat, 8.0), 0.3, 1.08)
    return np.asarray(change, dtype=np.float32)


def blood_tone(pixels: Pixels, anatomy: FundusAnatomy) -> Field:
    """How blood darkens this image: log transmission per channel of its own large vessels, green at most -0.24."""
    wide = anatomy.vessels.mask & (anatomy.vessels.scale > 3) & (anatomy.aperture.depth > 30)
    red, blue = 0.35, 0.6
    green = -0.3
    if int(wide.sum()) > 500:
        ratio = pixels[wide].astype(np.float32) / np.maximum(anatomy.flat[wide], 8.0)
        tone = np.log(np.clip(np.quantile(ratio, 0.3, axis=0), 0.2, 0.98))
        green = float(np.clip(tone[1], -0.7, -0.24))
        red = float(np.clip(tone[0] / green, 0.18, 0.5))
        blue = float(np.clip(tone[2] / green, 0.3, 0.9))
    return np.asarray([green * red, green, green * blue], dtype=np.float32)


def blood(pixels: Pixels, layer: Field, tone: Field, strength: float) -> Field:
    """The change, in grey levels, that blood makes: the light under it is filtered, `strength` times the tone."""
    smooth = cv2.GaussianBlur(pixels, (0, 0), 1.2).astype(np.float32)
    return np.asarray(smooth * (np.exp(layer[..., None] * strength * tone) - 1.0), dtype=np.float32)


def finish(pixels: Pixels, change: Field, layer: Field) -> tuple[Pixels, Mask]:
    """Adds a change to an image and returns it with the mask of what is visible of `layer`."""
    mask = layer > VISIBLE
    near = cv2.dilate(mask.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (25, 25))) > 0
    out = np.rint(np.clip(pixels + change, 0, 255)).astype(np.uint8)
    return np.where(near[..., None], out, pixels), mask
