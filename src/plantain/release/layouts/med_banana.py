"""The Med-Banana layout: a tree of JPEG files named by image, finding and direction, with its JSON files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import orjson

from plantain.journal import JsonValue
from plantain.records import TaskKind, TaskState
from plantain.release.layouts.contract import Layout, write_pictures
from plantain.release.layouts.conversations import (
    api_failures,
    conversation,
    failed_summary,
    final_prompt,
    retry,
    status_of,
)
from plantain.release.naming import safe, task_folder, task_word
from plantain.release.pictures import Pictures
from plantain.release.staging import HashingFile, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Entries = Callable[[TaskRecord, dict[int, str]], Iterable[JsonValue]]
"""From a task, and the paths of its images by the index of their attempt, to its entries in a JSON file."""


def write_tree(staging: Staging, pictures: Pictures) -> None:
    """Write the images, then the JSON files of every folder."""
    write_pictures(staging, pictures, "med-banana")
    for folder in staging.folders():
        _write_json_files(staging, folder)


def path_of(record: TaskRecord, attempt: AttemptRecord) -> str:
    """Return the published path: successes of removals in `normal/`, failures in their own folder, by round."""
    if attempt.role not in ("success", "failed", "control"):
        return ""
    folder, disease, word = task_folder(record), safe(record.finding), task_word(record)
    stem = f"{safe(record.image.id)}-{disease}-{word}"
    if attempt.round == record.round and record.state is TaskState.SUCCESS:
        return f"{folder}/{'normal' if word == 'remove' else disease}/{stem}.jpeg"
    number = "" if attempt.round is None else f"-{attempt.round}"
    return f"{folder}-failed/{disease}/{stem}-failed{number}.jpeg"


def _write_json_files(staging: Staging, folder: str) -> None:
    """Write all of a folder's JSON files in one pass: parsing the records costs more than writing them."""
    failed = f"{folder}-failed"
    files: dict[str, tuple[bytes, Entries]] = {
        f"{folder}/all_conversations.json": (b"{}", lambda task, paths: [conversation(task, paths)]),
        f"{folder}/progress.json": (b"{}", lambda task, paths: [status_of(task)]),
        f"{folder}/final_prompts.json": (b"{}", lambda task, paths: [final_prompt(task)]),
        f"{folder}/api_failures.json": (b"[]", lambda task, paths: api_failures(task)),
        f"{folder}/retry_log.json": (b"[]", lambda task, paths: [retry(task)] if task.generation else []),
    }
    if from_json(next(staging.records(folder))).kind is not TaskKind.CONTROL:
        files[f"{failed}/failed_summary.json"] = (
            b"[]",
            lambda task, paths: [failed_summary(task, paths)] if task.state is TaskState.FAILED else [],
        )
    staging.write_together(
        list(files), "record", lambda open_files: _stream(staging, folder, open_files, list(files.values()))
    )


def _stream(
    staging: Staging, folder: str, files: Sequence[HashingFile], kinds: Sequence[tuple[bytes, Entries]]
) -> None:
    """Write JSON objects (by task) or arrays, one entry a line, so that they can be read line by line."""
    started = [False] * len(files)
    for line, paths in staging.records_with_paths("med-banana", folder):
        record = from_json(line)
        for number, (file, (brackets, entries)) in enumerate(zip(files, kinds, strict=True)):
            key = orjson.dumps(record.key) + b": " if brackets == b"{}" else b""
            for entry in entries(record, paths):
                file.write((b",\n" if started[number] else brackets[:1] + b"\n") + key + orjson.dumps(entry))
                started[number] = True
    for file, (brackets, _), some in zip(files, kinds, started, strict=True):
        file.write((b"\n" if some else brackets[:1] + b"\n") + brackets[1:] + b"\n")


LAYOUT = Layout(write_tree, path_of)
