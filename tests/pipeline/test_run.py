from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import (
    CallLog,
    QuickEditor,
    QuickJudge,
    QuickWriter,
    drawn,
    quick_method,
    quick_recipe,
)
from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader
from plantain.pipeline.method import Method
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import (
    Criterion,
    CriterionResult,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    TaskState,
)
from plantain.roles import EditedImage, EditRequest, JudgeRequest, Reply, WriteRequest, failed
from plantain.runs.summary import RunSummary


def build(recipe: Recipe, run: Path, method: Method, limit: int | None = None) -> RunSummary:
    return asyncio.run(run_build(recipe, run, method=method, limit=limit))


class Verdicts(QuickJudge):
    """Says what it is told, round by round."""

    def __init__(self, *passed: bool) -> None:
        super().__init__(CallLog(None))
        self.passed = passed
        self.requests: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.requests.append(request)
        good = self.passed[min(len(self.requests), len(self.passed)) - 1]
        return Reply(
            Observations(
                {c: CriterionResult(good) for c in Criterion}, {"has_disease": good}, good, "as told"
            )
        )


class Remembers(QuickWriter):
    """Keeps every request that it was handed."""

    def __init__(self) -> None:
        super().__init__(CallLog(None))
        self.requests: list[WriteRequest] = []

    async def write(self, request: WriteRequest) -> Reply[str]:
        self.requests.append(request)
        return await super().write(request)


class Draws(QuickEditor):
    """Never refuses, and keeps every request."""

    def __init__(self) -> None:
        super().__init__(CallLog(None))
        self.requests: list[EditRequest] = []

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.requests.append(request)
        return Reply(drawn(request.original.data, request.seed))


