"""The pleura's course over apex and chest wall, and the line along it where the lung has come away."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.chest.canvas import Canvas, blur
from plantain.offline.chest.outline import Lung, cheapest_path
from plantain.pixels.arrays import Field, Floats, Mask

LEAST_LINE = 0.012
"""Mean height of the line over lung-to-soft-tissue contrast, times its length: ribs reach this as well."""
LEAST_STEP = 0.05
"""Fall of brightness across the line, in parts of the same contrast: at a rib there is none."""
LEAST_LENGTH, LEAST_LENGTH_TOLD = 0.40, 0.25
"""Length of a line with less air's worth of darkness outside it than on the other side, in parts of the lung's height:
ribs that run along the wall reach 0.34, and where the side is named the lower one is believed."""
LEAST_WORTH = 0.03
"""Line and darkness together along that length, in parts of the lung-to-soft-tissue contrast."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Air in the pleural space: the region, the lung's edge from apex down, and how far along it is open (0..1)."""

    region: Mask
    line: Floats
    weight: npt.NDArray[np.float64]


def outer_course(lung: Lung) -> Floats:
    """The pleura's outer course: over the apex from the mediastinum, then down the chest wall; evenly spaced."""
    first = lung.medial[
        : max(2, int(np.searchsorted(lung.medial[:, 1], lung.top + 0.07 * (lung.bottom - lung.top))))
    ]
    course = np.vstack([first[::-1], lung.lateral])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(course, axis=0).T))])
    at = np.arange(0, along[-1], 3.0)
    return np.stack([np.interp(at, along, course[:, 0]), np.interp(at, along, course[:, 1])], axis=1)


