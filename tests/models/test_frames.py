"""The way to a model's canvas and back, for every method's sizes. A grid of dots shows where pixels end up."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from fakes.grid import displacement, dots
from plantain.models.diffusers.methods import METHODS
from plantain.models.frames import FramePolicy
from plantain.models.registry import presets

POLICIES = {
    **{name: method.frame for name, method in METHODS.items()},
    **{name: FramePolicy.of(row.frame) for name, row in presets().items() if name.startswith("process/")},
    "own size": FramePolicy(),
}
SEED = 20261122


def random_sizes(number: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(SEED)
    return [(65, 101), (1500, 900), *((int(w), int(h)) for w, h in rng.integers(65, 1500, (number, 2)))]


@pytest.mark.parametrize("name", POLICIES)
def test_unchanged_pixels_return_to_their_place(name: str) -> None:
    cv2.setNumThreads(1)
    for width, height in random_sizes(3):
        image, centres = dots(width, height)
        frame = POLICIES[name].frame(width, height)
        back = frame.leave(frame.enter(image))
        assert back.shape == image.shape
        moved = displacement(image, back, centres)
        assert moved < 0.5, f"{name}, {width}x{height}, seed {SEED}: a dot moved {moved:.2f} pixels"
