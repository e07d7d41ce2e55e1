"""The edit itself: which of the changed parts belong to it, and their shape in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.anatomy.maps import AnatomyMap, enlarged, filled, grow, signed_distance
from plantain.offline.judging.pair import Pair
from plantain.pixels.arrays import Field, Mask

NEAR = 0.06
"""How far beyond its place a finding may reach, in the map's yardstick."""
RIM = 0.035
"""How near a change must be to touch a border, in the yardstick."""
EDGED = 0.5
"""Plateau from which a change has an edge: of a smooth hill, (1 - r^2)^2, it is 0.41."""
MOST = 40.0
"""Grey levels up to which a pixel's change counts, so that a bright letter does not outweigh a haze."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The edit, measured at half size; lengths are in the map's yardstick.

    Attributes:
        mask: bool (h, w), the edit.
        parts: number of separate parts that count.
        inside: share of all change that is in the finding's place.
        left, right: share of the edit on the patient's sides; 0.5 each without sides.
        brighter: share of the edit that is brighter with the finding.
        level: mean change of its core, in grey levels.
        texture: spread of the image's own fine structure there, in grey levels.
        radius: of the largest disc in the edit; radii: of every part.
        long: area of the largest part over that of the largest disc in it.
        alike: spread of the radii over their mean.
        reach: height or width of the largest part, whichever is larger.
        hill: share of the edit's shape that one smooth hill explains; 0 where it has an edge.
        plateau: area at 60 % of its strength over that at 20 %.
        strays: parts elsewhere, as (x, y, area in pixels, peak), largest first.
    """

    mask: Mask
    parts: int
    inside: float
    left: float
    right: float
    brighter: float
    level: float
    texture: float
    radius: float
    radii: tuple[float, ...]
    long: float
    alike: float
    reach: float
    hill: float
    plateau: float
    strays: tuple[tuple[int, int, int, float], ...]


def change_of(pair: Pair, anatomy: AnatomyMap, place: Mask) -> Change | None:
    """Measure the edit; None if nothing changed.

    Args:
        pair: the two images.
        anatomy: the map of the image without the finding.
        place: bool (256, 256), where the finding may be.
    """
    shape = (pair.delta.shape[0], pair.delta.shape[1])
    scale = shape[1] / place.shape[1]
    yard = anatomy.yard * scale
    where = enlarged(grow(place, NEAR * anatomy.yard), shape) > 0.5
    size = 2 * max(1, round(3 * pair.unit)) + 1
    joined = cv2.morphologyEx(pair.changed.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((size, size), np.uint8))
    count, labels, stats, centres = cv2.connectedComponentsWithStats(joined, connectivity=8)
    strength = np.minimum(np.abs(pair.delta), MOST) * pair.changed
    masses = np.bincount(labels.ravel(), strength.ravel(), count)
    within = np.bincount(labels.ravel(), (strength * where).ravel(), count)
    peaks = np.zeros(count)
    np.maximum.at(peaks, labels.ravel(), np.abs(pair.delta).ravel())
    areas = stats[:, cv2.CC_STAT_AREA]
    seen = [i for i in range(1, count) if areas[i] >= 8 * pair.unit**2 and peaks[i] >= 2.5]
    if not seen:
        return None
    share = within / np.maximum(masses, 1e-9)
    own = [i for i in seen if share[i] >= 0.5] or [max(seen, key=lambda i: float(masses[i]))]
    largest = max(float(masses[i]) for i in own)
    belongs = np.isin(labels, own)
    close = grow(belongs, 0.06 * yard)
    strays = []
    for i in seen:
        if i in own or areas[i] < 25 * pair.unit**2 or peaks[i] < 4.0:
            continue
        if close[labels == i].mean() > 0.5 and masses[i] < 0.3 * largest:
            continue  # an island of the border
        strays.append(
            (round(2 * centres[i][0]), round(2 * centres[i][1]), int(4 * areas[i]), float(peaks[i]))
        )
    mask = belongs & pair.changed
    weights = strength * mask
    total = float(weights.sum())
    left, right = 0.5, 0.5
    if anatomy.midline is not None:
        on_left = enlarged(anatomy.side("left"), shape) > 0.5
        left = float(weights[on_left].sum()) / total
        right = 1 - left
    main = [i for i in own if masses[i] >= 0.04 * largest]
    solid = _solid(mask, 0.02 * yard)
    _, parts = cv2.connectedComponents(solid.astype(np.uint8))
    depth = cv2.distanceTransform(solid.astype(np.uint8), cv2.DIST_L2, 3)
    deepest = np.zeros(count)
    np.maximum.at(deepest, labels.ravel(), depth.ravel())
    radii = np.array([deepest[i] for i in main])
    first = max(main, key=lambda i: float(masses[i]))
    core = mask & (np.abs(pair.delta) >= 0.5 * np.percentile(np.abs(pair.delta)[mask], 90))
    fine = pair.clean - cv2.GaussianBlur(pair.clean, (0, 0), 3.0)
    near = (
        cv2.resize(grow(mask, 6).astype(np.uint8), pair.clean.shape[::-1], interpolation=cv2.INTER_NEAREST)
        > 0
    )
    main_part = int(np.bincount(parts[mask & (labels == first)]).argmax())
    plateau = _plateau(np.abs(pair.delta), mask & (labels == first))
    return Change(
        mask=mask,
        parts=len(main),
        inside=float(sum(within[i] for i in seen) / sum(masses[i] for i in seen)),
        left=left,
        right=right,
        brighter=float(weights[pair.delta > 0].sum()) / total,
        level=float(np.abs(pair.delta)[core].mean()),
        texture=float(fine[near].std()),
        radius=float(radii.max()) / yard,
        radii=tuple(float(r) / yard for r in radii),
        long=float((solid & (parts == main_part)).sum() / (np.pi * max(deepest[first], 1.0) ** 2)),
        alike=float(radii.std() / radii.mean()) if len(radii) >= 4 else float("inf"),
        reach=float(max(stats[first, cv2.CC_STAT_WIDTH], stats[first, cv2.CC_STAT_HEIGHT])) / yard,
        hill=_hill(pair.delta, mask & (labels == first)) if plateau < EDGED else 0.0,
        plateau=plateau,
        strays=tuple(sorted(strays, key=lambda stray: -stray[2])),
    )


