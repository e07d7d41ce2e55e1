"""People beside a judge: agreement counted by hand, in the judge's card, and the readers as a judge of the run."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.cards import read_card
from plantain.records import InputError
from plantain.review.people import agreement_with_people
from plantain.review.ratings import Ratings
from plantain.review.study import ReaderTask, Study, open_study
from report.run_on_paper import build_run
from review.study_on_paper import small_study

JUDGE = "offline/instruments"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return build_run(tmp_path_factory.mktemp("people") / "run")


@pytest.fixture(scope="module")
def study(run: Path) -> Study:
    """Three readers of every edit: two accept all but the edits of brains, the third rejects everything."""
    folder = run.parent / "study"
    assert main(["review", "new", str(folder), "--from", str(run), "--task", "accept"]) == 0
    made = open_study(folder)
    ratings = Ratings.open(made)
    for number in range(3):
        reader, _ = ratings.invite()
        for item in made.blocks[0].items:
            good = number < 2 and made.by_case[item.case].modality != "brain_mri"
            value = {"criteria": {name: good for name, _ in made.blocks[0].criteria}, "codes": []}
            ratings.save(reader.code, item.id, "k" * 8, "b1", list(item.shown), 0, value, 1)
    ratings.close()
    return made


def test_agreement_with_people_is_that_of_the_four_cells(run: Path, study: Study):
    found = agreement_with_people(study.folder, run, JUDGE)
    cells = {(a, b): 0 for a in (True, False) for b in (True, False)}
    with JournalReader.open(run) as reader:
        for case in study.cases:
            last = [one for one in reader.verdicts(case.source) if one.verdict.judge == JUDGE][-1]
            cells[case.modality != "brain_mri", last.verdict.qualified] += 1
    n = sum(cells.values())
    agree = (cells[True, True] + cells[False, False]) / n
    yes = [(cells[True, True] + cells[True, False]) / n, (cells[True, True] + cells[False, True]) / n]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    whole = found["people/study"]
    assert whole.n == n == len(study.cases) and whole.kind == "kappa"
    assert whole.value == pytest.approx((agree - chance) / (1 - chance))  # Cohen 1960
    assert found["people/study, ICC(2,1)"].kind == "icc" and found["people/study, realism"].n == n
    assert found["readers among themselves"].value < 0.5  # the third agrees with the others on brains only


def test_edits_of_several_runs_are_compared_each_with_its_own_readers(run: Path, tmp_path: Path):
    """Two runs of the same tasks in one study: all of the first is accepted, nothing of the second."""
    shutil.copytree(run, tmp_path / "other")
    words = ["review", "new", str(tmp_path / "both"), "--task", "accept"]
    assert main([*words, "--from", str(run), "--from", str(tmp_path / "other")]) == 0
    made = open_study(tmp_path / "both")
    first = made.models[0]
    ratings = Ratings.open(made)
    reader, _ = ratings.invite()
    for item in made.blocks[0].items:
        value = {
            "criteria": {name: item.shown == (first,) for name, _ in made.blocks[0].criteria},
            "codes": [],
        }
        ratings.save(reader.code, item.id, "k" * 8, "b1", list(item.shown), 0, value, 1)
    ratings.close()
    whole = agreement_with_people(made.folder, run, JUDGE)["people/both"]
    # whatever the judge says of the two equal edits of a task, one reader's word is yes and the other no: chance
    assert whole.n == 2 * len(made.cases) and whole.value == pytest.approx(0.0)

    again = Path(shutil.copytree(run, tmp_path / "again"))
    assert main(["judge", "rejudge", str(again), "--judge", f"people/{made.folder}"]) == 0
    with JournalReader.open(again) as reader:
        rows = [one.verdict for one in reader.verdicts(made.cases[0].source)]
    (said,) = [one for one in rows if one.judge == "people/both"]
    for criterion in said.observations.criteria.values():  # one reader with two minds is one reader
        assert (criterion.passed, criterion.confidence, criterion.evidence) == (
            False,
            0.5,
            "0.5 of 1 reader accepted",
        )


def test_it_stands_in_the_judges_card(
    run: Path, study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["judge", "audit", str(run), "--judge", JUDGE, "--pairs", "1", "--kinds", "no change", "--json"]
    assert main([*words, "--study", str(study.folder), "--to", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)["agreement"]
    assert "people/study" in told and "readers among themselves" in told
    kept = read_card(tmp_path / "card.json")
    assert kept.agreement["people/study"].n == len(study.cases)
    assert "people/study" in (tmp_path / "card.html").read_text().lower()


def test_readers_judge_the_run_that_they_read(run: Path, study: Study, capsys: pytest.CaptureFixture[str]):
    judge = f"people/{study.folder}"
    for _ in range(2):  # a second time nothing is asked again, and the same is said
        assert main(["judge", "rejudge", str(run), "--judge", judge, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        mine = next(one for one in told["judges"] if one["judge"] == "people/study")
        assert mine["judged"] == len(study.cases)
    with JournalReader.open(run) as reader:
        for case in study.cases:
            said = [
                one.verdict for one in reader.verdicts(case.source) if one.verdict.judge == "people/study"
            ]
            assert [one.qualified for one in said] == [case.modality != "brain_mri"]  # two of three


def test_what_cannot_be_compared_is_one_line(run: Path, study: Study, tmp_path: Path, capsys):
    with pytest.raises(InputError, match="nobody/here has judged none of the edits"):
        agreement_with_people(study.folder, run, "nobody/here")
    other = small_study(tmp_path / "s", ReaderTask.PAIR)
    with pytest.raises(InputError, match="no answer to an accept question"):
        agreement_with_people(other.folder, run, JUDGE)
    assert main(["judge", "audit", "--study", str(study.folder)]) == 2
    assert "give the run that the study was made from" in capsys.readouterr().err
    assert main(["judge", "audit", str(run), "--judge", f"people/{study.folder}"]) == 2
    told = capsys.readouterr().err
    assert f"plantain judge rejudge {run} --judge people/{study.folder}" in told and told.count("\n") == 1


def test_a_release_carries_the_study_and_tells_of_nobody(run: Path, study: Study, tmp_path: Path, capsys):
    study = open_study(Path(shutil.copytree(study.folder, tmp_path / "study")))
    ratings = Ratings.open(study)
    item, secret = study.blocks[0].items[0], "Mrs Zebra told me so"
    value = {"criteria": {name: True for name, _ in study.blocks[0].criteria}, "codes": [], "comment": secret}
    reader = ratings.readers()[0].code
    ratings.save(reader, item.id, "again000", "b1", list(item.shown), 0, value, 1)
    ratings.close()
    words = ["export", str(run), "--to", str(tmp_path / "out"), "--layout", "parquet", "--json"]
    words += [
        "--licence",
        "matplotlib=CC0-1.0",
        "--licence",
        "pydicom-data=CC0-1.0",
        "--study",
        str(study.folder),
    ]
    for _ in range(2):  # the same study again: the release is whole already
        assert main(words) == 0
    assert main(["verify", str(tmp_path / "out"), "--json"]) == 0
    folder = tmp_path / "out" / "studies" / "study"
    told = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(told) == {
        "answers.csv",
        "dictionary.csv",
        "study.json",
        "HASH",
        "ratings.csv",
        "ratings.parquet",
    }
    for data in told.values():
        assert secret.encode() not in data and b"images/" not in data
        assert b"chest2" not in data  # a patient's group
    groups = {row["cluster"] for row in csv.DictReader(io.StringIO(told["answers.csv"].decode()))}
    assert groups == {f"g{n:04d}" for n in range(1, 1 + len({case.cluster for case in study.cases}))}
    assert study.digest.encode() in told["HASH"]
    capsys.readouterr()
    rows = pq.read_table(folder / "ratings.parquet").to_pylist()
    criteria = [name for name, _ in study.blocks[0].criteria]
    assert len(rows) == len(study.cases) * len(criteria)
    again = study.by_case[item.case].source
    for row in rows:  # two of three said yes, but of brains; of one edit the first reader now did
        brain = next(case for case in study.cases if case.source == row["task"]).modality == "brain_mri"
        two_of_three = 2 / 3 if not brain else 1 / 3 if row["task"] == again else 0.0
        assert (row["readers"], row["held"], row["accepted"]) == (3, *[pytest.approx(two_of_three)] * 2)
    ratings = Ratings.open(study)
    ratings.save(reader, item.id, "again001", "b1", list(item.shown), 0, value | {"comment": ""}, 1)
    ratings.save(
        reader, study.blocks[0].items[1].id, "again001", "b1", list(item.shown), 0, {"cannot": "dark"}, 1
    )
    ratings.close()
    assert main(words) == 2 and "another state or with other options" in capsys.readouterr().err


def test_readers_judge_imported_edits_and_need_no_consent(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The ids of imported tasks do not follow from their source; of an unknown licence nothing may be sent."""
    rng = np.random.default_rng(5)
    lines = ["original,edited,finding,modality,direction,verdict,licence"]
    for number in range(3):
        for kind in "ab":
            Image.fromarray(rng.integers(0, 255, (40, 40, 3), np.uint8)).save(
                tmp_path / f"{kind}{number}.png"
            )
        lines.append(f"a{number}.png,b{number}.png,AMD,fundus,add,true,unknown")
    (tmp_path / "edits.csv").write_text("\n".join(lines))
    run, folder = tmp_path / "run", tmp_path / "read"
    assert main(["import", str(tmp_path / "edits.csv"), "--run", str(run)]) == 0
    assert main(["review", "new", str(folder), "--from", str(run), "--task", "accept"]) == 0
    made = open_study(folder)
    ratings = Ratings.open(made)
    reader, _ = ratings.invite()
    for item in made.blocks[0].items:
        value = {"criteria": {name: True for name, _ in made.blocks[0].criteria}, "codes": []}
        ratings.save(reader.code, item.id, "k" * 8, "b1", list(item.shown), 0, value, 1)
    ratings.close()
    capsys.readouterr()
    assert main(["judge", "rejudge", str(run), "--judge", f"people/{folder}", "--json"]) == 0
    (mine,) = json.loads(capsys.readouterr().out)["judges"]
    assert (mine["judged"], mine["qualified"]) == (3, 3)
