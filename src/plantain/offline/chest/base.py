"""How the base of a lung would lie if nothing hid it: its wall, dome and angle from what is still seen."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.chest.canvas import Canvas, blur
from plantain.offline.chest.outline import Lung
from plantain.pixels.arrays import Field, Floats, Mask

USUAL_HEIGHT = 0.87
"""Height of a lung over the width of the thorax, where neither base can be seen: 0.79 to 0.99 on a dozen films."""
USUAL_DEPTH = 0.15
"""How far the costophrenic angle lies below the dome, in parts of the lung's height."""
LEAST_DEPTH = 0.05
"""The same of a base that may stand as a model for the other one: with fluid the angle is not deep."""
LEAST_HEIGHT = 0.77
"""Height of such a lung in parts of the thorax's width."""
ALIKE = 0.06
"""How far two domes may differ in height, in parts of the lung's; farther off, what is seen is a fluid's surface."""
ACROSS = 0.42
"""Width of a base, wall to spine, in parts of the thorax's width."""
STEPS = np.linspace(0.0, 1.0, 101)
"""Places across a base at which its course is given."""


@dataclass(frozen=True, slots=True, eq=False)
class LungBase:
    """The lower half of one lung as it would be without fluid.

    Attributes:
        across: float32 (H, W), distance from the chest wall, 1 about at the spine.
        share: float32 (H, W), place between chest wall (0) and mediastinum (1).
        dome: float32 (H, W), y of the diaphragm under or over each pixel.
        inside: bool (H, W), between wall and mediastinum and above the dome.
        height: of the lung, in pixels.
        width: of the base from wall to spine, in pixels.
    """

    across: Field
    share: Field
    dome: Field
    inside: Mask
    height: float
    width: float


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """How far across each pixel lies, see `LungBase`, and for each of `STEPS` the lowest row that is dark, or nan."""

    across: Floats
    share: Floats
    lowest: Floats


def expected_base(canvas: Canvas, side: str, *, alone: bool, level: Field | None = None) -> LungBase:
    """Places one lung's base.

    Args:
        canvas: the picture and its anatomy.
        side: the patient's side.
        alone: without the other lung as a model, because it is hidden as well.
        level: float32 (H, W), grey level below which a place is lung; None for one level everywhere.
    """
    beside = "left" if side == "right" else "right"
    other = canvas.chest.lung(beside)
    alone = alone or not _is_model(canvas, other)
    width = canvas.chest.thoracic_width
    height = USUAL_HEIGHT * width if alone else other.bottom - other.top
    frame = _frame(canvas, side, None if alone else other, height, level)
    if alone:
        lowest = (frame.lowest, _frame(canvas, beside, None, height, None).lowest)
        course = _usual(canvas, lowest, height)
    else:
        course = _like(other, ACROSS * width, height, leftwards=side == "left")
    course = _through_what_is_seen(course, frame.lowest, height)
    dome = np.interp(np.clip(frame.across, 0.0, 1.0), STEPS, course)
    rows = np.arange(canvas.gray.shape[0])[:, None]
    inside = (frame.share > 0.0) & (frame.share < 1.0) & (rows < dome) & canvas.chest.field
    across, share = frame.across.astype(np.float32), frame.share.astype(np.float32)
    return LungBase(across, share, dome.astype(np.float32), inside, float(height), ACROSS * width)


def _frame(canvas: Canvas, side: str, other: Lung | None, height: float, level: Field | None) -> _Frame:
    lung = canvas.chest.lung(side)
    rows = np.arange(canvas.gray.shape[0], dtype=np.float64)
    columns = np.arange(canvas.gray.shape[1], dtype=np.float64)[None]
    inward = 1.0 if side == "right" else -1.0
    wall, medial = _wall(lung, other, rows, height), _medial(lung, rows)
    share = (columns - wall[:, None]) / np.copysign(np.maximum(np.abs(medial - wall), 8.0), inward)[:, None]
    across = inward * (columns - wall[:, None]) / (ACROSS * canvas.chest.thoracic_width)
    if level is None:
        usual = float(np.median(canvas.gray[lung.mask])) + 0.5 * canvas.contrast(side)
        level = np.full_like(canvas.gray, usual)
    return _Frame(across, share, _lowest_dark(canvas, lung.mask, level, share, across))


def _is_model(canvas: Canvas, lung: Lung) -> bool:
    """Whether a lung is tall enough and its angle deep enough below the dome to be free of fluid."""
    height = max(1.0, lung.bottom - lung.top)
    depth = float(lung.bottom - lung.diaphragm[:, 1].min()) / height
    return depth > LEAST_DEPTH and height > LEAST_HEIGHT * canvas.chest.thoracic_width


def _wall(lung: Lung, other: Lung | None, rows: Floats, height: float) -> Floats:
    """The chest wall; fluid pulls the traced border inwards, so below its reach it is carried on."""
    wall = lung.wall_at(rows)
    start = lung.bottom - 0.16 * height
    at = int(np.clip(start, 0, len(rows) - 1))
    seen = (rows > start - 0.2 * height) & (rows < start)
    slope = float(np.polyfit(rows[seen], wall[seen], 1)[0]) if seen.sum() > 20 else 0.0
    onward = wall[at] + np.clip(slope, -0.12, 0.12) * (rows - rows[at])
    if other is not None:
        there = other.wall_at(rows)
        mirrored = wall[at] - (there - there[at])
        onward = (onward + mirrored) / 2
    return np.where(rows > start, onward, wall)


