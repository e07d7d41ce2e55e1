from __future__ import annotations

import gzip
import io
import itertools
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.decode import BadImage
from plantain.pixels.volume import AXES, choose_slices, read_volume, show_slice
from plantain.records import InputError
from plantain.sources.entries import SourceOptions
from plantain.sources.nifti import NiftiReader
from sources.published import put, scanned

TAXONOMY = load_taxonomy()


def template() -> bytes:
    """The MNI152 T1 average, as nilearn ships it."""
    nilearn = pytest.importorskip("nilearn")
    name = "datasets/data/mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
    return (Path(nilearn.__file__).parent / name).read_bytes()


def made(values: np.ndarray, affine: np.ndarray | None = None, *, packed: bool = False) -> bytes:
    data = nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine).to_bytes()
    return gzip.compress(data, 1) if packed else data


def corner() -> np.ndarray:
    """A dim grainy block with a bright spot at right, front and top of right-anterior-superior space."""
    values = np.zeros((40, 50, 60), np.int16)
    values[5:35, 5:45, 5:55] = np.random.default_rng(1).integers(380, 420, (30, 40, 50))
    values[28:34, 36:44, 44:54] = 1000
    return values


@pytest.mark.parametrize(
    ("plane", "index", "bright"),
    # The patient's right is image left; the front is on top (axial) or image left (sagittal); the head is on top.
    [("axial", 50, (0.2, 0.2)), ("coronal", 40, (0.2, 0.2)), ("sagittal", 31, (0.2, 0.2))],
)
@pytest.mark.parametrize("flip", [(), (0,), (1,), (0, 1, 2)])
def test_display_is_radiological_however_it_is_stored(
    plane: str, index: int, bright: tuple[float, float], flip: tuple[int, ...]
) -> None:
    affine = np.eye(4)
    for axis in flip:
        affine[axis, axis], affine[axis, 3] = -1.0, 10.0
    volume = read_volume(made(np.flip(corner(), flip), affine), "made")
    pixels = show_slice(volume, plane, index)[:, :, 0]
    row, column = (place.mean() for place in np.nonzero(pixels > 200))
    height, width = pixels.shape
    assert (row / height, column / width) == pytest.approx(bright, abs=0.12)
    swapped = read_volume(made(np.swapaxes(corner(), 0, 2), np.eye(4)[[2, 1, 0, 3]]), "swapped")
    assert np.array_equal(
        show_slice(swapped, plane, index)[:, :, 0],
        show_slice(read_volume(made(corner()), "a"), plane, index)[:, :, 0],
    )


