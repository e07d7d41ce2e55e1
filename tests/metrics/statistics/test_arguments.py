"""Statistics stay in their ranges, whatever numbers they get."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.metrics.statistics.agreement import cohen_kappa, krippendorff_alpha
from plantain.metrics.statistics.means import ClusteredMeans
from plantain.metrics.statistics.ranks import kendall, spearman

NUMBERS = st.lists(st.integers(0, 4) | st.just(math.nan), min_size=2, max_size=12)


@given(st.lists(NUMBERS, min_size=2, max_size=2), st.sampled_from(["nominal", "ordinal", "interval"]))
@settings(max_examples=120)
def test_no_coefficient_leaves_its_range(rows: list[list[float]], level: str) -> None:
    n = min(map(len, rows))
    first, second = (row[:n] for row in rows)
    alpha = krippendorff_alpha([first, second], level)  # type: ignore[arg-type]
    kappa = cohen_kappa([str(x) for x in first], [str(x) for x in second])
    for found in (alpha, kappa):
        assert found.value is None or found.value <= 1.0 + 1e-9
        assert found.low is None or found.high is None or -1 <= found.low <= found.high <= 1
    for correlation in (spearman(first, second), kendall(first, second)):
        assert correlation.value is None or -1 <= correlation.value <= 1
    mean = ClusteredMeans(range(n)).mean(first, low=0, high=4)
    assert mean.low is None or mean.high is None or 0 <= mean.low <= mean.high <= 4
