"""Grey levels of stored DICOM values: scales, windows, tables, padding, and the fallbacks without them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms
from pydicom import Dataset, dcmread
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian

from pixels.dicom.data import RAMP, decode_dicom, file, grey, linear, made
from pixels.test_decode import ADOBE_RGB


@pytest.mark.parametrize("width", [0, -5, "nan"])
def test_a_window_of_zero_falls_back_to_percentiles(width: object) -> None:
    got = grey(made(WindowCenter=5, WindowWidth=width) if width != "nan" else made())
    low, high = np.percentile(RAMP, (0.5, 99.5))
    assert np.abs(got - ((RAMP - low) / (high - low)).clip(0, 1) * 255).max() <= 1


def test_the_first_valid_of_several_windows_counts() -> None:
    got = grey(made(WindowCenter=[0, 2000, 9], WindowWidth=[0, 3000, 9]))
    assert np.array_equal(got, linear(RAMP, 2000, 3000))


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


@pytest.mark.parametrize(
    ("photometric", "shape", "inverted"),
    [
        ("MONOCHROME1", "INVERSE", True),
        ("MONOCHROME1", "IDENTITY", False),
        ("MONOCHROME2", "INVERSE", True),
        ("MONOCHROME2", "IDENTITY", False),
    ],
)
def test_presentation_lut_shape_takes_precedence(photometric: str, shape: str, inverted: bool) -> None:
    """Expected: which of the four dcmtk 3.6.7 inverts (dcm2pnm +Wi 1)."""
    ends = {"WindowCenter": 1000, "WindowWidth": 500}
    shown = grey(made(PhotometricInterpretation=photometric, PresentationLUTShape=shape, **ends))
    plain = grey(made(**ends))
    assert np.abs(shown.astype(int) - (255 - plain.astype(int) if inverted else plain)).max() <= 1


def test_bits_may_be_kept_above_the_lowest_of_a_word() -> None:
    """PS3.5, 8.1.1, as dcmtk reads it: HighBit states where the image's bits end."""
    for values in (RAMP, RAMP % 128):  # also where the highest bits are unused
        data = made(values << 4, BitsStored=12, HighBit=15, WindowCenter=2048, WindowWidth=4096)
        assert np.array_equal(grey(data), linear(values, 2048, 4096))
    signed = RAMP[:36].astype(np.int16) - 2048  # -2048 to 255
    data = made(signed << 4, BitsStored=12, HighBit=15, WindowCenter=0, WindowWidth=4096)
    assert np.array_equal(grey(data), linear(signed, 0, 4096))


def test_rescale_comes_before_the_window() -> None:
    data = made(RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=500, WindowWidth=1000)
    assert np.array_equal(grey(data), linear(RAMP.astype(int) * 2 - 1000, 500, 1000))


@pytest.mark.parametrize(("photometric", "padding"), [("MONOCHROME1", 0), ("MONOCHROME2", 4095)])
def test_padding_is_black_in_every_photometric_interpretation(photometric: str, padding: int) -> None:
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


def test_a_small_bright_place_on_black_is_kept() -> None:
    values = np.zeros((64, 64), np.uint16)
    values[3, 4] = 900  # less than 0.5 % of the image: its percentiles are equal
    assert grey(made(values))[3, 4] == 255


def _with_voi_table(entries: np.ndarray, depth: int, syntax: UID) -> bytes:
    table = Dataset()
    table.LUTDescriptor = [4096, 0, depth]
    table.add_new("LUTData", "OW", entries.tobytes())
    return _as(syntax, made(BitsStored=12, HighBit=11), VOILUTSequence=[table])


