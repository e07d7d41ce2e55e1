"""Pulls a roughly placed lung to the borders that the picture shows, each sought the way it runs.

The apex is sought along the drawing's normals; chest wall and mediastinum row by row, the diaphragm column by
column, each as the cheapest smooth path through the steps from dark lung to bright surroundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.chest.drawing import outline
from plantain.pixels.arrays import Field, Floats, Mask

HIGH, FAR = 400.0, 0.15
"""Grey levels for each lung's height by which a dome lies higher than the drawing's, beyond so much of it."""
_SPAN = 6
"""Half the rows or columns of the half-size picture over which a step is averaged."""


@dataclass(frozen=True, slots=True, eq=False)
class Lung:
    """One lung: filled mask and its three borders as (N, 2) arrays of x, y.

    Attributes:
        mask: bool (H, W).
        medial: from the apex down the mediastinum and heart to the cardiophrenic angle.
        diaphragm: from the cardiophrenic angle to the costophrenic angle.
        lateral: from the apex down the chest wall to the costophrenic angle.
    """

    mask: Mask
    medial: Floats
    diaphragm: Floats
    lateral: Floats

    @property
    def angle(self) -> tuple[float, float]:
        """The costophrenic angle, x and y."""
        return float(self.lateral[-1, 0]), float(self.lateral[-1, 1])

    @property
    def top(self) -> float:
        return max(0.0, float(self.lateral[:, 1].min()))

    @property
    def bottom(self) -> float:
        return self.angle[1]

    def wall_at(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """x of the chest wall at each row."""
        return _column_at(self.lateral, rows)

    def medial_at(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """x of the mediastinal border at each row."""
        return _column_at(self.medial, rows)

    def dome_at(self, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """y of the diaphragm at each column."""
        order = np.argsort(self.diaphragm[:, 0], kind="stable")
        down: npt.NDArray[np.float64] = np.interp(columns, self.diaphragm[order, 0], self.diaphragm[order, 1])
        return down


def _column_at(border: Floats, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    order = np.argsort(border[:, 1], kind="stable")
    across: npt.NDArray[np.float64] = np.interp(rows, border[order, 1], border[order, 0])
    return across


def trace_lung(gray: Field, box: npt.NDArray[np.float64], side: str, other_base: float | None = None) -> Lung:
    """One lung from where the drawing was found.

    Args:
        gray: (H, W), grey levels.
        box: x, y, width, height of the pair of lungs.
        side: the patient's "right" or "left".
        other_base: y of the other lung's costophrenic angle, where it was traced before: the two rarely differ much.
    """
    half = cv2.GaussianBlur(cv2.resize(gray, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), (0, 0), 1.2)
    if side == "left":  # sought in the mirror, where the chest wall is on the left as well
        half = half[:, ::-1].copy()
        box = np.array([gray.shape[1] - box[0] - box[2], *box[1:]])
    left, top, width, height = box / 2
    drawn = outline(side) * (width, height) + (0, top)
    drawn[:, 0] = left + drawn[:, 0] if side == "right" else left + width - drawn[:, 0]
    middle = left + 0.5 * width
    apex = _apex(half, drawn, width)
    wall = _wall(half, drawn, top, width, height)
    medial = _medial(half, drawn, wall, top, height, middle, width)
    dome = _dome(
        half, drawn, wall, medial, top, width, height, middle, None if other_base is None else other_base / 2
    )
    lung = _deepen(half, _assemble(apex, wall, medial, dome, half.shape), width)
    return _to_full(lung, gray.shape, mirrored=side == "left")


def _step(half: Field, axis: int, near: int = 1, far: int = 2 * _SPAN) -> Field:
    """Mean just after minus mean just before each place along an axis (0 down, 1 right)."""
    length = far - near
    before = np.zeros(2 * far + 1, np.float32)
    before[far - far : far - near] = -1.0 / length
    kernel = before - before[::-1]
    shape = kernel[:, None] if axis == 0 else kernel[None, :]
    across = np.full((1, 5) if axis == 0 else (5, 1), 0.2, np.float32)
    stepped: Field = cv2.filter2D(cv2.filter2D(half, -1, shape), -1, across)
    return stepped


def cheapest_path(cost: Field, reach: int, stiffness: float) -> npt.NDArray[np.float64]:
    """For each row the column of the cheapest path whose column moves at most `reach` a row."""
    count, states = cost.shape
    total = cost[0].astype(np.float64)
    back = np.zeros((count, states), np.int32)
    shifts = np.arange(-reach, reach + 1)
    place = np.arange(states)
    padded = np.full(states + 2 * reach, 1e12)
    moved = np.lib.stride_tricks.sliding_window_view(padded, states)
    dear = (stiffness * shifts * shifts)[:, None]
    for row in range(1, count):
        padded[reach : reach + states] = total
        options = moved + dear
        choice = options.argmin(axis=0)
        back[row] = np.clip(place + shifts[choice], 0, states - 1)
        total = options[choice, place] + cost[row]
    path = np.zeros(count, np.int64)
    path[-1] = total.argmin()
    for row in range(count - 1, 0, -1):
        path[row - 1] = back[row, path[row]]
    return path.astype(np.float64)


def _smoothed(values: npt.NDArray[np.float64], sigma: float) -> npt.NDArray[np.float64]:
    radius = min(int(3 * sigma), len(values) - 1)
    at = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (at / sigma) ** 2)
    # Point reflection at both ends keeps the ends and their slope.
    lead = 2 * values[0] - values[1 : radius + 1][::-1]
    tail = 2 * values[-1] - values[-radius - 1 : -1][::-1]
    return np.convolve(np.concatenate([lead, values, tail]), kernel / kernel.sum(), mode="valid")


def _apex(half: Field, drawn: Floats, width: float) -> Floats:
    """The top of the lung, wall side first: the drawn cap moved up or down as one to the strongest edge."""
    cap = np.vstack([drawn[-14:], drawn[:11]])
    centre = cap.mean(axis=0) + np.array([0.0, 0.12 * width])
    outward = cap - centre
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    offsets = np.arange(-0.05 * width, 0.045 * width, 1.0)

    def look(shift: float) -> Field:
        at = (cap[:, None] + (offsets + shift)[None, :, None] * outward[:, None]).astype(np.float32)
        seen: Field = cv2.remap(
            half, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        return seen

    gain = sum((look(s) - look(-s)) / 3 for s in (2.0, 4.0, 7.0))
    cost = -gain + 6.0 * (offsets / (0.05 * width))[None, :] ** 2
    chosen = offsets[cheapest_path(cost.astype(np.float32), 2, 3.0).astype(int)]
    moved: Floats = cap + _smoothed(chosen, 3.0)[:, None] * outward
    return moved


def _rows(top: float, height: float, width: float, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.arange(int(top + 0.1 * height), min(shape[0] - 2, int(top + max(1.3 * width, 1.1 * height))))


def _wall(half: Field, drawn: Floats, top: float, width: float, height: float) -> Floats:
    """The chest wall's inner border (on the left of the picture), row by row."""
    rows = _rows(top, height, width, half.shape)
    expected = _column_at(drawn[70:], rows.astype(float))
    reach = 0.075 * width
    offsets = np.arange(-reach, reach)
    at = (expected[:, None] + offsets[None]).astype(np.float32)
    step = -_step(half, 1, 1, 14)
    looked = cv2.remap(
        step, at, np.repeat(rows[:, None], len(offsets), 1).astype(np.float32), cv2.INTER_LINEAR
    )
    cost = -looked + 5.0 * (offsets / reach)[None] ** 2
    path = cheapest_path(cost, 2, 6.0)
    return np.stack([expected + offsets[path.astype(int)], rows], axis=1)


