"""Pneumothorax: air between lung and chest wall, a hairline of pleura and no markings beyond it."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.chest.canvas import (
    Canvas,
    blur,
    coordinates,
    masked_blur,
    open_canvas,
)
from plantain.offline.chest.clearing import markings
from plantain.offline.chest.outline import Lung
from plantain.offline.chest.pleura import Space, calm, find_space, inward_normals, outer_course
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.pixels.arrays import Field, Mask
from plantain.pixels.blend import dilate, feather
from plantain.pixels.grain import grain_sigma

_DEPTH = ((0.030, 0.045), (0.060, 0.085), (0.11, 0.15))
"""Widest gap in parts of the thorax's width."""
_REACH = ((0.30, 0.40), (0.45, 0.6), (0.70, 0.9))
"""How far down the chest wall the air reaches, in parts of its height."""
_DARK = (0.05, 0.10, 0.16)
_LINE = (0.055, 0.095, 0.14)
_WIDTH = (0.75, 1.0, 1.5)


def add(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    side = canvas.side()
    extent, conspicuity, softness = canvas.extent(), canvas.conspicuity(), canvas.softness()
    if canvas.supine:
        return _add_supine(canvas, side, extent, conspicuity)
    if scene.intent.zone == "basal":
        raise CannotShow(
            "air collects at the base on a supine film only, and this one is not known to be supine"
        )
    depth = canvas.rng.uniform(*_DEPTH[extent]) * canvas.chest.thoracic_width
    reach = canvas.rng.uniform(*_REACH[extent])
    lateral = scene.intent.zone == "lateral"
    space = _space(canvas, canvas.chest.lung(side), depth, reach, lateral=lateral)
    contrast = canvas.contrast(side)
    drawn = _empty(canvas.gray, space.region, _DARK[conspicuity] * contrast)
    drawn, stroke = _pleura(canvas, drawn, space, _LINE[conspicuity] * contrast, _WIDTH[softness])
    where = "lateral" if lateral else "apical and lateral" if extent else "apical"
    note = (
        f"{where} air on the {side}, at most {depth / canvas.pixels_per_mm:.0f} mm deep"
        f"{canvas.scale_words}{canvas.position_words}"
    )
    return canvas.finish(drawn, dilate(space.region, 2) | stroke, "local", note)


def _space(canvas: Canvas, lung: Lung, depth: float, reach: float, *, lateral: bool) -> Space:
    course = outer_course(lung)
    height = lung.bottom - lung.top
    down = (course[:, 1] - lung.top) / height
    outer = np.arange(len(course)) >= int(course[:, 1].argmin())
    position = np.where(outer, down, -down)
    if lateral:
        middle, half = canvas.rng.uniform(0.4, 0.55), 0.5 * reach
        gap = np.clip(1 - ((position - middle) / half) ** 2, 0, None) ** 0.8
    else:
        gap = np.clip((reach - position) / reach, 0, 1) ** 0.7 * np.clip((position + 0.10) / 0.14, 0, 1)
        gap *= 0.72 + 0.28 * np.clip(1 - np.maximum(position, 0) / 0.35, 0, 1)
    gap = calm(gap, 10.0)
    wobble = 1 + 0.06 * calm(canvas.rng.standard_normal(len(course)), 22.0) * np.sqrt(22.0 * 2 * 1.77)
    inward = inward_normals(course, lung)
    smooth = np.stack([calm(course[:, 0], 14.0), calm(course[:, 1], 14.0)], axis=1)
    smooth[0], smooth[-1] = course[0], course[-1]
    edge = smooth + (depth * gap * wobble)[:, None] * inward
    edge = np.stack([calm(edge[:, 0], 5.0), calm(edge[:, 1], 5.0)], axis=1)
    open_ = gap > 0.04
    canvas_ = np.zeros(lung.mask.shape, np.uint8)
    ring = np.vstack([course[open_], edge[open_][::-1]])
    cv2.fillPoly(canvas_, [np.round(ring).astype(np.int32)], 1)
    region = (canvas_ > 0) & lung.mask
    if region.sum() < 200:
        raise CannotShow("no room between lung and chest wall to show air")
    strength = np.clip((depth * gap[open_] - 4) / 10, 0, 1)
    return Space(region, edge[open_], strength)


def _empty(gray: Field, region: Mask, darker: float) -> Field:
    """The space without markings: thin bright structures of vessel width taken off, grain and ribs kept, darker."""
    soft = blur(gray, 1.4)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (11, 11))
    bright = cv2.morphologyEx(soft, cv2.MORPH_TOPHAT, kernel)
    dark = cv2.morphologyEx(soft, cv2.MORPH_BLACKHAT, kernel)
    noise = max(0.6, grain_sigma(gray, region))
    # A rib's rim is far brighter than a vessel out here: past a few noise levels nothing more is taken.
    bright = np.minimum(bright, 5.0 * noise) * np.clip(2.0 - bright / (10.0 * noise), 0, 1)
    dark = np.minimum(dark, 3.0 * noise)
    vessels = blur(bright - 0.6 * dark, 0.8)
    vessels -= masked_blur(vessels, region, 12.0)
    alpha = feather(region, 2.5)
    return gray - alpha * (darker + 0.9 * vessels)


