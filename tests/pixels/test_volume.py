"""NIfTI volumes: orientation, slices, and files that cannot be shown."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.pixels.decode import BadImage
from plantain.pixels.volume import choose_slices, read_volume, show_slice


def template() -> bytes:
    """Return the MNI152 T1 average, as nilearn ships it."""
    nilearn = pytest.importorskip("nilearn")
    name = "datasets/data/mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
    return (Path(nilearn.__file__).parent / name).read_bytes()


def made(values: np.ndarray, affine: np.ndarray | None = None, *, packed: bool = False) -> bytes:
    data = nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine).to_bytes()
    return gzip.compress(data, 1) if packed else data


def corner() -> np.ndarray:
    """Return a dim grainy block with a bright spot at right, front and top of right-anterior-superior space."""
    values = np.zeros((40, 50, 60), np.int16)
    values[5:35, 5:45, 5:55] = np.random.default_rng(1).integers(380, 420, (30, 40, 50))
    values[28:34, 36:44, 44:54] = 1000
    return values


@pytest.mark.parametrize(
    ("plane", "index", "bright"),
    # The patient's right is image left; the front is on top (axial) or image left (sagittal); the head is on top.
    [("axial", 50, (0.2, 0.2)), ("coronal", 40, (0.2, 0.2)), ("sagittal", 31, (0.2, 0.2))],
)
def test_display_is_radiological(plane: str, index: int, bright: tuple[float, float]) -> None:
    pixels = show_slice(read_volume(made(corner()), "made"), plane, index)[:, :, 0]
    row, column = (place.mean() for place in np.nonzero(pixels > 200))
    height, width = pixels.shape
    assert (row / height, column / width) == pytest.approx(bright, abs=0.12)


AXES_OF_LETTERS = "RLAPSI"

CODES = [
    "".join(letters)
    for letters in itertools.product(AXES_OF_LETTERS, repeat=3)
    if len({AXES_OF_LETTERS.index(letter) // 2 for letter in letters}) == 3
]


def stored(values: np.ndarray, code: str, qform: int, sform: int, tilt: float = 0.0) -> bytes:
    """Return a right-anterior-superior volume stored with other axes, its orientation in qform, sform or both."""
    turn = nibabel.affines.from_matvec(nibabel.eulerangles.euler2mat(x=np.radians(tilt)))
    image = nibabel.Nifti1Image(values, turn)
    ways = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("RAS"), nibabel.orientations.axcodes2ornt(code)
    )
    image = image.as_reoriented(ways)
    affine = image.affine
    image = nibabel.Nifti1Image(np.asarray(image.dataobj), None)
    image.header.set_data_dtype(values.dtype)
    image.set_qform(affine if qform else None, qform)
    image.set_sform(affine if sform else None, sform)
    return image.to_bytes()


@pytest.mark.parametrize("code", CODES)
def test_all_48_orientations_show_the_same(code: str) -> None:
    assert len(CODES) == 48
    wanted = read_volume(made(corner()), "ras")
    for qform, sform in ((1, 0), (0, 2), (1, 1)):
        volume = read_volume(stored(corner(), code, qform, sform), code)
        assert volume.oblique_degrees < 0.1
        for plane, index in (("axial", 50), ("coronal", 40), ("sagittal", 31)):
            assert np.array_equal(show_slice(volume, plane, index), show_slice(wanted, plane, index))


def test_two_orientations_that_contradict_each_other_are_refused() -> None:
    image = nibabel.Nifti1Image(corner(), np.eye(4))
    image.set_qform(np.eye(4), 1)
    image.set_sform(np.diag([-1.0, 1.0, 1.0, 1.0]), 1)  # mirrored by a careless tool
    with pytest.raises(BadImage, match="qform and sform state two orientations"):
        read_volume(image.to_bytes(), "x.nii")
    image.set_sform(np.diag([1.0, 1.0, 3.0, 1.0]), 1)  # ITK goes by pixdim, nibabel by the sform
    with pytest.raises(BadImage, match="two sizes"):
        read_volume(image.to_bytes(), "x.nii")
    image.set_sform(nibabel.affines.from_matvec(nibabel.eulerangles.euler2mat(x=0.4)), 4)  # a template's
    assert read_volume(image.to_bytes(), "x.nii").oblique_degrees == pytest.approx(22.9, abs=0.1)


def test_slices_are_chosen_inside_the_head_and_not_at_its_ends() -> None:
    volume = read_volume(made(corner()), "made")
    assert choose_slices(volume, "axial", 1) == [30]  # the middle of 5..54
    assert choose_slices(volume, "axial", 3) == [20, 30, 39]  # 5 + 49 * 0.3, 0.5, 0.7
    assert len(choose_slices(volume, "axial", 500)) < 40


def test_oblong_voxels_are_made_square() -> None:
    volume = read_volume(made(corner(), np.diag([1.0, 1.0, 3.0, 1.0])), "thick")
    assert show_slice(volume, "coronal", 20).shape == (180, 40, 3)
    assert show_slice(volume, "axial", 20).shape == (50, 40, 3)


def patched(at: int) -> bytes:
    """Return a volume with four zeros in its header."""
    data = bytearray(made(corner()))
    data[at : at + 4] = bytes(4)
    return bytes(data)


def with_intent(intent: str) -> bytes:
    """NIFTI_INTENT_LABEL or NIFTI_INTENT_NEURONAME of nifti1.h, by nibabel."""
    image = nibabel.Nifti1Image(corner(), np.eye(4))
    image.header.set_intent(intent)
    return image.to_bytes()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no NIfTI that can be read"),
        (made(np.zeros((4, 4, 4), np.int16)), "all its voxels are alike"),
        (made(np.ones((4, 4, 4), np.complex64)), "voxels of kind"),
        (patched(252), "left and right are unknown"),  # qform_code and sform_code
        (patched(108), "vox_offset"),  # which SimpleITK reads as 352 and nibabel as 0
        (with_intent("label"), "label map"),
        (with_intent("neuroname"), "label map"),
        (with_intent("z score"), "statistics or vectors"),
        (with_intent("vector"), "statistics or vectors"),
        (made(np.random.default_rng(0).integers(0, 20, (20, 20, 20), np.uint8)), "only 20 different values"),
        (made(np.random.default_rng(0).normal(0, 1, (20, 20, 20)).clip(0, 0.5)), "probability map"),
    ],
)
def test_unreadable_volumes_are_refused_in_one_line(data: bytes, complaint: str) -> None:
    with pytest.raises(BadImage, match=complaint) as caught:
        read_volume(data, "x.nii")
    assert "\n" not in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 351), st.binary(min_size=1, max_size=12), st.booleans())
def test_damaged_headers_are_shown_or_refused(at: int, noise: bytes, packed: bool) -> None:
    whole = made(corner()[:12, :12, :12] + np.arange(12, dtype=np.int16))
    data = whole[:at] + noise + whole[at + len(noise) :]
    try:
        volume = read_volume(gzip.compress(data, 1) if packed else data, "damaged")
        for index in choose_slices(volume, "axial", 2):
            assert show_slice(volume, "axial", index).dtype == np.uint8
    except BadImage as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("unit", "size", "mm"),
    [
        ("mm", 0.25, 0.25),
        ("micron", 250, 0.25),
        ("micron", 5, 0.005),
        ("meter", 0.00025, 0.25),
        (0, 0.25, 0.25),
    ],
)
def test_spacing_is_in_millimetres_as_simpleitk_reads_it(
    tmp_path: Path, unit: str | int, size: float, mm: float
) -> None:
    simpleitk = pytest.importorskip("SimpleITK")
    image = nibabel.Nifti1Image(corner(), np.diag([-size, -size, size, 1]))
    image.header.set_xyzt_units(unit)
    image.to_filename(tmp_path / "a.nii")
    got = read_volume((tmp_path / "a.nii").read_bytes(), "a").spacing_mm
    assert got == pytest.approx(simpleitk.ReadImage(str(tmp_path / "a.nii")).GetSpacing(), rel=1e-5)
    assert got == pytest.approx((mm,) * 3, rel=1e-5)


@pytest.mark.parametrize("padding", [-1000, -1024, -2000, -32768, 4095, 32767])
def test_padding_outside_the_field_of_view_does_not_set_the_contrast(padding: int) -> None:
    plain, border, around = read_volume(made(corner()), "plain"), corner(), corner()
    border[:, :3], border[:, 3] = padding, min(0, padding // 2)  # a rim as resampling leaves it
    around[around == 0] = padding
    for padded in (border, around):
        got = read_volume(made(padded), "padded")
        assert (got.low, got.high) == pytest.approx((plain.low, plain.high), abs=10)
        assert not show_slice(got, "axial", 30)[-1].any(), "padding is black, as the background is"
    hounsfield = np.full((30, 30, 30), -1000, np.int16)  # air is not padding
    hounsfield[5:25, 5:25, 5:25] = np.random.default_rng(2).integers(-50, 1200, (20, 20, 20))
    hounsfield[:3] = -1024
    assert read_volume(made(hounsfield), "ct").low < -900


@pytest.mark.parametrize("kind", [np.int16, np.float32])
@pytest.mark.parametrize("labels", [20, 100])
def test_a_segmentation_of_many_labels_is_refused(kind: type, labels: int) -> None:
    rng = np.random.default_rng(3)
    seeds = rng.integers(0, 40, (labels, 3))
    places = np.stack(np.mgrid[:40, :40, :40], axis=-1).reshape(-1, 3)
    nearest = ((places[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    names = rng.choice(2036, labels, replace=False)  # FreeSurfer's numbers reach 2035
    scaled = nibabel.Nifti1Image(names[nearest].reshape(40, 40, 40).astype(kind), np.eye(4))
    if kind is np.int16:
        scaled.header.set_slope_inter(0.988, 0.0)  # of Colin27 (2008), labels are 0.988, 2.02 and so on
    with pytest.raises(BadImage, match="a mask or label map"):
        read_volume(scaled.to_bytes(), "a")


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
def test_any_byte_order_and_a_unit_without_meaning_show_the_same(kind: type, order: str) -> None:
    image = kind(corner(), np.eye(4), kind.header_class(endianness=order))
    image.header["xyzt_units"] = 7
    volume, plain = read_volume(image.to_bytes(), "made"), read_volume(made(corner()), "made")
    assert np.array_equal(volume.values, plain.values)
    assert volume.spacing_mm == (1.0, 1.0, 1.0)


def test_a_background_of_nan_does_not_set_the_contrast() -> None:
    values = corner().astype(np.float32)
    plain = read_volume(made(values), "made")
    values[values == 0] = np.nan
    emptied = read_volume(made(values), "made")
    assert (emptied.low, emptied.high) == pytest.approx((plain.low, plain.high), rel=0.01)
