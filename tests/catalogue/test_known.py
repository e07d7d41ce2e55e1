"""Labels that arrive after the images: the catalogue equals one that had them from the start."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest

from plantain.catalogue.ingest import Ingested, ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pipeline.plan import enumerate_tasks
from plantain.pipeline.recipe import Recipe
from plantain.records import Consent, InputError, Licence
from plantain.sources.folder import FolderReader
from plantain.sources.registry import SourceOptions
from sources.published import digest_of, jpeg, put

TAXONOMY = load_taxonomy()

EARLY = "file,labels,group,split\n" + "".join(f"{name}.jpg,,,\n" for name in "abcd")
LATER = "file,labels,group,split\na.jpg,No Finding,p1,train\nb.jpg,Edema;Pneumonia,p2,test\nc.jpg,,,\nd.jpg,Edema,p4,\n"


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Write four radiographs, two of them near duplicates, and a table without labels."""
    for number, name in enumerate("abc"):
        put(tmp_path / f"scans/{name}.jpg", jpeg("chest_xray", number))
    near = cv2.imread(str(tmp_path / "scans/a.jpg"))
    assert near is not None
    cv2.imwrite(str(tmp_path / "scans/d.jpg"), near, [cv2.IMWRITE_JPEG_QUALITY, 60])
    put(tmp_path / "scans/labels.csv", EARLY.encode())
    return tmp_path / "scans"


def run(out: Path, scans: Path, consent: Consent | None = None, licence: Licence = Licence.OPEN) -> Ingested:
    reader = FolderReader(SourceOptions(scans, "chest_xray", licence), TAXONOMY)
    with Catalogue.create(out) as catalogue:
        return ingest(reader, catalogue, workers=2, stated={"consent": consent} if consent else None)


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
    assert (done.added, done.changed, done.unchanged, done.unlabelled) == (0, 3, 1, 1)
    assert not done.refused
    run(whole, scans)
    assert digest_of(out) == digest_of(whole)
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
    assert (again.changed, again.unchanged, digest_of(out)) == (0, 4, digest_of(whole))


def test_contradicting_labels_are_refused(scans: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(scans / "labels.csv", LATER.encode())
    run(out, scans)
    before = digest_of(out)
    for labels in ("Pneumonia", ""):
        put(scans / "labels.csv", LATER.replace("Edema;Pneumonia", labels).encode())
        done = run(out, scans)
        assert [refused.reason for refused in done.refused] == [
            "is there already, labelled Edema, Pneumonia; choose another --to"
        ]
        assert digest_of(out) == before


GROUPED = (
    "file,labels,Patient ID,split\n"
    "a.jpg,No Finding,p1,train\nb.jpg,Edema;Pneumonia,p2,test\nc.jpg,Edema,p1,train\n"
)


def groups(out: Path) -> dict[str, str | None]:
    with Catalogue.open(out) as catalogue:
        return {image.id: image.group for image in catalogue.images()}


def test_a_corrected_group_equals_one_stated_at_once(scans: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    (scans / "d.jpg").unlink()
    put(scans / "labels.csv", GROUPED.replace("p1", "").replace("train", "").encode())
    assert run(out, scans).ungrouped == 2
    put(scans / "labels.csv", GROUPED.encode())
    grouped = run(out, scans)
    assert (grouped.changed, grouped.unchanged, grouped.ungrouped) == (2, 1, 0)
    put(scans / "labels.csv", GROUPED.replace("c.jpg,Edema,p1,train", "c.jpg,Edema,p2,train").encode())
    corrected = run(out, scans)
    assert (corrected.changed, corrected.unchanged) == (1, 2)
    assert groups(out) == {"a": "p1", "b": "p2", "c": "p2"}
    run(whole, scans)
    assert digest_of(out) == digest_of(whole)
    # A removed patient stays: a table that was lost by mistake must not separate the images of a patient.
    put(scans / "labels.csv", b"file,labels\na.jpg,No Finding\nb.jpg,Edema;Pneumonia\nc.jpg,Edema\n")
    assert run(out, scans).unchanged == 3
    assert digest_of(out) == digest_of(whole)


def test_a_licence_stated_later_equals_one_stated_at_once_and_is_not_replaced(
    scans: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    run(out, scans, licence=Licence.UNKNOWN)
    assert run(out, scans).changed == 4
    run(whole, scans)
    assert digest_of(out) == digest_of(whole)
    with pytest.raises(InputError, match="licence open, not credentialed: pass --licence open, or"):
        run(out, scans, licence=Licence.CREDENTIALED)
    assert digest_of(out) == digest_of(whole)


def test_a_corrected_group_leaves_the_one_that_near_duplicates_made(scans: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(scans / "labels.csv", LATER.replace("c.jpg,,,", "c.jpg,Edema,p4,").encode())
    run(out, scans)
    joined = groups(out)
    assert joined["a"] == joined["c"] == joined["d"] != joined["b"]  # a and d look alike, c is of d's patient
    put(scans / "labels.csv", LATER.replace("c.jpg,,,", "c.jpg,Edema,p2,").encode())
    assert run(out, scans).changed == 1
    now = groups(out)
    assert (now["b"], now["c"]) == ("p2", "p2")
    assert now["a"] == now["d"] == joined["a"]
    run(tmp_path / "whole", scans)
    assert digest_of(out) == digest_of(tmp_path / "whole")
