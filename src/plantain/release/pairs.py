"""Preference pairs: a success and a failure of the same task, and why a task has none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from plantain.records import TaskState
from plantain.release.task_record import TaskRecord

WITHIN_TASK_SUCCESS = "within_task_success"
"""Both edits are of one task: the one that qualified, and an earlier one that did not."""


@dataclass(frozen=True, slots=True)
class AttemptPair:
    """Two attempts of one task by their index; `chosen_first`: slot 0 has the chosen one."""

    chosen: int
    rejected: int
    chosen_first: bool


def pairs_of(record: TaskRecord) -> list[AttemptPair]:
    """Return every (success, failure) of the current generation that has both images, by the failure's round."""
    roles = [attempt.role for attempt in record.attempts]
    if "success" not in roles:
        return []
    chosen = roles.index("success")
    return [
        AttemptPair(chosen, index, _first_slot(record.task_id, index))
        for index, role in enumerate(roles)
        if role == "failed"
    ]


def why_no_pair(record: TaskRecord) -> str:
    """Return why a task has no pair, in a few fixed words that can be counted."""
    if record.state is not TaskState.SUCCESS:
        return f"no success ({record.state.value})"
    if record.round is None:
        return "rounds unknown"
    if any(attempt.edited is None and not attempt.superseded for attempt in record.attempts):
        return "no failed edit, only refused ones"
    return "succeeded in the first round"


def _first_slot(task_id: str, index: int) -> bool:
    """Return True to put the chosen image first, by hash, so that its column varies."""
    return hashlib.sha256(f"slot\x1f{task_id}\x1f{index}".encode()).digest()[0] < 128
