"""All of `plantain ingest folder`, through the real command, on a folder with many hostile files."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.commands import plantain, printed, refused
from pixels.images import png_bomb
from plantain.catalogue.store import Catalogue
from plantain.records import InputError
from sources.published import digest_of


def noise_image(seed: int, width: int = 200, height: int = 160) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(seed).normal(0, 5, (height, width))
    return Image.fromarray(np.clip(120 + 60 * np.sin(x / 20 + seed) + y / 4 + noise, 0, 255).astype(np.uint8))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Seven usable images, ten unusable files."""
    normal, ill = tmp_path / "scans" / "normal", tmp_path / "scans" / "Pleural_Effusion"
    normal.mkdir(parents=True)
    ill.mkdir()
    noise_image(1).save(normal / "plain.jpg")
    noise_image(2).save(normal / "胸片.png")
    noise_image(3).convert("CMYK").save(normal / "cmyk.jpg")
    Image.fromarray(np.asarray(noise_image(4)).astype(np.uint16) << 4).save(normal / "deep.png")
    clear = noise_image(5).convert("RGB")
    clear.putalpha(200)
    clear.save(ill / "alpha.png")
    noise_image(6).convert("P").save(ill / "palette.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "Jane Doe 1970-01-01"
    noise_image(7).save(ill / "turned.jpg", exif=exif)
    whole = (normal / "plain.jpg").read_bytes()
    (normal / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (normal / "zero.jpg").touch()
    (normal / "text.jpg").write_text("this is not a picture")
    (normal / "bomb.png").write_bytes(png_bomb(30_000, 30_000))
    (normal / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(64))
    noise_image(8).save(ill / "moving.gif", save_all=True, append_images=[noise_image(9)])
    (ill / "out.jpg").symlink_to("/etc/hostname")
    (ill / "up.jpg").symlink_to("../../../secret.jpg")
    os.mkfifo(ill / "pipe.jpg")
    (tmp_path / "scans" / "Pneumotorax").mkdir()
    for number in range(3):
        shutil.copy(normal / "plain.jpg", tmp_path / "scans" / "Pneumotorax" / f"{number}.jpg")
    return tmp_path / "scans"


def ingest(*arguments: object) -> tuple[int, str, str]:
    """Run without the search for text, which takes a second an image and has its own tests."""
    done = plantain("ingest", *arguments, "--skip-text")
    return done.returncode, done.stdout, done.stderr


def test_good_files_of_a_hostile_folder_are_used_and_each_bad_one_gives_a_line(
    hostile: Path, tmp_path: Path
) -> None:
    out = tmp_path / "catalogue"
    options = ("folder", hostile, "--modality", "chest_xray", "--licence", "open", "--to", out)
    code, text, errors = ingest(*options, "--json")
    assert code == 0
    summary = json.loads(text)
    assert summary["images"] == summary["added"] == 7
    assert summary["rejected"] == 12  # nine files, and three in the folder with a misspelt name
    assert summary["by_label"] == {"No Finding": 4, "Pleural Effusion": 3}
    assert summary["by_modality"] == {"chest_xray": 7}
    assert summary["by_split"] == {"none": 7}
    rows = list(csv.DictReader(io.StringIO((out / "rejected.csv").read_text())))
    reasons = {row["file"]: row["reason"] for row in rows}
    for name, message in {
        "normal/cut.jpg": "cut short",
        "normal/zero.jpg": "empty file",
        "normal/text.jpg": "not an image that we read",
        "normal/bomb.png": "900 million pixels, refused undecoded",
        "normal/phone.heic": "HEIC",
        "Pleural_Effusion/moving.gif": "several frames",
        "Pleural_Effusion/out.jpg": "leads out of the folder",
        "Pleural_Effusion/up.jpg": "leads out of the folder",
        "Pleural_Effusion/pipe.jpg": "not a regular file",
    }.items():
        assert message in reasons.pop(name)
        assert f"rejected {name}: " in errors
    assert len(reasons) == 3
    for name, reason in reasons.items():
        assert name.startswith("Pneumotorax/") and "did you mean 'Pneumothorax'?" in reason
    assert errors.count("burned-in text was not checked") == 1
    with Catalogue.open(out) as catalogue:
        images = list(catalogue.images())
        expected = {"alpha", "cmyk", "deep", "palette", "plain", "turned", "胸片"}
        assert {image.id for image in images} == expected
        turned = catalogue.get("turned")
        assert (turned.geometry.width, turned.geometry.height) == (160, 200)
        assert all(b"Jane" not in catalogue.read(image) for image in images)


def test_second_ingest_adds_only_new_images(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalogue"
    options = ("folder", hostile, "--modality", "chest_xray", "--to", out)
    ingest(*options)
    files = {
        path: path.read_bytes() for path in out.rglob("*") if path.is_file() and "sqlite" not in path.name
    }
    ingest(*options[:-1], tmp_path / "again")  # the same in any order of threads
    digest = digest_of(out)
    assert digest_of(tmp_path / "again") == digest
    assert (tmp_path / "again" / "rejected.csv").read_bytes() == files[out / "rejected.csv"]
    _, text, _ = ingest(*options, "--json")
    assert json.loads(text)["unchanged"] == 7
    assert {path: path.read_bytes() for path in files} == files
    assert digest_of(out) == digest
    noise_image(30).save(hostile / "normal" / "new.png")
    shutil.copy(hostile / "normal" / "plain.jpg", hostile / "normal" / "zz_copy.jpg")
    noise_image(31).save(hostile / "normal" / "deep.png")
    _, text, errors = ingest(*options, "--licence", "open", "--json")
    assert (json.loads(text)["added"], json.loads(text)["changed"]) == (1, 6)  # the first 7 without deep.png
    assert "zz_copy.jpg: the same image as plain (No Finding)" in errors
    assert "deep.png: another image has the id deep" in errors


def test_wrong_use_gives_one_line_and_no_catalogue(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalogue"
    for arguments, message in (
        (("folder", hostile, "--to", out), "--modality: name the modality"),
        (("folder", hostile, "--to", out, "--modality", "brain"), "did you mean 'brain_mri'"),
        (("foldr", hostile, "--to", out), "did you mean 'folder'"),
        (("folder", hostile), "--to CATALOGUE is missing"),
        (("folder", f"{hostile}e", "--to", out), f"{hostile}e: does not exist; did you mean '{hostile}'?"),
        (("folder", hostile, "--to", out, "--modality", "fundus", "--licence", "mine"), "--licence 'mine'"),
        (
            ("folder", hostile, "--to", hostile, "--modality", "chest_xray"),
            "neither an empty folder nor a catalogue",
        ),
    ):
        code, text, errors = ingest(*arguments)
        assert (code, text) == (2, "")
        assert message in errors
        assert len(errors.splitlines()) == 1
    assert not out.exists()


def test_images_without_a_label_are_reported(tmp_path: Path) -> None:
    films, out = tmp_path / "my films", tmp_path / "catalogue"
    films.mkdir()
    for number in range(3):
        noise_image(number).save(films / f"{number}.png")
    table = films / "labels.csv"
    table.write_text("file,labels\n0.png,\n1.png,\n2.png,Edema\n")
    options = ("folder", films, "--modality", "chest_xray", "--to", out)
    code, text, errors = ingest(*options, "--json")
    assert (code, json.loads(text)["unlabelled"], json.loads(text)["changed"]) == (0, 2, 0)
    assert (
        f"2 images without a label, used only with add_to = 'any'; add labels in {table} (file,labels[,group,split]) "
        "and ingest again" in errors
    )
    table.write_text("file,labels\n0.png,Edema\n1.png,Pneumonia\n2.png,Edema\n")
    code, text, errors = ingest(*options)
    assert code == 0
    assert f"{out}: 3 images, 0 new, 2 with a new label, group, split or licence; 0 files rejected" in text
    assert "without a label" not in errors
    assert "2  Edema" in text


def test_unwritable_catalogue_gives_one_line(hostile: Path, tmp_path: Path) -> None:
    options = ("folder", hostile, "--modality", "chest_xray", "--to")
    code, _, errors = ingest(*options, "/proc/catalogue")
    assert (code, len(errors.splitlines())) == (2, 1)
    assert errors.endswith("choose another --to\n")
    assert "whole" not in errors
    out = tmp_path / "catalogue"
    ingest(*options, out)
    everything = [out, *out.rglob("*")]
    try:
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        if os.access(out, os.W_OK):
            pytest.skip("this user may write everywhere")
        code, _, errors = ingest(*options, out)
        assert code == 2
        assert "catalogue.sqlite: cannot be written (" in errors
        assert "0 images in quarantine" in printed("run", "quarantine", out)
        assert "cannot be written" in refused("run", "quarantine", out, "--release", "all")
    finally:
        for path in everything:
            path.chmod(0o755)


def test_no_usable_image_exits_1(tmp_path: Path) -> None:
    (tmp_path / "scans" / "normal").mkdir(parents=True)
    code, text, errors = ingest("folder", tmp_path / "scans", "--modality", "fundus", "--to", tmp_path / "c")
    assert code == 1 and "next:" not in text
    assert "no image could be used" in errors


def test_sequence_stated_after_the_first_ingest_is_reported_and_ignored(tmp_path: Path) -> None:
    (tmp_path / "scans" / "notumor").mkdir(parents=True)
    noise_image(1).save(tmp_path / "scans" / "notumor" / "a.png")
    words = ("folder", tmp_path / "scans", "--to", tmp_path / "c", "--modality", "brain_mri")
    assert ingest(*words, "--set", "plane=axial")[0] == 0
    text = ingest(*words, "--set", "sequence=T1", "--set", "plane=axial")[2]
    assert "1 image keeps the sequence recorded at the first ingest; ingest into a new catalogue: " in text
    assert f"plantain ingest folder {tmp_path / 'scans'} --to {tmp_path / 'c'}-2 --modality brain_mri" in text
    with Catalogue.open(tmp_path / "c") as catalogue:
        assert [(one.sequence, one.plane) for one in catalogue.images()] == [("unknown", "axial")]


def test_name_version_and_consent_are_recorded(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "catalogue"
    options = ("folder", hostile, "--modality", "chest_xray", "--to", out)
    code, _, errors = ingest(*options, "--consent-by", "Dr Roe")
    assert (code, out.exists()) == (2, False)
    assert "--consent-by, --agreement: give both" in errors
    stated = ("--dataset", "Ward 3", "--version", "2026-01", "--consent-by", "Dr Roe", "--agreement", "DUA 7")
    assert ingest(*options, *stated)[0] == 0
    query = "SELECT DISTINCT dataset, version, consent FROM image"
    with sqlite3.connect(out / "catalogue.sqlite") as database:
        assert database.execute(query).fetchall() == [
            ("Ward 3", "2026-01", '{"by":"Dr Roe","agreement":"DUA 7"}')
        ]
    assert (out / "rejected.csv").read_text().splitlines()[1].startswith("Ward 3,")


KIND = """
from pathlib import Path
from plantain.sources.folder import FolderReader
from plantain.sources.registry import SourceKind
KIND = SourceKind("chests from the moon", FolderReader, "Moon")
"""


def test_source_of_another_package_is_ingested_like_ours(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moon_kind.py").write_text(KIND)
    put = tmp_path / "moonkind-1.0.dist-info"
    put.mkdir()
    (put / "METADATA").write_text("Metadata-Version: 2.1\nName: moonkind\nVersion: 1.0\n")
    (put / "entry_points.txt").write_text("[plantain.sources]\nmoon-chests = moon_kind:KIND\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "catalogue"
    code, text, _ = ingest("moon-chests", hostile, "--modality", "chest_xray", "--to", out, "--json")
    assert (code, json.loads(text)["images"]) == (0, 7)
    assert (out / "rejected.csv").read_text().splitlines()[1].startswith("Moon,")
    assert "moon-chests" in ingest("--list", "--json")[1]


def added(catalogue: Path) -> bool:
    """Return True if at least one image is stored in the catalogue."""
    try:
        with Catalogue.open(catalogue) as opened:
            return len(opened) > 0
    except InputError:  # not created yet
        return False


def test_interrupted_ingest_keeps_its_images_and_prints_how_to_resume(tmp_path: Path) -> None:
    folder = tmp_path / "scans" / "normal"
    folder.mkdir(parents=True)
    one = io.BytesIO()
    noise_image(1).save(one, "JPEG", quality=95)
    for number in range(600):
        # A comment makes each file another file at the price of a copy.
        comment = b"\xff\xfe\x00\x06%04d" % number
        (folder / f"{number}.jpg").write_bytes(one.getvalue()[:2] + comment + one.getvalue()[2:])
    out = tmp_path / "catalogue"
    command = [sys.executable, "-m", "plantain", "ingest", "folder", str(folder.parent)]
    command += ["--modality", "chest_xray", "--to", str(out), "--skip-text"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not added(out):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 3, errors
    assert "plantain ingest folder" in errors
    with Catalogue.open(out) as catalogue:
        images = list(catalogue.images())
        assert 0 < len(images) < 600
        for image in images:
            catalogue.read(image)
