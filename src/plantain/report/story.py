"""One task's whole story as data, for scripts."""

from __future__ import annotations

from dataclasses import asdict

import orjson

from plantain.journal import JournalReader, TaskRow
from plantain.journal.payload import dumps
from plantain.report.absent import absence


def story_document(reader: JournalReader, task: TaskRow) -> dict[str, object]:
    """Everything that the journal holds of a task, all generations, ready for JSON.

    Blobs are named by hash in the records; `files` gives the path of each, `absent` says of those that an imported
    release did not carry where they could come from. A panel's members are in `verdicts` beside
    the decisive ones, which the attempts carry too.
    """
    image = reader.image(task.task.image_id)
    attempts = reader.attempts(task.id)
    hashes = {image.prepared_sha256: "original"}
    for attempt in attempts:
        named = ((attempt.edited, "edited"), (attempt.raw, "raw"), (attempt.mask, "mask"))
        hashes |= {sha: what for sha, what in named if sha is not None and sha not in hashes}
    absent = {sha: absence(reader, what, sha, image) for sha, what in sorted(hashes.items()) if sha}
    return {
        **asdict(task.task),
        "generation": task.generation,
        "state": task.state.value,
        "round": task.round,
        "reason": task.reason,
        "image": asdict(image),
        "attempts": orjson.loads(dumps(attempts)),
        "verdicts": orjson.loads(dumps(reader.verdicts(task.id))),
        "calls": [asdict(call) for call in reader.calls(task.id)],
        "files": {sha: str(reader.blob_path(sha)) for sha, why in absent.items() if not why},
        "absent": {sha: why for sha, why in absent.items() if why},
    }
