"""A coarse map of what lies where, drawn from the image alone: enough to say whether a change is in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Field, Floats, Mask

MAP_SIDE = 256
"""Side of the frame that anatomy is mapped on."""


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """Where the structures of a modality lie, on a small frame.

    Attributes:
        field: bool (h, w), image rather than padding, collimation or aperture mask.
        regions: bool (h, w) by name, e.g. "lungs", "heart", "brain", "dura", "macula".
        midline: column that parts the patient's right (image left) from the left at the middle row; None where
            there are no sides.
        length: the modality's own yardstick in pixels of the small frame (thorax width, head width, disc
            diameter).
        notes: what the map could not find, in words.
        lean: columns by which the midline moves to the right with each row further down.
    """

    field: Mask
    regions: dict[str, Mask]
    midline: float | None
    length: float
    notes: tuple[str, ...] = ()
    lean: float = 0.0

    def region(self, name: str) -> Mask:
        """The named region, or the whole field where the map does not know it."""
        return self.regions.get(name, self.field)

    def side(self, name: str) -> Mask | None:
        """The patient's left or right half of the frame; None for other words or where there are no sides."""
        if self.midline is None or name not in ("left", "right"):
            return None
        rows, columns = np.indices(self.field.shape)
        away = self.off_midline(columns, rows)
        return np.asarray(away > 0 if name == "left" else away < 0, bool)

    def off_midline(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
        """Columns from the midline, positive on the patient's left; raises ValueError where there are no sides.

        Args:
            x, y: pixels of the small frame.
        """
        if self.midline is None:
            raise ValueError("a map without sides has no midline")
        middle = (self.field.shape[0] - 1) / 2
        across, down = np.asarray(x, np.float64), np.asarray(y, np.float64)
        away: Floats = across - self.midline - self.lean * (down - middle)
        return away


def ellipse(shape: tuple[int, int], centre: tuple[float, float], axes: tuple[float, float]) -> Mask:
    """A filled upright ellipse; centre (x, y) and half axes (x, y) in pixels."""
    ys, xs = np.mgrid[: shape[0], : shape[1]]
    return np.asarray(((xs - centre[0]) / axes[0]) ** 2 + ((ys - centre[1]) / axes[1]) ** 2 <= 1.0, bool)


def content_box(level: Field, floor: float) -> tuple[int, int, int, int]:
    """Top, bottom, left, right of what is brighter than `floor` in more than a tenth of a row or column."""
    lit = level > floor
    rows = np.flatnonzero(lit.mean(axis=1) > 0.1)
    columns = np.flatnonzero(lit.mean(axis=0) > 0.1)
    if rows.size == 0 or columns.size == 0:
        return 0, level.shape[0], 0, level.shape[1]
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
