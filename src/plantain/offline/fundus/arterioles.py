"""Hypertensive retinopathy as drawn here: narrow arterioles, veins nicked at crossings, a few flame haemorrhages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt
from skimage.morphology import skeletonize

from plantain.offline.fundus.anatomy import FundusAnatomy, read_anatomy
from plantain.offline.fundus.flames import flame_spots
from plantain.offline.fundus.levels import choose_levels
from plantain.offline.fundus.paint import Spot, blood, blood_tone, stamp
from plantain.offline.fundus.restore import close_over, grow
from plantain.offline.rendering import CannotShow, Rendering, Scene
from plantain.pixels.arrays import Field, Mask, Pixels

NARROWED = (0.82, 0.72, 0.63)
"""Width of the arterioles after, as a share of before, by conspicuity."""

REFLEX = (0.02, 0.04, 0.06)
FLAMES = (0, 3, 7)
FLAME_BLOOD = (0.6, 0.85, 1.1)
NEAR, FAR = 0.95, 3.2
"""Where vessels are changed, from the disc's centre, in disc diameters."""

FEWEST_FLAMES = 2
"""One streak alone may be anything; healthy photographs show none."""

NARROW_RATIO, USUAL_RATIO, WIDEST = 0.74, 0.80, 1.4
"""Arteriole to venule width below which they are narrowed, what they are given back, and how much wider at most. As
measured here, where a venule's blurred border counts less, healthy photographs have 0.76 to 0.93."""


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """Vessel segments between branchings, told apart by how red they stay.

    Attributes:
        arteries, veins: bool (H, W), centre lines.
        crossings: (n, 2) int, x and y where an artery's line meets a vein's.
        ratio: median arteriole width over median venule width.
    """

    arteries: Mask
    veins: Mask
    crossings: npt.NDArray[np.int64]
    ratio: float


