"""Means over samples in clusters (edits of one source image) and strata, with their intervals.

The variance comes from the differences between clusters within their stratum, each scaled up for its weight (the
bias-reduced linearisation of Bell and McCaffrey 2002, for clusters whose samples agree), with Satterthwaite's degrees
of freedom. So a source with many samples makes an interval wide, not narrow.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.intervals import LEVEL, Sampling
from plantain.pixels.arrays import Floats
from plantain.records.messages import counted

METHOD = "Student t over sources, within its range, corrected for skewness"

FEWEST = 5
"""Differing sources below which no interval is computed."""

LEAST_FREEDOM = 2.0
"""Degrees of freedom below which no interval is computed: one source with half of the samples leaves about one."""

ROUNDING = 1e-12
"""Relative difference of values that counts as rounding."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        value: the mean; None if nothing was scored.
        low, high: ends of the interval; None if `reason` states why there is none.
        n: number of scored samples; clusters: number of independent units among them.
        method: method of the interval; "" without one.
        reason: why no interval was computed, else "".
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: str
    reason: str = ""


class ClusteredMeans:
    """Means over one set of samples, with intervals that respect clusters and strata.

    Args:
        clusters: the cluster (source image, patient) of each sample.
        strata: the stratum (organ) of each sample; a cluster in several belongs to the one with most of its samples.
            A stratum of a single cluster is merged with another. None: no strata.

    Example:
        >>> found = ClusteredMeans("aabcde").mean([0.2, 0.4, 0.5, 0.1, 0.7, 0.6], low=0, high=1)
        >>> f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f}), {found.clusters} clusters"
        '0.42 (0.00 to 0.75), 5 clusters'
    """

    def __init__(self, clusters: Sequence[Hashable], strata: Sequence[Hashable] | None = None) -> None:
        self.cluster = numbered(clusters)
        self.group = numbered(strata if strata is not None else [0] * len(clusters))

    def mean(self, values: npt.ArrayLike, *, low: float | None = None, high: float | None = None) -> Estimate:
        """Return the mean of the finite values, with its interval or the reason why it has none.

        Args:
            values: one value per sample; NaN if missing.
            low, high: ends of the values' range, None if unbounded; an end that a value exceeds is ignored.
        """
        means = self._by_cluster(values)
        if means is None:
            return Estimate(None, None, None, 0, 0, "")
        mean, n, (weight, value, stratum) = means
        sampling = sampling_of(weight, value, stratum)
        reason = too_few(value, low, high, stratum)
        if sampling is not None and not reason and sampling.freedom < LEAST_FREEDOM:
            reason = f"too much of the mean depends on few of the {value.size} sources"
        if reason or sampling is None:
            return Estimate(mean, None, None, n, value.size, "", reason)
        ends = (
            low if low is not None and (value >= low).all() else None,
            high if high is not None and (value <= high).all() else None,
        )
        return Estimate(mean, *sampling.interval(*ends), n, value.size, METHOD)

    def sampling(self, values: npt.ArrayLike) -> Sampling | None:
        """Return the mean with its standard error over clusters; None below two clusters."""
        means = self._by_cluster(values)
        return None if means is None else sampling_of(*means[2])

    def detectable(self, deviation: float, *, pairs: int = 1) -> float | None:
        """Return the smallest mean difference that these samples detect with 80 % power at the 5 % level.

        Args:
            deviation: standard deviation between the clusters' mean differences.
            pairs: number of comparisons, for Bonferroni's correction.

        Returns:
            The difference in the unit of `deviation`; None if the samples would allow no interval.
        """
        means = self._by_cluster(np.zeros(self.cluster.size))
        if means is None or means[2][0].size < FEWEST:
            return None
        weight, value, stratum = means[2]
        found = sampling_of(weight, value, stratum)
        if found is None or found.freedom < LEAST_FREEDOM:
            return None
        return replace(found, error=deviation * float(np.sqrt(weight @ weight))).detectable(LEVEL / pairs)

    def differing_clusters(self, values: npt.ArrayLike) -> int:
        """Count the clusters whose mean differs from 0 by more than rounding."""
        means = self._by_cluster(values)
        return 0 if means is None else int((np.abs(means[2][1]) > ROUNDING).sum())

    def _by_cluster(
        self, values: npt.ArrayLike
    ) -> tuple[float, int, tuple[Floats, Floats, npt.NDArray[np.intp]]] | None:
        """Return the mean, the number of scored samples, and each cluster's weight (sum 1), mean and stratum."""
        array = np.asarray(values, np.float64)
        kept = np.isfinite(array)
        n = int(kept.sum())
        if not n:
            return None
        cluster, known = self.cluster[kept], array[kept]
        weight, total = np.zeros(self._members.shape[0]), np.zeros(self._members.shape[0])
        np.add.at(weight, cluster, 1.0 / n)
        np.add.at(total, cluster, known * (1.0 / n))
        scored = weight > 0
        return (
            float(known.mean()),
            n,
            (weight[scored], total[scored] / weight[scored], _merged(self._members[scored])),
        )

    @cached_property
    def _members(self) -> Floats:
        """Number of samples of each cluster in each stratum, (clusters, strata)."""
        members = np.zeros((int(self.cluster.max()) + 1, int(self.group.max()) + 1))
        np.add.at(members, (self.cluster, self.group), 1.0)
        return members


