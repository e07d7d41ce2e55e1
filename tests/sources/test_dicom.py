from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file

from pixels.dicom.data import made
from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.cli.ingest import group_remarks
from plantain.findings import load_taxonomy
from plantain.sources.dicom import DicomReader
from plantain.sources.registry import SourceOptions, finish
from sources.published import put, scanned

TAXONOMY = load_taxonomy()


def copy(name: str, to: Path, **changes: object) -> None:
    path = get_testdata_file(name, download=False)
    assert path is not None, name
    to.parent.mkdir(parents=True, exist_ok=True)
    if not changes:
        shutil.copy(str(path), to)
        return
    dataset = dcmread(str(path))
    for field, value in changes.items():
        setattr(dataset, field, value)
    dataset.save_as(to)


def read(root: Path, modality: str = "", **settings: str) -> DicomReader:
    return DicomReader(SourceOptions(root, modality, settings=settings), TAXONOMY)


def test_only_allowed_header_fields_are_read(tmp_path: Path) -> None:
    copy("RG1_UNCR.dcm", tmp_path / "Lung_Lesion/chest.dcm")
    copy("US1_UNCR.dcm", tmp_path / "us.dcm")
    put(tmp_path / "notes.txt", b"not looked at")
    put(tmp_path / "broken.dcm", b"\0" * 128 + b"DICM" + b"\xff" * 40)
    entries, refused, _ = scanned(read(tmp_path))
    assert "Modality US, body part none: name the modality of its image with --modality" in refused["us.dcm"]
    assert "broken.dcm" in refused
    (entry,) = entries.values()
    image = entry.image
    expected = ("chest_xray", ("Lung Lesion",), "frontal", "PA")
    assert (image.modality, image.labels, image.view, image.projection) == expected
    header = dcmread(str(tmp_path / "Lung_Lesion/chest.dcm"), stop_before_pixels=True)
    kept = json.dumps([str(getattr(image, name)) for name in image.__slots__])
    private = "PatientName PatientID StudyDate SOPInstanceUID StudyInstanceUID InstitutionName"
    for field in private.split():
        value = str(header.get(field) or "")
        assert not value or value not in kept, field


def test_patients_are_groups_and_a_salt_changes_their_names(tmp_path: Path) -> None:
    copy("CT_small.dcm", tmp_path / "a.dcm", PatientID="one", SOPInstanceUID="1.2.3")
    copy("CT_small.dcm", tmp_path / "b.dcm", PatientID="one", SOPInstanceUID="1.2.4")
    copy("CT_small.dcm", tmp_path / "c.dcm", PatientID="two", SOPInstanceUID="1.2.5")
    copy("CT_small.dcm", tmp_path / "d.dcm", PatientID="two", SOPInstanceUID="1.2.5")
    copy("CT_small.dcm", tmp_path / "e.dcm", PatientID="", SOPInstanceUID="1.2.6")
    copy("CT_small.dcm", tmp_path / "f.dcm", PatientID="", StudyInstanceUID="", SOPInstanceUID="1.2.7")
    entries, refused, _ = scanned(read(tmp_path, "brain_mri"))
    groups = {entry.name: entry.image.group for entry in entries.values()}
    assert groups["a.dcm"] == groups["b.dcm"] != groups["c.dcm"]
    assert str(groups["e.dcm"]).startswith("study:")
    assert groups["f.dcm"] is None
    assert refused == {"d.dcm": "the same SOP instance as c.dcm"}
    salted = {e.name: e.image.group for e in scanned(read(tmp_path, "brain_mri", salt="s"))[0].values()}
    assert salted["a.dcm"] == salted["b.dcm"]
    assert not set(groups.values()) & {g for g in salted.values() if g}


def test_a_placeholder_for_a_patient_is_none_and_is_reported(tmp_path: Path) -> None:
    placeholders = ("removed", "0", "anonymous", "ANONYMIZED^PATIENT", "N/A", "xxxx", "000")
    for number, identifier in enumerate(2 * placeholders):
        changes = {
            "PatientID": identifier,
            "StudyInstanceUID": f"{number}",
            "SOPInstanceUID": f"1.2.{number}",
        }
        copy("MR_small.dcm", tmp_path / f"in/{number}.dcm", **changes)
    named = {"SpecificCharacterSet": "ISO_IR 192", "PatientID": "Пациент", "SOPInstanceUID": "1.2.99"}
    copy("MR_small.dcm", tmp_path / "in/named.dcm", **named)
    with Catalogue.create(tmp_path / "c") as catalogue:
        done = ingest(read(tmp_path / "in", "brain_mri"), catalogue)
        groups = {catalogue.own_group(image) for image in catalogue.images()}
        assert len(groups) == 15
        (remark,) = group_remarks(done, takes_table=True)
    assert remark.startswith("14 images without a known patient (PatientID is missing or a placeholder)")