def _medial(lung: Lung, rows: Floats) -> Floats:
    """The mediastinal border, carried on below where it was lost; the left heart border runs outwards all the way."""
    leftwards = lung.angle[0] > float(lung.medial[-1, 0])
    medial = _extended(lung.medial, rows, 0.9 if leftwards else 0.35)
    if leftwards:
        foot = float(lung.medial[-1, 1])
        medial = np.where(rows > foot, np.maximum(medial, lung.medial[-1, 0] + 0.3 * (rows - foot)), medial)
    return medial


def _extended(border: Floats, rows: Floats, steepest: float) -> Floats:
    """A border carried on below its end along its last direction, no steeper sideways than `steepest`."""
    order = np.argsort(border[:, 1], kind="stable")
    across: Floats = np.interp(rows, border[order, 1], border[order, 0])
    end_y = float(border[-1, 1])
    last = border[(border[:, 1] > end_y - 70) & (border[:, 1] < end_y - 12)]
    slope = float(np.polyfit(last[:, 1], last[:, 0], 1)[0]) if len(last) > 8 else 0.0
    below = rows > end_y - 12
    start = float(np.interp(end_y - 12, border[order, 1], border[order, 0]))
    across[below] = start + np.clip(slope, -steepest, steepest) * (rows[below] - (end_y - 12))
    return across


def _lowest_dark(canvas: Canvas, lung: Mask, level: Field, share: Floats, across: Floats) -> Floats:
    """For each of `STEPS` the lowest row that is as dark as lung and joined to it; nan where there is none."""
    dark = (blur(canvas.gray, 3.0) < level) & (share > 0.02) & (share < 0.93) & canvas.chest.field
    opened = cv2.morphologyEx(dark.astype(np.uint8), cv2.MORPH_OPEN, np.ones((9, 9), np.uint8))
    _, labels = cv2.connectedComponents(opened)
    inside = lung & (opened > 0)
    lowest = np.full(len(STEPS), -1.0)
    if inside.any():
        rows, columns = np.nonzero(labels == np.bincount(labels[inside]).argmax())
        np.maximum.at(lowest, np.clip(np.rint(across[rows, columns] * 100), 0, 100).astype(int), rows)
    return np.where(lowest < 0, np.nan, lowest)


def _usual(canvas: Canvas, lowest: tuple[Floats, Floats], height: float) -> Floats:
    """A usual dome whose angle lies as low as either lung is seen, or as its height lets expect."""
    right, left = canvas.chest.right, canvas.chest.left
    bottom = max(right.bottom, left.bottom, min(right.top, left.top) + height)
    for each in lowest:
        at_wall, inner = each[3:10], each[14:75]
        # Dark lung that ends higher at the wall than farther in ends on fluid: its angle is hidden below.
        if np.isfinite(at_wall).any() and np.isfinite(inner).any():
            deepest = float(np.nanmax(inner))
            if float(np.nanmedian(at_wall)) < deepest - 0.01 * height:
                bottom = max(bottom, deepest + 0.7 * USUAL_DEPTH * height)
    bottom = min(bottom, 0.97 * canvas.gray.shape[0])
    rise = (1 - np.exp(-STEPS / 0.17)) * (1.05 - 0.15 * STEPS**2)
    course: Floats = bottom - USUAL_DEPTH * height * rise
    return course


def _like(other: Lung, width: float, height: float, *, leftwards: bool) -> Floats:
    """The other side's diaphragm by its distance from the chest wall; where its heart hides it, about level."""
    points = other.diaphragm
    away = np.abs(points[:, 0] - other.wall_at(points[:, 1])) / width
    order = np.argsort(away, kind="stable")
    course = np.interp(STEPS, away[order], points[order, 1])
    if not leftwards:
        # A left dome is seen up to the heart only, before its top.
        lift = np.clip(float(points[:, 1].min()) - (other.bottom - USUAL_DEPTH * height), 0.0, 0.1 * height)
        course = course - lift * (1 - np.exp(-np.clip(STEPS - away.max(), 0.0, None) / 0.12))
    # Beside the heart a left dome is the flatter one.
    steeper = 0.7 if leftwards else 1.25
    return np.asarray(other.bottom - steeper * (other.bottom - course))


def _through_what_is_seen(course: Floats, lowest: Floats, height: float) -> Floats:
    """The course moved onto the dome where that is seen: from the mediastinum outwards until fluid begins."""
    seen = np.isfinite(lowest) & (STEPS > 0.02)
    known = np.flatnonzero(seen)
    if len(known) < 8:
        return course
    own = np.interp(np.arange(len(STEPS)), known, _calm(lowest[known], 1.0))
    # A dome falls all the way to the wall; where dark lung ends higher again, it ends on a meniscus.
    top = 12 + int(own[12:60].argmin())
    corner = known[0] + int(own[known[0] : max(top, known[0]) + 1].argmax())
    hidden = top < 20 and own[12:60].max() - own[top] > 0.03 * height
    dome = seen & (np.arange(len(STEPS)) > corner + 1)
    apart = own - course
    # Highest at the wall and falling all the way, it is a fluid's surface, and the dome is hidden.
    most = (0.16 if dome.sum() > 12 else ALIKE) * height
    if hidden or dome.sum() < 5 or abs(float(np.median(apart[dome]))) > most:
        return np.where(seen, course + np.clip(apart, 0.0, ALIKE * height), course)
    at = np.flatnonzero(dome)
    lateral = float(np.median(apart[at[:5]]))
    return _calm(
        course + np.where(np.arange(len(STEPS)) < at[0], lateral, np.interp(np.arange(101), at, apart[at])),
        1.2,
    )


def _calm(values: Floats, sigma: float) -> Floats:
    calm = cv2.GaussianBlur(values[:, None], (1, 9), 0, sigmaY=sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(calm[:, 0], np.float64)
