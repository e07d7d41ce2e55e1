from __future__ import annotations

from pathlib import Path

import pytest

from plantain.findings import load_taxonomy
from plantain.records import InputError, Licence
from plantain.sources.odir_5k import OdirReader
from plantain.sources.registry import Refused, SourceOptions
from sources.published import csv_bytes, jpeg, put, scanned, xlsx_bytes

TAXONOMY = load_taxonomy()
PATIENT = ["ID", "Patient Age", "Patient Sex", "Left-Fundus", "Right-Fundus"]
PATIENT += ["Left-Diagnostic Keywords", "Right-Diagnostic Keywords", *"NDGCAHMO"]
EYE = [*PATIENT, "filepath", "labels", "target", "filename"]
DEAD = "../input/ocular-disease-recognition-odir5k/ODIR-5K/Training Images/"


def patient(number: int, left: str, right: str, letters: str) -> list[object]:
    flags = [int(letter in letters) for letter in "NDGCAHMO"]
    return [number, 60, "Female", f"{number}_left.jpg", f"{number}_right.jpg", left, right, *flags]


PATIENTS = [
    patient(0, "cataract", "normal fundus", "C"),
    patient(1, "moderate non proliferative retinopathy，hypertensive retinopathy", "normal fundus", "DH"),
    patient(2, "lens dust，normal fundus", "low image quality，glaucoma", "G"),
    patient(3, "drusen", "wet age-related macular degeneration, pathological myopia", "AMO"),
    patient(4, "suspected glaucoma", "diabetic retinopathy", "D"),  # G is denied by the patient's letters
    patient(5, "normal fundus", "no fundus image", "N"),
    patient(7, "normal fundus", "normal fundus", "N"),  # its images are missing
]
LABELS = {"0_left": "C", "0_right": "N", "1_left": "D", "1_right": "N", "2_left": "N", "2_right": "G"}
LABELS |= {"3_left": "O", "3_right": "A", "4_left": "G", "4_right": "D", "5_left": "N", "5_right": "O"}


