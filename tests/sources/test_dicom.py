from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file

from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.sources.dicom import DicomReader
from plantain.sources.entries import SourceOptions
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


def test_headers_tell_what_is_allowed_and_nothing_else(tmp_path: Path) -> None:
    copy("RG1_UNCR.dcm", tmp_path / "Lung_Lesion/chest.dcm")
    copy("US1_UNCR.dcm", tmp_path / "us.dcm")
    put(tmp_path / "notes.txt", b"not looked at")
    put(tmp_path / "broken.dcm", b"\0" * 128 + b"DICM" + b"\xff" * 40)
    entries, refused, _ = scanned(read(tmp_path))
    assert "Modality US, body part none: say what it shows with --modality" in refused["us.dcm"]
    assert "broken.dcm" in refused
    (entry,) = entries.values()
    image = entry.image
    assert (image.modality, image.labels, image.view, image.projection) == (
        "chest_xray",
        ("Lung Lesion",),
        "frontal",
        "PA",
    )
    header = dcmread(str(tmp_path / "Lung_Lesion/chest.dcm"), stop_before_pixels=True)
    kept = json.dumps([str(getattr(image, name)) for name in image.__slots__])
    for field in (
        "PatientName",
        "PatientID",
        "StudyDate",
        "SOPInstanceUID",
        "StudyInstanceUID",
        "InstitutionName",
    ):
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


def test_labels_csv_labels_groups_and_splits(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        copy("MR_small.dcm", tmp_path / f"{name}.dcm", SOPInstanceUID=f"1.2.{ord(name)}")
    put(
        tmp_path / "labels.csv", b"file,labels,group,split\na.dcm,Glioma;pituitary,p1,test\nb.dcm,gliom,p1,\n"
    )
    entries, refused, _ = scanned(read(tmp_path, "brain_mri"))
    images = {entry.name: entry.image for entry in entries.values()}
    assert (images["a.dcm"].labels, images["a.dcm"].group, images["a.dcm"].split) == (
        ("glioma", "pituitary"),
        "p1",
        "test",
    )
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
    ("name", "says"),
    [
        ("liver.dcm", "Modality SEG, not an image"),
        ("test-SR.dcm", "Modality SR, not an image"),
    ],
)
def test_objects_that_are_no_pictures_are_named(tmp_path: Path, name: str, says: str) -> None:
    copy(name, tmp_path / name)
    assert scanned(read(tmp_path, "brain_mri"))[1] == {name: says}


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


def test_colour_captures_and_burned_in_marks_are_told(tmp_path: Path) -> None:
    told = {"BurnedInAnnotation": "YES", "Laterality": "L", "SyntheticData": "YES"}
    copy("examples_rgb_color.dcm", tmp_path / "Glaucoma/sc.dcm", **told)
    (entry,) = scanned(read(tmp_path, "fundus"))[0].values()
    assert (entry.image.labels, entry.image.laterality) == (("Glaucoma",), "left")
    assert "text is burned in" in entry.image.note
    assert entry.image.synthetic  # (0008,001C), PS3.3 C.12.1: made artificially, in whole or in part
    assert entry.decode(entry.path.read_bytes()).shape == (240, 320, 3)


def test_a_mirrored_radiograph_is_turned(tmp_path: Path) -> None:
    copy("RG1_UNCR.dcm", tmp_path / "a.dcm", PatientOrientation=["L", "F"])
    copy("RG1_UNCR.dcm", tmp_path / "b.dcm", PatientOrientation=["R", "F"], SOPInstanceUID="1.2.3")
    entries = {e.name: e for e in scanned(read(tmp_path, "chest_xray"))[0].values()}
    one, other = (entries[name].decode((tmp_path / name).read_bytes()) for name in ("a.dcm", "b.dcm"))
    assert np.array_equal(one[:, ::-1], other)
