"""How much more often a judge passes what is right than what is wrong: the mean difference over independent pictures.

Every picture counts once: the share that passed among its right edits minus the share among its wrong ones. A judge
that answers at random, always the same, or by the picture alone has a gap of 0, whatever its rate of passing is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from plantain.metrics.statistics.intervals import LEVEL, Sampling, wilson_share
from plantain.metrics.statistics.means import sampling_of, too_few
from plantain.pixels.arrays import Floats


@dataclass(frozen=True, slots=True)
class Gap:
    """Right minus wrong.

    Attributes:
        value: mean over pictures, in [-1, 1]; None without any.
        low, high: 95 % interval; None without pictures.
        bound: one-sided lower bound at the level asked for; alone: at 5 %, as if nothing else was tested. None without
            pictures.
        right, wrong: means over pictures of the shares that passed; None without any.
        pictures: that have right and wrong answers.
        answers: behind them.
    """

    value: float | None
    low: float | None
    high: float | None
    bound: float | None
    alone: float | None
    right: float | None
    wrong: float | None
    pictures: int
    answers: int


NO_GAP = Gap(None, None, None, None, None, None, None, 0, 0)


def gap_of(answers: Iterable[tuple[Hashable, bool, float]], level: float = LEVEL) -> Gap:
    """The gap between right and wrong edits.

    Args:
        answers: (picture, whether the edit was right, how much the criterion held in [0, 1]). Pictures that lack
            answers of either kind count for nothing.
        level: one-sided, of the bound: 0.05 for one test, divided by their number for several (Bonferroni).

    Example:
        >>> found = gap_of([(p, right, float(right)) for p in range(40) for right in (True, False)], 0.05 / 4)
        >>> f"{found.value:.0f}, at least {found.bound:.2f}"
        '1, at least 0.78'
    """
    by_picture: dict[Hashable, tuple[list[float], list[float]]] = {}
    for picture, right, share in answers:
        by_picture.setdefault(picture, ([], []))[not right].append(share)
    both = [(one, other) for one, other in by_picture.values() if one and other]
    if not both:
        return NO_GAP
    good, bad = (np.array([float(np.mean(pair[side])) for pair in both]) for side in (0, 1))
    value = float((good - bad).mean())
    low, high = _interval(good - bad, value)
    return Gap(
        value,
        low,
        high,
        _bound(good - bad, value, level),
        _bound(good - bad, value, LEVEL),
        float(good.mean()),
        float(bad.mean()),
        len(both),
        sum(len(one) + len(other) for one, other in both),
    )


def _sampling(differences: Floats) -> Sampling | None:
    """Student's t over pictures; None where too few differ for it, as with a judge that is always right."""
    if too_few(differences, -1.0, 1.0):
        return None
    return sampling_of(np.full(differences.size, 1.0 / differences.size), differences)


def _interval(differences: Floats, value: float) -> tuple[float, float]:
    found = _sampling(differences)
    if found is not None:
        return found.interval(-1.0, 1.0)
    low, high = wilson_share((value + 1) / 2, differences.size)
    return 2 * low - 1, 2 * high - 1


def _bound(differences: Floats, value: float, level: float) -> float:
    """By t, corrected for skewness where that lowers it; else as if each picture had answered by a coin (Wilson)."""
    found = _sampling(differences)
    if found is not None:
        return found.at_least(level)
    from scipy.special import ndtri

    low, _ = wilson_share((value + 1) / 2, differences.size, float(ndtri(1 - level)))
    return 2 * low - 1


def shares(answers: Iterable[tuple[Hashable, float]]) -> Mapping[tuple[int, int], int]:
    """Yes and no by picture as `clusters.clustered_rate` takes them: how many pictures have (successes, trials)."""
    counted: dict[Hashable, tuple[int, int]] = {}
    for picture, yes in answers:
        s, n = counted.get(picture, (0, 0))
        counted[picture] = (s + bool(yes), n + 1)
    patterns: dict[tuple[int, int], int] = {}
    for pattern in counted.values():
        patterns[pattern] = patterns.get(pattern, 0) + 1
    return patterns