def test_one_instance_uid_for_other_pixels_is_refused(tmp_path: Path) -> None:
    copy("MR_small.dcm", tmp_path / "a.dcm", SOPInstanceUID="1.2")
    pixels = dcmread(str(tmp_path / "a.dcm")).PixelData[::-1]
    copy("MR_small.dcm", tmp_path / "b.dcm", SOPInstanceUID="1.2", PixelData=pixels)
    _, refused, _ = scanned(read(tmp_path, "brain_mri"))
    assert refused == {"b.dcm": "the SOP instance UID of a.dcm, with other pixels"}


@pytest.mark.parametrize(
    ("header", "spacing"),
    [
        ({"PixelSpacing": [0.4, 0.2]}, 0.2),
        ({"ImagerPixelSpacing": [0.4, 0.2]}, 0.2),
        ({"PixelAspectRatio": [2, 1]}, None),
        # Rows run along the patient's back: the display turns them, and height becomes width.
        ({"PixelSpacing": [0.4, 0.2], "ImageOrientationPatient": [0, 1, 0, 1, 0, 0]}, 0.4),
    ],
)
def test_oblong_pixels_give_a_square_field(
    tmp_path: Path, header: dict[str, object], spacing: float | None
) -> None:
    """PS3.3, 10.7.1.3 and C.7.6.3.1.7: the first number is vertical, so 128 rows of 256 pixels are a square field."""
    values = np.repeat(np.arange(128, dtype=np.uint16)[:, None] * 30, 256, axis=1)
    put(tmp_path / "a.dcm", made(values, Modality="MR", BodyPartExamined="BRAIN", **header))
    (entry,) = scanned(read(tmp_path))[0].values()
    pixels = entry.decode((tmp_path / "a.dcm").read_bytes())
    image, _ = finish(entry.image, pixels, 512, aspect=entry.aspect)
    shape = image.geometry
    assert (shape.inner_width, shape.inner_height) == (512, 512)
    assert entry.image.spacing_mm == spacing
    # The field is 51.2 mm on 512 pixels.
    assert image.spacing_mm == (None if spacing is None else pytest.approx(0.1))


