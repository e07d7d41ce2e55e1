"""Originals with all their grey levels: values of the file itself, its windows and units, and when there are none."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import cv2
import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file

from plantain.cli import main
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.pixels.dicom.pictures import decode_dicom
from plantain.pixels.prepare import prepare
from plantain.pixels.wide import CURVED, packed, read_wide
from plantain.review.freezing import Wanted, new_study
from plantain.review.ratings import Ratings
from plantain.review.room.desk import Desk
from plantain.review.sources import Material, SourceFile, with_originals
from plantain.review.study import ORIGINAL, PICTURES, ReaderTask, open_study
from plantain.rubrics import MED_BANANA

pytest.importorskip("fastapi")


def computed_tomogram(side: int = 256) -> tuple[bytes, np.ndarray]:
    """A CT slice of 12 bits with a soft tissue window: pydicom's own file, enlarged; and its Hounsfield units."""
    dataset = pydicom.dcmread(get_testdata_file("CT_small.dcm"))
    stored = cv2.resize(dataset.pixel_array.astype(np.float32), (side, side)).astype(np.int16)
    dataset.Rows = dataset.Columns = side
    dataset.PixelData = stored.tobytes()
    dataset.WindowCenter, dataset.WindowWidth = [40, -500], [400, 1500]
    dataset.WindowCenterWidthExplanation = ["SOFT", "LUNG"]
    dataset.RescaleIntercept, dataset.RescaleSlope = -1024, 1
    buffer = io.BytesIO()
    dataset.save_as(buffer)
    return buffer.getvalue(), stored.astype(float) - 1024


def test_levels_are_hounsfield_units_and_the_window_is_the_files_own():
    data, units = computed_tomogram()
    prepared, geometry = prepare(decode_dicom(data, "ct"), 256)
    wide = read_wide(data, "ct", 0, geometry, prepared)
    assert wide is not None and wide.unit == "HU" and wide.step == 1
    assert np.array_equal(wide.low + wide.step * wide.levels.astype(float), units)
    # DICOM PS3.3 C.11.2.1.2: centre 40 and width 400 reach from 40 - 0.5 - 199.5 = -160 to 239
    assert wide.black == pytest.approx(-160, abs=8) and wide.white == pytest.approx(239, abs=8)
    assert wide.windows == (("SOFT", 400.0, 40.0), ("LUNG", 1500.0, -500.0))
    bytes_of = packed(wide).astype(int)
    assert np.array_equal(bytes_of[..., 0] * 256 + bytes_of[..., 1], wide.levels)


def test_levels_lie_where_the_prepared_picture_has_them():
    """Padded and shrunk as the picture was: at each pixel the window of its value is the prepared grey."""
    values = np.zeros((300, 200), np.uint16)
    values[:] = np.linspace(100, 3000, 200).astype(np.uint16) + 3 * np.arange(300, dtype=np.uint16)[:, None]
    ok, png = cv2.imencode(".png", values)
    data = png.tobytes()
    prepared, geometry = prepare(decode_untrusted(data, "png"), 150)
    wide = read_wide(data, "png", 0, geometry, prepared)
    assert ok and wide is not None and wide.levels.shape == (150, 150) and wide.unit == "stored values"
    real = wide.low + wide.step * wide.levels.astype(float)
    inside = slice(geometry.left, geometry.left + geometry.inner_width)
    shown = 255 * (real - wide.black) / (wide.white - wide.black)
    assert np.abs(shown[:, inside] - prepared[:, inside, 0]).max() < 4
    assert (wide.levels[:, : geometry.left] == 0).all()


