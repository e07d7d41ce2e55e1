"""Lung lesions on the real radiograph: round, in the zone asked for, seen through, and lifted without a ghost."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest.lesion import RENDERER


@pytest.mark.parametrize(("side", "zone"), [("left", "upper"), ("right", "upper"), ("left", "lower")])
def test_a_lesion_is_round_brighter_and_where_it_was_asked_for(
    scene: MakeScene, side: str, zone: str
) -> None:
    given = scene("Lung Lesion", side=side, zone=zone, extent="moderate", conspicuity="marked")
    made = RENDERER.add(given)
    rows, columns = np.nonzero(made.mask)
    assert (columns.mean() > 512) == (side == "left")
    # The lungs of this picture reach from row 60 to row 825.
    assert rows.mean() < 330 if zone == "upper" else rows.mean() > 520
    _, axes, _ = cv2.fitEllipse(np.stack([columns, rows], axis=1).astype(np.float32))
    assert min(axes) / max(axes) > 0.6
    change = made.pixels[..., 0].astype(float) - given.pixels[..., 0]
    assert change[made.mask].mean() > 10 and change.min() >= -1
    # Seen through: what is fine inside it before is there after.
    core = cv2.erode(made.mask.astype(np.uint8), np.ones((9, 9))) > 0
    fine = [
        (p[..., 0] - cv2.GaussianBlur(p[..., 0].astype(np.float32), (0, 0), 2))[core]
        for p in (given.pixels.astype(np.float32), made.pixels.astype(np.float32))
    ]
    assert np.corrcoef(fine[0], fine[1])[0, 1] > 0.95


def test_size_follows_extent(scene: MakeScene) -> None:
    areas = [
        RENDERER.add(scene("Lung Lesion", side="left", zone="upper", extent=extent)).mask.sum()
        for extent in ("small", "moderate", "large")
    ]
    assert areas[0] * 2 < areas[1] and areas[1] * 1.8 < areas[2]


def test_a_real_mass_is_lifted(scene: MakeScene) -> None:
    given = scene("Lung Lesion", "remove", side="left", zone="lower")
    made = RENDERER.remove(given)
    # The mass in the left lower zone, by eye: about 80 by 60 pixels round (815, 610).
    here = (slice(590, 630), slice(795, 835))
    assert made.mask[here].mean() > 0.8
    assert made.pixels[here].mean() < given.pixels[here].astype(float).mean() - 12
    ring = (slice(690, 720), slice(795, 835))
    assert np.array_equal(made.pixels[ring], given.pixels[ring])


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_what_was_drawn_is_taken_back(scene: MakeScene) -> None:
    for path in shared_radiographs()[:3]:
        pixels = shared_picture(path)
        made = RENDERER.add(
            scene(
                "Lung Lesion",
                pixels=pixels,
                side="right",
                zone="upper",
                extent="moderate",
                conspicuity="marked",
            )
        )
        back = RENDERER.remove(scene("Lung Lesion", "remove", pixels=made.pixels, side="right", zone="upper"))
        assert psnr_inside(back.pixels, pixels, made.mask) > psnr_inside(made.pixels, pixels, made.mask) + 4


def test_it_lies_beside_what_would_hide_it(scene: MakeScene) -> None:
    # By eye: the spine at x 520, the lungs reach from 94 to 908.
    for seed in range(3):
        made = RENDERER.add(scene("Lung Lesion", side="right", zone="mid", extent="small", seed=seed))
        assert 520 - np.nonzero(made.mask)[1].mean() > 0.19 * (908 - 94)