def _as(syntax: UID, data: bytes, **attributes: object) -> bytes:
    """Return a file in another byte order; what `attributes` hold as bytes is in that order."""
    read, dataset = dcmread(io.BytesIO(data)), Dataset()
    for element in read:
        dataset.add(element)
    for name, value in attributes.items():
        dataset.add_new(name, "OW", value) if isinstance(value, bytes) else setattr(dataset, name, value)
    if syntax == ExplicitVRBigEndian and dataset.BitsAllocated == 16:
        dataset.PixelData = read.pixel_array.astype(">u2").tobytes()
    dataset.file_meta = read.file_meta
    dataset.file_meta.TransferSyntaxUID = syntax
    stored = io.BytesIO()
    dataset.save_as(stored, enforce_file_format=True)
    return stored.getvalue()


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_a_voi_table_is_applied_as_pydicom_does_in_any_byte_order(syntax: UID) -> None:
    curve = np.rint(4095 * (np.arange(4096) / 4095) ** 0.6)
    data = _with_voi_table(curve.astype("<u2" if syntax == ExplicitVRLittleEndian else ">u2"), 12, syntax)
    dataset = dcmread(io.BytesIO(data))
    wanted = apply_voi_lut(dataset.pixel_array, dataset) / 4095 * 255
    assert np.abs(grey(data) - wanted).max() <= 0.51


def test_a_voi_table_of_negative_values_may_be_described_as_unsigned() -> None:
    """As dcm2pnm +Wl 1 of dcmtk 3.6.7 shows it: the same grey levels as where the VR is SS."""
    item = Dataset()
    item.add_new("LUTDescriptor", "US", [4096, 65536 - 2048, 16])
    item.add_new("LUTData", "US", [16 * entry for entry in range(4096)])
    data = made(RAMP.astype(np.int16) - 2048, VOILUTSequence=[item])
    assert np.abs(grey(data) - RAMP * (16 / 257)).max() <= 0.51


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_a_voi_table_of_8_bit_entries_is_applied(syntax: UID) -> None:
    """PS3.3, C.11.2.1.1: entries of 8 bits; in words of 16 bits the first is the low byte (PS3.5, 8.2)."""
    curve = np.rint(255 * (np.arange(4096) / 4095) ** 0.6).astype(np.uint8)
    words = curve.view("<u2") if syntax == ExplicitVRLittleEndian else curve.view("<u2").astype(">u2")
    assert np.array_equal(grey(_with_voi_table(words, 8, syntax)), curve[RAMP])


def test_a_big_endian_palette_has_the_colours_that_simpleitk_shows(tmp_path: Path) -> None:
    indices = np.arange(4096, dtype=np.uint16).astype(np.uint8).reshape(64, 64)
    ramp = (np.arange(256, dtype=np.uint16) * 257).astype(">u2")
    colours = {"Red": ramp, "Green": ramp[::-1], "Blue": ramp // 2}
    attributes: dict[str, object] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name, table in colours.items():
        attributes[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 16]
        attributes[f"{name}PaletteColorLookupTableData"] = table.astype(">u2").tobytes()
    pairs = indices.view("<u2").astype(">u2").tobytes()  # 8-bit pixels in words of 16 bits (PS3.5, 8.1.1)
    (tmp_path / "palette.dcm").write_bytes(
        _as(ExplicitVRBigEndian, made(indices), PixelData=pairs, **attributes)
    )
    simpleitk = pytest.importorskip("SimpleITK")
    wanted = simpleitk.GetArrayFromImage(simpleitk.ReadImage(str(tmp_path / "palette.dcm")))[0]
    assert np.array_equal(decode_dicom((tmp_path / "palette.dcm").read_bytes(), "palette"), wanted)


def test_untagged_padding_does_not_set_the_contrast() -> None:
    values = RAMP.astype(np.int16)
    values[:, :20] = -2000
    assert np.array_equal(grey(made(values)), grey(made(values, PixelPaddingValue=-2000)))
    dark = np.full((64, 64), 255, np.uint8)
    dark[8:-8, 8:-8] = RAMP[:48, :48] % 60
    assert np.array_equal(grey(made(dark))[8:-8, 8:-8], grey(made(dark[8:-8, 8:-8])))  # as without it


def test_a_colour_profile_is_converted_as_littlecms_does() -> None:
    """PS3.3, C.11.15: ICCProfile is the colour space of the pixels, here Adobe RGB."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    kind = {"SamplesPerPixel": 3, "PhotometricInterpretation": "RGB", "PlanarConfiguration": 0}
    source, srgb = ImageCms.ImageCmsProfile(io.BytesIO(ADOBE_RGB)), ImageCms.createProfile("sRGB")
    wanted = np.asarray(ImageCms.profileToProfile(Image.fromarray(pixels), source, srgb, 1))
    assert np.array_equal(decode_dicom(made(pixels, ICCProfile=ADOBE_RGB, **kind), "a.dcm"), wanted)
