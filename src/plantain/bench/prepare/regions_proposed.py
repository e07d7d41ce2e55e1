"""Propose regions of interest, from which a reader chooses, by the differences within a pair."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Mask, Pixels

MOST = 3
"""Most proposals of one sample, as in the paper."""

SAME = 0.85
"""Overlap (intersection over union) from which two proposals are one."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionProposal:
    """One proposed region.

    Attributes:
        mask: bool (H, W).
        score: the proposer's confidence, in [0, 1]; comparable only between proposals of one proposer.
        how: the method in a few words.
    """

    mask: Mask
    score: float
    how: str


class DifferenceProposer:
    """Propose regions where an aligned pair differs after its illumination has been matched.

    A robust gain and offset per channel fit the image after to the image before over the whole frame. Residuals are
    compared with their typical size outside the change.
    """

    name = "difference@1"

    def propose(self, previous: Pixels, changed: Pixels | None, task: str) -> tuple[RegionProposal, ...]:
        """Return up to three: the region that changed most, all strongly changed ones, the first with its margin."""
        if changed is None:
            return ()
        energy = difference(previous, changed)
        low, high = _thresholds(energy)
        parts = _parts(energy, low, high)
        if not parts:
            return ()
        unit = max(previous.shape[:2]) / 512
        strongest = parts[0]
        together = np.logical_or.reduce(
            [part for part in parts if _weight(energy, part) > 0.05 * _weight(energy, strongest)]
        )
        found = [
            (_solid(strongest, 3 * unit), "the strongest difference"),
            (_solid(together, 3 * unit), "all strong differences"),
            (_hull(strongest, 8 * unit), "the strongest difference and its surroundings"),
        ]
        total = float(energy.sum()) or 1.0
        kept: list[RegionProposal] = []
        for mask, how in found:
            if mask.mean() > 0.9 or any(overlap(mask, other.mask) > SAME for other in kept):
                continue
            kept.append(RegionProposal(mask, round(float(energy[mask].sum()) / total, 4), how))
        return tuple(kept)


def difference(previous: Pixels, changed: Pixels) -> npt.NDArray[np.float32]:
    """Return the absolute difference of a pair after matching illumination: float32 (H, W), in grey levels."""
    sigma = max(1.0, max(previous.shape[:2]) / 256)
    first, second = (
        cv2.GaussianBlur(pixels.astype(np.float32), (0, 0), sigma) for pixels in (previous, changed)
    )
    matched = np.empty_like(second)
    for channel in range(3):
        matched[..., channel] = _matched(second[..., channel], first[..., channel])
    return np.asarray(np.abs(first - matched).max(axis=2), np.float32)


def _matched(values: npt.NDArray[np.float32], target: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return values with the gain and offset that fit them to target; each fit drops the worst residuals."""
    x, y = values[::4, ::4].ravel().astype(np.float64), target[::4, ::4].ravel().astype(np.float64)
    keep = np.ones(x.shape, bool)
    gain, offset = 1.0, 0.0
    for _ in range(4):
        spread = float(x[keep].var())
        if spread < 1.0:
            return values + np.float32(np.median(y - x))
        gain = float(np.clip(np.cov(x[keep], y[keep])[0, 1] / spread, 0.4, 2.5))
        offset = float(np.median(y[keep] - gain * x[keep]))
        error = np.abs(y - gain * x - offset)
        keep = error <= np.quantile(error, 0.7)
    return np.asarray(values * np.float32(gain) + np.float32(offset), np.float32)


def _thresholds(energy: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Return the levels above which a pixel may differ, and certainly differs.

    They follow from median and spread, or from Otsu's threshold where a rough alignment has widened the spread.
    """
    middle = float(np.median(energy))
    spread = 1.4826 * float(np.median(np.abs(energy - middle)))
    levels = np.clip(np.rint(energy), 0, 255).astype(np.uint8)
    divided, _ = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    low, high = middle + 3 * spread, middle + 6 * spread
    return max(4.0, min(low, divided)), max(8.0, min(high, 1.5 * divided))


def _parts(energy: npt.NDArray[np.float32], low: float, high: float) -> list[Mask]:
    """Return connected regions above `low` that reach `high`, the heaviest first, without specks."""
    count, labels = cv2.connectedComponents((energy > low).astype(np.uint8))
    sure = np.unique(labels[energy > high])
    least = max(9.0, energy.size * 2e-4)
    parts = [labels == label for label in sure if 0 < label < count]
    parts = [part for part in parts if part.sum() >= least]
    return sorted(parts, key=lambda part: -_weight(energy, part))[:16]


def _weight(energy: npt.NDArray[np.float32], part: Mask) -> float:
    return float(energy[part].sum())


def _solid(mask: Mask, radius: float) -> Mask:
    """Return the mask with closed holes and a small margin."""
    size = 2 * max(1, round(radius)) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    grown = cv2.dilate(mask.astype(np.uint8), kernel)
    outlines, _ = cv2.findContours(grown, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return np.asarray(cv2.drawContours(np.zeros_like(grown), outlines, -1, 1, cv2.FILLED) > 0)


def _hull(mask: Mask, radius: float) -> Mask:
    """Return the mask's convex hull with a margin."""
    points = np.argwhere(mask)[:, ::-1].astype(np.int32)
    filled = cv2.fillConvexPoly(np.zeros(mask.shape, np.uint8), cv2.convexHull(points), 1)
    return _solid(filled > 0, radius)


def overlap(first: Mask, second: Mask) -> float:
    """Return the intersection over union of two masks, in [0, 1]; 0 if both are empty."""
    return float((first & second).sum()) / max(1.0, float((first | second).sum()))
