"""Tables as published datasets have them: whose an image is, is known or said to be unknown, never passed over.

Headers and first rows are those of the published files, as their pages and the programs that read them show them; the
file beside each row is where its picture lies in the published layout.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.catalogue.ingest import Ingested
from plantain.cli.ingest_table import group_remarks, table_line
from plantain.findings import load_taxonomy
from plantain.records import InputError
from plantain.sources.columns import patient_in_path
from plantain.sources.entries import BadRow, SourceOptions, TableRead
from plantain.sources.label_table import LabelTable

TAXONOMY = load_taxonomy()

PUBLISHED = [
    # NIH ChestX-ray14, Data_Entry_2017.csv (nihcc.app.box.com); pictures lie in images_001/images and so on.
    (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
        "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],",
        "00000001_000.png,Cardiomegaly,0,1,58,M,PA,2682,2749,0.143,0.143,",
        "images_001/images/00000001_000.png",
        "Finding Labels",
        "Patient ID",
    ),
    # CheXpert, train.csv (stanfordmlgroup.github.io): no such column; the patient is a folder.
    (
        "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Cardiomegaly,Edema",
        "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,",
        "train/patient00001/study1/view1_frontal.jpg",
        None,
        None,
    ),
    # PadChest, PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv (bimcv.cipf.es); the first column has no name.
    (
        ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,ViewPosition_DICOM,Projection,"
        "MethodProjection,ReportID,Report,MethodLabel,Labels,Localizations",
        "0,20536686640136348236148679891455886468_k6ga29.png,0,20140915,20536686640136348236148679891455886468,"
        "839860488694292331637988235681460987,1930.0,F,POSTEROANTERIOR,PA,x,4765777,x,Physician,\"['normal']\",\"[]\"",
        "0/20536686640136348236148679891455886468_k6ga29.png",
        "Labels",
        "PatientID",
    ),
    # VinDr-CXR, train.csv of the Kaggle competition: no patient at all.
    (
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max",
        "50a418190bc3fb1ef1633bf9678929b3,No finding,14,R11,,,,",
        "train/50a418190bc3fb1ef1633bf9678929b3.dicom",
        "class_name",
        None,
    ),
    # RSNA Pneumonia Detection, stage_2_train_labels.csv: one film a patient, called like the patient.
    (
        "patientId,x,y,width,height,Target",
        "0004cfab-14fd-4e49-80ba-63a80b6bddd6,,,,,0",
        "stage_2_train_images/0004cfab-14fd-4e49-80ba-63a80b6bddd6.dcm",
        None,
        "patientId",
    ),
    # RSNA-ASNR-MICCAI BraTS 2021 task 2, train_labels.csv: the id is a case's folder, not a file.
    ("BraTS21ID,MGMT_value", "00000,1", "00000/T1w/Image-1.dcm", None, "refused"),
    # Open-i (Indiana University), indiana_projections.csv: a report's number, which several films share.
    ("uid,filename,projection", "1,1_IM-0001-4001.dcm.png,Frontal", "1_IM-0001-4001.dcm.png", None, None),
    # Shenzhen and Montgomery tuberculosis sets, metadata.csv (NLM): one film a study.
    ("study_id,sex,age,findings", "CHNCXR_0001_0.png,Male,45yrs,normal", "CHNCXR_0001_0.png", "findings", None),
    # MIMIC-CXR-JPG, mimic-cxr-2.0.0-split.csv (physionet.org).
    (
        "dicom_id,study_id,subject_id,split",
        "02aa804e-bde0afdd-112c0b34-7bc16630-4e384014,50414267,10000032,train",
        "files/p10/p10000032/s50414267/02aa804e-bde0afdd-112c0b34-7bc16630-4e384014.jpg",
        None,
        "subject_id",
    ),
    # BRSET, labels_brset.csv (physionet.org).
    (
        "image_id,patient_id,camera,patient_age,comorbidities,diabetes_time_y,insuline,patient_sex,exam_eye,diabetes",
        "img00001,1,Canon CR,48.0,diabetes1,12,yes,1,1,yes",
        "fundus_photos/img00001.jpg",
        None,
        "patient_id",
    ),
    # ODIR-5K, full_df.csv of its Kaggle copy.
    (
        "ID,Patient Age,Patient Sex,Left-Fundus,Right-Fundus,N,D,filepath,labels,target,filename",
        "0,69,Female,0_left.jpg,0_right.jpg,0,0,../input/ODIR-5K/0_right.jpg,['N'],x,0_right.jpg",
        "preprocessed_images/0_right.jpg",
        "labels",
        None,
    ),
    # APTOS 2019, train.csv.
    ("id_code,diagnosis", "000c1434d8d7,2", "train_images/000c1434d8d7.png", "diagnosis", None),
    # IDRiD, a. IDRiD_Disease Grading_Training Labels.csv.
    (
        "Image name,Retinopathy grade,Risk of macular edema ,,,,,,,,,",
        "IDRiD_001,3,2,,,,,,,,,",
        "IDRiD_001.jpg",
        None,
        None,
    ),
    # RFMiD, RFMiD_Training_Labels.csv: here ID numbers the pictures.
    ("ID,Disease_Risk,DR,ARMD,MH", "1,1,1,0,0", "Training/1.png", None, None),
    # HAM10000, HAM10000_metadata (Harvard Dataverse): a lesion, not a patient.
    (
        "lesion_id,image_id,dx,dx_type,age,sex,localization,dataset",
        "HAM_0000118,ISIC_0027419,bkl,histo,80.0,male,scalp,vidir_modern",
        "HAM10000_images_part_1/ISIC_0027419.jpg",
        "dx",
        "lesion_id",
    ),
    # EMBED, EMBED_OpenData_metadata.csv (Emory).
    (
        "empi_anon,acc_anon,study_date_anon,anon_dicom_path,png_path,ViewPosition",
        "60696029,1,2014-01-01,/mnt/NAS2/mammo/anon_dicom/a.dcm,/mnt/NAS2/mammo/png/b.png,CC",
        "b.png",
        None,
        "empi_anon",
    ),
    # ADNI, a search of the Image and Data Archive: here Group is the diagnosis.
    (
        "Image Data ID,Subject,Group,Sex,Age,Visit,Modality,Description,Type,Acq Date,Format,Downloaded",
        "I251187,153_S_4172,AD,M,76,v02,MRI,MPRAGE,Original,8/24/2011,DCM,",
        "ADNI/153_S_4172/I251187.nii.gz",
        None,
        "Subject",
    ),
    # OASIS-2, oasis_longitudinal.csv: Group again is the diagnosis.
    (
        "Subject ID,MRI ID,Group,Visit,MR Delay,M/F,Hand,Age,EDUC,SES,MMSE,CDR,eTIV,nWBV,ASF",
        "OAS2_0001,OAS2_0001_MR1,Nondemented,1,0,M,R,87,14,2,27,0,1987,0.696,0.883",
        "OAS2_0001_MR1.png",
        None,
        "Subject ID",
    ),
    # TCIA, metadata.csv of the NBIA Data Retriever: a series' folder.
    (
        "Series UID,Collection,3rd Party Analysis,Data Description URI,Subject ID,Study UID,Modality,File Location",
        "1.3.6,LIDC-IDRI,NO,x,LIDC-IDRI-0001,1.3.7,CT,./LIDC-IDRI/LIDC-IDRI-0001/1-001.dcm",
        "LIDC-IDRI/LIDC-IDRI-0001/1-001.dcm",
        None,
        "Subject ID",
    ),
    # BIDS, participants.tsv joined with scans: tabs.
    (
        "participant_id\tfilename\tdiagnosis",
        "sub-01\tsub-01/anat/sub-01_T1w.nii.gz\tnormal",
        "sub-01/anat/sub-01_T1w.nii.gz",
        "diagnosis",
        "participant_id",
    ),
    # A clinic's own, from a German spreadsheet.
    ("Datei;Patienten-ID;Befund", "a.png;4711;normal", "a.png", "Befund", "Patienten-ID"),
    ("Aufnahme;Patienten-ID;Urteil", "a.png;4711;normal", "a.png", None, "refused"),
    # As people write by hand.
    ("File,Labels,Group", "a.png,Edema,7", "a.png", "Labels", "Group"),
    ("IMAGE NAME,LABEL,PATIENT", "a.png,Edema,7", "a.png", "LABEL", "PATIENT"),
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
def test_no_published_table_ends_in_a_catalogue_that_is_silently_ungrouped(
    tmp_path: Path, header: str, row: str, file: str, labels: str | None, group: str | None
) -> None:
    if group == "refused":
        with pytest.raises(
            InputError, match="no column names the files; say which does with --column file=NAME"
        ):
            opened(tmp_path, header, [row], [file])
        return
    table = read(tmp_path, header, [row], [file])
    assert (table.files, table.columns.labels, table.columns.group) == (1, labels, group)
    ingested = Ingested(1, 0, [], ungrouped=table.files - table.grouped, tables=[table])
    said = list(group_remarks(ingested, [], takes_table=True))
    if table.columns.group is None and not table.grouped:
        assert any("has no column of patients" in line for line in said)
        assert table.columns.unused == () or any("--column group=NAME" in line for line in said)
    elif not table.columns.patient:
        assert any("not from a column of patients" in line for line in said)
    for name in table.columns.unused[:12]:
        assert repr(name) in table_line(table)


def test_the_folder_names_the_patient_where_no_column_does(tmp_path: Path) -> None:
    header, row, file, *_ = PUBLISHED[1]
    told = opened(tmp_path, header, [row], [file]).of(file, "chest_xray")
    assert told.group == "patient00001"
    assert patient_in_path("files/p10/p10000032/s5/x.jpg") is None
    assert patient_in_path("subset1/normal/sub-AB12/x.jpg") == "sub-AB12"


def test_a_number_of_rows_is_no_patient_and_a_number_that_pictures_share_is(tmp_path: Path) -> None:
    header = "ID,filename,labels"
    own = read(tmp_path, header, ["1,a.png,Edema", "2,b.png,Edema"], ["a.png", "b.png"])
    assert own.columns.group is None
    shared = read(tmp_path, header, ["1,a.png,Edema", "1,b.png,Edema"], ["a.png", "b.png"])
    assert (shared.columns.group, shared.groups, shared.columns.patient) == ("ID", 1, False)


def test_a_column_can_be_named_and_a_wrong_name_suggests_the_nearest(tmp_path: Path) -> None:
    header, rows = "Aufnahme;Fall Nr.;Urteil", ["a.png;4711;Edema"]
    named = {"file": "Aufnahme", "group": "Fall Nr.", "labels": "Urteil"}
    table = read(tmp_path, header, rows, ["a.png"], named)
    assert (table.columns.group, table.columns.patient, table.columns.unused) == ("Fall Nr.", True, ())
    for wrong, said in (
        ({"group": "Fal Nr"}, "--column group='Fal Nr': .* has no such column; did you mean 'Fall Nr.'"),
        ({"patient": "Fall Nr."}, "--column patient: no such role"),
    ):
        with pytest.raises(InputError, match=said):
            opened(tmp_path, header, rows, ["a.png"], wrong)
    with pytest.raises(InputError, match="--column: no table to read it from"):
        (tmp_path / "labels.csv").unlink()
        LabelTable(tmp_path, TAXONOMY, [], SourceOptions(tmp_path, columns=named))


def test_a_name_that_could_mean_two_files_means_none(tmp_path: Path) -> None:
    files = ["one/scan.png", "two/scan.png", "only.PNG"]
    table = opened(tmp_path, "file,labels", ["scan,Edema", "ONLY.png,normal"], files)
    assert [table.names(file) for file in files] == [False, False, True]
    assert [refused.name for refused in table.rejected(files)] == ["scan"]
    twice = opened(tmp_path, "file,labels", ["x/scan.png,Edema", "y/scan.png,normal"], ["scan.png"])
    assert not twice.names("scan.png")


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


def test_a_word_among_marks_costs_its_image_and_not_the_column(tmp_path: Path) -> None:
    """As CheXpert's columns, 1, 0, -1 or empty, with one cell that a person wrote."""
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
    told = table.of("a.png", "chest_xray")
    assert (told.labels, told.group, told.split) == (("Edema",), "p1", "train")
    assert [(one.name, one.row, one.field) for one in table.rejected(["a.png", "b.png"])] == [
        ("labels.csv", 5, ""),  # six cells under four columns
        ("a.png", 3, "split"),
        ("a.png", 4, "group"),
        ("c.png", 6, ""),  # no such image
    ]


@pytest.mark.parametrize("cell", ["Edema|Pneumonia", "Edema; Pneumonia", "['edema', 'pneumonia']"])
def test_labels_are_parted_as_publishers_part_them(tmp_path: Path, cell: str) -> None:
    table = opened(tmp_path, "file,labels", [f'a.png,"{cell}"'], ["a.png"])
    assert table.of("a.png", "chest_xray").labels == ("Edema", "Pneumonia")


def test_a_table_without_labels_tells_whose_the_pictures_in_label_folders_are(tmp_path: Path) -> None:
    table = opened(tmp_path, "file,patient", ["a.png,7"], ["Edema/a.png"])
    told = table.of("Edema/a.png", "chest_xray")
    assert (told.labels, told.group) == (("Edema",), "7")


def test_a_table_may_be_named_as_the_source_calls_it(tmp_path: Path) -> None:
    (tmp_path / "Data_Entry.csv").write_text("file,labels,patient\na.png,Edema,7\n")
    found = LabelTable(
        tmp_path, TAXONOMY, ["a.png"], SourceOptions(tmp_path, table=Path("Data_Entry.csv"))
    ).read
    assert found is not None and found.groups == 1
