"""Where, how strongly and in which direction the edited image departs from the original."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.pair import ImagePair, blur, grow, shrink
from plantain.pixels.arrays import Field, Mask

FACTOR = 2
"""Changes are mapped at half size."""

MOST_WEIGHT = 40.0
"""A pixel's change counts for no more than this many grey levels, so that a bright letter does not outweigh a haze."""

RELIEF = 0.4
"""A part stood out before when it differed from its surroundings by this share of its change."""
LEAST_LEVELS = 1.5
"""Below this many grey levels, after smoothing, a difference is coding noise."""
TIMES = 3.0
"""How many times what is usual for its texture a place may differ before it counts as changed."""
FADING = 0.35
"""An island of a fading border has at most this share of the peak of what it belongs to."""


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """One connected change.

    Attributes:
        label: its number in the map of parts.
        area: pixels at half size.
        mass: sum of its absolute smoothed change, each pixel's cut at `MOST_WEIGHT`.
        peak: largest absolute smoothed change.
        x, y: centre of mass at half size.
        inside: share of its mass within the place where the finding may lie.
        sign: +1 where it brightens, -1 where it darkens, on the whole.
        relief: +1 where the original is brighter there than just around it, -1 darker, 0 where it does not stand out.
        radius: of the largest disc that fits into it, at half size.
    """

    label: int
    area: int
    mass: float
    peak: float
    x: float
    y: float
    inside: float
    sign: int
    relief: float
    radius: float


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The change of a pair at half size.

    Attributes:
        shift: grey levels by which the whole field moved (its median difference).
        noise: robust spread of the differences in the field, in grey levels.
        smooth: float32 (h, w), signed change, smoothed, without the shift.
        labels: int32 (h, w), number of the part that a pixel belongs to, 0 for none.
        parts: by falling mass.
        changed_share: share of the field that changed at all.
    """

    shift: float
    noise: float
    smooth: Field
    labels: np.ndarray
    parts: tuple[ChangedPart, ...]
    changed_share: float

    def mask(self, parts: tuple[ChangedPart, ...]) -> Mask:
        """Bool (h, w): the pixels of the given parts."""
        return np.asarray(np.isin(self.labels, [part.label for part in parts]), bool)

    def fading_from(self, part: ChangedPart, reach: float) -> tuple[ChangedPart, ...]:
        """Islands of a part's soft border: fainter, of its sign, each within `reach` half-size pixels of another."""
        faint = [one for one in self.parts if one.sign == part.sign and one.peak <= FADING * part.peak]
        found: list[ChangedPart] = [part]
        while True:
            core = self.mask(tuple(found))
            near = set(np.unique(self.labels[grow(core, reach)]).tolist())
            more = [one for one in faint if one.label in near and one not in found]
            if not more:
                return tuple(found[1:])
            found += more


def change_of(pair: ImagePair, field: Mask, place: Mask) -> Change:
    """Maps the change.

    Args:
        pair: the two images.
        field: bool (h, w) at half size, what is image.
        place: bool (h, w) at half size, where the finding may lie.
    """
    delta = shrink(pair.delta, FACTOR)
    within = delta[field] if field.any() else delta.ravel()
    shift = float(np.median(within))
    noise = float(1.4826 * np.median(np.abs(within - shift)))
    offset = np.where(field, shift, 0.0).astype(np.float32)
    smooth = blur(delta - offset, 1.5)
    # A change of hue, or of texture without a change of mean, shows in the largest channel difference alone.
    stir = blur(shrink(pair.largest, FACTOR), 3.0) - abs(shift)
    threshold = max(LEAST_LEVELS, 1.2 * noise)
    spare, stirred = (_usual(values, pair, field) for values in (np.abs(smooth), stir))
    changed = np.abs(smooth) > np.maximum(threshold, spare)
    changed |= stir > 2.0 * threshold + 1.5 * noise + stirred
    joined = cv2.morphologyEx(changed.astype(np.uint8), cv2.MORPH_CLOSE, _disc(pair.px(5)))
    count, labels = cv2.connectedComponents(joined, connectivity=8)
    strength = np.maximum(np.abs(smooth), 0.5 * np.clip(stir, 0, None)) * changed
    parts = parts_of(labels, count, strength, place, changed, smooth, shrink(pair.before_level, FACTOR))
    share = float((changed & field).sum() / max(1, int(field.sum())))
    return Change(shift, noise, smooth, labels, parts, share)


