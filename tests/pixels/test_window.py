from __future__ import annotations

import numpy as np
import pytest
from pydicom import Dataset
from pydicom.pixels import apply_windowing
from pydicom.uid import ExplicitVRLittleEndian

from plantain.pixels.decode import BadImage
from plantain.pixels.window import dicom_to_gray, film_window, percentile_window, window

RAMP = np.arange(4096, dtype=np.uint16).reshape(64, 64)


def dicom(**attributes: object) -> Dataset:
    dataset = Dataset()
    dataset.ensure_file_meta()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.Rows, dataset.Columns = RAMP.shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 12, 11, 0
    dataset.PixelData = RAMP.tobytes()
    for name, value in attributes.items():
        setattr(dataset, name, value)
    return dataset


@pytest.mark.parametrize(("centre", "width"), [(2048, 4096), (1000, 500), (40.5, 81), (2000, 1)])
def test_window_agrees_with_pydicom(centre: float, width: float) -> None:
    dataset = dicom(WindowCenter=centre, WindowWidth=width)
    theirs = apply_windowing(RAMP, dataset) / 4095 * 255
    assert np.abs(window(RAMP, centre, width) - theirs).max() <= 0.51
    assert np.abs(dicom_to_gray(dataset, "a") - theirs).max() <= 0.51


@pytest.mark.parametrize("width", [0, -1, float("nan")])
def test_window_refuses_widths_below_one(width: float) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        window(RAMP, 100, width)


def test_dicom_window_of_zero_falls_back_to_percentiles() -> None:
    got = dicom_to_gray(dicom(WindowCenter=5, WindowWidth=0), "a")
    assert np.array_equal(got, percentile_window(RAMP))
    assert np.array_equal(dicom_to_gray(dicom(), "a"), percentile_window(RAMP))


def test_dicom_takes_the_first_of_several_windows_and_inverts_monochrome1() -> None:
    plain = dicom_to_gray(dicom(WindowCenter=[1000, 50], WindowWidth=[500, 10]), "a")
    assert np.array_equal(plain, window(RAMP, 1000, 500))
    inverted = dicom_to_gray(
        dicom(WindowCenter=1000, WindowWidth=500, PhotometricInterpretation="MONOCHROME1"), "a"
    )
    assert np.abs(inverted.astype(int) + plain - 255).max() <= 1


def test_dicom_rescales_before_windowing() -> None:
    got = dicom_to_gray(dicom(RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=0, WindowWidth=400), "a")
    assert np.array_equal(got, window(RAMP * 2.0 - 1000, 0, 400))


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"PhotometricInterpretation": "RGB"}, "not grey"),
        ({"Rows": 60_000, "Columns": 60_000}, "million are read"),
        ({"PixelData": b"\0\0"}, "cannot be read"),
    ],
)
def test_dicom_refuses_in_one_line(attributes: dict[str, object], says: str) -> None:
    with pytest.raises(BadImage, match=says) as caught:
        dicom_to_gray(dicom(**attributes), "x.dcm")
    assert "\n" not in str(caught.value)


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
