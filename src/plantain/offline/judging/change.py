"""Compare an original with its edit: where they differ, which changed parts are the edit, and its measurements."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.anatomy.maps import (
    AnatomyMap,
    blur,
    enlarged,
    filled,
    grow,
    largest_channel,
    signed_distance,
)
from plantain.pixels.arrays import Field, Floats, Mask, Pixels

GREY = (0.299, 0.587, 0.114)
FUNDUS = (0.3, 0.6, 0.1)
"""Weights of red, green and blue in the level."""
FAINTEST, CLEAREST = 2.0, 10.0
"""Grey levels from which a change is seen, after smoothing: in an image that is otherwise the same, and in any."""
MOST_SHIFT = 4
"""Pixels by which a whole image may have been moved; more is not looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The image with the finding and the image without it, whichever of them was edited.

    Attributes:
        clean, shown: float32 (H, W), levels without and with the finding.
        before, after: uint8 (H, W, 3), original and edited image, in one position.
        delta: float32 (h, w) at half size, shown minus clean, smoothed, without the shift of the whole image.
        changed: bool (h, w) at half size, True where they differ.
        brighter: grey levels by which the whole edited image is brighter.
        moved: (x, y) in pixels by which the whole edited image is shifted.
    """

    clean: Field
    shown: Field
    before: Pixels
    after: Pixels
    delta: Field
    changed: Mask
    brighter: float
    moved: tuple[int, int]

    @property
    def unit(self) -> float:
        """The number of pixels of this image for each pixel of a 1024-pixel image."""
        return float(max(self.clean.shape)) / 1024


def pair_of(before: Pixels, after: Pixels, *, added: bool, fundus: bool) -> Pair:
    """Register an edit to its original and compute their differences.

    Args:
        before, after: uint8 (H, W, 3).
        added: True if the finding was added; else it was removed, and the original shows it.
        fundus: True for a fundus photograph, whose grey levels weight the colours differently.

    Raises:
        ValueError: the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"original {before.shape[:2]} and edited {after.shape[:2]} differ in size")
    weights = np.array([FUNDUS if fundus else GREY], np.float32)
    moved = _shift_of(_level(before, weights), _level(after, weights))
    after = _shifted(after, moved)
    first, second = _level(before, weights), _level(after, weights)
    field = halved((first > 6).astype(np.float32)) > 0.5
    difference = halved(second - first)
    smooth = blur(difference, 1.3)
    inside = smooth[field] if field.any() else smooth.ravel()
    brighter = float(np.median(inside))
    smooth = smooth - np.where(field, np.float32(brighter), np.float32(0))
    noise = float(1.4826 * np.median(np.abs(inside - brighter)))
    # Codecs and resampling change places with much fine texture more than others.
    fine = blur(np.abs(halved(first - blur(first, 2.0))), 2.0) + np.float32(0.1)
    usual = float(np.median((np.abs(smooth) / fine)[field])) if field.any() else 0.0
    least = np.clip(np.maximum(2.5 * noise, 3.0 * usual * fine), FAINTEST, CLEAREST)
    colour = blur(halved(largest_channel(cv2.absdiff(after, before)).astype(np.float32)), 2.0) - abs(brighter)
    changed = (np.abs(smooth) > least) | (colour > 3 * least)
    clean, shown = (first, second) if added else (second, first)
    delta = smooth if added else -smooth
    return Pair(clean, shown, before, after, delta, changed, brighter, moved)


