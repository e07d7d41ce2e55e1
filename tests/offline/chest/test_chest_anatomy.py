"""The anatomy found on real radiographs, held against what a person reads off them."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import rg1, shared_film, shared_picture, shared_radiographs

from plantain.offline.chest.anatomy import find_chest
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Pixels

# Read off the prepared pictures by eye, x and y: apex right, apex left, costophrenic angles right and left.
BY_EYE = {"rg1": ((328, 68), (667, 60), (94, 822), (908, 825))}


def test_lungs_of_a_sick_chest_reach_from_apex_to_costophrenic_angle() -> None:
    chest = find_chest(rg1()[0])
    apex_right, apex_left, angle_right, angle_left = BY_EYE["rg1"]
    assert abs(chest.right.top - apex_right[1]) < 25 and abs(chest.left.top - apex_left[1]) < 25
    assert np.hypot(*np.subtract(chest.right.angle, angle_right)) < 30
    assert np.hypot(*np.subtract(chest.left.angle, angle_left)) < 30
    assert 0.40 < chest.cardiothoracic_ratio < 0.58
    assert not (chest.right.mask & chest.left.mask).any()


# Middle of the right and of the left dome, y of 1024, of films whose ribs are as bright as what lies below the lungs.
DOMES_BY_EYE = {
    "00003363_002": (840, 870),
    "00001992_010": (745, 765),
    "00003382_009": (690, 710),
}


@pytest.mark.parametrize("name", DOMES_BY_EYE)
@pytest.mark.skipif(not shared_film("00003363_002").exists(), reason="the shared films are not here")
def test_lungs_of_a_pale_film_reach_down_to_the_diaphragm(name: str) -> None:
    chest = find_chest(shared_picture(shared_film(name)))
    for side, dome in zip(("right", "left"), DOMES_BY_EYE[name], strict=True):
        assert abs(np.median(chest.lung(side).diaphragm[:, 1]) - dome) < 80, side


@pytest.mark.parametrize("change", ["darker", "paler", "noisier"])
def test_exposure_and_noise_move_the_borders_little(change: str) -> None:
    pixels = rg1()[0]
    first = find_chest(pixels)
    plane = pixels[..., 0].astype(float)
    if change == "darker":
        plane = 255 * (plane / 255) ** 1.5
    elif change == "paler":
        plane = 0.6 * plane + 90 * (plane > 3)
    else:
        plane = plane + np.random.default_rng(5).normal(0, 6, plane.shape)
    other = find_chest(np.clip(plane, 0, 255).astype(np.uint8)[..., None].repeat(3, axis=2))
    for side in ("right", "left"):
        one, two = first.lung(side).mask, other.lung(side).mask
        assert 2 * (one & two).sum() / (one.sum() + two.sum()) > 0.93


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_lungs_of_every_shared_radiograph_are_dark_and_their_surroundings_bright() -> None:
    for path in shared_radiographs():
        pixels = shared_picture(path)
        chest = find_chest(pixels)
        gray = pixels[..., 0].astype(float)
        for side in ("right", "left"):
            lung = chest.lung(side)
            height = lung.bottom - lung.top
            assert 300 < height < 900, path.name
            columns = np.linspace(*sorted((lung.angle[0], lung.medial[-1, 0])), 9)[2:-2]
            dome = lung.dome_at(columns).astype(int)
            above = np.array(
                [gray[y - 30 : y - 12, int(x)].mean() for x, y in zip(columns, dome, strict=True)]
            )
            below = np.array(
                [gray[y + 12 : y + 30, int(x)].mean() for x, y in zip(columns, dome, strict=True)]
            )
            assert (below > above + 15).mean() > 0.7, (path.name, side)


def _upside_down() -> Pixels:
    return rg1()[0][::-1].copy()


def test_a_picture_on_its_head_has_no_lungs() -> None:
    with pytest.raises(CannotShow):
        find_chest(_upside_down())


def test_the_same_picture_gives_the_same_refusal_twice() -> None:
    blank = np.full((1024, 1024, 3), 127, np.uint8)
    messages = []
    for _ in range(2):
        with pytest.raises(CannotShow) as refusal:
            find_chest(blank)
        messages.append(str(refusal.value))
    assert messages[0] == messages[1]