def _dome(
    half: Field, drawn: Floats, wall: Floats, medial: Floats, top: float, width: float, height: float,
    middle: float, expected: float | None,
) -> Floats:  # fmt: skip
    """The diaphragm, column by column from the wall towards the midline: the first broad step to bright."""
    columns = np.arange(max(0, int(wall[:, 0].min()) - 2), int(middle - 0.05 * width))
    first = int(top + 0.42 * height)
    last = min(half.shape[0] - 8, int(top + max(1.25 * width, 1.05 * height)))
    step = _step(half, 0, 1, 14)[first:last, columns]
    start = int(top + 0.3 * height)
    broad = cv2.blur(half, (21, 5))
    brightest = np.maximum.accumulate(broad[start:last, columns], axis=0)[first - start :]
    # Brightness already met on the way down from the lung: below the dome nothing is lung any more.
    lit = np.maximum.accumulate(np.roll(brightest, 12, axis=0), axis=0)
    lit[:12] = brightest[:12].min(axis=0)
    dark, bright = np.percentile(half[int(top + 0.15 * height) : last, columns], [20, 92])
    cost = -step + 0.7 * np.maximum(lit - (dark + 0.78 * (bright - dark)), 0)
    # A bright rib in a pale film lights up all below it; no lung that was matched ends half as high as the drawing.
    floor = np.interp(columns, drawn[70:43:-1, 0], drawn[70:43:-1, 1])
    short = (floor[None] - np.arange(first, last)[:, None]) / height
    cost = cost + HIGH * np.maximum(short - FAR, 0)
    if expected is not None:
        off = (np.arange(first, last) - (expected - 0.06 * width)) / (0.12 * width)
        cost = cost + 12.0 * np.minimum(np.maximum(np.abs(off) - 0.5, 0) ** 2, 4.0)[:, None]
    near_wall = columns[None, :] < np.interp(np.arange(first, last), wall[:, 1], wall[:, 0])[:, None] + 3
    heart = columns[None, :] > np.interp(np.arange(first, last), medial[:, 1], medial[:, 0])[:, None] - 3
    cost = np.where(near_wall | heart, 0.0, cost).astype(np.float32)
    path = cheapest_path(np.ascontiguousarray(cost.T), 4, 1.6)
    path = _above_gas(broad[first:last, columns], path, int(0.2 * width), dark, bright)
    return np.stack([columns.astype(float), _smoothed(path, 3.0) + first], axis=1)


