"""The trajectory layout of every release: one line of JSON per task with every round, verdict and image reference.

Accepted edits over several turns of one image are also a conversation, a line of a second file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from plantain.records import TaskState
from plantain.release.layouts.contract import Layout, write_originals
from plantain.release.plan import CONVERSATIONS, TRAJECTORIES
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import Staging
from plantain.release.task_record import TaskRecord, from_json


def write_trajectories(staging: Staging, released: ReleasedImages) -> None:
    """Write the record of every task, sorted by id, and the originals that are planned as files."""
    staging.write_chunks(TRAJECTORIES, (record + b"\n" for record in staging.records()))
    loop = staging.facts.frozen.get("loop")
    if isinstance(loop, Mapping) and loop.get("turns"):
        staging.write_chunks(CONVERSATIONS, conversations(staging))
    write_originals(staging, released)


def conversations(staging: Staging) -> Iterator[bytes]:
    """Yield one JSON line per chain of accepted edits over several turns: original, instructions and images."""
    later: dict[str, TaskRecord] = {}
    for line in staging.records():
        if (
            b"+turn" in line
            and (record := from_json(line)).image.parent
            and record.state is TaskState.SUCCESS
        ):
            later[record.task_id] = record
    parents = {record.image.parent for record in later.values()}
    accepted = later | {
        record.task_id: record
        for record in map(from_json, staging.records())
        if record.task_id in parents and record.state is TaskState.SUCCESS
    }
    for task_id, last in later.items():
        if task_id in parents:
            continue
        chain = [last]
        while (before := accepted.get(chain[0].image.parent)) is not None:
            chain.insert(0, before)
        first = chain[0]
        made, started = [_result(record) for record in chain], [one.image.prepared_sha256 for one in chain]
        if first.image.parent or made[:-1] != started[1:]:
            continue  # a turn before is no longer accepted, or another edit of it is
        turns = [
            {
                "task_id": record.task_id,
                "round": record.round,
                "finding": record.finding,
                "direction": record.direction.value,
                "instruction": next(a.instruction for a in record.attempts if a.role == "success"),
                "edited": edited,
            }
            for record, edited in zip(chain, made, strict=True)
        ]
        about = {"image_id": first.image.id, "dataset": first.image.dataset, "modality": first.modality}
        yield orjson.dumps({**about, "split": first.split, "original": started[0], "turns": turns}) + b"\n"


def _result(record: TaskRecord) -> str:
    """Return the hash of a task's accepted image."""
    return next(a.edited.sha256 for a in record.attempts if a.role == "success" and a.edited)


LAYOUT = Layout(write_trajectories)
