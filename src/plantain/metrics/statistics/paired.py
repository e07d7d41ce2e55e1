"""Which of two models is better: differences on the samples that both have, for all pairs, corrected by Holm."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.resampling import Estimate, Resampling

ROUNDING = 1e-12
"""Differences that vary by less than this vary by rounding only."""


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second on their common samples.

    Attributes:
        first, second: the models.
        estimate: the mean difference with its 95 % interval.
        p: two-sided p of Student's t over clusters; None below two clusters. Where the clusters do not vary there is
            no t, and p is that of the sign test, 2^(1 - clusters): two sources that say the same prove little.
        p_holm: the same, corrected for all compared pairs.
        effect: mean difference over the standard deviation of differences (Cohen's d_z); None without
            variation.
        detectable: the difference that this many clusters find with 80 % power at the 5 % level; None where they do
            not vary.
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
    seed: int = 0,
) -> list[Difference]:
    """All pairs of models, each on the samples that both have a score for.

    Args:
        scores: for each model one value per sample, NaN where unscored.
        clusters, strata: of each sample, as for `Resampling`.
        seed: of the bootstrap.

    Returns:
        One difference per pair, in the order of `scores`.
    """
    plan = Resampling(clusters, strata, seed=seed)
    arrays = {name: np.asarray(values, np.float64) for name, values in scores.items()}
    found = []
    for first, second in combinations(arrays, 2):
        difference = arrays[first] - arrays[second]
        estimate = plan.mean(difference)
        p, detectable = _test(estimate, plan.standard_error(difference))
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


def _test(estimate: Estimate, error: tuple[float, int] | None) -> tuple[float | None, float | None]:
    """Two-sided p of Student's t (of the sign test where nothing varies), and the difference found with 80 % power."""
    from scipy.special import stdtr, stdtrit

    if estimate.value is None or error is None:
        return None, None
    size, (deviation, freedom) = abs(estimate.value), error
    if deviation <= ROUNDING * max(1.0, size):
        return (1.0 if size <= ROUNDING else 2.0 ** (1 - estimate.clusters)), None
    p = 2.0 * float(stdtr(freedom, -size / deviation))
    return p, deviation * float(stdtrit(freedom, 0.975) + stdtrit(freedom, 0.8))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (Holm 1979) of the given p values; None stays None and counts for nothing.

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