def _above_gas(
    broad: Field, path: npt.NDArray[np.float64], reach: int, dark: float, bright: float
) -> npt.NDArray[np.float64]:
    """Lifts the diaphragm off the floor of a gas bubble: over it lies a bright band that no lung holds."""
    lifted = path.copy()
    for column, floor in enumerate(path.astype(int)):
        start = max(0, floor - reach)
        profile = broad[start:floor, column]
        if len(profile) < 12:
            continue
        band = int(profile.argmax())
        least = dark + 0.70 * (bright - dark)
        dip = 0.16 * (bright - dark)
        before, after = profile[: band + 1].min(), profile[band:].min()
        if profile[band] > least and min(profile[band] - before, profile[band] - after) > dip:
            rise = np.diff(profile[: band + 1])
            lifted[column] = start + (int(rise.argmax()) if len(rise) else band)
    found = lifted != path
    if found.sum() < 0.06 * reach * 5:
        return path
    # Columns between lifted ones follow them; the rest keep their own.
    at = np.flatnonzero(found)
    inner = np.arange(at[0], at[-1] + 1)
    path = path.copy()
    path[inner] = np.minimum(path[inner], np.interp(inner, at, lifted[at]))
    return path


def _medial(
    half: Field, drawn: Floats, wall: Floats, top: float, height: float, middle: float, width: float
) -> Floats:
    """The mediastinal border, row by row past the diaphragm: the broadest step from dark to bright."""
    lowest = top + max(1.05 * height, 0.95 * width)
    rows = np.arange(int(top + 0.08 * height), int(min(lowest, half.shape[0] - 2)))
    expected = _column_at(drawn[:44], rows.astype(float))
    low, high = wall[:, 0].min() + 0.04 * width, middle - 0.01 * width
    columns = np.arange(int(low), int(high))
    step = _step(half, 1, 1, 14)[rows[0] : rows[-1] + 1, columns]
    drift = (columns[None] - expected[:, None]) / (0.12 * width)
    # The heart may reach far out on one side, so the drawing binds less the lower down.
    freedom = np.interp(rows, [top, top + 0.45 * height, top + 0.9 * height], [9.0, 5.0, 1.2])
    inside = columns[None] > np.interp(rows, wall[:, 1], wall[:, 0])[:, None] + 0.03 * width
    cost = np.where(inside, -step + freedom[:, None] * np.minimum(drift**2, 9.0), 200.0)
    path = cheapest_path(cost.astype(np.float32), 3, 1.5)
    return np.stack([_smoothed(path, 4.0) + columns[0], rows], axis=1)


