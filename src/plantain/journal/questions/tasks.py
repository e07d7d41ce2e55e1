"""Questions about a run's tasks: how they ended and why, what they edit, and where their images came from."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import orjson

from plantain.journal.reader import JournalReader
from plantain.journal.verdicts import JUDGED_AGAIN, PERSON
from plantain.records import Licence, TaskState

CLOSED_EDITS = "state <> 'pending' AND kind <> 'bench'"
"""The tasks that a release of the run's state holds."""

_ENDED = (
    "SELECT t.id, t.finding, t.direction, t.state, t.reason, c.outcome, c.step FROM task t LEFT JOIN call c ON c.id = "
    "(SELECT max(id) FROM call WHERE task = t.id AND generation = t.generation AND final = 1 AND "
    f"(t.kind = 'bench' OR draw < {JUDGED_AGAIN})) "
    "WHERE t.state IN ('failed', 'not_applicable', 'stopped') AND t.id > ? ORDER BY t.id LIMIT ?"
)
_PAGE = 1_000
_BEGUN = "(state <> 'pending' OR EXISTS (SELECT 1 FROM attempt a WHERE a.task = t.id AND a.superseded = 0))"
_USED = "SELECT record FROM image WHERE id IN (SELECT image_id FROM task)"
_KEYS = (
    "json_extract(record, '$.dataset'), json_extract(record, '$.modality'), json_extract(record, '$.licence')"
)


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A closed task that did not succeed; `outcome` and `step` are of the call that ended it, None where none did."""

    id: str
    finding: str
    direction: str
    state: str
    reason: str
    outcome: str | None
    step: str | None


@dataclass(frozen=True, slots=True)
class ImagesUsed:
    """Images that tasks use, of one dataset, modality and licence; at most four different notes of them."""

    dataset: str
    modality: str
    licence: str
    images: int
    synthetic: int
    notes: tuple[str, ...]


def ended_without_success(reader: JournalReader) -> Iterator[EndedTask]:
    """Tasks that are closed and did not succeed, in the order of their ids, streamed."""
    after = ""
    while rows := reader.connection.execute(_ENDED, (after, _PAGE)).fetchall():
        for row in rows:
            yield EndedTask(*row)
        after = rows[-1][0]


def anything_judged(reader: JournalReader) -> bool:
    """Whether the run has a verdict, or an edit that waits for one: a label that somebody published is none."""
    closed = "EXISTS (SELECT 1 FROM task WHERE kind = 'edit' AND state IN ('success', 'failed'))"
    judged = f"SELECT EXISTS (SELECT 1 FROM verdict WHERE judge NOT LIKE '{PERSON}%') OR NOT {closed}"
    return bool(reader.connection.execute(judged).fetchone()[0])


def findings_of_tasks(reader: JournalReader) -> set[str]:
    """Every finding that a task names."""
    return {name for (name,) in reader.connection.execute("SELECT DISTINCT finding FROM task")}


def rounds_of_closed(reader: JournalReader) -> Iterator[tuple[str, str, TaskState, int]]:
    """(finding, direction, state, rounds) of each closed edit task."""
    rows = reader.connection.execute(
        "SELECT t.finding, t.direction, t.state, count(a.round) FROM task t LEFT JOIN attempt a ON a.task = t.id "
        "AND a.generation = t.generation WHERE t.state <> 'pending' AND t.kind = 'edit' GROUP BY t.id"
    )
    return ((finding, direction, TaskState(state), rounds) for finding, direction, state, rounds in rows)


def why_not_done(reader: JournalReader) -> list[tuple[TaskState, str, int]]:
    """(state, reason, tasks) of the tasks that are neither success nor failure, the commonest first."""
    rows = reader.connection.execute(
        "SELECT state, reason, count(*) FROM task WHERE state IN ('undecided', 'not_applicable', 'stopped')"
        " AND reason <> '' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    )
    return [(TaskState(state), reason, n) for state, reason, n in rows]


def begun_by_state(reader: JournalReader) -> dict[str, int]:
    """Edit tasks and controls by state; those that nothing has happened to yet are left out."""
    query = f"SELECT state, count(*) FROM task t WHERE kind <> 'bench' AND {_BEGUN} GROUP BY 1"
    return dict(reader.connection.execute(query))


def begun_in_state(reader: JournalReader, state: str) -> Iterator[str]:
    """Ids of the tasks that `begun_by_state` counts under one state, sorted, streamed."""
    query = f"SELECT id FROM task t WHERE kind <> 'bench' AND state = ? AND {_BEGUN} ORDER BY id"
    return (task_id for (task_id,) in reader.connection.execute(query, (state,)))


def pending_images(reader: JournalReader, *, but: Collection[str], unrecorded: bool) -> list[str]:
    """Ids of the images of tasks that are still to be done.

    Args:
        but: licences of which the run's own record is enough: such images are left out.
        unrecorded: give those, too, that the run has no record of yet.
    """
    listed = "json_extract(record, '$.licence')"
    held = reader.connection.execute(
        f"SELECT id FROM image WHERE {listed} NOT IN (SELECT value FROM json_each(?))",
        (orjson.dumps(sorted(but)).decode(),),
    )
    wanted = {name for (name,) in held}
    if not wanted and not unrecorded:
        return []
    recorded = (
        {name for (name,) in reader.connection.execute("SELECT id FROM image")} if unrecorded else set()
    )
    pending = reader.connection.execute("SELECT DISTINCT image_id FROM task WHERE state = 'pending'")
    return [name for (name,) in pending if name in wanted or (unrecorded and name not in recorded)]


def tasks_of_image(reader: JournalReader, image_id: str) -> list[str]:
    """Ids of the tasks that edit an image."""
    return [
        task for (task,) in reader.connection.execute("SELECT id FROM task WHERE image_id = ?", (image_id,))
    ]


def images_used(reader: JournalReader) -> list[ImagesUsed]:
    """The images that tasks use, by dataset, modality and licence."""
    rows = reader.connection.execute(
        f"SELECT {_KEYS}, count(*), sum(json_extract(record, '$.synthetic')) FROM ({_USED}) GROUP BY 1, 2, 3"
        " ORDER BY 1, 2, 3"
    ).fetchall()
    return [
        ImagesUsed(
            dataset, modality, licence, images, synthetic or 0, _notes(reader, dataset, modality, licence)
        )
        for dataset, modality, licence, images, synthetic in rows
    ]


def _notes(reader: JournalReader, dataset: str, modality: str, licence: str) -> tuple[str, ...]:
    rows = reader.connection.execute(
        f"SELECT DISTINCT json_extract(record, '$.note') AS note FROM ({_USED}) WHERE"
        " json_extract(record, '$.dataset') = ? AND json_extract(record, '$.modality') = ?"
        " AND json_extract(record, '$.licence') = ? AND note <> '' ORDER BY 1 LIMIT 4",
        (dataset, modality, licence),
    )
    return tuple(note for (note,) in rows)


def licences_of_closed(reader: JournalReader) -> Iterator[tuple[str, Licence]]:
    """Every (dataset, licence) among the images of closed edit tasks."""
    rows = reader.connection.execute(
        "SELECT DISTINCT json_extract(record, '$.dataset'), json_extract(record, '$.licence') FROM image "
        f"WHERE id IN (SELECT image_id FROM task WHERE {CLOSED_EDITS})"
    )
    return ((dataset, Licence(licence)) for dataset, licence in rows)