def film(function: str = "LINEAR") -> bytes:
    """A radiograph of 12 bits, linear in dose and stored dark where dense, with noise of its own."""
    dataset = pydicom.dcmread(io.BytesIO(computed_tomogram()[0]))
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:256, :256] / 255
    dose = 60 * np.exp(3.6 * (0.6 * x + 0.4 * np.sin(3 * y) ** 2)) + rng.normal(0, 2, (256, 256))
    dataset.Modality, dataset.PhotometricInterpretation = "CR", "MONOCHROME1"
    dataset.PixelData = dose.clip(1, 4095).astype(np.int16).tobytes()
    dataset.RescaleIntercept, dataset.VOILUTFunction = 0, function
    dataset.WindowCenter, dataset.WindowWidth = 900, 1200
    buffer = io.BytesIO()
    dataset.save_as(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(("how", "function"), [("film", "LINEAR"), ("file", "SIGMOID")])
def test_behind_a_films_curve_levels_are_the_pictures_own_grey_with_fractions(how: str, function: str):
    data = film(function)
    prepared, geometry = prepare(decode_dicom(data, "cr", how=how), 256)
    wide = read_wide(data, "cr", 0, geometry, prepared)
    assert wide is not None and wide.unit == CURVED and (wide.black, wide.white) == (0, 255)
    made = wide.low + wide.step * wide.levels.astype(float)
    inside = (prepared[..., 0] > 10) & (prepared[..., 0] < 245)
    assert np.abs(made - prepared[..., 0])[inside].max() < 2
    assert len(np.unique(made[inside])) > 2 * len(np.unique(prepared[..., 0]))
    # order of the file's own values, which the picture's 256 levels have lost: dense is bright (MONOCHROME1)
    stored = pydicom.dcmread(io.BytesIO(data)).pixel_array
    order = np.argsort(stored[inside], kind="stable")
    assert (np.diff(made[inside][order]) <= 1e-9).all()


def test_what_is_no_linear_window_of_the_file_has_no_wide_original():
    data, _ = computed_tomogram()
    prepared, geometry = prepare(decode_dicom(data, "ct"), 256)
    with pytest.raises(BadImage, match="neither a window nor a curve"):
        read_wide(data, "ct", 0, geometry, np.ascontiguousarray(prepared[::-1]))
    ok, png = cv2.imencode(".png", prepared[..., 0])
    assert ok and read_wide(png.tobytes(), "8 bits", 0, geometry, prepared) is None


def test_a_study_serves_them_where_the_original_stands_by_its_name(tmp_path: Path):
    data, units = computed_tomogram()
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.dcm").write_bytes(data)
    (tmp_path / "films" / "notes.txt").write_text("nothing")
    prepared, geometry = prepare(decode_dicom(data, "ct"), 256)
    edited = prepared.copy()
    cv2.circle(edited, (100, 100), 20, (255, 255, 255), -1)
    one = Material(
        "t", "i", "all", "p", "ct", "nodule", "add", "Add it.", {ORIGINAL: lambda: prepared, "m": lambda: edited},
        spacing_mm=0.66, file=SourceFile(hashlib.sha256(data).hexdigest(), 0, geometry),
    )  # fmt: skip
    found = with_originals([one], tmp_path / "films")
    wanted = Wanted("Wide", 0, (ReaderTask.ACCEPT, ReaderTask.REAL_OR_EDITED), MED_BANANA)
    study = open_study(new_study(tmp_path / "s", found, ["x"], wanted).folder)
    ratings = Ratings.open(study)
    reader, _ = ratings.invite()
    desk = Desk(study, ratings, reader)
    case = desk.case("b1", 0)
    assert case["wide"]["unit"] == "HU" and case["spacing_mm"] == 0.66 and "a.dcm" not in json.dumps(case)
    served = cv2.imread(str(study.folder / PICTURES / desk.picture(case["wide"]["url"].split("/")[-1])))
    levels = served[..., 2].astype(float) * 256 + served[..., 1]  # OpenCV reads blue first
    assert np.array_equal(case["wide"]["low"] + case["wide"]["step"] * levels, units)
    desk.answer(
        case["item"], "k" * 8, {"criteria": {name: True for name, _ in case["criteria"]}, "codes": []}, 1
    )
    desk.close("b1")
    for position in (0, 1):  # which of the two is real must not be told by how many grey levels it has
        assert desk.case("b2", position)["wide"] is None
    ratings.close()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("original,edited,edited\na.png,b.png,c.png\n", "'edited': stands twice"),
        ("original;edited\na.png;\n", "line 2: edited is empty"),
        ("original,edited\na.png\n", "line 2: edited is empty"),  # a traceback
        (f"original,edited\na.png,{'b' * 200_000}\n", "field larger than"),  # a traceback
        (
            "original,edited\na\x1b]0;sent\x07.png,b.png\n",
            "a\\x1b]0;sent\\x07.png: no such file",
        ),  # a terminal's title
    ],
)
def test_pairs_that_are_no_table_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
):
    (tmp_path / "pairs.csv").write_text(text)
    assert (
        main(
            ["review", "new", str(tmp_path / "s"), "--from", str(tmp_path / "pairs.csv"), "--task", "accept"]
        )
        == 2
    )
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == 1


def test_a_folder_without_the_files_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "pairs.csv").write_text("original,edited\na.png,b.png\n")
    (tmp_path / "none").mkdir()
    words = ["review", "new", str(tmp_path / "s"), "--from", str(tmp_path / "pairs.csv"), "--task", "accept"]
    for folder, line in (("none", "holds none of the files"), ("nowhere", "no such folder")):
        assert main([*words, "--originals", str(tmp_path / folder)]) == 2
        err = capsys.readouterr().err
        assert line in err and err.count("\n") == 1