def _solid(mask: Mask, reach: float) -> Mask:
    """The mask with narrow gaps and holes closed."""
    size = 2 * max(1, round(reach)) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return filled(np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel), bool))


def contact(change: Change, anatomy: AnatomyMap, structure: Mask) -> float:
    """Return the length of a structure's border that a change touches, over the change's own length."""
    shape = (change.mask.shape[0], change.mask.shape[1])
    edge = np.abs(enlarged(signed_distance(structure), shape)) < RIM * anatomy.yard
    scale = shape[1] / structure.shape[1]
    contours, _ = cv2.findContours(change.mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    length = sum(cv2.arcLength(contour, True) for contour in contours) / 2
    return float((edge & change.mask).sum() / (2 * RIM * anatomy.yard * scale) / max(length, 1.0))


def leaves(
    change: Change, anatomy: AnatomyMap, structure: Mask, towards: tuple[float, float], side: str
) -> float:
    """Return the share of a change's border facing a direction beyond which the structure ends.

    1 for a crescent that covers a structure up to its border, near 0 for a lesion inside.

    Args:
        structure: bool (256, 256).
        towards: direction, lateral and down.
        side: of the patient, for the lateral direction; only that half of the image counts.
    """
    shape = (change.mask.shape[0], change.mask.shape[1])
    within = enlarged(structure, shape) > 0.5
    mask = change.mask & (enlarged(anatomy.side(side), shape) > 0.5)
    x, y = towards[0] * (1 if side == "left" else -1), towards[1]
    far = RIM * anatomy.yard * shape[1] / structure.shape[1] / np.hypot(x, y)
    near = 2 / np.hypot(x, y)
    facing = mask & ~_moved(mask, near * x, near * y)
    return float((~_moved(within, far * x, far * y))[facing].mean()) if facing.any() else 0.0


def _moved(mask: Mask, x: float, y: float) -> Mask:
    """The mask as seen from `x`, `y` pixels further on; outside the image it is empty."""
    matrix = np.array([[1, 0, -round(x)], [0, 1, -round(y)]], np.float32)
    return np.asarray(cv2.warpAffine(mask.astype(np.uint8), matrix, mask.shape[::-1]), bool)


def _hill(delta: Field, part: Mask) -> float:
    """Share of a part's variance that falls with the elliptical distance from its middle and nothing else."""
    ys, xs = np.nonzero(grow(part, 4))
    if ys.size < 40:
        return 0.0
    values = delta[ys, xs].astype(np.float64)
    values = values * (1 if values.sum() >= 0 else -1)
    weights = np.clip(values, 0, None) * part[ys, xs]
    if weights.sum() <= 0:
        return 0.0
    points = np.stack([xs, ys]).astype(np.float64)
    middle = (points * weights).sum(axis=1, keepdims=True) / weights.sum()
    away = points - middle
    spread = (away * weights) @ away.T / weights.sum() + 0.25 * np.eye(2)
    ring = np.sqrt(np.einsum("in,ij,jn->n", away, np.linalg.inv(spread), away)) / 3.2 * 24
    ring = np.minimum(ring.astype(np.intp), 23)
    count = np.maximum(np.bincount(ring, minlength=24), 1)
    profile = np.minimum.accumulate(np.bincount(ring, values, 24) / count)
    variance = float(((values - values.mean()) ** 2).sum())
    return max(0.0, 1 - float(((values - profile[ring]) ** 2).sum()) / variance) if variance > 0 else 0.0


def _plateau(strength: Field, part: Mask) -> float:
    """Near 1 where a change rises at once to its full strength, near 0 where it is one slope."""
    if not part.any():
        return 0.0
    peak = float(np.percentile(strength[part], 90))
    low = float((part & (strength >= 0.2 * peak)).sum())
    return float((part & (strength >= 0.6 * peak)).sum()) / max(low, 1.0)
