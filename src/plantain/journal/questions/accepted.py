"""Counts of accepted edits: by finding and direction, in a run with `accepted_per_finding`, and by turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from plantain.journal.reader import JournalReader
from plantain.journal.rows import BlobRef, from_json, to_json

META = "accepted"
"""Key of the run's meta: the latest decisions, as JSON of `Decisions`."""

Part = tuple[str, str, str]
"""Modality, finding and direction."""

_ACCEPTED = (
    "SELECT t.id, b.sha256, b.bytes, b.media_type, b.pixel_sha256 FROM task t JOIN attempt a ON a.task = t.id "
    "AND a.generation = t.generation AND a.round = t.round JOIN blob b ON b.sha256 = a.edited "
    "WHERE t.state = 'success' AND t.kind = 'edit'"
)
LATER_TURN = f"image_id GLOB '*+turn[0-9]-{'[0-9a-f]' * 20}-{'[0-9a-f]' * 8}'"
"""SQL of `records.images.parent_of(image_id) != ""`; the part after the original's id has 36 characters."""

_TURN = f"CASE WHEN {LATER_TURN} THEN CAST(substr(image_id, -31, 1) AS INTEGER) ELSE 1 END"

WHY = {
    "reached": "enough accepted",
    "images": "no further image",
    "yield": "yield below data.yield_floor",
    "": "open",
}
"""Why a part draws no further image, in words; "" while it may draw more."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions on the findings and directions (parts) of a run with `accepted_per_finding`.

    Attributes:
        required: number of accepted edits that each part needs.
        ended: (part, key of `WHY`) in the plan's order; the key is the reason why the part draws no further image.
        halted: why the run stopped while some parts were open; "" if it did not.
    """

    required: int
    ended: tuple[tuple[Part, str], ...]
    halted: str = ""


@dataclass(frozen=True, slots=True)
class PartCount:
    """Numbers of edit tasks of a finding and direction: all, closed, and successful."""

    tasks: int = 0
    closed: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """The edits of one finding and direction of a run with `accepted_per_finding`.

    Attributes:
        required, tried, accepted: numbers of required, closed and accepted edits.
        ended, why: why it draws no further image, as a key of `WHY` and in words.
    """

    modality: str
    finding: str
    direction: str
    required: int
    tried: int
    accepted: int
    ended: str
    why: str


def count_parts(reader: JournalReader) -> dict[Part, PartCount]:
    """Count the tasks of the first turn by part (finding and direction), for parts that have any."""
    rows = reader.connection.execute(
        "SELECT modality, finding, direction, count(*), sum(state <> 'pending'), sum(state = 'success') FROM task "
        f"WHERE kind = 'edit' AND NOT {LATER_TURN} GROUP BY 1, 2, 3"
    )
    return {(modality, finding, direction): PartCount(*n) for modality, finding, direction, *n in rows}


def ids_of_part(reader: JournalReader, part: Part) -> set[str]:
    """Return the ids of the edit tasks of a part (finding and direction) in the first turn."""
    query = "SELECT id FROM task WHERE kind = 'edit' AND (modality, finding, direction) = (?, ?, ?)"
    return {task for (task,) in reader.connection.execute(f"{query} AND NOT {LATER_TURN}", part)}


def decisions_of(reader: JournalReader) -> Decisions | None:
    """Return why parts of a run ended, as recorded last; None for a run without `accepted_per_finding`."""
    stored = reader.meta(META)
    return from_json(Decisions, stored) if stored else None


def accepted_rows(reader: JournalReader) -> tuple[AcceptedRow, ...]:
    """Return a row per finding and direction, in the plan's order; () for a run without `accepted_per_finding`."""
    decisions = decisions_of(reader)
    if decisions is None:
        return ()
    counts, rows = count_parts(reader), []
    for part, ended in decisions.ended:
        count = counts.get(part, PartCount())
        why = WHY[ended] if ended or not decisions.halted else decisions.halted
        rows.append(AcceptedRow(*part, decisions.required, count.closed, count.accepted, ended, why))
    return tuple(rows)


def joined(metas: Collection[Mapping[str, str]]) -> dict[str, str]:
    """Merge the decisions of shards into a meta entry: a part has ended if it ended for the same reason in all."""
    shards = [from_json(Decisions, meta[META]) for meta in metas if meta.get(META)]
    if not shards:
        return {}
    ended: dict[Part, str] = dict(shards[0].ended)
    for shard in shards[1:]:
        ended |= {part: why if ended.get(part) == why else "" for part, why in shard.ended}
    return {META: to_json(Decisions(sum(shard.required for shard in shards), tuple(ended.items())))}


@dataclass(frozen=True, slots=True)
class TurnRow:
    """Numbers of edit tasks of one turn: all, closed, and accepted."""

    turn: int
    tasks: int
    closed: int
    accepted: int

    def __str__(self) -> str:
        return f"turn {self.turn}: {self.accepted:,} accepted of {self.closed:,} tried"


def accepted_edits(reader: JournalReader) -> dict[str, BlobRef]:
    """Return the accepted image of each successful edit task, by task id."""
    return {task: BlobRef(*blob) for task, *blob in reader.connection.execute(_ACCEPTED)}


def turn_rows(reader: JournalReader) -> tuple[TurnRow, ...]:
    """Return the counts of each turn; () for a run without a second turn."""
    rows = reader.connection.execute(
        f"SELECT {_TURN}, count(*), sum(state <> 'pending'), sum(state = 'success') FROM task "
        "WHERE kind = 'edit' GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return tuple(TurnRow(*row) for row in rows) if len(rows) > 1 else ()