class Answers(QuickEditor):
    """Gives the same outcome to every request."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(CallLog(None))
        self.outcome = outcome

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        return failed(self.outcome)


def one_task(catalogue: Path, **loop: object) -> Recipe:
    recipe = quick_recipe(catalogue, findings=("AMD",), **loop)
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"per_finding": 1})})


def method_with(**models: object) -> Method:
    return replace(quick_method(CallLog(None)), **models)


def test_failed_rounds_refine_with_the_whole_history_from_the_original(
    catalogue: Path, tmp_path: Path
) -> None:
    writer, editor, judge = Remembers(), Draws(), Verdicts(False, False, True)
    method = method_with(writer=writer, editor=editor, judges=(judge,), max_rounds=5)
    build(one_task(catalogue, max_rounds=5), tmp_path / "run", method)
    assert [len(r.history) for r in writer.requests] == [0, 1, 2]
    assert all(a.verdict and not a.verdict.qualified for a in writer.requests[2].history)
    assert all(r.failed_edit is None for r in writer.requests)
    assert len({r.original.data for r in editor.requests}) == 1
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round) == (TaskState.SUCCESS, 3)
        assert [a.round for a in reader.attempts(row.task.id)] == [1, 2, 3]


def test_writer_sees_the_failed_edit_only_when_asked(catalogue: Path, tmp_path: Path) -> None:
    writer, judge = Remembers(), Verdicts(False, True)
    method = method_with(writer=writer, editor=Draws(), judges=(judge,), writer_sees_failed_edit=True)
    build(one_task(catalogue, writer_sees_failed_edit=True), tmp_path / "run", method)
    assert writer.requests[0].failed_edit is None
    shown = writer.requests[1].failed_edit
    assert shown is not None and shown.data == judge.requests[0].edited.data


def test_judge_sees_the_released_bytes_and_never_the_mask(catalogue: Path, tmp_path: Path) -> None:
    judge = Verdicts(True)
    build(one_task(catalogue), tmp_path / "run", method_with(editor=Draws(), judges=(judge,)))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        (attempt,) = reader.attempts(row.task.id)
        assert attempt.edited and attempt.mask
        assert judge.requests[0].edited.data == reader.read_blob(attempt.edited)
    assert "mask" not in JudgeRequest.__dataclass_fields__


def test_refusals_consume_rounds_and_stop_the_task(catalogue: Path, tmp_path: Path) -> None:
    editor = Answers(Outcome(OutcomeKind.REFUSED, "safety"))
    build(one_task(catalogue), tmp_path / "run", method_with(editor=editor))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert (row.state, row.reason) == (TaskState.STOPPED, "editor: refused, safety")
        attempts = reader.attempts(row.task.id)
        assert [a.edited for a in attempts] == [None, None, None]
        assert all(a.edit_outcome and a.edit_outcome.kind is OutcomeKind.REFUSED for a in attempts)


def test_not_applicable_closes_the_task_when_a_second_place_is_refused_too(
    catalogue: Path, tmp_path: Path
) -> None:
    editor = Answers(Outcome(OutcomeKind.NOT_APPLICABLE, "no macula in view"))
    build(one_task(catalogue), tmp_path / "run", method_with(editor=editor))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round, row.reason) == (TaskState.NOT_APPLICABLE, 2, "no macula in view")


def test_bytes_that_are_no_image_are_malformed_and_kept(catalogue: Path, tmp_path: Path) -> None:
    class Broken(Draws):
        async def edit(self, request: EditRequest) -> Reply[EditedImage]:
            edited = drawn(request.original.data, request.seed)
            return Reply(replace(edited, image=replace(edited.image, data=b"<html>busy</html>")))

    build(one_task(catalogue), tmp_path / "run", method_with(editor=Broken()))
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        assert row.state is TaskState.STOPPED and "malformed" in row.reason
        attempt = reader.attempts(row.task.id)[0]
        assert attempt.edited is None and attempt.raw
        assert reader.read_blob(attempt.raw) == b"<html>busy</html>"


def test_limit_closes_at_most_n_and_the_next_run_goes_on(catalogue: Path, tmp_path: Path) -> None:
    first = build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)), limit=4)
    assert sum(first.closed.values()) == 4 and first.stopped == "limit"
    second = build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)))
    assert sum(second.closed.values()) == 5 and second.stopped is None


def test_findings_may_be_added_on_resume(catalogue: Path, tmp_path: Path) -> None:
    build(quick_recipe(catalogue, findings=("AMD",)), tmp_path / "run", quick_method(CallLog(None)))
    more = build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)))
    assert more.planned == 9 and sum(more.closed.values()) == 6


def test_a_patient_told_or_corrected_after_the_tasks_were_made_is_learned(
    catalogue: Path, tmp_path: Path
) -> None:
    own, run = tmp_path / "catalogue", tmp_path / "run"
    shutil.copytree(catalogue, own)
    build(quick_recipe(own), run, quick_method(CallLog(None)))
    with Catalogue.create(own) as opened, opened.transaction():
        for image in list(opened.images()):
            assert image.group is None
            opened.replace(image, replace(image, group=f"patient {image.id}", split="test"))
    again = build(quick_recipe(own), run, quick_method(CallLog(None)))
    assert (again.made, again.planned) == (0, 9)
    with JournalReader.open(run) as reader:
        images = list(reader.images())
        assert images
        assert all((image.group, image.split) == (f"patient {image.id}", "test") for image in images)
    assert set(again.regrouped) == {image.id for image in images}
    with Catalogue.create(own) as opened, opened.transaction():
        first = opened.get(images[0].id)
        opened.replace(first, replace(first, group="patient x"))
    assert build(quick_recipe(own), run, quick_method(CallLog(None))).regrouped == (first.id,)
    with JournalReader.open(run) as reader:
        assert reader.image(first.id).group == "patient x"


def test_frozen_part_may_not_change(catalogue: Path, tmp_path: Path) -> None:
    build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)))
    with pytest.raises(InputError, match=r"loop\.max_rounds is now 2, .*begun with 3; .*frozen"):
        build(quick_recipe(catalogue, max_rounds=2), tmp_path / "run", quick_method(CallLog(None)))


def test_changed_model_stops_a_half_done_task_with_a_sentence(catalogue: Path, tmp_path: Path) -> None:
    class Dies(QuickJudge):
        async def judge(self, request: JudgeRequest) -> Reply[Observations]:
            return failed(Outcome(OutcomeKind.TRANSPORT, "quota is gone", fatal=True))

    recipe = one_task(catalogue)
    halted = build(recipe, tmp_path / "run", method_with(editor=Draws(), judges=(Dies(CallLog(None)),)))
    assert halted.failed and halted.stopped == "quick/judge: quota is gone"

    class Newer(Remembers):
        fingerprint = "2"

    changed = build(
        recipe, tmp_path / "run", method_with(writer=Newer(), editor=Draws(), judges=(Verdicts(True),))
    )
    assert changed.failed and changed.stopped and "another prompt, model version or image" in changed.stopped
    healed = build(recipe, tmp_path / "run", method_with(editor=Draws(), judges=(Verdicts(True),)))
    assert healed.stopped is None and healed.replayed == 2 and healed.made == 1


SLOW_RUN = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from pipeline.quick import CallLog, QuickEditor, quick_method, quick_recipe
from dataclasses import replace
from plantain.calls.client import ModelClient
from plantain.pipeline.run import run_build

def request_stop(self, *, wait_for_jobs=False, own=ModelClient.request_stop):
    own(self, wait_for_jobs=wait_for_jobs)
    print("stopping", flush=True)

ModelClient.request_stop = request_stop

class Slow(QuickEditor):
    async def edit(self, request):
        print("editing", flush=True)
        await asyncio.sleep({seconds})
        return await super().edit(request)

log = CallLog(Path({log!r}))
method = replace(quick_method(log), editor=Slow(log))
summary = asyncio.run(run_build(quick_recipe(Path({catalogue!r})), Path({run!r}), method=method))
print("stopped", summary.stopped, flush=True)
"""


def start_slow_run(catalogue: Path, tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    code = SLOW_RUN.format(
        here=str(Path(__file__).parents[1]),
        catalogue=str(catalogue),
        run=str(tmp_path / "run"),
        log=str(tmp_path / "log"),
        seconds=seconds,
    )
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "editing"
    return process


def test_first_interrupt_finishes_what_is_in_flight(catalogue: Path, tmp_path: Path) -> None:
    process = start_slow_run(catalogue, tmp_path, seconds=1.0)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert "stopped interrupted" in out
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.open_calls() == []
        assert reader.counts()[TaskState.PENDING] == 9


def test_second_interrupt_stops_at_once_and_loses_nothing_recorded(catalogue: Path, tmp_path: Path) -> None:
    process = start_slow_run(catalogue, tmp_path, seconds=600.0)
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGINT)
    while process.stdout.readline().strip() != "stopping":  # two equal signals that both wait are one
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 3
    with JournalReader.open(tmp_path / "run") as reader:
        assert "edit" in {call.key.step for call in reader.open_calls()} <= {"edit", "write"}
        assert all(
            call.key.step == "write"
            for row in reader.tasks()
            for call in reader.calls(row.task.id)
            if call.final
        )
    resumed = build(quick_recipe(catalogue), tmp_path / "run", quick_method(CallLog(None)))
    assert resumed.stopped is None and resumed.replayed >= 1
