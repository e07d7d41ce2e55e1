"""Header and orientation of one frame: enhanced multi-frame files keep them in functional groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydicom import Dataset

from plantain.pixels.arrays import Pixels

PLANES = {(0, 1): "axial", (0, 2): "coronal", (1, 2): "sagittal"}
"""Planes by the two patient axes (0 right to left, 1 front to back, 2 feet to head) that they show."""

_ACROSS = {0: 1, 1: 1}
_DOWN = {1: 1, 2: -1}
"""Display: across, towards the patient's left (or, sagittal, towards the back); down, towards back or feet."""


def plane_of(directions: Sequence[float]) -> str:
    """Return the plane of an image orientation: "axial", "coronal", "sagittal", or "unknown" if oblique.

    Args:
        directions: ImageOrientationPatient: cosines of row and column towards the patient's left, back and head.
    """
    axes = _axes(directions)
    return "unknown" if axes is None else PLANES[min(axes), max(axes)]


def display(pixels: Pixels, directions: Sequence[float]) -> Pixels:
    """Rotate and mirror a slice (H, W, ...) to the usual radiological display; oblique slices are unchanged.

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
    """Return True if `display` exchanges rows and columns of an image with these direction cosines (six numbers)."""
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


_GROUPS = ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence")
_FIELDS = (
    ("PlaneOrientationSequence", ("ImageOrientationPatient",)),
    ("PixelMeasuresSequence", ("PixelSpacing",)),
    ("FrameVOILUTSequence", ("WindowCenter", "WindowWidth", "VOILUTFunction")),
    ("PixelValueTransformationSequence", ("RescaleSlope", "RescaleIntercept")),
)
"""Functional groups (PS3.3, C.7.6.16) and the fields that we read; those of a frame override shared ones."""


def header_of_frame(dataset: Dataset, frame: int) -> Dataset:
    """Return the header of one frame, without pixels; the data set itself if it has no functional groups.

    Args:
        frame: from 0; without a group of its own it gets the shared fields.
    """
    nested: dict[str, object] = {}
    for name in _GROUPS:
        sequence = dataset.get(name)
        at = frame if name.startswith("PerFrame") else 0
        if sequence is None or at >= len(sequence):
            continue
        for group, fields in _FIELDS:
            held = sequence[at].get(group)
            for field in fields if held else ():
                value = held[0].get(field)
                if value is not None:
                    nested[field] = value
    if not nested:
        return dataset
    header = own_header(dataset)
    for field, value in nested.items():
        setattr(header, field, value)
    return header


def own_header(dataset: Dataset) -> Dataset:
    """Return a copy of a header without pixels. Elements are copied unread, so that damaged ones do not matter."""
    header = Dataset()
    header.update({tag: dataset.get_item(tag) for tag in list(dataset.keys()) if tag.group < 0x7FE0})
    return header
