"""Takes a pleural effusion away: the lung's level down to the dome that it hid, ribs and grain as they show through."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.base import STEPS, LungBase, expected_base
from plantain.offline.chest.canvas import Canvas, blur, blur_row, coordinates, masked_blur, open_canvas
from plantain.offline.chest.clearing import markings
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode, feather

LEAST_DEPTH = 0.03
"""How deep fluid must stand over the expected dome beside the chest wall, in parts of the lung's height."""
LEAST_DEPTH_SIDE_GIVEN = 0.018
"""The same where the instruction names the side."""

LEAST_WHITE = 0.75
"""How white it must be between lung (0) and soft tissue (1) where no side is named: masses are less."""

LEAST_SURFACE = 0.5
"""Part of the fluid's width over which its surface must be seen against lung."""


def remove(scene: Scene) -> Rendering:
    """Drains each side asked for on which fluid is found.

    Raises:
        CannotShow: no fluid stands in a costophrenic angle, or on one side only where both were named.
    """
    canvas = open_canvas(scene)
    asked = scene.intent.side
    both = asked == "bilateral"
    side_given = asked is not None
    drawn, mask, done = canvas.gray, np.zeros(canvas.gray.shape, bool), []
    for side in ("right", "left"):
        if asked not in (None, side, "bilateral", "midline"):
            continue
        drained = _drain(canvas, drawn, side, alone=both, side_given=side_given)
        if drained is not None:
            drawn, part = drained
            mask |= part
            done.append(side)
    if not done:
        raise CannotShow(
            "no pleural effusion found: no fluid with a surface against lung stands in the costophrenic angles"
        )
    if both and len(done) < 2:
        raise CannotShow(f"fluid found on the {done[0]} only, and both sides were named")
    note = f"fluid drained, {' and '.join(done)}: sharp angle, dome and lung down to it"
    return canvas.finish(drawn, mask, "local", note)


def _drain(
    canvas: Canvas, gray: Field, side: str, *, alone: bool, side_given: bool
) -> tuple[Field, Mask] | None:
    base = expected_base(canvas, side, alone=alone)
    lung, fluid = _lung_level(canvas, gray, side, base), _fluid_level(canvas, gray, side, base)
    if lung is None:
        return None
    # With what lung and fluid look like here, the border between them is seen better.
    base = expected_base(canvas, side, alone=alone, level=0.5 * (lung + fluid))
    fluid = _fluid_level(canvas, gray, side, base)
    span = np.maximum(fluid - lung, 0.25 * canvas.contrast(side))
    smooth = masked_blur(gray, base.inside, 6.0)
    white = np.clip((smooth - lung) / span, 0.0, 1.0)
    part, depth = _standing(white, base)
    if depth < (LEAST_DEPTH_SIDE_GIVEN if side_given else LEAST_DEPTH) * base.height:
        return None
    if _seen_surface(part > 0.5, white, base) < LEAST_SURFACE:
        return None
    if not side_given and float(np.median(white[part > 0.5])) < LEAST_WHITE:
        return None
    # A dome is seen a little blurred: the heart moves it, and it is round along the beam.
    weight = part * feather(base.inside, 6.0)
    inner = (part > 0.8) & base.inside
    # Ribs are seen through fluid at a quarter of their contrast.
    ribs = masked_blur(gray, inner, 3.0) - masked_blur(gray, inner, 18.0)
    ribs = np.clip(2.5 * ribs, -12.0, 12.0) * feather(erode(inner, 7.0), 7.0)
    donor = canvas.chest.lung(side).mask & ~dilate(inner, 8) & dilate(inner, 0.25 * base.height)
    drawn = gray - weight * np.maximum(smooth - lung, 0.0) + weight * ribs
    drawn = drawn + 0.8 * feather(inner, 6.0) * markings(canvas, donor, inner)
    return drawn.astype(np.float32), weight > 0.04


def _lung_level(canvas: Canvas, gray: Field, side: str, base: LungBase) -> Field | None:
    """The level that this lung has above its base, place by place across, carried down."""
    lung = canvas.chest.lung(side)
    rows, _ = coordinates(gray.shape)
    upper = min(float(np.median(lung.diaphragm[:, 1])), float(np.median(base.dome[base.inside])))
    band = lung.mask & (rows < upper - 0.05 * base.height) & (rows > upper - 0.32 * base.height)
    places = np.linspace(0.02, 0.98, 17)
    levels, known = np.zeros(17), np.zeros(17)
    for index, place in enumerate(places):
        here = band & (np.abs(base.share - place) < 0.05)
        if here.sum() > 150:
            levels[index], known[index] = np.percentile(gray[here], 35), 1.0
    if known.sum() < 5:
        return None
    levels = np.interp(places, places[known > 0], levels[known > 0])
    levels = np.convolve(np.pad(levels, 2, mode="edge"), np.full(5, 0.2), mode="valid")
    level: Field = np.interp(base.share, places, levels).astype(np.float32)
    return level


