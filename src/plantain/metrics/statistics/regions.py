"""Several readers' outlines of one region: Dice and majority."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plantain.pixels.arrays import Mask


def dice(first: Mask, second: Mask) -> float | None:
    """Return the Dice coefficient of two masks, in [0, 1]: twice the overlap over both areas; None if both are zero."""
    total = int(first.sum()) + int(second.sum())
    return 2.0 * int((first & second).sum()) / total if total else None


def majority(regions: Sequence[Mask]) -> Mask:
    """Return the region, bool (H, W), that more than half of the readers included."""
    return np.asarray(2 * np.sum(regions, axis=0) > len(regions))
