"""Anatomy maps of real images: structures whose place a reader of the image can state."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from offline.images import image_for, prepared
from plantain.findings import load_taxonomy
from plantain.offline.anatomy.brain import brain_map
from plantain.offline.anatomy.maps import AnatomyMap
from plantain.offline.drawing.adding import map_of
from plantain.pixels.decode import decode

TAXONOMY = load_taxonomy()


def sample(name: str) -> AnatomyMap:
    image, data = prepared()[name]
    return map_of(decode(data), image)


def middle(mask: np.ndarray) -> tuple[float, float]:
    ys, xs = np.nonzero(mask)
    return float(xs.mean()), float(ys.mean())


def test_the_lungs_are_two_dark_fields_on_both_sides_of_the_midline() -> None:
    # rg1-chest-pa by eye, on a grid of 256: spine at column 123, lungs from row 19 down to 188 (right) and 222 (left)
    found = sample("rg1-chest-pa")
    assert found.midline is not None
    assert abs(found.midline - 123) < 8
    rows = np.flatnonzero(found.organ.any(axis=1))
    assert abs(rows[0] - 19) < 8
    assert 180 < rows[-1] < 230
    right, left = (found.organ & found.side(side) for side in ("right", "left"))
    assert middle(right)[0] < found.midline < middle(left)[0]
    assert 0.5 < right.sum() / left.sum() < 2


def test_the_inner_table_is_inside_a_drawn_skull() -> None:
    # A head of half axes 95 x 122 around (92, 130): scalp outside 0.93 of the radius, bone from 0.82 to 0.93.
    ys, xs = np.mgrid[:256, :256].astype(np.float32)
    far = np.hypot((xs - 122) / 95, (ys - 130) / 122)
    level = np.where(far < 1, 200, 5).astype(np.uint8)
    level[(far > 0.82) & (far < 0.93)] = 25
    level[far < 0.82] = 110
    pixels = cv2.resize(np.repeat(level[..., None], 3, axis=2), (1024, 1024), interpolation=cv2.INTER_NEAREST)
    brain = brain_map(pixels, "axial").organ
    true = far < 0.82
    assert (brain & true).sum() / (brain | true).sum() > 0.9


def test_disc_and_fovea_of_a_left_eye() -> None:
    # retina-left: the disc is left of the middle, the fovea 2.5 disc diameters right of it and a little lower.
    found = sample("retina-left")
    disc, fovea = found.points["disc"], found.points["fovea"]
    assert disc[0] < 90
    assert 2.0 < (fovea[0] - disc[0]) / found.yard < 3.2
    assert -0.3 < (fovea[1] - disc[1]) / found.yard < 0.8


@pytest.mark.parametrize("finding", [f for f in TAXONOMY.findings if f.draw], ids=lambda f: f.name)
def test_every_zone_of_a_finding_is_a_place_of_its_map(finding) -> None:  # type: ignore[no-untyped-def]
    image, pixels = image_for(finding)
    found = map_of(pixels, image)
    for zone in finding.zones:
        assert zone in found.places, zone
    for stroke in finding.draw:
        assert not stroke.at or stroke.at in found.places, stroke.at
