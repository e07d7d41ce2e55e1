"""Edits that a run or a release calls successes, with their originals: what separability and utility look at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plantain.catalogue.groups import Groups
from plantain.journal import JournalReader
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Direction, InputError, Step, TaskKind, TaskState
from plantain.train.examples.originals import StoredOriginals
from plantain.train.examples.release_pairs import TABLES, ReleasePairs

MOST = 600
"""Edits that are looked at; above that they are drawn by hash."""


@dataclass(frozen=True, slots=True)
class MadeEdit:
    """One edit and its original.

    Attributes:
        id: of the task.
        editor: who made it; the release's name where only that is known.
        group: shared by edits of one patient or picture.
        finding, direction: what was asked for.
        before, after: uint8 RGB (H, W, 3), same shape.
    """

    id: str
    editor: str
    group: str
    finding: str
    direction: Direction
    before: Pixels = field(repr=False)
    after: Pixels = field(repr=False)


def made_edits(folder: Path, originals: Path | None = None, most: int = MOST) -> list[MadeEdit]:
    """Successful edits whose originals are at hand.

    Args:
        folder: a run, or a release in the `parquet` layout.
        originals: the run or catalogue with a release's originals; default: those that it carries.
        most: of them.

    Raises:
        InputError: neither a run nor a release, or no such edit in it.
    """
    found = list(
        _of_run(folder, most) if (folder / JOURNAL_NAME).is_file() else _of_release(folder, originals, most)
    )
    if not found:
        raise InputError(f"{folder}: holds no successful edit whose original is at hand")
    return found


def _of_run(run: Path, most: int) -> Iterator[MadeEdit]:
    with JournalReader.open(run) as reader:
        groups = Groups(reader.images())
        successes = [row.id for row in reader.tasks(TaskState.SUCCESS) if row.task.kind is TaskKind.EDIT]
        for name in _some(successes, most):
            row = reader.task(name)
            image = reader.image(row.task.image_id)
            kept = [a.edited for a in reader.attempts(name, row.generation) if a.edited and not a.superseded]
            if not kept or not (reader.has_blob(kept[-1]) and reader.has_blob(image.prepared_sha256)):
                continue
            made = [call.model for call in reader.calls(name, row.generation) if call.key.step is Step.EDIT]
            before, after = (decode(reader.read_blob(sha256)) for sha256 in (image.prepared_sha256, kept[-1]))
            if before.shape != after.shape:
                continue
            editor, task = made[-1] if made else run.name, row.task
            yield MadeEdit(name, editor, groups.name(image), task.finding, task.direction, before, after)


def _of_release(release: Path, originals: Path | None, most: int) -> Iterator[MadeEdit]:
    if not (release / TABLES).is_dir():
        raise InputError(
            f"{release}: neither a run (no {JOURNAL_NAME}) nor a release with tables (no {TABLES}/)"
        )
    pairs = ReleasePairs(release, StoredOriginals(originals or release))
    chosen = _some([listed.id for listed in pairs.listed()], most)
    for pair in pairs.read(chosen):
        direction, _, finding = pair.task.partition(" ")
        yield MadeEdit(
            pair.id, release.name, pair.cluster, finding, Direction(direction), pair.before, pair.after
        )


def _some(ids: list[str], most: int) -> list[str]:
    by_hash = sorted(ids, key=lambda name: hashlib.sha256(name.encode()).digest())
    return sorted(by_hash[:most])
