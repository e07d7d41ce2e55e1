"""Masks as they come: soft, 0 and 1, coloured, in transparency, 16 bits."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from plantain.bench.benchmark.benchmark import read_mask

DISC = np.zeros((60, 80), np.uint8)
cv2.circle(DISC, (40, 30), 18, 255, -1)
INSIDE = DISC > 0


def png(array: np.ndarray, mode: str | None = None, orientation: int = 1) -> bytes:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(buffer, "PNG", exif=exif)
    return buffer.getvalue()


def rgba(colour: tuple[np.ndarray, np.ndarray]) -> bytes:
    shade, alpha = colour
    return png(np.dstack([shade, shade, shade, alpha]))


FULL, NONE = np.full_like(DISC, 255), np.zeros_like(DISC)


@pytest.mark.parametrize(
    ("data", "kind", "grey"),
    [
        (png(DISC), "binary", DISC),
        (png(DISC // 255), "0 and 1", DISC // 255),
        (png(np.rot90(DISC), orientation=6), "binary", DISC),  # EXIF 2.32: the 0th row is the right side
        (rgba((DISC, FULL)), "binary", DISC),
        (rgba((FULL, DISC)), "transparency", FULL),
    ],
)
def test_the_same_disc_is_read_whatever_stores_it(data: bytes, kind: str, grey: np.ndarray) -> None:
    mask = read_mask(data, "mask.png")
    assert np.array_equal(mask.region, INSIDE)
    assert mask.kind == kind
    assert np.array_equal(mask.grey, grey), "the grey levels are those that the published code sees"


def test_soft_edges_are_cut_at_half_and_said() -> None:
    soft = cv2.GaussianBlur(DISC, (0, 0), 3)
    mask = read_mask(png(soft), "mask.png")
    assert mask.kind == "soft"
    assert np.array_equal(mask.region, soft > soft.max() / 2)
    assert "soft edges" in mask.remark
    assert np.array_equal(mask.grey, soft)
