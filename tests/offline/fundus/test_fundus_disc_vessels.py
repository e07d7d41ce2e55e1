"""Glaucoma, hypertension, myopia: the cup grows in the same disc, arterioles narrow, the crescent is temporal."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.scenes import SceneMaker
from plantain.offline.fundus import RENDERERS
from plantain.offline.fundus.anatomy import read_anatomy
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Pixels

DISC, DISC_DIAMETER = (152, 470), 140
"""Read off the prepared photograph by eye."""


def _pale_area(pixels: Pixels) -> int:
    """Pixels of the disc that are much paler in blue than its pink nasal rim."""
    x, y = DISC
    patch = cv2.medianBlur(np.ascontiguousarray(pixels[y - 65 : y + 65, x - 60 : x + 60]), 9)[..., 2].astype(
        int
    )
    return int((patch > 150).sum())


def test_glaucoma_enlarges_the_cup_inside_the_same_disc(make_scene: SceneMaker, retina: Pixels) -> None:
    areas = []
    for extent in ("small", "large"):
        rendering = RENDERERS["Glaucoma"].add(
            make_scene(retina, "Glaucoma", extent=extent, conspicuity="marked")
        )
        areas.append(_pale_area(rendering.pixels))
    assert _pale_area(retina) < areas[0] < areas[1]
    ys, xs = np.nonzero((rendering.pixels != retina).any(axis=2))
    assert np.hypot(xs - DISC[0], ys - DISC[1]).max() < 0.62 * DISC_DIAMETER
    before, after = read_anatomy(retina).disc, read_anatomy(rendering.pixels).disc
    assert abs(after.diameter / before.diameter - 1) < 0.1


def test_glaucoma_removal_is_nearer_to_the_original(make_scene: SceneMaker, retina: Pixels) -> None:
    added = RENDERERS["Glaucoma"].add(make_scene(retina, "Glaucoma", extent="large", conspicuity="marked"))
    removed = RENDERERS["Glaucoma"].remove(make_scene(added.pixels, "Glaucoma", direction="remove"))
    before, after = (
        np.square(r.pixels[added.mask].astype(float) - retina[added.mask]).mean() for r in (added, removed)
    )
    assert after < 0.8 * before


def test_hypertension_lessens_vessels_and_marked_adds_flames(make_scene: SceneMaker, retina: Pixels) -> None:
    def dark(pixels: Pixels) -> float:
        green = pixels[..., 1].astype(np.uint8)
        return float((cv2.morphologyEx(green, cv2.MORPH_CLOSE, np.ones((21, 21), np.uint8)) - green).sum())

    moderate = RENDERERS["Hypertension"].add(
        make_scene(retina, "Hypertension", extent="small", conspicuity="subtle")
    )
    assert dark(moderate.pixels) < dark(retina)
    marked = RENDERERS["Hypertension"].add(
        make_scene(retina, "Hypertension", extent="large", conspicuity="marked")
    )
    change = marked.pixels.astype(int) - retina
    assert ((change[..., 1] < -12) & marked.mask).sum() > 300
    assert "flame" in marked.note


@pytest.mark.parametrize("mirrored", [False, True])
def test_myopia_crescent_is_pale_and_temporal(make_scene: SceneMaker, retina: Pixels, mirrored: bool) -> None:
    pixels = np.ascontiguousarray(retina[:, ::-1]) if mirrored else retina
    rendering = RENDERERS["Myopia"].add(make_scene(pixels, "Myopia", extent="small", conspicuity="marked"))
    change = rendering.pixels.astype(int) - pixels
    _, xs = np.nonzero(change[..., 1] > 15)
    assert len(xs) > 200
    disc_x = 1023 - DISC[0] if mirrored else DISC[0]
    toward_fovea = (xs - disc_x) * (-1 if mirrored else 1)
    assert np.mean(toward_fovea > 0) > 0.9


@pytest.mark.parametrize("name", ["Glaucoma", "Hypertension", "Myopia"])
def test_remove_from_a_normal_eye_finds_nothing(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    with pytest.raises(CannotShow, match=r"no .* found"):
        RENDERERS[name].remove(make_scene(retina, name, direction="remove"))


@pytest.mark.parametrize(("zone", "words"), [("superior rim", "supero"), ("inferior rim", "infero")])
def test_glaucoma_thins_the_rim_that_was_asked_for(
    make_scene: SceneMaker, retina: Pixels, zone: str, words: str
) -> None:
    rendering = RENDERERS["Glaucoma"].add(
        make_scene(retina, "Glaucoma", zone=zone, extent="large", conspicuity="marked")
    )
    assert f"thinnest {words}temporally" in rendering.note


@pytest.mark.parametrize("extent", ["small", "moderate", "large"])
def test_myopia_removal_closes_the_crescent_and_keeps_the_disc(
    make_scene: SceneMaker, retina: Pixels, extent: str
) -> None:
    added = RENDERERS["Myopia"].add(make_scene(retina, "Myopia", extent=extent, conspicuity="marked"))
    removed = RENDERERS["Myopia"].remove(make_scene(added.pixels, "Myopia", direction="remove"))
    change = added.pixels[..., 1].astype(int) - retina[..., 1]
    crescent = change > 20
    left = removed.pixels[..., 1].astype(int) - retina[..., 1]
    assert left[crescent].mean() < 0.4 * change[crescent].mean()
    ys, xs = np.mgrid[: retina.shape[0], : retina.shape[1]]
    # Well inside the disc nothing is touched.
    inside = np.hypot(xs - DISC[0], ys - DISC[1]) < 35
    assert np.array_equal(removed.pixels[inside], added.pixels[inside])


def test_myopia_is_refused_where_the_retina_is_as_pale_as_a_crescent(
    make_scene: SceneMaker, published: dict[str, Pixels]
) -> None:
    with pytest.raises(CannotShow, match="pale"):
        RENDERERS["Myopia"].add(make_scene(published["1010_right-AMD-remove"], "Myopia"))


@pytest.mark.parametrize("seed", range(3))
def test_hypertension_removal_takes_flames_and_leaves_vessels(
    make_scene: SceneMaker, retina: Pixels, seed: int
) -> None:
    said = {"extent": "moderate", "conspicuity": "marked"}
    added = RENDERERS["Hypertension"].add(make_scene(retina, "Hypertension", seed=seed, **said))
    removed = RENDERERS["Hypertension"].remove(make_scene(added.pixels, "Hypertension", direction="remove"))
    drawn = (retina[..., 1].astype(int) - added.pixels[..., 1]) > 18
    before, after = (
        (retina[..., 1].astype(int) - image.pixels[..., 1])[drawn].mean() for image in (added, removed)
    )
    assert after < 0.75 * before
    # Where nothing was drawn, nothing dark is closed over: no vessel is lost.
    same = (added.pixels == retina).all(axis=2)
    lost = same & (removed.pixels[..., 1].astype(int) - retina[..., 1] > 25)
    assert lost.sum() < 0.05 * drawn.sum()