AXES_OF_LETTERS = "RLAPSI"
CODES = [
    "".join(letters)
    for letters in itertools.product(AXES_OF_LETTERS, repeat=3)
    if len({AXES_OF_LETTERS.index(letter) // 2 for letter in letters}) == 3
]


def stored(values: np.ndarray, code: str, qform: int, sform: int, tilt: float = 0.0) -> bytes:
    """A right-anterior-superior volume stored with other axes, its orientation in qform, sform or both."""
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


@pytest.mark.parametrize(
    ("tilt", "plane", "note"),
    [
        (3.0, "axial", ""),
        (15.0, "axial", "oblique by 15 degrees"),
        (40.0, "unknown", "oblique by 40 degrees"),
    ],
)
def test_oblique_volumes_are_shown_as_they_lie_and_said_to_be(
    tmp_path: Path, tilt: float, plane: str, note: str
) -> None:
    put(tmp_path / "notumor/a.nii", stored(corner(), "LPS", 1, 1, tilt))
    (entry, *_) = scanned(NiftiReader(SourceOptions(tmp_path), TAXONOMY))[0].values()
    assert (entry.image.plane, entry.image.note) == (plane, note)


def test_two_orientations_that_contradict_each_other_are_refused() -> None:
    image = nibabel.Nifti1Image(corner(), np.eye(4))
    image.set_qform(np.eye(4), 1)
    image.set_sform(np.diag([-1.0, 1.0, 1.0, 1.0]), 1)  # mirrored by a careless tool
    with pytest.raises(BadImage, match="qform and sform state two orientations"):
        read_volume(image.to_bytes(), "x.nii")
    image.set_sform(nibabel.affines.from_matvec(nibabel.eulerangles.euler2mat(x=0.4)), 4)  # a template's
    assert read_volume(image.to_bytes(), "x.nii").oblique_degrees == pytest.approx(22.9, abs=0.1)


def test_of_a_series_the_first_volume_is_taken_and_said_to_be(tmp_path: Path) -> None:
    series = np.stack([corner(), corner()[::-1], corner() // 2], axis=3)
    put(tmp_path / "notumor/bold.nii.gz", made(series, packed=True))
    (entry, *_) = scanned(NiftiReader(SourceOptions(tmp_path), TAXONOMY))[0].values()
    assert entry.image.note == "volume 1 of 3"
    alone = read_volume(made(corner()), "alone")
    assert np.array_equal(
        show_slice(read_volume(made(series), "4-D"), "axial", 30), show_slice(alone, "axial", 30)
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("BraTS_007_seg.nii.gz", "a mask or label map by its name"),
        ("sub-01_desc-brain_mask.nii", "a mask or label map by its name"),
        ("sub-01_label-GM_probseg.nii.gz", "a mask or label map by its name"),
        ("aparc+aseg.nii.gz", "a mask or label map by its name"),
        ("lesion.nii.gz", "only 4 different values: a mask or label map"),
    ],
)
def test_masks_beside_volumes_are_no_pictures(tmp_path: Path, name: str, says: str) -> None:
    labels = np.zeros((20, 20, 20), np.uint8)
    labels[5:15, 5:15, 5:15], labels[8:12, 8:12, 8:12], labels[9, 9, 9] = 1, 2, 4
    put(tmp_path / "glioma" / name, made(labels, packed=name.endswith("gz")))
    put(tmp_path / "glioma/BraTS_007_flair.nii.gz", made(corner(), packed=True))
    entries, refused, _ = scanned(NiftiReader(SourceOptions(tmp_path), TAXONOMY))
    assert says in refused[f"glioma/{name}"]
    assert {entry.name for entry in entries.values()} == {"glioma/BraTS_007_flair.nii.gz"}


def test_scaled_integers_and_voxels_that_are_no_numbers() -> None:
    image = nibabel.Nifti1Image(corner(), np.eye(4))
    image.header.set_slope_inter(0.25, -50)
    scaled = nibabel.Nifti1Image(corner() * 0.25 - 50, np.eye(4))
    one, other = (read_volume(i.to_bytes(), "x") for i in (image, scaled))
    assert np.array_equal(show_slice(one, "axial", 30), show_slice(other, "axial", 30))
    holed = corner().astype(np.float32)
    plain = show_slice(read_volume(made(holed), "x"), "axial", 30)
    holed[10, 10, 30], holed[10, 12, 30], holed[10, 14, 30] = np.nan, np.inf, -np.inf
    shown = show_slice(read_volume(made(holed), "x"), "axial", 30)
    # x = 10 is column 39 - 10, y is row 49 - y.
    assert [shown[row, 29, 0] for row in (39, 37, 35)] == [0, 255, 0]
    assert np.count_nonzero(shown != plain) <= 9 + 0.02 * plain.size
    unsigned = read_volume(made(corner().astype(np.uint16) + 40_000), "x")
    assert np.array_equal(show_slice(unsigned, "axial", 30), plain)


def test_slices_lie_where_the_head_is_and_not_at_its_ends() -> None:
    volume = read_volume(made(corner()), "made")
    assert choose_slices(volume, "axial", 1) == [30]  # the middle of 5..54
    assert choose_slices(volume, "axial", 3) == [20, 30, 39]  # 5 + 49 * 0.3, 0.5, 0.7
    assert len(choose_slices(volume, "axial", 500)) < 40


def test_slices_of_a_real_brain_are_bright_and_square() -> None:
    volume = read_volume(template(), "mni")
    assert volume.spacing_mm == (1.0, 1.0, 1.0)
    for plane in AXES:
        for index in choose_slices(volume, plane, 3):
            pixels = show_slice(volume, plane, index)
            assert 90 < np.median(pixels[pixels > 20]) < 230
            assert (pixels > 20).mean() > 0.2


def test_voxels_that_are_not_square_are_made_so() -> None:
    volume = read_volume(made(corner(), np.diag([1.0, 1.0, 3.0, 1.0])), "thick")
    assert show_slice(volume, "coronal", 20).shape == (180, 40, 3)
    assert show_slice(volume, "axial", 20).shape == (50, 40, 3)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no NIfTI that can be read"),
        (b"text", "no NIfTI that can be read"),
        (gzip.compress(bytes(400), mtime=0)[:-9], "no NIfTI that can be read"),
        (made(np.zeros((4, 4, 4), np.int16)), "all its voxels are alike"),
        (made(np.full((4, 4, 4), np.nan, np.float32)), "no finite value"),
        (made(np.ones((4, 4), np.int16)), "4x4 voxels"),
        (made(np.ones((4, 4, 4), np.complex64)), "voxels of kind"),
    ],
)
def test_what_cannot_be_shown_is_one_line(data: bytes, says: str) -> None:
    with pytest.raises(BadImage, match=says) as caught:
        read_volume(data, "x.nii")
    assert "\n" not in str(caught.value)


def test_repairs_of_a_header_are_not_told_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    data = bytearray(made(corner()))
    data[80:84] = bytes(4)  # a voxel of no width, which nibabel takes for 1 mm
    assert read_volume(bytes(data), "x.nii").values.shape == (40, 50, 60)
    assert capfd.readouterr().err == ""


def test_a_volume_without_orientation_is_refused() -> None:
    data = bytearray(made(corner()))
    data[252:256] = bytes(4)  # qform_code and sform_code
    with pytest.raises(BadImage, match="left and right are unknown"):
        read_volume(bytes(data), "x.nii")


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


def test_ingest_keeps_labels_groups_and_counts(tmp_path: Path) -> None:
    root = tmp_path / "brains"
    put(root / "glioma/sub-01/anat/sub-01_T1w.nii.gz", made(corner(), packed=True))
    put(root / "glioma/sub-01/anat/sub-01_T2w.nii", made(corner() // 2 + 1))
    put(root / "notumor/BraTS_007_t1ce.nii.gz", template())
    put(root / "notumor/broken.nii.gz", b"\x1f\x8b no")
    reader = NiftiReader(SourceOptions(root, settings={"slices": "2"}), TAXONOMY)
    entries, refused, _ = scanned(reader)
    assert list(refused) == ["notumor/broken.nii.gz"]
    images = [entry.image for entry in entries.values()]
    assert [(image.sequence, image.contrast, image.labels, image.group) for image in images[::2]] == [
        ("T1", "unknown", ("glioma",), "sub-01"),
        ("T2", "unknown", ("glioma",), "sub-01"),
        ("T1", "yes", ("notumor",), images[4].group),
    ]
    assert images[0].id == "glioma_sub-01_anat_sub-01_T1w_axial_022"  # round(5 + 49 * 0.35)
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(reader, catalogue).added == 6
        assert catalogue.count_by("plane") == {"axial": 6}
        held = catalogue.get(images[4].id)
        assert held.spacing_mm is not None
        digest = catalogue.digest()
        assert (ingest(reader, catalogue).unchanged, catalogue.digest()) == (6, digest)
        other = NiftiReader(SourceOptions(root, settings={"slices": "2", "plane": "coronal"}), TAXONOMY)
        assert ingest(other, catalogue).added == 6


def test_a_bad_volume_and_a_row_without_a_file_are_one_line_each(tmp_path: Path) -> None:
    root = tmp_path / "brains"
    put(root / "small.nii", made(corner()[20:30, 20:30, :]))
    put(root / "sub-01_T1w.nii", made(corner()))
    put(root / "labels.csv", b"file,labels\nsub-01_T1w.nii,glioma\nsub-02_T1w.nii,glioma\n")
    reader = NiftiReader(SourceOptions(root, settings={"slices": "4"}), TAXONOMY)
    told: list[object] = []
    with Catalogue.create(tmp_path / "out") as catalogue:
        done = ingest(reader, catalogue, on_file=told.append)
    assert [(refused.name, refused.reason) for refused in done.refused] == [
        ("sub-02_T1w.nii", "the table of labels names it, and no such image is there"),
        ("small.nii", "10x10 pixels; each side must have at least 32"),
    ]
    assert done.added == 4
    assert len(told) == 9
    assert sum(refused is not None for refused in told) == 2
    # Of one volume that a person asks for, the others of its table are not missed.
    assert not scanned(NiftiReader(SourceOptions(root / "sub-01_T1w.nii"), TAXONOMY))[1]


def test_slices_are_the_same_whichever_volumes_are_held(tmp_path: Path) -> None:
    """More volumes than are held, more slices than threads; each compared with its volume read on its own."""
    for number in range(4):
        put(tmp_path / f"notumor/{number}.nii.gz", made(corner() + 7 * number, packed=True))
    reader = NiftiReader(SourceOptions(tmp_path, settings={"slices": "6"}), TAXONOMY)
    entries = list(scanned(reader)[0].values())
    np.random.default_rng(2).shuffle(entries)
    for entry in entries:
        data = entry.path.read_bytes()
        alone = show_slice(read_volume(data, "x"), "axial", entry.image.frame)
        assert np.array_equal(entry.decode(data), alone)
    digests = set()
    for workers in (1, 4):
        with Catalogue.create(tmp_path / str(workers)) as catalogue:
            assert ingest(reader, catalogue, workers=workers).added == 24
            digests.add(catalogue.digest())
    assert len(digests) == 1


def test_a_folder_without_volumes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no .nii or .nii.gz"):
        NiftiReader(SourceOptions(tmp_path), TAXONOMY)
    put(tmp_path / "a.nii", io.BytesIO(b"x").getvalue())
    with pytest.raises(InputError, match="--set slices=0"):
        NiftiReader(SourceOptions(tmp_path, settings={"slices": "0"}), TAXONOMY)
