"""A metric of its own: the share of pixels outside the region that an output left exactly as they were."""

import numpy as np

from plantain.metrics import Metric
from plantain.records import Score, unscored


class UnchangedShare(Metric):
    name, label = "unchanged_share", "share of pixels outside the region left as they were"
    low, high, digits, needs = 0.0, 1.0, 3, ("roi",)

    def measure(self, sample, output):  # type: ignore[no-untyped-def]
        outside = ~sample.roi
        if not outside.any():
            return unscored("the region covers the image")
        same = np.all(sample.before == output, axis=2)
        return Score(float(same[outside].mean()))
