"""Rank correlations against scipy, with ties everywhere, and areas under the ROC curve against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from plantain.metrics.statistics.areas import paired_areas
from plantain.metrics.statistics.ranks import average_ranks, formula_one, spearman

tied = st.integers(2, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n) for _ in range(2)])
)


@settings(deadline=None)
@given(tied)
def test_rank_correlations_agree_with_scipy(pair):
    a, b = pair
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert spearman(a, b).reason == "all items tied"
        return
    assert spearman(a, b).value == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-10)


@given(st.lists(st.integers(-5, 5), min_size=1))
def test_average_ranks_agree_with_scipy(values):
    assert average_ranks(values).tolist() == stats.rankdata(values).tolist()


def test_rounding_is_a_tie():
    third = (0.7 + 0.7 + 0.7) / 3  # 0.6999999999999998
    assert average_ranks([third, 0.7, 0.9]).tolist() == [1.5, 1.5, 3.0]
    assert spearman([third, 0.7, 0.7], [1, 2, 3]).reason == "all items tied"


@given(st.permutations(range(5)))
def test_formula_one_is_spearmans_without_ties_and_its_mean_over_broken_ties(order):
    squares = sum((a - b) ** 2 for a, b in enumerate(order))
    assert formula_one(range(5), order).value == pytest.approx(1 - 6 * squares / (5 * 24))
    # Two tied items: the mean of the formula over both ways to break the tie.
    tied_order = [min(rank, 3) for rank in order]
    other = [{3: 4, 4: 3}.get(rank, rank) for rank in order]
    both = [1 - 6 * sum((a - b) ** 2 for a, b in enumerate(one)) / (5 * 24) for one in (order, other)]
    assert formula_one(range(5), tied_order).value == pytest.approx(np.mean(both))


def test_areas_are_scikit_learns_with_ties() -> None:
    rng = np.random.default_rng(0)
    cases = rng.random(200) < 0.4
    first, second = (np.round(rng.normal(size=(3, 200)) + cases, 1) for _ in range(2))
    found = paired_areas(first, second, cases, np.arange(200))
    expected = [np.mean([roc_auc_score(cases, row) for row in scores]) for scores in (first, second)]
    assert (found.first, found.second) == pytest.approx(expected, abs=1e-12)
    assert found.difference == pytest.approx(expected[0] - expected[1], abs=1e-12)


def test_the_interval_is_exact_for_equal_ratings_and_covers_for_equal_means() -> None:
    rng = np.random.default_rng(0)
    cases, groups = np.arange(120) % 2 == 0, np.arange(120) // 2
    one = rng.normal(size=(3, 120)) + cases
    same = paired_areas(one, one, cases, groups)
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)
    covered = 0
    for _ in range(100):
        # Both detect the cases equally well, so the true difference is 0.
        a, b = (rng.normal(size=(4, 120)) + cases for _ in range(2))
        found = paired_areas(a, b, cases, groups)
        assert found.low is not None and found.high is not None
        covered += found.low <= 0 <= found.high
    assert covered >= 91
