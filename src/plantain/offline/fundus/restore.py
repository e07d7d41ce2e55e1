"""Plain retina where something was: a smooth fill from around it, vessels carried across, the image's own grain."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.fundus.anatomy import FundusAnatomy
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.grain import grain_sigma, synthesise_grain

FINER = 1.3
"""New grain is made so much stronger: encoding takes more of it than of grain that was encoded before."""


def grow(mask: Mask, radius: float) -> Mask:
    """Every pixel within a small radius of the mask, in pixels; quicker than an exact distance."""
    size = 2 * max(round(radius), 1) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return np.asarray(cv2.dilate(mask.astype(np.uint8), kernel), dtype=bool)


def vessel_free(pixels: Pixels, width: int = 19) -> Field:
    """float32 (H, W, 3): the surface under vessels narrower than `width` pixels, by closing over what is dark."""
    closed = cv2.morphologyEx(
        cv2.GaussianBlur(pixels, (0, 0), 0.8), cv2.MORPH_CLOSE, np.ones((width, width), np.uint8)
    )
    return np.asarray(cv2.GaussianBlur(closed, (0, 0), width / 6), dtype=np.float32)


def plain_retina(pixels: Pixels, anatomy: FundusAnatomy, hole: Mask) -> Field:
    """float32 (H, W, 3): the image's low frequencies where known, a smooth continuation of them in `hole`.

    Vessels and what lies outside the field are not used, so neither bleeds into the fill.
    """
    known = ~(hole | anatomy.vessels.wide) & (anatomy.aperture.depth > 5)
    calm = cv2.GaussianBlur(pixels, (0, 0), 1.2).astype(np.float32)
    return _push_pull(calm, known)


def close_over(
    pixels: Pixels,
    anatomy: FundusAnatomy,
    spots: Mask,
    rng: np.random.Generator,
    *,
    deep: bool,
    fine: bool = False,
    avoid: Mask | None = None,
) -> Pixels:
    """Replaces `spots` with plain retina.

    Args:
        pixels: uint8 (H, W, 3).
        anatomy: the image's anatomy.
        spots: bool (H, W), the lesions with their borders.
        rng: for the grain.
        deep: the lesions lie under the vessels, which are carried across with the contrast that they show;
            otherwise traced vessels are left as they are.
        fine: carry vessels too faint to be traced as well; between sharp spots that would invent some.
        avoid: bool (H, W), what the fill must not be taken from, such as the disc.
    """
    soft = 2.5
    wide = grow(spots, soft)
    plain = plain_retina(pixels, anatomy, wide if avoid is None else wide | avoid)
    vessels = anatomy.vessels.wide
    if deep:
        calm = cv2.GaussianBlur(pixels, (0, 0), 0.8).astype(np.float32)
        surface = vessel_free(pixels)
        passing = np.clip(calm / np.maximum(surface, 8.0), 0.3, 1.0)
        carried = vessels.astype(np.float32)
        if fine:
            carried = np.maximum(carried, np.clip((anatomy.vessels.ridge - 0.005) / 0.014, 0, 1))
        weight = cv2.GaussianBlur(carried, (0, 0), 1.0)[..., None]
        plain = plain * (1 + weight * (passing - 1))
        alpha = _soften(wide, soft)
    else:
        alpha = _soften(wide, soft) * (~vessels | spots) * ~anatomy.vessels.mask
    plain = plain + _grain(pixels, anatomy, wide, rng)
    mixed = pixels + alpha[..., None] * (plain - pixels)
    changed = grow(wide, soft + 1)[..., None]
    return np.where(changed, np.rint(np.clip(mixed, 0, 255)).astype(np.uint8), pixels)


def _soften(mask: Mask, soft: float) -> Field:
    """1 inside, falling to 0 over about twice `soft` pixels across the border."""
    size = 2 * max(round(soft), 1) + 1
    return np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (size, size), soft / 2), dtype=np.float32)


def _grain(pixels: Pixels, anatomy: FundusAnatomy, target: Mask, rng: np.random.Generator) -> Field:
    """float32 (H, W, 3): new grain in `target`, one texture at each channel's own strength."""
    source = ~grow(target | anatomy.vessels.wide, 3) & (anatomy.aperture.depth > 25)
    levels = np.asarray([grain_sigma(pixels[..., channel], source) for channel in range(3)], np.float32)
    texture = synthesise_grain(pixels[..., 1], target, rng, source=source)
    return np.asarray(texture[..., None] * (FINER * levels / max(float(levels[1]), 0.2)), dtype=np.float32)


def _push_pull(image: Field, known: Mask) -> Field:
    """Fills unknown pixels from ever coarser averages of known ones; known pixels stay."""
    weights = [known.astype(np.float32)]
    sums = [image * weights[0][..., None]]
    while min(weights[-1].shape) > 8:
        size = ((weights[-1].shape[1] + 1) // 2, (weights[-1].shape[0] + 1) // 2)
        weights.append(cv2.resize(cv2.blur(weights[-1], (3, 3)), size, interpolation=cv2.INTER_AREA))
        sums.append(cv2.resize(cv2.blur(sums[-1], (3, 3)), size, interpolation=cv2.INTER_AREA))
    filled = sums[-1] / np.maximum(weights[-1], 1e-6)[..., None]
    for weight, total in zip(weights[-2::-1], sums[-2::-1], strict=True):
        coarse = cv2.resize(filled, weight.shape[::-1], interpolation=cv2.INTER_LINEAR)
        sure = np.clip(weight * 3.0, 0, 1)[..., None]
        here = total / np.maximum(weight, 1e-6)[..., None]
        filled = sure * here + (1 - sure) * coarse
    smooth = cv2.GaussianBlur(filled, (0, 0), 3.0)
    return np.asarray(np.where(known[..., None], image, smooth), dtype=np.float32)
