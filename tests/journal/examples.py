"""Small real records for the journal's tests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from plantain.journal import BlobRef, CallResult, Journal, RunHeader, StartedCall, StoredVerdict
from plantain.records import (
    OK,
    Attempt,
    CallKey,
    Criterion,
    CriterionResult,
    Direction,
    EditTask,
    FailureCode,
    Geometry,
    Licence,
    Observations,
    SourceImage,
    Step,
    Usage,
    Verdict,
    task_id,
)

Do = Callable[[Coroutine[object, object, Any]], Any]

HEADER = RunHeader("run-1", "pilot", 7, {"rounds": 5, "models": ["a", None, 0.5]}, "0.1.0")
OBSERVED = Observations(
    {
        name: CriterionResult(name is not Criterion.REALISM, 0.5, (FailureCode.HARD_EDGE,), "é")
        for name in Criterion
    },
    {"has_disease": True, "other_disease": False},
    None,
    "the border is sharp",
)
VERDICT = Verdict("offline/instruments", OBSERVED, False, True, 0.8, True)


def an_image(prepared: BlobRef, name: str = "i0") -> SourceImage:
    shape = Geometry(10, 12, "pad", 1, 0, 8, 10)
    return SourceImage(
        name, "sample", "chest_xray", ("No Finding",), Licence.OPEN, "0" * 64, prepared.sha256, shape
    )


def a_task(number: int, image: str = "i0") -> EditTask:
    name = task_id(str(number), 0, "Pneumothorax", Direction.ADD)
    return EditTask(name, image, "chest_xray", "Pneumothorax", Direction.ADD)


def a_call(
    task: str, round: int = 1, step: Step = Step.EDIT, tries: int = 1, generation: int = 0
) -> StartedCall:
    key = CallKey(task, generation, round, step)
    return StartedCall(key, tries, "offline/procedural", "f" * 64, 0.25)


async def a_run(folder: Path, tasks: int = 3) -> Journal:
    """A run with one image and some pending tasks."""
    journal = Journal.create(folder, HEADER)
    prepared = journal.put_blob(b"prepared", "image/jpeg")
    await journal.add_images([(an_image(prepared), prepared)])
    await journal.add_tasks(a_task(number) for number in range(tasks))
    return journal


async def one_round(journal: Journal, task: str, round: int = 1, generation: int = 0) -> Attempt:
    """Writes, edits and judges once, as a build does; returns the attempt as it must come back."""
    call = await journal.start_call(a_call(task, round, Step.WRITE, generation=generation))
    attempt = Attempt(task, generation, round, f"add a small pneumothorax, try {round}")
    await journal.settle_call(CallResult(call, OK, True, answer=attempt.instruction, attempt=attempt))
    call = await journal.start_call(a_call(task, round, Step.EDIT, generation=generation))
    edited = journal.put_blob(f"{task} {generation} {round}".encode(), "image/jpeg")
    attempt = Attempt(task, generation, round, attempt.instruction, OK, edited.sha256, support="local")
    await journal.settle_call(
        CallResult(call, OK, True, Usage("m", 10, 20, images=1), 0.2, 1.5, "{}", "raw", (edited,), attempt)
    )
    call = await journal.start_call(a_call(task, round, Step.JUDGE, generation=generation))
    attempt = Attempt(
        task, generation, round, attempt.instruction, OK, edited.sha256, None, None, "local", OK, VERDICT
    )
    verdicts = (StoredVerdict(task, generation, round, VERDICT),)
    await journal.settle_call(CallResult(call, OK, True, cost_usd=0.05, attempt=attempt, verdicts=verdicts))
    return attempt
