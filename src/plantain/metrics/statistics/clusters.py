"""Intervals for rates: Wilson's, and one that knows that several trials may share an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Z95 = 1.959963984540054
"""Standard normal quantile of 0.975."""

FEW_CLUSTERS = 10
"""Below this many clusters a bootstrap over them promises more than it knows."""

DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval.

    Attributes:
        successes, n: counts; `value` is their ratio, None when n is 0 (nothing to take a rate of).
        clusters: independent units (patients or images) behind the n trials.
        low, high: 95 % interval in [0, 1]; None when n is 0.
        method: how the interval was made: "wilson", "wilson over clusters", "cluster bootstrap" or "".
    """

    successes: int
    n: int
    clusters: int
    value: float | None
    low: float | None
    high: float | None
    method: str


def wilson_share(share: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a binomial share (Wilson 1927; Brown, Cai, DasGupta 2001).

    Args:
        share: observed share in [0, 1].
        n: number of independent trials, above 0.
        z: standard normal quantile; the default gives 95 %.

    Returns:
        The lower and upper bound in [0, 1].

    Raises:
        ValueError: a share outside [0, 1] or n not above 0.
    """
    if not 0 <= share <= 1 or n <= 0:
        raise ValueError(f"Wilson's interval needs a share in [0, 1] and n > 0, not {share!r} of {n!r}")
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def clustered_rate(patterns: Mapping[tuple[int, int], int], seed: int, draws: int = DRAWS) -> Rate:
    """The rate over trials that come in clusters, with an interval that does not take them for independent.

    One trial per cluster: Wilson's interval. Fewer than 10 clusters, or clusters without any variation in
    their shares: Wilson's interval with the number of clusters as n, which is what the data support when
    each cluster counts as one independent answer. Otherwise a percentile bootstrap that resamples whole
    clusters; clusters with equal counts are drawn together by a multinomial, the same resampling in less
    memory.

    Args:
        patterns: how many clusters have (successes, trials), e.g. {(1, 2): 30, (2, 2): 12}.
        seed: of the bootstrap.
        draws: of the bootstrap.

    Returns:
        The rate; its value is all successes over all trials.
    """
    kept = sorted((pattern, count) for pattern, count in patterns.items() if pattern[1] > 0 and count > 0)
    successes = sum(s * count for (s, _), count in kept)
    n = sum(trials * count for (_, trials), count in kept)
    clusters = sum(count for _, count in kept)
    if n == 0:
        return Rate(0, 0, 0, None, None, None, "")
    share = successes / n
    if n == clusters:
        low, high = wilson_share(share, n)
        return Rate(successes, n, clusters, share, low, high, "wilson")
    if clusters < FEW_CLUSTERS or len({s / trials for (s, trials), _ in kept}) == 1:
        low, high = wilson_share(share, clusters)
        return Rate(successes, n, clusters, share, low, high, "wilson over clusters")
    low, high = _bootstrap(kept, clusters, seed, draws)
    return Rate(successes, n, clusters, share, low, high, "cluster bootstrap")


def _bootstrap(
    kept: list[tuple[tuple[int, int], int]], clusters: int, seed: int, draws: int
) -> tuple[float, float]:
    """Percentile interval (2.5 to 97.5) of the ratio of sums over resampled clusters."""
    rng = np.random.default_rng(seed)
    counts = np.array([count for _, count in kept], dtype=np.float64)
    successes = np.array([s for (s, _), _ in kept], dtype=np.float64)
    trials = np.array([t for (_, t), _ in kept], dtype=np.float64)
    shares: list[float] = []
    for start in range(0, draws, 200):
        drawn = rng.multinomial(clusters, counts / counts.sum(), size=min(200, draws - start))
        shares.extend((drawn @ successes) / (drawn @ trials))
    low, high = np.percentile(np.array(shares), [2.5, 97.5])
    return float(low), float(high)
