"""What a process did of a run, whatever the run is for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from plantain.records import TaskState


@dataclass(slots=True)
class RunSummary:
    """What this process did, and whether something stopped it.

    Attributes:
        tasks: tasks of the plan that was asked for.
        closed: tasks that this process closed, by state.
        stored: what else it stored, by what it is: "metrics", "judges", "sets", "attention".
        made, replayed: calls.
        spent_usd: what the run has cost so far, earlier processes included.
        stopped: None when nothing is lacking, else why ("interrupted", "limit", or what halted the run).
        failed: something is wrong, rather than used up.
        left: which batch jobs go on without us, "" where none does.
        regrouped: images that have another group or split now than when the run took them.
        notes: what was left out, and why, a line each.
    """

    tasks: int = 0
    closed: Counter[TaskState] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)
    made: int = 0
    replayed: int = 0
    spent_usd: float = 0.0
    stopped: str | None = None
    failed: bool = False
    left: str = ""
    regrouped: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
