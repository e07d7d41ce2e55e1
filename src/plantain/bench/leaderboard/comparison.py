"""Which models are told apart: paired differences on common samples, and the marks that follow from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from plantain.bench.leaderboard.measures import Measure
from plantain.metrics.statistics.paired import Difference, paired_differences
from plantain.pixels.arrays import Floats

BEST, SECOND = "best", "second"


def differences(
    measure: Measure,
    values: Mapping[str, Floats],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[Difference, ...]:
    """All pairs of models of one group of samples, corrected by Holm over these pairs; empty below two models."""
    known = {label: array for label, array in values.items() if np.isfinite(array).any()}
    if len(known) < 2:
        return ()
    return tuple(paired_differences(known, clusters, strata, low=measure.low, high=measure.high))


def marks(measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]) -> dict[str, str]:
    """Which model is best and which second, where the differences are more than noise.

    Best is the model with the best mean, if it differs from every other; second the next one, if there is a best and
    it differs from every one behind it. Nothing is marked otherwise: a bold number that chance chose says too much.

    Args:
        measure: which way is up.
        means: of each model.
        pairs: the differences of all pairs.

    Returns:
        The marks by model; most have none.
    """
    sign = 1.0 if measure.higher_is_better else -1.0
    scored = [(sign * mean, label) for label, mean in means.items() if mean is not None]
    order = [label for _, label in sorted(scored, key=lambda pair: (-pair[0], pair[1]))]
    apart = {frozenset((pair.first, pair.second)): pair for pair in pairs}

    def ahead(label: str, others: Sequence[str]) -> bool:
        return bool(others) and all(
            _ahead(apart.get(frozenset((label, other))), label, sign) for other in others
        )

    if not ahead(order[0] if order else "", order[1:]):
        return {}
    found = {order[0]: BEST}
    if len(order) > 2 and ahead(order[1], order[2:]):
        found[order[1]] = SECOND
    return found


def places(
    measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]
) -> dict[str, tuple[int, int]]:
    """From which to which place each model may have, 1 the best, at 95 % for all of them together.

    A model stands behind those that are ahead of it, and before those that it is ahead of, by the paired differences
    corrected over all pairs; which of the others come first is not known (Mogstad, Romano, Shaikh and Wilhelm 2024).

    Returns:
        Places by model; empty below two models with a mean.
    """
    sign = 1.0 if measure.higher_is_better else -1.0
    scored = [label for label, mean in means.items() if mean is not None]
    if len(scored) < 2:
        return {}
    known = [pair for pair in pairs if pair.differs and pair.estimate.value]
    ahead = [
        (p.first, p.second) if sign * (p.estimate.value or 0.0) > 0 else (p.second, p.first) for p in known
    ]
    return {
        label: (
            1 + sum(behind == label for _, behind in ahead),
            len(scored) - sum(first == label for first, _ in ahead),
        )
        for label in scored
    }


def _ahead(pair: Difference | None, label: str, sign: float) -> bool:
    if pair is None or not pair.differs or pair.estimate.value is None:
        return False
    return sign * pair.estimate.value * (1 if pair.first == label else -1) > 0
