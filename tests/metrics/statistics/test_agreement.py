"""Coefficients of agreement against scikit-learn, nltk and values derived by hand."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import binary_distance, interval_distance
from sklearn.metrics import cohen_kappa_score

from plantain.metrics.statistics.agreement import ONE_CATEGORY, cohen_kappa, icc, krippendorff_alpha
from plantain.metrics.statistics.means import ClusteredMeans
from plantain.metrics.statistics.ranks import spearman

# The data of Krippendorff's "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers,
# twelve units, missing entries; published there: nominal 0.743, interval 0.849.
X = np.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
)


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("interval", 0.849)])
def test_alpha_of_the_published_example(level, published):
    found = krippendorff_alpha(KRIPPENDORFF, level)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert found.items == 11  # the last unit has one rating
    assert found.low < found.value < found.high <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5), st.integers(3, 15))
def test_alpha_agrees_with_nltk(seed, raters, items):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (raters, items)).astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    triples = [
        (r, i, table[r, i])
        for i in range(items)
        for r in range(raters)
        if np.isfinite(table[r, i]) and np.isfinite(table[:, i]).sum() >= 2
    ]
    if len({v for _, _, v in triples}) < 2:
        assert krippendorff_alpha(table, "nominal").value is None
        return
    for level, distance in (("nominal", binary_distance), ("interval", interval_distance)):
        expected = AnnotationTask(data=triples, distance=distance).alpha()
        assert krippendorff_alpha(table, level).value == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31))
def test_cohen_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 50)
    second = np.where(rng.random(50) < 0.6, first, rng.integers(0, 4, 50))
    found = cohen_kappa(first.tolist(), second.tolist(), categories=range(4))
    expected = cohen_kappa_score(first, second, labels=list(range(4)))
    assert found.value == pytest.approx(expected, abs=1e-12)


def test_high_raw_agreement_without_kappa_states_its_prevalence():
    # 100 items: 92 both yes, 4 and 4 mixed. Expected agreement 0.96^2 + 0.04^2 = 0.9232; kappa -0.042.
    first = ["yes"] * 96 + ["no"] * 4
    second = ["yes"] * 92 + ["no"] * 4 + ["yes"] * 4
    found = cohen_kappa(first, second)
    assert found.observed == pytest.approx(0.92)
    assert found.value == pytest.approx((0.92 - 0.9232) / (1 - 0.9232))
    assert found.prevalence == pytest.approx(0.96)


def test_one_category_has_no_coefficient():
    assert cohen_kappa(["a"] * 5, ["a"] * 5).reason == ONE_CATEGORY
    for level in ("nominal", "interval"):
        assert krippendorff_alpha([[2, 2], [2, 2]], level).reason == ONE_CATEGORY
    assert krippendorff_alpha([[1, X], [X, 2]], "nominal").reason == "no item has two ratings"


def test_interval_over_clusters_is_wider_than_over_items():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 60)
    second = np.where(rng.random(60) < 0.75, first, 1 - first)
    a, b = np.repeat(first, 6).tolist(), np.repeat(second, 6).tolist()
    items = cohen_kappa(a, b)
    clustered = cohen_kappa(a, b, clusters=np.repeat(np.arange(60), 6).tolist())
    assert clustered.high - clustered.low > 2 * (items.high - items.low)
    assert (clustered.items, clustered.clusters) == (360, 60)


@pytest.mark.parametrize(("kappa", "share", "items"), [(0.6, 0.5, 15), (0.2, 0.2, 25)])
def test_intervals_of_few_items_cover(kappa, share, items):
    # Two raters, of whom the second repeats the first with the probability kappa and otherwise draws again. A
    # percentile bootstrap over 10 items covers 0.6 84 times in 100, over 5 items 54 times.
    seed = 3
    print("seed", seed)
    rng = np.random.default_rng(seed)
    covered = known = 0
    for _ in range(400):
        first, other = (rng.random((2, items)) < share).astype(int)
        second = np.where(rng.random(items) < kappa, first, other)
        found = cohen_kappa(first.tolist(), second.tolist(), categories=[0, 1])
        if found.low is not None and found.high is not None:
            known += 1
            covered += found.low <= kappa <= found.high
            assert -1 <= found.low < found.high <= 1
    assert known > 200
    assert covered / known >= 0.93


def test_kappa_without_its_extra_has_no_value_and_names_the_install_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = cohen_kappa([0, 1, 1], [0, 1, 0])
    assert (found.value, found.observed, found.items) == (None, pytest.approx(2 / 3), 3)
    assert re.fullmatch(r"needs statsmodels: (in plantain's clone: )?pip install .*\[stats\]'", found.reason)


def test_icc_is_mcgraw_and_wongs():
    # Shrout and Fleiss' table; the interval that R's psych::ICC prints for ICC2 is 0.019 to 0.761
    found = icc([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]])
    assert (found.value, found.low, found.high) == pytest.approx((0.290, 0.019, 0.761), abs=5e-4)
    assert icc([[1, 2, 3]]).value is None


NUMBERS = st.lists(st.integers(0, 4) | st.just(math.nan), min_size=2, max_size=12)


@given(st.lists(NUMBERS, min_size=2, max_size=2), st.sampled_from(["nominal", "interval"]))
@settings(max_examples=120)
def test_no_coefficient_leaves_its_range(rows, level):
    n = min(map(len, rows))
    first, second = (row[:n] for row in rows)
    alpha = krippendorff_alpha([first, second], level)
    kappa = cohen_kappa([str(x) for x in first], [str(x) for x in second])
    for found in (alpha, kappa):
        assert found.value is None or found.value <= 1.0 + 1e-9
        assert found.low is None or found.high is None or -1 <= found.low <= found.high <= 1
    correlation = spearman(first, second).value
    assert correlation is None or -1 <= correlation <= 1
    mean = ClusteredMeans(range(n)).mean(first, low=0, high=4)
    assert mean.low is None or mean.high is None or 0 <= mean.low <= mean.high <= 4
