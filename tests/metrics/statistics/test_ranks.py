"""Rank correlations against scipy, with ties everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plantain.metrics.statistics.ranks import (
    human_ceiling,
    image_correlation,
    kendall,
    spearman,
)

tied = st.integers(2, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n) for _ in range(2)])
)


@settings(deadline=None)
@given(tied)
def test_rank_correlations_agree_with_scipy(pair):
    a, b = pair
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert spearman(a, b).reason == kendall(a, b).reason == "all items tied"
        return
    assert spearman(a, b).value == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-10)
    assert kendall(a, b).value == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-10)


def test_a_metric_that_is_the_human_score_reaches_one_and_noise_does_not():
    rng = np.random.default_rng(6)
    human = rng.integers(0, 7, (80, 6)).astype(float)
    same = image_correlation(human, human, range(80))
    noise = image_correlation(rng.random((80, 6)), human, range(80), statistic=kendall)
    assert (same.value, same.low, same.reason) == (1.0, None, "0 of 80 sources differ from 1, 5 are needed")
    assert -1 < noise.low < 0 < noise.high < 1


def test_ceiling_falls_with_the_noise_of_people():
    rng = np.random.default_rng(8)
    truth = rng.random((60, 7))
    careful = human_ceiling(truth + rng.normal(0, 0.05, (4, 60, 7)), range(60))
    careless = human_ceiling(truth + rng.normal(0, 0.5, (4, 60, 7)), range(60))
    assert careful.value > 0.9
    assert careless.value < 0.6
    alone = human_ceiling(truth[None], range(60))
    assert (alone.value, alone.n) == (None, 0)
