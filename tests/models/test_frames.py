"""The way to a model's canvas and back, for every method's sizes. A grid of dots shows where pixels end up."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.grid import displacement, dots
from plantain.models.diffusers.methods import METHODS
from plantain.models.frames import STRETCH, FramePolicy
from plantain.models.presets import presets

POLICIES = {
    **{name: method.frame for name, method in METHODS.items()},
    **{name: FramePolicy.of(row.frame) for name, row in presets().items() if name.startswith("process/")},
    "own size": FramePolicy(),
}
SEED = 20261122
SIDES = st.integers(65, 1500)


def random_sizes(number: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(SEED)
    return [(65, 101), (1500, 900), *((int(w), int(h)) for w, h in rng.integers(65, 1500, (number, 2)))]


@pytest.mark.parametrize("name", POLICIES)
def test_what_the_model_leaves_alone_comes_back_where_it_was(name: str) -> None:
    cv2.setNumThreads(1)
    for width, height in random_sizes(3):
        image, centres = dots(width, height)
        frame = POLICIES[name].frame(width, height)
        back = frame.leave(frame.enter(image))
        assert back.shape == image.shape
        moved = displacement(image, back, centres)
        assert moved < 0.5, f"{name}, {width}x{height}, seed {SEED}: a dot moved {moved:.2f} pixels"


@settings(deadline=None)
@given(SIDES, SIDES, st.sampled_from(sorted(POLICIES)), st.sampled_from([None, 64, 512, 1000]))
def test_frame_is_on_its_canvas_and_keeps_proportions(
    width: int, height: int, name: str, side: int | None
) -> None:
    policy = POLICIES[name]
    frame = policy.frame(width, height, side)
    assert frame.canvas_width % policy.multiple == 0
    assert frame.canvas_height % policy.multiple == 0
    assert 0 <= frame.left <= frame.canvas_width - frame.inner_width
    assert 0 <= frame.top <= frame.canvas_height - frame.inner_height
    assert frame.mode in ("fit", "pad")
    scales = frame.inner_width / width, frame.inner_height / height
    rounding = 0.5 / min(frame.inner_width, frame.inner_height) * 2
    assert max(scales) / min(scales) <= 1 + STRETCH + 2 * rounding
    if policy.rule == "area" and not policy.sizes and side != 64 and 0.5 < width / height < 2:
        area = frame.canvas_width * frame.canvas_height
        assert area == pytest.approx((side or policy.side) ** 2, rel=0.1)
