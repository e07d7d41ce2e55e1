"""The anatomy found on real photographs against places read off them by eye."""

from __future__ import annotations

import numpy as np
import pytest

from plantain.offline.fundus.anatomy import read_anatomy
from plantain.pixels.arrays import Pixels

# (disc x, y, diameter, fovea x, y, eye), read off the prepared pictures by eye.
BY_EYE = {
    "1010_right-AMD-remove": (812, 482, 125, 452, 528, "right"),
    "1011_right-AMD-remove": (925, 505, 130, 596, 560, "right"),
    "1013_right-AMD-remove": (728, 504, 145, 350, 545, "right"),
}


def test_anatomy_of_the_retina(retina: Pixels) -> None:
    anatomy = read_anatomy(retina)
    assert np.hypot(anatomy.disc.x - 152, anatomy.disc.y - 470) < 20
    assert 120 < anatomy.disc.diameter < 165
    assert np.hypot(anatomy.fovea[0] - 511, anatomy.fovea[1] - 507) < 20
    assert anatomy.eye == "left" and anatomy.temporal == 1
    assert abs(anatomy.aperture.radius - 508) < 6
    # Vessels take between a twentieth and a fifth of a normal field.
    assert 0.04 < anatomy.vessels.mask[anatomy.aperture.mask].mean() < 0.2


def test_anatomy_mirrored_is_the_other_eye(retina: Pixels) -> None:
    anatomy = read_anatomy(np.ascontiguousarray(retina[:, ::-1]))
    assert anatomy.eye == "right" and anatomy.temporal == -1
    assert np.hypot(anatomy.disc.x - (1023 - 152), anatomy.disc.y - 470) < 20


def test_recorded_laterality_names_the_eye(retina: Pixels) -> None:
    assert read_anatomy(retina, "right").eye == "right"


@pytest.mark.parametrize("name", sorted(BY_EYE))
def test_anatomy_of_published_photographs(published: dict[str, Pixels], name: str) -> None:
    anatomy = read_anatomy(published[name])
    x, y, diameter, fovea_x, fovea_y, eye = BY_EYE[name]
    assert np.hypot(anatomy.disc.x - x, anatomy.disc.y - y) < 0.3 * diameter
    assert 0.75 < anatomy.disc.diameter / diameter < 1.3
    assert np.hypot(anatomy.fovea[0] - fovea_x, anatomy.fovea[1] - fovea_y) < 0.5 * diameter
    assert anatomy.eye == eye
