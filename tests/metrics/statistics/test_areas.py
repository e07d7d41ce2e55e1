from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from plantain.metrics.statistics.areas import paired_areas


def test_areas_are_scikit_learns_with_ties() -> None:
    rng = np.random.default_rng(0)
    cases = rng.random(200) < 0.4
    first, second = (np.round(rng.normal(size=(3, 200)) + cases, 1) for _ in range(2))
    found = paired_areas(first, second, cases, np.arange(200))
    expected = [np.mean([roc_auc_score(cases, row) for row in scores]) for scores in (first, second)]
    assert (found.first, found.second) == pytest.approx(expected, abs=1e-12)
    assert found.difference == pytest.approx(expected[0] - expected[1], abs=1e-12)


def test_the_interval_is_exact_where_nothing_differs_and_covers_where_nothing_does_on_average() -> None:
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


def test_copies_of_images_do_not_narrow_the_interval() -> None:
    rng = np.random.default_rng(1)
    cases, groups = rng.random(80) < 0.5, np.arange(80)
    a, b = (rng.normal(size=(3, 80)) + cases for _ in range(2))
    once = paired_areas(a, b, cases, groups)
    five = paired_areas(np.tile(a, 5), np.tile(b, 5), np.tile(cases, 5), np.tile(groups, 5))
    assert (five.low, five.high) == pytest.approx((once.low, once.high), abs=1e-9)


def test_too_few_groups_have_no_interval_and_one_repeat_is_an_error() -> None:
    scores, cases = np.arange(6.0)[None].repeat(2, 0), np.array([False, True, True, False, True, True])
    found = paired_areas(scores, scores, cases, np.arange(6))
    assert (found.low, found.high) == (None, None)  # two groups without the finding; five are needed
    with pytest.raises(ValueError, match="two repeats"):
        paired_areas(scores[:1], scores[:1], cases, np.arange(6))
    with pytest.raises(ValueError, match="cases and other"):
        paired_areas(scores, scores, np.ones(6, bool), np.arange(6))
