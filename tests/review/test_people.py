"""Readers compared with a judge: agreement counted by hand, in the judge's card, and readers as a judge of the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakes.commands import json_of, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.cards import read_card
from plantain.records import InputError
from plantain.review.people import agreement_with_people
from plantain.review.study import Block, Item, ReaderTask, Study
from review.study_on_paper import all_criteria, new_from, read_all, small_study

JUDGE = "offline/instruments"


@pytest.fixture(scope="module")
def run(own_run: Path) -> Path:
    return own_run


@pytest.fixture(scope="module")
def study(run: Path) -> Study:
    """Three readers of every edit: two accept all but the edits of brains, the third rejects everything."""
    made = new_from(run.parent / "study", run, "--task", "accept")

    def say(reader: int, block: Block, item: Item, _: list[str]) -> dict:
        return all_criteria(block, reader < 2 and made.by_case[item.case].modality != "brain_mri")

    read_all(made, 3, say)
    return made


def test_edits_of_several_runs_are_compared_each_with_its_own_readers(run: Path, tmp_path: Path):
    """Two runs of the same tasks in one study: all of the first is accepted, nothing of the second."""
    shutil.copytree(run, tmp_path / "other")
    made = new_from(tmp_path / "both", run, "--from", str(tmp_path / "other"), "--task", "accept")
    first = made.models[0]
    read_all(made, 1, lambda _, block, item, slots: all_criteria(block, slots == [first]))
    whole = agreement_with_people(made.folder, run, JUDGE)["people/both"]
    # One reader accepts one of two equal edits of a task and rejects the other, whatever the judge's verdict: chance
    assert whole.n == 2 * len(made.cases) and whole.value == pytest.approx(0.0)

    again = Path(shutil.copytree(run, tmp_path / "again"))
    assert main(["judge", "rejudge", str(again), "--judge", f"people/{made.folder}"]) == 0
    with JournalReader.open(again) as reader:
        rows = [one.verdict for one in reader.verdicts(made.cases[0].source)]
    (verdict,) = [one for one in rows if one.judge == "people/both"]
    for criterion in verdict.observations.criteria.values():  # one reader with two minds is one reader
        expected = (False, 0.5, "0.5 of 1 reader accepted")
        assert (criterion.passed, criterion.confidence, criterion.evidence) == expected


def test_agreement_is_in_the_judges_card(run: Path, study: Study, tmp_path: Path):
    kinds = ("--pairs", "1", "--kinds", "no change", "--study", study.folder)
    agreement = json_of("judge", "audit", run, "--judge", JUDGE, *kinds, "--to", tmp_path)["agreement"]
    assert "people/study" in agreement and "readers among themselves" in agreement
    kept = read_card(tmp_path / "card.json")
    assert kept.agreement["people/study"].n == len(study.cases)
    # the third agrees with the others on brains only
    assert kept.agreement["readers among themselves"].value < 0.5
    assert "people/study" in (tmp_path / "card.html").read_text().lower()


def test_incomparable_studies_are_refused_in_one_line(run: Path, study: Study, tmp_path: Path):
    with pytest.raises(InputError, match="nobody/here has judged none of the edits"):
        agreement_with_people(study.folder, run, "nobody/here")
    other = small_study(tmp_path / "s", ReaderTask.PAIR)
    with pytest.raises(InputError, match=r"no answer to an accept question.*plantain review import$"):
        agreement_with_people(other.folder, run, JUDGE)
    assert "give the run that the study was made from" in refused("judge", "audit", "--study", study.folder)
    assert f"--run {run}: not the run of an audit; " in refused("judge", "audit", "--run", run)
    assert f"plantain judge rejudge {run} --judge people/{study.folder}" in refused(
        "judge", "audit", run, "--judge", f"people/{study.folder}"
    )
