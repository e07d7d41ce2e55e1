"""Fréchet and kernel distances against closed forms, scipy and what sets of one distribution must give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from plantain.metrics.distributions import (
    fid,
    fid_of_features,
    frechet,
    frechet_gaussians,
    kernel_distance,
    kid,
    kid_of_features,
)


class Projection:
    """Fixed random directions of the image's pixels: a closed form in place of a network."""

    name = "random-projection"

    def __init__(self, dimensions: int) -> None:
        self.matrix = np.random.default_rng(0).normal(size=(8 * 8 * 3, dimensions)) / 100

    def images(self, images):
        return np.stack([image.reshape(-1) @ self.matrix for image in images])


def pictures(seed: int, n: int, shift: int = 0) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed).integers(20, 200, (n, 8, 8, 3)) + shift
    return list(drawn.astype(np.uint8))


def test_distance_of_diagonal_gaussians_is_the_closed_form():
    # |dm|^2 + sum (s1 - s2)^2 for standard deviations s.
    rng = np.random.default_rng(1)
    m1, m2, s1, s2 = (rng.random(20) + 0.1 for _ in range(4))
    expected = ((m1 - m2) ** 2).sum() + ((s1 - s2) ** 2).sum()
    assert frechet_gaussians(m1, np.diag(s1**2), m2, np.diag(s2**2)) == pytest.approx(expected, abs=1e-10)


def test_distance_of_correlated_sets_agrees_with_scipy():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(200, 12)) @ rng.normal(size=(12, 12))
    b = rng.normal(size=(150, 12)) @ rng.normal(size=(12, 12)) + 0.5
    s1, s2 = np.cov(a.T), np.cov(b.T)
    shift = a.mean(0) - b.mean(0)
    expected = shift @ shift + np.trace(s1 + s2 - 2 * np.real(sqrtm(s1 @ s2)))
    assert frechet(a, b).value == pytest.approx(expected, rel=1e-8)


def test_fewer_images_than_dimensions_takes_another_way_to_the_same_number():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(30, 64)), rng.normal(0.2, 1.5, size=(25, 64))
    whole = frechet_gaussians(a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T))
    assert frechet(a, b).value == pytest.approx(whole, rel=1e-6)


def test_equal_sets_in_another_order_have_no_distance():
    a = np.random.default_rng(4).normal(size=(40, 16))
    assert frechet(a, a[::-1]).value == pytest.approx(0.0, abs=1e-9)
    wide = np.random.default_rng(4).normal(size=(10, 16))
    assert frechet(wide, wide[::-1]).value == pytest.approx(0.0, abs=1e-9)


def test_kernel_distance_by_hand():
    # d = 1, kernel (xy + 1)^3. Reference 0, 1: k = 1 off the diagonal. Outputs 0, 2: k = 1. Across: 0,0 -> 1;
    # 0,2 -> 1; 1,0 -> 1; 1,2 -> 27: mean 7.5. 1 + 1 - 2 * 7.5 = -13.
    assert kernel_distance([[0.0], [1.0]], [[0.0], [2.0]]).value == pytest.approx(-13.0)


def test_kernel_distance_is_unbiased_where_frechet_is_not():
    seed = 5
    print("seed", seed)
    rng = np.random.default_rng(seed)
    pairs = [(rng.normal(size=(20, 10)), rng.normal(size=(20, 10))) for _ in range(300)]
    kernel = [kernel_distance(a, b).value for a, b in pairs]
    assert abs(np.mean(kernel)) < 3.5 * np.std(kernel) / np.sqrt(300)
    assert min(frechet(a, b).value for a, b in pairs) > 0.5


@pytest.mark.parametrize("distance", [fid_of_features, kid_of_features])
def test_floor_tells_a_difference_from_few_images(distance):
    rng = np.random.default_rng(6)
    a, same, other = (rng.normal(shift, 1.0, size=(60, 100)) for shift in (0.0, 0.0, 0.6))
    alike, unlike = distance(a, same, "random"), distance(a, other, "random")
    assert alike.score.value == pytest.approx(alike.floor, abs=max(10.0, 3 * alike.floor_high))
    assert unlike.above_floor
    assert unlike.score.value > 1.2 * unlike.floor_high
    assert alike == distance(a, same, "random")


def test_floor_of_few_images_is_most_of_the_distance():
    # 40 images in 200 dimensions: the same distribution twice lies far apart.
    rng = np.random.default_rng(7)
    found = fid_of_features(rng.normal(size=(40, 200)), rng.normal(size=(40, 200)), "random")
    assert found.score.value > 100
    assert found.floor == pytest.approx(found.score.value, rel=0.1)


def test_distances_of_images_carry_the_name_of_their_encoder():
    encoder = Projection(16)
    for measure, name in ((fid, "fid:random-projection"), (kid, "kid:random-projection")):
        found = measure(pictures(1, 40), pictures(2, 35, shift=40), encoder)
        assert (found.name, found.reference, found.outputs, found.dimensions) == (name, 40, 35, 16)
        assert found.above_floor
    rows = encoder.images(pictures(1, 5))
    assert fid_of_features(rows, rows, "inception-v3-2015-12-05").name == "fid"


def test_one_image_is_unscored_and_wrong_shapes_are_refused():
    assert frechet([[1.0]], [[1.0], [2.0]]).reason == "fewer than two images on a side"
    found = kid_of_features(np.ones((1, 3)), np.ones((4, 3)), "random")
    assert (found.score.value, found.floor, found.above_floor) == (None, None, None)
    with pytest.raises(ValueError, match="must be"):
        frechet(np.ones((3, 2)), np.ones((3, 4)))
