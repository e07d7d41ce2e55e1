"""Remove a finding: fill it by the levels of the other side or by the texture around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from plantain.offline.anatomy.maps import (
    SIDE,
    AnatomyMap,
    CannotShow,
    blur,
    enlarged,
    grow,
    reduced,
    shrink,
)
from plantain.offline.drawing.adding import Rendering, completed, finished, map_of, strokes_on
from plantain.offline.drawing.primitives import PRIMITIVES
from plantain.offline.drawing.sketch import Sketch, ramp
from plantain.offline.language import Intent
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.records import Finding, SourceImage, Stroke
from plantain.sources.brain_slice import UNKNOWN

MIDLINE = 0.04
"""Distance from the midline, in the map's yardstick, within which no tissue is taken from the other side."""
LEAST_EXCESS = 9.0
"""Grey levels by which a finding must differ from the other side to be found."""
ENHANCING = 1.4
"""Robust standard deviations above the brain's median from which a place may hold contrast medium: white matter of T1
is 1.3 above it at most, enhancing tumours are 1.5 to 8."""
WIDE_HEART = 0.42
"""Width of the heart over that of the thorax from which it is narrowed."""
CLEAR = 0.085
"""Contrast of fine structure over the mean level from which a fundus is not hazy."""


def remove(
    pixels: Pixels, image: SourceImage, finding: Finding, intent: Intent, rng: np.random.Generator
) -> Rendering:
    """Find and remove a finding, and return the rendering; arguments as for `adding.add`.

    Raises:
        CannotShow: the finding was not found, or the tissue under it is unknown.
    """
    plane, sequence = completed(image, pixels)
    strokes = strokes_on(finding, sequence, intent.zone)
    if not strokes:
        raise CannotShow(f"the procedural editor cannot remove {finding.title}")
    anatomy = map_of(pixels, replace(image, plane=plane))
    level: Field = (pixels if image.modality == "fundus" else pixels[..., 1:2]).astype(np.float32)
    shape = strokes[0].shape
    length = float(rng.uniform(0.9, 1.1))
    if shape == "border":
        drawn = _narrowed(level, anatomy, strokes[0], rng)
    elif shape == "haze":
        drawn = _cleared(level, anatomy, length)
    elif shape == "spots":
        drawn = _filled(level, anatomy, strokes, _place(finding, intent, strokes, anatomy))
    elif _comparable(strokes[0], finding, anatomy):
        place = _place(finding, intent, strokes, anatomy) & anatomy.side(intent.side)
        choices = [strokes]
        if contrast_unknown(image, sequence):
            choices.append(strokes_on(finding, "T1+C", intent.zone))
        drawn = _levelled(level, anatomy, choices, place, length)
    else:
        raise CannotShow(f"the tissue under {finding.title} cannot be inferred from this image")
    rendering = finished(pixels, drawn, finding, anatomy)
    return replace(rendering, note=f"{finding.title}: removed, length {length:.2f}")


def _place(finding: Finding, intent: Intent, strokes: tuple[Stroke, ...], anatomy: AnatomyMap) -> Mask:
    names = {stroke.at for stroke in strokes if stroke.at} or set(
        (intent.zone,) if intent.zone else finding.zones
    )
    found = [anatomy.places[name] for name in sorted(names) if name in anatomy.places]
    if not found:
        raise CannotShow(f"no {' or '.join(sorted(names))} region was found in this image")
    return np.asarray(np.logical_or.reduce(found), bool)


def _comparable(stroke: Stroke, finding: Finding, anatomy: AnatomyMap) -> bool:
    """Return True if the other side shows the tissue without the finding: it is one-sided and covers no border."""
    one_sided = "left" in finding.sides and anatomy.midline is not None
    return one_sided and stroke.shape in ("mass", "opacity")


def contrast_unknown(image: SourceImage, sequence: str) -> bool:
    """Return True for a T1 slice that may be with contrast medium, in which tumours are bright."""
    return sequence == "T1" and image.contrast == UNKNOWN