def too_few(
    values: Floats,
    low: float | None = None,
    high: float | None = None,
    stratum: npt.NDArray[np.intp] | None = None,
) -> str:
    """Return why the clusters' values allow no confidence interval; "" if they allow one.

    At least `FEWEST` must differ from 0, from either end of the range, and from their stratum's commonest value.
    """
    if values.size < FEWEST:
        return f"{counted(values.size, 'independent source')}, {FEWEST} are needed"
    for common in (0.0, low, high):
        if common is not None and (different := _different(values - common, max(1.0, abs(common)))) < FEWEST:
            return f"{different} of {values.size} sources differ from {common:g}, {FEWEST} are needed"
    middle = np.empty(values.size)
    for label in np.unique(stratum) if stratum is not None else (None,):
        inside = slice(None) if stratum is None else stratum == label
        middle[inside] = np.median(values[inside])
    different = _different(values - middle, max(1.0, float(np.abs(middle).max())))
    if different < FEWEST and 2 * different <= values.size:
        return f"{different} of {values.size} sources differ from the others, {FEWEST} are needed"
    return ""


def _different(deviations: Floats, size: float) -> int:
    return int((np.abs(deviations) > ROUNDING * size).sum())


def sampling_of(
    weight: Floats,
    value: Floats,
    stratum: npt.NDArray[np.intp] | None = None,
    times: Floats | None = None,
) -> Sampling | None:
    """Return the weighted mean of clusters with its standard error; None below two clusters.

    Args:
        weight, value: weight, above 0, and value of each cluster, (k,).
        stratum: index of each cluster's stratum, (k,). None: a single stratum.
        times: number of identical clusters that an entry represents, (k,). None: one.
    """
    times = np.ones(weight.size) if times is None else times
    weight = weight / float(times @ weight)
    mean, variance, expected, spread, second, third = float((times * weight) @ value), 0.0, 0.0, 0.0, 0.0, 0.0
    for label in np.unique(stratum) if stratum is not None else (None,):
        inside = slice(None) if stratum is None else stratum == label
        c, m = weight[inside], times[inside]
        if m.sum() < 2:
            continue
        total = float(m @ c)
        w = c / total
        squares = float(m @ w**2)
        scale = 1.0 / np.maximum(1.0 - 2.0 * w + squares, ROUNDING)
        share = w**2 * scale
        hidden = w * np.sqrt(scale) * (value[inside] - (m * w) @ value[inside]) * total
        variance += float(m @ hidden**2)
        second, third = second + float(m @ hidden**2), third + float(m @ hidden**3)
        expected += total**2 * squares
        spread += total**4 * _trace(w, share, squares, m)
    if not expected:
        return None
    return Sampling(
        mean, float(np.sqrt(variance)), expected**2 / spread, third / second / second**0.5 if second else 0.0
    )


def _trace(w: Floats, d: Floats, squares: float, times: Floats) -> float:
    """Return the trace of (M' D M)² for M = 1 - 1w', D = diag(d), for the variance of the variance."""
    total, mixed, dd = float(times @ d), float(times @ (w * d)), float(times @ d**2)
    return (
        dd * (1 + 2 * squares)
        + 2 * mixed**2
        + (total * squares) ** 2
        - 4 * float(times @ (w * d * d))
        + 2 * total * float(times @ (w * w * d))
        - 4 * total * squares * mixed
    )


def _merged(members: Floats) -> npt.NDArray[np.intp]:
    """Return the stratum of each cluster; strata of one cluster are merged, with the smallest other if alone."""
    stratum: npt.NDArray[np.intp] = members.argmax(axis=1)
    sizes = np.bincount(stratum, minlength=members.shape[1])
    lone = np.flatnonzero(sizes == 1)
    if lone.size:
        others = np.flatnonzero(sizes > 1)
        target = lone[0] if lone.size > 1 or not others.size else others[sizes[others].argmin()]
        stratum[np.isin(stratum, lone)] = target
    return stratum


def mean_of_known(values: Floats, axis: int) -> Floats:
    """Return the mean of the finite values along an axis; NaN where none is finite."""
    known = np.isfinite(values)
    count = known.sum(axis=axis)
    return np.where(count > 0, np.where(known, values, 0.0).sum(axis=axis) / np.maximum(count, 1), np.nan)


def numbered(names: Sequence[Hashable]) -> npt.NDArray[np.intp]:
    """Replace names by integers (n,), counted from 0 in order of first appearance; equal names share one."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.intp)
