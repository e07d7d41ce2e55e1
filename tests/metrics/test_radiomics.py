"""Radiomic features against the published values of IBSI's digital phantom, and the distance over them."""

from __future__ import annotations

import numpy as np
import pytest

from plantain.metrics.distributions import frechet_of_features
from plantain.metrics.radiomics import FEATURES, RadiomicsEncoder, first_order, glcm, glrlm, glszm, shape_of

# IBSI reference manual (arXiv:1612.07003v11), section 5.1: four slices of grey levels; 0 is outside the region.
PHANTOM = np.array(
    [
        [[1, 4, 4, 1, 1], [1, 4, 6, 1, 1], [4, 1, 6, 4, 1], [4, 4, 6, 4, 1]],
        [[1, 4, 4, 1, 1], [1, 1, 6, 1, 1], [0, 1, 3, 1, 1], [4, 4, 6, 1, 1]],
        [[1, 4, 4, 0, 0], [1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 6, 1, 1]],
        [[1, 4, 4, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 6, 1, 1]],
    ]
)


def rounded(values: np.ndarray) -> list[float]:
    """Return the values with the three digits that are published."""
    return [float(f"{value:.3g}") for value in values]


def test_first_order_features_of_the_phantom_are_the_published():
    # Manual 3.3: mean, variance, skewness, (excess) kurtosis, 10th and 90th percentile.
    assert rounded(first_order(PHANTOM[PHANTOM > 0].astype(float))) == [2.15, 3.05, 1.08, -0.355, 1, 4]


@pytest.mark.parametrize(
    ("features", "published"),
    [
        # Manual 3.6, "2D, slice-merged": joint entropy, angular second moment, contrast, correlation, inverse
        # difference moment, cluster shade.
        (glcm, [2.24, 0.352, 5.19, 0.0173, 0.625, 6.98]),
        # Manual 3.7, "2D, slice-merged": short and long run emphasis, normalised non-uniformities of grey level and run
        # length, run percentage.
        (glrlm, [0.661, 3.51, 0.456, 0.441, 0.627]),
        # Manual 3.8, "2D": small zone emphasis, normalised non-uniformities of grey level and zone size, zone
        # percentage, zone size entropy.
        (glszm, [0.363, 0.323, 0.333, 0.24, 1.93]),
    ],
)
def test_texture_features_of_the_phantom_are_the_published(features, published):
    assert rounded(np.mean([features(layer) for layer in PHANTOM], axis=0)) == published


def test_features_of_a_frame_of_two_halves_by_hand():
    frame = np.full((128, 128, 3), 64, np.uint8)
    frame[:, 64:] = 192
    found = dict(zip(FEATURES, RadiomicsEncoder().images([frame.repeat(2, 0).repeat(2, 1)])[0], strict=True))
    expected = {
        "mean": 128,
        "variance": 64**2,
        "skewness": 0,
        "kurtosis": -2,
        "intensity_entropy": 1,
        "percentile_10": 64,
        "percentile_90": 192,
        # Two zones of half of the frame: each of its own level, both of one size.
        "glszm_small_zone_emphasis": 1 / 32768**2,
        "glszm_zone_percentage": 2 / 65536,
        "glszm_grey_level_non_uniformity": 1 / 2,
        "glszm_zone_size_non_uniformity": 1,
        "glszm_zone_size_entropy": 1,
        "field_area": 1,
        "field_elongation": 1,
        "field_solidity": 1,
        # Levels 9 and 25 are neighbours in 256 horizontal and 2 x 255 diagonal pairs; pairs of one level add nothing.
        "glcm_contrast": 16**2 * (256 + 2 * 255) / (2 * 256 * 255 + 2 * 255**2),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_every_feature_of_a_constant_image_is_a_number():
    assert np.isfinite(RadiomicsEncoder().images([np.zeros((40, 30, 3), np.uint8)])).all()


def test_shape_of_a_rectangle_and_of_an_angle_by_hand():
    field = np.zeros((100, 100), bool)
    field[20:30, 10:50] = True
    # The variance of 1 .. n is (n^2 - 1) / 12.
    assert shape_of(field) == pytest.approx([0.04, ((10**2 - 1) / (40**2 - 1)) ** 0.5, 1.0])
    field[30:70, 10:20] = True  # its hull adds about the triangle between the arms: 30 x 40 / 2
    assert shape_of(field)[2] == pytest.approx(800 / (800 + 30 * 40 / 2), abs=0.02)


def test_distance_in_units_of_the_reference_is_the_closed_form_at_any_scale():
    # Every column of the outputs is moved by two standard deviations of the reference: 26 x 2^2.
    rng = np.random.default_rng(4)
    reference = rng.normal(size=(60, len(FEATURES))) * 10.0 ** rng.integers(-4, 5, len(FEATURES))
    reference[:, 3] = 1.0  # the same in all true images, and in all outputs: adds nothing
    outputs = reference + 2 * reference.std(axis=0)
    found = frechet_of_features(reference, outputs, pairs=range(60), in_spreads=True)
    assert found.score.value == pytest.approx(4 * (len(FEATURES) - 1))
    assert found.p == 1 / 40
    outputs[:, 3] = 2.0  # both sets together: deviation 1/2, so the means differ by 2 of them
    apart = frechet_of_features(reference, outputs, pairs=range(60), in_spreads=True)
    assert apart.score.value == pytest.approx(4 * len(FEATURES))
