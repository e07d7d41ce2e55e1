"""Pleural effusion on the real radiograph: the named angle fills, a meniscus climbs the wall, and it drains."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest.effusion import RENDERER
from plantain.offline.rendering import CannotShow

# Read off the prepared picture by eye: a square of 40 pixels just above each costophrenic angle.
ANGLES = {"right": (slice(770, 810), slice(105, 145)), "left": (slice(770, 810), slice(862, 902))}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_named_angle_whitens_and_the_other_stays(scene: MakeScene, side: str) -> None:
    given = scene("Pleural Effusion", side=side, extent="moderate", conspicuity="marked")
    made = RENDERER.add(given)
    change = made.pixels[..., 0].astype(float) - given.pixels[..., 0]
    other = "left" if side == "right" else "right"
    assert change[ANGLES[side]].mean() > 12
    assert (change[ANGLES[other]] == 0).all()
    assert change.min() >= 0, "fluid only whitens"


def test_the_meniscus_is_higher_at_the_wall(scene: MakeScene) -> None:
    made = RENDERER.add(scene("Pleural Effusion", side="left", extent="large", conspicuity="marked"))
    top = np.where(made.mask.any(axis=0), made.mask.argmax(axis=0), 1024)
    wall, middle = top[870:885].min(), top[790:800].min()
    assert wall < middle - 20


def test_supine_fluid_is_a_veil_over_the_lung(scene: MakeScene) -> None:
    given = scene("Pleural Effusion", side="right", extent="large", position="supine")
    made = RENDERER.add(given)
    rows = np.nonzero(made.mask)[0]
    assert rows.min() < 350 and "no meniscus" in made.note


def test_both_sides_when_asked(scene: MakeScene) -> None:
    made = RENDERER.add(scene("Pleural Effusion", side="bilateral", extent="moderate"))
    assert made.mask[:, :400].any() and made.mask[:, 650:].any()


def test_sharp_angles_are_left_alone(scene: MakeScene) -> None:
    with pytest.raises(CannotShow, match="no pleural effusion found"):
        RENDERER.remove(scene("Pleural Effusion", "remove"))


def test_drained_fluid_leaves_a_dark_angle(scene: MakeScene) -> None:
    given = scene("Pleural Effusion", side="right", extent="large", conspicuity="marked")
    made = RENDERER.add(given)
    back = RENDERER.remove(scene("Pleural Effusion", "remove", pixels=made.pixels, side="right"))
    angle = ANGLES["right"]
    assert back.pixels[angle].mean() < made.pixels[angle].mean() - 12
    assert not back.mask[:, 560:].any()


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_what_was_drawn_is_taken_back(scene: MakeScene) -> None:
    pixels = shared_picture(shared_radiographs()[2])
    made = RENDERER.add(
        scene("Pleural Effusion", pixels=pixels, side="left", extent="large", conspicuity="marked")
    )
    back = RENDERER.remove(scene("Pleural Effusion", "remove", pixels=made.pixels, side="left"))
    assert psnr_inside(back.pixels, pixels, made.mask) > psnr_inside(made.pixels, pixels, made.mask) + 1
