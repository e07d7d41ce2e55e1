"""Masks as they come: soft, 0 and 1, coloured, in transparency, 16 bits."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from plantain.bench.benchmark.regions import read_mask, resized_grey, resized_region
from plantain.pixels.decode import BadImage

DISC = np.zeros((60, 80), np.uint8)
cv2.circle(DISC, (40, 30), 18, 255, -1)
INSIDE = DISC > 0


def png(array: np.ndarray, mode: str | None = None) -> bytes:
    buffer = io.BytesIO()
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(buffer, "PNG")
    return buffer.getvalue()


def rgba(colour: tuple[np.ndarray, np.ndarray]) -> bytes:
    shade, alpha = colour
    return png(np.dstack([shade, shade, shade, alpha]))


FULL, NONE = np.full_like(DISC, 255), np.zeros_like(DISC)


@pytest.mark.parametrize(
    ("data", "kind", "grey"),
    [
        (png(DISC), "binary", DISC),
        (png(np.dstack([DISC] * 3)), "binary", DISC),
        (png(DISC, "1"), "binary", DISC),
        (png(DISC // 255), "0 and 1", DISC // 255),
        (rgba((DISC, FULL)), "binary", DISC),
        (rgba((FULL, DISC)), "transparency", FULL),
        (rgba((NONE, DISC)), "transparency", NONE),
        (png((DISC // 255).astype(np.uint16) * 65535), "binary", DISC),
        (png(DISC // 255 * 200), "binary", DISC // 255 * 200),
    ],
)
def test_the_same_disc_is_read_whatever_stores_it(data: bytes, kind: str, grey: np.ndarray) -> None:
    mask = read_mask(data, "mask.png")
    assert np.array_equal(mask.region, INSIDE)
    assert mask.kind == kind
    assert np.array_equal(mask.grey, grey), "the grey levels are those that the published code sees"


def test_a_palette_mask_is_read_by_its_colours() -> None:
    image = Image.fromarray(DISC // 255).convert("P")
    image.putpalette([0, 0, 0, 128, 0, 0] + [0] * 762)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    mask = read_mask(buffer.getvalue(), "mask.png")
    assert np.array_equal(mask.region, INSIDE)
    assert int(mask.grey.max()) == 38  # 0.299 x 128
    assert "brightest level is 38" in mask.remark


def test_soft_edges_are_cut_at_half_and_said() -> None:
    soft = cv2.GaussianBlur(DISC, (0, 0), 3)
    mask = read_mask(png(soft), "mask.png")
    assert mask.kind == "soft"
    assert np.array_equal(mask.region, soft > soft.max() / 2)
    assert "soft edges" in mask.remark
    assert np.array_equal(mask.grey, soft)


def test_odd_masks_say_so() -> None:
    assert (read_mask(png(NONE), "mask.png").kind, read_mask(png(FULL), "mask.png").kind) == ("empty", "full")
    half = np.zeros_like(DISC)
    half[:, :40] = 255
    mask = read_mask(rgba((DISC, half)), "mask.png")
    assert np.array_equal(mask.region, INSIDE & (half > 0))
    assert "partly transparent" in mask.remark
    with pytest.raises(BadImage, match=r"mask\.png"):
        read_mask(b"GIF89a nothing", "mask.png")


@given(width=st.integers(8, 200), height=st.integers(8, 200))
def test_resizing_keeps_two_levels_and_the_share(width: int, height: int) -> None:
    grey = resized_grey(DISC, (width, height))
    region = resized_region(INSIDE, (width, height))
    assert grey.shape == region.shape == (height, width)
    assert set(np.unique(grey)) <= {0, 255}
    assert np.array_equal(region, grey > 0)
    # Nearest neighbour on a grid of at least 8 x 8 finds a disc of 21 % of the frame within six points.
    assert abs(float(region.mean()) - float(INSIDE.mean())) < 0.06
