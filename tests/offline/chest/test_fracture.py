"""Fracture: a dark line and a step inside one bone, in the region asked for; joined again where it is plain."""

from __future__ import annotations

import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, rg1, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS
from plantain.offline.chest.anatomy import find_chest
from plantain.offline.rendering import CannotShow

FRACTURE = RENDERERS["Fracture"]


@pytest.mark.parametrize("zone", ["lateral rib", "posterior rib", "clavicle"])
def test_it_is_small_darker_along_its_line_and_where_asked(scene: MakeScene, zone: str) -> None:
    given = scene("Fracture", side="left", zone=zone, extent="moderate", conspicuity="marked")
    made = FRACTURE.add(given)
    change = made.pixels[..., 0].astype(int) - given.pixels[..., 0]
    assert made.mask.mean() < 0.012
    assert change.min() < -6 and change.max() > 2, "a dark line and a step"
    row, column = np.argwhere(made.mask).mean(axis=0)
    lung = find_chest(given.pixels).left
    assert column > 512, "the patient's left is on the right of the picture"
    if zone == "clavicle":
        assert row < lung.top + 0.22 * (lung.bottom - lung.top)
    if zone == "lateral rib":
        middle = (lung.wall_at(np.array([row]))[0] + lung.medial_at(np.array([row]))[0]) / 2
        assert column > middle


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_a_plain_break_is_joined_and_whole_bones_are_left(scene: MakeScene) -> None:
    nearer, refused = 0, 0
    paths = shared_radiographs()[:2]
    for path in paths:
        pixels = shared_picture(path)
        words = {"side": "right", "zone": "clavicle"}
        made = FRACTURE.add(scene("Fracture", pixels=pixels, extent="large", conspicuity="marked", **words))
        try:
            back = FRACTURE.remove(scene("Fracture", "remove", pixels=made.pixels, **words))
            nearer += psnr_inside(pixels, back.pixels, made.mask) > psnr_inside(
                pixels, made.pixels, made.mask
            )
        except CannotShow:
            pass
        try:
            FRACTURE.remove(scene("Fracture", "remove", pixels=pixels))
        except CannotShow:
            refused += 1
    assert nearer >= 1 and refused == 2, (nearer, refused)


def test_its_line_is_seen_on_a_pale_film_too(scene: MakeScene) -> None:
    pale = (0.35 * rg1()[0] + 120).astype(np.uint8)
    given = scene("Fracture", pixels=pale, side="left", zone="posterior rib", conspicuity="moderate")
    change = FRACTURE.add(given).pixels[..., 0].astype(int) - pale[..., 0]
    # Three grey levels are the least that a monitor shows side by side; a line has grain to stand out from.
    assert change.min() <= -8
