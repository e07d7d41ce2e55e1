"""Means over readers and cases, both random samples (multi-reader multi-case analysis).

Each answer shares its reader with some answers and its case with others; treating them as independent invents
differences. The variance is the one-shot U-statistic of Gallas (2006; binary answers and scores: Gallas, Pennello and
Myers 2007, doi 10.1364/JOSAA.24.000B70), for any design. It is unbiased and can therefore be negative by chance. Tests
and intervals have Hillis' degrees of freedom (2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import Sampling
from plantain.pixels.arrays import Floats

UNBIASED = "unbiased"
TRUNCATED = "truncated: the unbiased variance is below the readers' part of it"
CASE_ONLY = "case-only: the variance over cases alone is larger than the truncated one"
NONE = "neither readers nor cases differ in the mean: no interval can be computed"

FEW = 5
"""Readers below which tests are conservative: with 3 or 4 the variance is often far too small by chance (8 % false
positives instead of 5 % in simulation), so it is never below the case-only one."""

ROUNDING = 1e-12


def careful(readers: int) -> tuple[float, float]:
    """Return the correction for few readers: (factor on the variance, cap on the degrees of freedom).

    The cap is in multiples of the readers' degrees of freedom. As published, the test has 5.5 to 6 % false positives
    instead of 5 % with 5 readers and up to 8 % with 3, because a variance that is small by chance adds many degrees of
    freedom (`benchmarks/reader_studies.py`).
    """
    return (1 + 1 / (2 * readers), 3.0) if readers < FEW else (1 + 1 / (4 * readers), 5.0)


@dataclass(frozen=True, slots=True)
class OverReaders:
    """A mean over random readers and random cases, with its interval and test.

    Attributes:
        value: the mean of all answers (or of differences).
        unbiased: the U-statistic's variance, as other programs print it; may be negative.
        variance: the variance used for interval and test: at least the variance between readers, and increased for
            few readers (`careful`).
        how: how `variance` was computed, one of this module's labels.
        freedom: Hillis' degrees of freedom; 0 without an interval.
        low, high: 95 % interval; None if it cannot be computed.
        p: two-sided p for a true value of `null`; None without an interval.
        null: the value that is tested.
        readers, cases, n: numbers of readers, cases and answers.
    """

    value: float
    unbiased: float
    variance: float
    how: str
    freedom: float
    low: float | None
    high: float | None
    p: float | None
    null: float
    readers: int
    cases: int
    n: int


def over_readers(
    answers: npt.ArrayLike, *, null: float = 0.0, low: float | None = None, high: float | None = None
) -> OverReaders:
    """Return the mean of answers to one model, or of differences between two, with its interval.

    Args:
        answers: (readers, cases), NaN where a reader did not answer.
        null: the value that is tested.
        low, high: ends of the range of the answers, within which the interval stays.

    Raises:
        ValueError: fewer than two readers or cases.

    Example:
        Two readers, three cases; by hand the reader means are 2/3 and 1/3, so the mean is 1/2, and of the pairs of
        answers by different readers to different cases (six each way) 1/6 are both 1: 1/4 - 1/6 = 1/12.

        >>> found = over_readers([[1, 1, 0], [1, 0, 0]])
        >>> found.value, round(12 * found.unbiased, 9)
        (0.5, 1.0)
    """
    table = np.asarray(answers, np.float64)
    table = table[np.isfinite(table).any(axis=1)]
    given = np.isfinite(table)
    readers, cases, n = table.shape[0], int(given.any(axis=0).sum()), int(given.sum())
    if readers < 2 or table.shape[1] < 2:
        raise ValueError(f"two readers and two cases are needed; there are {readers} and {cases}")
    value = float(table[given].mean())
    unbiased, reader_part, freedom = unbiased_variance(table), _reader_part(table), readers - 1.0
    variance, how = _tested(table, unbiased, reader_part)
    if variance <= ROUNDING * max(1.0, value * value):
        variance = max(variance, 0.0)
        return OverReaders(value, unbiased, variance, NONE, 0.0, None, None, None, null, readers, cases, n)
    wider, most = careful(readers)
    hillis = freedom * min(most, (variance / reader_part) ** 2) if reader_part > 0 else freedom * most
    variance *= wider
    error = math.sqrt(variance)
    inside = low is not None and high is not None and low < value < high
    first, last = Sampling(value, error, hillis).interval(*((low, high) if inside else (None, None)))
    first = first if low is None else max(low, first)
    last = last if high is None else min(high, last)
    p = Sampling(value - null, error, hillis).p_zero()
    return OverReaders(value, unbiased, variance, how, hillis, first, last, p, null, readers, cases, n)


def unbiased_variance(answers: Floats) -> float:
    """Return the unbiased (U-statistic) variance of the mean of answers (readers, cases), NaN for a missing answer.

    It is the squared mean minus an unbiased estimate of the squared expectation, the mean product of two answers that
    share neither reader nor case. NaN without two such answers.
    """
    given = np.isfinite(answers)
    centred = np.where(given, answers - answers[given].mean(), 0.0)
    apart = _sum_apart(given.astype(np.float64))
    return float(-_sum_apart(centred) / apart) if apart else math.nan


def _sum_apart(table: Floats) -> float:
    """Sum the products over pairs of answers, in a (readers, cases) table without NaN, that share neither."""
    reader, case = (float((table.sum(axis=axis) ** 2).sum()) for axis in (1, 0))
    return float(table.sum()) ** 2 - reader - case + float((table**2).sum())


def _tested(answers: Floats, unbiased: float, reader_part: float) -> tuple[float, str]:
    """Return the variance of intervals and tests, and its label."""
    truncated = max(unbiased if math.isfinite(unbiased) else 0.0, reader_part)
    found = truncated, UNBIASED if truncated == unbiased else TRUNCATED
    if unbiased > 0 and len(answers) >= FEW:
        return found
    return max(found, (_case_only(answers), CASE_ONLY))


def _reader_part(answers: Floats) -> float:
    """Return the readers' part of the variance of the mean."""
    count = np.isfinite(answers).sum(axis=1).astype(np.float64)
    mean = np.nansum(answers, axis=1) / count
    weight = count / count.sum()
    apart = weight * (mean - np.sum(weight * mean))
    return float(count.size / (count.size - 1) * np.sum(apart**2))


def _case_only(answers: Floats) -> float:
    """Return the variance over cases with these very readers, each reader's own mean taken out."""
    given = np.isfinite(answers)
    count = given.sum(axis=0).astype(np.float64)
    total = np.nansum(answers - np.nanmean(answers, axis=1, keepdims=True), axis=0)
    apart = float(count.sum() ** 2 - (count**2).sum())
    return -float(total.sum() ** 2 - (total**2).sum()) / apart if apart else 0.0
