"""Attempts that people corrected by hand, beside the journal's own verdict on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plantain.journal.reader import JournalReader
from plantain.journal.verdicts import PERSON, corrections_in
from plantain.records import TaskState

SET = {True: "qualified", False: "failed"}
"""What a person can set."""


@dataclass(frozen=True, slots=True)
class CorrectedEdit:
    """The latest correction of one attempt by one person, beside what was decided.

    Attributes:
        by: the person's code.
        qualified: what the person set.
        decided: the decisive verdict, None if undecided; without one, whether the task succeeded in this round.
        why: the person's reason.
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
    """Return every correction that counts, by task, attempt and person."""
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
    """Return all corrections in one sentence; "" if there are none."""
    if not edits:
        return ""
    people = len({one.by for one in edits})
    down = sum(one.decided is True and not one.qualified for one in edits)
    up = sum(one.decided is False and one.qualified for one in edits)
    settled = sum(one.decided is None for one in edits)
    who = "one person" if people == 1 else f"{people} people"
    parts = [f"{down:,} accepted called failed", f"{up:,} rejected called qualified"]
    parts += [f"{settled:,} undecided settled"] if settled else []
    agreed = len(edits) - down - up - settled
    return (
        f"corrected by hand by {who}: {', '.join(parts)}{f', {agreed:,} confirmed' if agreed else ''}; "
        "the judge's verdicts are kept and decide"
    )
