"""Means and areas under the curve, readers and cases both samples: what other readers of other cases would say.

Taking the votes of a study for independent invents differences: each answer shares its
reader with some and its case with others. The variance here is the one-shot U-statistic of Gallas (2006; binary and
scores: Gallas, Pennello and Myers 2007, doi 10.1364/JOSAA.24.000B70), for any design. It is unbiased and
can therefore be negative by chance. Tests and intervals have Hillis' degrees of freedom (2007; split-plot: 2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import Sampling
from plantain.pixels.arrays import Floats

UNBIASED = "unbiased"
BY_GROUP = "unbiased, each group of readers and cases by itself"
NO_CASE_COVARIANCE = "truncated: the covariance over cases came out negative and counts as 0"
TRUNCATED = "truncated: the unbiased variance is not above 0"
CASE_ONLY = (
    "case-only: the unbiased variance is not above 0, and cases alone vary more than the truncated one"
)
NONE = "neither readers nor cases differ in the mean: nothing says how sure this is"

FEW = 5
"""Readers below which tests are conservative: of 3 or 4 the variance is often far too small by chance (8 % instead of
5 % in simulation), so it is never below the case-only one."""

FEW_READERS = (
    f"case-only: larger than the unbiased one, and of fewer than {FEW} readers the larger one is taken"
)

ROUNDING = 1e-12


def careful(readers: int) -> tuple[float, float]:
    """What few readers ask for beyond Hillis: a factor of the variance, and the most of their own degrees of freedom.

    As published, the test finds 5.5 to 6 % instead of 5 % with 5 readers and up to 8 % with 3, because a variance that
    came out small by chance brings many degrees of freedom with it (`benchmarks/reader_studies.py`).
    """
    return (1 + 1 / (2 * readers), 3.0) if readers < FEW else (1 + 1 / (4 * readers), 5.0)


@dataclass(frozen=True, slots=True)
class OverReaders:
    """A mean over readers and cases, both random.

    Attributes:
        value: the mean of all answers (of differences, or an area under the curve).
        unbiased: the U-statistic's variance, as other programs print it; may be negative.
        variance: what the interval and the test rest on: never below the readers' own part, widened a little for few
            readers (`careful`).
        how: which of the labels of this module `variance` is.
        freedom: Hillis' degrees of freedom; 0 where there is no interval.
        low, high: 95 % interval; None where nothing can be said.
        p: two-sided, of the value being `null`; None without an interval.
        null: the value that is tested.
        readers, cases, n: counts; `n` answers (for areas: of all readers, pairs).
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
    first: npt.ArrayLike,
    second: npt.ArrayLike | None = None,
    *,
    null: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> OverReaders:
    """The mean answer to one model, or the mean difference between two.

    Args:
        first, second: (readers, cases), NaN where a reader did not answer; a difference counts where both are given.
        null: the value that is tested; None: 0.
        low, high: ends of the range of one model's answers, within which its interval stays; for a difference, leave.

    Returns:
        The mean with its interval.

    Raises:
        ValueError: fewer than two readers or cases, or shapes that differ.

    Example:
        Two readers, three cases; by hand the reader means are 2/3 and 1/3, so the mean is 1/2, and of the pairs of
        answers by different readers to different cases (six each way) 1/6 are both 1: 1/4 - 1/6 = 1/12.

        >>> found = over_readers([[1, 1, 0], [1, 0, 0]])
        >>> found.value, round(12 * found.unbiased, 9)
        (0.5, 1.0)
    """
    answers = _table(first, "first")
    if second is not None:
        other = _table(second, "second")
        if other.shape != answers.shape:
            raise ValueError(
                f"first is {answers.shape}, second {other.shape}: the same readers and cases are needed"
            )
        answers = answers - other
    return _over(answers, 0.0 if null is None else null, low, high)


