"""Power of the test in `readers.py` for given numbers of readers and cases.

A difference between two models varies by reader, by case, and by reading. With normal effects the mean squares of the
test are independent and chi-squared (Hillis 2007), so the power is an integral over three of them, taken over seeded
draws: reproducible, exact to about half a point, and of the test with its truncation and conservative rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from plantain.metrics.statistics.intervals import LEVEL
from plantain.metrics.statistics.readers import FEW, careful
from plantain.pixels.arrays import Floats

DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of the difference between two models, as one reader sees it in one case.

    Attributes:
        reader: variance between readers; case: between cases; rest: remaining variance of one reading.
    """

    reader: float
    case: float
    rest: float


SHARES = Components(reader=0.0135, case=0.057, rest=0.537)
"""Usual shares of twice the variance of one answer; the rest cancels: a reader sees both models on a case."""


def stated(variance: float) -> Components:
    """Return assumed components for answers with this variance: p (1 - p) for a rate, SD squared for a score."""
    double = 2.0 * variance
    return Components(double * SHARES.reader, double * SHARES.case, double * SHARES.rest)


def power(effect: float, readers: int, cases: int, parts: Components, *, level: float = LEVEL) -> float:
    """Return the probability of finding a difference of `effect` at a two-sided level; with 0, the type-1 error.

    Args:
        effect: true mean difference, in the unit of the answers.
        readers, cases: numbers, at least 2; every reader reads every case.
        parts: variance components of a difference.
    """
    from scipy.special import ndtr

    reach, error = _reach(readers, cases, parts, level)
    return float(np.mean(ndtr((effect - reach) / error) + ndtr((-effect - reach) / error)))


@lru_cache(maxsize=4)
def _reach(readers: int, cases: int, parts: Components, level: float) -> tuple[Floats, float]:
    """Return the critical mean difference for each draw, and the standard error of that mean."""
    from scipy.special import stdtrit

    total = readers * cases
    free = (readers - 1, cases - 1, (readers - 1) * (cases - 1))
    size = (parts.rest + cases * parts.reader, parts.rest + readers * parts.case, parts.rest)
    rng = np.random.default_rng(0)
    by_reader, by_case, left = (
        mean * rng.chisquare(df, DRAWS) / df / total for mean, df in zip(size, free, strict=True)
    )
    unbiased = by_reader + by_case - left
    variance = np.maximum(unbiased, by_reader)
    no_smaller = unbiased <= 0 if readers >= FEW else np.ones(unbiased.size, bool)
    variance = np.where(no_smaller, np.maximum(variance, by_case), variance)
    wider, most = careful(readers)
    freedom = free[0] * np.minimum((variance / by_reader) ** 2, most)
    reach = stdtrit(freedom, 1 - level / 2) * np.sqrt(wider * variance)
    return reach, math.sqrt(parts.reader / readers + parts.case / cases + parts.rest / total)
