"""Of a removal from the brain: how far the lesion reached before, and what of it is left, by the brain's two halves."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.pair import ImagePair, blur, filled, grow, largest_part, shrunken
from plantain.pixels.arrays import Field, Mask

LEAST_LEVELS, SHARE = 2.0, 0.15
"""A place has changed by this many grey levels and this share of the strongest change."""
ODD = 0.35
"""Spreads beyond which a place belongs to what is odd."""
BODY = 0.5
"""Spreads off the usual level that a lesion's own pixels have: the rest of what is odd is what it pushed aside."""
LIKE, MUCH_LIKE, FAINTLY_LIKE = 0.5, 0.75, 0.4
"""Of the way from the usual level to the lesion's: from here on a pixel looks like it."""
AT_MIDLINE = 6.0
"""Pixels of the small frame from the midline within which a half is compared with next to itself."""
TURNS = np.arange(-15.0, 15.1, 1.5)
"""Degrees by which a head may be turned."""
SHIFTS = 20
"""Pixels of the small frame by which the middle of the head may lie off the middle of the brain."""
TOLERANCE = 4
"""Pixels of the small frame by which healthy halves differ in place."""
RIM = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """How one half of a slice is laid on the other.

    Attributes:
        matrix: float32 (2, 3), from each place of the small frame to its counterpart.
        alike: correlation of the slice with its mirror image, in [-1, 1].
        within: bool (h, w), brain on both sides, without its rim.
        usual, spread: middle level of that brain and the width of its middle half.
    """

    matrix: np.ndarray
    alike: float
    within: Mask
    usual: float
    spread: float

    def mirrored(self, plane: Field) -> Field:
        """The plane with its halves exchanged."""
        size = (plane.shape[1], plane.shape[0])
        return np.asarray(cv2.warpAffine(plane, self.matrix, size, flags=cv2.INTER_LINEAR), np.float32)

    def odd(self, level: Field) -> Field:
        """How far each place lies beyond what the other half shows nearby, in spreads, where it is the odd one.

        A healthy half differs from an ill one as much as that one from it: odd is the one that lies further from the
        brain's usual level.
        """
        other = self.mirrored(level)
        side = 2 * TOLERANCE + 1
        near = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
        own, opposite = blur(level, 1.5), blur(other, 1.5)
        beyond = np.maximum(own - cv2.dilate(opposite, near), cv2.erode(opposite, near) - own)
        stranger = (self.away(blur(level, 3.0)) - self.away(blur(other, 3.0))) * 2.0 + 0.5
        return np.where(self.within, np.maximum(beyond, 0) / self.spread * np.clip(stranger, 0, 1), 0).astype(
            np.float32
        )

    def off_midline(self) -> Field:
        """Distance of each place from the midline, in pixels."""
        rows, columns = self.within.shape
        places = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).astype(np.float32)
        opposite = cv2.transform(places, self.matrix)
        return np.asarray(np.hypot(*np.moveaxis(opposite - places, -1, 0)) / 2, np.float32)

    def away(self, level: Field) -> Field:
        """Distance from the usual level, in spreads."""
        return np.asarray(np.abs(level - np.float32(self.usual)) / np.float32(self.spread), np.float32)


