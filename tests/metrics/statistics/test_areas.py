from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from plantain.metrics.statistics.ranks import paired_areas


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
