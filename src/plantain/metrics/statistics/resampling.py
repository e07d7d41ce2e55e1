"""Intervals of means over samples that come in clusters and strata: several edits share a source image.

From 50 clusters on, a seeded bootstrap: within each stratum, n - 1 of its n clusters are drawn with
replacement and weighted by n / (n - 1), which keeps small strata from looking surer than they are (Rao and Wu
1988), and the percentiles reach as far out as Student's t. Below 50 clusters, Student's t over the clusters of
the linearised mean. One plan serves every model and metric of a table, so the draws are common to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEW_CLUSTERS = 50
DRAWS = 2000
BOOTSTRAP = "stratified cluster bootstrap"
STUDENT = "Student t over clusters"
PARTS = 32
"""Sets of clusters whose weights are kept at hand: the organs of a benchmark, and some with gaps."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        value: None when nothing was scored.
        low, high: None where nothing can be said (fewer than two clusters).
        n: scored samples; clusters: independent units behind them.
        method: how the interval was made; "" without one.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: str

    @property
    def spread(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


class Resampling:
    """One plan of resampling for all samples of a benchmark.

    Args:
        clusters: for each sample, what it shares with others (source image, patient).
        strata: for each sample, its stratum (organ); a cluster in several belongs to the one it has most
            samples in. Strata of a single cluster are drawn together. None: no strata.
        seed: of the draws.
        draws: of the bootstrap.
    """

    def __init__(
        self,
        clusters: Sequence[Hashable],
        strata: Sequence[Hashable] | None = None,
        *,
        seed: int = 0,
        draws: int = DRAWS,
    ) -> None:
        if strata is not None and len(strata) != len(clusters):
            raise ValueError(f"{len(clusters)} clusters, {len(strata)} strata: one of each per sample")
        self.cluster = _codes(clusters)
        self.group = _codes(strata if strata is not None else [0] * len(clusters))
        self.draws, self.seed = draws, seed
        self._parts: dict[bytes, Floats] = {}

    def mean(self, values: npt.ArrayLike, *, macro: bool = False) -> Estimate:
        """The mean of the finite values, with its interval.

        Args:
            values: one per sample; NaN where there is none.
            macro: average the means of the strata rather than the samples.

        Returns:
            The estimate. With one cluster or none there is no interval.
        """
        return self._measure(np.asarray(values, np.float64), macro)[0]

    def standard_error(self, values: npt.ArrayLike, *, macro: bool = False) -> tuple[float, int] | None:
        """Standard error over clusters and its degrees of freedom; None below two clusters."""
        return self._measure(np.asarray(values, np.float64), macro)[1]

    def _measure(self, values: Floats, macro: bool) -> tuple[Estimate, tuple[float, int] | None]:
        if values.shape != self.cluster.shape:
            raise ValueError(f"values {values.shape} for {self.cluster.shape[0]} samples")
        kept = np.isfinite(values)
        n = int(kept.sum())
        if not n:
            return Estimate(None, None, None, 0, 0, ""), None
        group = self.group[kept] if macro else np.zeros(n, np.intp)
        _, group_of = np.unique(group, return_inverse=True)
        size = (int(self.cluster.max()) + 1, int(group_of.max()) + 1)
        sums, counts = np.zeros(size), np.zeros(size)
        np.add.at(sums, (self.cluster[kept], group_of), values[kept])
        np.add.at(counts, (self.cluster[kept], group_of), 1.0)
        totals = counts.sum(axis=0)
        value = float(np.mean(sums.sum(axis=0) / totals))
        scored = counts.any(axis=1)
        clusters = int(scored.sum())
        if clusters < 2:
            return Estimate(value, None, None, n, clusters, ""), None
        influence = ((sums - counts * (sums.sum(axis=0) / totals)) / totals / size[1]).sum(axis=1)
        error, freedom = _linearised(influence[scored], _merged(self._members[scored]))
        if clusters < FEW_CLUSTERS:
            low, high = _student(value, error, freedom)
            return Estimate(value, low, high, n, clusters, STUDENT), (error, freedom)
        means = self._drawn_means(sums, counts)
        low, high = np.percentile(means, _levels(freedom))
        return Estimate(value, float(low), float(high), n, clusters, BOOTSTRAP), (error, freedom)

    def _drawn_means(self, sums: Floats, counts: Floats) -> Floats:
        """The mean of each draw, of (clusters, groups): over the groups that it has anything of."""
        means = np.empty((self.draws, counts.shape[1]))
        for group in range(counts.shape[1]):
            table = np.stack([sums[:, group], counts[:, group]], axis=1)
            inside = np.flatnonzero(counts[:, group])
            few = 2 * inside.size < counts.shape[0]
            drawn = drawn_sums(self._of(inside), table[inside]) if few else drawn_sums(self._weights, table)
            with np.errstate(invalid="ignore", divide="ignore"):
                means[:, group] = drawn[:, 0] / drawn[:, 1]
        return means[:, 0] if counts.shape[1] == 1 else np.asarray(np.nanmean(means, axis=1))

    def _of(self, clusters: npt.NDArray[np.intp]) -> Floats:
        """The weights of a few clusters: those of an organ are asked for by every model and metric."""
        key = clusters.tobytes()
        if key not in self._parts:
            if len(self._parts) == PARTS:
                self._parts.clear()
            self._parts[key] = np.ascontiguousarray(self._weights[:, clusters])
        return self._parts[key]

    @cached_property
    def _members(self) -> Floats:
        """Samples of each cluster in each stratum, (clusters, strata)."""
        members = np.zeros((int(self.cluster.max()) + 1, int(self.group.max()) + 1))
        np.add.at(members, (self.cluster, self.group), 1.0)
        return members

    @cached_property
    def _weights(self) -> Floats:
        """(draws, clusters); clusters without a score are drawn too and add nothing."""
        return resampled_weights(_merged(self._members), self.seed, self.draws)


def _merged(members: Floats) -> npt.NDArray[np.intp]:
    """The stratum of each cluster; strata of one cluster are merged, with the smallest other if alone."""
    stratum: npt.NDArray[np.intp] = members.argmax(axis=1)
    sizes = np.bincount(stratum, minlength=members.shape[1])
    lone = np.flatnonzero(sizes == 1)
    if lone.size:
        others = np.flatnonzero(sizes > 1)
        target = lone[0] if lone.size > 1 or not others.size else others[sizes[others].argmin()]
        stratum[np.isin(stratum, lone)] = target
    return stratum


def resampled_weights(stratum: npt.ArrayLike, seed: int, draws: int) -> Floats:
    """How often each cluster counts in each draw: float64 (draws, clusters), strata drawn separately."""
    labels = np.asarray(stratum)
    rng = np.random.default_rng(seed)
    weights = np.ones((draws, labels.size))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        n = members.size
        if n > 1:
            drawn = rng.multinomial(n - 1, np.full(n, 1.0 / n), size=draws)
            weights[:, members] = drawn * (n / (n - 1))
    return weights


def drawn_sums(weights: Floats, table: Floats) -> Floats:
    """Sums of a table's rows in each draw: (draws, clusters) times (clusters, columns).

    A matrix product would add up in another order on another number of cores, and an interval would end in another
    digit; here the order is that of the clusters.
    """
    drawn: Floats = np.einsum("dc,kc->dk", weights, np.ascontiguousarray(table.T))
    return drawn


def _codes(names: Sequence[Hashable]) -> npt.NDArray[np.intp]:
    """Numbers for names, in order of first appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.intp)


def _linearised(influence: Floats, stratum: npt.NDArray[np.intp]) -> tuple[float, int]:
    """Standard error of a sum of cluster influences, between-cluster within strata, and its freedom."""
    variance, freedom = 0.0, 0
    for label in np.unique(stratum):
        part = influence[stratum == label]
        if part.size > 1:
            variance += part.size / (part.size - 1) * float(np.sum((part - part.mean()) ** 2))
            freedom += part.size - 1
    return math.sqrt(variance), freedom


def _levels(freedom: int) -> tuple[float, float]:
    """Percentiles that reach as far out as Student's t rather than the normal (Hesterberg 2015, expanded)."""
    from scipy.special import ndtr, stdtrit

    tail = 100.0 * float(ndtr(-stdtrit(freedom, 0.975)))
    return tail, 100.0 - tail


def _student(value: float, error: float, freedom: int) -> tuple[float, float]:
    """The 95 % interval of Student's t."""
    from scipy.special import stdtrit  # on use: scipy.stats would cost over a second

    half = float(stdtrit(freedom, 0.975)) * error
    return value - half, value + half