def _pleura(canvas: Canvas, drawn: Field, space: Space, strength: float, width: float) -> tuple[Field, Mask]:
    """A hairline along the lung's edge, uneven in strength, and a faint denser rim of lung inside it."""
    count = len(space.line)
    uneven = np.clip(1 + 0.28 * calm(canvas.rng.standard_normal(count), 9.0) * np.sqrt(9.0 * 3.54), 0.35, 1.5)
    sheet = np.zeros(canvas.gray.shape, np.float32)
    points = np.round(space.line * 16).astype(np.int32)
    for index in range(count - 1):
        value = float(space.weight[index] * uneven[index])
        cv2.line(sheet, points[index].tolist(), points[index + 1].tolist(), value, 1, cv2.LINE_8, 4)
    line = blur(sheet, width) * (width * 2.2)
    lung = (
        canvas.chest.right.mask
        if canvas.chest.right.mask[space.region].mean() > 0.5
        else canvas.chest.left.mask
    )
    rim = blur(space.region.astype(np.float32), 16.0) * (lung & ~space.region)
    rim = blur(rim.astype(np.float32), 1.2) * 0.35
    result = drawn + strength * (line + rim * (sheet.max() > 0))
    return result, (line > 0.15) | (rim * strength > 1.2)


def _add_supine(canvas: Canvas, side: str, extent: int, conspicuity: int) -> Rendering:
    """Deep sulcus: the base and the costophrenic angle darker and deeper, diaphragm and heart edge over-sharp."""
    lung = canvas.chest.lung(side)
    rows, columns = coordinates(canvas.gray.shape)
    angle_x, angle_y = lung.angle
    height = lung.bottom - lung.top
    size = (0.16, 0.24, 0.34)[extent] * height
    inward = 1.0 if side == "right" else -1.0
    # A tongue that follows the wall past the old angle.
    along = (rows - angle_y) / size
    deep = (0.06, 0.12, 0.18)[extent] * height
    axis = angle_x + inward * 0.10 * size - inward * 0.0 * along
    tongue = (
        (np.abs(columns - axis) < 0.16 * size * np.clip(1.15 - (rows - angle_y) / deep, 0, 1.6) ** 0.6)
        & (rows > angle_y - 0.25 * size)
        & (rows < angle_y + deep)
    )
    base = lung.mask & (rows > lung.bottom - size * 1.4)
    strength = (0.08, 0.15, 0.24)[conspicuity] * canvas.contrast(side)
    fade = np.clip((rows - (lung.bottom - 1.4 * size)) / (0.8 * size), 0, 1)
    alpha = feather(base, 3.0) * fade
    body = (tongue & canvas.chest.field & ~lung.mask).astype(np.float32)
    sulcus = blur(body, 5.0)
    drawn = _empty(canvas.gray, base, 0.0)
    drawn = canvas.gray + fade * (drawn - canvas.gray) - strength * alpha
    drawn = drawn - sulcus * 0.55 * canvas.contrast(side) * (0.6, 0.8, 1.0)[conspicuity]
    mask = (base & (np.broadcast_to(fade, base.shape) > 0.08)) | (sulcus > 0.06)
    return canvas.finish(
        drawn.astype(np.float32), mask, "local", f"deep sulcus on the {side}, supine: dark base, no line"
    )


