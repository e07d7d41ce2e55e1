"""Removal of thin bright lines along the borders of an image, as screenshots have them."""

from __future__ import annotations

import numpy as np

from plantain.pixels.arrays import Field

_WIDEST = 0.02
"""Of the shorter side: a line at the border that is wider is part of the image."""

_CONTRAST = 30.0
"""Grey levels by which the median of a line exceeds that of the row within."""


def without_frame(level: Field) -> Field:
    """Return the image, float32 (h, w), with bright border lines darkened to the row just inside them.

    Args:
        level: float32 (h, w), grey levels.
    """
    deep = max(2, round(_WIDEST * min(level.shape)))
    if min(level.shape) <= deep:
        return level
    cleared = level
    for turns in range(4):
        side = np.rot90(cleared, turns)
        within = side[deep]
        course = np.median(side[:deep], axis=1) - float(np.median(within))
        lines = np.flatnonzero(course > _CONTRAST)
        if lines.size:
            side = side.copy()
            side[: int(lines[-1]) + 2] = np.minimum(side[: int(lines[-1]) + 2], within)
            cleared = np.rot90(side, -turns)
    return np.ascontiguousarray(cleared)
