"""Plain hills and dots of one size, drawn here on a noisy grey field, against shapes of uneven outline and size."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from plantain.offline.instruments.change import change_of
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.plainness import Plainness, plainness_of
from plantain.offline.instruments.presentation import KNOWN
from plantain.pixels.arrays import Field

SIDE = 1024
YS, XS = np.mgrid[:SIDE, :SIDE].astype(np.float32)


def plainness(drawing: Field) -> Plainness:
    grain = np.random.default_rng(0).normal(100, 4, (SIDE, SIDE, 1)).astype(np.float32)
    before, after = (
        np.repeat(np.clip(np.rint(plane), 0, 255).astype(np.uint8), 3, axis=2)
        for plane in (grain, grain + drawing[..., None])
    )
    pair = pair_of(before, after, "chest_xray")
    everywhere = np.ones((SIDE // 2, SIDE // 2), bool)
    change = change_of(pair, everywhere, everywhere)
    return plainness_of(change, change.parts)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_oval_hill_is_plain_whichever_way_it_goes(sign: int) -> None:
    along, across = (XS - 400) * 0.8 + (YS - 500) * 0.6, (YS - 500) * 0.8 - (XS - 400) * 0.6
    assert plainness(sign * 40 * np.exp(-((along / 90) ** 2) - (across / 50) ** 2)).hill > 0.93


def test_a_mass_of_uneven_outline_is_not_plain() -> None:
    noise = cv2.GaussianBlur(
        np.random.default_rng(3).normal(size=(SIDE, SIDE)).astype(np.float32), (0, 0), 30
    )
    inside = (np.hypot(XS - 400, YS - 500) < 130) & (noise > 0.2 * noise.std())
    assert plainness(30 * cv2.GaussianBlur(inside.astype(np.float32), (0, 0), 4)).hill < 0.85


@pytest.mark.parametrize(("radii", "alike"), [((16,) * 6, True), ((8, 12, 16, 22, 30, 38), False)])
def test_dots_of_one_size_are_alike(radii: tuple[int, ...], alike: bool) -> None:
    places = [(200, 200), (200, 500), (200, 800), (700, 200), (700, 500), (700, 800)]
    drawing = sum(
        45 * np.exp(-((XS - x) ** 2 + (YS - y) ** 2) / r**2) for (x, y), r in zip(places, radii, strict=True)
    )
    found = plainness(np.asarray(drawing))
    assert found.parts == 6
    assert (found.alike < 0.12) is alike


def test_no_change_says_nothing() -> None:
    assert plainness(np.zeros((SIDE, SIDE), np.float32)).hill == 0.0


def test_an_opacity_may_be_a_plain_hill_and_a_pneumonia_may_not() -> None:
    plain = {name for (_, name), shown in KNOWN.items() if shown.plain}
    assert plain == {"Lung Opacity", "Lung Lesion"}  # what `audit/gate.toml` says a blob may truly be