def area_over_readers(
    first: npt.ArrayLike,
    truth: npt.ArrayLike,
    second: npt.ArrayLike | None = None,
    *,
    null: float | None = None,
) -> OverReaders:
    """The mean area under the readers' ROC curves, or the mean difference between two models' areas.

    Args:
        first, second: (readers, cases) of scores, higher for true; NaN where a reader did not answer.
        truth: (cases,) bool.
        null: the value that is tested; None: 0.5 for one model, 0 for a difference.

    Raises:
        ValueError: as for `over_readers`; fewer than two true or two false cases.
    """
    true = np.asarray(truth, bool)
    kernel = _areas(_table(first, "first"), true)
    if second is None:
        return _over(kernel, 0.5 if null is None else null, 0.0, 1.0)
    return _over(kernel - _areas(_table(second, "second"), true), 0.0 if null is None else null, None, None)


def unbiased_variance(answers: Floats) -> float:
    """The U-statistic's variance of the mean of (readers, cases) or (readers, false cases, true cases); NaN: no answer.

    The square of the mean, less the unbiased estimate of the squared expectation: the mean product of two answers
    that share neither reader nor case.
    """
    given = np.isfinite(answers)
    known = np.where(given, answers, 0.0)
    mean = known.sum() / given.sum()
    centred = np.where(given, answers - mean, 0.0)  # the variance is the same, its rounding is not
    apart = _apart(given.astype(np.float64))
    return float(-_apart(centred) / apart) if apart else math.nan


def mean_products(answers: Floats) -> dict[tuple[int, ...], float]:
    """The mean product of two answers that share just these indices (Gallas' moments); NaN where there are none."""
    given = np.isfinite(answers)
    known, design = _products(np.where(given, answers, 0.0)), _products(given.astype(np.float64))
    return {shared: known[shared] / n if n else math.nan for shared, n in design.items()}


def _products(table: Floats) -> dict[tuple[int, ...], float]:
    """Sums of products of all ordered pairs of entries that share just these indices, by inclusion and exclusion."""
    axes = range(table.ndim)
    subsets = [shared for k in range(table.ndim + 1) for shared in combinations(axes, k)]
    at_least = {
        shared: float(np.sum(table.sum(axis=tuple(axis for axis in axes if axis not in shared)) ** 2))
        for shared in subsets
    }
    return {
        shared: sum(
            (-1) ** (len(more) - len(shared)) * at_least[more] for more in subsets if set(shared) <= set(more)
        )
        for shared in subsets
    }


def _apart(table: Floats) -> float:
    """The sum of products of pairs that differ in every index."""
    return _products(table)[()]


def _over(answers: Floats, null: float, low: float | None, high: float | None) -> OverReaders:
    given = np.isfinite(answers)
    each = given.reshape(given.shape[0], -1).sum(axis=1)
    answers, given, each = answers[each > 0], given[each > 0], each[each > 0]
    readers = answers.shape[0]
    cases = sum(
        int(given.any(axis=tuple(a for a in range(given.ndim) if a != axis)).sum())
        for axis in range(1, given.ndim)
    )
    if readers < 2 or min(given.shape[1:], default=0) < 2:
        raise ValueError(f"{readers} readers and {cases} cases: at least two of each are needed")
    n = int(given.sum())
    value = float(np.where(given, answers, 0.0).sum() / n)
    unbiased = unbiased_variance(answers)
    group = _groups(given.reshape(readers, -1))
    reader_part, freedom = _reader_part(answers, given, group)
    variance, how = _tested(answers, given, group, unbiased, reader_part)
    if variance <= ROUNDING * max(1.0, value * value):
        return OverReaders(
            value, unbiased, max(variance, 0.0), NONE, 0.0, None, None, None, null, readers, cases, n
        )
    wider, most = careful(readers)
    hillis = freedom * min(most, (variance / reader_part) ** 2) if reader_part > 0 else freedom * most
    variance *= wider
    error = math.sqrt(variance)
    inside = low is not None and high is not None and low < value < high
    ends = (low, high) if inside else (None, None)
    bounds = Sampling(value, error, hillis).interval(*ends)
    if not inside:
        bounds = (
            bounds[0] if low is None else max(low, bounds[0]),
            bounds[1] if high is None else min(high, bounds[1]),
        )
    p = Sampling(value - null, error, hillis).p_zero()
    return OverReaders(value, unbiased, variance, how, hillis, *bounds, p, null, readers, cases, n)


