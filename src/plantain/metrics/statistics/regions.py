"""Several readers' outlines of one region: overlap, majority, and STAPLE (Warfield, Zou and Wells 2004)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plantain.pixels.arrays import Floats, Mask

FEWEST = 3
"""Readers that STAPLE needs: of two that differ nothing says who is right."""

MARGIN = 16
"""Pixels by which the union of all outlines is widened: a whole picture of background would make everybody perfect."""

STEPS = 200


@dataclass(frozen=True, slots=True)
class Staple:
    """What several outlines say together.

    Attributes:
        probability: (H, W) that a pixel belongs to the region; 0 outside the widened union.
        region: where it is at least one half.
        sensitivity, specificity: of each reader, inside the widened union.
    """

    probability: Floats
    region: Mask
    sensitivity: tuple[float, ...]
    specificity: tuple[float, ...]


def dice(first: Mask, second: Mask) -> float | None:
    """Twice the common area over the sum of both, in [0, 1]; None where both are empty."""
    total = int(first.sum()) + int(second.sum())
    return 2.0 * int((first & second).sum()) / total if total else None


def majority(regions: Sequence[Mask]) -> Mask:
    """Pixels that more than half of the readers took in."""
    return np.asarray(2 * np.sum(regions, axis=0) > len(regions))


def staple(regions: Sequence[Mask], *, margin: int = MARGIN) -> Staple:
    """The most likely region and how well each reader drew it, by EM inside the widened union of all outlines.

    Args:
        regions: one (H, W) mask per reader.
        margin: pixels of background around the union that count.

    Raises:
        ValueError: fewer than three readers, shapes that differ, or nothing drawn.
    """
    if len(regions) < FEWEST:
        raise ValueError(f"{len(regions)} outlines: STAPLE needs at least {FEWEST}")
    if len({region.shape for region in regions}) != 1:
        raise ValueError("outlines of different size")
    inside = _widened(np.logical_or.reduce(list(regions)), margin)
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


def _widened(union: Mask, margin: int) -> Mask:
    import cv2

    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return np.asarray(cv2.dilate(union.astype(np.uint8), kernel) > 0)
