"""The majority of several readers' outlines of one region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plantain.pixels.arrays import Mask


def majority(regions: Sequence[Mask]) -> Mask:
    """Return the region, bool (H, W), that more than half of the readers included."""
    return np.asarray(2 * np.sum(regions, axis=0) > len(regions))
