"""The decoder in a process of its own: kept from frame to frame, replaced when a file has damaged it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file
from pydicom.encaps import get_frame

from plantain.pixels import apart
from plantain.pixels.apart import decode_apart

pytest.importorskip("gdcm")


@pytest.fixture
def lossless() -> tuple[pydicom.Dataset, bytes]:
    path = get_testdata_file("JPEG-LL.dcm", download=False)
    if path is None:
        pytest.skip("pydicom-data is not installed")
    dataset = pydicom.dcmread(Path(str(path)))
    return dataset, bytes(get_frame(dataset.PixelData, 0, number_of_frames=1))


def child() -> int:
    return int(apart._own.decoder._process.pid)


def test_a_damaged_frame_is_refused_and_the_next_one_decoded(lossless: tuple[pydicom.Dataset, bytes]) -> None:
    dataset, coded = lossless
    whole = decode_apart(dataset, coded, 12)
    before = child()
    with pytest.raises(ValueError, match=r"\w"):
        decode_apart(dataset, coded[:200], 12)
    assert np.array_equal(decode_apart(dataset, coded, 12), whole)
    assert child() != before
