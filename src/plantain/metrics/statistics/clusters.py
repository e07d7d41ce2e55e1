"""Rates over trials in clusters (several trials of one image), with their intervals, and a difference of two rates.

The gap of a judge is the mean difference, over independent images, between its pass rates of right and wrong edits.
Every image counts once: the share that passed among its right edits minus the share among its wrong ones. A judge that
answers at random, always the same, or by the image alone has a gap of 0, whatever its pass rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import LEVEL, Z95, wilson_share
from plantain.metrics.statistics.means import FEWEST, LEAST_FREEDOM, METHOD, sampling_of, too_few


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval.

    Attributes:
        successes, n: counts; `value` is their ratio, None when n is 0.
        clusters: independent units (patients or images) behind the n trials.
        low, high: 95 % interval in [0, 1]; None when n is 0.
        method: how the interval was made: "wilson", "wilson over clusters", that of `means.METHOD`, or "".
    """

    successes: int
    n: int
    clusters: int
    value: float | None
    low: float | None
    high: float | None
    method: str


def clustered_rate(patterns: Mapping[tuple[int, int], int]) -> Rate:
    """Return the rate over trials in clusters; its value is all successes over all trials.

    With one trial per cluster the interval is Wilson's. Where fewer than `FEWEST` clusters differ from 0, from 1 or
    from the commonest share, it is Wilson's with the effective number of clusters. Otherwise it is that of a mean over
    clusters (`means.py`).

    Args:
        patterns: how many clusters have (successes, trials), e.g. {(1, 2): 30, (2, 2): 12}.
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


@dataclass(frozen=True, slots=True)
class Gap:
    """Pass rate of right edits minus that of wrong ones.

    Attributes:
        value: mean over images, in [-1, 1]; this and the following are None without images.
        low, high: 95 % interval.
        bound: one-sided lower bound at the given level; alone: at 5 %.
        right, wrong: means over images of the shares that passed.
        images: images with right and wrong answers.
        answers: number of answers about them.
    """

    value: float | None
    low: float | None
    high: float | None
    bound: float | None
    alone: float | None
    right: float | None
    wrong: float | None
    images: int
    answers: int


NO_GAP = Gap(None, None, None, None, None, None, None, 0, 0)


def gap_of(given: Iterable[tuple[Hashable, bool, float]], level: float = LEVEL) -> Gap:
    """Return the gap between right and wrong edits.

    Args:
        given: (image, whether the edit was right, score of the criterion in [0, 1]). Images without answers of
            either kind are ignored.
        level: one-sided, of the bound: 0.05 for one test, divided by their number for several (Bonferroni).

    Example:
        >>> found = gap_of([(p, right, float(right)) for p in range(40) for right in (True, False)], 0.05 / 4)
        >>> f"{found.value:.0f}, at least {found.bound:.2f}"
        '1, at least 0.78'
    """
    by_image: dict[Hashable, tuple[list[float], list[float]]] = {}
    for image, right, share in given:
        by_image.setdefault(image, ([], []))[not right].append(share)
    both = [(one, other) for one, other in by_image.values() if one and other]
    if not both:
        return NO_GAP
    good, bad = (np.array([float(np.mean(pair[side])) for pair in both]) for side in (0, 1))
    differences = good - bad
    value, n = float(differences.mean()), differences.size
    if too_few(differences, -1.0, 1.0):  # as with a perfect judge: Wilson's, as if each image were one answer
        from scipy.special import ndtri

        (low, high), (bound, _), (alone, _) = (
            wilson_share((value + 1) / 2, n, z)
            for z in (Z95, float(ndtri(1 - level)), float(ndtri(1 - LEVEL)))
        )
        low, high, bound, alone = (2 * end - 1 for end in (low, high, bound, alone))
    else:
        found = sampling_of(np.full(n, 1.0 / n), differences)
        assert found is not None
        (low, high), bound, alone = found.interval(-1.0, 1.0), found.at_least(level), found.at_least()
    answers = sum(len(one) + len(other) for one, other in both)
    return Gap(value, low, high, bound, alone, float(good.mean()), float(bad.mean()), n, answers)


def shares(answers: Iterable[tuple[Hashable, float]]) -> Mapping[tuple[int, int], int]:
    """Return how many images have (successes, trials), as `clusters.clustered_rate` takes them."""
    counted: dict[Hashable, tuple[int, int]] = {}
    for image, yes in answers:
        s, n = counted.get(image, (0, 0))
        counted[image] = (s + bool(yes), n + 1)
    return Counter(counted.values())