def _enhances(level: Field, other: Field, mask: Mask, organ: Mask) -> bool:
    """Return True if a place is brighter than the rest of the organ, and more unlike it than in the other image.

    Args:
        level, other: float32 (H, W), grey levels of two images.
        mask, organ: bool (H, W).
    """
    rest = organ & ~mask

    def above(image: Field) -> float:
        usual = float(np.median(image[rest]))
        spread = 1.4826 * float(np.median(np.abs(image[rest] - usual)))
        return (float(np.median(image[mask])) - usual) / max(spread, 1.0)

    return bool(rest.any()) and above(level) > max(ENHANCING, abs(above(other)))


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A finding in the small image: where it is, its excess over the reference, and its sign."""

    mask: Mask
    excess: Field
    sign: float


def _levelled(
    level: Field, anatomy: AnatomyMap, choices: list[tuple[Stroke, ...]], place: Mask, length: float
) -> Field:
    """Replace the place that is most unlike its mirror image, or its surroundings if the finding is small.

    `choices` are the ways in which the finding may look: two if contrast medium may have been given. Then a dark
    place is healthy where the other side enhances, and a bright place must enhance.
    """
    shape = (level.shape[0], level.shape[1])
    small = reduced(np.clip(level, 0, 255).astype(np.uint8)).reshape(SIDE, SIDE).astype(np.float32)
    chest = "lungs" in anatomy.places
    smooth = blur(small, 0.018 * anatomy.yard)
    small_one = chest and max(abs(stroke.size[1]) for stroke in choices[0]) < 0.08
    reference, both = _reference(smooth, anatomy, local=small_one)
    found = [one for strokes in choices if (one := _found(smooth, reference, both, anatomy, strokes, place))]
    if len(choices) > 1:
        found = [
            one
            for one in reversed(found)
            if (
                _enhances(smooth, reference, one.mask, both)
                if one.sign > 0
                else not _enhances(reference, smooth, one.mask, both)
            )
        ]
    if not found:
        raise CannotShow("no such finding was found: the place is like its surroundings and the other side")
    first = found[0]
    mask = grow(first.mask, 0.04 * anatomy.yard)
    alpha = enlarged(ramp(1.3 * blur(mask.astype(np.float32), 0.02 * anatomy.yard)), shape)[..., None]
    if chest:  # ribs and vessels stay: only the levels change
        change = enlarged(np.clip(first.excess, 0, None), shape)[..., None] * np.float32(first.sign * length)
        if small_one:  # its outline is finer than the levels that were compared
            own = blur(level, 1.2) - blur(level, 0.018 * anatomy.yard * shape[1] / SIDE)
            change = change + np.float32(0.85) * own
        return np.asarray(level - alpha * change, np.float32)
    axis = (anatomy.midline or 0.0) * shape[1] / SIDE
    matrix = np.array([[-1, 0, 2 * axis], [0, 1, 0]], np.float32)
    twin = cv2.warpAffine(level, matrix, shape[::-1], borderMode=cv2.BORDER_REPLICATE).reshape(level.shape)
    ring = grow(mask, 0.05 * anatomy.yard) & ~mask & both
    off = float(np.median((smooth - reference)[ring])) if ring.any() else 0.0
    if np.abs(np.nonzero(first.mask)[1] - (anatomy.midline or 0.0)).min() < MIDLINE * anatomy.yard:
        raise CannotShow("it reaches the midline, so that the other side does not show the tissue under it")
    return np.asarray(level + alpha * (twin + np.float32(off) - level), np.float32)


def _found(
    smooth: Field,
    reference: Field,
    both: Mask,
    anatomy: AnatomyMap,
    strokes: tuple[Stroke, ...],
    place: Mask,
) -> _Found | None:
    """Find the largest part of the place that differs from the reference as the strokes do; None if there is none."""
    chest = "lungs" in anatomy.places
    heart = anatomy.places.get("heart", np.zeros_like(both))
    sign = 1.0 if sum(strokes[0].level) > 0 else -1.0
    excess = sign * (smooth - reference - np.float32(np.median((smooth - reference)[both])))
    inside = place & both & ~heart  # the heart is not alike on both sides
    peak = float(np.percentile(excess[inside], 99.7)) if inside.any() else 0.0
    reach = 0.03 if chest else max(abs(stroke.size[1]) for stroke in strokes)
    marked = ((excess > max(0.28 * peak, 5.0)) & grow(place, reach * anatomy.yard) & both).astype(np.uint8)
    thinnest = min(abs(stroke.size[0]) for stroke in strokes) * anatomy.yard
    if not chest:  # sulci differ between the sides, but they are thin
        size = 2 * round(0.3 * thinnest) + 1
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
        marked = np.asarray(cv2.morphologyEx(marked, cv2.MORPH_OPEN, kernel), np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(marked)
    masses = np.bincount(labels.ravel(), (excess * inside).ravel(), count)
    masses[0] = 0
    first = int(masses.argmax())
    if peak < LEAST_EXCESS or stats[first, cv2.CC_STAT_AREA] < np.pi * (0.5 * thinnest) ** 2:
        return None
    return _Found(np.asarray(labels == first, bool), excess, sign)


def _reference(smooth: Field, anatomy: AnatomyMap, *, local: bool) -> tuple[Field, Mask]:
    """Return the level to compare each place with, and the mask of comparable places."""
    region = anatomy.organ
    if local:
        around = cv2.medianBlur(np.clip(smooth, 0, 255).astype(np.uint8), 2 * round(0.09 * anatomy.yard) + 1)
        return around.astype(np.float32), region
    matrix = np.array([[-1, 0, 2 * (anatomy.midline or 0.0)], [0, 1, 0]], np.float32)
    both = region & (cv2.warpAffine(region.astype(np.uint8), matrix, (SIDE, SIDE)) > 0)
    if not both.any():
        raise CannotShow("the sides of this image cannot be compared")
    return np.asarray(cv2.warpAffine(smooth, matrix, (SIDE, SIDE)), np.float32), both


def _filled(level: Field, anatomy: AnatomyMap, strokes: tuple[Stroke, ...], place: Mask) -> Field:
    """Fill spots that are brighter or darker than the retina around them with the retina around them."""
    shape = (level.shape[0], level.shape[1])
    scale = shape[1] / SIDE
    disc = anatomy.yard * scale
    green = np.ascontiguousarray(level[..., 1])
    ground = cv2.medianBlur(
        reduced(np.clip(level, 0, 255).astype(np.uint8))[..., 1], 2 * round(0.3 * anatomy.yard) + 1
    )
    off = blur(green, 1.5) - enlarged(ground, shape)
    free = shrink(anatomy.organ, 3) & ~grow(anatomy.places["disc"], 0.25 * anatomy.yard)
    retina = enlarged(free & grow(place, 0.1 * anatomy.yard), shape) > 0.5
    noise = 1.4826 * float(np.median(np.abs(off[retina])))
    found = np.zeros(shape, bool)
    for sign in {np.sign(sum(stroke.level)) for stroke in strokes}:
        largest = max(max(stroke.size) for stroke in strokes) * disc
        marked = ((sign * off > max(7.0, 3 * noise)) & retina).astype(np.uint8)
        _, labels, stats, _ = cv2.connectedComponentsWithStats(marked)
        extent = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]].max(axis=1)
        # Vessels are long; what fills little of its box is a vessel, too.
        solid = stats[:, cv2.CC_STAT_AREA] / (stats[:, cv2.CC_STAT_WIDTH] * stats[:, cv2.CC_STAT_HEIGHT])
        # Bright spots may merge into large clusters; no vessel is bright.
        most, least = (15, 0.2) if sign > 0 else (5, 0.4)
        spot = (extent < most * largest) & (solid > least) & (stats[:, cv2.CC_STAT_AREA] > 12)
        spot[0] = False
        found |= spot[labels]
    if found.sum() < 60:
        raise CannotShow("no spots were found on the retina")
    hole = grow(found, 4.0)
    known = (~hole).astype(np.float32)
    around = level
    for sigma in (40.0, 8.0):  # the near surroundings where there are any
        weight = blur(known, sigma)[..., None]
        mean = blur(level * known[..., None], sigma) / np.maximum(weight, 1e-3)
        around = around + (mean - around) * np.clip(weight / 0.05, 0, 1)
    alpha = ramp(blur(hole.astype(np.float32), 1.5))[..., None]
    return np.asarray(level + alpha * (around - blur(level, 1.2)), np.float32)


def _cleared(level: Field, anatomy: AnatomyMap, length: float) -> Field:
    """Stretch the contrast of structure that can still be traced under a haze."""
    retina = enlarged(shrink(anatomy.organ, 6), (level.shape[0], level.shape[1])) > 0.5
    soft, wide = blur(level, 1.2), blur(level, 0.9 * anatomy.yard * level.shape[1] / SIDE)
    contrast = float((soft - wide)[..., 1][retina].std()) / max(float(level[..., 1][retina].mean()), 1.0)
    if contrast > CLEAR:
        raise CannotShow(f"the image is not hazy: contrast {contrast:.3f}")
    fine = soft - blur(level, 6.0)
    inside = ramp(enlarged(anatomy.organ, (level.shape[0], level.shape[1])))[..., None]
    return np.asarray(level + inside * np.float32(length) * (0.55 * (soft - wide) + 0.5 * fine), np.float32)


def _narrowed(level: Field, anatomy: AnatomyMap, stroke: Stroke, rng: np.random.Generator) -> Field:
    """Move a border back towards the midline."""
    where = anatomy.place(stroke.at)
    gap = anatomy.field & ~anatomy.places.get("aerated", anatomy.organ)
    rows = np.flatnonzero(where.any(axis=1))
    middle = gap[rows[len(rows) // 3] : rows[2 * len(rows) // 3 + 1]]
    columns = np.abs(np.arange(SIDE) - (anatomy.midline or 0)) < 0.45 * anatomy.yard
    width = float(np.median(middle[:, columns].sum(axis=1))) / anatomy.yard
    if stroke.oval == 0 and width < WIDE_HEART:
        raise CannotShow(f"the heart is not wide: {width:.2f} of the thorax")
    inwards = replace(stroke, size=(-stroke.size[0], -stroke.size[1]))
    extent = float(rng.uniform(0.3, 0.9))
    return PRIMITIVES["border"](Sketch(level, anatomy, where, "", inwards, extent, 1.0, None, rng, rng))[0]