def calm(values: npt.NDArray[np.float64], sigma: float) -> npt.NDArray[np.float64]:
    wide = cv2.GaussianBlur(values[:, None], (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(wide[:, 0], np.float64)


def inward_normals(course: Floats, lung: Lung) -> Floats:
    tangent = np.stack([calm(np.gradient(course[:, 0]), 14.0), calm(np.gradient(course[:, 1]), 14.0)], axis=1)
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
    rows, columns = np.nonzero(lung.mask)
    centre = np.array([columns.mean(), rows.mean()])
    if np.sum((centre - course) * normal) < 0:
        normal = -normal
    return normal


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """The lung's border unrolled: one row for every 3 px of the course, one column for every pixel inwards.

    Attributes:
        course: (N, 2), x and y of the chest wall from the mediastinum over the apex down.
        smooth, inward: (N, 2), the same calmed, and the unit normals into the lung.
        depths: (M,), pixels inwards of each column.
        peak: row of the apex.
    """

    course: Floats
    smooth: Floats
    inward: Floats
    depths: npt.NDArray[np.float64]
    peak: int

    def look(self, plane: Field, rows: npt.NDArray[np.intp] | None = None) -> Field:
        """`plane` along the strip, of the given rows."""
        rows = np.arange(len(self.course)) if rows is None else rows
        at = self.smooth[rows][:, None] + self.depths[None, :, None] * self.inward[rows][:, None]
        seen: Field = cv2.remap(
            plane, at[..., 0].astype(np.float32), at[..., 1].astype(np.float32), cv2.INTER_LINEAR
        )
        return seen


def strip_of(canvas: Canvas, side: str, first: float) -> Strip:
    """One lung's border, from `first` pixels inwards to a fifth of the thorax."""
    lung = canvas.chest.lung(side)
    course = outer_course(lung)
    smooth = np.stack([calm(course[:, 0], 14.0), calm(course[:, 1], 14.0)], axis=1)
    depths = np.arange(first, 0.2 * canvas.chest.thoracic_width, 1.0)
    return Strip(course, smooth, inward_normals(course, lung), depths, int(course[:, 1].argmin()))


def find_space(canvas: Canvas, side: str, *, named: bool) -> tuple[Space, float, float] | None:
    """The air of one side, its worth and its step in grey levels: against the other side, else by the line alone."""
    return _beside_the_other(canvas, side, named=named) or _by_line(canvas, side, named=named)


def _beside_the_other(canvas: Canvas, side: str, *, named: bool) -> tuple[Space, float, float] | None:
    """A thin line outside of which this lung is darker than the other one at the like place: ribs are there on both."""
    lung, other = canvas.chest.lung(side), canvas.chest.lung("left" if side == "right" else "right")
    strip = strip_of(canvas, side, 5.0)
    there = strip_of(canvas, "left" if side == "right" else "right", 5.0)
    contrast = canvas.contrast(side)
    height = lung.bottom - lung.top
    rows = np.arange(len(strip.course))
    like = there.peak + (rows - strip.peak) * (other.bottom - other.top) / height
    like_rows = np.clip(np.rint(like), 0, len(there.course) - 1).astype(np.intp)
    plane = blur(canvas.gray, 0.8)
    sheet = strip.look(plane)
    difference = blur(sheet, 6.0) - blur(there.look(plane, like_rows), 6.0)
    difference = cv2.GaussianBlur(difference, (1, 41), 0, sigmaY=8.0) / np.float32(contrast)
    step = cv2.GaussianBlur(np.clip(_step_map(difference), -0.2, 0.2), (1, 31), 0, sigmaY=5.0)
    ridge = cv2.GaussianBlur(_ridge(sheet, contrast), (1, 15), 0, sigmaY=2.5)
    value = ridge + 0.25 * np.clip(step, -0.1, 0.12)
    down = (strip.course[:, 1] - lung.top) / height
    apical = (rows <= strip.peak) | (down < 0.10)
    value[apical[:, None] & (strip.depths[None] > 0.17 * canvas.chest.thoracic_width)] = -0.05
    path = cheapest_path(-value * 100, 2, 0.4).astype(int)
    line, dark = ridge[rows, path], step[rows, path]
    run = calm(((line > 0.008) & (dark > 0.015)).astype(float), 8.0)
    longest = _longest(run > 0.5)
    if longest is None:
        return None
    start, stop = longest
    length = 3.0 * (stop - start) / height
    worth = float(line[start:stop].mean() + 0.25 * dark[start:stop].mean()) * min(1.0, length / 0.3)
    if length < (LEAST_LENGTH_TOLD if named else LEAST_LENGTH) or worth < LEAST_WORTH:
        return None
    start, stop = _as_far_as(run, start, stop)
    # Air rises: what begins near the apex goes on over it.
    if rows[start] > strip.peak and down[start] < 0.3:
        start = max(0, strip.peak - 6)
    across = _step_across(sheet[start:stop], path[start:stop])
    if across < -0.03 * contrast:
        return None
    # The line itself and what is left of the wall's slope take about a fifth off what is measured across it.
    levels = max(1.25 * across, 0.7 * float(np.median(dark[start:stop])) * contrast)
    return _space_between(strip, lung, path, start, stop), worth, levels


def _ridge(sheet: Field, contrast: float) -> Field:
    """How much brighter each place is than both sides of it 4 px away; ribs cross the course and average out."""
    ridge = np.full_like(sheet, -1.0)
    ridge[:, 4:-4] = np.minimum(sheet[:, 4:-4] - sheet[:, :-8], sheet[:, 4:-4] - sheet[:, 8:])
    return np.asarray(np.clip(ridge / np.float32(contrast), -0.05, 0.12), np.float32)


def _step_map(sheet: Field) -> Field:
    """Mean of the 26 px inwards of each place minus that of the 22 px outwards of it; 0 next to the wall."""
    total = np.cumsum(np.pad(sheet, ((0, 0), (1, 0))), axis=1)
    place = np.arange(sheet.shape[1])

    def mean(first: int, last: int) -> Field:
        low, high = (np.clip(place + end, 0, sheet.shape[1]) for end in (first, last))
        return np.asarray((total[:, high] - total[:, low]) / np.maximum(high - low, 1), np.float32)

    step = mean(4, 30) - mean(-25, -3)
    step[:, :5] = 0.0
    return step


def _as_far_as(run: npt.NDArray[np.float64], start: int, stop: int) -> tuple[int, int]:
    """The run carried on to where next to nothing of the line is left."""
    while start > 0 and run[start - 1] > 0.12:
        start -= 1
    while stop < len(run) and run[stop] > 0.12:
        stop += 1
    return start, stop


def _space_between(strip: Strip, lung: Lung, path: npt.NDArray[np.intp], start: int, stop: int) -> Space:
    """The region between wall and line."""
    edge = strip.smooth + calm(strip.depths[path], 2.0)[:, None] * strip.inward
    part = slice(start, stop)
    region = np.zeros(lung.mask.shape, np.uint8)
    ring = np.vstack([strip.course[part], edge[part][::-1]])
    cv2.fillPoly(region, [np.round(ring).astype(np.int32)], 1)
    return Space((region > 0) & lung.mask, edge[part], np.ones(stop - start))


def _by_line(canvas: Canvas, side: str, *, named: bool) -> tuple[Space, float, float] | None:
    """The brightest thin line that runs parallel to the chest wall with a darker side towards it."""
    lung = canvas.chest.lung(side)
    strip = strip_of(canvas, side, 7.0)
    contrast = canvas.contrast(side)
    sheet = strip.look(blur(canvas.gray, 0.8))
    ridge = cv2.GaussianBlur(_ridge(sheet, contrast), (1, 9), 0, sigmaY=1.6)
    # Over the apex the wall's normals run together and the upper ribs run along it: no deep line is believed there.
    down = (strip.course[:, 1] - lung.top) / (lung.bottom - lung.top)
    rows = np.arange(len(strip.course))
    apical = (rows <= strip.peak) | (down < 0.10)
    ridge[apical[:, None] & (strip.depths[None] > 0.17 * canvas.chest.thoracic_width)] = -0.05
    path = cheapest_path(-ridge * 100, 2, 0.4).astype(int)
    along = ridge[rows, path]
    run = calm((along > 0.011).astype(float), 8.0)
    longest = _longest((run > 0.5) & ~apical)
    if longest is None:
        return None
    start, stop = longest
    edge = strip.smooth + calm(strip.depths[path], 2.0)[:, None] * strip.inward
    length = float(np.hypot(*np.diff(edge[start:stop], axis=0).T).sum()) / (lung.bottom - lung.top)
    score = float(along[start:stop].mean()) * min(1.0, length / 0.3)
    step = _step_across(sheet[start:stop], path[start:stop])
    asked = 0.7 if named else 1.0
    if length < 0.13 or score < asked * LEAST_LINE or step < asked * LEAST_STEP * contrast:
        return None
    start, stop = _as_far_as(run, start, stop)
    return _space_between(strip, lung, path, start, stop), score, 1.1 * step


def _step_across(sheet: Field, columns: npt.NDArray[np.intp]) -> float:
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


def _longest(held: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    return max(((int(a), int(b)) for a, b in runs), key=lambda r: r[1] - r[0]) if runs else None
