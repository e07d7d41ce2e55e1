"""Tones given back: curves and drifting light are undone, a soft finding is not, and what was cut off stays unknown."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from plantain.pixels.tone import match_tone

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


@pytest.mark.parametrize("radius", [40, 80])
def test_a_soft_finding_as_wide_as_drifting_light_is_kept(picture: np.ndarray, radius: float) -> None:
    """Only its core is left out of what tells, as where a faint border was not found."""
    change = disc(radius)
    edited = np.clip(picture + 12 * change[..., None], 0, 255).astype(np.uint8)
    back = match_tone(picture, otherwise_toned(edited), change < 0.6)
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


def test_levels_that_were_cut_off_are_the_originals(picture: np.ndarray) -> None:
    bright = np.clip(picture.astype(int) + 60, 0, 255).astype(np.uint8)
    cut = bright == 255
    assert 0.02 < cut.mean() < 0.9
    back = match_tone(picture, bright, np.ones((SIDE, SIDE), bool))
    assert np.abs(back - picture)[cut].mean() < 1.0
    dark = np.clip(picture.astype(int) - 60, 0, 255).astype(np.uint8)
    back = match_tone(picture, dark, np.ones((SIDE, SIDE), bool))
    assert np.abs(back - picture)[dark == 0].mean() < 1.0
