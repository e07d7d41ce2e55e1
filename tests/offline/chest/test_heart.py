"""A large heart on the real radiograph: wider than half of the thorax, lungs outside the warp as they were."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, rg1, shared_picture, shared_radiographs

from plantain.offline.chest.anatomy import find_chest
from plantain.offline.chest.heart import CARDIOMEGALY
from plantain.offline.rendering import CannotShow


def test_the_heart_becomes_wider_than_half_of_the_thorax(scene: MakeScene) -> None:
    given = scene("Cardiomegaly", extent="moderate")
    made = CARDIOMEGALY.add(given)
    assert made.support == "warp"
    assert find_chest(made.pixels).cardiothoracic_ratio > max(0.5, find_chest(rg1()[0]).cardiothoracic_ratio)
    outside = ~made.mask
    assert np.abs(made.pixels.astype(int) - given.pixels)[outside].max() <= 12
    assert np.array_equal(made.pixels[:250], given.pixels[:250])
    again = CARDIOMEGALY.add(scene("Cardiomegaly", extent="moderate"))
    assert np.array_equal(made.pixels, again.pixels)


@pytest.mark.parametrize("what", [{"projection": "AP"}, {"position": "supine"}])
def test_no_size_is_claimed_on_films_that_magnify(scene: MakeScene, what: dict[str, str]) -> None:
    for work in (CARDIOMEGALY.add, CARDIOMEGALY.remove):
        with pytest.raises(CannotShow, match="magnify"):
            work(scene("Cardiomegaly", **what))  # type: ignore[arg-type]


def test_an_unknown_projection_is_said_to_be_assumed(scene: MakeScene) -> None:
    assert "PA assumed" in CARDIOMEGALY.add(scene("Cardiomegaly", projection="unknown")).note


def test_a_heart_of_normal_size_is_left_alone(scene: MakeScene) -> None:
    with pytest.raises(CannotShow, match="no cardiomegaly found"):
        CARDIOMEGALY.remove(scene("Cardiomegaly", "remove"))


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_a_large_heart_is_brought_below_half(scene: MakeScene) -> None:
    pixels = shared_picture(shared_radiographs()[1])
    large = find_chest(pixels).cardiothoracic_ratio
    made = CARDIOMEGALY.remove(scene("Cardiomegaly", "remove", pixels=pixels))
    assert large > 0.5
    assert find_chest(made.pixels).cardiothoracic_ratio < min(0.5, large - 0.03)
