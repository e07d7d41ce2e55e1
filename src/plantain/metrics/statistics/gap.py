"""The gap of a judge: the mean difference, over independent images, between its pass rates of right and wrong edits.

Every image counts once: the share that passed among its right edits minus the share among its wrong ones. A judge that
answers at random, always the same, or by the image alone has a gap of 0, whatever its pass rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from plantain.metrics.statistics.intervals import LEVEL, Z95, wilson_share
from plantain.metrics.statistics.means import sampling_of, too_few


@dataclass(frozen=True, slots=True)
class Gap:
    """A judge's pass rate of right edits minus its pass rate of wrong edits, averaged over images.

    Attributes:
        value: mean over images, in [-1, 1]; None without images, as are the bounds and means.
        low, high: 95 % interval.
        bound: one-sided lower bound at the given level; alone: the same at 5 %.
        right, wrong: mean pass rates of right and of wrong edits over images.
        images: number of images with both right and wrong edits.
        answers: number of answers about these images.
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
    """Compute the gap between a judge's pass rates of right and of wrong edits, averaged over images.

    Args:
        given: (image, True if the edit was right, score of the criterion in [0, 1]). Images without both kinds of
            edit are ignored.
        level: one-sided level of the bound: 0.05 for one test, 0.05 / n for n tests (Bonferroni).

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
    """Count images by (successes, trials), as `clusters.clustered_rate` needs, from (image, answer in [0, 1])."""
    counted: dict[Hashable, tuple[int, int]] = {}
    for image, yes in answers:
        s, n = counted.get(image, (0, 0))
        counted[image] = (s + bool(yes), n + 1)
    return Counter(counted.values())
