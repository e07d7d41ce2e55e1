"""The Med-Banana layout: a tree of JPEG files named by image, finding and direction, with its JSON files.

The entries of the JSON files have the paper's schema with our fields added (section 5.2 of Med-Banana-50K). The
published scripts wrote five more files; a release has them so that code written for that dataset runs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import orjson

from plantain.journal import JsonValue
from plantain.journal.verdicts import published_verdict
from plantain.records import Criterion, TaskState
from plantain.release.layouts.contract import Layout, write_images
from plantain.release.naming import safe, task_folder, task_word
from plantain.release.plan import ReleaseFile
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging, open_hashed
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

_STATUS = {
    TaskState.SUCCESS: "success",
    TaskState.FAILED: "failed",
    TaskState.UNDECIDED: "undecided",
    TaskState.STOPPED: "api_failed",
    TaskState.NOT_APPLICABLE: "not_applicable",
}


def status_of(record: TaskRecord) -> str:
    """Return a task's state in the words of the published scripts, or `undecided`, `not_applicable`."""
    return _STATUS[record.state]


def conversation(record: TaskRecord, paths: dict[int, str]) -> JsonValue:
    """Return a task's entry in all_conversations.json; `paths`: paths of its images by index of the attempt."""
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
        "task": record.direction.value,
        "rounds": rounds,
        "outcome": status_of(record),
    }
    if record.state is TaskState.SUCCESS:
        entry["success_round"] = record.round
    entry["output_path"] = _final_path(record, paths)
    return entry


def verdict(attempt: AttemptRecord) -> JsonValue:
    """Return an attempt's deciding or published verdict as JSON, with the paper's names; None without a verdict."""
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
    """Return a task's entry in final_prompts.json: its last instruction and result."""
    current = _current(record)
    return {
        "image": record.image.id,
        "disease": record.finding,
        "status": status_of(record),
        "final_prompt": current[-1].instruction if current else None,
        "rounds": len(current),
    }


def failed_summary(record: TaskRecord, paths: dict[int, str]) -> JsonValue:
    """Return a failed task's entry in failed_summary.json; `paths` as for `conversation`."""
    current = _current(record)
    conversation: list[JsonValue] = [
        {"round": attempt.round, "prompt": attempt.instruction, "verification": verdict(attempt)}
        for attempt in current
    ]
    return {
        "task": record.direction.value,
        "image": record.image.id,
        "disease": record.finding,
        "final_prompt": current[-1].instruction if current else None,
        "rounds": len(current),
        "last_verification": verdict(current[-1]) if current else None,
        "final_image_path": _final_path(record, paths),
        "full_conversation": conversation,
    }


def api_failures(record: TaskRecord) -> Iterator[JsonValue]:
    """Yield a task's entries in api_failures.json: calls of its current generation without a usable answer."""
    for attempt in _current(record):
        for step, outcome in (("edit_image", attempt.edit_outcome), ("verify_image", attempt.judge_outcome)):
            if outcome is not None and not outcome.ok:
                yield _failure(record, step, attempt.round, f"{outcome.kind.value}: {outcome.reason}")
    if record.state is TaskState.STOPPED and record.reason.startswith("writer:"):
        first = record.round in (None, 1)
        step = "generate_prompt" if first else "update_prompt"
        yield _failure(record, step, record.round, record.reason.removeprefix("writer: "))


def retry(record: TaskRecord) -> JsonValue:
    """Return a retried task's entry in retry_log.json, without a time, which releases do not contain."""
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
        "task": record.direction.value,
        "step": step,
        "round": round,
        "error": error,
        "image": record.image.id,
        "disease": record.finding,
    }


def _current(record: TaskRecord) -> list[AttemptRecord]:
    return [attempt for attempt in record.attempts if not attempt.superseded]


def _final_path(record: TaskRecord, paths: dict[int, str]) -> str | None:
    """Return the success's image, else the last failure's."""
    if record.state is TaskState.SUCCESS:
        for index, attempt in enumerate(record.attempts):
            if not attempt.superseded and attempt.round == record.round:
                return paths.get(index)
    return paths[max(paths)] if paths else None


Entries = Callable[[TaskRecord, dict[int, str]], Iterable[JsonValue]]
"""From a task, and the paths of its images by the index of their attempt, to its entries in a JSON file."""


def write_tree(staging: Staging, released: ReleasedImages) -> None:
    """Write the images, then the JSON files of every folder."""
    write_images(staging, released, "med-banana")
    for folder in staging.folders():
        _write_json_files(staging, folder)


def path_of(record: TaskRecord, attempt: AttemptRecord) -> str:
    """Return an image's path as in Med-Banana (successful removals in `normal/`, failures by round); "" for others."""
    if attempt.role not in ("success", "failed"):
        return ""
    folder, disease, word = task_folder(record), safe(record.finding), task_word(record)
    stem = f"{safe(record.image.id)}-{disease}-{word}"
    if attempt.round == record.round and record.state is TaskState.SUCCESS:
        return f"{folder}/{'normal' if word == 'remove' else disease}/{stem}.jpeg"
    number = "" if attempt.round is None else f"-{attempt.round}"
    return f"{folder}-failed/{disease}/{stem}-failed{number}.jpeg"


def _write_json_files(staging: Staging, folder: str) -> None:
    """Write all of a folder's JSON files in one pass: parsing the records costs more than writing them.

    Each is an object by task, or a list, with one entry a line, so that it can be read line by line.
    """
    failed = f"{folder}-failed"
    kinds: dict[str, tuple[bytes, Entries]] = {
        f"{failed}/failed_summary.json": (
            b"[]",
            lambda task, paths: [failed_summary(task, paths)] if task.state is TaskState.FAILED else [],
        ),
        f"{folder}/all_conversations.json": (b"{}", lambda task, paths: [conversation(task, paths)]),
        f"{folder}/progress.json": (b"{}", lambda task, paths: [status_of(task)]),
        f"{folder}/final_prompts.json": (b"{}", lambda task, paths: [final_prompt(task)]),
        f"{folder}/api_failures.json": (b"[]", lambda task, paths: api_failures(task)),
        f"{folder}/retry_log.json": (b"[]", lambda task, paths: [retry(task)] if task.generation else []),
    }
    with ExitStack() as stack:
        files = {path: stack.enter_context(open_hashed(staging.out, path)) for path in kinds}
        for line, paths in staging.records_with_paths("med-banana", folder):
            record = from_json(line)
            for path, (brackets, entries) in kinds.items():
                key = orjson.dumps(record.key) + b": " if brackets == b"{}" else b""
                for entry in entries(record, paths):
                    files[path].write((b",\n" if files[path].size else brackets[:1] + b"\n") + key)
                    files[path].write(orjson.dumps(entry))
        for path, (brackets, _) in kinds.items():
            files[path].write((b"\n" if files[path].size else brackets[:1] + b"\n") + brackets[1:] + b"\n")
    staging.record(ReleaseFile(path, file.sha256, file.size, "record") for path, file in files.items())


LAYOUT = Layout(write_tree, path_of)
