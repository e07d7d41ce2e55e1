from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pixels.dicom.data import made
from plantain.findings import load_taxonomy
from plantain.records import InputError, Licence
from plantain.sources.mimic_cxr import COLUMNS, MimicReader, labels_of
from plantain.sources.registry import Refused, SourceOptions
from sources.published import csv_gz, jpeg, put, scanned

TAXONOMY = load_taxonomy()
METADATA = ["dicom_id", "subject_id", "study_id", "PerformedProcedureStepDescription", "ViewPosition", "Rows"]
METADATA += ["Columns", "StudyDate", "StudyTime", "ProcedureCodeSequence_CodeMeaning"]
METADATA += ["ViewCodeSequence_CodeMeaning", "PatientOrientationCodeSequence_CodeMeaning"]


def dicom_id(number: int) -> str:
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    return "-".join(digest[at : at + 8] for at in range(0, 40, 8))


class Tree:
    """A MIMIC-CXR-JPG folder: add every study with its images, then write the tables."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.metadata: list[list[object]] = []
        self.splits: list[list[object]] = []
        self.labels: list[list[object]] = []
        self.number = 0

    def study(
        self,
        subject: int,
        study: int,
        marks: dict[str, str] | None,
        views: str = "PA",
        split: str = "train",
        position: str = "Erect",
        ending: str = ".jpg",
        data: bytes | None = None,
    ) -> list[str]:
        ids = []
        for view in views.split(","):
            name = dicom_id(self.number)
            size_and_time = (3056, 2544, 21800506, 213014.531)
            row = [name, subject, study, "CHEST (PA AND LAT)", view, *size_and_time, "", "", position]
            self.metadata.append(row)
            self.splits.append([name, study, subject, split])
            if data != b"":
                path = self.root / f"files/p{str(subject)[:2]}/p{subject}/s{study}/{name}{ending}"
                put(path, data or jpeg("chest_xray", self.number))
            self.number += 1
            ids.append(name)
        if marks is not None:
            self.labels.append([subject, study, *(marks.get(column, "") for column in COLUMNS)])
        return ids

    def write(self, **settings: str) -> MimicReader:
        put(self.root / "mimic-cxr-2.0.0-metadata.csv.gz", csv_gz([METADATA, *self.metadata]))
        header = ["dicom_id", "study_id", "subject_id", "split"]
        put(self.root / "mimic-cxr-2.0.0-split.csv.gz", csv_gz([header, *self.splits]))
        put(
            self.root / "mimic-cxr-2.0.0-chexpert.csv.gz",
            csv_gz([["subject_id", "study_id", *COLUMNS], *self.labels]),
        )
        return self.open(**settings)

    def open(self, **settings: str) -> MimicReader:
        return MimicReader(SourceOptions(self.root, settings=settings), TAXONOMY)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "mimic-cxr-jpg")


@pytest.fixture
def usual(tree: Tree) -> Tree:
    tree.study(
        10000032, 50000001, {"Pneumothorax": "1.0", "Support Devices": "1.0", "Edema": "0.0"}, "PA,LATERAL"
    )
    tree.study(10000032, 50000002, {"No Finding": "1.0"}, "AP", position="Recumbent")
    tree.study(10000033, 50000003, {"Pneumonia": "1.0"}, "PA", "test")
    tree.study(10000034, 50000004, {"Edema": "-1.0", "Cardiomegaly": "1.0"}, "AP,PA", "validate")
    tree.study(10000035, 50000005, {"Edema": "-1.0"}, "PA", position="")
    tree.study(10000036, 50000006, {"Edema": "0.0"}, "PA")
    tree.study(10000037, 50000007, {"Support Devices": "1.0"}, "PA")
    tree.study(10000038, 50000008, None, "PA")
    tree.study(10000039, 50000009, {"Pleural Other": "1.0"}, ",LL")
    return tree


def labels(reader: MimicReader) -> dict[str, tuple[str, ...]]:
    return {key: entry.image.labels for key, entry in scanned(reader)[0].items()}


def test_frontal_images_with_their_studys_labels(usual: Tree) -> None:
    entries, refused, left_out = scanned(usual.write())
    several = [f"s50000004_{row[0]}" for row in usual.metadata if row[2] == 50000004]
    assert {key: entry.image.labels for key, entry in entries.items()} == {
        "s50000001": ("Pneumothorax",),
        "s50000002": ("No Finding",),
        "s50000003": ("Lung Opacity", "Pneumonia"),
        **dict.fromkeys(several, ("Cardiomegaly",)),
    }
    assert not refused
    assert left_out == {
        "no finding present, and not labelled No Finding": 3,
        "no label for its study": 1,
        "not frontal: ViewPosition LATERAL": 1,
        "not frontal: ViewPosition LL": 1,
        "not frontal: ViewPosition blank": 1,
    }
    image = entries["s50000002"].image
    assert (image.view, image.projection, image.position) == ("frontal", "AP", "supine")
    assert "recorded as recumbent" in image.note
    assert entries["s50000001"].image.group == image.group == "patient:10000032"
    assert (entries["s50000001"].image.projection, entries["s50000001"].image.position) == ("PA", "erect")
    assert entries["s50000003"].image.split == "test"
    assert entries["s50000003"].image.note == "implied, not mentioned: Lung Opacity"
    assert "not counted: Edema" in entries[several[0]].image.note
    assert all(entry.image.licence is Licence.CREDENTIALED for entry in entries.values())


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        ({"Pneumonia": "1"}, ("Pneumonia",)),
        ({"Pneumonia": "1", "Lung Opacity": "1"}, ("Pneumonia",)),
        ({"Pneumonia": "1", "Edema": "1"}, ()),
        ({"Pneumonia": "1", "Edema": "-1"}, ()),
        ({"No Finding": "1", "Support Devices": "1"}, ("No Finding",)),
    ],
)
def test_single_disease_selection(marks: dict[str, str], wanted: tuple[str, ...]) -> None:
    code = {"1": "+", "0": "-", "-1": "?", "": " "}
    row = "".join(code[marks.get(column, "")] for column in COLUMNS)
    selected = labels_of(row, TAXONOMY, single=True)
    assert selected.labels == wanted
    assert bool(selected.left_out) == (not wanted)


def test_dicom_files_have_the_pixel_size_of_their_header(tree: Tree) -> None:
    """PS3.3, C.7.6.3.1.7 and 10.7.1.1: each pair has the vertical number first."""
    wanted = {}
    for study, (field, spacing, aspect) in {
        50000001: ("PixelAspectRatio", None, 2.0),
        50000002: ("ImagerPixelSpacing", 0.15, 2.0),
    }.items():
        stated = [2, 1] if field == "PixelAspectRatio" else [0.3, 0.15]
        tree.study(10000032, study, {"Edema": "1.0"}, ending=".dcm", data=made(**{field: stated}))
        wanted[f"s{study}"] = (spacing, aspect)
    tree.study(10000032, 50000003, {"Edema": "1.0"}, ending=".dcm", data=b"no DICOM")
    entries, refused, _ = scanned(tree.write())
    assert {key: (entry.image.spacing_mm, entry.aspect) for key, entry in entries.items()} == wanted
    assert list(refused.values()) == ["not a DICOM file"]


def test_faulty_rows_and_missing_files_are_one_line_each(usual: Tree) -> None:
    usual.metadata.append(["../../../etc/passwd", 10000040, 50000040, "", "PA", 1, 1, "", "", "", "", ""])
    usual.metadata.append([dicom_id(900), "1000", 50000041, "", "PA", 1, 1, "", "", "", "", ""])
    usual.study(10000042, 50000042, {"Edema": "1.0"}, data=b"")
    usual.study(10000043, 50000043, {"Edema": "1.0"})
    usual.splits.pop()
    usual.labels.append([10000044, 50000044, "2", *("" for _ in COLUMNS[1:])])
    usual.labels.append([10000032, 50000001, *("1.0" if column == "Edema" else "" for column in COLUMNS)])
    rows = len(usual.labels)
    refused = [item for item in usual.write().scan() if isinstance(item, Refused)]
    assert sorted((item.field, item.reason) for item in refused) == [
        ("", "is not there, neither as .jpg nor as .dcm"),
        ("Atelectasis", "'2' is none of 1, 0, -1 and blank"),
        ("dicom_id", "not five groups of eight hexadecimal digits"),
        ("dicom_id", "the split table does not name it"),
        ("study_id", "two rows of this study differ in their labels; the first counts"),
        ("subject_id", "not eight digits"),
    ]
    assert {item.row for item in refused if item.field in ("Atelectasis", "study_id")} == {rows, rows + 1}


def test_mismatched_files_and_tables_are_refused_in_one_line(usual: Tree) -> None:
    with pytest.raises(InputError, match="is credentialed"):
        MimicReader(SourceOptions(usual.root, licence=Licence.OPEN), TAXONOMY)
    with pytest.raises(InputError, match=r"mimic-cxr-2.0.0-metadata.csv.gz is not there"):
        usual.open()
    usual.write()
    with pytest.raises(InputError, match="--set per_class=many: a whole number"):
        usual.open(per_class="many")
