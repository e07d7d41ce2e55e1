"""What a process did in a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from plantain.records import TaskState


@dataclass(slots=True)
class RunSummary:
    """What this process did, and whether something stopped it.

    Attributes:
        planned: tasks of the plan.
        closed: tasks that this process closed, by state.
        measured, judged, sets: scores of metrics and of judges, and distances of sets, that it stored.
        kept: outputs that were measured before.
        made, replayed: calls.
        spent_usd: what the run has cost so far, earlier processes included.
        stopped: None when all is done, else why ("interrupted", "limit", or what halted the run).
        failed: something is wrong, rather than used up.
        left: which batch jobs are still under way, "" where none is.
        regrouped: images that have another group or split now than when the run took them.
        notes: what was left out, and why, a line each.
    """

    planned: int = 0
    closed: Counter[TaskState] = field(default_factory=Counter)
    measured: int = 0
    judged: int = 0
    sets: int = 0
    kept: int = 0
    made: int = 0
    replayed: int = 0
    spent_usd: float = 0.0
    stopped: str | None = None
    failed: bool = False
    left: str = ""
    regrouped: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
