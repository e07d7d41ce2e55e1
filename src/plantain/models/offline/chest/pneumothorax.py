"""Pneumothorax: air between lung and chest wall, a hairline of pleura and no markings beyond it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.models.offline.chest.canvas import (
    Canvas,
    blur,
    coordinates,
    masked_blur,
    open_canvas,
)
from plantain.models.offline.chest.clearing import markings
from plantain.models.offline.chest.drawing import FloatImage, Points
from plantain.models.offline.chest.outline import Lung, cheapest_path
from plantain.models.offline.rendering import CannotShow, FindingRenderer, Mask, Rendering, Scene
from plantain.pixels.blend import dilate, feather
from plantain.pixels.grain import grain_sigma

_DEPTH = ((0.030, 0.045), (0.060, 0.085), (0.11, 0.15))
"""Widest gap in parts of the thorax's width."""
_REACH = ((0.30, 0.40), (0.45, 0.6), (0.70, 0.9))
"""How far down the chest wall the air reaches, in parts of its height."""
_DARK = (0.05, 0.10, 0.16)
_LINE = (0.055, 0.095, 0.14)
_WIDTH = (0.75, 1.0, 1.5)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Air in the pleural space: the region, the lung's edge from apex down, and how far along it is open (0..1)."""

    region: Mask
    line: Points
    weight: npt.NDArray[np.float64]


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


def _outer(lung: Lung) -> Points:
    """The pleura's outer course: over the apex from the mediastinum, then down the chest wall; evenly spaced."""
    first = lung.medial[
        : max(2, int(np.searchsorted(lung.medial[:, 1], lung.top + 0.07 * (lung.bottom - lung.top))))
    ]
    course = np.vstack([first[::-1], lung.lateral])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(course, axis=0).T))])
    at = np.arange(0, along[-1], 3.0)
    return np.stack([np.interp(at, along, course[:, 0]), np.interp(at, along, course[:, 1])], axis=1)