def halves_of(level: Field, brain: Mask) -> Halves | None:
    """Finds the line about which the slice is most like its mirror image.

    Args:
        level: float32 (h, w), grey levels on the small frame.
        brain: bool (h, w).

    Returns:
        None where there is no brain.
    """
    ys, xs = np.nonzero(brain)
    if not xs.size:
        return None
    centre = (float(xs.mean()), float(ys.mean()))
    calm = blur(level, 2.0)
    mean = float(calm[brain].mean())
    plane = np.where(brain, calm - mean, -mean).astype(np.float32)
    best = (-2.0, 0.0, centre[0])
    for turn in TURNS:
        turned = cv2.warpAffine(
            plane, cv2.getRotationMatrix2D(centre, float(turn), 1.0), plane.shape[::-1], borderValue=-mean
        )
        half = cv2.resize(turned, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        energy = float((half * half).sum()) or 1.0
        for twice in range(int(centre[0] - SHIFTS), int(centre[0] + SHIFTS) + 1):
            flip = np.array([[-1, 0, twice], [0, 1, 0]], np.float32)
            other = cv2.warpAffine(half, flip, half.shape[::-1], flags=cv2.INTER_NEAREST, borderValue=-mean)
            best = max(best, (float((half * other).sum()) / energy, float(turn), float(twice)))
    alike, turn, column = best
    rotation = np.vstack([cv2.getRotationMatrix2D(centre, turn, 1.0), [0, 0, 1]])
    reflection = np.array([[-1, 0, 2 * column], [0, 1, 0], [0, 0, 1]])
    matrix = (np.linalg.inv(rotation) @ reflection @ rotation)[:2].astype(np.float32)
    other_brain = cv2.warpAffine(brain.astype(np.float32), matrix, brain.shape[::-1]) > 0.5
    within = shrunken(brain & other_brain, RIM)
    if not within.any():
        return None
    low, usual, high = np.percentile(level[within], (25, 50, 75))
    return Halves(matrix, alike, within, float(usual), float(max(high - low, 6.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """What a removal did to the odd place of a slice. Areas and evidence are on the small frame.

    Attributes:
        alike: correlation of the edited slice with its mirror image.
        lesion: bool (h, w), the lesion in the original: what is odd by most, with the pixels of its level around it.
        evidence: of that place, in spreads times pixels.
        bright: whether it is brighter than the brain's usual level.
        reached: share of the odd place that changed.
        covered: share of the lesion that changed.
        odd_before, odd_after: evidence within the change.
        left: the most evidence of one place in the edited picture, over the lesion's.
        left_inside: how much of that place lies within the change, as a share.
        spot: largest place near the lesion that still has its level and no counterpart, over the lesion's area.
        strip: pixels of a place at the midline, beside the lesion, that looks faintly like it.
        away, away_after: distance from the usual level within the change, before and after.
        away_opposite: the same at its counterpart.
    """

    alike: float
    lesion: Mask
    evidence: float
    bright: bool
    reached: float
    covered: float
    odd_before: float
    odd_after: float
    left: float
    left_inside: float
    spot: float
    strip: int
    away: float
    away_after: float
    away_opposite: float


def removal_of(pair: ImagePair, brain: Mask) -> Removal | None:
    """Compares the halves of the slice before and after.

    Args:
        pair: the two images.
        brain: bool (h, w), the judge's own map of the edited image without the face, on the small frame.

    Returns:
        None where nothing changed in a brain, or nothing was odd before.
    """
    before, after = (
        cv2.resize(level, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA)
        for level in (pair.before_level, pair.after_level)
    )
    halves = halves_of(after, brain)
    changed = _changed(after - before, brain)
    if halves is None or not (changed & brain).any():
        return None
    odd, still = halves.odd(before), halves.odd(after)
    place, evidence = _strongest(odd)
    body = place & (halves.away(blur(before, 1.5)) > BODY)
    if body.sum() <= 8:
        return None
    level = float(np.median(blur(before, 1.5)[body]))
    lesion = _of_its_level(blur(before, 1.5), place, halves.usual, level, brain)
    reach = grow(changed, 4.0)
    remnant, left = _strongest(still)
    remains = brain & grow(lesion | place, 3.0) & ~_anatomy(halves, before, lesion | place, level)
    opposite = (halves.mirrored(changed.astype(np.float32)) > 0.5) & brain & ~changed
    here = changed & brain
    away_before, away_after = (halves.away(blur(one, 2.0)) for one in (before, after))
    return Removal(
        alike=halves.alike,
        lesion=lesion,
        evidence=evidence,
        bright=level > halves.usual,
        reached=_share(place, changed),
        covered=_share(lesion, changed),
        odd_before=float(odd[reach].sum()),
        odd_after=float(still[reach].sum()),
        left=left / evidence,
        left_inside=_share(remnant, reach),
        spot=_largest(blur(after, 1.0), halves.usual, level, MUCH_LIKE, remains) / max(int(lesion.sum()), 1),
        strip=_largest(
            after,
            halves.usual,
            level,
            FAINTLY_LIKE,
            brain & grow(lesion, 4.0) & (halves.off_midline() < AT_MIDLINE),
        ),
        away=float(away_before[here].mean()),
        away_after=float(away_after[here].mean()),
        away_opposite=float(away_before[opposite].mean()) if opposite.any() else float("inf"),
    )


def _changed(delta: Field, brain: Mask) -> Mask:
    strength = np.abs(blur(delta, 1.0))
    some = strength > max(LEAST_LEVELS, SHARE * float(np.percentile(strength, 99.5)))
    return filled(largest_part(some & grow(brain, 3.0)))


def _strongest(odd: Field) -> tuple[Mask, float]:
    """The connected place with most evidence, and how much it has."""
    count, labels = cv2.connectedComponents((odd > ODD).astype(np.uint8))
    total = np.bincount(labels.ravel(), odd.ravel(), count)
    total[0] = 0
    best = int(total.argmax())
    return np.asarray((labels == best) & (total[best] > 0), bool), float(total[best])


def _of_its_level(level: Field, place: Mask, usual: float, own: float, brain: Mask) -> Mask:
    """Pixels at and around an odd place that are of its level, as far as they hang together with it."""
    sign = np.float32(np.sign(own - usual))
    like = (sign * (level - np.float32(usual + LIKE * (own - usual))) > 0) & grow(place, 8.0) & brain
    _, labels = cv2.connectedComponents(like.astype(np.uint8))
    numbers = np.unique(labels[place & like])
    return np.asarray(np.isin(labels, numbers[numbers > 0]), bool)


def _anatomy(halves: Halves, before: Field, lesion: Mask, own: float) -> Mask:
    """Places as bright as the lesion that have a counterpart in the original's other half, which is not the lesion's.

    Vessels, sinuses and bone beside a lesion are as bright as it is. Nothing dark is taken for anatomy, for a lesion
    moves the ventricles.
    """
    if own < halves.usual:
        return np.zeros_like(lesion)
    opposite = halves.mirrored(grow(lesion, 3.0).astype(np.float32)) > 0.5
    alike = _beyond(blur(halves.mirrored(before), 1.0), halves.usual, own, MUCH_LIKE)
    return grow(alike & ~opposite, TOLERANCE / 2)


def _beyond(level: Field, usual: float, own: float, like: float) -> Mask:
    """What has so much of the way from the usual level to the lesion's own."""
    return np.asarray(np.sign(own - usual) * (level - np.float32(usual + like * (own - usual))) > 0, bool)


def _largest(level: Field, usual: float, own: float, like: float, within: Mask) -> int:
    """Area of the largest place that has so much of the way from the usual level to the lesion's own."""
    beyond = _beyond(level, usual, own, like)
    _, _, stats, _ = cv2.connectedComponentsWithStats((beyond & within).astype(np.uint8))
    return int(stats[1:, cv2.CC_STAT_AREA].max()) if len(stats) > 1 else 0


def _share(what: Mask, within: Mask) -> float:
    return float((what & within).sum() / max(int(what.sum()), 1))
