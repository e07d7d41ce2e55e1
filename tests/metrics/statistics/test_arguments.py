"""What statistics are handed: dtype, shape and range are checked, each in one line that names the argument."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.metrics.statistics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.intervals import wilson
from plantain.metrics.statistics.means import ClusteredMeans
from plantain.metrics.statistics.ranks import (
    average_ranks,
    image_correlation,
    kendall,
    spearman,
)

MEANS = ClusteredMeans("abc")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fleiss_kappa([[2.5, 0.5]]), "same whole number of raters"),
        (lambda: fleiss_kappa([2, 1]), r"counts: must be \(items, categories\), not of shape \(2,\)"),
        (lambda: krippendorff_alpha([["a", "b"]], "nominal"), "ratings: numbers are needed"),
        (lambda: krippendorff_alpha([[math.inf, 2]], "nominal"), "ratings: 1 values are infinite"),
        (lambda: clustered_rate({(3, 2): 1}), "1 clusters with 3 of 2"),
        (lambda: wilson(3, 2), "3 successes of 2"),
        (lambda: MEANS.mean([1, 2, math.inf]), "values: 1 values are infinite"),
        (lambda: average_ranks([1, math.nan]), "values: 1 values are NaN"),
        (lambda: spearman([1, 2], [1, 2, 3]), "equal length"),
        (lambda: image_correlation([[1, 2]], [1, 2], "a"), r"human: must be \(images, models\)"),
    ],
)
def test_what_is_wrong_is_one_line(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


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
