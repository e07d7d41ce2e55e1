"""The Med-Banana layout: a tree of JPEG files named by image, finding and direction, with its JSON files, streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import orjson

from plantain.journal import JsonValue
from plantain.records import TaskKind, TaskState
from plantain.release.layouts import conversations
from plantain.release.layouts.contract import Layout, write_pictures
from plantain.release.naming import safe, task_folder, task_word
from plantain.release.pictures import Pictures
from plantain.release.staging import HashingFile, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Entries = Callable[[bytes, TaskRecord, dict[int, str]], Iterator[bytes]]
"""From a task (as JSON, as a record, and the paths of its images) to its entries in a JSON file."""


def write_tree(staging: Staging, pictures: Pictures) -> None:
    """Writes the images, then the JSON files of every folder."""
    write_pictures(staging, pictures, "med-banana")
    for folder in staging.folders():
        _write_json_files(staging, folder)


def path_of(record: TaskRecord, attempt: AttemptRecord) -> str:
    """As published: successes of removals lie in `normal/`, failures in a folder of their own, by round."""
    if attempt.role not in ("success", "failed", "control"):
        return ""
    folder, disease, word = task_folder(record), safe(record.finding), task_word(record)
    stem = f"{safe(record.image.id)}-{disease}-{word}"
    if attempt.round == record.round and record.state is TaskState.SUCCESS:
        return f"{folder}/{'normal' if word == 'remove' else disease}/{stem}.jpeg"
    number = "" if attempt.round is None else f"-{attempt.round}"
    return f"{folder}-failed/{disease}/{stem}-failed{number}.jpeg"


def _write_json_files(staging: Staging, folder: str) -> None:
    """All of a folder's JSON files in one pass: parsing the records costs more than writing them."""
    failed = f"{folder}-failed"
    files: dict[str, tuple[bytes, Entries]] = {
        f"{folder}/all_conversations.json": (b"{}", _conversations),
        f"{folder}/progress.json": (b"{}", _progress),
        f"{folder}/final_prompts.json": (b"{}", _final_prompts),
        f"{folder}/api_failures.json": (b"[]", _api_failures),
        f"{folder}/retry_log.json": (b"[]", _retries),
    }
    if from_json(next(staging.records(folder))).kind is not TaskKind.CONTROL:
        files[f"{failed}/failed_summary.json"] = (b"[]", _failed_summaries)
    staging.write_together(
        list(files), "record", lambda open_files: _stream(staging, folder, open_files, list(files.values()))
    )


def _stream(
    staging: Staging, folder: str, files: Sequence[HashingFile], kinds: Sequence[tuple[bytes, Entries]]
) -> None:
    """Writes JSON objects or arrays an entry at a time; one entry a line, so that it can be read back likewise."""
    begun = [False] * len(files)
    for line, paths in staging.records_with_paths("med-banana", folder):
        record = from_json(line)
        for number, (file, (brackets, entries)) in enumerate(zip(files, kinds, strict=True)):
            for entry in entries(line, record, paths):
                file.write((b",\n" if begun[number] else brackets[:1] + b"\n") + entry)
                begun[number] = True
    for file, (brackets, _), some in zip(files, kinds, begun, strict=True):
        file.write((b"\n" if some else brackets[:1] + b"\n") + brackets[1:] + b"\n")


def _keyed(record: TaskRecord, value: JsonValue) -> bytes:
    return orjson.dumps(record.key) + b": " + orjson.dumps(value)


def _conversations(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    yield orjson.dumps(record.key) + b": " + conversations.conversation(record, line, paths)


def _progress(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    yield _keyed(record, conversations.status_of(record))


def _final_prompts(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    yield _keyed(record, conversations.final_prompt(record))


def _api_failures(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    yield from map(orjson.dumps, conversations.api_failures(record))


def _retries(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    if record.generation:
        yield orjson.dumps(conversations.retry(record))


def _failed_summaries(line: bytes, record: TaskRecord, paths: dict[int, str]) -> Iterator[bytes]:
    if record.state is TaskState.FAILED:
        yield orjson.dumps(conversations.failed_summary(record, paths))


LAYOUT = Layout(write_tree, path_of)
