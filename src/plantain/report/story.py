"""One task's whole story as data, for scripts."""

from __future__ import annotations

from dataclasses import asdict

from plantain.journal import JournalReader, TaskRow


def story_document(reader: JournalReader, task: TaskRow) -> dict[str, object]:
    """Everything that the journal holds of a task, all generations, ready for JSON.

    Blobs are named by hash in the records; `files` gives the path of each. A panel's members are in `verdicts` beside
    the decisive ones, which the attempts carry too.
    """
    image = reader.image(task.task.image_id)
    attempts = reader.attempts(task.id)
    hashes = {image.prepared_sha256}
    for attempt in attempts:
        hashes |= {sha for sha in (attempt.edited, attempt.raw, attempt.mask) if sha is not None}
    return {
        **asdict(task.task),
        "generation": task.generation,
        "state": task.state.value,
        "round": task.round,
        "reason": task.reason,
        "image": asdict(image),
        "attempts": [asdict(attempt) for attempt in attempts],
        "verdicts": [asdict(stored) for stored in reader.verdicts(task.id)],
        "calls": [asdict(call) for call in reader.calls(task.id)],
        "files": {sha: str(reader.blob_path(sha)) for sha in sorted(hashes) if sha},
    }
