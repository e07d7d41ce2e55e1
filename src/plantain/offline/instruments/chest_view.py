"""The judge's map of a frontal chest radiograph: midline, lung fields, heart shadow, pleural bases."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import Anatomy, content_box, ellipse
from plantain.offline.instruments.pair import blur, grow, hull
from plantain.pixels.arrays import Field, Mask

ANGLE = 3.0
"""The angles lie at least this many times as far from the midline as they reach out past the lungs."""


def chest_view(level: Field) -> Anatomy:
    """Maps a frontal radiograph (bright bone, dark air).

    Args:
        level: float32 (h, w) grey levels on the small frame.
    """
    smooth = blur(level, 2.0)
    top, bottom, left, right = content_box(smooth, 12.0)
    height, width = bottom - top, right - left
    field = np.zeros(level.shape, bool)
    field[top:bottom, left:right] = True
    midline = _midline(smooth, (top, bottom, left, right))
    lungs: dict[str, Mask] = {}
    notes: list[str] = []
    for name, sign in (("right", -1), ("left", 1)):
        found = _lung(smooth, (top, bottom, left, right), midline, sign)
        if found is None:
            notes.append(f"{name} lung field not found, taken from proportions")
            centre = (midline + sign * 0.23 * width, top + 0.42 * height)
            found = ellipse(level.shape, centre, (0.17 * width, 0.32 * height)) & field
        lungs[name] = found
    both = lungs["right"] | lungs["left"]
    rows = np.flatnonzero(both.any(axis=1))
    apex, base = int(rows[0]), int(rows[-1])
    depth = base - apex
    columns = np.flatnonzero(both.any(axis=0))
    thorax = float(columns[-1] - columns[0])
    down = np.zeros_like(both)
    shift = max(1, round(0.22 * depth))
    down[shift:] = both[:-shift]
    # Behind the dome of the diaphragm and the heart there is lung too, and a lesion may lie there.
    lower = np.zeros_like(both)
    lower[shift // 2 :] = both[: -(shift // 2)] if shift > 1 else both
    rows_all = np.arange(level.shape[0])[:, None]
    columns_all = np.arange(level.shape[1])[None, :]
    chest = hull(both) & field
    heart = ellipse(
        level.shape, (midline + 0.09 * thorax, apex + 0.72 * depth), (0.42 * thorax, 0.40 * depth)
    )
    # The clavicles reach from the apices up and out, past the lungs.
    shoulders = (np.abs(columns_all - midline) < 0.7 * thorax) & (
        np.abs(rows_all - apex - 0.06 * depth) < 0.18 * depth
    )
    mediastinum = (np.abs(columns_all - midline) < 0.2 * thorax) & (rows_all > apex - 0.1 * depth)
    return Anatomy(
        field,
        {
            "lungs": grow(both | lower, 0.04 * thorax) & field,
            "pleura": (grow(both | down, 0.05 * thorax)) & field,
            "bases": grow(_with_angles(both | lower, down, midline, 0.08 * thorax), 0.05 * thorax)
            & (rows_all > apex + 0.35 * depth)
            & field,
            "heart": heart & field,
            "mediastinum": mediastinum & (rows_all < base) & field,
            "chest": (grow(chest | down, 0.06 * thorax) | shoulders) & field,
        },
        midline,
        thorax,
        tuple(notes),
    )


def _with_angles(lungs: Mask, below: Mask, midline: float, outward: float) -> Mask:
    """The lungs and what lies below, and at the sides as low on one as on the other and further out: the angles."""
    columns = np.rint(2 * midline - np.arange(lungs.shape[1])).astype(int)
    inside = (columns >= 0) & (columns < lungs.shape[1])
    even = lungs | below
    even[:, inside] |= lungs[:, columns[inside]]
    step, middle = max(1, round(outward)), min(max(1, round(midline)), lungs.shape[1] - 1)
    out = even.copy()
    out[:, : middle - step] |= even[:, step:middle]
    out[:, middle + step :] |= even[:, middle : even.shape[1] - step]
    beside = np.abs(np.arange(lungs.shape[1]) - midline)[None, :] > ANGLE * outward
    return np.asarray(lungs & ~beside | below & ~beside | out & beside, bool)


def _midline(smooth: Field, box: tuple[int, int, int, int]) -> float:
    """The bright column (spine) between two dark ones (lungs) in the upper chest."""
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    rows = smooth[top + int(0.18 * height) : top + int(0.5 * height), left:right]
    profile = cv2.GaussianBlur(
        rows.mean(axis=0)[None, :].astype(np.float32), (0, 0), max(1.0, 0.025 * width)
    )[0]
    half = width // 2
    first = int(0.12 * width) + int(np.argmin(profile[int(0.12 * width) : half]))
    second = half + int(np.argmin(profile[half : int(0.88 * width)]))
    inner = profile[first : second + 1]
    if inner.size < 3:
        return left + width / 2
    lifted = inner - np.linspace(inner[0], inner[-1], inner.size)
    weights = np.clip(lifted - 0.5 * lifted.max(), 0, None)
    if weights.sum() <= 0:
        return left + width / 2
    found = left + first + float((weights * np.arange(inner.size)).sum() / weights.sum())
    centre = left + width / 2
    return found if abs(found - centre) < 0.15 * width else centre


def _lung(smooth: Field, box: tuple[int, int, int, int], midline: float, sign: int) -> Mask | None:
    """One lung field: what is dark within its half of the chest and does not reach the frame; None if implausible."""
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    window = np.zeros(smooth.shape, bool)
    window[
        top + int(0.04 * height) : top + int(0.84 * height),
        left + int(0.03 * width) : right - int(0.03 * width),
    ] = True
    columns = np.arange(smooth.shape[1])[None, :]
    window &= (columns - midline) * sign > 0.02 * width
    # Shoulders and the air beside the neck are as dark as lung: only what a lung can reach is looked at.
    window &= ellipse(
        smooth.shape, (midline + sign * 0.21 * width, top + 0.42 * height), (0.21 * width, 0.39 * height)
    )
    values = smooth[window].astype(np.uint8).reshape(1, -1)
    if values.size == 0:
        return None
    cut, _ = cv2.threshold(values, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    dark = (smooth < cut) & window
    dark = cv2.morphologyEx(dark.astype(np.uint8), cv2.MORPH_OPEN, np.ones((7, 7), np.uint8)).astype(bool)
    count, labels, stats, centres = cv2.connectedComponentsWithStats(dark.astype(np.uint8), connectivity=4)
    best: Mask | None = None
    best_area = 0.05 * height * width
    for index in range(1, count):
        x, w, area = (stats[index][i] for i in (cv2.CC_STAT_LEFT, cv2.CC_STAT_WIDTH, cv2.CC_STAT_AREA))
        offset = abs(centres[index][0] - midline) / width
        beside = (x + w >= right - 0.04 * width - 1) if sign > 0 else (x <= left + 0.04 * width + 1)
        if area > best_area and 0.1 < offset < 0.36 and not (beside and offset > 0.3):
            best, best_area = labels == index, float(area)
    if best is None:
        return None
    whole = hull(np.asarray(best, bool))
    return whole if whole.sum() < 0.36 * height * width else None
