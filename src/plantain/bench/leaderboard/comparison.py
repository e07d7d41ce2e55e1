"""Which models differ: paired differences on common samples, and the marks and ranks that follow from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from plantain.bench.leaderboard.measures import Measure
from plantain.metrics.statistics.paired import Difference, holm, paired_differences
from plantain.metrics.statistics.ranks import RESOLUTION
from plantain.pixels.arrays import Floats

BEST, SECOND = "best", "second"


def differences(
    measure: Measure,
    values: Mapping[str, Floats],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[Difference, ...]:
    """Return the differences of all pairs of models on one group of samples, corrected by Holm over these pairs.

    Args:
        measure: of the values.
        values: one value per sample for each model, NaN where unscored.
        clusters, strata: of each sample.
    """
    known = {label: array for label, array in values.items() if np.isfinite(array).any()}
    if len(known) < 2:
        return ()
    return tuple(paired_differences(known, clusters, strata, low=measure.low, high=measure.high))


def against(
    measure: Measure,
    values: Mapping[str, Floats],
    reference: str,
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[Difference, ...]:
    """Return each model minus the reference on their common samples, corrected by Holm over the models."""
    found = [
        pair
        for label, array in values.items()
        if label != reference
        for pair in differences(measure, {label: array, reference: values[reference]}, clusters, strata)
    ]
    corrected = holm([pair.p for pair in found])
    return tuple(replace(pair, p_holm=p) for pair, p in zip(found, corrected, strict=True))


def indistinct(pairs: Sequence[Difference]) -> bool:
    """Return True if the truth (first) is not ahead of the unedited input (second) by more than noise."""
    for pair in pairs:
        if pair.estimate.value is not None:
            return (pair.estimate.value if pair.estimate.low is None else pair.estimate.low) <= RESOLUTION
    return False


def ahead_of(measure: Measure, pairs: Sequence[Difference]) -> set[tuple[str, str]]:
    """Return (better, worse) for every pair whose difference is significant."""
    ahead = set()
    for pair in pairs:
        if pair.differs and pair.estimate.value:
            first_is_better = (pair.estimate.value > 0) == measure.higher_is_better
            ahead.add((pair.first, pair.second) if first_is_better else (pair.second, pair.first))
    return ahead


def marks(measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]) -> dict[str, str]:
    """Return the best and the second best model, where their differences are significant.

    Best is the model with the best mean if it differs from every other; second is the next one, if there is a best
    and it differs from every model behind it. A difference that chance can explain marks nothing.

    Args:
        measure: decides which way is better.
        means: of each model.
        pairs: the differences of all pairs.

    Returns:
        `BEST` and `SECOND` by model; most models have none.
    """
    ahead = ahead_of(measure, pairs)
    sign = -1.0 if measure.higher_is_better else 1.0
    order = [label for _, label in sorted((sign * m, label) for label, m in means.items() if m is not None)]
    found: dict[str, str] = {}
    for place, mark in enumerate((BEST, SECOND)):
        behind = order[place + 1 :]
        if not behind or not all((order[place], other) in ahead for other in behind):
            break
        found[order[place]] = mark
    return found


def ranks(
    measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]
) -> dict[str, tuple[int, int]]:
    """Return the lowest and highest rank of each model, 1 the best, at 95 % for all of them together.

    A model ranks after those that are ahead of it and before those that it is ahead of, by the paired differences
    corrected over all pairs; the order of the others is unknown (Mogstad, Romano, Shaikh and Wilhelm 2024).

    Returns:
        Ranks by model; empty below two models with a mean.
    """
    scored = [label for label, mean in means.items() if mean is not None]
    if len(scored) < 2:
        return {}
    ahead = ahead_of(measure, pairs)
    return {
        label: (
            1 + sum(worse == label for _, worse in ahead),
            len(scored) - sum(better == label for better, _ in ahead),
        )
        for label in scored
    }
