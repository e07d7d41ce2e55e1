"""Quarantine, end to end: real files in, identities quarantined, a human decides, other images are untouched."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import nibabel
import numpy as np
import pytest
import skimage.data
from PIL import Image
from pydicom import dcmread
from pydicom.data import get_testdata_file

from fakes.commands import json_of, printed, refused
from fakes.samples import head_in_profile
from plantain.catalogue import quarantine
from plantain.catalogue.gate import PrivacyGate, suspicious
from plantain.catalogue.ingest import Ingested, check_earlier, ingest
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.pixels.decode import decode
from plantain.pixels.encode import is_source_form
from plantain.privacy.text import TextReader
from plantain.records import InputError, Licence
from plantain.sources.dicom import DicomReader
from plantain.sources.folder import FolderReader
from plantain.sources.nifti import NiftiReader
from plantain.sources.registry import SourceOptions
from sources.published import digest_of


def page(*words: tuple[str, int, int], seed: int = 0, side: int = 400) -> np.ndarray:
    """Return a small grey image with letters in it; most of it is black, so that reading is quick."""
    pixels = np.zeros((side, side, 3), np.uint8)
    pixels[40:120, 40:200] = np.random.default_rng(seed).normal(90, 12, (80, 160, 1)).clip(0, 255)
    for text, x, y in words:
        cv2.putText(pixels, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (235,) * 3, 2, cv2.LINE_AA)
    return pixels


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a clean image, one with a marker, one with a name and a date, and one photograph with a face."""
    folder = tmp_path_factory.mktemp("scans") / "normal"
    folder.mkdir()
    Image.fromarray(page(seed=1)).save(folder / "clean.png")
    Image.fromarray(page(("PORTABLE", 210, 100), seed=2)).save(folder / "marker.png")
    named = page(("MARY SMITH", 45, 180), ("1951-08-29", 45, 220), seed=3)
    Image.fromarray(named).save(folder / "named.png")
    Image.fromarray(skimage.data.astronaut()[:256, 128:384]).save(folder / "portrait.png")
    return folder.parent


def read(scans: Path, root: Path, reader: TextReader | None) -> Ingested:
    options = SourceOptions(scans, "chest_xray", Licence.OPEN)
    with Catalogue.create(root) as catalogue:
        return ingest(FolderReader(options, load_taxonomy()), catalogue, gate=PrivacyGate(reader), workers=1)


@pytest.fixture(scope="module")
def once(scans: Path, reader: TextReader, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ingested]:
    """Build the catalogue of the scans, which tests copy."""
    root = tmp_path_factory.mktemp("once") / "catalogue"
    return root, read(scans, root, reader)


@pytest.fixture
def catalogued(once: tuple[Path, Ingested], tmp_path: Path) -> Path:
    return Path(shutil.copytree(once[0], tmp_path / "catalogue"))


def ids(root: Path) -> list[str]:
    with Catalogue.open(root) as catalogue:
        return [image.id for image in catalogue.images()]


def test_identities_are_quarantined(
    scans: Path, once: tuple[Path, Ingested], catalogued: Path, reader: TextReader
) -> None:
    root, done = catalogued, once[1]
    assert (done.added, done.newly_quarantined, done.quarantined) == (2, 2, ["named", "portrait"])
    assert ids(root) == ["clean", "marker"]
    with Catalogue.open(root) as catalogue:
        assert all(image.text_checked for image in catalogue.images())
        named, portrait = quarantine.held(catalogue)
        assert {suspicion.kind for suspicion in named.found} == {"name", "date"}
        # A colour photograph among radiographs is quarantined by itself, even if no face is found.
        assert portrait.why == "face, photograph"
    digest = digest_of(root)
    again = read(scans, root, reader)
    assert (again.added, again.unchanged, again.newly_quarantined) == (0, 4, 0)
    assert digest_of(root) == digest


