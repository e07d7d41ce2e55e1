"""Which grey a stored DICOM value is shown in: scales, windows, tables, padding, and what is done without them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.pixels import apply_modality_lut, apply_voi_lut

from pixels.dicom.data import RAMP, file, grey, linear, made
from plantain.pixels.dicom.window import percentile_window


@pytest.mark.parametrize("width", [0, -5, "nan"])
def test_a_window_of_zero_falls_back_to_percentiles(width: object) -> None:
    got = grey(made(WindowCenter=5, WindowWidth=width) if width != "nan" else made())
    assert np.abs(got.astype(int) - percentile_window(RAMP)).max() <= 1


def test_modality_and_voi_tables_are_looked_up() -> None:
    """Against pydicom's own functions; a VOI table gives grey levels, so no window comes behind it."""
    for name in ("mlut_18.dcm", "vlut_04.dcm"):
        dataset = dcmread(io.BytesIO(file(name)))
        values = apply_voi_lut(apply_modality_lut(dataset.pixel_array, dataset), dataset).astype(float)
        low, high = (0, 65535) if "VOILUTSequence" in dataset else np.percentile(values, (0.5, 99.5))
        wanted = ((values - low) / (high - low)).clip(0, 1) * 255
        assert ("ModalityLUTSequence" in dataset) == (name == "mlut_18.dcm")
        assert np.abs(grey(file(name)) - wanted).max() <= 0.51
    with_bits = dcmread(io.BytesIO(file("vlut_04.dcm")))
    table = np.array(with_bits.VOILUTSequence[0].LUTData) >> 4  # 12 bits, still called 16
    with_bits.VOILUTSequence[0].LUTData = table.tolist()
    again = io.BytesIO()
    with_bits.save_as(again)
    assert np.abs(grey(again.getvalue()).astype(int) - grey(file("vlut_04.dcm"))).max() <= 1


def test_monochrome1_is_the_negative_of_monochrome2() -> None:
    ends = {"WindowCenter": 1000, "WindowWidth": 500}
    plain, inverted = grey(made(**ends)), grey(made(PhotometricInterpretation="MONOCHROME1", **ends))
    assert np.abs(inverted.astype(int) + plain - 255).max() <= 1


def test_rescale_comes_before_the_window() -> None:
    data = made(RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=500, WindowWidth=1000)
    assert np.array_equal(grey(data), linear(RAMP.astype(int) * 2 - 1000, 500, 1000))


@pytest.mark.parametrize(("photometric", "padding"), [("MONOCHROME1", 0), ("MONOCHROME2", 4095)])
def test_padding_is_black_however_the_rest_is_shown(photometric: str, padding: int) -> None:
    values = np.full_like(RAMP, 2000)
    values[:, :20] = padding
    values[:, 60:] = 2100
    values[30:34, 40:44] = padding  # a letter of lead, not padding
    ends = {"WindowCenter": 2048, "WindowWidth": 200, "PhotometricInterpretation": photometric}
    assert grey(made(values, **ends))[:, :20].min() == 255
    got = grey(made(values, PixelPaddingValue=padding, **ends))
    assert not got[:, :20].any()
    assert np.array_equal(got[:, 20:], grey(made(values, **ends))[:, 20:])
    assert got[32, 42] == 255


def test_windows_of_every_function() -> None:
    exact = grey(made(WindowCenter=1000, WindowWidth=500, VOILUTFunction="LINEAR_EXACT"))
    assert exact[1000 // 64, 1000 % 64] == 128  # the centre is the middle
    assert (exact.ravel()[[750, 1250]] == [0, 255]).all()
    curve = grey(made(WindowCenter=1000, WindowWidth=500, VOILUTFunction="SIGMOID")).ravel()
    assert curve[1000] == 128
    assert curve[1250] == round(255 / (1 + np.exp(-2)))  # 4 * 250 / 500 = 2
    assert np.array_equal(
        grey(made(WindowCenter=[9, 1], WindowWidth=[5, 2])), grey(made(WindowCenter=9, WindowWidth=5))
    )


"""The ramp between its percentiles 0.5 and 99.5: of 0..4095 these are 20.475 and 4074.525."""


def test_a_small_bright_place_on_nothing_is_not_lost() -> None:
    values = np.zeros((64, 64), np.uint16)
    values[3, 4] = 900  # less than 0.5 % of the picture: its percentiles are equal
    assert grey(made(values))[3, 4] == 255
