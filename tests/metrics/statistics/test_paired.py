"""Paired differences against scipy and statsmodels, and the limits of the correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from plantain.metrics.statistics.paired import holm, paired_differences


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_agrees_with_statsmodels(p):
    expected = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(expected.tolist(), abs=1e-12)


def test_p_agrees_with_the_paired_t_test_of_statsmodels():
    rng = np.random.default_rng(2)
    a = rng.normal(0.6, 0.1, 40)
    half = rng.normal(0, 0.05, 20)
    b = a - 0.02 - np.r_[half, -half]  # without skewness, for which more than t would be asked
    expected = DescrStatsW(a - b).ttest_mean(0)[1]
    low, high = DescrStatsW(a - b).tconfint_mean()
    (found,) = paired_differences({"a": a, "b": b}, range(40))
    assert found.p == pytest.approx(expected, rel=1e-9)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high), rel=1e-9)


def test_only_common_samples_are_compared():
    # b has no value for the two samples where a is best: on the common set both are equal.
    a = [0.5, 0.6, 0.7, 1.0, 1.0]
    b = [0.5, 0.6, 0.7, np.nan, np.nan]
    (found,) = paired_differences({"a": a, "b": b}, range(5))
    assert (found.estimate.value, found.estimate.n, found.p) == (0.0, 3, 1.0)
    assert not found.differs


def test_models_that_differ_by_noise_are_seldom_significant():
    # 28 pairs of 8 equal models, 60 benchmarks: the family-wise error is 5 %, 3 of 60 expected; 9 or more has
    # a probability below 0.3 %.
    seed = 7
    print("seed", seed)
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(60):
        scores = {f"m{i}": rng.random(70) for i in range(8)}
        wrong += any(found.differs for found in paired_differences(scores, range(70)))
    assert wrong < 9


def test_a_real_difference_is_found():
    rng = np.random.default_rng(11)
    base = rng.random(200)
    scores = {"good": base + 0.05 + rng.normal(0, 0.1, 200), "bad": base, "none": np.full(200, np.nan)}
    first, second, third = paired_differences(scores, range(200))
    assert first.differs and first.estimate.low > 0
    assert second.p is None and third.p_holm is None and not third.differs


def test_interval_and_p_agree():
    rng = np.random.default_rng(13)
    for n in (6, 15, 40):
        for _ in range(40):
            (found,) = paired_differences({"a": rng.exponential(1, n) - 0.4, "b": np.zeros(n)}, range(n))
            assert (found.p < 0.05) == (found.estimate.low > 0 or found.estimate.high < 0)


def test_differences_below_the_scores_resolution_are_none():
    drawn = np.full(30, (0.7 + 0.7 + 0.7) / 3)  # a constant judge, asked three times
    (found,) = paired_differences({"a": drawn, "b": np.full(30, 0.7)}, range(30))
    assert (found.estimate.value, found.p, found.differs) == (0.0, 1.0, False)


def test_three_unanimous_sources_are_not_significant():
    # Whole scores of a judge: the first model is 0.1 better on each of 3 sources. The sign test gives 2 * (1 / 2)^3.
    # The differences are equal up to rounding only: 0.3 - 0.2 is not 0.9 - 0.8 in binary.
    (found,) = paired_differences({"a": [0.3, 0.9, 0.6], "b": [0.2, 0.8, 0.5]}, "xyz")
    assert found.estimate.value == pytest.approx(0.1)
    assert (found.p, found.differs) == (0.25, False)
    (many,) = paired_differences({"a": np.full(8, 0.9), "b": np.full(8, 0.8)}, range(8))
    assert many.p == 2.0**-7
    assert many.differs