def test_release_and_mask_through_the_command(catalogued: Path, reader: TextReader) -> None:
    root = catalogued
    with Catalogue.open(root) as catalogue:
        unmasked = quarantine.held_one(catalogue, "named")
    assert unmasked is not None

    listed = json_of("run", "quarantine", root)
    assert [one["id"] for one in listed["waiting"]] == ["named", "portrait"]
    preview = Path(listed["page"]).read_text(encoding="utf-8")
    assert preview.count("<img") == 2
    assert "MARY SMITH" in preview

    assert "a photograph among chest_xray images" in refused("run", "quarantine", root, "--mask", "portrait")
    decided = json_of("run", "quarantine", root, "--release", "portrait", "--mask", "all")
    assert (decided["waiting"], decided["released"], decided["masked"]) == ([], ["portrait"], ["named"])
    assert ids(root) == ["clean", "marker", "named", "portrait"]
    with Catalogue.open(root) as catalogue:
        masked = catalogue.get("named")
        assert "masked" in masked.note
        data = catalogue.read(masked)
        assert is_source_form(data)
        texts = reader.read(decode(data))
        assert suspicious(texts) == ()
        # Outside the boxes, only the codec changes pixels.
        assert decode(data)[100:300, 100:500].mean() == pytest.approx(90 / 1, abs=25)
    left = [path for path in root.rglob("*") if path.is_file()]
    assert [path.name for path in left if b"SMITH" in path.read_bytes()] == []
    assert not any(path.name == unmasked.image.prepared_sha256 for path in left)
    assert not (root / "quarantine.html").exists()

    assert main(["run", "quarantine", str(root), "--mask", "named"]) == 0  # asked twice
    assert "no image 'nobody' is in quarantine" in refused("run", "quarantine", root, "--mask", "nobody")


