"""The Med-Banana layout: a tree of JPEG files named by image, finding and direction, with its JSON files, streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson

from plantain.journal import JsonValue
from plantain.records import TaskKind, TaskState
from plantain.release.layouts import conversations
from plantain.release.layouts.contract import Layout, write_pictures
from plantain.release.naming import safe, task_folder, task_word
from plantain.release.pictures import Pictures
from plantain.release.plan import ReleaseFile
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
    first = next(staging.records(folder))
    failed = f"{folder}-failed"
    is_control = from_json(first).kind is TaskKind.CONTROL

    def dictionary(name: str, entries: Entries) -> None:
        staging.write(
            f"{folder}/{name}", "record", lambda file: _stream(staging, folder, file, b"{}", entries)
        )

    def listing(path: str, entries: Entries) -> None:
        staging.write(path, "record", lambda file: _stream(staging, folder, file, b"[]", entries))

    dictionary("all_conversations.json", _conversations)
    dictionary("progress.json", _progress)
    dictionary("final_prompts.json", _final_prompts)
    listing(f"{folder}/api_failures.json", _api_failures)
    listing(f"{folder}/retry_log.json", _retries)
    if not is_control:
        listing(f"{failed}/failed_summary.json", _failed_summaries)


def _stream(
    staging: Staging, folder: str, file: HashingFile, brackets: bytes, entries: Entries
) -> Iterator[ReleaseFile]:
    """Writes a JSON object or array an entry at a time; one entry a line, so that it can be read back likewise."""
    separator = brackets[:1] + b"\n"
    for line, paths in staging.records_with_paths("med-banana", folder):
        for entry in entries(line, from_json(line), paths):
            file.write(separator + entry)
            separator = b",\n"
    file.write((b"\n" if separator == b",\n" else separator) + brackets[1:] + b"\n")
    return iter(())


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
