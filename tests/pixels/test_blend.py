from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt

from pixels.pictures import colour
from plantain.pixels.restore import composite, dilate, feather


def blob(seed: int, size: int = 48) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    mask = np.zeros((size, size), bool)
    for _ in range(int(rng.integers(1, 4))):
        cy, cx, r = [*rng.uniform(0, size, 2).tolist(), rng.uniform(1, size / 3)]
        mask |= (y - cy) ** 2 + (x - cx) ** 2 <= r * r
    return mask


@given(st.integers(0, 10_000), st.floats(0.5, 20))
def test_dilate_is_euclidean(seed: int, radius: float) -> None:
    mask = blob(seed)
    if not mask.any() or mask.all():
        return
    away = distance_transform_edt(~mask)
    clear = np.abs(away - radius) > 1e-3
    assert np.array_equal(dilate(mask, radius)[clear], (away <= radius)[clear])


@given(st.integers(0, 10_000), st.floats(1, 12))
def test_feather_is_half_on_the_border_and_done_at_its_radius(seed: int, radius: float) -> None:
    mask = blob(seed)
    alpha = feather(mask, radius)
    assert alpha.dtype == np.float32
    assert alpha.min() >= 0
    assert alpha.max() <= 1
    assert (alpha[mask] >= 0.5).all()
    assert (alpha[~mask] <= 0.5).all()
    assert not alpha[~dilate(mask, radius + 0.5)].any()
    assert mask.all() or (alpha[distance_transform_edt(mask) > radius + 0.5] == 1).all()


def test_composite_is_exact_at_both_ends() -> None:
    before, after = colour(seed=1), colour(seed=2)
    alpha = np.zeros(before.shape[:2], np.float32)
    alpha[:, :20], alpha[:, 20:40] = 1, 0.5
    mixed = composite(before, after, alpha)
    assert np.array_equal(mixed[:, :20], after[:, :20])
    assert np.array_equal(mixed[:, 40:], before[:, 40:])
    half = (before[:, 20:40].astype(float) + after[:, 20:40]) / 2
    assert np.abs(mixed[:, 20:40] - half).max() <= 0.5
    assert np.array_equal(composite(before, after, alpha > 0.9)[:, :20], after[:, :20])
