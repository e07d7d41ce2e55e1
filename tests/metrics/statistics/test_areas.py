from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from plantain.metrics.statistics.areas import calibration_error, clustered_area


def test_area_is_scikit_learns_with_ties() -> None:
    rng = np.random.default_rng(0)
    cases = rng.random(200) < 0.4
    scores = np.round(rng.normal(size=200) + cases, 1)
    area, low, high = clustered_area(scores, cases, np.arange(200))
    assert area == pytest.approx(roc_auc_score(cases, scores), abs=1e-12)
    assert low is not None and high is not None and 0 < low < area < high < 1


def test_interval_is_delongs_without_groups() -> None:
    """Cases 3, 2, 1 and others 2.5, 0.5, 0, -1, -2 twice over: DeLong's variance (1988) by hand, on the logit scale."""
    cases, others = np.repeat([3.0, 2.0, 1.0], 2), np.repeat([2.5, 0.5, 0.0, -1.0, -2.0], 2)
    wins = (cases[:, None] > others).astype(float)
    by_case, by_other = wins.mean(axis=1), wins.mean(axis=0)
    variance = by_case.var(ddof=1) / len(cases) + by_other.var(ddof=1) / len(others)
    truth = np.r_[np.ones(6, bool), np.zeros(10, bool)]
    area, low, high = clustered_area(np.r_[cases, others], truth, np.arange(16))
    assert area == pytest.approx(wins.mean())
    half = 1.959964 * np.sqrt(variance) / (area * (1 - area))
    middle = np.log(area / (1 - area))
    # Case and other sums of one group never meet here, so the third term of Obuchowski's variance is 0.
    assert (low, high) == pytest.approx(
        [1 / (1 + np.exp(half - middle)), 1 / (1 + np.exp(-half - middle))], abs=1e-6
    )


def test_copies_do_not_narrow_the_interval() -> None:
    rng = np.random.default_rng(1)
    cases = rng.random(80) < 0.5
    scores, groups = rng.normal(size=80) + cases, np.arange(80)
    once = clustered_area(scores, cases, groups)
    five = clustered_area(np.tile(scores, 5), np.tile(cases, 5), np.tile(groups, 5))
    assert five == pytest.approx(once, abs=1e-9)


def test_bounds_of_perfect_ranking_and_of_too_few() -> None:
    assert clustered_area([0, 1], [True, True], [0, 1]) == (None, None, None)
    assert clustered_area([0, 1, 2], [False, True, True], [0, 1, 2]) == (1.0, None, None)
    area, low, high = clustered_area(np.arange(40), np.arange(40) >= 20, np.arange(40))
    assert area == 1.0 and high == 1.0 and low is not None and 0.8 < low < 0.9  # Wilson's of 20 of 20: 0.839
    with pytest.raises(ValueError, match="finite"):
        clustered_area([0.0, np.nan], [True, False], [0, 1])


def test_coverage_over_groups_that_share_an_effect() -> None:
    """95 % intervals hold the area of the population in most of 200 draws of 60 groups of four."""
    rng = np.random.default_rng(2)
    # Scores N(0, 1) + N(0, 1) by group, cases one higher: the area is Phi(1 / sqrt(2 * 2)) between groups.
    truth, held = 0.6915, 0
    for _ in range(200):
        groups = np.repeat(np.arange(60), 4)
        cases = groups % 2 == 0
        scores = rng.normal(size=240) + rng.normal(size=60)[groups] + cases
        _, low, high = clustered_area(scores, cases, groups)
        assert low is not None and high is not None
        held += low <= truth <= high
    assert held / 200 >= 0.91


def test_calibration_error_by_hand() -> None:
    # Bin 0.2: two of 0.25, none right: 0.25 apart. Bin 0.9: two of 0.95, one right: 0.45 apart. Mean over four: 0.35.
    assert calibration_error([0.25, 0.25, 0.95, 0.95], [False, False, True, False]) == pytest.approx(0.35)
    assert calibration_error([], []) == 0.0