def _usual(strength: Field, pair: ImagePair, field: Mask) -> Field:
    """What a picture that was resampled or encoded as a whole differs by where it has so much fine texture.

    Args:
        strength: float32 (h, w) at half size, how much each place changed.
        pair, field: see `change_of`.
    """
    level = pair.before_level
    texture = blur(shrink(np.abs(level - blur(level, 2.0)), FACTOR), 2.0) + np.float32(0.1)
    share = float(np.median((strength / texture)[field])) if field.any() else 0.0
    return np.asarray(TIMES * max(share, 0.0) * texture, np.float32)


def parts_of(
    labels: np.ndarray,
    count: int,
    strength: Field,
    place: Mask,
    changed: Mask,
    signed: Field,
    before: Field,
) -> tuple[ChangedPart, ...]:
    """The parts of a map, by falling mass.

    Args:
        labels: int32 (h, w), 0 to count - 1, where 0 is no part.
        count: of labels.
        strength: float32 (h, w), absolute change.
        place: bool (h, w), where the finding may lie.
        changed: bool (h, w), pixels that changed; a label may join more.
        signed: float32 (h, w), the smoothed change.
        before: float32 (h, w), level of the original.
    """
    flat = labels.ravel()
    weights = np.minimum(strength, MOST_WEIGHT).ravel().astype(np.float64)
    ys, xs = np.divmod(np.arange(flat.size), labels.shape[1])
    area = np.bincount(flat, changed.ravel(), count)
    mass = np.bincount(flat, weights, count)
    inside = np.bincount(flat, weights * place.ravel(), count)
    x = np.bincount(flat, weights * xs, count) / np.maximum(mass, 1e-9)
    y = np.bincount(flat, weights * ys, count) / np.maximum(mass, 1e-9)
    net = np.bincount(flat, signed.ravel(), count)
    relief = _relief(labels, count, before, net / np.maximum(area, 1))
    peak = _highest(flat, count, strength)
    radius = _highest(
        flat, count, np.asarray(cv2.distanceTransform(changed.astype(np.uint8), cv2.DIST_L2, 3))
    )
    found = [
        ChangedPart(
            i,
            int(area[i]),
            float(mass[i]),
            float(peak[i]),
            float(x[i]),
            float(y[i]),
            float(inside[i] / mass[i]),
            1 if net[i] >= 0 else -1,
            float(relief[i]),
            float(radius[i]),
        )
        for i in range(1, count)
        if area[i] >= 6 and peak[i] >= 2.0
    ]
    return tuple(sorted(found, key=lambda part: -part.mass))


def _highest(flat: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
    """The largest value within each part; values are 0 or more, and mostly 0."""
    highest = np.zeros(count)
    some = np.flatnonzero(values)
    np.maximum.at(highest, flat[some], values.ravel()[some])
    return highest


def _relief(labels: np.ndarray, count: int, before: Field, change: np.ndarray) -> np.ndarray:
    """Level of each part in the original against a ring around it, over its mean change (positive: it was brighter)."""
    grown = cv2.dilate(labels.astype(np.float32), _disc(10)).astype(np.int32)
    ring = np.where((labels == 0) & (grown > 0), grown, 0)
    level = np.bincount(labels.ravel(), before.ravel(), count) / np.maximum(
        np.bincount(labels.ravel(), None, count), 1
    )
    sizes = np.bincount(ring.ravel(), None, count)
    around = np.bincount(ring.ravel(), before.ravel(), count) / np.maximum(sizes, 1)
    contrast = np.where(sizes > 0, level - around, 0.0)
    return np.asarray(np.where(np.abs(contrast) > RELIEF * np.abs(change), np.sign(contrast), 0.0))


def _disc(radius: int) -> np.ndarray:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)))
