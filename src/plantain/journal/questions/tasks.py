"""Queries about a run's tasks: states, reasons, images and corrections by people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import orjson

from plantain.journal.reader import JournalReader
from plantain.journal.verdicts import JUDGED_AGAIN, PERSON, corrections_in
from plantain.records import Licence, TaskState

CLOSED_EDITS = "state <> 'pending' AND kind <> 'bench'"
"""The tasks that a release of the run's state contains."""

_ENDED = (
    "SELECT t.id, t.finding, t.direction, t.state, t.reason, c.outcome, c.step FROM task t LEFT JOIN call c ON c.id = "
    "(SELECT max(id) FROM call WHERE task = t.id AND generation = t.generation AND final = 1 AND "
    f"(t.kind = 'bench' OR draw < {JUDGED_AGAIN})) "
    "WHERE t.state IN ('failed', 'not_applicable', 'stopped') AND t.id > ? ORDER BY t.id LIMIT ?"
)
_PAGE = 1_000
_STARTED = "(state <> 'pending' OR EXISTS (SELECT 1 FROM attempt a WHERE a.task = t.id AND a.superseded = 0))"
_USED = "SELECT record FROM image WHERE id IN (SELECT image_id FROM task)"
_KEYS = (
    "json_extract(record, '$.dataset') AS dataset, json_extract(record, '$.modality') AS modality, "
    "json_extract(record, '$.licence') AS licence"
)


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A closed task that did not succeed; `outcome` and `step` are those of the call that ended it, or None."""

    id: str
    finding: str
    direction: str
    state: str
    reason: str
    outcome: str | None
    step: str | None

    @property
    def ending(self) -> str:
        """The call's outcome that stopped the task, else the task's state."""
        return (self.outcome if self.state == TaskState.STOPPED else None) or self.state


@dataclass(frozen=True, slots=True)
class ImagesUsed:
    """The images of one dataset, modality and licence that tasks use.

    Attributes:
        images: their number; `synthetic`: the number of rendered ones.
        notes: up to four different notes of these images.
    """

    dataset: str
    modality: str
    licence: str
    images: int
    synthetic: int
    notes: tuple[str, ...]


def ended_without_success(reader: JournalReader) -> Iterator[EndedTask]:
    """Yield the closed tasks that did not succeed, sorted by id; they can be reopened."""
    after = ""
    while rows := reader.connection.execute(_ENDED, (after, _PAGE)).fetchall():
        for row in rows:
            yield EndedTask(*row)
        after = rows[-1][0]


def anything_judged(reader: JournalReader) -> bool:
    """Return True if the run has a judge's verdict, or an edit that waits for one; published labels do not count."""
    closed = "EXISTS (SELECT 1 FROM task WHERE kind = 'edit' AND state IN ('success', 'failed'))"
    judged = f"SELECT EXISTS (SELECT 1 FROM verdict WHERE judge NOT LIKE '{PERSON}%') OR NOT {closed}"
    return bool(reader.connection.execute(judged).fetchone()[0])


def rounds_of_closed(reader: JournalReader) -> Iterator[tuple[TaskState, int]]:
    """Yield (state, rounds) of each closed edit task."""
    rows = reader.connection.execute(
        "SELECT t.state, count(a.round) FROM task t LEFT JOIN attempt a ON a.task = t.id "
        "AND a.generation = t.generation WHERE t.state <> 'pending' AND t.kind = 'edit' GROUP BY t.id"
    )
    return ((TaskState(state), rounds) for state, rounds in rows)


def started_by_state(reader: JournalReader) -> dict[str, int]:
    """Return the number of edit tasks that were started, by state."""
    query = f"SELECT state, count(*) FROM task t WHERE kind <> 'bench' AND {_STARTED} GROUP BY 1"
    return dict(reader.connection.execute(query))


def started_in_state(reader: JournalReader, state: str) -> Iterator[str]:
    """Yield the sorted ids of the tasks that `started_by_state` counts for one state."""
    query = f"SELECT id FROM task t WHERE kind <> 'bench' AND state = ? AND {_STARTED} ORDER BY id"
    return (task_id for (task_id,) in reader.connection.execute(query, (state,)))


def pending_images(reader: JournalReader, *, but: Collection[str], unrecorded: bool) -> list[str]:
    """Return the ids of the images of pending tasks.

    Args:
        but: licences to skip, for images that the run has a record of.
        unrecorded: True to also return images that the run has no record of yet.
    """
    run = reader.connection.execute
    listed = orjson.dumps(sorted(but)).decode()
    held = (
        "SELECT id FROM image WHERE json_extract(record, '$.licence') NOT IN (SELECT value FROM json_each(?))"
    )
    wanted = {name for (name,) in run(held, (listed,))}
    if not wanted and not unrecorded:
        return []
    recorded = {name for (name,) in run("SELECT id FROM image")} if unrecorded else set()
    pending = run("SELECT DISTINCT image_id FROM task WHERE state = 'pending'")
    return [name for (name,) in pending if name in wanted or (unrecorded and name not in recorded)]


