from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from fakes.commands import refused
from pipeline.quick import (
    CallLog,
    Draws,
    Judges,
    QuickWriter,
    drawn,
    judging,
    observed,
    quick_method,
    quick_recipe,
)
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Method, Recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, Outcome, OutcomeKind, TaskState
from plantain.report.page import write_report
from plantain.roles import EditedImage, EditRequest, EncodedImage, JudgeRequest, Reply, WriteRequest
from plantain.runs.progress import RunSummary


def build(recipe: Recipe, run: Path, method: Method, limit: int | None = None) -> RunSummary:
    return asyncio.run(run_build(recipe, run, method=method, limit=limit))


class Remembers(QuickWriter):
    """Keeps every request that it received."""

    def __init__(self) -> None:
        super().__init__(CallLog(None))
        self.requests: list[WriteRequest] = []

    async def write(self, request: WriteRequest) -> Reply[str]:
        self.requests.append(request)
        return await super().write(request)


def one_task(catalogue: Path, **loop: object) -> Recipe:
    return quick_recipe(catalogue, findings=("AMD",), data={"per_finding": 1}, **loop)


def method_with(**models: object) -> Method:
    return replace(quick_method(CallLog(None)), **models)


def test_failed_rounds_refine_with_the_whole_history_from_the_original(
    catalogue: Path, tmp_path: Path
) -> None:
    writer, editor, judge = Remembers(), Draws(), judging(False, False, True)
    method = method_with(writer=writer, editor=editor, judges=(judge,), max_rounds=5)
    build(one_task(catalogue, max_rounds=5), tmp_path / "run", method)
    assert [len(r.history) for r in writer.requests] == [0, 1, 2]
    assert all(a.verdict and not a.verdict.qualified for a in writer.requests[2].history)
    assert len({r.original.data for r in editor.requests}) == 1
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round) == (TaskState.SUCCESS, 3)
        assert [a.round for a in reader.attempts(row.task.id)] == [1, 2, 3]


def test_judge_sees_the_released_bytes_and_never_the_mask(catalogue: Path, tmp_path: Path) -> None:
    judge = judging(True)
    build(one_task(catalogue), tmp_path / "run", method_with(editor=Draws(), judges=(judge,)))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        (attempt,) = reader.attempts(row.task.id)
        assert attempt.edited and attempt.mask
        assert judge.requests[0].edited.data == reader.read_blob(attempt.edited)
    assert "mask" not in JudgeRequest.__dataclass_fields__


def test_refusals_consume_rounds_and_stop_the_task(catalogue: Path, tmp_path: Path) -> None:
    editor = Draws(lambda request: Outcome(OutcomeKind.REFUSED, "safety"))
    build(one_task(catalogue), tmp_path / "run", method_with(editor=editor))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert (row.state, row.reason) == (TaskState.STOPPED, "editor: refused, safety")
        attempts = reader.attempts(row.task.id)
        assert [a.edited for a in attempts] == [None, None, None]
        assert all(a.edit_outcome and a.edit_outcome.kind is OutcomeKind.REFUSED for a in attempts)


def test_bytes_that_are_not_an_image_are_malformed_and_kept(catalogue: Path, tmp_path: Path) -> None:
    def broken(request: EditRequest) -> EditedImage:
        return EditedImage(EncodedImage(b"<html>busy</html>", "image/jpeg"))

    build(one_task(catalogue), tmp_path / "run", method_with(editor=Draws(broken)))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert row.state is TaskState.STOPPED and "malformed" in row.reason
        attempt = reader.attempts(row.task.id)[0]
        assert attempt.edited is None and attempt.raw
        assert reader.read_blob(attempt.raw) == b"<html>busy</html>"


def test_frozen_part_may_not_change(catalogue: Path, tmp_path: Path) -> None:
    build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)))
    with pytest.raises(InputError, match=r"loop\.max_rounds is now 2, .*started with 3; .*frozen"):
        build(quick_recipe(catalogue, max_rounds=2), tmp_path / "run", quick_method(CallLog(None)))
    other = quick_recipe(catalogue).model_copy(update={"name": "other"})
    with pytest.raises(InputError, match=r"the name is now other, .*started with quick; name, .*frozen"):
        build(other, tmp_path / "run", quick_method(CallLog(None)))
    printed = refused("judge", "audit", "--run", tmp_path / "run")
    assert (
        f"not the run of an audit; to audit with its images: plantain judge audit {tmp_path / 'run'} --judge"
        in printed
    )


def test_changed_model_stops_a_half_done_task_with_a_sentence(catalogue: Path, tmp_path: Path) -> None:
    recipe = one_task(catalogue)
    dies = Judges(lambda request: Outcome(OutcomeKind.TRANSPORT, "quota is gone", fatal=True))
    halted = build(recipe, tmp_path / "run", method_with(editor=Draws(), judges=(dies,)))
    assert halted.failed and halted.stopped == "quick/judge: quota is gone"

    class Newer(Remembers):
        fingerprint = "2"

    newer = method_with(writer=Newer(), editor=Draws(), judges=(judging(True),))
    changed = build(recipe, tmp_path / "run", newer)
    assert changed.failed and changed.stopped and "another prompt, model version or image" in changed.stopped
    healed = build(recipe, tmp_path / "run", method_with(editor=Draws(), judges=(judging(True),)))
    assert healed.stopped is None and healed.replayed == 2 and healed.made == 1


ROUNDS = 4


class Scripted(QuickWriter):
    """Writes the next of some instructions, by the round."""

    def __init__(self, *words: str) -> None:
        super().__init__(CallLog())
        self.words = words

    async def write(self, request: WriteRequest) -> Reply[str]:
        return Reply(self.words[request.round - 1])


def test_an_edit_that_came_back_unchanged_is_judged_again_and_named(
    catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls, run = count(1), tmp_path / "run"
    judge = Judges(lambda request: observed(False, f"call {next(calls)}"))
    editor = Draws(lambda request: drawn(request.original.data, 4))
    writer = Scripted("draw it", "draw it", "draw it larger", "draw it")
    method = replace(
        quick_method(CallLog(), max_rounds=ROUNDS), writer=writer, editor=editor, judges=(judge,)
    )
    recipe = quick_recipe(catalogue, findings=("AMD",), data={"per_finding": 1}, max_rounds=ROUNDS)
    asyncio.run(run_build(recipe, run, method=method))
    with JournalReader.open(run) as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round) == (TaskState.FAILED, ROUNDS)
        reasons = [a.verdict.observations.reason if a.verdict else None for a in reader.attempts(row.task.id)]
        assert reasons == ["call 1", "call 2", "call 3", "call 4"]

    def printed(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert printed("show", str(run), row.task.id).count("came back unchanged: the image of round 1") == 3
    page = write_report(run).read_text()
    assert page.count("Came back unchanged: the image of round 1.") == 3
