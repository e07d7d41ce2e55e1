"""Tones given back: curves and drifting light are undone, a soft finding is not, and what was cut off stays unknown."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from plantain.pixels.tone import levels_left, match_tone

SIDE = 512


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    """A retina's piece, no level of it near the ends."""
    piece = skimage.data.retina()[300:1100, 300:1100]
    small = cv2.resize(piece, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.clip(small * 0.8 + 10, 20, 235).astype(np.uint8)


def disc(radius: float) -> np.ndarray:
    """A soft disc of height 1 in the upper left quarter."""
    y, x = np.mgrid[:SIDE, :SIDE]
    return 1.0 / (1.0 + np.exp((np.hypot(y - 180, x - 180) - radius) / 12.0))


def otherwise_toned(pixels: np.ndarray) -> np.ndarray:
    """Another gamma, and light that falls off to one side."""
    light = np.linspace(-5, 5, SIDE)[None, :, None]
    return np.clip(np.rint(255 * (pixels / 255.0) ** 1.15 + 4 + light), 0, 255).astype(np.uint8)


def test_a_curve_and_drifting_light_are_undone(picture: np.ndarray) -> None:
    back = match_tone(picture, otherwise_toned(picture), np.ones((SIDE, SIDE), bool))
    off = np.abs(back - picture)
    assert off.mean() < 1.0 and np.quantile(off, 0.99) < 4.0
    assert np.abs(otherwise_toned(picture).astype(float) - picture).mean() > 5.0, "it was off before"


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("radius", [40, 80])
def test_a_soft_finding_as_wide_as_drifting_light_is_kept(
    picture: np.ndarray, radius: float, whole: bool
) -> None:
    """Only its core is left out of what tells, as where a faint border was not found."""
    change = disc(radius)
    edited = np.clip(picture + 12 * change[..., None], 0, 255).astype(np.uint8)
    field = np.ones(change.shape, bool) if whole else None
    back = match_tone(picture, otherwise_toned(edited), change < 0.6, field=field)
    kept = (back - picture).mean(axis=2)[change > 0.8].mean()
    assert kept >= 9.5, f"of 12 levels {kept:.1f} are left"
    assert abs((back - picture).mean(axis=2)[change < 0.05].mean()) < 0.5


def test_a_bright_place_that_does_not_tell_keeps_its_contrast() -> None:
    """A disc brighter than all else, its lower half changed by 30; a fifth of all contrast is gone from the answer."""
    place = disc(50)
    ramp = np.broadcast_to(np.linspace(20, 110, SIDE)[None, :, None], (SIDE, SIDE, 3))
    original = np.rint(ramp + 80 * place[..., None]).astype(np.uint8)
    y = np.arange(SIDE)[:, None]
    edited = original + np.uint8(30) * ((place > 0.5) & (y > 180))[..., None].astype(np.uint8)
    answer = np.rint(0.8 * edited + 20).astype(np.uint8)
    change = (match_tone(original, answer, place < 0.002) - original).mean(axis=2)
    lower, upper = (place > 0.9) & (y > 186), (place > 0.9) & (y < 174)
    assert abs(change[upper].mean()) < 5, "what is not changed there looks changed"
    assert change[lower].mean() == pytest.approx(30, abs=8)


def test_what_is_brighter_than_all_that_tells_in_both_pictures_tells_for_itself() -> None:
    """A disc of 140 levels where all else has 110 at most, a ring around it as bright; the curve bends back between."""
    place = disc(50)
    crescent = disc(115) - disc(80)
    ramp = np.broadcast_to(np.linspace(20, 110, SIDE)[None, :, None], (SIDE, SIDE, 3))
    original = np.rint(ramp + 90 * place[..., None]).astype(np.uint8)
    edited = np.rint(original + 90 * crescent[..., None]).astype(np.uint8)
    # By hand: from 110 on 15 levels more are gone, from 140 on they are there again.
    answer = np.interp(edited, [0, 110, 140, 255], [10, 100, 145, 250]).round().astype(np.uint8)
    told = disc(130) < 0.01
    field = np.ones((SIDE, SIDE), bool)
    back = match_tone(original, answer, told, field=field) - original
    assert abs(back.mean(axis=2)[place > 0.95].mean()) < 2
    assert back.mean(axis=2)[crescent > 0.5].mean() > 35, "the ring is no tone"
    blind = match_tone(original, answer, told) - original
    assert abs(blind.mean(axis=2)[place > 0.95].mean()) > 5, "nothing else tells how it moved"


def test_what_is_left_of_tones_that_cannot_be_given_back(picture: np.ndarray) -> None:
    """A negative differs by about as much as it has contrast, another gamma by next to nothing."""
    every = np.ones((SIDE, SIDE), bool)
    near = levels_left(picture, match_tone(picture, otherwise_toned(picture), every), every)
    turned = 255 - picture
    assert near < 1.0 < 2.5 < levels_left(picture, match_tone(picture, turned, every), every)


def test_levels_that_were_cut_off_are_the_originals(picture: np.ndarray) -> None:
    bright = np.clip(picture.astype(int) + 60, 0, 255).astype(np.uint8)
    cut = bright == 255
    assert 0.02 < cut.mean() < 0.9
    back = match_tone(picture, bright, np.ones((SIDE, SIDE), bool))
    assert np.abs(back - picture)[cut].mean() < 1.0
    dark = np.clip(picture.astype(int) - 60, 0, 255).astype(np.uint8)
    back = match_tone(picture, dark, np.ones((SIDE, SIDE), bool))
    assert np.abs(back - picture)[dark == 0].mean() < 1.0