def test_slices_of_a_series_without_a_window_share_a_scale(tmp_path: Path) -> None:
    grain = np.random.default_rng(0).integers(0, 1000, (2, 64, 64)).astype(np.uint16)
    for name, values in (("bright", grain[0]), ("dim", grain[1] // 2)):
        header = {"Modality": "MR", "BodyPartExamined": "BRAIN", "SeriesInstanceUID": "1.5"}
        put(tmp_path / f"{name}.dcm", made(values, SOPInstanceUID=f"1.{len(name)}", **header))
    entries = scanned(read(tmp_path))[0].values()
    means = {entry.name: entry.decode(entry.path.read_bytes()).mean() for entry in entries}
    assert means["bright.dcm"] / means["dim.dcm"] == pytest.approx(2.0, abs=0.1)
    header |= {"WindowCenter": 1000, "WindowWidth": 2000}
    put(tmp_path / "a.dcm", made(grain[0], SOPInstanceUID="1.9", **header))
    entries = scanned(read(tmp_path))[0].values()
    means = {entry.name: entry.decode(entry.path.read_bytes()).mean() for entry in entries}
    # PS3.3, C.11.2.1.2: the window of one slice shows values from 0 to 2000, of which the mean is 500.
    assert means == pytest.approx({"a.dcm": 64, "bright.dcm": 64, "dim.dcm": 32}, abs=1)


def test_labels_csv_labels_groups_and_splits(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        copy("MR_small.dcm", tmp_path / f"{name}.dcm", SOPInstanceUID=f"1.2.{ord(name)}")
    put(
        tmp_path / "labels.csv", b"file,labels,group,split\na.dcm,Glioma;pituitary,p1,test\nb.dcm,gliom,p1,\n"
    )
    entries, refused, _ = scanned(read(tmp_path, "brain_mri"))
    images = {entry.name: entry.image for entry in entries.values()}
    expected = (("glioma", "pituitary"), "p1", "test")
    assert (images["a.dcm"].labels, images["a.dcm"].group, images["a.dcm"].split) == expected
    assert (images["c.dcm"].labels, images["c.dcm"].note) == ((), "no label: the source has none")
    assert "did you mean 'glioma'?" in refused["b.dcm"]


def test_frames_are_chosen(tmp_path: Path) -> None:
    copy("emri_small.dcm", tmp_path / "notumor/series.dcm")
    for choice, wanted in (("middle", [5]), ("first", [0]), ("all", list(range(10)))):
        entries, _, _ = scanned(read(tmp_path, "brain_mri", frames=choice))
        assert [entry.image.frame for entry in entries.values()] == wanted
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(read(tmp_path, "brain_mri", frames="all"), catalogue).added == 10
        assert len(catalogue.count_by("prepared_sha256")) == 10
        assert list(catalogue.count_by("source_sha256").values()) == [10]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("liver.dcm", "Modality SEG, not an image"), ("test-SR.dcm", "Modality SR, not an image")],
)
def test_objects_without_an_image_are_refused_with_a_reason(tmp_path: Path, name: str, reason: str) -> None:
    copy(name, tmp_path / name)
    assert scanned(read(tmp_path, "brain_mri"))[1] == {name: reason}


def test_a_study_folder_as_a_viewer_exports_it(tmp_path: Path) -> None:
    """DICOMDIR, files without ending, in capitals or without preamble, hidden litter, a link out, a second copy."""
    root = tmp_path / "CD"
    copy("CT_small.dcm", root / "IMAGES/IM000001")
    copy("MR_small.dcm", root / "IMAGES/IM000002.DCM")
    whole = (root / "IMAGES/IM000001").read_bytes()
    put(root / "IMAGES/old", whole[132:])
    put(root / "IMAGES/._IM000001", b"\0\5\x16\7 of a Mac")
    put(root / ".DS_Store", b"x")
    put(root / "DICOMDIR", b"x")
    put(root / "VIEWER/README.TXT", b"x")
    put(root / "VIEWER/run.exe", b"MZ")
    (root / "IMAGES/out").symlink_to("/etc/hostname")
    copy("CT_small.dcm", root / "IMAGES/cut.dcm", SOPInstanceUID="1.2.3")
    put(root / "IMAGES/cut.dcm", (root / "IMAGES/cut.dcm").read_bytes()[:20_000])
    entries, refused, _ = scanned(read(root, "brain_mri"))
    found = {entry.name for entry in entries.values()}
    assert found == {"IMAGES/IM000001", "IMAGES/IM000002.DCM", "IMAGES/cut.dcm"}  # its header is whole
    same = "the same SOP instance as IMAGES/IM000001"
    assert refused["IMAGES/old"] == same
    assert refused["VIEWER/run.exe"] == "not a DICOM file"
    with Catalogue.create(tmp_path / "out") as catalogue:
        done = ingest(read(root, "brain_mri"), catalogue)
        assert done.added == 2
        assert {item.name for item in done.refused} == {"IMAGES/cut.dcm", "IMAGES/old", "VIEWER/run.exe"}


def test_colour_captures_and_burned_in_marks_are_noted(tmp_path: Path) -> None:
    header = {"BurnedInAnnotation": "YES", "Laterality": "L", "SyntheticData": "YES"}
    copy("examples_rgb_color.dcm", tmp_path / "Glaucoma/sc.dcm", **header)
    (entry,) = scanned(read(tmp_path, "fundus"))[0].values()
    assert (entry.image.labels, entry.image.laterality) == (("Glaucoma",), "left")
    assert "burned-in text" in entry.image.note
    assert entry.image.synthetic  # (0008,001C), PS3.3 C.12.1: made artificially, in whole or in part
    assert entry.decode(entry.path.read_bytes()).shape == (240, 320, 3)


def test_a_mirrored_radiograph_is_turned(tmp_path: Path) -> None:
    copy("RG1_UNCR.dcm", tmp_path / "a.dcm", PatientOrientation=["L", "F"])
    copy("RG1_UNCR.dcm", tmp_path / "b.dcm", PatientOrientation=["R", "F"], SOPInstanceUID="1.2.3")
    # half known
    copy("RG1_UNCR.dcm", tmp_path / "d.dcm", PatientOrientation=["", "F"], SOPInstanceUID="1.2.5")
    stored = dcmread(str(tmp_path / "a.dcm")).pixel_array
    turned = {"PixelData": np.rot90(stored).tobytes(), "Rows": stored.shape[1], "Columns": stored.shape[0]}
    turned |= {"PatientOrientation": ["F", "R"], "SOPInstanceUID": "1.2.4", "PixelSpacing": [0.2, 0.1]}
    copy("RG1_UNCR.dcm", tmp_path / "c.dcm", **turned)  # PS3.3, C.7.6.1.1.1: whereto rows and columns go
    entries = {e.name: e for e in scanned(read(tmp_path, "chest_xray"))[0].values()}
    one, other, third, half = (
        entries[name].decode((tmp_path / name).read_bytes()) for name in sorted(entries)
    )
    assert np.array_equal(one[:, ::-1], other)
    assert np.array_equal(one, third) and np.array_equal(one, half) and entries["c.dcm"].aspect == 0.5