def test_a_kill_while_masking_leaves_no_unmasked_image(catalogued: Path) -> None:
    root = catalogued
    with Catalogue.open(root) as catalogue:
        before = quarantine.held_one(catalogue, "named")
    assert before is not None
    pid = os.fork()
    if pid == 0:
        quarantine.finish_discards = lambda _: os._exit(9)  # type: ignore[assignment]
        with Catalogue.create(root) as catalogue:
            quarantine.mask(catalogue, "named", None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    with Catalogue.create(root) as catalogue:
        path = catalogue.blobs.path(before.image.prepared_sha256)
        assert path.exists()
        assert quarantine.mask(catalogue, "named", None) is False
        assert not path.exists()


def test_images_ingested_without_the_extra_are_read_later(
    scans: Path, once: tuple[Path, Ingested], tmp_path: Path, reader: TextReader
) -> None:
    root = tmp_path / "catalogue"
    assert read(scans, root, None).added == 3  # the face needs no extra
    with Catalogue.open(root) as catalogue:
        assert not any(image.text_checked for image in catalogue.images())
    with Catalogue.create(root) as catalogue:
        assert check_earlier(catalogue, PrivacyGate(reader)) == 1
    assert ids(root) == ["clean", "marker"]
    with Catalogue.open(root) as catalogue:
        assert all(image.text_checked for image in catalogue.images())
    assert digest_of(root) == digest_of(once[0])


def test_slices_through_the_face_of_a_head_are_quarantined(tmp_path: Path) -> None:
    """The real profile of a head over 120 mm of width, as a volume; the slices above its orbits are free."""
    head = np.repeat(head_in_profile()[::-1, ::-1].T[None].astype(np.int16), 120, axis=0)
    head[::2] += 1  # slices of a real head differ; equal ones would be a label map
    folder = tmp_path / "heads" / "notumor"
    folder.mkdir(parents=True)
    nibabel.save(nibabel.Nifti1Image(head, np.eye(4)), folder / "head.nii.gz")
    options = SourceOptions(tmp_path / "heads", "brain_mri", Licence.OPEN, {"slices": "6"})
    with Catalogue.create(tmp_path / "axial") as catalogue:
        done = ingest(NiftiReader(options, load_taxonomy()), catalogue, gate=PrivacyGate(None))
        assert done.added + done.newly_quarantined == 6
        free = [image.frame % 10_000 for image in catalogue.images()]
        caught = [waiting.image.frame % 10_000 for waiting in quarantine.held(catalogue)]
        assert free
        assert caught
        assert min(free) > max(caught)  # counted from the feet
    sagittal = replace(options, settings={"slices": "2", "plane": "sagittal"})
    with Catalogue.create(tmp_path / "sagittal") as catalogue:
        done = ingest(NiftiReader(sagittal, load_taxonomy()), catalogue, gate=PrivacyGate(None))
        assert (done.added, done.newly_quarantined) == (0, 2)
        name = done.quarantined[0]
        assert quarantine.mask(catalogue, name, None)
        pixels = decode(catalogue.read(catalogue.get(name)))
        assert pixels[700:, :200].max() < 40  # the place of nose and lips


def test_dicom_with_burned_in_text_or_a_profile_is_quarantined(tmp_path: Path, reader: TextReader) -> None:
    path = get_testdata_file("US1_UNCR.dcm", download=False)
    if path is None:
        pytest.skip("pydicom-data is not installed")
    (tmp_path / "us").mkdir()
    shutil.copy(str(path), tmp_path / "us")
    dataset = dcmread(str(get_testdata_file("MR_small.dcm", download=False)))
    stored = head_in_profile()
    dataset.Rows, dataset.Columns = stored.shape
    dataset.PixelSpacing, dataset.ImageOrientationPatient = [1.0, 1.0], [0, 1, 0, 0, 0, -1]
    dataset.PixelData = stored.astype("<i2").tobytes()
    dataset.WindowCenter, dataset.WindowWidth = 100, 200
    dataset.save_as(tmp_path / "us" / "head.dcm")
    options = SourceOptions(tmp_path / "us", "brain_mri", Licence.OPEN)
    with Catalogue.create(tmp_path / "catalogue") as catalogue:
        done = ingest(DicomReader(options, load_taxonomy()), catalogue, gate=PrivacyGate(reader))
        assert (done.added, done.newly_quarantined) == (0, 2)
        why = {waiting.image.plane: waiting.why for waiting in quarantine.held(catalogue)}
    assert why["sagittal"] == "face"
    assert "name" in why["unknown"]


def test_withdrawn_images_do_not_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "scans" / "notumor"
    folder.mkdir(parents=True)
    volume = np.random.default_rng(0).normal(500, 60, (40, 44, 38)).astype(np.int16)
    for name in ("sub-one", "sub-two"):
        nibabel.save(nibabel.Nifti1Image(volume + len(name), np.eye(4)), folder / f"{name}_T1w.nii.gz")
        volume = volume[::-1].copy()
    options = SourceOptions(tmp_path / "scans", "brain_mri", Licence.OPEN, {"slices": "1"})
    root = tmp_path / "catalogue"

    def again() -> Ingested:
        with Catalogue.create(root) as catalogue:
            return ingest(NiftiReader(options, load_taxonomy()), catalogue, gate=PrivacyGate(None))

    assert again().added == 2
    assert main(["run", "withdraw", str(root), "--group", "sub-one"]) == 0
    assert "already withdrawn" in printed("run", "withdraw", root, "--group", "sub-one")
    done = again()
    assert (done.added, done.unchanged) == (0, 1)
    assert [refused.reason for refused in done.refused] == ["was withdrawn from this catalogue"]
    assert main(["run", "withdraw", str(root), "--group", "sub-three"]) == 2
    with (
        pytest.raises(InputError, match="no image 'x' is in quarantine"),
        Catalogue.create(root) as catalogue,
    ):
        quarantine.release(catalogue, "x")
