"""Turning a picture into radiological display: the patient's right on image left, and head or front on top."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plantain.pixels.arrays import Pixels

PLANES = {(0, 1): "axial", (0, 2): "coronal", (1, 2): "sagittal"}
"""Planes by the two patient axes (0 right to left, 1 front to back, 2 feet to head) that they show."""

_ACROSS = {0: 1, 1: 1}
_DOWN = {1: 1, 2: -1}
"""Display: across, towards the patient's left (or, sagittal, towards the back); down, towards back or feet."""


def plane_of(directions: Sequence[float]) -> str:
    """The plane of an ImageOrientationPatient: "axial", "coronal", "sagittal", or "unknown" where it is oblique.

    Args:
        directions: six cosines, of the row and of the column, towards the patient's left, back and head.
    """
    axes = _axes(directions)
    return "unknown" if axes is None else PLANES[min(axes), max(axes)]


def display(pixels: Pixels, directions: Sequence[float]) -> Pixels:
    """Turns and mirrors (H, W, ...) so that it is shown as radiologists look at that plane; oblique ones stay.

    Args:
        pixels: as stored.
        directions: as for `plane_of`.
    """
    axes = _axes(directions)
    if axes is None:
        return pixels
    signs = [int(np.sign(directions[axes[0]])), int(np.sign(directions[3 + axes[1]]))]
    if axes[0] > axes[1]:
        pixels, axes, signs = np.swapaxes(pixels, 0, 1), (axes[1], axes[0]), signs[::-1]
    if signs[0] != _ACROSS[axes[0]]:
        pixels = pixels[:, ::-1]
    if signs[1] != _DOWN[axes[1]]:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def swaps_axes(directions: Sequence[float]) -> bool:
    """Return True if `display` makes columns of rows."""
    axes = _axes(directions)
    return axes is not None and axes[0] > axes[1]


def _axes(directions: Sequence[float]) -> tuple[int, int] | None:
    """The patient axes that row and column follow; None where either is more than about 30 degrees off."""
    if len(directions) != 6 or not np.isfinite(directions).all():
        return None
    row, column = np.abs(directions[:3]), np.abs(directions[3:])
    across, down = int(row.argmax()), int(column.argmax())
    if across == down or row[across] < 0.85 or column[down] < 0.85:
        return None
    return across, down
