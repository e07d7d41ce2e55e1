"""Finds opacities by comparing the lungs place by place, and clears them: level and vessels as on the other side."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, blur, lung_coordinates, masked_blur
from plantain.offline.chest.lesion import ZONES, zone_mask
from plantain.offline.rendering import CannotShow, Rendering
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, erode, feather

LEAST_EXCESS = 0.20
"""How much denser than its counterpart a place must be, in parts of the lung-to-soft-tissue contrast, to be believed
without being told where to look; ribs, hila and breasts make healthy lungs differ by up to about that much."""
LEAST_EXCESS_PLACE_GIVEN = 0.13
"""The same where the instruction names the side or the zone."""
LEAST_SHARE = 0.012
"""Least part of a lung's area that must be denser: smaller differences are vessels and ribs."""


def mirror_maps(canvas: Canvas, side: str) -> tuple[Field, Field]:
    """For every pixel the x and y of its counterpart in the other lung: same height, same share from wall to middle."""
    here = canvas.chest.lung(side)
    there = canvas.chest.lung("left" if side == "right" else "right")
    shape = canvas.gray.shape
    rows = np.arange(shape[0], dtype=np.float64)
    rows_there = there.top + (rows - here.top) * (there.bottom - there.top) / (here.bottom - here.top)
    wall, middle = here.wall_at(rows), here.medial_at(rows)
    wall_there, middle_there = there.wall_at(rows_there), there.medial_at(rows_there)
    span = middle - wall
    span = np.where(np.abs(span) < 5, np.sign(span) * 5 + (span == 0) * 5, span)
    columns = np.arange(shape[1], dtype=np.float64)[None]
    share = np.clip((columns - wall[:, None]) / span[:, None], -0.2, 1.2)
    x = wall_there[:, None] + share * (middle_there - wall_there)[:, None]
    y = np.repeat(rows_there[:, None], shape[1], axis=1)
    return x.astype(np.float32), y.astype(np.float32)


def excess(canvas: Canvas, side: str) -> Field:
    """How much denser each place of a lung is than its counterpart, smoothed, in parts of the contrast; 0 outside.

    The two lungs' overall difference (rotation, breast, exposure) is taken off by the median.
    """
    here = canvas.chest.lung(side)
    there = canvas.chest.lung("left" if side == "right" else "right")
    x, y = mirror_maps(canvas, side)
    scale = 0.02 * canvas.chest.thoracic_width
    inner_here = erode(here.mask, 4) & ~canvas.chest.protected
    inner_there = erode(there.mask, 4) & ~canvas.chest.protected
    level = between_ribs(canvas, inner_here)
    other = cv2.remap(between_ribs(canvas, inner_there), x, y, cv2.INTER_LINEAR)
    known = cv2.remap(inner_there.astype(np.float32), x, y, cv2.INTER_LINEAR) > 0.5
    both = inner_here & known
    difference = np.zeros_like(level)
    if both.sum() < 2000:
        return difference
    raw = level - other
    # The median of the clearer half: an opacity that fills most of one lung must not hide itself.
    usual = float(np.percentile(raw[both], 40))
    difference[here.mask] = (raw - usual)[here.mask]
    clear = min(canvas.contrast("left"), canvas.contrast("right"))
    relative: Field = masked_blur(difference, both, 0.5 * scale) * here.mask / np.float32(max(clear, 30.0))
    return relative


def own_excess(canvas: Canvas, side: str, zone: str) -> Field:
    """How much denser one zone of a lung is than that lung's other zones, in parts of the contrast; 0 outside it.

    For an opacity on both sides, which the other lung does not show up.
    """
    lung = canvas.chest.lung(side)
    inner = erode(lung.mask, 4) & ~canvas.chest.protected
    named = zone_mask(canvas, side, zone)
    rest = inner & ~dilate(named, 0.06 * (lung.bottom - lung.top))
    relative = np.zeros_like(canvas.gray)
    if rest.sum() < 2000:
        return relative
    level = between_ribs(canvas, inner)
    share, _ = lung_coordinates(canvas, side)
    columns = np.linspace(0.05, 0.95, 10)
    beside = [rest & (np.abs(share - place) < 0.08) for place in columns]
    usual = [float(np.median(level[part if part.sum() > 200 else rest])) for part in beside]
    raw = level - np.interp(share, columns, usual).astype(np.float32)
    near = dilate(named, 0.10 * (lung.bottom - lung.top)) & lung.mask
    relative[near] = raw[near]
    scale = 0.01 * canvas.chest.thoracic_width
    smooth: Field = masked_blur(relative, inner, scale) * near / np.float32(max(canvas.contrast(side), 30.0))
    return smooth