def remove(scene: Scene) -> Rendering:
    canvas = open_canvas(scene)
    sides = [s for s in ("right", "left") if scene.intent.side in (None, s, "bilateral", "midline")]
    # Named by a person, a fainter line is believed.
    named = scene.intent.side in ("left", "right")
    found = [(side, each) for side in sides if (each := find_space(canvas, side, named=named)) is not None]
    if not found:
        raise CannotShow("no pneumothorax found: no pleural line runs along the chest wall")
    side, (space, _, step) = max(found, key=lambda each: each[1][1])
    drawn, mask = _restore(canvas, side, space, step)
    return canvas.finish(
        drawn, mask, "local", f"air on the {side} replaced by lung markings, pleural line gone"
    )


def _restore(canvas: Canvas, side: str, space: Space, step: float) -> tuple[Field, Mask]:
    """Gives the space the lung's level and markings like those just inside it, and heals over the line."""
    lung = canvas.chest.lung(side)
    stroke = np.zeros(lung.mask.shape, np.uint8)
    cv2.polylines(stroke, [np.round(space.line).astype(np.int32)], False, 1, 3)
    # Where the space lies exactly is known to a pixel or two: filled with a hard edge, a band would remain along it.
    drawn = canvas.gray + feather(space.region, 2.5) * max(0.0, step)
    donor = lung.mask & ~dilate(space.region, 4) & dilate(space.region, 70)
    drawn = drawn + markings(canvas, donor, space.region) * feather(space.region, 4.0)
    healed, near = _heal_across(drawn, space)
    return healed, dilate(space.region | near, 2)


def _heal_across(gray: Field, space: Space) -> tuple[Field, Mask]:
    """Blurs across the line within a few pixels of it: what runs along it goes, ribs that cross it stay.

    Grain, finer than the line, is left as it is.
    """
    stroke = np.ones(gray.shape, np.uint8)
    points = np.round(space.line).astype(np.int32)
    cv2.polylines(stroke, [points], False, 0, 1)
    distance, nearest = cv2.distanceTransformWithLabels(
        stroke, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    on_line = np.argwhere(stroke == 0)
    order = nearest[stroke == 0]
    tangent = np.gradient(
        np.stack([calm(space.line[:, 0], 3.0), calm(space.line[:, 1], 3.0)], axis=1), axis=0
    )
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    apart = np.square(on_line[:, None, ::-1] - space.line[None]).sum(axis=2)
    directions = np.zeros((int(nearest.max()) + 1, 2), np.float32)
    directions[order] = normal[apart.argmin(axis=1)]
    near = distance < 10.0
    rows, columns = np.nonzero(near)
    along = directions[nearest[near]]
    soft = blur(gray, 0.9)
    offsets = np.arange(-9.0, 10.0)
    weights = np.exp(-0.5 * (offsets / 4.0) ** 2)
    x = columns[:, None] + along[:, :1] * offsets[None]
    y = rows[:, None] + along[:, 1:] * offsets[None]
    looked = np.zeros(x.shape, np.float32)
    for index in range(len(offsets)):
        looked[:, index] = cv2.remap(
            soft, x[:, index : index + 1].astype(np.float32), y[:, index : index + 1].astype(np.float32),
            cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE,
        )[:, 0]  # fmt: skip
    across = (looked * weights[None]).sum(axis=1) / weights.sum()
    share = np.clip((9.0 - distance[near]) / 5.0, 0.0, 1.0)
    healed = gray.copy()
    healed[near] += share * (across.astype(np.float32) - soft[near])
    return healed, near


RENDERER = FindingRenderer(add, remove)
