"""Thin bright lines along the borders of a picture, as screenshots have them: they belong to nothing in it."""

from __future__ import annotations

import numpy as np

from plantain.pixels.arrays import Field

_WIDEST = 0.02
"""Of the shorter side: a line at the border that is wider is part of the picture."""

_STANDS_OUT = 30.0
"""Grey levels by which the median of a line lies above that of the row within."""


def without_frame(level: Field) -> Field:
    """The picture with such lines at the level of what lies just within; itself where it has none, or is all border.

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
        lines = np.flatnonzero(course > _STANDS_OUT)
        if lines.size:
            side = side.copy()
            side[: int(lines[-1]) + 2] = np.minimum(side[: int(lines[-1]) + 2], within)
            cleared = np.rot90(side, -turns)
    return np.ascontiguousarray(cleared)
