"""Filled airspaces: brighter, on the side asked for, at the height asked for, vessels hidden; and cleared again."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from chest_pictures import MakeScene, psnr_inside, shared_picture, shared_radiographs

from plantain.offline.chest import RENDERERS


@pytest.mark.parametrize(
    ("finding", "side"),
    [("Consolidation", "left"), ("Consolidation", "right"), ("Pneumonia", "left"), ("Lung Opacity", "right")],
)
def test_it_is_brighter_and_on_its_side(scene: MakeScene, finding: str, side: str) -> None:
    given = scene(finding, side=side, zone="upper", extent="moderate", conspicuity="moderate")
    made = RENDERERS[finding].add(given)
    change = made.pixels[..., 0].astype(float) - given.pixels[..., 0]
    assert change[made.mask].mean() > 5
    columns = np.nonzero(made.mask)[1]
    # Image left is the patient's right.
    assert (np.median(columns) < 512) == (side == "right")


def test_zones_lie_one_above_the_other(scene: MakeScene) -> None:
    rows = []
    for zone in ("upper", "mid", "lower"):
        made = RENDERERS["Consolidation"].add(scene("Consolidation", side="left", zone=zone))
        rows.append(float(np.median(np.nonzero(made.mask)[0])))
    assert rows[0] + 60 < rows[1] and rows[1] + 60 < rows[2]


def test_consolidation_hides_vessels_that_an_opacity_lets_through(scene: MakeScene) -> None:
    left = {}
    for finding in ("Consolidation", "Lung Opacity"):
        given = scene(finding, side="left", zone="upper", extent="large", conspicuity="moderate", seed=5)
        made = RENDERERS[finding].add(given)
        core = made.mask & (made.pixels[..., 0] > given.pixels[..., 0].astype(int) + 6)
        left[finding] = _vessels(made.pixels)[core].std() / _vessels(given.pixels)[core].std()
    assert left["Consolidation"] < 0.85 < left["Lung Opacity"]


def _vessels(pixels: np.ndarray) -> np.ndarray:
    plane = pixels[..., 0].astype(np.float32)
    band = cv2.GaussianBlur(plane, (0, 0), 1.2) - cv2.GaussianBlur(plane, (0, 0), 4.0)
    return np.clip(band, -6, 6)


@pytest.mark.skipif(not shared_radiographs(), reason="the shared example radiographs are not here")
def test_removal_brings_the_lung_back_nearer_to_what_it_was(scene: MakeScene) -> None:
    for path in shared_radiographs()[:2]:
        pixels = shared_picture(path)
        made = RENDERERS["Consolidation"].add(
            scene(
                "Consolidation",
                pixels=pixels,
                side="left",
                zone="mid",
                extent="moderate",
                conspicuity="moderate",
            )
        )
        back = RENDERERS["Consolidation"].remove(
            scene("Consolidation", "remove", pixels=made.pixels, side="left")
        )
        assert psnr_inside(pixels, back.pixels, made.mask) > psnr_inside(pixels, made.pixels, made.mask) + 2
