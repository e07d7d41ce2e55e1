from __future__ import annotations

import numpy as np
import pytest

from plantain.pixels.decode import BadImage
from plantain.pixels.dicom.window import film_window, percentile_window


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
