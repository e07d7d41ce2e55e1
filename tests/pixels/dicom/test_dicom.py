from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset, dcmread, dcmwrite
from pydicom.data import get_testdata_file
from pydicom.dataset import FileMetaDataset
from pydicom.encaps import get_frame
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import ExplicitVRLittleEndian, JPEGBaseline8Bit

from pixels.dicom.data import RAMP, decode_dicom, file, grey, linear, made
from plantain.pixels import apart
from plantain.pixels.apart import decode_apart
from plantain.pixels.decode import BadImage
from plantain.pixels.dicom.files import frame_count, read_dicom
from plantain.pixels.dicom.frames import display, header_of_frame, plane_of
from plantain.pixels.dicom.render import render_planes


def test_ct_is_shown_in_hounsfield_units_by_its_window() -> None:
    data = file("693_UNCR.dcm")
    dataset = dcmread(io.BytesIO(data))
    units = apply_modality_lut(dataset.pixel_array, dataset)
    assert units.min() < -900  # air
    theirs = apply_voi_lut(units, dataset, index=0)
    theirs = (theirs - theirs.min()) / (theirs.max() - theirs.min()) * 255
    assert np.abs(grey(data) - theirs).max() <= 1.01


def test_monochrome1_radiograph_shows_air_dark() -> None:
    pixels = grey(file("RG1_UNCR.dcm"), "film")
    assert pixels.shape == (1955, 1841)
    assert np.median(pixels[300:380, 500:640]) + 60 < np.median(pixels[1000:1200, 880:960])
    # Lossless compression shows the very same.
    assert np.array_equal(grey(file("RG1_J2KR.dcm"), "film"), pixels)


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        ("693_J2KR.dcm", "693_UNCR.dcm"),
        ("MR_small_RLE.dcm", "MR_small.dcm"),
        ("MR_small_jpeg_ls_lossless.dcm", "MR_small.dcm"),
        ("MR_small_bigendian.dcm", "MR_small.dcm"),
        ("US1_J2KR.dcm", "US1_UNCR.dcm"),
    ],
)
def test_every_lossless_syntax_shows_the_same(packed: str, plain: str) -> None:
    ours, theirs = decode_dicom(file(packed), packed), decode_dicom(file(plain), plain)
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    "name", ["SC_ybr_full_uncompressed.dcm", "SC_rgb_dcmtk_+eb+cy+np.dcm", "SC_rgb_jpeg_dcmtk.dcm"]
)
def test_ybr_becomes_rgb(name: str) -> None:
    # The same test card in every colour space: red on top.
    top = decode_dicom(file(name), name)[5, 50].astype(int)
    assert top[0] > 240
    assert top[1:].max() < 20


def test_jpeg_lossless_and_frames_one_at_a_time() -> None:
    assert decode_dicom(file("JPGLosslessP14SV1_1s_1f_8b.dcm"), "echo").shape == (768, 1024, 3)
    cine = read_dicom(file("color3d_jpeg_baseline.dcm"), "cine")
    assert frame_count(cine) == 120
    assert not np.array_equal(render_planes(cine, "cine", 0), render_planes(cine, "cine", 60))
    with pytest.raises(BadImage, match="no frame 120 of 120"):
        render_planes(cine, "cine", 120)
    two = file("SC_rgb_rle_2frame.dcm")  # its second frame is 672 bytes after the first (PS3.5, A.4)
    zeros = two.replace(np.array([0, 672], "<u4").tobytes(), bytes(8))
    first, second, found = (
        render_planes(read_dicom(data, "a"), "a", frame) for data, frame in ((two, 0), (two, 1), (zeros, 1))
    )
    assert np.array_equal(found, second) and not np.array_equal(first, second)


def test_overlays_are_dropped_even_in_unused_bits() -> None:
    named = (RAMP & 0x0FFF) | (np.uint16(0x8000) * (RAMP % 3 == 0))
    plain = made(RAMP, BitsStored=12, HighBit=11, WindowCenter=2048, WindowWidth=4096)
    assert np.array_equal(
        grey(made(named, BitsStored=12, HighBit=11, WindowCenter=2048, WindowWidth=4096)), grey(plain)
    )
    signed = (RAMP.astype(np.int16) - 2048) & 0x0FFF
    got = grey(made(signed, BitsStored=12, HighBit=11, WindowCenter=0, WindowWidth=4096))
    assert np.array_equal(got, linear(RAMP.astype(int) - 2048, 0, 4096))


