from __future__ import annotations

import cv2
import numpy as np
import pytest

from plantain.metrics.pixelwise import field_of_view
from plantain.pixels.arrays import Field
from plantain.pixels.frame import without_frame
from plantain.sources.samples import sample_images


@pytest.fixture(scope="module")
def slices() -> list[Field]:
    """Return the package's brain slices, small."""
    return [
        cv2.resize(sample.pixels[..., 1], (192, 192), interpolation=cv2.INTER_AREA).astype(np.float32)
        for sample in sample_images()
        if sample.image.modality == "brain_mri"
    ]


def test_an_image_without_a_frame_is_unchanged(slices: list[Field]) -> None:
    for level in slices:
        np.testing.assert_array_equal(without_frame(level), level)


@pytest.mark.parametrize("wide", [1, 2])
def test_a_frame_takes_the_level_of_the_image_inside(slices: list[Field], wide: int) -> None:
    level = slices[0]
    framed = level.copy()
    framed[:wide], framed[-wide:], framed[:, -wide:] = 255, 255, 255
    cleared = without_frame(framed)
    assert float(cleared[[0, -1]].max()) < 40 and float(cleared[:, -1].max()) < 40
    np.testing.assert_array_equal(cleared[4:-4, 4:-4], level[4:-4, 4:-4])


@pytest.mark.parametrize("dark", [0, 6])
def test_the_field_of_view_is_the_image_in_its_dark_surround(dark: int) -> None:
    frame = np.full((200, 240, 3), dark, np.uint8)
    cv2.circle(frame, (120, 100), 80, (140, 80, 40), -1)
    cv2.circle(frame, (120, 100), 20, (0, 0, 0), -1)  # a dark place within belongs to it
    field = field_of_view(frame)
    disc = np.hypot(*(np.indices(field.shape) - np.array([100, 120])[:, None, None])) <= 80
    assert (field != disc).mean() < 0.005
