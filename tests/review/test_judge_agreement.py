"""People beside a judge: agreement counted by hand, in the judge's card, and the readers as a judge of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.cards import read_card
from plantain.records import InputError
from plantain.review.judge_agreement import agreement_with_people
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


def test_it_stands_in_the_judges_card(
    run: Path, study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["audit", str(run), "--judge", JUDGE, "--pairs", "1", "--kinds", "no change", "--json"]
    assert main([*words, "--people", str(study.folder), "--to", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)["agreement"]
    assert "people/study" in told and "readers among themselves" in told
    kept = read_card(tmp_path / "card.json")
    assert kept.agreement["people/study"].n == len(study.cases)
    assert "people/study" in (tmp_path / "card.html").read_text().lower()


def test_readers_judge_the_run_that_they_read(run: Path, study: Study, capsys: pytest.CaptureFixture[str]):
    judge = f"people/{study.folder}"
    for _ in range(2):  # a second time nothing is asked again, and the same is said
        assert main(["rejudge", str(run), "--judge", judge, "--json"]) == 0
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
    with pytest.raises(InputError, match="no accept block"):
        agreement_with_people(other.folder, run, JUDGE)
    assert main(["audit", "--people", str(study.folder)]) == 2
    assert "name the run" in capsys.readouterr().err