def bare(data: bytes) -> bytes:
    """Return a file as old archives keep it: no preamble, no file meta information, only the data set."""
    dataset = dcmread(io.BytesIO(data))
    out = io.BytesIO()
    encoding = dataset.original_encoding
    dataset.file_meta, dataset.preamble = FileMetaDataset(), None
    dcmwrite(out, dataset, implicit_vr=encoding[0], little_endian=encoding[1], enforce_file_format=False)
    assert out.getvalue()[128:132] != b"DICM"
    return out.getvalue()


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small_implicit.dcm", "MR_small_bigendian.dcm"])
def test_files_without_preamble_show_the_same(name: str) -> None:
    whole = file(name)
    assert np.array_equal(grey(bare(whole)), grey(whole))
    assert np.array_equal(grey(whole[132:]), grey(whole))  # the file meta information, but no preamble


def test_deflated_files_are_unpacked_within_bounds() -> None:
    data = file("image_dfl.dcm")
    assert np.array_equal(grey(data), grey(file("image_dfl.dcm")))
    assert grey(data).shape == (512, 512)
    assert np.array_equal(grey(data), grey(_reinflated(data)))
    at = 144 + int.from_bytes(data[140:144], "little")
    packing = zlib.compressobj(wbits=-15)
    body = b"".join(packing.compress(bytes(1 << 24)) for _ in range(17)) + packing.flush()
    with pytest.raises(BadImage, match="unpacks to more than 256 MB"):
        decode_dicom(data[:at] + body, "bomb.dcm")
    for cut in (at, at + 100, len(data) // 2):
        with pytest.raises(BadImage):
            decode_dicom(data[:cut], "cut.dcm")


def _reinflated(data: bytes) -> bytes:
    """Return the same file unpacked by pydicom and written plain."""
    dataset = dcmread(io.BytesIO(data))
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    out = io.BytesIO()
    dataset.save_as(out, implicit_vr=False, little_endian=True)
    return out.getvalue()


def test_a_frame_has_its_own_window_rescale_and_axes() -> None:
    """Enhanced CT keeps them in functional groups; those of the frame override the shared ones."""
    dataset = read_dicom(file("eCT_Supplemental.dcm"), "ect")
    assert "WindowCenter" not in dataset
    first = header_of_frame(dataset, 0)
    (window_,) = dataset.SharedFunctionalGroupsSequence[0].FrameVOILUTSequence
    assert (first.WindowCenter, first.WindowWidth) == (window_.WindowCenter, window_.WindowWidth)
    assert header_of_frame(dataset, 99).RescaleSlope is not None
    values = apply_modality_lut(dataset.pixel_array[1], header_of_frame(dataset, 1))
    shown = render_planes(dataset, "ect", 1)
    assert np.array_equal(shown, linear(values, float(first.WindowCenter), float(first.WindowWidth)))
    own = Dataset()
    own.FrameVOILUTSequence = [Dataset()]
    own.FrameVOILUTSequence[0].WindowCenter, own.FrameVOILUTSequence[0].WindowWidth = 1, 2
    dataset.PerFrameFunctionalGroupsSequence[1].FrameVOILUTSequence = own.FrameVOILUTSequence
    assert header_of_frame(dataset, 1).WindowWidth == 2
    assert header_of_frame(dataset, 0).WindowWidth == first.WindowWidth
    plain = read_dicom(file("CT_small.dcm"), "ct")
    assert header_of_frame(plain, 0) is plain


# Only these images in pydicom's collections are refused.
REFUSED = {
    "JPEG-lossy.dcm": "of 12 bits has no free decoder",
    "JPGExtended.dcm": "of 12 bits has no free decoder",
    "JPEG2000-embedded-sequence-delimiter.dcm": "its image has 3722445056x1024",
    "MR_truncated.dcm": "less than expected",
    "badVR.dcm": "cannot be read",
    "meta_missing_tsyntax.dcm": "0x0 pixels",
    "nested_priv_SQ.dcm": "0x0 pixels",
    "emri_small_jpeg_2k_lossless_too_short.dcm": "has no pixel data",
}


@pytest.mark.slow
def test_only_the_named_images_of_pydicoms_collections_are_refused() -> None:
    import data_store

    refused = {}
    syntaxes = set()
    roots = (Path(data_store.__path__[0]) / "data", Path(pydicom.__file__).parent / "data/test_files")
    for path in sorted(path for root in roots for path in root.glob("*.dcm")):
        dataset = dcmread(path, force=True)
        if "PixelData" not in dataset and path.name not in REFUSED:
            continue
        try:
            pixels = decode_dicom(path.read_bytes(), path.name)
        except BadImage as error:
            refused[path.name] = str(error)
            continue
        assert (pixels.dtype, pixels.shape[2]) == (np.uint8, 3)
        assert pixels.max() > pixels.min() + 50, path.name
        syntaxes.add(str(dataset.file_meta.get("TransferSyntaxUID", "none")))
    print(sorted(syntaxes))
    assert refused.keys() == REFUSED.keys()
    assert all(reason in refused[name] for name, reason in REFUSED.items())
    assert len(syntaxes) >= 12


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a DICOM file"),
        (made(Rows=60_000, Columns=60_000), "million are read"),
        (made(PhotometricInterpretation="HSV"), "'HSV' is not read"),
    ],
)
def test_unreadable_files_are_refused_in_one_line(data: bytes, reason: str) -> None:
    with pytest.raises(BadImage, match=reason) as caught:
        decode_dicom(data, "x.dcm")
    assert "\n" not in str(caught.value)


