"""How far an output went from the image before to the real result, measured where those two differ.

The judge sees no mask of the benchmark: where the change belongs is read off the two real images themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from plantain.metrics.ssim import masked_ssim
from plantain.offline.instruments.pair import blur, grow
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.records import Score, unscored

SMOOTH = 3.0
"""Spread of the smoothing before levels are compared, in pixels of a 1024-pixel frame: takes out grain and coding."""
LEAST_LEVELS, NOISES = 6.0, 4.0
"""The images differ where they do so by this many grey levels and by this many times the spread of their difference."""
MARGIN = 12.0
"""How far around the difference a change is not counted against the surroundings, in pixels of a 1024-pixel frame."""
LEAST_ALIKE = 0.5
"""Correlation of fine structure below which the real result does not lie pixel by pixel over the image before."""
LEAST_STRUCTURE = 0.5
"""Grey levels of structure below which a place has none to compare."""
LEAST_OUTSIDE = 0.05
"""Share of the frame that must lie outside the difference for its preservation to be scored."""


@dataclass(frozen=True, slots=True, eq=False)
class TruthRequest:
    """What the real result says of the change.

    Attributes:
        where: bool (H, W), where the real images differ.
        alike: correlation of their fine structure, in [-1, 1]; below `LEAST_ALIKE` they do not lie over each other.
    """

    where: Mask
    alike: float

    @property
    def aligned(self) -> bool:
        return self.alike >= LEAST_ALIKE

    @property
    def share(self) -> float:
        """Of the frame, in [0, 1]."""
        return float(self.where.mean())


def wanted_of(before: Pixels, truth: Pixels) -> TruthRequest:
    """Where two real images of one size, uint8 (H, W, 3), differ."""
    unit = _unit(before)
    first, second = _smooth(before, unit), _smooth(truth, unit)
    difference = np.abs(second - first).max(axis=2)
    spread = 1.4826 * float(np.median(np.abs(difference - np.median(difference))))
    far = difference > max(LEAST_LEVELS, NOISES * spread)
    size = 2 * max(1, round(4 * unit)) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    closed = cv2.morphologyEx(far.astype(np.uint8), cv2.MORPH_CLOSE, kernel)
    return TruthRequest(closed.astype(bool), _alike(before, truth, unit))


def accuracy(before: Pixels, edited: Pixels, truth: Pixels, wanted: TruthRequest) -> Score:
    """Share of the way from before to the real result that the output went, in [0, 1], over the wanted change.

    1 - sum |edited - truth| / sum |before - truth|, of smoothed levels over all channels, cut at 0: an unchanged
    output scores 0, the real result 1, and a change elsewhere, too weak or overdone something between.
    """
    if not wanted.aligned:
        return unscored(
            f"the real result does not lie over the image before (structure correlates {wanted.alike:.2f})"
        )
    if not wanted.where.any():
        return unscored("the real result shows no difference that could be measured")
    unit = _unit(before)
    first, second, third = (_smooth(image, unit)[wanted.where] for image in (before, edited, truth))
    way = float(np.abs(first - third).sum())
    left = float(np.abs(second - third).sum())
    return Score(float(np.clip(1.0 - left / way, 0.0, 1.0)))


def preserved(before: Pixels, edited: Pixels, wanted: TruthRequest) -> Score:
    """Strict SSIM of before and output outside the wanted change and its margin, cut at 0."""
    if not wanted.aligned:
        return unscored("the real result does not lie over the image before")
    around = grow(wanted.where, MARGIN * _unit(before))
    if 1.0 - float(around.mean()) < LEAST_OUTSIDE:
        return unscored("the real result differs nearly everywhere")
    score = masked_ssim(before, edited, around)
    return score if score.value is None else Score(max(0.0, score.value))


def _unit(image: Pixels) -> float:
    return float(max(image.shape[:2])) / 1024


def _smooth(image: Pixels, unit: float) -> Field:
    return blur(image.astype(np.float32), max(0.8, SMOOTH * unit))


def _alike(before: Pixels, truth: Pixels, unit: float) -> float:
    """Correlation of fine structure over the frame, every place weighing alike however strong its contrast."""
    first, second = _structure(before, unit).ravel(), _structure(truth, unit).ravel()
    if first.std() < 1e-3 or second.std() < 1e-3:
        return 1.0 if bool(np.abs(first - second).max(initial=0.0) < 1e-3) else 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _structure(image: Pixels, unit: float) -> Field:
    """What lies between two scales, over its local strength: an outline counts no more than the texture beside it."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    band = blur(grey, max(0.8, 1.5 * unit)) - blur(grey, max(2.0, 6.0 * unit))
    strength = np.sqrt(blur(band * band, max(4.0, 12.0 * unit)))
    return np.asarray(band / (strength + LEAST_STRUCTURE), np.float32)
