"""How reliably a benchmark recovers a known order: the share of resampled sets of samples that show it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from plantain.metrics.statistics.resampling import DRAWS, drawn_sums, resampled_weights
from plantain.pixels.arrays import Floats


def recovered(
    values: Mapping[str, Floats],
    order: Sequence[str],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable],
    seed: int,
    draws: int = DRAWS,
) -> float | None:
    """Share of drawings in which the means stand in the given order, each strictly above the next.

    Args:
        values: one value per sample for each arm, higher is better; samples that an arm lacks are left out for all.
        order: arms, best first.
        clusters, strata: of each sample; clusters are drawn with replacement within each stratum.
        seed: of the drawings; draws: how many.

    Returns:
        A share in [0, 1]; None where an arm is missing or no sample is common to all.
    """
    if any(label not in values for label in order):
        return None
    table = np.stack([values[label] for label in order])
    common = np.flatnonzero(np.isfinite(table).all(axis=0))
    if not common.size:
        return None
    names: dict[Hashable, int] = {}
    code = np.array([names.setdefault(clusters[int(i)], len(names)) for i in common])
    level: dict[Hashable, int] = {}
    groups = np.zeros(len(names), np.intp)
    for place, i in zip(code, common, strict=True):
        groups[place] = level.setdefault(strata[int(i)], len(level))
    sums = np.zeros((len(names), len(order)))
    np.add.at(sums, code, table[:, common].T)
    totals = drawn_sums(resampled_weights(groups, seed, draws), sums)
    return float((np.diff(totals, axis=1) < 0).all(axis=1).mean())