def add_hypertension(scene: Scene) -> Rendering:
    """Narrows the arterioles, pinches veins at crossings and, when large or marked, adds flame haemorrhages."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    levels = choose_levels(scene.intent, scene.rng)
    branches = find_branches(scene.pixels, anatomy)
    if branches.arteries.sum() < 150:
        raise CannotShow("no arterioles can be told from veins on this photograph")
    narrow = NARROWED[levels.conspicuity]
    pixels, changed = _resized(scene.pixels, anatomy, branches.arteries, narrow)
    pinches = _beside(branches, anatomy)
    if pinches.any():
        pixels, pinched = _resized(pixels, anatomy, pinches, 0.7)
        changed |= pinched
    reflex = cv2.GaussianBlur(branches.arteries.astype(np.float32), (0, 0), 1.0) * 2.2
    shine = (
        REFLEX[levels.conspicuity]
        * np.minimum(reflex, 1)[..., None]
        * np.asarray((1.0, 0.9, 0.5), np.float32)
    )
    out = pixels + shine * anatomy.flat * changed[..., None]
    count = FLAMES[max(levels.extent, levels.conspicuity)] if levels.conspicuity else 0
    flames = _flame_layer(scene, anatomy, count)
    tone = blood_tone(scene.pixels, anatomy)
    base = np.rint(np.clip(out, 0, 255)).astype(np.uint8)
    out = out + blood(base, flames, tone, FLAME_BLOOD[levels.conspicuity])
    mask = changed | (flames > 0.05)
    near = grow(mask, 8)[..., None]
    final = np.rint(np.clip(out, 0, 255)).astype(np.uint8)
    note = (
        f"arterioles narrowed to {narrow:.2f} of their width, {len(branches.crossings)} crossings nicked, "
        f"{count} flame haemorrhages, {levels.words()}, {anatomy.eye} eye"
    )
    return Rendering(np.where(near, final, scene.pixels), mask, "local", note)


def remove_hypertension(scene: Scene) -> Rendering:
    """Closes over flame haemorrhages and gives narrowed arterioles their width back."""
    anatomy = read_anatomy(scene.pixels, scene.image.laterality)
    branches = find_branches(scene.pixels, anatomy)
    spots, count = flame_spots(scene.pixels, anatomy)
    ratio = branches.ratio
    alone = count < FEWEST_FLAMES and not (count and ratio < USUAL_RATIO)
    if ratio >= NARROW_RATIO and alone:
        raise CannotShow(f"no narrowed arterioles found (artery to vein about {ratio:.2f}), nor flames")
    pixels, changed = scene.pixels, np.zeros(scene.pixels.shape[:2], dtype=bool)
    # Beside flames a ratio at the low end of the normal range counts as narrowed.
    if ratio < (USUAL_RATIO if count else NARROW_RATIO):
        factor = float(np.clip(USUAL_RATIO / max(ratio, 0.3), 1.0, WIDEST))
        pixels, changed = _resized(pixels, anatomy, branches.arteries, factor)
    if count:
        grown = grow(spots, 4)
        vessels = replace(
            anatomy.vessels, mask=anatomy.vessels.mask & ~grown, wide=anatomy.vessels.wide & ~grown
        )
        pixels = close_over(pixels, replace(anatomy, vessels=vessels), grown, scene.rng, deep=False)
        changed |= grow(grown, 3)
    note = f"artery to vein ratio was about {ratio:.2f}, {count} haemorrhages closed over"
    return Rendering(pixels, changed, "local", note)


def find_branches(pixels: Pixels, anatomy: FundusAnatomy) -> Branches:
    """Splits the traced vessels at their branchings and calls the redder half of the segments arteries."""
    skeleton = skeletonize(anatomy.vessels.mask[::2, ::2])
    neighbours = cv2.filter2D(skeleton.astype(np.uint8), cv2.CV_16S, np.ones((3, 3), np.float32))
    nodes = skeleton & (neighbours >= 4)
    pieces = skeleton & ~grow(nodes, 2)
    total, labels, stats, _ = cv2.connectedComponentsWithStats(pieces.astype(np.uint8), connectivity=8)
    small = pixels[::2, ::2].astype(np.float32)
    flat = anatomy.flat[::2, ::2]
    away = anatomy.disc.distance(pixels.shape[:2])[::2, ::2] / 2
    redness = np.zeros(total)
    width = np.zeros(total)
    valid = np.zeros(total, dtype=bool)
    scale = cv2.distanceTransform(anatomy.vessels.wide.astype(np.uint8), cv2.DIST_L2, 5)[::2, ::2]
    for index in range(1, total):
        if stats[index, cv2.CC_STAT_AREA] < 12:
            continue
        ys, xs = np.nonzero(labels == index)
        if not NEAR < float(np.median(away[ys, xs])) < FAR:
            continue
        share = small[ys, xs] / np.maximum(flat[ys, xs], 8.0)
        redness[index] = float(np.median(share[:, 0])) + 0.5 * float(np.median(share[:, 1]))
        width[index] = float(np.median(scale[ys, xs]))
        valid[index] = True
    if valid.sum() < 4:
        empty = np.zeros(pixels.shape[:2], dtype=bool)
        return Branches(empty, empty, np.zeros((0, 2), np.int64), 1.0)
    large = valid & (width >= np.median(width[valid]) * 0.8)
    middle = float(np.median(redness[large]))
    arteries, veins = large & (redness >= middle), large & (redness < middle)
    lines = [_full(table[labels], pixels.shape) for table in (arteries, veins)]
    meeting = grow(lines[0], 9) & grow(lines[1], 9) & _full(grow(nodes, 3), pixels.shape)
    count, _, _, centres = cv2.connectedComponentsWithStats(meeting.astype(np.uint8))
    crossings = np.rint(centres[1:count]).astype(np.int64)
    ratio = _width(pixels, anatomy, lines[0]) / max(_width(pixels, anatomy, lines[1]), 1e-3)
    return Branches(lines[0], lines[1], crossings, ratio)


def _full(half: Mask, shape: tuple[int, ...]) -> Mask:
    grown = cv2.resize(half.astype(np.uint8), (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST)
    return np.asarray(grown > 0)


def _width(pixels: Pixels, anatomy: FundusAnatomy, line: Mask) -> float:
    """Mean width in pixels across a centre line, at half the dip's depth."""
    ys, xs = np.nonzero(line)
    if len(ys) < 30:
        return 0.0
    reach = np.arange(-12, 12.5, 0.5, dtype=np.float32)
    angle = anatomy.vessels.angle[ys, xs] + np.float32(np.pi / 2)
    map_x = (xs[:, None] + reach * np.cos(angle)[:, None]).astype(np.float32)
    map_y = (ys[:, None] + reach * np.sin(angle)[:, None]).astype(np.float32)
    green = pixels[..., 1].astype(np.float32) / np.maximum(anatomy.flat[..., 1], 8.0)
    profile = cv2.remap(green, map_x, map_y, cv2.INTER_LINEAR)
    dip = np.maximum(np.quantile(profile, 0.8, axis=1)[:, None] - profile, 0)
    depth = dip[:, 20:29].max(axis=1)
    clear = depth > 0.05
    if clear.sum() < 20:
        return 0.0
    half = dip[clear] > 0.5 * depth[clear][:, None]
    return float(np.mean(half[:, 8:41].sum(axis=1))) / 2


