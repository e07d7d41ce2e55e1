"""Grain of a changed place against that of its surroundings: what is lost everywhere was not lost by the edit."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from plantain.offline.instruments.grain import grain_of

SIDE = 256


def noisy() -> np.ndarray:
    rng = np.random.default_rng(4)
    return np.asarray(rng.normal(120, 5, (SIDE, SIDE)), np.float32)


def place() -> np.ndarray:
    y, x = np.mgrid[:SIDE, :SIDE]
    return np.asarray(np.hypot(y - 128, x - 128) < 60, bool)


def blurred(plane: np.ndarray, width: float) -> np.ndarray:
    return cv2.GaussianBlur(plane, (0, 0), width)


def test_grain_that_the_edit_took_is_lost() -> None:
    before, where = noisy(), place()
    after = np.where(where, blurred(before, 2.0), before)
    assert grain_of(before, after, where, 24.0).lost > 0.9


@pytest.mark.parametrize("width", [0.6, 1.0])
def test_grain_that_the_whole_picture_lost_in_part_is_not(width: float) -> None:
    before = noisy()
    assert grain_of(before, blurred(before, width), place(), 24.0).lost < 0.05


def test_an_edit_that_took_grain_shows_in_a_picture_that_lost_some_too() -> None:
    before, where = noisy(), place()
    after = blurred(np.where(where, blurred(before, 2.0), before), 0.6)
    assert grain_of(before, after, where, 24.0).lost > 0.9


@pytest.mark.parametrize(("deviation", "told"), [(1.0, False), (12.0, True)])
def test_grain_finer_than_a_codecs_steps_is_not_told(deviation: float, told: bool) -> None:
    # JPEG 75 rounds its finest waves to steps of about 50 levels: what is left of a grain of one level is its blocks'.
    rng = np.random.default_rng(5)
    before = np.asarray(rng.normal(120, deviation, (SIDE, SIDE)), np.float32)
    where = place()
    after = np.where(where, blurred(before, 2.0) + 25, before)
    first, second = (_coded(plane) for plane in (before, after))
    found = grain_of(first, second, where, 24.0, 75)
    assert (found.blocks > 0) is told
    assert not told or found.kept < 0.5


def _coded(plane: np.ndarray) -> np.ndarray:
    levels = np.clip(np.rint(plane), 0, 255).astype(np.uint8)
    _, data = cv2.imencode(".jpg", levels, [cv2.IMWRITE_JPEG_QUALITY, 75])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.float32)
