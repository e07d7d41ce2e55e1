"""Tables as published datasets have them: the patient of an image is known or reported as unknown, never dropped.

Headers and first rows are those of the published files, as their pages and the programs that read them show them; the
file next to each row is the place of its image in the published layout.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.catalogue.ingest import Ingested
from plantain.cli.ingest import group_remarks, table_line
from plantain.findings import load_taxonomy
from plantain.records import InputError
from plantain.sources.label_table import LabelTable
from plantain.sources.registry import BadRow, SourceOptions, TableRead

TAXONOMY = load_taxonomy()

PUBLISHED = [
    # NIH ChestX-ray14, Data_Entry_2017.csv (nihcc.app.box.com); images are in images_001/images and so on.
    (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
        "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],",
        "00000001_000.png,Cardiomegaly,0,1,58,M,PA,2682,2749,0.143,0.143,",
        "images_001/images/00000001_000.png",
        "Finding Labels",
        "Patient ID",
    ),
(
        "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Cardiomegaly,Edema",
        "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,",
        "train/patient00001/study1/view1_frontal.jpg",
        None,
        None,
    ),
(
        ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,ViewPosition_DICOM,Projection,"
        "MethodProjection,ReportID,Report,MethodLabel,Labels,Localizations",
        "0,20536686640136348236148679891455886468_k6ga29.png,0,20140915,20536686640136348236148679891455886468,"
        "839860488694292331637988235681460987,1930.0,F,POSTEROANTERIOR,PA,x,4765777,x,Physician,\"['normal']\",\"[]\"",
        "0/20536686640136348236148679891455886468_k6ga29.png",
        "Labels",
        "PatientID",
    ),
(
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max",
        "50a418190bc3fb1ef1633bf9678929b3,No finding,14,R11,,,,",
        "train/50a418190bc3fb1ef1633bf9678929b3.dicom",
        "class_name",
        None,
    ),
(
        "patientId,x,y,width,height,Target",
        "0004cfab-14fd-4e49-80ba-63a80b6bddd6,,,,,0",
        "stage_2_train_images/0004cfab-14fd-4e49-80ba-63a80b6bddd6.dcm",
        None,
        "patientId",
    ),
("BraTS21ID,MGMT_value", "00000,1", "00000/T1w/Image-1.dcm", None, "refused"),
(
        "dicom_id,study_id,subject_id,split",
        "02aa804e-bde0afdd-112c0b34-7bc16630-4e384014,50414267,10000032,train",
        "files/p10/p10000032/s50414267/02aa804e-bde0afdd-112c0b34-7bc16630-4e384014.jpg",
        None,
        "subject_id",
    ),
(
        "lesion_id,image_id,dx,dx_type,age,sex,localization,dataset",
        "HAM_0000118,ISIC_0027419,bkl,histo,80.0,male,scalp,vidir_modern",
        "HAM10000_images_part_1/ISIC_0027419.jpg",
        "dx",
        "lesion_id",
    ),
(
        "Image Data ID,Subject,Group,Sex,Age,Visit,Modality,Description,Type,Acq Date,Format,Downloaded",
        "I251187,153_S_4172,AD,M,76,v02,MRI,MPRAGE,Original,8/24/2011,DCM,",
        "ADNI/153_S_4172/I251187.nii.gz",
        None,
        "Subject",
    ),
(
        "participant_id\tfilename\tdiagnosis",
        "sub-01\tsub-01/anat/sub-01_T1w.nii.gz\tnormal",
        "sub-01/anat/sub-01_T1w.nii.gz",
        "diagnosis",
        "participant_id",
    ),
("Aufnahme;Patienten-ID;Urteil", "a.png;4711;normal", "a.png", None, "refused"),
]  # fmt: skip


def opened(
    folder: Path, header: str, rows: list[str], files: list[str], columns: dict[str, str] | None = None
) -> LabelTable:
    (folder / "labels.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return LabelTable(folder, TAXONOMY, files, SourceOptions(folder, columns=columns or {}))


def read(*args: object, **more: object) -> TableRead:
    found = opened(*args, **more).read  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("header", "row", "file", "labels", "group"), PUBLISHED, ids=lambda text: str(text)[:24]
)
def test_no_published_table_makes_a_catalogue_without_groups_silently(
    tmp_path: Path, header: str, row: str, file: str, labels: str | None, group: str | None
) -> None:
    if group == "refused":
        with pytest.raises(InputError, match="no column names the files; name it with --column file=NAME"):
            opened(tmp_path, header, [row], [file])
        return
    table = read(tmp_path, header, [row], [file])
    assert (table.files, table.columns.labels, table.columns.group) == (1, labels, group)
    ingested = Ingested(1, 0, [], ungrouped=table.files - table.grouped, tables=[table])
    remarks = list(group_remarks(ingested, takes_table=True))
    if table.columns.group is None and not table.grouped:
        assert any("has no patient column" in line for line in remarks)
        assert table.columns.unused == () or any("--column group=NAME" in line for line in remarks)
    elif not table.columns.patient:
        assert any("not from a patient column" in line for line in remarks)
    for name in table.columns.unused[:12]:
        assert repr(name) in table_line(table)


def test_a_header_of_one_known_column_is_not_a_title(tmp_path: Path) -> None:
    for header, columns in (("image,,", {}), ("Aufnahme,,", {"file": "Aufnahme"})):
        table = opened(tmp_path, header, ["a.png,x,y", "b.png,x,y"], ["a.png", "b.png"], columns).read
        assert table is not None and (table.columns.file, table.files) == (header.strip(","), 2)


def test_a_column_can_be_named_and_a_wrong_name_suggests_the_nearest(tmp_path: Path) -> None:
    header, rows = "Aufnahme;Fall Nr.;Urteil", ["a.png;4711;Edema"]
    named = {"file": "Aufnahme", "group": "Fall Nr.", "labels": "Urteil"}
    table = read(tmp_path, header, rows, ["a.png"], named)
    assert (table.columns.group, table.columns.patient, table.columns.unused) == ("Fall Nr.", True, ())
    for wrong, complaint in (
        ({"group": "Fal Nr"}, "--column group='Fal Nr': .* has no such column; did you mean 'Fall Nr.'"),
        ({"patient": "Fall Nr."}, "--column patient: no such role"),
    ):
        with pytest.raises(InputError, match=complaint):
            opened(tmp_path, header, rows, ["a.png"], wrong)
    with pytest.raises(InputError, match="--column: no table to read it from"):
        (tmp_path / "labels.csv").unlink()
        LabelTable(tmp_path, TAXONOMY, [], SourceOptions(tmp_path, columns=named))


def test_several_rows_of_one_image_give_it_all_their_labels(tmp_path: Path) -> None:
    """As VinDr-CXR's train.csv, one row a box and reader, and RSNA's table, one row a box."""
    header = "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max"
    rows = [
        "aa11,Cardiomegaly,3,R8,1,2,3,4",
        "aa11,Pleural effusion,10,R9,1,2,3,4",
        "aa11,Cardiomegaly,3,R9,,,,",
    ]
    table = opened(tmp_path, header, rows, ["aa11.png"])
    assert table.of("aa11.png", "chest_xray").labels == ("Cardiomegaly", "Pleural Effusion")
    assert table.rejected(["aa11.png"]) == []


def test_placeholders_of_patients_are_none_and_a_query_is_not_a_label(tmp_path: Path) -> None:
    rows = ["a.png,Edema,NaN", "b.png,Edema,NULL", "c.png,Edema,7.0", "d.png,Edema?,7"]
    rows += ["e.png,Edema,anonymous", "f.png,Edema,-", "g.png,Edema,subject_0"]  # numbered from 0
    files = [row.partition(",")[0] for row in rows]
    table = opened(tmp_path, "file,labels,patient_id", rows, files)
    groups = [table.of(name, "chest_xray").group for name in files if name != "d.png"]
    assert groups == [None, None, "7", None, None, "subject_0"]
    with pytest.raises(BadRow, match=r"label 'Edema\?'"):
        table.of("d.png", "chest_xray")


def test_a_word_among_marks_rejects_its_image_and_not_the_column(tmp_path: Path) -> None:
    """As CheXpert's columns, 1, 0, -1 or empty, with one handwritten cell."""
    rows = ["a.png,1.0,,0", "b.png,perhaps,1,0", "c.png,-1,0,0.71"]
    files = ["a.png", "b.png", "c.png"]
    table = opened(tmp_path, "Image,Edema,Pneumonia,Pneumothorax", rows, files)
    assert [table.of(name, "chest_xray").labels for name in ("a.png", "c.png")] == [("Edema",), ()]
    with pytest.raises(BadRow, match=r"b.png: Edema 'perhaps' of labels.csv: 1 or 0") as caught:
        table.of("b.png", "chest_xray")
    assert (caught.value.row, caught.value.field) == (3, "Edema")
    assert table.read is not None and table.read.columns.marked == ("Edema", "Pneumonia")


def test_a_row_that_contradicts_another_is_rejected_with_row_and_field(tmp_path: Path) -> None:
    rows = [
        "a.png,Edema,p1,train",
        "a.png,Pneumonia,,test",
        "a.png,Edema,p2,",
        "b.png,normal,p3,,x,y",
        "c.png,,,",
    ]
    table = opened(tmp_path, "file,labels,patient,split", rows, ["a.png", "b.png"])
    row = table.of("a.png", "chest_xray")
    assert (row.labels, row.group, row.split) == (("Edema",), "p1", "train")
    assert [(one.name, one.row, one.field) for one in table.rejected(["a.png", "b.png"])] == [
        ("labels.csv", 5, ""),  # six cells under four columns
        ("a.png", 3, "split"),
        ("a.png", 4, "group"),
        ("c.png", 6, ""),  # no such image
    ]
