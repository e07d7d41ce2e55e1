"""Matching tones: a curve and drifting light are undone, a finding is kept, clipped levels are the original's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import skimage.data

from plantain.pixels.restore import match_tone

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
    off = np.abs(back.astype(float) - picture)
    assert off.mean() < 1.0 and np.quantile(off, 0.99) < 4.0
    assert np.abs(otherwise_toned(picture).astype(float) - picture).mean() > 5.0, "it was off before"


def test_a_finding_that_is_left_out_of_the_reference_is_kept(picture: np.ndarray) -> None:
    change = disc(40)
    edited = np.clip(picture + 12 * change[..., None], 0, 255).astype(np.uint8)
    back = match_tone(picture, otherwise_toned(edited), change < 0.02).astype(float)
    assert (back - picture).mean(axis=2)[change > 0.8].mean() >= 9.5
    assert abs((back - picture).mean(axis=2)[change < 0.05].mean()) < 0.5


def test_levels_that_were_cut_off_are_the_originals(picture: np.ndarray) -> None:
    bright = np.clip(picture.astype(int) + 60, 0, 255).astype(np.uint8)
    cut = bright == 255
    assert 0.02 < cut.mean() < 0.9
    back = match_tone(picture, bright, np.ones((SIDE, SIDE), bool))
    assert np.abs(back.astype(float) - picture)[cut].mean() < 1.0
    dark = np.clip(picture.astype(int) - 60, 0, 255).astype(np.uint8)
    back = match_tone(picture, dark, np.ones((SIDE, SIDE), bool))
    assert np.abs(back.astype(float) - picture)[dark == 0].mean() < 1.0
