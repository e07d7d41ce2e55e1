"""Atelectasis: level bands at the base, lobes that are denser; bands are lifted again."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS
from plantain.offline.chest.anatomy import find_chest

ATELECTASIS = RENDERERS["Atelectasis"]


def test_a_band_is_bright_flat_and_low(scene: MakeScene) -> None:
    given = scene("Atelectasis", side="right", zone="basal", extent="small", conspicuity="marked", seed=2)
    made = ATELECTASIS.add(given)
    rows, columns = np.nonzero(made.mask)
    assert (made.pixels.astype(int) - given.pixels)[made.mask].mean() > 2
    assert np.ptp(columns) > 1.5 * np.ptp(rows)
    lung = find_chest(given.pixels).right
    assert rows.mean() > lung.top + 0.55 * (lung.bottom - lung.top)
    assert columns.max() < 600, "the patient's right is on the left of the picture"


@pytest.mark.parametrize("zone", ["upper", "lower"])
def test_a_lobe_is_denser_against_the_mediastinum(scene: MakeScene, zone: str) -> None:
    given = scene("Atelectasis", side="right", zone=zone, extent="moderate", conspicuity="marked")
    made = ATELECTASIS.add(given)
    change = made.pixels[..., 0].astype(int) - given.pixels[..., 0]
    lung = find_chest(given.pixels).right
    middle = (lung.top + lung.bottom) / 2
    rows = np.nonzero(change > 12)[0]
    assert len(rows) > 500
    assert (rows.mean() < middle) == (zone == "upper")


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_bands_are_lifted_again(scene: MakeScene) -> None:
    gained = []
    for path in shared_radiographs()[:2]:
        pixels = shared_picture(path)
        words = {"side": "right", "zone": "basal"}
        made = ATELECTASIS.add(
            scene("Atelectasis", pixels=pixels, extent="moderate", conspicuity="marked", **words)
        )
        back = ATELECTASIS.remove(scene("Atelectasis", "remove", pixels=made.pixels, **words))
        gained.append(
            psnr_inside(pixels, back.pixels, made.mask) - psnr_inside(pixels, made.pixels, made.mask)
        )
    assert np.median(gained) > 1.0, gained


def test_bands_are_plates_of_two_centimetres_at_most_that_do_not_run_together(scene: MakeScene) -> None:
    # By eye the lungs reach from x 94 to 908, and a thorax is about 28 cm wide.
    widest = 2.0 / 28 * (908 - 94)
    for seed in range(3):
        given = scene(
            "Atelectasis",
            side="right",
            zone="basal",
            extent="large",
            conspicuity="marked",
            softness="medium",
            seed=seed,
        )
        seen = ATELECTASIS.add(given).pixels[..., 0].astype(int) - given.pixels[..., 0] > 3
        depth = cv2.distanceTransform(seen.astype(np.uint8), cv2.DIST_L2, 5)
        assert 2 * depth.max() < widest, seed
