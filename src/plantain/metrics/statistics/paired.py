"""Which of two models is better: differences on the samples that both have, for all pairs, corrected by Holm."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.metrics.inputs import check_numbers, check_range
from plantain.metrics.statistics.means import ClusteredMeans, Estimate

ROUNDING = 1e-12
"""Differences that vary by less than this vary by rounding only."""


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second on their common samples.

    Attributes:
        first, second: the models.
        estimate: the mean difference with its 95 % interval.
        p: two-sided p of Student's t over clusters, corrected for skewness where that raises it; None below two
            clusters. At least that of the sign test if all clusters that differ say the same, 2^(1 - clusters): two
            sources prove little, whatever they say.
        p_holm: the same, corrected for all compared pairs.
        effect: mean difference over the standard deviation of differences (Cohen's d_z); None without
            variation.
        detectable: the difference that this many clusters find with 80 % power at the 5 % level; None where they do
            not vary, or are fewer than two.
    """

    first: str
    second: str
    estimate: Estimate
    p: float | None
    p_holm: float | None
    effect: float | None
    detectable: float | None

    @property
    def differs(self) -> bool:
        """Whether the difference is more than noise: corrected p below 5 %."""
        return self.p_holm is not None and self.p_holm < 0.05


def paired_differences(
    scores: Mapping[str, npt.ArrayLike],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
) -> list[Difference]:
    """All pairs of models, each on the samples that both have a score for.

    Args:
        scores: for each model one value per sample, NaN where unscored.
        clusters, strata: of each sample, as for `ClusteredMeans`.
        low, high: the range of the scores, where it has ends on both sides: no difference is larger.

    Returns:
        One difference per pair, in the order of `scores`.

    Raises:
        ValueError: a model whose scores are not one a sample, an infinite one, or a range without room.
    """
    check_range(low, high)
    plan = ClusteredMeans(clusters, strata)
    widest = None if low is None or high is None else high - low
    arrays = {name: check_numbers(values, name, "samples") for name, values in scores.items()}
    for name, values in arrays.items():
        if values.size != len(clusters):
            raise ValueError(f"{name}: {values.size} scores for {len(clusters)} samples")
    found = []
    for first, second in combinations(arrays, 2):
        difference = arrays[first] - arrays[second]
        estimate = plan.mean(difference, low=None if widest is None else -widest, high=widest)
        p, detectable = _test(plan, difference)
        finite = difference[np.isfinite(difference)]
        deviation = float(np.std(finite, ddof=1)) if finite.size > 1 else 0.0
        varies = estimate.value is not None and deviation > ROUNDING * max(1.0, abs(estimate.value))
        effect = estimate.value / deviation if estimate.value is not None and varies else None
        found.append((first, second, estimate, p, effect, detectable))
    corrected = holm([row[3] for row in found])
    return [
        Difference(first, second, estimate, p, p_holm, effect, detectable)
        for (first, second, estimate, p, effect, detectable), p_holm in zip(found, corrected, strict=True)
    ]


def _test(plan: ClusteredMeans, difference: npt.NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Two-sided p, and the difference found with 80 % power."""
    found = plan.sampling(difference)
    if found is None:
        return None, None
    differing = plan.differing_clusters(difference)
    if not differing:
        return 1.0, None
    certain = 2.0 ** (1 - differing)
    if found.error <= ROUNDING * max(1.0, abs(found.value)):
        return certain, None
    return max(certain, found.p_zero()), found.detectable()


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (Holm 1979) of the given p values; None stays None and counts for nothing.

    Raises:
        ValueError: one outside [0, 1].

    Example:
        >>> holm([0.01, 0.04, None, 0.03])
        [0.03, 0.06, None, 0.06]
    """
    if wrong := [value for value in p if value is not None and not 0 <= value <= 1]:
        raise ValueError(f"p values lie in [0, 1], not {wrong[0]!r}")
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, i) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        corrected[i] = highest
    return corrected
