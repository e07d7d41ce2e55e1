"""Withdrawing images from a study leaves nothing of them, and everything else as it was."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from fakes.commands import printed
from plantain.cli import main
from plantain.journal.connect import RunLock
from plantain.review import withdrawing
from plantain.review.ratings import Ratings
from plantain.review.study import ItemKind, Study, open_study
from plantain.review.web.desk import reader_items
from plantain.review.withdrawing import withdraw_from_study
from review.study_on_paper import MODELS, read_all, small_study

GONE = "patient3"


def answered(folder: Path) -> Study:
    """A study of eight cases for two groups, with one answer to each item, a page and an export."""
    study = small_study(folder, cases=8, models=MODELS[:2], groups=2)
    read_all(study, 1, lambda _, block, item, slots: {"cannot": f"about {item.case}"})
    (folder / "results.html").write_text(GONE)
    (folder / "export").mkdir()
    (folder / "export" / "answers.csv").write_text(GONE)
    return study


def test_a_withdrawn_patient_is_in_no_file_and_other_answers_stay(tmp_path: Path) -> None:
    before = answered(tmp_path / "s")
    (case,) = (one for one in before.cases if one.cluster == GONE)
    withdraw_from_study(tmp_path / "s", {GONE})
    after = open_study(tmp_path / "s")
    assert after.cases == tuple(one for one in before.cases if one.id != case.id)  # groups of readers too
    words = (GONE, case.source, case.image, f"about {case.id}")
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert not [path for path in files for word in words if word.encode() in path.read_bytes()]
    assert not [path for path in files if path.name.startswith(f"{case.id}-")]
    with closing(Ratings.open(after)) as ratings:
        assert {one.item for one in ratings.current()} == set(after.by_item)
    for block in after.blocks:
        own = [item for item in reader_items(after, block, 1) if item.kind is ItemKind.MAIN]
        assert all(before.by_case[item.case].group == 1 for item in own)


def test_a_withdrawal_that_was_killed_is_finished_by_doing_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(tmp_path / "s")

    def killed(study: Study) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(withdrawing, "write_document", killed)
        withdraw_from_study(tmp_path / "s", {GONE})
    withdraw_from_study(tmp_path / "s", {GONE})
    Ratings.open(open_study(tmp_path / "s")).close()
    withdraw_from_study(tmp_path / "s", {GONE})  # nothing is left of it


def test_a_study_is_withdrawn_from_by_its_own_name_unless_it_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(tmp_path / "s")
    asked = ["run", "withdraw", str(tmp_path / "s"), "--group", GONE]
    lock = RunLock(tmp_path / "s")
    assert main(asked) == 1
    assert "is being served" in capsys.readouterr().out
    lock.release()
    assert "removed 1 case with the answers about them" in printed(*asked)
    assert main([*asked[:-1], "patient4711"]) == 2