def _fluid_level(canvas: Canvas, gray: Field, side: str, base: LungBase) -> Field:
    """Soft tissue under the diaphragm, column by column, without gas."""
    rows, _ = coordinates(gray.shape)
    under = (rows > base.dome + 10) & (rows < base.dome + 45) & (base.share > 0.01) & (base.share < 0.95)
    under &= canvas.chest.field
    lung = canvas.chest.lung(side).mask
    usual = float(np.median(gray[lung])) + canvas.contrast(side)
    if under.sum() < 200:
        return np.full_like(gray, usual)
    usual = float(np.percentile(gray[under], 60))
    # Next to the wall there is no gas, and less tissue in the beam's way.
    solid = under & ((gray > usual - 30) | (base.share < 0.25))
    count = solid.sum(axis=0, dtype=np.float32)[None]
    total = np.where(solid, gray, 0).sum(axis=0, dtype=np.float32)[None]
    # What a few columns lack is filled by the usual level.
    wide = 0.02 * canvas.chest.thoracic_width
    level = (blur_row(total, wide) + usual) / (blur_row(count, wide) + 1.0)
    return np.broadcast_to(level, gray.shape).astype(np.float32)


def _seen_surface(fluid: Mask, white: Field, base: LungBase) -> float:
    """Share of the fluid's columns over which dark lung is seen; elsewhere heart or opacity hides where it ends."""
    columns = np.flatnonzero(fluid.any(axis=0))
    if len(columns) == 0:
        return 0.0
    above = np.maximum(fluid[:, columns].argmax(axis=0) - round(0.03 * base.height), 0)
    return float((base.inside[above, columns] & (white[above, columns] < 0.4)).mean())


def _standing(share_of_fluid: Field, base: LungBase) -> tuple[Field, float]:
    """What stands on the dome without a break, 0..1, and how deep it is beside the wall, in pixels.

    A rib or vessel above dark lung does not belong to it, nor a mass: from the wall inwards fluid only falls.
    """
    ramp = np.clip((share_of_fluid - 0.15) / 0.35, 0.0, 1.0)
    # Fluid is as white as soft tissue, a mass or an opacity rarely; only at its surface is it less.
    full = np.where(base.inside, np.clip((share_of_fluid - 0.38) / 0.2, 0.0, 1.0), 1.0)
    standing = np.where(base.inside, np.minimum.accumulate(full[::-1], axis=0)[::-1], 0.0)
    rows, columns = np.nonzero(standing > 0.5)
    depth = np.zeros(len(STEPS))
    at = np.clip(np.rint(base.across[rows, columns] * 100), 0, 100).astype(int)
    np.maximum.at(depth, at, base.dome[rows, columns] - rows)
    # Next to the wall its own soft tissue is as white.
    depth = np.array([np.median(depth[max(0, i - 3) : i + 4]) for i in range(len(depth))])
    depth[:5] = depth[5]
    falling = np.minimum.accumulate(depth)
    smooth = cv2.GaussianBlur(falling[:, None], (1, 15), 0, sigmaY=2.5, borderType=cv2.BORDER_REPLICATE)[:, 0]
    surface = base.dome - np.interp(np.clip(base.across, 0.0, 1.0), STEPS, smooth + 0.012 * base.height)
    rows_down, _ = coordinates(full.shape)
    below = np.clip((rows_down - surface) / (0.045 * base.height) + 1.0, 0.0, 1.0)
    below = below * below * (3 - 2 * below)
    some = np.clip(np.interp(np.clip(base.across, 0.0, 1.0), STEPS, smooth) / (0.012 * base.height), 0.0, 1.0)
    # Where the heart's border is hidden it is only guessed: the lung fades out towards it.
    to_heart = (1.0 - base.share) / np.maximum(base.share, 0.05) * base.across * base.width
    medially = np.clip(to_heart / 14.0, 0.0, 1.0)
    weight = ramp * below * some * medially * base.inside
    return blur(weight.astype(np.float32), 1.5), float(np.median(falling[4:12]))
