"""The judge's map of a frontal chest radiograph: midline, lung fields, heart shadow, pleural bases."""

from __future__ import annotations

import numpy as np

from plantain.offline.instruments.anatomy import Anatomy, content_box, ellipse
from plantain.offline.instruments.lung_fields import between, lung_fields
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
    pair = lung_fields(smooth, (top, bottom, left, right))
    midline = between(*pair) if pair else left + width / 2
    right_lung, left_lung = pair or (
        ellipse(
            level.shape, (midline + sign * 0.23 * width, top + 0.42 * height), (0.17 * width, 0.32 * height)
        )
        & field
        for sign in (-1, 1)
    )
    both = right_lung | left_lung
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
        () if pair else ("lung fields not found, taken from proportions",),
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