def tasks_of_image(reader: JournalReader, image_id: str) -> list[str]:
    """Return the ids of the tasks that edit an image."""
    rows = reader.connection.execute("SELECT id FROM task WHERE image_id = ?", (image_id,))
    return [task for (task,) in rows]


def images_used(reader: JournalReader) -> list[ImagesUsed]:
    """Return the images that tasks use, by dataset, modality and licence."""
    rows = reader.connection.execute(
        f"SELECT {_KEYS}, count(*), sum(json_extract(record, '$.synthetic')) FROM ({_USED}) GROUP BY 1, 2, 3"
        " ORDER BY 1, 2, 3"
    ).fetchall()
    notes = (
        f"SELECT DISTINCT {_KEYS}, json_extract(record, '$.note') AS note FROM ({_USED}) WHERE note <> '' AND"
        " dataset = ? AND modality = ? AND licence = ? ORDER BY note LIMIT 4"
    )
    found = []
    for dataset, modality, licence, images, synthetic in rows:
        own_notes = tuple(row[3] for row in reader.connection.execute(notes, (dataset, modality, licence)))
        found.append(ImagesUsed(dataset, modality, licence, images, synthetic or 0, own_notes))
    return found


def licences_of_closed(reader: JournalReader) -> Iterator[tuple[str, Licence]]:
    """Yield every distinct (dataset, licence) of the images of closed edit tasks."""
    rows = reader.connection.execute(
        "SELECT DISTINCT json_extract(record, '$.dataset'), json_extract(record, '$.licence') FROM image "
        f"WHERE id IN (SELECT image_id FROM task WHERE {CLOSED_EDITS})"
    )
    return ((dataset, Licence(licence)) for dataset, licence in rows)


def judged_again(reader: JournalReader) -> set[tuple[str, int, int]]:
    """Return (task id, generation, round) of each attempt that was judged again after the run."""
    rows = reader.connection.execute(
        f"SELECT DISTINCT task, generation, round FROM verdict WHERE draw >= {JUDGED_AGAIN}"
    )
    return {(task, generation, round) for task, generation, round in rows}


SET = {True: "qualified", False: "failed"}
"""Decisions that a human reader can set."""


@dataclass(frozen=True, slots=True)
class CorrectedEdit:
    """The latest correction of one attempt by one human reader, with the recorded decision.

    Attributes:
        by: the reader's code.
        qualified: the reader's decision.
        decided: the decisive verdict, None if undecided; without a verdict, True if the task succeeded in this round.
        why: the reader's reason.
    """

    task: str
    modality: str
    finding: str
    direction: str
    generation: int
    round: int
    by: str
    qualified: bool
    decided: bool | None
    why: str

    @property
    def set(self) -> str:
        return SET[self.qualified]


def corrected_edits(reader: JournalReader) -> tuple[CorrectedEdit, ...]:
    """Return the valid corrections, by task, attempt and reader."""
    # Joined, since a release hides open tasks.
    query = f"SELECT DISTINCT t.id FROM verdict v JOIN task t ON t.id = v.task WHERE judge LIKE '{PERSON}%' ORDER BY 1"
    found = []
    for (task_id,) in reader.connection.execute(query).fetchall():
        row, verdicts = reader.task(task_id), reader.verdicts(task_id)
        decided = {(one.generation, one.round): one.verdict.qualified for one in verdicts if one.decisive}
        for one in corrections_in(verdicts):
            key = (one.generation, one.round)
            ended = (row.state, row.generation, row.round) == (TaskState.SUCCESS, *key)
            task, by = row.task, one.verdict.judge.removeprefix(PERSON)
            about = (task_id, task.modality, task.finding, task.direction.value, *key, by)
            verdict = one.verdict
            found.append(
                CorrectedEdit(
                    *about, bool(verdict.qualified), decided.get(key, ended), verdict.observations.reason
                )
            )
    return tuple(sorted(found, key=lambda one: (one.task, one.generation, one.round, one.by)))


def corrections_line(edits: Sequence[CorrectedEdit]) -> str:
    """Summarise all corrections in one sentence; "" without any."""
    if not edits:
        return ""
    people = len({one.by for one in edits})
    down = sum(one.decided is True and not one.qualified for one in edits)
    up = sum(one.decided is False and one.qualified for one in edits)
    settled = sum(one.decided is None for one in edits)
    who = "one reader" if people == 1 else f"{people} readers"
    parts = [f"{down:,} accepted called failed", f"{up:,} rejected called qualified"]
    parts += [f"{settled:,} undecided settled"] if settled else []
    agreed = len(edits) - down - up - settled
    return (
        f"corrected by hand by {who}: {', '.join(parts)}{f', {agreed:,} confirmed' if agreed else ''}; "
        "the judge's verdicts are kept and decide"
    )
