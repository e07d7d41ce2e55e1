"""A coarse map of what lies where, drawn from the image alone: enough to say whether a change is in its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plantain.pixels.arrays import Field, Mask

MAP_SIDE = 256
"""Side of the frame that anatomy is mapped on."""


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """Where the structures of a modality lie, on a small frame.

    Attributes:
        field: bool (h, w), image rather than padding, collimation or aperture mask.
        regions: bool (h, w) by name, e.g. "lungs", "heart", "brain", "dura", "macula".
        midline: column that parts the patient's right (image left) from the left; None where there are no
            sides.
        axis: for each row the midline's column; None where there are no sides.
        length: the modality's own yardstick in pixels of the small frame (thorax width, head width, disc
            diameter).
        notes: what the map could not find, in words.
    """

    field: Mask
    regions: dict[str, Mask]
    midline: float | None
    length: float
    notes: tuple[str, ...] = ()

    def region(self, name: str) -> Mask:
        """The named region, or the whole field where the map does not know it."""
        return self.regions.get(name, self.field)

    def side(self, name: str) -> Mask | None:
        """The patient's left or right half of the frame; None for other words or where there are no sides."""
        if self.midline is None or name not in ("left", "right"):
            return None
        columns = np.arange(self.field.shape[1])[None, :]
        half = columns > self.midline if name == "left" else columns < self.midline
        return np.broadcast_to(half, self.field.shape)


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