def halved(plane: Field) -> Field:
    """Resize a plane, float32 (H, W), to half its width and height."""
    size = (max(1, plane.shape[1] // 2), max(1, plane.shape[0] // 2))
    return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.float32)


def doubled(mask: Mask, pair: Pair) -> Mask:
    """Enlarge a mask to the size of the pair's images: bool (H, W), nearest neighbour."""
    size = (pair.clean.shape[1], pair.clean.shape[0])
    return np.asarray(cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0, bool)


def _level(pixels: Pixels, weights: np.ndarray) -> Field:
    return np.asarray(cv2.transform(pixels.astype(np.float32), weights), np.float32).reshape(pixels.shape[:2])


def _shift_of(first: Field, second: Field) -> tuple[int, int]:
    """Shift (x, y) of the second image in whole pixels; (0, 0) if unknown."""
    one, other = first - blur(first, 3.0), second - blur(second, 3.0)
    if np.abs(one - other).mean() < 0.5 * np.abs(one).mean():
        return 0, 0
    (x, y), response = cv2.phaseCorrelate(one, other, cv2.createHanningWindow(first.shape[::-1], cv2.CV_32F))
    if response < 0.1 or max(abs(x), abs(y)) > MOST_SHIFT:
        return 0, 0
    return round(x), round(y)


def _shifted(pixels: Pixels, moved: tuple[int, int]) -> Pixels:
    if moved == (0, 0):
        return pixels
    matrix = np.array([[1, 0, -moved[0]], [0, 1, -moved[1]]], np.float32)
    size = (pixels.shape[1], pixels.shape[0])
    return np.asarray(cv2.warpAffine(pixels, matrix, size, borderMode=cv2.BORDER_REPLICATE), np.uint8)


NEAR = 0.06
"""How far beyond its place a finding may reach, in the map's yardstick."""
RIM = 0.035
"""How near a change must be to touch a border, in the yardstick."""
EDGED = 0.5
"""Plateau from which a change has an edge: of a smooth hill, (1 - r^2)^2, it is 0.41."""
MOST = 40.0
"""Grey levels up to which a pixel's change counts, so that a bright letter does not outweigh a haze."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A change away from the edit: its middle and area in pixels of the image, its peak in grey levels.

    `mark` is True if it is made of thin, strong strokes: lettering, a marker, a line.
    """

    x: int
    y: int
    area: int
    peak: float
    mark: bool


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Measurements of an edit at half size; lengths are in the map's unit `yard`.

    Attributes:
        mask: bool (h, w), True in the edit.
        parts: number of separate parts, without tiny ones.
        inside: share of all change that is in the finding's place.
        left, right: share of the edit on the patient's sides; 0.5 each without sides.
        brighter: share of the edit that is brighter with the finding.
        level: mean change of its core, in grey levels.
        texture: standard deviation of the image's fine structure there, in grey levels.
        radii: radius of the largest disc in each part.
        long: area of the largest part over that of the largest disc in it.
        reach: height or width of the largest part, whichever is larger.
        hill: share of the largest part's shape explained by one smooth bump; 0 if it has an edge.
        strays: changes elsewhere, largest first.
    """

    mask: Mask
    parts: int
    inside: float
    left: float
    right: float
    brighter: float
    level: float
    texture: float
    radii: tuple[float, ...]
    long: float
    reach: float
    hill: float
    strays: tuple[Stray, ...]

    @property
    def radius(self) -> float:
        """The radius of the largest disc in the edit, the largest of `radii`."""
        return max(self.radii)

    @property
    def alike(self) -> float:
        """The standard deviation of the radii over their mean: close to 0 for copies of one spot."""
        return float(np.std(self.radii) / np.mean(self.radii))


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Connected changes: a label for each pixel and, by label, area, box, middle, mass, mass in place and peak."""

    labels: npt.NDArray[np.int32]
    stats: npt.NDArray[np.int32]
    centres: Floats
    masses: Floats
    within: Floats
    peaks: Floats

    def seen(self, unit: float) -> list[int]:
        """Return the labels of parts that are large and strong enough to be seen."""
        areas = self.stats[:, cv2.CC_STAT_AREA]
        return [i for i in range(1, len(areas)) if areas[i] >= 8 * unit**2 and self.peaks[i] >= 2.5]


def change_of(pair: Pair, anatomy: AnatomyMap, place: Mask) -> Change | None:
    """Measure the change of an edit; return None if the images are equal.

    Args:
        pair: the two images.
        anatomy: the map of the image without the finding.
        place: bool (256, 256), True where the finding may be.
    """
    shape = (pair.delta.shape[0], pair.delta.shape[1])
    yard = anatomy.yard * shape[1] / place.shape[1]
    strength = np.minimum(np.abs(pair.delta), MOST) * pair.changed
    parts = _parts(pair, strength, enlarged(grow(place, NEAR * anatomy.yard), shape) > 0.5)
    seen = parts.seen(pair.unit)
    if not seen:
        return None
    own = [i for i in seen if parts.within[i] >= 0.5 * parts.masses[i]]
    own = own or [max(seen, key=lambda i: float(parts.masses[i]))]
    belongs = np.isin(parts.labels, own)
    mask = belongs & pair.changed
    weights = strength * mask
    total = float(weights.sum())
    on_left = enlarged(anatomy.side("left"), shape) > 0.5
    left = 0.5 if anatomy.midline is None else float(weights[on_left].sum()) / total
    first = max(own, key=lambda i: float(parts.masses[i]))
    main = [i for i in own if parts.masses[i] >= 0.04 * parts.masses[first]]
    solid = _solid(mask, 0.02 * yard)
    deepest = _largest(parts.labels, cv2.distanceTransform(solid.astype(np.uint8), cv2.DIST_L2, 3))
    _, joined = cv2.connectedComponents(solid.astype(np.uint8))
    largest = mask & (parts.labels == first)
    whole = joined == np.bincount(joined[largest]).argmax()
    size = np.abs(pair.delta)
    fine = halved(np.abs(pair.clean - blur(pair.clean, 3.0)))
    return Change(
        mask=mask,
        parts=len(main),
        inside=float(parts.within[seen].sum() / parts.masses[seen].sum()),
        left=left,
        right=1 - left,
        brighter=float(weights[pair.delta > 0].sum()) / total,
        level=float(size[mask & (size >= 0.5 * np.percentile(size[mask], 90))].mean()),
        texture=1.25 * float(fine[grow(mask, 6)].mean()),
        radii=tuple(float(deepest[i]) / yard for i in main),
        long=float(whole.sum() / (np.pi * max(deepest[first], 1.0) ** 2)),
        reach=float(max(parts.stats[first, cv2.CC_STAT_WIDTH], parts.stats[first, cv2.CC_STAT_HEIGHT]))
        / yard,
        hill=_hill(pair.delta, largest) if _plateau(size, largest) < EDGED else 0.0,
        strays=_strays(parts, [i for i in seen if i not in own], first, grow(belongs, 0.06 * yard), pair),
    )


def _parts(pair: Pair, strength: Field, where: Mask) -> _Parts:
    size = 2 * max(1, round(3 * pair.unit)) + 1
    closed = cv2.morphologyEx(pair.changed.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((size, size), np.uint8))
    count, labels, stats, centres = cv2.connectedComponentsWithStats(closed, connectivity=8)
    masses, within = (
        np.bincount(labels.ravel(), weights.ravel(), count).astype(np.float64)
        for weights in (strength, strength * where)
    )
    peaks = _largest(labels, np.abs(pair.delta))
    return _Parts(np.asarray(labels, np.int32), np.asarray(stats, np.int32), centres, masses, within, peaks)


def _largest(labels: npt.NDArray[np.integer], values: npt.NDArray[np.floating]) -> Floats:
    """The largest value under each label."""
    out = np.zeros(int(labels.max()) + 1)
    np.maximum.at(out, labels.ravel(), values.ravel())
    return out


def _strays(parts: _Parts, others: list[int], first: int, close: Mask, pair: Pair) -> tuple[Stray, ...]:
    found = []
    for i in others:
        x, y, wide, high, area = (int(value) for value in parts.stats[i])
        if area < 25 * pair.unit**2 or parts.peaks[i] < 4.0:
            continue
        box = (slice(y, y + high), slice(x, x + wide))
        own = parts.labels[box] == i
        if close[box][own].mean() > 0.5 and parts.masses[i] < 0.3 * parts.masses[first]:
            continue  # an island of the edit's border
        strong = np.pad(own & (np.abs(pair.delta[box]) > 0.4 * parts.peaks[i]), 1).astype(np.uint8)
        thick = cv2.distanceTransform(strong, cv2.DIST_L2, 3).max()
        mark = bool(parts.peaks[i] > 12 and thick < 0.25 * max(wide, high))
        at = (round(2 * float(parts.centres[i, 0])), round(2 * float(parts.centres[i, 1])))
        found.append(Stray(*at, 4 * area, float(parts.peaks[i]), mark))
    return tuple(sorted(found, key=lambda stray: -stray.area))


def _solid(mask: Mask, reach: float) -> Mask:
    """The mask with narrow gaps and holes closed."""
    size = 2 * max(1, round(reach)) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return filled(np.asarray(cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, kernel), bool))


def contact(change: Change, anatomy: AnatomyMap, structure: Mask) -> float:
    """Return the length of a structure's border that a change touches, divided by the length of the change."""
    shape = (change.mask.shape[0], change.mask.shape[1])
    edge = np.abs(enlarged(signed_distance(structure), shape)) < RIM * anatomy.yard
    scale = shape[1] / structure.shape[1]
    contours, _ = cv2.findContours(change.mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    length = sum(cv2.arcLength(contour, True) for contour in contours) / 2
    return float((edge & change.mask).sum() / (2 * RIM * anatomy.yard * scale) / max(length, 1.0))


def leaves(
    change: Change, anatomy: AnatomyMap, structure: Mask, towards: tuple[float, float], side: str
) -> float:
    """Return how much of a change's border on one side coincides with the structure's border, in [0, 1].

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