def _assemble(apex: Floats, wall: Floats, medial: Floats, dome: Floats, shape: tuple[int, ...]) -> Lung:
    """Cuts the borders where they meet and joins them."""
    # Costophrenic angle: the first row from below at which the wall still lies above the diaphragm.
    under = wall[:, 1] - np.interp(wall[:, 0], dome[:, 0], dome[:, 1])
    crossing = np.flatnonzero(under > 0)
    corner = int(crossing[0]) if len(crossing) else len(wall) - 1
    wall = wall[: max(corner, 8) + 1]
    wall = np.stack([_smoothed(wall[:, 0], 10.0), wall[:, 1]], axis=1)
    dome = _no_lower_than_angle(dome, wall[-1], shape[1])
    below = medial[:, 1] - np.interp(medial[:, 0], dome[:, 0], dome[:, 1])
    meeting = np.flatnonzero(below > 0)
    foot = int(meeting[0]) if len(meeting) else len(medial) - 1
    medial = medial[: max(foot, 8) + 1]
    floor = dome[(dome[:, 0] > wall[-1, 0]) & (dome[:, 0] < medial[-1, 0])][::-1]
    medial, floor = _cardiophrenic(medial, floor)
    top_wall = apex[apex[:, 1] < wall[0, 1] - 2]
    peak = int(top_wall[:, 1].argmin()) if len(top_wall) else 0
    outer, inner = top_wall[: peak + 1], top_wall[peak:]
    inner = inner[inner[:, 1] < medial[0, 1] - 2]
    lateral = np.vstack([outer[::-1], wall])
    inside = np.vstack([inner, medial])
    floor = np.vstack([inside[-1:], floor, lateral[-1:]])
    return Lung(np.zeros(shape[:2], bool), inside, floor, lateral)


def _no_lower_than_angle(dome: Floats, angle: Floats, side: int) -> Floats:
    """No part of a diaphragm lies below its costophrenic angle: what seems to is the floor of a gas bubble."""
    away = dome[:, 0] - angle[0]
    usual = angle[1] - 0.055 * side * (1 - np.exp(-np.maximum(away, 0) / (0.05 * side)))
    wrong = (away > 0.02 * side) & (dome[:, 1] > angle[1] - 0.008 * side)
    if not wrong.any():
        return dome
    return np.stack(
        [dome[:, 0], _smoothed(np.where(wrong, np.minimum(usual, dome[:, 1]), dome[:, 1]), 4.0)], axis=1
    )


