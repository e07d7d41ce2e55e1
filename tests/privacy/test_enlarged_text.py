"""Pictures that were enlarged a lot are read smaller, and told where they are."""

from __future__ import annotations

from dataclasses import astuple

import cv2
import numpy as np
import pytest

from plantain.pixels.arrays import Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.encode import prepare
from plantain.privacy.small_text import read_prepared
from plantain.privacy.text import Text, TextKind, open_reader


class Looks:
    """Tells of each picture where it is brighter than 200."""

    name = "looks"

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def read(self, pixels: Pixels) -> tuple[Text, ...]:
        self.shapes.append(pixels.shape)
        ys, xs = np.nonzero(pixels[..., 0] > 200)
        box = Box(int(xs.min()), int(ys.min()), int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1)
        return (Text("x", TextKind.OTHER, box, 1.0),)


@pytest.mark.parametrize(
    ("height", "width", "side"),
    # 1024 x 2.25 / (1024 / 300) = 675; below that 512; at 512 (twice) and above, the picture as it is.
    [(224, 224, 512), (300, 300, 675), (150, 224, 512), (512, 512, 1024), (1400, 1400, 1024)],
)
def test_a_picture_is_read_at_some_times_its_own_size_and_told_in_the_prepared_one(
    height: int, width: int, side: int
) -> None:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[height // 2 : height // 2 + height // 8, width // 4 : width // 2] = 255
    prepared, geometry = prepare(pixels)
    looks, exact = Looks(), Looks()
    (found,), (there,) = read_prepared(prepared, geometry, looks), exact.read(prepared)
    assert looks.shapes == [(side, side, 3)]
    for one, other in zip(astuple(found.box), astuple(there.box), strict=True):
        assert abs(one - other) <= 4  # two pixels of what was read


def test_letters_of_eight_pixels_are_read_in_a_small_slice() -> None:
    reader = open_reader()
    if reader is None:
        pytest.skip("no reader here")
    pixels = np.full((224, 224, 3), 40, np.uint8)
    cv2.putText(pixels, "MARY SMITH", (60, 120), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (220,) * 3, 1, cv2.LINE_AA)
    prepared, geometry = prepare(pixels)
    found = read_prepared(prepared, geometry, reader)
    assert [text.text.replace(" ", "") for text in found if text.kind.identifying] == ["MARYSMITH"]
