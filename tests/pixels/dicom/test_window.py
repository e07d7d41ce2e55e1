from __future__ import annotations

import numpy as np
import pytest
from pydicom import Dataset
from pydicom.pixels import apply_windowing

from plantain.pixels.decode import BadImage
from plantain.pixels.dicom.window import film_window, percentile_window, window

RAMP = np.arange(4096, dtype=np.uint16).reshape(64, 64)


@pytest.mark.parametrize(("centre", "width"), [(2048, 4096), (1000, 500), (40.5, 81), (2000, 1)])
def test_window_agrees_with_pydicom(centre: float, width: float) -> None:
    dataset = Dataset()
    dataset.PhotometricInterpretation, dataset.BitsStored, dataset.PixelRepresentation = "MONOCHROME2", 12, 0
    dataset.WindowCenter, dataset.WindowWidth = centre, width
    theirs = apply_windowing(RAMP, dataset) / 4095 * 255
    assert np.abs(window(RAMP, centre, width) - theirs).max() <= 0.51


@pytest.mark.parametrize("width", [0, -1, float("nan")])
def test_window_refuses_widths_below_one(width: float) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        window(RAMP, 100, width)


def test_percentile_window_spans_the_scale_and_survives_odd_values() -> None:
    values = np.array([[np.nan, -np.inf, 0.0, 50.0, 100.0, np.inf]])
    assert percentile_window(values, 0, 100).tolist() == [[0, 0, 0, 128, 255, 255]]
    assert not percentile_window(np.full((3, 3), 7)).any()
    with pytest.raises(BadImage, match="no finite value"):
        percentile_window(np.full((3, 3), np.nan))


def test_film_window_is_even_in_the_logarithm() -> None:
    values = np.array([[1.0, 10.0, 100.0]])
    assert film_window(values, 0, 100).tolist() == [[0, 128, 255]]
    assert film_window(values, 0, 100, invert=True).tolist() == [[255, 128, 0]]
    with pytest.raises(BadImage, match="no positive value"):
        film_window(np.zeros((3, 3)))