def eyes() -> list[list[object]]:
    rows = []
    for row in PATIENTS:
        for side in ("right", "left"):
            key = f"{row[0]}_{side}"
            if key in LABELS:
                target = [int(letter == LABELS[key]) for letter in "NDGCAHMO"]
                rows.append([*row, f"{DEAD}{key}.jpg", f"['{LABELS[key]}']", target, f"{key}.jpg"])
    return rows


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write the published folders: originals, the 512 pixel copies, testing images without labels."""
    for number in range(7):
        for seed, side in enumerate(("left", "right")):
            data = jpeg("fundus", 10 * number + seed, grey=False)
            put(tmp_path / "ODIR-5K/ODIR-5K/Training Images" / f"{number}_{side}.jpg", data)
            put(tmp_path / "preprocessed_images" / f"{number}_{side}.jpg", data[:-2] + b"\0\xff\xd9")
    put(tmp_path / "ODIR-5K/ODIR-5K/Testing Images/1000_left.jpg", b"x")
    return tmp_path


def read(root: Path, **settings: str) -> OdirReader:
    return OdirReader(SourceOptions(root, "", Licence.UNKNOWN, settings), TAXONOMY)


def labels(reader: OdirReader) -> dict[str, tuple[str, ...]]:
    return {key: entry.image.labels for key, entry in scanned(reader)[0].items()}


def test_labels_are_of_the_eye_not_of_the_patient(tree: Path) -> None:
    put(tree / "full_df.csv", csv_bytes([EYE, *eyes()]))
    entries, refused, left_out = scanned(read(tree))
    found = {key: entry.image.labels for key, entry in entries.items()}
    # 0_right is normal although its patient has C = 1, as in the dataset's own first row.
    assert found == {
        "0_left": ("Cataract",),
        "0_right": ("normal",),
        "1_left": ("Diabetes",),
        "1_right": ("normal",),
        "2_left": ("normal",),
        "3_right": ("AMD",),
        "4_left": ("Glaucoma",),
        "4_right": ("Diabetes",),
        "5_left": ("normal",),
    }
    images = {key: entry.image for key, entry in entries.items()}
    assert images["0_left"].group == images["0_right"].group == "patient:0"
    assert (images["0_left"].laterality, images["0_right"].laterality) == ("left", "right")
    assert images["2_left"].note == "quality: lens dust"
    assert images["1_left"].note == "keywords also name Hypertension"
    assert all(image.split == "train" for image in images.values())
    assert "Training Images" in str(entries["0_left"].path)
    reasons = {Path(name).name: reason for name, reason in refused.items()}
    assert "low image quality" in reasons["2_right.jpg"]
    assert "drusen" in reasons["3_left.jpg"]
    assert "no fundus image" in reasons["5_right.jpg"]
    assert reasons["6_left.jpg"] == "no row of full_df.csv names it, so it has no label"
    assert left_out == {"testing images: their labels are not public": 1}


@pytest.mark.parametrize("form", ["xlsx", "csv"])
def test_annotation_sheet_gives_labels_by_keyword(tree: Path, form: str) -> None:
    rows = [PATIENT, *PATIENTS]
    name = "ODIR-5K/ODIR-5K/data.xlsx" if form == "xlsx" else "ODIR-5K_Training_Annotations(Updated)_V2.csv"
    put(tree / name, xlsx_bytes(rows) if form == "xlsx" else csv_bytes(rows, bom=True))
    entries, refused, _ = scanned(read(tree))
    assert {key: entry.image.labels for key, entry in entries.items()} == {
        "0_left": ("Cataract",),
        "0_right": ("normal",),
        "1_left": ("Diabetes", "Hypertension"),  # parted by the full-width comma
        "1_right": ("normal",),
        "2_left": ("normal",),
        "3_right": ("AMD", "Myopia"),
        "4_right": ("Diabetes",),
        "5_left": ("normal",),
    }
    reasons = {Path(file).name: reason for file, reason in refused.items()}
    assert "which the patient's letters deny" in reasons["4_left.jpg"]
    assert reasons["7_left.jpg"].endswith("but it is not there")


def test_the_archive_as_kaggle_packs_it(tree: Path, tmp_path: Path) -> None:
    """Windows line ends, a byte order mark, capitals, litter, zeros before numbers, cells that Excel made decimal."""
    rows = [["0" + str(row[0]) if row[0] == 1 else f"{row[0]}.0", *row[1:]] for row in eyes()]
    put(tree / "full_df.csv", csv_bytes([EYE, *rows], bom=True).replace(b"\n", b"\r\n"))
    put(tree / "._full_df.csv", b"of a Mac")
    put(tree / "ODIR-5K/ODIR-5K/Training Images/Thumbs.db", b"x")
    put(tree / "ODIR-5K/ODIR-5K/Training Images/notes.txt", b"x")
    put(tree / "__MACOSX/ODIR-5K/Training Images/._0_left.jpg", b"x")
    for name in ("0_left", "3_right"):
        path = tree / "ODIR-5K/ODIR-5K/Training Images" / f"{name}.jpg"
        path.rename(path.with_suffix(".JPG"))
    found = labels(read(tree))
    assert len(found) == 9
    assert (found["0_left"], found["3_right"]) == (("Cataract",), ("AMD",))


def test_a_normal_label_that_contradicts_the_keywords_is_refused(tree: Path) -> None:
    rows = eyes()
    rows[1][-3] = "['N']"  # 0_left, whose keyword is cataract
    rows += [rows[0], ["x", *rows[2][1:]], [*rows[3][:-3], "['Z']", [], "1_left.jpg"]]
    put(tree / "full_df.csv", csv_bytes([EYE, *rows]))
    entries = list(read(tree).scan())
    refused = [item for item in entries if isinstance(item, Refused)]
    reasons = [f"{item.field}: {item.reason}".removeprefix(": ") for item in refused]
    assert "labelled normal, but its keywords say cataract" in reasons
    assert "the same eye has two rows" in reasons
    assert "filename: belongs to another patient than ID x" in reasons
    assert "labels: \"['Z']\" is not a letter" in reasons


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({}, "no image named like 0_left.jpg"),
        ({"0_left.jpg": b"x"}, "no table with the labels"),
        ({"0_left.jpg": b"x", "full_df.csv": b"ID,labels\n0,['N']\n"}, "no table with the labels"),
    ],
)
def test_another_folder_is_refused_in_one_line(tmp_path: Path, files: dict[str, bytes], fault: str) -> None:
    for name, data in files.items():
        put(tmp_path / name, data)
    with pytest.raises(InputError, match=fault):
        read(tmp_path)
