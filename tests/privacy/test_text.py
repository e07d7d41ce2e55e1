"""Burned-in text, read in real images: names are found, markers are known, clean images give nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from pydicom.data import get_testdata_file

from fakes.samples import package_samples, sample_of
from pixels.dicom.data import decode_dicom
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source, prepare
from plantain.privacy.faces import photographed_faces
from plantain.privacy.small_text import small_texts
from plantain.privacy.text import TextKind, TextReader, classify, text_changes
from plantain.sources.samples import LOOKED_AT


def pydicom_file(name: str) -> Path:
    path = get_testdata_file(name, download=False)
    if path is None:
        pytest.skip("pydicom-data is not installed")
    return Path(str(path))


def shown(path: Path) -> np.ndarray:
    return prepare(decode_dicom(path.read_bytes(), path.name))[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("L", "marker"),
        ("AP SEMI-ERECT", "marker"),
        ("特", "stray"),
        ("HN", "stray"),
        ("TIS0.4 MI 1.4", "device"),
        ("5/25/2011", "date"),
        ("12 MAR 2019", "date"),
        ("1987", "date"),
        ("00047431395", "number"),
        ("ZZZDOWNTIME,MARY", "name"),
        ("山田太郎", "name"),
        ("F 45Y", "other"),
    ],
)
def test_classify_returns_the_kind_of_a_text(text: str, kind: str) -> None:
    assert classify(text) is TextKind(kind)
    assert TextKind(kind).identifying == (kind in ("date", "number", "name", "other"))


def test_ultrasound_with_a_hospital_name_is_suspicious(reader: TextReader) -> None:
    texts = reader.read(shown(pydicom_file("US1_UNCR.dcm")))
    identifying = {text.text for text in texts if text.kind.identifying}
    assert "BAPTIST MED CTR" in identifying
    assert "+2:09:04" in identifying  # a time of day
    assert not any("MI" in text.text for text in texts if text.kind is TextKind.NAME)


@pytest.mark.slow
def test_clean_images_contain_no_identifying_text(reader: TextReader) -> None:
    images = {sample.image.id: sample.pixels for sample in package_samples()}
    # The records of the samples claim this; here the named files themselves are checked.
    assert {sample.image.source_sha256 for sample in package_samples()} == LOOKED_AT
    assert all(sample.image.text_checked for sample in package_samples())
    for name in ("693_UNCR.dcm", "MR2_UNCR.dcm", "CT_small.dcm", "MR_small.dcm"):
        images[name] = decode_dicom(pydicom_file(name).read_bytes(), name)
    assert len(images) >= 8
    for name, pixels in images.items():
        texts = (*reader.read(prepare(pixels)[0]), *small_texts(pixels, reader))
        assert [text.text for text in texts if text.kind.identifying] == [], name
        assert photographed_faces(pixels) == (), name


@pytest.mark.usefixtures("reader")
def test_nothing_is_downloaded_or_sent_to_the_maker_of_the_library(tmp_path: Path) -> None:
    """A process that cannot reach any network reads text; without the extra it names the reason.

    onnxruntime 1.32 stores events and an id of the machine in the home folder before it sends them.
    """
    unheard = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    surroundings = {name: value for name, value in os.environ.items() if name not in unheard}
    surroundings["HOME"] = str(tmp_path)
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import cv2, numpy as np\n"
        "from plantain.privacy.rapid_text import open_reader\n"
        "page = np.zeros((200, 600, 3), np.uint8)\n"
        "cv2.putText(page, 'MARY SMITH', (40, 120), cv2.FONT_HERSHEY_SIMPLEX, 2, (255,) * 3, 4)\n"
        "print([text.text for text in open_reader().read(page)])\n"
        "for name in [name for name in sys.modules if name.startswith('rapidocr')]: del sys.modules[name]\n"
        "sys.modules['rapidocr'] = None\n"
        "from plantain.privacy.rapid_text import why_no_reader\n"
        "print(why_no_reader(), open_reader())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=surroundings, capture_output=True, text=True, check=True
    )
    assert not [path for path in tmp_path.rglob("*") if "Microsoft" in path.parts]
    read, without = done.stdout.splitlines()
    assert "MARY SMITH" in read
    assert without == "rapidocr is not installed (in plantain's clone: pip install -e '.[ocr]') None"


def lettered(pixels: np.ndarray, *words: tuple[str, int, int]) -> np.ndarray:
    drawn = pixels.copy()
    for text, x, y in words:
        cv2.putText(drawn, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (240,) * 3, 4, cv2.LINE_AA)
    return drawn


def edited(pixels: np.ndarray) -> np.ndarray:
    return decode(encode_jpeg(pixels))


RIGHT, PORTABLE = ("R", 60, 120), ("PORTABLE", 700, 990)


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    chest = sample_of("chest_xray")
    return prepare(chest.pixels)[0]


@pytest.fixture(scope="module")
def original(plain: np.ndarray) -> np.ndarray:
    return decode(encode_source(lettered(plain, RIGHT, PORTABLE)))


def test_edits_that_keep_the_text_report_no_change(reader: TextReader, original: np.ndarray) -> None:
    y, x = np.mgrid[:1024, :1024]
    opacity = 70.0 * np.exp(-((x - 380.0) ** 2 + (y - 560.0) ** 2) / 9000.0)
    lesion = np.clip(original + opacity[:, :, None], 0, 255).astype(np.uint8)
    noise = np.random.default_rng(0).normal(0.0, 5.0, original.shape)
    noisy = np.clip(original + noise, 0, 255).astype(np.uint8)
    darker = (original * 0.85 + 10).astype(np.uint8)
    for after in (original, lesion, noisy, darker):
        assert text_changes(original, edited(after), reader) == ()


def test_a_swapped_marker_is_reported(reader: TextReader, plain: np.ndarray, original: np.ndarray) -> None:
    after = edited(lettered(plain, ("L", 60, 120), PORTABLE))
    (change, *_) = text_changes(original, after, reader)
    assert (change.added, change.marker) == (False, "R")


def test_a_moved_marker_is_reported(reader: TextReader, plain: np.ndarray, original: np.ndarray) -> None:
    after = edited(lettered(plain, ("R", 900, 120), PORTABLE))
    assert {(change.added, change.marker) for change in text_changes(original, after, reader)} >= {
        (False, "R")
    }


def test_drawn_text_is_reported_without_its_words(reader: TextReader, original: np.ndarray) -> None:
    after = edited(lettered(original, ("JOHN DOE", 300, 90)))
    (change,) = text_changes(original, after, reader)
    assert (change.added, change.marker) == (True, "")
    assert "JOHN" not in str(change)
    assert 250 < change.box.left < 350