def _cardiophrenic(medial: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """Parts heart border and diaphragm at the corner between them, whichever path found it.

    The corner is the point farthest down and towards the midline.
    """
    middle = len(medial) // 2
    chain = np.vstack([medial, floor])
    lower = chain[middle:]
    # Steeper than this is heart, flatter is diaphragm (the wall is on the left, y grows downwards).
    corner = middle + int(np.argmax(lower[:, 1] + 0.85 * lower[:, 0]))
    corner = min(max(corner, 8), len(chain) - 2)
    return chain[: corner + 1], chain[corner + 1 :]


def _deepen(half: Field, lung: Lung, width: float) -> Lung:
    """Follows the dark wedge of lung between chest wall and diaphragm down to where it ends.

    The paths above are too stiff for the sharp angle: what is dark there and joined to the lung belongs to it.
    """
    corner_x, corner_y = lung.lateral[-1]
    low, high = int(max(0, corner_y - 0.10 * width)), int(min(half.shape[0], corner_y + 0.13 * width))
    left, right = int(max(0, corner_x - 0.035 * width)), int(min(half.shape[1], corner_x + 0.16 * width))
    part = half[low:high, left:right]
    inside = np.zeros(half.shape, np.uint8)
    closed = np.vstack([lung.medial, lung.diaphragm[1:-1], lung.lateral[::-1]])
    cv2.fillPoly(inside, [np.round(closed).astype(np.int32)], 1)
    inside = inside[low:high, left:right]
    rows, columns = np.mgrid[low:high, left:right]
    floor = np.interp(columns[0], lung.diaphragm[::-1, 0], lung.diaphragm[::-1, 1])[None]
    under = (rows > floor + 0.03 * width) & (columns > corner_x + 0.03 * width)
    if inside.sum() < 50 or under.sum() < 50:
        return lung
    dark, bright = float(np.percentile(part[inside > 0], 30)), float(np.median(part[under]))
    if bright - dark < 12:
        return lung
    candidate = ((part < dark + 0.5 * (bright - dark)) | (inside > 0)).astype(np.uint8)
    candidate = cv2.morphologyEx(candidate, cv2.MORPH_OPEN, np.ones((5, 3), np.uint8))
    # The outer soft tissue is dark as well: nothing beyond the wall's own line may join.
    slope = np.polyfit(lung.lateral[-60:, 1], lung.lateral[-60:, 0], 1)[0] if len(lung.lateral) > 60 else 0.0
    beyond = columns < corner_x + np.clip(slope, -0.3, 0.3) * (rows - corner_y) - 0.022 * width
    candidate[beyond] = 0
    count, labels = cv2.connectedComponents(np.maximum(candidate, inside))
    joined = labels == np.bincount(labels[inside > 0], minlength=count).argmax()
    return _reshape(lung, joined, left, low, width)


def _reshape(lung: Lung, joined: Mask, left: int, low: int, width: float) -> Lung:
    """The borders of a lung with its angle as found: the lowest point of what joined it."""
    filled_rows = np.flatnonzero(joined.any(axis=1))
    first_column = joined.argmax(axis=1)
    bottom = int(filled_rows[-1])
    start = int(min(bottom - 1, 0.03 * width))
    along = np.arange(start, bottom + 1)
    along = along[joined[along].any(axis=1)]
    outer = np.stack([first_column[along] + left, along + low], axis=1).astype(np.float64)
    if len(outer) < 12:
        return lung
    outer[:, 0] = _smoothed(outer[:, 0], 4.0)
    lateral = np.vstack([lung.lateral[lung.lateral[:, 1] < outer[0, 1]], outer])
    columns = np.arange(int(outer[-1, 0]) - left + 2, joined.shape[1] - 2)
    columns = columns[joined[:, columns].any(axis=0)]
    lowest = joined.shape[0] - 1 - joined[::-1][:, columns].argmax(axis=0)
    found = np.stack([columns + left, lowest + low], axis=1).astype(np.float64)
    if len(found) < 12:
        return lung
    found[:, 1] = _smoothed(found[:, 1], 3.0)
    kept = lung.diaphragm[lung.diaphragm[:, 0] > found[-1, 0]]
    diaphragm = np.vstack([kept, found[::-1], lateral[-1:]]) if len(kept) else lung.diaphragm
    return Lung(lung.mask, lung.medial, diaphragm, lateral)


def _to_full(lung: Lung, shape: tuple[int, ...], *, mirrored: bool) -> Lung:
    """From the half-size, perhaps mirrored picture to the full one, with the filled mask."""

    def full(border: Floats) -> Floats:
        grown = border * 2 + 0.5
        if mirrored:
            grown[:, 0] = shape[1] - 1 - grown[:, 0]
        return grown

    medial, diaphragm, lateral = full(lung.medial), full(lung.diaphragm), full(lung.lateral)
    canvas = np.zeros(shape[:2], np.uint8)
    closed = np.vstack([medial, diaphragm[1:-1], lateral[::-1]])
    cv2.fillPoly(canvas, [np.round(closed).astype(np.int32)], 1)
    return Lung(canvas.astype(bool), medial, diaphragm, lateral)
