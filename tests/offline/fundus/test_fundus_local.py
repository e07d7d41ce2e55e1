"""Drusen and diabetic lesions: where they lie, how they look, that nothing else changes, and that they go away."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from fakes.scenes import SceneMaker
from plantain.offline.fundus import RENDERERS
from plantain.offline.rendering import CannotShow, Rendering
from plantain.pixels.arrays import Mask, Pixels

FOVEA, DISC, DISC_DIAMETER = (511, 507), (152, 470), 140
"""Read off the prepared photograph by eye; independent of the code under test."""

LOCAL = ("AMD", "Diabetes", "Glaucoma", "Hypertension", "Myopia")
PRESENT = [name for name in LOCAL if name in RENDERERS]


def _add(make_scene: SceneMaker, retina: Pixels, name: str, seed: int = 1, **said: object) -> Rendering:
    return RENDERERS[name].add(make_scene(retina, name, seed=seed, **said))


def _far(mask: Mask) -> Mask:
    distance = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)
    return np.asarray(distance > 20)


@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_add_repeats_byte_for_byte(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    first, second = (_add(make_scene, retina, name, seed=5) for _ in range(2))
    assert first.pixels.tobytes() == second.pixels.tobytes()
    assert np.array_equal(first.mask, second.mask)


@pytest.mark.parametrize("name", PRESENT)
def test_add_local_leaves_the_rest_untouched(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    rendering = _add(make_scene, retina, name, extent="large", conspicuity="marked")
    far = _far(rendering.mask)
    assert rendering.support == "local"
    assert np.array_equal(rendering.pixels[far], retina[far])
    assert (rendering.pixels != retina).any(axis=2)[rendering.mask].mean() > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_add_drusen_lie_in_the_macula_and_are_brighter(
    make_scene: SceneMaker, retina: Pixels, seed: int
) -> None:
    rendering = _add(make_scene, retina, "AMD", seed, extent="moderate", conspicuity="marked")
    ys, xs = np.nonzero(rendering.mask)
    away = np.hypot(xs - FOVEA[0], ys - FOVEA[1]) / DISC_DIAMETER
    assert away.max() < 2.3
    change = rendering.pixels.astype(int) - retina
    assert change[rendering.mask][:, 1].mean() > 8
    assert (change[rendering.mask][:, 1] >= 0).mean() > 0.97


def test_add_drusen_lie_under_vessels(make_scene: SceneMaker, retina: Pixels) -> None:
    """A vessel that crosses a druse keeps its contrast: dark ridges inside the mask stay as deep, as a share."""
    rendering = _add(make_scene, retina, "AMD", 4, extent="large", conspicuity="marked")

    def ridges(pixels: Pixels) -> np.ndarray:
        green = cv2.GaussianBlur(pixels[..., 1], (0, 0), 1.0)
        closed = cv2.morphologyEx(green, cv2.MORPH_CLOSE, np.ones((13, 13), np.uint8))
        return green / np.maximum(closed.astype(float), 1)

    before, after = ridges(retina), ridges(rendering.pixels)
    core = cv2.erode(rendering.mask.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    vessel = core & (before < 0.82)
    assert vessel.sum() > 30
    assert np.median(after[vessel]) < np.median(before[vessel]) + 0.08


@pytest.mark.parametrize("seed", range(3))
def test_add_diabetes_has_red_lesions_darker_in_green_and_exudates_brighter(
    make_scene: SceneMaker, retina: Pixels, seed: int
) -> None:
    rendering = _add(make_scene, retina, "Diabetes", seed, extent="large", conspicuity="marked")
    change = rendering.pixels.astype(int) - retina
    dark = rendering.mask & (change[..., 1] < -8)
    bright = rendering.mask & (change[..., 1] > 8)
    assert dark.sum() > 100 and bright.sum() > 100
    # Blood takes more green than red.
    assert (
        change[dark][:, 1].mean() / retina[dark][:, 1].mean()
        < change[dark][:, 0].mean() / retina[dark][:, 0].mean()
    )
    ys, xs = np.nonzero(rendering.mask)
    assert np.hypot(xs - DISC[0], ys - DISC[1]).min() > 0.5 * DISC_DIAMETER


def test_add_diabetes_small_has_no_exudates(make_scene: SceneMaker, retina: Pixels) -> None:
    rendering = _add(make_scene, retina, "Diabetes", extent="small", conspicuity="marked")
    change = rendering.pixels.astype(int) - retina
    assert (change[..., 1] > 4).sum() == 0


@pytest.mark.parametrize("name", ["AMD", "Diabetes"])
def test_add_marked_is_plainer_than_subtle(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    mean = [
        np.abs(r.pixels.astype(int) - retina)[r.mask].mean()
        for r in (
            _add(make_scene, retina, name, extent="moderate", conspicuity=c) for c in ("subtle", "marked")
        )
    ]
    assert mean[1] > 1.5 * mean[0]


@pytest.mark.parametrize("name", ["AMD", "Diabetes"])
def test_remove_brings_the_original_back_nearer(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    added = _add(make_scene, retina, name, 3, extent="large", conspicuity="marked")
    removed = RENDERERS[name].remove(make_scene(added.pixels, name, direction="remove"))
    before, after = (
        np.square(r.pixels[added.mask].astype(float) - retina[added.mask]).mean() for r in (added, removed)
    )
    # Half the squared error is 3 dB of PSNR inside the mask.
    assert after < 0.5 * before
    far = _far(removed.mask)
    assert np.array_equal(removed.pixels[far], added.pixels[far])


@pytest.mark.parametrize("name", ["AMD", "Diabetes"])
def test_remove_from_a_normal_eye_finds_nothing(make_scene: SceneMaker, retina: Pixels, name: str) -> None:
    with pytest.raises(CannotShow, match=r"no .* found"):
        RENDERERS[name].remove(make_scene(retina, name, direction="remove"))


def _chest() -> Pixels:
    """A round light shape on black in grey: what a radiograph in a circular collimator looks like."""
    ys, xs = np.mgrid[0:1024, 0:1024]
    level = np.where(np.hypot(xs - 512, ys - 512) < 470, 120 + 60 * np.sin(xs / 90), 0).astype(np.uint8)
    return np.repeat(level[..., None], 3, axis=2)


NOT_FUNDUS = {
    "blank": lambda: np.zeros((1024, 1024, 3), np.uint8),
    "white": lambda: np.full((1024, 1024, 3), 255, np.uint8),
    "noise": lambda: np.random.default_rng(0).integers(0, 256, (1024, 1024, 3), dtype=np.uint8),
    "grey round": _chest,
    "photograph": lambda: cv2.resize(skimage.data.astronaut(), (1024, 1024)),
}


@pytest.mark.parametrize("what", sorted(NOT_FUNDUS))
@pytest.mark.parametrize("name", sorted(RENDERERS))
def test_other_pictures_cannot_show_it(make_scene: SceneMaker, name: str, what: str) -> None:
    for direction in ("add", "remove"):
        with pytest.raises(CannotShow):
            getattr(RENDERERS[name], direction)(make_scene(NOT_FUNDUS[what](), name, direction=direction))
