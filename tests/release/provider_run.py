"""A run of one task whose editor sent an image with a manifest of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from plantain.journal import BlobRef, Journal, RecordedTask, RunHeader, StoredVerdict, TaskRow
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import OK, Attempt, Direction, EditTask, TaskState, task_id
from release.runs import source_image, verdict


def run_with_provider_manifest(folder: Path, sent: bytes) -> tuple[Path, str]:
    """The run's folder and the task's id."""
    image = replace(source_image(1), id="eye")
    name = task_id(image.source_sha256, 0, "AMD", Direction.ADD)

    async def make() -> None:
        header = RunHeader("feedface00000000", "provider", 1, {}, "0.1.0")
        async with await asyncio.to_thread(Journal.create, folder, header) as journal:
            raw = journal.put_blob(sent, "image/jpeg")
            edited = journal.put_blob(encode_jpeg(decode(sent)), "image/jpeg")
            await journal.add_images([(image, BlobRef(image.prepared_sha256, 0, "image/jpeg"))])
            task = EditTask(name, image.id, image.modality, "AMD", Direction.ADD)
            attempt = Attempt(
                name,
                0,
                1,
                "add drusen",
                edit_outcome=OK,
                edited=edited.sha256,
                raw=raw.sha256,
                judge_outcome=OK,
            )
            told = StoredVerdict(name, 0, 1, verdict(True, 1))
            row = TaskRow(task, 0, TaskState.SUCCESS, 1, "")
            await journal.set_meta("method", '{"writer": "a writer: 3"}')
            await journal.add_recorded([RecordedTask(row, (attempt,), (told,), (), (raw, edited))])

    asyncio.run(make())
    return folder, name
