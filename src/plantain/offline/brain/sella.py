"""Where a slice shows the sella or the suprasellar cistern."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.brain.anatomy import STEP, Brain
from plantain.offline.brain.protocol import Protocol
from plantain.offline.brain.symmetry import find_midline, working
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Field, Mask

_DOWN = {"axial": (0.37, 0.50), "coronal": (0.72, 0.95), "sagittal": (0.55, 0.84)}
"""Between which shares of the brain's height the sella lies."""

_LEAST_MM = {"axial": 4.2, "coronal": 7.0, "sagittal": 8.0}

_OFF_MIDLINE_MM = 5.0

_HOLLOW_MM, _UNDER_ROOF_MM, _ROOF_MM = 33.0, 8.0, (12.0, 41.0)
"""Least depth of the hollow under the chiasm on a coronal slice without skull; a little under its roof it must be so
wide, halfway down not wider. Of the average brain y -6 to 6 pass, -10 (32 deep) and 8 (44 wide) do not."""


@dataclass(frozen=True, slots=True, eq=False)
class Sella:
    """A dark pocket on the midline.

    Attributes:
        x, y: its centre in full pixels (of the largest disk that fits).
        radius: of that disk, full pixels.
        roof: y of its upper border above the centre, full pixels.
        pocket: bool, working size: bone, air, fluid or nothing; not brain.
    """

    x: float
    y: float
    radius: float
    roof: float
    pocket: Mask


def find_sella(brain: Brain, protocol: Protocol) -> Sella:
    """The pocket under the chiasm.

    Raises:
        CannotShow: neither sella nor suprasellar cistern is in this slice.
    """
    small = working(brain.gray)
    pocket = dark(small, protocol)
    if protocol.sequence == "T2":
        pocket |= small > 0.5 * (protocol.fluid + protocol.grey)
    room = cv2.distanceTransform(pocket.astype(np.uint8), cv2.DIST_L2, 5)
    room = np.minimum(room, cv2.distanceTransform(hull(brain), cv2.DIST_L2, 5))
    room = np.where(expected(brain, protocol), room, 0)
    row, column = np.unravel_index(int(np.argmax(room)), room.shape)
    radius = float(room[row, column])
    where = "neither sella nor suprasellar cistern is in this slice"
    if radius * STEP * protocol.mm < _LEAST_MM[protocol.plane]:
        raise CannotShow(f"pituitary: {where}")
    y, x = np.mgrid[: small.shape[0], : small.shape[1]]
    disk = np.hypot(y - row, x - column) <= 0.8 * radius
    if protocol.sequence != "T2" and float(small[disk].mean()) > 0.30 * protocol.grey:
        raise CannotShow(f"pituitary: {where} (the midline fluid here is ventricle)")
    if protocol.plane == "axial" and not _brain_stem_behind(small, pocket, protocol, int(row), int(column)):
        raise CannotShow(f"pituitary: {where} (no brain stem behind the midline fluid)")
    if protocol.plane == "coronal" and not _between_temporal_lobes(brain, protocol, int(row), int(column)):
        raise CannotShow(f"pituitary: {where}")
    if (
        protocol.plane == "coronal"
        and brain.stripped
        and not _is_hollow(pocket, brain, protocol, int(column))
    ):
        raise CannotShow(f"pituitary: {where} (no hollow between the temporal lobes)")
    if protocol.plane == "sagittal" and not _has_brain_stem(brain):
        raise CannotShow(f"pituitary: {where} (not a midline slice)")
    above = np.flatnonzero(~pocket[: int(row), int(column)])
    roof = float(above[-1] + 1) if len(above) else float(row) - radius
    return Sella((column + 0.5) * STEP, (row + 0.5) * STEP, radius * STEP, roof * STEP, pocket)


def dark(small: Field, protocol: Protocol) -> Mask:
    return np.asarray(small < 0.55 * protocol.grey, np.bool_)


def hull(brain: Brain) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    inside = brain.inside[::STEP, ::STEP]
    points = np.argwhere(inside)[:, ::-1].astype(np.int32)
    hull = np.zeros(inside.shape, np.uint8)
    cv2.fillConvexPoly(hull, cv2.convexHull(points), 1)
    return hull


def expected(brain: Brain, protocol: Protocol) -> Mask:
    shape = (brain.gray.shape[0] // STEP, brain.gray.shape[1] // STEP)
    y, x = (axis.astype(np.float32) * STEP for axis in np.mgrid[: shape[0], : shape[1]])
    left, top = brain.centre_of_box
    across, down = (x - left) / brain.width + 0.5, (y - top) / brain.height + 0.5
    low, high = _DOWN[protocol.plane]
    near = (down > low) & (down < high)
    if protocol.plane == "sagittal":
        return np.asarray(near & (across > 0.30) & (across < 0.50), np.bool_)
    offset = np.abs(find_midline(brain).offset(x, y)) * np.float32(protocol.mm)
    return np.asarray(near & (offset < _OFF_MIDLINE_MM), np.bool_)


def _between_temporal_lobes(brain: Brain, protocol: Protocol, row: int, column: int) -> bool:
    """Broad tissue on both sides at this height: the temporal lobes, not their tips."""
    tissue = brain.tissue[::STEP, ::STEP][row]
    mm = STEP * protocol.mm
    return bool(min(tissue[:column].sum(), tissue[column:].sum()) * mm > 15.0)


def _is_hollow(pocket: Mask, brain: Brain, protocol: Protocol, column: int) -> bool:
    """The space that the skull base left between the temporal lobes, as deep and as wide as at the sella.

    In front of it the lobes part from the brain and the hollow is broad, behind it it is a cleft or filled by the stem.
    """
    tissue = ~pocket & brain.inside[::STEP, ::STEP]
    mm = STEP * protocol.mm
    on = np.flatnonzero(tissue[:, column - 1 : column + 2].any(axis=1))
    foot = np.flatnonzero(tissue.any(axis=1))
    roof, depth = int(on[-1]), (foot[-1] - on[-1]) * mm
    wide = []
    for below in (_UNDER_ROOF_MM, 0.5 * depth):
        across = np.flatnonzero(tissue[roof + round(below / mm)])
        left, right = across[across < column], across[across > column]
        if not len(left) or not len(right):
            return False
        wide.append((right[0] - left[-1]) * mm)
    return bool(depth > _HOLLOW_MM and wide[0] > _ROOF_MM[0] and wide[1] < _ROOF_MM[1])


def _brain_stem_behind(small: Field, pocket: Mask, protocol: Protocol, row: int, column: int) -> bool:
    """Solid tissue on the midline behind the pocket: the stem; behind the frontal horns more fluid follows."""
    mm = STEP * protocol.mm
    below = np.flatnonzero(~pocket[row:, column])
    if not len(below):
        return False
    first = row + int(below[0])
    half = max(int(4 / mm), 1)
    box = small[first + int(4 / mm) : first + int(16 / mm), column - half : column + half + 1]
    return bool(box.size and (box > 0.55 * protocol.grey).mean() > 0.85)


def _has_brain_stem(brain: Brain) -> bool:
    """The lowest part of a midline slice is the narrow lower brain stem, behind the middle."""
    rows = np.flatnonzero(brain.inside.any(axis=1))
    foot = np.flatnonzero(brain.inside[rows[int(0.93 * len(rows))]])
    return len(foot) < 0.19 * brain.width and foot.mean() > brain.centre_of_box[0]