def _resized(pixels: Pixels, anatomy: FundusAnatomy, line: Mask, factor: float) -> tuple[Pixels, Mask]:
    """Draws vessels along `line` narrower (`factor` below 1) or wider, by pulling the image across them."""
    distance, labels = cv2.distanceTransformWithLabels(
        (~line).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    near = distance < 18
    ys, xs = np.nonzero(line)
    table_x, table_y = (np.zeros(int(labels.max()) + 1, np.float32) for _ in range(2))
    table_x[labels[ys, xs]], table_y[labels[ys, xs]] = xs, ys
    grid_y, grid_x = np.mgrid[0 : line.shape[0], 0 : line.shape[1]].astype(np.float32)
    across_x, across_y = (grid_x - table_x[labels]) * near, (grid_y - table_y[labels]) * near
    half = 2.2 * cv2.GaussianBlur(anatomy.vessels.scale * 1.0, (0, 0), 3.0)
    fade = np.clip(1.6 - distance / np.maximum(half, 3.0), 0, 1) * near
    fade = fade * fade * (3 - 2 * fade) * (1 / factor - 1) * np.clip((anatomy.aperture.depth - 14) / 20, 0, 1)
    shift_x, shift_y = (cv2.GaussianBlur(a * fade, (0, 0), 1.2) for a in (across_x, across_y))
    moved = cv2.remap(
        pixels, grid_x + shift_x, grid_y + shift_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    changed = np.hypot(shift_x, shift_y) > 0.25
    return np.where(grow(changed, 3)[..., None], moved, pixels), np.asarray(changed, dtype=bool)


def _beside(branches: Branches, anatomy: FundusAnatomy) -> Mask:
    """The veins' lines a little before and after each crossing."""
    spots = np.zeros(branches.veins.shape, np.uint8)
    for x, y in branches.crossings:
        cv2.circle(spots, (int(x), int(y)), round(0.13 * anatomy.disc.diameter), 1, cv2.FILLED)
    return np.asarray(branches.veins & (spots > 0))


def _flame_layer(scene: Scene, anatomy: FundusAnatomy, count: int) -> Field:
    """Feathered streaks in the nerve fibre layer: they run along the nearest vessels, away from the disc."""
    rng, disc = scene.rng, anatomy.disc
    height, width = scene.pixels.shape[:2]
    layer = np.zeros((height, width), np.float32)
    drawn = 0
    for _ in range(12 * count):
        if drawn == count:
            break
        turn, away = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.8, 1.9)) * disc.diameter
        x, y = disc.x + away * np.cos(turn), disc.y + away * np.sin(turn)
        column, row = round(x), round(y)
        if (
            not (0 <= row < layer.shape[0] and 0 <= column < layer.shape[1])
            or anatomy.aperture.depth[row, column] < 30
        ):
            continue
        heading = turn + float(rng.normal(0, 0.2))
        length = float(rng.uniform(0.16, 0.34)) * disc.diameter
        for _ in range(int(rng.integers(12, 20))):
            side, along = float(rng.normal(0, 0.13)) * length, float(rng.normal(0, 0.2)) * length
            sx = x + along * np.cos(heading) - side * np.sin(heading)
            sy = y + along * np.sin(heading) + side * np.cos(heading)
            thin = max(0.04 * length, 1.1) * float(rng.uniform(0.8, 1.7))
            stretch = float(rng.uniform(4, 8))
            stamp(layer, Spot(sx, sy, thin, 2.0, 0.2, stretch, heading, float(rng.uniform(0.25, 0.6))), rng)
        drawn += 1
    return layer
