from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, Draws, Judges, drawn, judging, quick_method, quick_recipe
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.records import Outcome, OutcomeKind, TaskState
from plantain.roles import EditedImage, EditRequest


def moody(request: EditRequest) -> EditedImage | Outcome:
    """Refuses AMD, sends no image for Diabetes, and edits the rest."""
    if "AMD" in request.instruction:
        return Outcome(OutcomeKind.REFUSED, "safety")
    if "Diabetes" in request.instruction:
        return Outcome(OutcomeKind.NO_IMAGE, "words only")
    return drawn(request.original.data, request.seed)


@pytest.fixture
def run(catalogue: Path, tmp_path: Path) -> Path:
    recipe = quick_recipe(catalogue)
    method = replace(quick_method(CallLog()), editor=Draws(moody), judges=(judging(False),))
    asyncio.run(run_build(recipe, tmp_path / "run", method=method))
    return tmp_path / "run"


def states(run: Path) -> dict[str, tuple[int, TaskState]]:
    with JournalReader.open(run) as reader:
        return {row.task.id: (row.generation, row.state) for row in reader.tasks()}


def test_retry_reopens_only_matching_tasks_and_build_continues_them(
    catalogue: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = states(run)
    assert main(["run", "retry", str(run), "--outcome", "refused", "--dry-run", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["matched"], data["continued"], data["reopened"]) == (3, 0, 0) and states(run) == before
    assert main(["run", "retry", str(run), "--outcome", "refused", "--state", "failed", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    failed_before = {task for task, (_, state) in before.items() if state is TaskState.FAILED}
    assert failed_before and (data["continued"], data["reopened"]) == (3, len(failed_before))
    for task, (generation, state) in states(run).items():
        again = task in data["tasks"]
        assert (generation, state) == (
            (int(task in failed_before), TaskState.PENDING) if again else before[task]
        )
    recipe = quick_recipe(catalogue)
    summary = asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None))))
    assert sum(summary.closed.values()) == len(data["tasks"])
    with JournalReader.open(run) as reader:
        for task in failed_before:
            attempts = reader.attempts(task)
            assert {a.superseded for a in attempts if a.generation == 0} == {True}
            assert any(a.generation == 1 and not a.superseded for a in attempts)
        for task in set(data["tasks"]) - failed_before:
            assert {(a.generation, a.superseded) for a in reader.attempts(task)} == {(0, False)}


def everything(run: Path) -> dict[str, list[object]]:
    """Every attempt with its verdict, by task: the material of a release."""
    with JournalReader.open(run) as reader:
        return {
            row.task.id: [(row.state, row.round), *reader.attempts(row.task.id)] for row in reader.tasks()
        }


@pytest.mark.parametrize("judges", [1, 2])
def test_late_outage_of_a_judge_repeats_no_instruction_and_no_edit(
    catalogue: Path, tmp_path: Path, judges: int
) -> None:
    """All tasks stop at the last judge; the resumed run equals an uninterrupted one, and no call is paid for twice."""
    recipe, log = quick_recipe(catalogue), CallLog(tmp_path / "log")
    good = quick_method(log, judges=judges)
    cut = Judges(lambda request: Outcome(OutcomeKind.MALFORMED, "the answer was cut at max_output_tokens"))
    silent = replace(good, judges=(*good.judges[:-1], cut))
    first = asyncio.run(run_build(recipe, tmp_path / "run", method=silent))
    assert first.closed == {TaskState.STOPPED: 9}
    assert main(["run", "retry", str(tmp_path / "run"), "--outcome", "malformed"]) == 0
    asyncio.run(run_build(recipe, tmp_path / "run", method=good))
    made = log.lines()
    assert len(made) == len(set(made)), "a call was made again"
    asyncio.run(run_build(recipe, tmp_path / "clean", method=quick_method(CallLog(None), judges=judges)))
    assert everything(tmp_path / "run") == everything(tmp_path / "clean")


def test_retry_refuses_an_unknown_outcome_in_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "retry", str(run), "--outcome", "refuse"]) == 2
    err = capsys.readouterr().err
    assert "--outcome 'refuse': did you mean 'refused'?" in err and err.count("\n") == 1