def _tested(
    answers: Floats,
    given: npt.NDArray[np.bool_],
    group: npt.NDArray[np.intp],
    unbiased: float,
    reader_part: float,
) -> tuple[float, str]:
    """The variance that intervals and tests rest on, and what it is."""
    label = UNBIASED
    sizes = np.bincount(group)
    if sizes.size > 1 and sizes.min() > 1:
        # Groups share nothing: each has a variance of its own, which says more than products across groups do.
        share = np.bincount(group, given.reshape(group.size, -1).sum(axis=1)) / given.sum()
        unbiased = sum(w * w * unbiased_variance(answers[group == g]) for g, w in enumerate(share))
        label = BY_GROUP
    truncated = max(unbiased if math.isfinite(unbiased) else 0.0, reader_part)
    label = label if truncated == unbiased else NO_CASE_COVARIANCE
    if unbiased > 0 and group.size >= FEW:
        return truncated, label
    labels = (label, FEW_READERS) if unbiased > 0 else (TRUNCATED, CASE_ONLY)
    return max((truncated, labels[0]), (_case_only(answers, given), labels[1]))


def _reader_part(
    answers: Floats, given: npt.NDArray[np.bool_], group: npt.NDArray[np.intp]
) -> tuple[float, float]:
    """What readers' own means add to the variance of their mean, and the degrees of freedom of that.

    In a split-plot the readers of one group of cases are compared with each other; where a group has a single reader,
    groups are compared, which is all that can be.
    """
    flat, known = answers.reshape(group.size, -1), given.reshape(group.size, -1)
    count = known.sum(axis=1).astype(np.float64)
    mean = np.where(known, flat, 0.0).sum(axis=1) / count
    sizes = np.bincount(group)
    weight = count / count.sum()
    if sizes.size > 1 and sizes.min() < 2:  # groups stand for readers
        total = np.bincount(group, weight)
        mean = np.bincount(group, weight * mean) / total
        weight, group, sizes = total, np.zeros(sizes.size, np.intp), np.array([sizes.size])
    centre = (np.bincount(group, weight * mean) / np.bincount(group, weight))[group]
    scale = (sizes / np.maximum(sizes - 1, 1))[group]
    return float(np.sum(scale * weight**2 * (mean - centre) ** 2)), float(group.size - sizes.size)


def _groups(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Readers who share cases, directly or through others, have one number."""
    group = np.arange(known.shape[0])
    for i, j in combinations(range(known.shape[0]), 2):
        if group[i] != group[j] and (known[i] & known[j]).any():
            group[group == group[j]] = group[i]
    return np.unique(group, return_inverse=True)[1].astype(np.intp)


def _case_only(answers: Floats, given: npt.NDArray[np.bool_]) -> float:
    """The variance over cases with these very readers, each reader's own mean taken out."""
    axes = tuple(range(1, answers.ndim))
    count = given.sum(axis=axes, keepdims=True)
    mean = np.where(given, answers, 0.0).sum(axis=axes, keepdims=True) / count
    apart = _apart(given.sum(axis=0).astype(np.float64))
    return -_apart(np.where(given, answers - mean, 0.0).sum(axis=0)) / apart if apart else 0.0


def _table(answers: npt.ArrayLike, name: str) -> Floats:
    table = np.asarray(answers, np.float64)
    if table.ndim != 2:
        raise ValueError(f"{name} must be (readers, cases), not {table.shape}")
    return table


def _areas(scores: Floats, true: npt.NDArray[np.bool_]) -> Floats:
    """(readers, false cases, true cases): 1 where the true case scores higher, 1/2 at a tie, NaN without either."""
    if true.shape != scores.shape[1:]:
        raise ValueError(f"{true.size} truths for {scores.shape[1]} cases")
    if min(true.sum(), (~true).sum()) < 2:
        raise ValueError(
            f"{int(true.sum())} true and {int((~true).sum())} false cases: two of each are needed"
        )
    apart = scores[:, None, true] - scores[:, ~true, None]
    kernel: Floats = (np.sign(apart) + 1.0) / 2.0
    return kernel