def between_ribs(canvas: Canvas, lung: Mask) -> Field:
    """The lung's own level: the darkest over about one rib's width, which no rib or vessel brightens, smoothed."""
    factor = 4
    size = (canvas.gray.shape[1] // factor, canvas.gray.shape[0] // factor)
    inside = cv2.resize(lung.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    small = cv2.resize(blur(canvas.gray, 3.0), size, interpolation=cv2.INTER_AREA)
    rib = max(3, int(0.075 * canvas.chest.thoracic_width / factor))
    ellipse = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (rib, rib))
    darkest = cv2.erode(np.where(inside, small, 255.0).astype(np.float32), ellipse)
    # Opening: what the darkest spreads inwards from an opacity's rim is taken back.
    opened = cv2.dilate(np.where(inside, darkest, 0.0).astype(np.float32), ellipse)
    level: Field = cv2.resize(opened, canvas.gray.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return masked_blur(level, lung, 0.018 * canvas.chest.thoracic_width)


def dense_regions(canvas: Canvas, side: str) -> tuple[Field, Mask, float]:
    """(excess, the region that is clearly denser, its weight): one side's opacity, empty where there is none."""
    zone = canvas.scene.intent.zone
    relative = excess(canvas, side)
    if canvas.scene.intent.side == "bilateral" and zone in ZONES:
        relative = np.maximum(relative, own_excess(canvas, side, str(zone)))
    lung = canvas.chest.lung(side)
    allowed = erode(lung.mask, 0.02 * canvas.chest.thoracic_width) & ~_beside_middle(canvas, side)
    intent = canvas.scene.intent
    if intent.zone in ZONES:
        allowed &= dilate(zone_mask(canvas, side, intent.zone), 0.12 * (lung.bottom - lung.top))
    place_given = intent.zone in ZONES or intent.side in ("left", "right")
    least = LEAST_EXCESS_PLACE_GIVEN if place_given else LEAST_EXCESS
    seeds = (relative > least) & allowed
    grown = ((relative > 0.35 * least) & lung.mask).astype(np.uint8)
    count, labels = cv2.connectedComponents(grown)
    area = float(lung.mask.sum())
    found = np.bincount(labels[seeds], minlength=count) > LEAST_SHARE * area
    found[0] = False
    masses = np.bincount(labels[seeds], weights=relative[seeds], minlength=count) * found / area
    # One opacity, not every place that happens to differ.
    kept = found & (masses > 0.4 * masses.max(initial=0.0))
    region: Mask = kept[labels] & dilate(seeds, 0.09 * canvas.chest.thoracic_width)
    return relative, region, float(masses.max(initial=0.0))


def _beside_middle(canvas: Canvas, side: str) -> Mask:
    """A strip along the mediastinum, where hila and great vessels differ between the sides."""
    lung = canvas.chest.lung(side)
    strip = 0.045 * canvas.chest.thoracic_width
    canvas_ = np.ones(lung.mask.shape, np.uint8)
    cv2.polylines(canvas_, [np.round(lung.medial).astype(np.int32)], False, 0, 1)
    near: Mask = cv2.distanceTransform(canvas_, cv2.DIST_L2, 3) < strip
    return near


def clear_opacity(canvas: Canvas, mask: Mask, title: str) -> Rendering:
    """Clears the denser side, or both where asked for.

    Raises:
        CannotShow: neither lung is clearly denser than the other.
    """
    asked = canvas.scene.intent.side
    sides = [side for side in ("right", "left") if asked in (None, side, "bilateral", "midline")]
    found = {side: dense_regions(canvas, side) for side in sides}
    found = {side: parts for side, parts in found.items() if parts[1].any()}
    if not found:
        raise CannotShow(f"no {title} found: neither lung is clearly denser than the other anywhere")
    both = asked == "bilateral"
    if both and len(found) < 2:
        raise CannotShow(f"{title} found in the {next(iter(found))} lung only, and both were named")
    best = max(parts[2] for parts in found.values())
    drawn = canvas.gray
    done: list[str] = []
    for side, (relative, region, weight) in found.items():
        if weight < 0.5 * best and not both:
            continue
        drawn, part = clear(canvas, drawn, side, relative, region)
        mask = mask | part
        done.append(side)
    note = f"opacity cleared, {' and '.join(done)}: level and vessels like the same zone on the other side"
    return canvas.finish(drawn.astype(np.float32), mask, "local", note)


def clear(canvas: Canvas, gray: Field, side: str, relative: Field, region: Mask) -> tuple[Field, Mask]:
    """Takes the excess away inside the region and gives vessels back the contrast that they have elsewhere."""
    lung = canvas.chest.lung(side)
    clear_level = max(min(canvas.contrast("left"), canvas.contrast("right")), 30.0)
    wide = 0.02 * canvas.chest.thoracic_width
    shape = feather(region, wide) * feather(lung.mask, 4.0)
    opacity = np.maximum(relative, 0) * clear_level * shape
    drawn = gray - opacity
    band = blur(gray, 1.1) - blur(gray, 5.0)
    reference = lung.mask & ~dilate(region, 10)
    strength = masked_blur(np.minimum(np.abs(band), 12.0), region, 14.0)
    usual = float(np.mean(np.minimum(np.abs(band[reference]), 12.0))) if reference.sum() > 2000 else 0.0
    gain = np.clip(usual / np.maximum(strength, 0.2), 1.0, 2.2)
    drawn = drawn + shape * (gain - 1.0) * np.clip(band, -12.0, 12.0)
    return drawn.astype(np.float32), (opacity > 1.0) & (shape > 0.05)


def markings(canvas: Canvas, donor: Mask, region: Mask) -> Field:
    """Vessel-scale texture of the lung beside the space, as strong as there, laid out anew."""
    band = blur(canvas.gray, 1.4) - blur(canvas.gray, 5.0)
    if donor.sum() < 500:
        return np.zeros_like(band)
    wanted = float(np.median(np.abs(band[donor]))) * 1.48
    present = float(np.median(np.abs(band[region]))) * 1.48 if region.any() else 0.0
    lacking = np.sqrt(max(wanted**2 - present**2, 0.0))
    noise = canvas.rng.standard_normal(band.shape).astype(np.float32)
    texture = blur(noise, 1.6) - blur(noise, 5.0)
    return texture * np.float32(lacking / max(float(texture.std()), 1e-6))
