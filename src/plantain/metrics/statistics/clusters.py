"""Rates over trials in clusters (several trials of one image), with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import wilson_share
from plantain.metrics.statistics.means import FEWEST, LEAST_FREEDOM, METHOD, sampling_of


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval.

    Attributes:
        successes, n: numbers of successes and of trials; `value` is their ratio, None when n is 0.
        clusters: independent units (patients or images) behind the n trials.
        low, high: 95 % interval in [0, 1]; None when n is 0.
        method: method of the interval: "wilson", "wilson over clusters", `means.METHOD`, or "" for none.
    """

    successes: int
    n: int
    clusters: int
    value: float | None
    low: float | None
    high: float | None
    method: str


def clustered_rate(patterns: Mapping[tuple[int, int], int]) -> Rate:
    """Return all successes over all trials, with a 95 % interval that respects clusters.

    With one trial per cluster the interval is Wilson's. If fewer than `FEWEST` clusters differ from 0, from 1 or
    from the commonest share, it is Wilson's with the effective number of clusters. Otherwise it is that of a mean over
    clusters (`means.py`).

    Args:
        patterns: number of clusters by (successes, trials), e.g. {(1, 2): 30, (2, 2): 12}.
    """
    kept = sorted((pattern, count) for pattern, count in patterns.items() if pattern[1] > 0 and count > 0)
    successes = sum(s * count for (s, _), count in kept)
    n = sum(trials * count for (_, trials), count in kept)
    clusters = sum(count for _, count in kept)
    if n == 0:
        return Rate(0, 0, 0, None, None, None, "")
    share = successes / n
    if n == clusters:
        return Rate(successes, n, clusters, share, *wilson_share(share, n), "wilson")
    times, trials = (
        np.array(column, np.float64) for column in zip(*((c, p[1]) for p, c in kept), strict=True)
    )
    shares = np.array([s / of for (s, of), _ in kept])
    found = sampling_of(trials, shares, times=times)
    if found is None or found.freedom < LEAST_FREEDOM or _too_few(shares, times):
        answers = float((times @ trials) ** 2 / (times @ trials**2))
        return Rate(successes, n, clusters, share, *wilson_share(share, answers), "wilson over clusters")
    return Rate(successes, n, clusters, share, *found.interval(0.0, 1.0), METHOD)


def _too_few(shares: npt.NDArray[np.float64], times: npt.NDArray[np.float64]) -> bool:
    """Return True if fewer than `FEWEST` clusters differ from 0, from 1, or from the commonest share."""
    most = shares[np.argmax(times)]
    return any(float(times[shares != common].sum()) < FEWEST for common in (0.0, 1.0, most))
