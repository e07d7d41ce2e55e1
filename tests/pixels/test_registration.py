"""Laying an edited picture over its original: moved by another library, found to a fraction of a pixel, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import skimage.data

from plantain.pixels.arrays import Pixels
from plantain.pixels.registration import WORST, register
from plantain.pixels.tone import match_tone


@pytest.fixture(scope="module")
def retina() -> Pixels:
    return np.ascontiguousarray(skimage.data.retina()[::2, ::2][:640, :640])


def bent(pixels: Pixels, most: float) -> Pixels:
    """Moved by scipy (cubic splines), by at most `most` pixels: a shift, a zoom and a slow wave."""
    height, width = pixels.shape[:2]
    ys, xs = np.mgrid[:height, :width].astype(float)
    dx = most * (0.5 + 0.3 * (xs / width - 0.5) + 0.2 * np.sin(ys / 90))
    dy = most * (-0.4 + 0.3 * (ys / height - 0.5) + 0.2 * np.cos(xs / 110))
    channels = [
        scipy.ndimage.map_coordinates(
            pixels[..., c].astype(float), [ys + dy, xs + dx], order=3, mode="nearest"
        )
        for c in range(3)
    ]
    return np.clip(np.rint(np.stack(channels, -1)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("most", [0.6, 2.0])
def test_a_bent_picture_comes_back_over_its_original(most: float, retina: Pixels) -> None:
    moved = bent(retina, most)
    back = register(retina, moved)
    assert back.why_not == ""
    assert back.residual < 0.2
    inside = np.s_[24:-24, 24:-24]
    before, after = (np.abs(one[inside].astype(int) - retina[inside]).mean() for one in (moved, back.pixels))
    assert after < 0.5 * before


def test_faint_structure_is_laid_over_too(retina: Pixels) -> None:
    """The right half has a third of the contrast, as thin vessels have; it moves against the left."""
    faint = retina.astype(float)
    faint[:, 320:] = 100 + 0.35 * (faint[:, 320:] - 100)
    picture = np.rint(faint).astype(np.uint8)
    xs = np.arange(640) / 640
    ys, columns = np.mgrid[:640, :640].astype(float)
    moved = np.stack(
        [
            scipy.ndimage.map_coordinates(
                picture[..., c].astype(float),
                [ys, columns + 2.0 * np.sin(3 * xs)[None]],
                order=3,
                mode="nearest",
            )
            for c in range(3)
        ],
        -1,
    )
    answer = np.clip(np.rint(moved), 0, 255).astype(np.uint8)
    right = np.s_[40:-40, 400:-40]
    before, after = (
        np.abs(one[right].astype(int) - picture[right]).mean()
        for one in (answer, register(picture, answer).pixels)
    )
    assert after < 0.2 * before


def test_what_was_not_moved_stays_as_it_is(retina: Pixels) -> None:
    drawn = retina.copy()
    drawn[200:300, 200:300] += 20
    assert np.array_equal(register(retina, drawn).pixels, drawn)


def test_another_picture_is_refused_with_the_residual(retina: Pixels) -> None:
    other = np.ascontiguousarray(retina[::-1, ::-1])
    refused = register(retina, other)
    assert refused.residual > WORST or "tiles agree" in refused.why_not
    assert refused.why_not.startswith("it cannot be laid over the original")
    flat = np.full_like(retina, 90)
    assert register(flat, flat + 1).why_not == "there is too little structure to compare"


def test_tones_come_back_and_a_finding_keeps_its_contrast(retina: Pixels) -> None:
    drawn = retina.copy()
    drawn[300:340, 300:340] = np.clip(drawn[300:340, 300:340].astype(int) + 40, 0, 255)
    told_by = np.ones(retina.shape[:2], bool)
    told_by[290:350, 290:350] = False
    # The green channel; red is burnt out in this photograph.
    answer = np.rint(255 * (drawn / 255.0) ** 0.85 * 0.95 + 4).clip(0, 255).astype(np.uint8)
    back = match_tone(retina, answer, told_by)
    error = back[..., 1] - retina[..., 1].astype(float)
    assert np.abs(np.median(error[told_by])) < 1.0
    assert np.percentile(np.abs(error[told_by]), 90) < 2.5
    assert np.median(error[305:335, 305:335]) == pytest.approx(40, abs=6)