def _calm(values: npt.NDArray[np.float64], sigma: float) -> npt.NDArray[np.float64]:
    wide = cv2.GaussianBlur(values[:, None], (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(wide[:, 0], np.float64)


def _space(canvas: Canvas, lung: Lung, depth: float, reach: float, *, lateral: bool) -> Space:
    course = _outer(lung)
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
    gap = _calm(gap, 10.0)
    wobble = 1 + 0.06 * _calm(canvas.rng.standard_normal(len(course)), 22.0) * np.sqrt(22.0 * 2 * 1.77)
    inward = _inward(course, lung)
    smooth = np.stack([_calm(course[:, 0], 14.0), _calm(course[:, 1], 14.0)], axis=1)
    smooth[0], smooth[-1] = course[0], course[-1]
    edge = smooth + (depth * gap * wobble)[:, None] * inward
    edge = np.stack([_calm(edge[:, 0], 5.0), _calm(edge[:, 1], 5.0)], axis=1)
    open_ = gap > 0.04
    canvas_ = np.zeros(lung.mask.shape, np.uint8)
    ring = np.vstack([course[open_], edge[open_][::-1]])
    cv2.fillPoly(canvas_, [np.round(ring).astype(np.int32)], 1)
    region = (canvas_ > 0) & lung.mask
    if region.sum() < 200:
        raise CannotShow("no room between lung and chest wall to show air")
    strength = np.clip((depth * gap[open_] - 4) / 10, 0, 1)
    return Space(region, edge[open_], strength)


def _inward(course: Points, lung: Lung) -> Points:
    tangent = np.stack(
        [_calm(np.gradient(course[:, 0]), 14.0), _calm(np.gradient(course[:, 1]), 14.0)], axis=1
    )
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    rows, columns = np.nonzero(lung.mask)
    centre = np.array([columns.mean(), rows.mean()])
    if np.sum((centre - course) * normal) < 0:
        normal = -normal
    return normal


def _empty(gray: FloatImage, region: Mask, darker: float) -> FloatImage:
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


def _pleura(
    canvas: Canvas, drawn: FloatImage, space: Space, strength: float, width: float
) -> tuple[FloatImage, Mask]:
    """A hairline along the lung's edge, uneven in strength, and a faint denser rim of lung inside it."""
    count = len(space.line)
    uneven = np.clip(
        1 + 0.28 * _calm(canvas.rng.standard_normal(count), 9.0) * np.sqrt(9.0 * 3.54), 0.35, 1.5
    )
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
    found = [(side, each) for side in sides if (each := _find(canvas, side, named)) is not None]
    if not found:
        raise CannotShow("no pneumothorax found: no pleural line runs along the chest wall")
    side, (space, _, step) = max(found, key=lambda each: each[1][1])
    drawn, mask = _restore(canvas, side, space, step)
    return canvas.finish(
        drawn, mask, "local", f"air on the {side} replaced by lung markings, pleural line gone"
    )


def _find(canvas: Canvas, side: str, named: bool) -> tuple[Space, float, float] | None:
    """The brightest thin line that runs parallel to the chest wall with a darker side towards it."""
    lung = canvas.chest.lung(side)
    course = _outer(lung)
    inward = _inward(course, lung)
    smooth = np.stack([_calm(course[:, 0], 14.0), _calm(course[:, 1], 14.0)], axis=1)
    limit = 0.2 * canvas.chest.thoracic_width
    depths = np.arange(7.0, limit, 1.0)
    at = smooth[:, None] + depths[None, :, None] * inward[:, None]

    def look(plane: FloatImage) -> FloatImage:
        seen: FloatImage = cv2.remap(
            plane, at[..., 0].astype(np.float32), at[..., 1].astype(np.float32), cv2.INTER_LINEAR
        )
        return seen

    sheet = look(blur(canvas.gray, 0.8))
    contrast = canvas.contrast(side)
    # A line is brighter than what lies 4 px to both sides of it; ribs cross the course and average out along it.
    ridge = np.full_like(sheet, -1.0)
    ridge[:, 4:-4] = np.minimum(sheet[:, 4:-4] - sheet[:, :-8], sheet[:, 4:-4] - sheet[:, 8:])
    ridge = np.clip(ridge / contrast, -0.05, 0.12)
    ridge = cv2.GaussianBlur(ridge, (1, 9), 0, sigmaY=1.6)
    # Over the apex the wall's normals run together and the upper ribs run along it: no deep line is believed there.
    down = (course[:, 1] - lung.top) / (lung.bottom - lung.top)
    apical = (np.arange(len(course)) <= int(course[:, 1].argmin())) | (down < 0.10)
    ridge[apical[:, None] & (depths[None] > 0.17 * canvas.chest.thoracic_width)] = -0.05
    path = cheapest_path(-ridge * 100, 2, 0.4)
    rows = np.arange(len(course))
    along = ridge[rows, path.astype(int)]
    run = _calm((along > 0.011).astype(float), 8.0)
    longest = _longest((run > 0.5) & ~apical)
    if longest is None:
        return None
    start, stop = longest
    gap = depths[path.astype(int)]
    edge = smooth + _calm(gap, 2.0)[:, None] * inward
    length = float(np.hypot(*np.diff(edge[start:stop], axis=0).T).sum()) / (lung.bottom - lung.top)
    score = float(along[start:stop].mean()) * min(1.0, length / 0.3)
    step = _step_across(sheet[start:stop], path[start:stop].astype(int))
    asked = 0.7 if named else 1.0
    if length < 0.13 or score < asked * LEAST_LINE or step < asked * LEAST_STEP * contrast:
        return None
    while start > 0 and run[start - 1] > 0.12:
        start -= 1
    while stop < len(run) and run[stop] > 0.12:
        stop += 1
    part = slice(start, stop)
    region = np.zeros(lung.mask.shape, np.uint8)
    cv2.fillPoly(region, [np.round(np.vstack([course[part], edge[part][::-1]])).astype(np.int32)], 1)
    return Space((region > 0) & lung.mask, edge[part], np.ones(stop - start)), score, step


def _step_across(sheet: FloatImage, columns: npt.NDArray[np.intp]) -> float:
    """How much brighter the lung is than the space at the line itself, by a straight fit to the means on both sides.

    Levels change towards the wall by themselves, so the mean of each side would mistake that for the step.
    """
    reach = int(np.clip(np.median(columns) + 2, 9, 20))
    inwards, outwards = np.arange(8, 30), np.arange(-reach, -3)
    deep = columns + outwards[0] >= 0
    if deep.sum() < 12:
        return 0.0
    rows = np.flatnonzero(deep)[:, None]
    at = columns[deep][:, None]
    last = sheet.shape[1] - 1
    ends = []
    for offsets in (inwards, outwards):
        profile = sheet[rows, np.clip(at + offsets[None], 0, last)].mean(axis=0)
        ends.append(float(np.polyval(np.polyfit(offsets, profile, 1), 0.0)))
    return ends[0] - ends[1]


LEAST_LINE = 0.012
"""Mean height of the line over lung-to-soft-tissue contrast, times its length: ribs reach this as well."""
LEAST_STEP = 0.05
"""Fall of brightness across the line, in parts of the same contrast: at a rib there is none."""


def _longest(held: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    return max(((int(a), int(b)) for a, b in runs), key=lambda r: r[1] - r[0]) if runs else None


def _restore(canvas: Canvas, side: str, space: Space, step: float) -> tuple[FloatImage, Mask]:
    """Closes the line, gives the space the lung's level and markings like those just inside it."""
    lung = canvas.chest.lung(side)
    stroke = np.zeros(lung.mask.shape, np.uint8)
    cv2.polylines(stroke, [np.round(space.line * 16).astype(np.int32)], False, 1, 5, cv2.LINE_8, 4)
    line = stroke > 0
    # The line is found by its ridge, a few pixels inwards of where the space ends: filled past that end, a pale band
    # along the lung's edge would remain.
    level = feather(space.region & ~line, 2.0) * max(0.0, step)
    drawn = canvas.gray + level
    # Along the line, what is thin and bright is pressed down to what lies beside it.
    soft = blur(drawn, 1.0)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9))
    thin = cv2.morphologyEx(soft, cv2.MORPH_TOPHAT, kernel)
    thin = np.maximum(thin - masked_blur(thin, space.region & ~line, 10.0), 0)
    drawn = drawn - feather(dilate(line, 1), 2.0) * thin
    donor = lung.mask & ~dilate(space.region, 4) & dilate(space.region, 70)
    texture = markings(canvas, donor, space.region)
    return drawn + texture * feather(space.region, 4.0), dilate(space.region | line, 2)


RENDERER = FindingRenderer(add, remove)