def test_an_image_larger_than_its_header_is_not_decoded() -> None:
    dataset = dcmread(io.BytesIO(file("SC_rgb_jpeg_dcmtk.dcm")))
    assert dataset.file_meta.TransferSyntaxUID == JPEGBaseline8Bit
    at = dataset.PixelData.index(b"\xff\xc0") + 5
    dataset.PixelData = dataset.PixelData[:at] + b"\xff\xff\xff\xff" + dataset.PixelData[at + 4 :]
    with pytest.raises(BadImage, match="its image has 65535x65535"):
        render_planes(dataset, "bomb")


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_files_are_shown_or_refused(data: st.DataObject) -> None:
    whole = file(
        data.draw(
            st.sampled_from(["MR_small.dcm", "MR_small_RLE.dcm", "CT_small.dcm", "SC_rgb_jpeg_dcmtk.dcm"])
        )
    )
    at = data.draw(st.integers(128, len(whole) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=40))
    try:
        pixels = decode_dicom(whole[:at] + noise + whole[at + len(noise) :], "damaged")
    except BadImage as error:
        assert "\n" not in str(error)
    else:
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3


def test_planes_and_display_are_radiological() -> None:
    letters = np.array([[1, 2, 3], [4, 5, 6]])
    assert plane_of([1, 0, 0, 0, 1, 0]) == "axial"
    assert plane_of([1, 0, 0, 0, 0, -1]) == "coronal"
    assert plane_of([0, 1, 0, 0, 0, -1]) == "sagittal"
    assert plane_of([0.7, 0.7, 0, 0, 0, -1]) == plane_of([]) == plane_of([np.nan] * 6) == "unknown"
    assert np.array_equal(display(letters, [1, 0, 0, 0, 1, 0]), letters)
    # stored with the left on the left
    assert np.array_equal(display(letters, [-1, 0, 0, 0, 1, 0]), letters[:, ::-1])
    assert np.array_equal(display(letters, [0, 1, 0, 0, 0, 1]), letters[::-1])  # feet up
    assert np.array_equal(display(letters, [0, 1, 0, 1, 0, 0]), letters.T)  # stored column by column


@pytest.fixture
def lossless() -> tuple[pydicom.Dataset, bytes]:
    pytest.importorskip("gdcm")
    path = get_testdata_file("JPEG-LL.dcm", download=False)
    if path is None:
        pytest.skip("pydicom-data is not installed")
    dataset = pydicom.dcmread(Path(str(path)))
    return dataset, bytes(get_frame(dataset.PixelData, 0, number_of_frames=1))


def child() -> int:
    return int(apart._own.decoder.process.pid)


def test_a_damaged_frame_is_refused_and_the_next_one_decoded(lossless: tuple[pydicom.Dataset, bytes]) -> None:
    dataset, coded = lossless
    whole = decode_apart(dataset, coded, 12)
    before = child()
    with pytest.raises(ValueError, match=r"\w"):
        decode_apart(dataset, coded[:200], 12)
    assert np.array_equal(decode_apart(dataset, coded, 12), whole)
    assert child() != before
