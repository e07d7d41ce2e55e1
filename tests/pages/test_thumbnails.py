"""Thumbnails, the region that an edit changed, and the one stylesheet."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import skimage.data
from hypothesis import given, settings
from hypothesis import strategies as st

import plantain
from plantain.pages.publishing import LOOK
from plantain.pages.thumbnails import box_around, changed_region, data_uri
from plantain.pixels.boxes import Box


@settings(max_examples=15, deadline=None)
@given(st.integers(1_200, 30_000), st.integers(0, 2**32 - 1))
def test_size_limit_holds_for_the_worst_image(limit: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (300, 220, 3), dtype=np.uint8)
    uri = data_uri(noise, 264, limit, synthetic=False)
    assert len(base64.b64decode(uri.split(",")[1])) <= limit


def test_changed_region_contains_the_edit_and_no_encoding_differences() -> None:
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
        ((500, 510), (500, 510), Box(377, 377, 256, 256)),  # at least a quarter of 1024
        ((0, 200), (924, 1024), Box(744, 0, 280, 280)),  # a corner: the box stays in the image
        ((0, 1024), (0, 1024), Box(0, 0, 1024, 1024)),
        ((0, 0), (0, 0), Box(0, 0, 1024, 1024)),  # no change: the whole image
    ],
)
def test_box_surrounds_a_region_with_a_margin(rows: tuple, columns: tuple, box: Box) -> None:
    region = np.zeros((1024, 1024), bool)
    region[slice(*rows), slice(*columns)] = True
    assert box_around(region) == box


def test_no_page_has_its_own_stylesheet() -> None:
    pages = [
        path for path in Path(plantain.__file__).parent.rglob("*") if path.suffix in (".j2", ".html", ".css")
    ]
    own = [path for path in pages if path.suffix == ".css" or re.search(r"<style>(?!\{\{)", path.read_text())]
    assert own == [LOOK]
