from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from quick import CallLog, QuickEditor, quick_catalogue, quick_method, quick_recipe

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.retry import RetryChoice, ended_tasks
from plantain.pipeline.run import run_build
from plantain.records import Outcome, OutcomeKind, TaskState
from plantain.roles import EditedImage, EditRequest, Reply, failed


class Moody(QuickEditor):
    """Refuses AMD, sends no image for Diabetes, and edits the rest."""

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        if "AMD" in request.instruction:
            return failed(Outcome(OutcomeKind.REFUSED, "safety"))
        if "Diabetes" in request.instruction:
            return failed(Outcome(OutcomeKind.NO_IMAGE, "words only"))
        return Reply(self._draw(request))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    recipe = quick_recipe(quick_catalogue(tmp_path / "catalogue"))
    method = replace(quick_method(CallLog(None)), editor=Moody(CallLog(None)))
    asyncio.run(run_build(recipe, tmp_path / "run", method=method))
    return tmp_path / "run"


def states(run: Path) -> dict[str, tuple[int, TaskState]]:
    with JournalReader.open(run) as reader:
        return {row.task.id: (row.generation, row.state) for row in reader.tasks()}


def chosen(run: Path, *endings: str, **more: tuple[str, ...]) -> set[str]:
    with JournalReader.open(run) as reader:
        return {ended.finding for ended in ended_tasks(reader, RetryChoice(endings, **more))}


def test_retry_finds_tasks_by_how_they_ended(run: Path) -> None:
    assert chosen(run, "refused") == {"AMD"}
    assert chosen(run, "no_image") == {"Diabetes"}
    assert chosen(run, "refused", "no_image", findings=("AMD",)) == {"AMD"}
    assert chosen(run, "refused", steps=("edit",)) == {"AMD"}
    assert chosen(run, "refused", steps=("judge",)) == set()
    assert chosen(run, "malformed") == set()


def test_retry_opens_exactly_those_and_build_goes_on_with_them(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = states(run)
    assert main(["retry", str(run), "--outcome", "refused", "--step", "edit", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["matched"], told["reopened"]) == (3, 0) and states(run) == before
    assert main(["retry", str(run), "--outcome", "refused", "--step", "edit", "--json"]) == 0
    reopened = set(json.loads(capsys.readouterr().out)["tasks"])
    for task, (generation, state) in states(run).items():
        assert (generation, state) == ((1, TaskState.PENDING) if task in reopened else before[task])
    recipe = quick_recipe(run.parent / "catalogue")
    summary = asyncio.run(run_build(recipe, run, method=quick_method(CallLog(None))))
    assert sum(summary.closed.values()) == 3
    with JournalReader.open(run) as reader:
        for task in reopened:
            attempts = reader.attempts(task)
            assert {a.superseded for a in attempts if a.generation == 0} == {True}
            assert any(a.generation == 1 and not a.superseded for a in attempts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outcome", "refuse"], "--outcome 'refuse': not one of refused, malformed"),
        (["--outcome", "refused", "--step", "paint"], "--step 'paint': not one of write, edit, judge"),
        (["--outcome", "refused", "--finding", "AMDD"], "--finding 'AMDD': not one of AMD"),
        (["--outcome", ","], "name at least one"),
    ],
)
def test_retry_bad_words_are_one_line(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retry", str(run), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
