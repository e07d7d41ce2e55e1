"""Several readers' outlines of one region: Dice, majority, and STAPLE (Warfield, Zou and Wells 2004)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from plantain.pixels.arrays import Floats, Mask

FEWEST = 3
"""Readers that STAPLE needs."""

MARGIN = 16
"""Pixels around the union of all outlines that count: with the whole background every specificity would be near 1."""

STEPS = 200


@dataclass(frozen=True, slots=True)
class Staple:
    """The most likely region given several readers' outlines.

    Attributes:
        probability: (H, W), probability that a pixel belongs to the region; 0 far outside all outlines.
        region: bool (H, W), True where the probability is at least one half.
        sensitivity, specificity: of each reader, in [0, 1], inside the union of all outlines and its margin.
    """

    probability: Floats
    region: Mask
    sensitivity: tuple[float, ...]
    specificity: tuple[float, ...]


def dice(first: Mask, second: Mask) -> float | None:
    """Return the Dice coefficient of two masks, in [0, 1]: twice the overlap over both areas; None if both are zero."""
    total = int(first.sum()) + int(second.sum())
    return 2.0 * int((first & second).sum()) / total if total else None


def majority(regions: Sequence[Mask]) -> Mask:
    """Return the region, bool (H, W), that more than half of the readers included."""
    return np.asarray(2 * np.sum(regions, axis=0) > len(regions))


def staple(regions: Sequence[Mask], *, margin: int = MARGIN) -> Staple:
    """Estimate the most likely region and each reader's accuracy by EM, inside the union of all outlines.

    Args:
        regions: one bool (H, W) mask per reader, at least three.
        margin: width in pixels of the background around the union that is included.

    Raises:
        ValueError: fewer than three readers, shapes that differ, or nothing drawn.
    """
    if len(regions) < FEWEST:
        raise ValueError(f"{len(regions)} outlines: STAPLE needs at least {FEWEST}")
    if len({region.shape for region in regions}) != 1:
        raise ValueError("outlines of different size")
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    inside = cv2.dilate(np.logical_or.reduce(list(regions)).astype(np.uint8), kernel) > 0
    marked = np.array([region[inside] for region in regions], np.float64)  # (readers, pixels)
    if not marked.any():
        raise ValueError("nothing is drawn in any outline")
    prior = float(marked.mean())
    sensitive = specific = np.full(len(regions), 0.99999)
    weight = marked.mean(axis=0)
    for _ in range(STEPS):
        yes = prior * np.prod(np.where(marked == 1, sensitive[:, None], 1 - sensitive[:, None]), axis=0)
        no = (1 - prior) * np.prod(np.where(marked == 0, specific[:, None], 1 - specific[:, None]), axis=0)
        before, weight = weight, yes / np.maximum(yes + no, 1e-300)
        sensitive = marked @ weight / max(float(weight.sum()), 1e-300)
        specific = (1 - marked) @ (1 - weight) / max(float((1 - weight).sum()), 1e-300)
        if float(np.abs(weight - before).max()) < 1e-9:
            break
    probability = np.zeros(regions[0].shape)
    probability[inside] = weight
    return Staple(probability, probability >= 0.5, tuple(map(float, sensitive)), tuple(map(float, specific)))
