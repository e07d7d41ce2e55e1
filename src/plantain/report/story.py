"""A task's history as data, and where images that an imported release does not contain can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

import orjson

from plantain.journal import BadBlob, JournalReader, TaskRow
from plantain.journal.reader import BLOBS_ABSENT
from plantain.journal.rows import dumps
from plantain.journal.verdicts import PUBLISHED
from plantain.records import SourceImage

T = TypeVar("T")


def there(reader: JournalReader, sha256: str) -> bool:
    """Return False only for an image that an imported release did not contain; elsewhere a missing blob is an error."""
    return reader.meta(BLOBS_ABSENT) is None or reader.has_blob(sha256)


def image_of(reader: JournalReader, sha256: str, decode: Callable[[bytes], T]) -> T | None:
    """Return a decoded image; None where it is not there, or damaged, which the reader's blobs then know."""
    if not there(reader, sha256):
        return None
    try:
        return decode(reader.read_blob(sha256))
    except BadBlob:
        reader.blobs.damaged |= {sha256}
        return None


def absence(reader: JournalReader, what: str, sha256: str, image: SourceImage) -> str:
    """Return where a missing image can be had, in words; "" if it is there, or should be.

    Args:
        reader: of the run.
        what: "original", "edited", "raw" or "mask".
        sha256: of the missing image.
        image: the source image of its task.
    """
    if there(reader, sha256):
        return ""
    if what == "original":
        return (
            f"not in the imported release, which contains no originals: ask the owner of {image.dataset} for image "
            f"{image.id}, then prepare it with `plantain ingest` (the SHA-256 of the prepared image starts with "
            f"{sha256[:12]})"
        )
    if what == "raw":
        return f"not in the imported release: the run that made it has the editor's answer (SHA-256 {sha256[:12]}...)"
    return (
        "not in the imported folder: import one that contains the release's images, or ask for the run that made it "
        f"(SHA-256 {sha256[:12]}...)"
    )


def story_document(reader: JournalReader, task: TaskRow) -> dict[str, object]:
    """Return everything that the journal has of a task, all generations, ready for JSON.

    Blobs are named by hash in the records; `files` gives the path of each, `absent` says where one can be had that an
    imported release did not contain. A panel's members are in `verdicts` beside the decisive ones, which the attempts
    have too.
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
        "published": [
            {"generation": score.generation, "round": score.round, **score.detail}
            for score in reader.scores(task.id)
            if score.metric == PUBLISHED
        ],
        "calls": [asdict(call) for call in reader.calls(task.id)],
        "files": {sha: str(reader.blob_path(sha)) for sha, why in absent.items() if not why},
        "absent": {sha: why for sha, why in absent.items() if why},
    }
