"""Labels that come later than the pictures: the catalogue ends as if they had been told at once."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest
import skimage.data

from plantain.catalogue.gate import PrivacyGate
from plantain.catalogue.ingest import Ingested, ingest
from plantain.catalogue.quarantine import held_one, release
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pipeline.plan import enumerate_tasks
from plantain.pipeline.recipe import Recipe
from plantain.records import Consent, Licence
from plantain.sources.entries import NamingReader, SourceOptions
from plantain.sources.folder import FolderReader
from sources.published import jpeg, put
from sources.test_dicom import copy
from sources.test_dicom import read as dicom

TAXONOMY = load_taxonomy()

EARLY = "file,labels,group,split\n" + "".join(f"{name}.jpg,,,\n" for name in "abcd")
LATER = "file,labels,group,split\na.jpg,No Finding,p1,train\nb.jpg,Edema;Pneumonia,p2,test\nc.jpg,,,\nd.jpg,Edema,p4,\n"


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Four radiographs, two of them near duplicates, and a table without labels."""
    for number, name in enumerate("abc"):
        put(tmp_path / f"scans/{name}.jpg", jpeg("chest_xray", number))
    near = cv2.imread(str(tmp_path / "scans/a.jpg"))
    assert near is not None
    cv2.imwrite(str(tmp_path / "scans/d.jpg"), near, [cv2.IMWRITE_JPEG_QUALITY, 60])
    put(tmp_path / "scans/labels.csv", EARLY.encode())
    return tmp_path / "scans"


def run(out: Path, scans: Path, consent: Consent | None = None) -> Ingested:
    reader = FolderReader(SourceOptions(scans, "chest_xray", Licence.OPEN), TAXONOMY)
    with Catalogue.create(out) as catalogue:
        return ingest(NamingReader(reader, consent=consent), catalogue, workers=2)


def digest(out: Path) -> str:
    with Catalogue.open(out) as catalogue:
        return catalogue.digest()


def tasks(out: Path) -> dict[str, str]:
    recipe = Recipe.model_validate(
        {
            "name": "later",
            "data": {"catalogue": out, "findings": ["Edema"]},
            "models": {
                "writer": "offline/templates",
                "editor": "offline/procedural",
                "judge": "offline/instruments",
            },
        }
    )
    with Catalogue.open(out) as catalogue:
        return {task.id: task.image_id for task in enumerate_tasks(recipe, catalogue, TAXONOMY)}


