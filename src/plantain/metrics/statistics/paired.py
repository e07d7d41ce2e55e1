"""Differences of models on their common samples, for all pairs, corrected by Holm."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.metrics.statistics.ranks import RESOLUTION

ROUNDING = 1e-12
"""Variation of differences that counts as rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference of two models, first minus second, on their common samples.

    Attributes:
        first, second: the models.
        estimate: the mean difference with its 95 % interval.
        p: two-sided p by Student's t over clusters, corrected for skewness if that raises it; if all differing clusters
            agree, at least the sign test's, 2^(1 - clusters); None below two clusters.
        p_holm: p corrected for all compared pairs (Holm 1979).
    """

    first: str
    second: str
    estimate: Estimate
    p: float | None
    p_holm: float | None

    @property
    def differs(self) -> bool:
        """True if the models differ significantly: the corrected p is below 5 %."""
        return self.p_holm is not None and self.p_holm < 0.05


def paired_differences(
    scores: Mapping[str, npt.ArrayLike],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> list[Difference]:
    """Compare all pairs of models, each on the samples that both have a score for.

    Args:
        scores: for each model one value per sample, NaN where unscored.
        clusters, strata: cluster and stratum of each sample, as for `ClusteredMeans`.
        low, high: ends of the scores' range; None if unbounded.

    Returns:
        One difference per pair, in the order of `scores`.
    """
    plan = ClusteredMeans(clusters, strata)
    widest = None if low is None or high is None else high - low
    arrays = {name: np.asarray(values, np.float64) for name, values in scores.items()}
    found = []
    for first, second in combinations(arrays, 2):
        difference = arrays[first] - arrays[second]
        largest = np.maximum(1.0, np.maximum(abs(arrays[first]), abs(arrays[second])))
        difference[abs(difference) <= RESOLUTION * largest] = 0.0
        estimate = plan.mean(difference, low=None if widest is None else -widest, high=widest)
        found.append((first, second, estimate, _test(plan, difference)))
    corrected = holm([row[3] for row in found])
    return [Difference(*row, p_holm) for row, p_holm in zip(found, corrected, strict=True)]


def _test(plan: ClusteredMeans, difference: npt.NDArray[np.float64]) -> float | None:
    """Return the two-sided p; None below two clusters."""
    found = plan.sampling(difference)
    if found is None:
        return None
    differing = plan.differing_clusters(difference)
    if not differing:
        return 1.0
    certain = 2.0 ** (1 - differing)
    varies = found.error > ROUNDING * max(1.0, abs(found.value))
    return max(certain, found.p_zero()) if varies else certain


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p values after Holm's step-down correction (Holm 1979); None stays None and is not counted.

    Example:
        >>> holm([0.01, 0.04, None, 0.03])
        [0.03, 0.06, None, 0.06]
    """
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, i) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        corrected[i] = highest
    return corrected
