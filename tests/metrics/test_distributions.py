"""Fréchet and kernel distances against closed forms, scipy and the properties of sets of one distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from plantain.metrics.distributions import frechet, frechet_gaussians, frechet_of_features


def test_distance_of_correlated_sets_agrees_with_scipy():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12))
    b = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12)) + 0.5
    s1, s2 = np.cov(a.T), np.cov(b.T)
    shift = a.mean(0) - b.mean(0)
    expected = shift @ shift + np.trace(s1 + s2 - 2 * np.real(sqrtm(s1 @ s2)))
    assert frechet(a, b).value == pytest.approx(expected, rel=1e-8)


def test_fewer_images_than_dimensions_takes_another_way_to_the_same_number():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(30, 64)), rng.normal(0.2, 1.5, size=(30, 64))
    whole = frechet_gaussians(a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T))
    assert frechet(a, b).value == pytest.approx(whole, rel=1e-6)


def paired_features(
    rng: np.random.Generator, n: int, edit: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return truths in which patients differ widely, the same before a small edit of each, and a good edit of it."""
    patient = rng.normal(0, 10, (n, 24))
    truth = patient + rng.normal(0, 0.1, (n, 24))
    before = patient + rng.normal(0, 0.1, (n, 24)) + edit * np.r_[np.ones(4), np.zeros(20)]
    return truth, before, patient + rng.normal(0, 0.1, (n, 24))


def test_a_copy_of_the_input_is_above_the_floor_of_pairs_though_patients_differ_more():
    truth, before, good = paired_features(np.random.default_rng(12), 60, 1.5)
    copied, edited = (frechet_of_features(truth, arm, pairs=range(60)) for arm in (before, good))
    assert (copied.p, copied.pairs) == (1 / 40, 60)
    assert copied.score.value > copied.floor_high
    assert edited.p > 0.05
    assert copied.score.value > 10 * abs(edited.score.value)
    assert copied == frechet_of_features(truth, before, pairs=range(60))


def test_pairs_of_one_distribution_are_flagged_as_rarely_as_stated():
    # 5 % of 1,000 is 50, one standard error 6.9: 6.5 % is 2.2 of them above. Sources of one to three pairs.
    seed, flagged = 2026, 0
    print("seed", seed)
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(15), [1, 2, 3] * 5)
    for draw in range(1000):
        base = rng.normal(0, 3, (15, 4))[sources]
        offset = rng.normal(0, 1, (15, 2, 4))[sources]
        a, b = (base + offset[:, side] + rng.normal(0, 0.3, (30, 4)) for side in (0, 1))
        flagged += frechet_of_features(a, b, draw, pairs=sources.tolist()).p <= 0.05
    assert 25 <= flagged <= 65, flagged


def test_floor_of_pairs_with_few_sources():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(12, 3))
    five = frechet_of_features(a, a + 5, pairs=[0, 1, 2, 3, 4] * 2 + [0, 1])
    assert (five.pairs, five.p, five.floor_high) == (5, None, None)
    # Six sources have 31 other ways to change sides: 1 / 32 at best.
    six = frechet_of_features(a, a + 5, pairs=[0, 1, 2, 3, 4, 5] * 2)
    assert (six.pairs, six.p) == (6, 1 / 32)
    # The truths themselves: every swap is as far, at rounding.
    assert frechet_of_features(a, a, pairs=range(12)).p == 1.0
    alone = frechet_of_features(a, a + 5, pairs=[0] * 12)
    assert (alone.floor, alone.p) == (None, None)


def test_unscored_with_reason():
    assert frechet(np.ones((1, 1)), np.ones((1, 1))).reason == "fewer than two images on a side"
    found = frechet_of_features(np.array([[1.0], [np.nan]]), np.ones((2, 1)), pairs="ab")
    assert (found.score.reason, found.floor, found.p) == ("features are not finite", None, None)
