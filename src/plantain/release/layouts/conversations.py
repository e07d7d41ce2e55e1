"""Entries of Med-Banana's JSON files: the paper's schema with our fields added, and the published scripts' own.

Paper: section 5.2 of Med-Banana-50K. The scripts wrote five more files; a release has them so that code written
for the published dataset runs on ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from plantain.journal import JsonValue
from plantain.journal.verdicts import published_verdict
from plantain.records import Criterion, TaskState
from plantain.release.task_record import AttemptRecord, TaskRecord

STEPS = ("generate_prompt", "update_prompt", "edit_image", "verify_image")
"""What the scripts call the calls of a round."""

_STATUS = {
    TaskState.SUCCESS: "success",
    TaskState.FAILED: "failed",
    TaskState.UNDECIDED: "undecided",
    TaskState.STOPPED: "api_failed",
    TaskState.NOT_APPLICABLE: "not_applicable",
}


def status_of(record: TaskRecord) -> str:
    """How a task ended, in the scripts' words (`undecided`, `not_applicable` and `control` are ours)."""
    return "control" if record.outcome == "control" else _STATUS[record.state]


def conversation(record: TaskRecord, paths: dict[int, str]) -> JsonValue:
    """Return a task's entry of all_conversations.json; `paths` are of its images, by the index of their attempt."""
    rounds: list[JsonValue] = []
    for index, attempt in enumerate(record.attempts):
        if not attempt.superseded:
            rounds.append(
                {
                    "round": attempt.round,
                    "instruction": attempt.instruction,
                    "edit_outcome": attempt.edit_outcome.kind.value if attempt.edit_outcome else None,
                    "verdict": verdict(attempt),
                    "output_path": paths.get(index),
                }
            )
    entry: dict[str, JsonValue] = {
        "image_id": record.image.id,
        "dataset": record.image.dataset,
        "modality": record.modality,
        "disease": record.finding,
        "task": record.word,
        "kind": record.kind.value,
        "rounds": rounds,
        "outcome": status_of(record),
    }
    if record.outcome == "success":
        entry["success_round"] = record.round
    entry["output_path"] = _final_path(record, paths)
    return entry


def verdict(attempt: AttemptRecord) -> JsonValue:
    """The deciding verdict, else the published one, in the paper's words, with criteria that its booleans leave out."""
    decided = attempt.verdict or published_verdict((s.metric, s.value, s.detail) for s in attempt.scores)
    if decided is None:
        return None
    seen = decided.observations

    def passed(criterion: Criterion) -> bool | None:
        return seen.criteria[criterion].passed if criterion in seen.criteria else None

    return {
        "has_disease": seen.facts.get("has_disease"),
        "structure_reasonable": passed(Criterion.STRUCTURAL_PLAUSIBILITY),
        "looks_realistic": passed(Criterion.REALISM),
        "qualified": decided.qualified,
        "reason": seen.reason,
        "instruction_compliant": passed(Criterion.INSTRUCTION_COMPLIANCE),
        "fidelity_preserved": passed(Criterion.FIDELITY_PRESERVATION),
        "other_disease": seen.facts.get("other_disease"),
        "score": decided.score,
        "qualified_all_pass": decided.qualified_all_pass,
        "qualified_weighted": decided.qualified_weighted,
        "judge": decided.judge,
    }


def final_prompt(record: TaskRecord) -> JsonValue:
    """A task's entry of final_prompts.json."""
    current = _current(record)
    return {
        "image": record.image.id,
        "disease": record.finding,
        "status": status_of(record),
        "final_prompt": current[-1].instruction if current else None,
        "rounds": len(current),
    }


def failed_summary(record: TaskRecord, paths: dict[int, str]) -> JsonValue:
    """A failed task's entry of failed_summary.json."""
    current = _current(record)
    conversation: list[JsonValue] = [
        {"round": attempt.round, "prompt": attempt.instruction, "verification": verdict(attempt)}
        for attempt in current
    ]
    return {
        "task": record.word,
        "image": record.image.id,
        "disease": record.finding,
        "final_prompt": current[-1].instruction if current else None,
        "rounds": len(current),
        "last_verification": verdict(current[-1]) if current else None,
        "final_image_path": _final_path(record, paths),
        "full_conversation": conversation,
    }


def api_failures(record: TaskRecord) -> Iterator[JsonValue]:
    """Entries of api_failures.json: every call of the task's current generation that brought no answer to use."""
    for attempt in _current(record):
        for step, outcome in (("edit_image", attempt.edit_outcome), ("verify_image", attempt.judge_outcome)):
            if outcome is not None and not outcome.ok:
                yield _failure(record, step, attempt.round, f"{outcome.kind.value}: {outcome.reason}")
    if record.state is TaskState.STOPPED and record.reason.startswith("writer:"):
        first = record.round in (None, 1)
        step = "generate_prompt" if first else "update_prompt"
        yield _failure(record, step, record.round, record.reason.removeprefix("writer: "))


def retry(record: TaskRecord) -> JsonValue:
    """A retried task's entry of retry_log.json. When it was retried is telemetry, which a release does not have."""
    before = [attempt for attempt in record.attempts if attempt.superseded]
    last = before[-1] if before else None
    faults = [o for o in (last.edit_outcome, last.judge_outcome) if o and not o.ok] if last else []
    return {
        "task": record.key,
        "step": "verify_image" if last and last.edited is not None else "edit_image" if last else None,
        "original_error": faults[0].reason if faults else None,
        "retry_success": record.state is TaskState.SUCCESS,
        "retry_error": None if record.state is TaskState.SUCCESS else record.reason or None,
        "timestamp": None,
    }


def _failure(record: TaskRecord, step: str, round: int | None, error: str) -> JsonValue:
    return {
        "task": record.word,
        "step": step,
        "round": round,
        "error": error,
        "image": record.image.id,
        "disease": record.finding,
    }


def _current(record: TaskRecord) -> list[AttemptRecord]:
    return [attempt for attempt in record.attempts if not attempt.superseded]


def _final_path(record: TaskRecord, paths: dict[int, str]) -> str | None:
    """The success's image, else the last failure's."""
    if record.state is TaskState.SUCCESS:
        for index, attempt in enumerate(record.attempts):
            if not attempt.superseded and attempt.round == record.round:
                return paths.get(index)
    return paths[max(paths)] if paths else None
