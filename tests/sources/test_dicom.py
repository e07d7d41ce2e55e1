from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file

from plantain.findings import load_taxonomy
from plantain.records import InputError
from plantain.sources.catalogue import Catalogue
from plantain.sources.dicom import DicomReader
from plantain.sources.entries import SourceOptions
from plantain.sources.ingest import ingest
from plantain.sources.mimic_cxr import MimicReader
from sources.published import put, scanned
from sources.test_mimic_cxr import Tree

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
    entries, refused, _ = scanned(read(tmp_path, "brain_mri"))
    groups = {entry.name: entry.image.group for entry in entries.values()}
    assert groups["a.dcm"] == groups["b.dcm"] != groups["c.dcm"]
    assert groups["e.dcm"] is None
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


def test_mimic_reads_dicom_in_its_place(tmp_path: Path) -> None:
    path = get_testdata_file("RG1_J2KI.dcm", download=False)
    tree = Tree(tmp_path / "mimic-cxr")
    tree.study(10000032, 50000001, {"Lung Lesion": "1.0"}, ending=".dcm", data=Path(str(path)).read_bytes())
    reader: MimicReader = tree.write()
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(reader, catalogue).added == 1
        image = catalogue.get("s50000001")
    assert image.labels == ("Lung Lesion", "Lung Opacity")
    assert (image.geometry.width, image.geometry.height) == (1841, 1955)


def test_a_mirrored_radiograph_is_turned(tmp_path: Path) -> None:
    copy("RG1_UNCR.dcm", tmp_path / "a.dcm", PatientOrientation=["L", "F"])
    copy("RG1_UNCR.dcm", tmp_path / "b.dcm", PatientOrientation=["R", "F"], SOPInstanceUID="1.2.3")
    entries = {e.name: e for e in scanned(read(tmp_path, "chest_xray"))[0].values()}
    one, other = (entries[name].decode((tmp_path / name).read_bytes()) for name in ("a.dcm", "b.dcm"))
    assert np.array_equal(one[:, ::-1], other)


def test_a_folder_without_dicom_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no DICOM file"):
        read(tmp_path)
    with pytest.raises(InputError, match="--set window=auto"):
        read(tmp_path, window="auto")
