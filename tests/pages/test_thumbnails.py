"""Thumbnails and difference maps; the one stylesheet, whose letters can be read in light and in dark."""

from __future__ import annotations

import base64
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import skimage.data
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import plantain
from plantain.pages.publishing import LOOK
from plantain.pages.thumbnails import box_around, changed_region, data_uri, difference
from plantain.pixels.boxes import Box


def pixels_of(uri: str) -> np.ndarray:
    head, data = uri.split(",")
    assert head == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


@settings(max_examples=15, deadline=None)
@given(st.integers(1_200, 30_000), st.integers(0, 2**32 - 1))
def test_size_limit_holds_for_the_worst_picture(limit: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (300, 220, 3), dtype=np.uint8)
    uri = data_uri(noise, 264, limit, synthetic=False)
    assert len(base64.b64decode(uri.split(",")[1])) <= limit


@pytest.mark.parametrize(("change", "warm"), [(30, True), (-30, False)])
def test_difference_shows_sign_and_place(change: int, warm: bool) -> None:
    before = np.full((512, 512, 3), 120, np.uint8)
    after = before.copy()
    after[100:200, 300:400] += np.uint8(change % 256)
    picture = pixels_of(difference(before, after, 256, 30_000))
    inside, outside = picture[75, 175], picture[200, 60]
    assert (inside[0] > inside[2] + 60) if warm else (inside[2] > inside[0] + 60)
    assert outside.max() < 45


def test_mask_is_a_green_outline() -> None:
    before = np.full((512, 512, 3), 120, np.uint8)
    mask = np.zeros((512, 512), bool)
    mask[128:384, 128:384] = True
    picture = pixels_of(difference(before, before, 512, 60_000, mask))
    green = (picture[..., 1] > picture[..., 0] + 40) & (picture[..., 1] > picture[..., 2] + 30)
    rows, columns = np.nonzero(green)
    assert abs(rows.min() - 128) <= 3 and abs(columns.max() - 383) <= 3
    assert not green[200:300, 200:300].any()


def test_changed_region_is_where_the_edit_is_and_not_where_the_encoding_differs() -> None:
    before = skimage.data.retina()[:1024, :1024]
    noise = np.random.default_rng(1).integers(-3, 4, before.shape)
    after = np.clip(before + noise, 0, 255).astype(np.uint8)
    assert not changed_region(before, after).any()  # 3 grey levels are below the 4 that count
    after[300:400, 500:560] = 255 - after[300:400, 500:560]
    rows, columns = np.nonzero(changed_region(before, after))
    # the smoothing has a radius of 1024 / 200 = 5 pixels
    assert abs(rows.min() - 300) <= 10 and abs(rows.max() - 399) <= 10
    assert abs(columns.min() - 500) <= 10 and abs(columns.max() - 559) <= 10


@pytest.mark.parametrize(
    ("rows", "columns", "box"),
    [
        # by hand: 200 rows with 40 % more are 280; their centre is row 500, column 450
        ((400, 600), (400, 500), Box(310, 360, 280, 280)),
        ((500, 510), (500, 510), Box(377, 377, 256, 256)),  # never less than a quarter of 1024
        ((0, 200), (924, 1024), Box(744, 0, 280, 280)),  # a corner: the box stays in the image
        ((0, 1024), (0, 1024), Box(0, 0, 1024, 1024)),
        ((0, 0), (0, 0), Box(0, 0, 1024, 1024)),  # nothing changed: all of it
    ],
)
def test_box_surrounds_a_region_with_a_margin(rows: tuple, columns: tuple, box: Box) -> None:
    region = np.zeros((1024, 1024), bool)
    region[slice(*rows), slice(*columns)] = True
    assert box_around(region) == box


TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", LOOK.read_text(encoding="utf-8")
    )
}


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("letters", "ground"),
    [
        *itertools.product(
            ("ink", "muted", "accent", "success", "failed", "warning"), ("paper", "card", "tint")
        ),
        ("on-accent", "accent"),
    ],
)
def test_letters_can_be_read_on_every_ground(letters: str, ground: str, theme: int) -> None:
    assert contrast(TOKENS[letters][theme], TOKENS[ground][theme]) >= 4.5  # WCAG 2.2, 1.4.3, level AA


def test_no_page_brings_a_stylesheet_of_its_own() -> None:
    pages = [
        path for path in Path(plantain.__file__).parent.rglob("*") if path.suffix in (".j2", ".html", ".css")
    ]
    own = [path for path in pages if path.suffix == ".css" or re.search(r"<style>(?!\{\{)", path.read_text())]
    assert own == [LOOK]