def test_a_catalogue_that_is_labelled_later_equals_one_labelled_at_once(scans: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    first = run(out, scans)
    assert (first.added, first.unlabelled, len(first.near)) == (4, 4, 1)
    assert not tasks(out)
    put(scans / "labels.csv", LATER.encode())
    done = run(out, scans)
    assert (done.added, done.labelled, done.unchanged, done.unlabelled) == (0, 3, 1, 1)
    assert not done.refused
    run(whole, scans)
    assert digest(out) == digest(whole)
    with Catalogue.open(out) as one, Catalogue.open(whole) as other:
        assert list(one.images()) == list(other.images())
        assert one.own_groups() == other.own_groups()
        assert (
            one.count_by("label") == other.count_by("label") == {"Edema": 2, "No Finding": 1, "Pneumonia": 1}
        )
        both = one.get("a"), one.get("d")
        assert both[0].group == both[1].group != "p1"
        assert (one.get("b").group, one.get("b").split, one.get("b").note) == ("p2", "test", "")
    assert sorted(tasks(out).values()) == ["a", "b", "d"]
    again = run(out, scans)
    assert (again.labelled, again.unchanged, digest(out)) == (0, 4, digest(whole))


def test_labels_that_contradict_stay_refused(scans: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(scans / "labels.csv", LATER.encode())
    run(out, scans)
    before = digest(out)
    for told in ("Pneumonia", ""):
        put(scans / "labels.csv", LATER.replace("Edema;Pneumonia", told).encode())
        done = run(out, scans)
        assert [refused.reason for refused in done.refused] == [
            "is there already, labelled Edema, Pneumonia; choose another --to"
        ]
        assert digest(out) == before


def test_permission_and_labels_may_come_together(scans: Path, tmp_path: Path) -> None:
    out, consent = tmp_path / "out", Consent("Dr Roe", "contract 7")
    run(out, scans)
    put(scans / "labels.csv", LATER.encode())
    assert run(out, scans, consent).labelled == 3
    run(tmp_path / "whole", scans, consent)
    assert digest(out) == digest(tmp_path / "whole")


def test_an_image_that_waits_is_labelled_too(tmp_path: Path) -> None:
    face = cv2.cvtColor(skimage.data.astronaut(), cv2.COLOR_RGB2BGR)
    put(tmp_path / "scans/a.png", cv2.imencode(".png", face)[1].tobytes())
    out, table = tmp_path / "out", tmp_path / "scans/labels.csv"
    done_all = []
    for told in ("a.png,,", "a.png,Edema,p7", "a.png,Edema,p1"):
        put(table, f"file,labels,group\n{told}\n".encode())
        reader = FolderReader(SourceOptions(tmp_path / "scans", "chest_xray", Licence.OPEN), TAXONOMY)
        with Catalogue.create(out) as catalogue:
            done = ingest(reader, catalogue, gate=PrivacyGate(catalogue, None))
        done_all.append(done)
    assert [(done.labelled, done.regrouped, done.quarantined) for done in done_all] == [
        (0, 0, ["a"]),
        (1, 0, ["a"]),
        (0, 1, ["a"]),
    ]
    with Catalogue.create(out) as catalogue:
        waiting = held_one(catalogue, "a")
        assert waiting is not None
        assert (waiting.image.labels, waiting.image.group, waiting.image.note) == (("Edema",), "p1", "")
        assert release(catalogue, "a")
        assert [image.id for image in catalogue.images(label="Edema")] == ["a"]


def test_a_study_of_dicom_files_is_labelled_when_its_table_is_there(tmp_path: Path) -> None:
    study, out = tmp_path / "export", tmp_path / "out"
    copy("RG1_UNCR.dcm", study / "SE1/IM0")
    with Catalogue.create(out) as catalogue:
        assert ingest(dicom(study), catalogue).unlabelled == 1
    put(study / "labels.csv", b"file,labels\nSE1/IM0,Edema\nSE1/IM00,Edema\n")
    with Catalogue.create(out) as catalogue:
        done = ingest(dicom(study), catalogue)
        assert (done.labelled, done.unlabelled) == (1, 0)
        (image,) = catalogue.images(label="Edema")
    assert image.group
    assert image.group.startswith("patient:")
    assert [(refused.name, refused.reason) for refused in done.refused] == [
        ("SE1/IM00", "the table of labels names it, and no such image is there")
    ]


GROUPED = (
    "file,labels,Patient ID,split\n"
    "a.jpg,No Finding,p1,train\nb.jpg,Edema;Pneumonia,p2,test\nc.jpg,Edema,p1,train\n"
)


def groups(out: Path) -> dict[str, str | None]:
    with Catalogue.open(out) as catalogue:
        return {image.id: image.group for image in catalogue.images()}


def test_a_group_that_is_corrected_takes_effect_and_equals_one_told_at_once(
    scans: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    (scans / "d.jpg").unlink()
    put(scans / "labels.csv", GROUPED.replace("p1", "").replace("train", "").encode())
    assert run(out, scans).ungrouped == 2
    put(scans / "labels.csv", GROUPED.encode())
    told = run(out, scans)
    assert (told.regrouped, told.unchanged, told.ungrouped) == (2, 1, 0)
    put(scans / "labels.csv", GROUPED.replace("c.jpg,Edema,p1,train", "c.jpg,Edema,p2,train").encode())
    corrected = run(out, scans)
    assert (corrected.regrouped, corrected.unchanged) == (1, 2)
    assert groups(out) == {"a": "p1", "b": "p2", "c": "p2"}
    with Catalogue.open(out) as catalogue:
        assert catalogue.crossed_splits() == [("p2", ("test", "train"))]
    run(whole, scans)
    assert digest(out) == digest(whole)
    # What is told no more is kept: a table that was lost by mistake must not set patients apart.
    put(scans / "labels.csv", b"file,labels\na.jpg,No Finding\nb.jpg,Edema;Pneumonia\nc.jpg,Edema\n")
    assert run(out, scans).unchanged == 3
    assert digest(out) == digest(whole)


def test_a_corrected_group_leaves_the_one_that_near_duplicates_made(scans: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(scans / "labels.csv", LATER.replace("c.jpg,,,", "c.jpg,Edema,p4,").encode())
    run(out, scans)
    joined = groups(out)
    assert joined["a"] == joined["c"] == joined["d"] != joined["b"]  # a and d look alike, c is of d's patient
    put(scans / "labels.csv", LATER.replace("c.jpg,,,", "c.jpg,Edema,p2,").encode())
    assert run(out, scans).regrouped == 1
    now = groups(out)
    assert (now["b"], now["c"]) == ("p2", "p2")
    assert now["a"] == now["d"] == joined["a"]
    run(tmp_path / "whole", scans)
    assert digest(out) == digest(tmp_path / "whole")


def test_the_same_name_in_two_datasets_is_two_patients_and_crosses_nothing(
    scans: Path, tmp_path: Path
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    put(scans / "labels.csv", b"file,labels,group,split\na.jpg,Edema,1,train\n")
    put(other / "x.jpg", jpeg("chest_xray", 9))
    put(other / "labels.csv", b"file,labels,group,split\nx.jpg,Edema,1,test\n")
    run(out, scans)
    run(out, other)
    with Catalogue.open(out) as catalogue:
        assert catalogue.crossed_splits() == []
