"""Edits that were made elsewhere go to readers first, and the readers' verdicts reach the imported run."""

from __future__ import annotations

import csv
import errno
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from fakes.commands import json_of, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.records import TaskState
from plantain.release.importing.pairs import import_pairs
from plantain.review.study import ORIGINAL, ReaderTask, open_study
from review.study_on_paper import MODELS as THREE
from review.study_on_paper import all_criteria, new_from, read_all

MODELS = THREE[:2]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Three originals, wider than a prepared image, each edited by two models; no verdict, no licence."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    y, x = np.mgrid[:300, :1400]
    rows = []
    for case in range(3):
        before = (60 + 40 * np.sin(x / 90 + case) + 30 * np.cos(y / 70)).astype(np.uint8)
        cv2.imwrite(str(folder / f"before{case}.png"), before)
        for number, model in enumerate(MODELS):
            after = cv2.circle(before.copy(), (500 + 90 * number, 150), 80, 220, -1)
            name = f"after{case}-{number}.png"
            cv2.imwrite(str(folder / name), after)
            rows.append([f"before{case}.png", name, "chest_xray", "Pneumothorax", "add", model, "Add it."])
    with (folder / "pairs.csv").open("w", newline="") as file:
        head = ["original", "edited", "modality", "finding", "direction", "model", "instruction"]
        csv.writer(file).writerows([head, *rows])
    return folder / "pairs.csv"


def test_readers_of_imported_pairs_judge_the_run(pairs: Path, tmp_path: Path):
    """Two of three readers accept one model's edits and none the other's: passed 2/3 and 0, on all six edits."""
    run, folder = tmp_path / "run", tmp_path / "people"
    import_pairs(pairs, run)
    study = new_from(folder, run, "--task", "accept")
    assert len(study.cases) == 6 and study.models == MODELS
    (answers := tmp_path / "anna.csv").write_text("case\nc1\n")
    names = ", ".join(name for name, _ in study.blocks[0].criteria)
    error = refused("review", "import", folder, answers)
    assert f"columns model, {names}: are missing; the header has 'case'" in error
    answers.write_text(
        f"case,model,{names.replace(' ', '')}\nc1,mine{',yes' * len(study.blocks[0].criteria)}\n"
    )
    assert f"no case 'c1' with an output of 'mine'; models: {', '.join(sorted(MODELS))}; cases: " in refused(
        "review", "import", folder, answers
    )
    read_all(
        study, 3, lambda reader, block, _, slots: all_criteria(block, reader < 2 and slots == [MODELS[0]])
    )
    rejudged = json_of("judge", "rejudge", run, "--judge", f"people/{folder}")
    (judge,) = (one for one in rejudged["judges"] if one["judge"] == "people/people")
    assert judge["judged"] == 6
    with JournalReader.open(run) as reader:
        counts = Counter()
        for row in reader.tasks(TaskState.STOPPED):
            (stored,) = reader.verdicts(row.id)
            case = next(case for case in study.cases if case.source == row.id)
            (model,) = set(case.images) - {ORIGINAL}
            shares = {one.confidence for one in stored.verdict.observations.criteria.values()}
            counts[model, stored.verdict.qualified, round(max(shares), 3)] += 1
    assert counts == {(MODELS[0], True, 0.667): 3, (MODELS[1], False, 0.0): 3}


def test_a_table_of_pairs_is_a_source_with_the_columns_of_import(pairs: Path, tmp_path: Path):
    """A case of a comparison has the edits of both models of its original."""
    study = new_from(tmp_path / "s", pairs, "--task", "pair,rank")
    assert len(study.cases) == 3 and study.models == MODELS
    assert all(set(case.images) == {ORIGINAL, *MODELS} for case in study.cases)
    one = new_from(tmp_path / "one", pairs, "--task", "accept", "--arms", MODELS[0])
    assert one.models == MODELS[:1] and len(one.blocks[0].items) == 3
    (pairs.parent / "short.csv").write_text("original,edited\nbefore0.png,after0-0.png\n")
    table = str(pairs.parent / "short.csv")
    short = ["review", "new", str(tmp_path / "no"), "--from", table, "--task", "rate"]
    err = refused(*short)
    assert "short.csv" in err and "finding" in err
    # The options that this line advises are those of import.
    advised = ["--set", "modality=brain_mri", "--set", "finding=glioma", "--set", "direction=add"]
    (pairs.parent / "short.csv").write_text("src,edited\nbefore0.png,after0-0.png\n")
    assert main([*short, "--column", "original=src", *advised]) == 0


def test_the_validation_preset_draws_judged_edits_in_turn(paper_run: Path, tmp_path: Path):
    """One edit of each modality and direction of the run before a second one of any."""
    with JournalReader.open(paper_run) as reader:
        rows = [row for row in reader.tasks() if row.state in (TaskState.SUCCESS, TaskState.FAILED)]
    strata = {f"{row.task.modality} {row.task.direction}" for row in rows if row.task.kind == "edit"}
    words = ["review", "new", str(tmp_path / "s"), "--from", str(paper_run)]
    words += ["--preset", "med-banana-validation"]
    assert main([*words, "--cases", str(len(strata))]) == 0
    study = open_study(tmp_path / "s")
    assert {case.stratum for case in study.cases} == strata and len(study.cases) == len(strata)
    assert [block.task for block in study.blocks] == [ReaderTask.ACCEPT]
    assert all(case.verdicts for case in study.cases)
    for more, line in (([], "--cases 100: there are"), (["--task", "rate"], "--task: name one or more of")):
        assert line in refused(*words[:2], tmp_path / "no", *words[3:], *more)


def test_a_study_on_a_full_disk_leaves_no_partial_files(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path, data: bytes, mode: int = 0o644) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("plantain.review.freezing.replace_file", full)
        assert "No space left on device" in refused(
            "review", "new", tmp_path / "small" / "s", "--from", pairs, "--task", "accept"
        )
    assert not list((tmp_path / "small").iterdir())
    assert len(new_from(tmp_path / "small" / "s", pairs, "--task", "accept", "--cases", "1").cases) == 1
