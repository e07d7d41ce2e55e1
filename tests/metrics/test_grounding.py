"""Attention maps against regions, with values derived by hand and by other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.filters import threshold_otsu

from plantain.metrics.grounding import grounding


def box(size: int, top: int, left: int, height: int, width: int) -> np.ndarray:
    mask = np.zeros((size, size), bool)
    mask[top : top + height, left : left + width] = True
    return mask


def test_a_planted_map_gives_the_overlap_of_geometry() -> None:
    # map on rows 0-7, region on rows 4-11, same columns: overlap 4 rows of 12 in the union
    planted, roi = box(32, 0, 8, 8, 16), box(32, 4, 8, 8, 16)
    found = grounding(planted.astype(float) + 0.01, roi)
    assert found.iou.value == pytest.approx(4 / 12)
    assert found.selected == pytest.approx(8 * 16 / 1024)


def test_noise_is_at_chance() -> None:
    rng = np.random.default_rng(11)
    roi = box(64, 10, 10, 30, 30)
    found = [grounding(rng.random((64, 64)), roi) for _ in range(40)]
    gap = [
        f.iou.value - f.chance.value for f in found if f.iou.value is not None and f.chance.value is not None
    ]
    assert np.mean(gap) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(
    ("attention", "roi", "reason"),
    [
        (np.full((8, 8), 0.3), box(8, 1, 1, 2, 2), "degenerate map"),
        (np.full((8, 8), np.nan), box(8, 1, 1, 2, 2), "degenerate map"),
        (np.eye(8), np.zeros((8, 8), bool), "region is empty"),
        (np.eye(8), np.ones((8, 8), bool), "region covers"),
    ],
)
def test_degenerate_cases_are_unscored_with_a_reason(
    attention: np.ndarray, roi: np.ndarray, reason: str
) -> None:
    found = grounding(attention, roi)
    for score in (found.iou, found.chance):
        assert score.value is None
        assert reason in score.reason


def test_the_overlap_is_that_of_scikit_images_threshold() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        attention, roi = rng.normal(size=(48, 48)) ** 3, box(48, 10, 12, 20, 9)
        values = (attention - attention.min()) / np.ptp(attention)
        chosen = values > 1.3 * threshold_otsu(values, nbins=256)
        found = grounding(attention, roi)
        assert found.iou.value == pytest.approx((chosen & roi).sum() / (chosen | roi).sum(), abs=1e-12)
