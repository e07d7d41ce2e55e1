"""What a pilot run teaches a plan: rounds per task, tries, cost and latency per call, bytes per attempt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from plantain.journal import JournalReader
from plantain.journal.questions.tasks import rounds_of_closed
from plantain.journal.questions.telemetry import costs
from plantain.pipeline.estimate import CallEstimate
from plantain.records import InputError, Step, TaskState

FEWEST = 20
"""Closed tasks of a finding and direction from which its own rates are used; the whole pilot's below that."""


@dataclass(slots=True)
class Tally:
    """Closed tasks of a pilot, the sum and the sum of squares of their rounds, and how many succeeded."""

    tasks: int = 0
    rounds: float = 0.0
    squares: float = 0.0
    succeeded: int = 0

    def add(self, rounds: int, succeeded: bool) -> None:
        self.tasks += 1
        self.rounds += rounds
        self.squares += rounds * rounds
        self.succeeded += succeeded

    def rounds_per_task(self) -> CallEstimate:
        """The mean, and its 95 % interval by the normal approximation."""
        mean = self.rounds / self.tasks
        variance = max(0.0, self.squares / self.tasks - mean * mean) * self.tasks / max(1, self.tasks - 1)
        half = 1.96 * math.sqrt(variance / self.tasks)
        return CallEstimate(max(0.0, mean - half), mean, mean + half)


@dataclass(frozen=True, slots=True)
class Pilot:
    """Rates of a run, for a plan over more images.

    Attributes:
        whole: all closed tasks; `parts` those of one finding and direction.
        tries: model calls per attempt, by step, retries included.
        cost_usd, latency_s: mean per call, by step and model, where known.
        bytes_per_attempt: on disk.
    """

    whole: Tally
    parts: dict[tuple[str, str], Tally]
    tries: dict[Step, float]
    cost_usd: dict[tuple[Step, str], float]
    latency_s: dict[tuple[Step, str], float]
    bytes_per_attempt: float

    def of(self, finding: str, direction: str) -> Tally:
        """The rates for a finding and direction: its own, or the whole pilot's where it saw too few."""
        part = self.parts.get((finding, direction))
        return part if part is not None and part.tasks >= FEWEST else self.whole


def read_pilot(run: Path) -> Pilot:
    """Reads a run's rates; it may still be building.

    Raises:
        InputError: no run there, or none of its tasks is closed.
    """
    with JournalReader.open(run) as reader:
        whole, parts = Tally(), dict[tuple[str, str], Tally]()
        for finding, direction, state, rounds in rounds_of_closed(reader):
            succeeded = state is TaskState.SUCCESS
            whole.add(rounds, succeeded)
            parts.setdefault((finding, direction), Tally()).add(rounds, succeeded)
        if not whole.tasks:
            raise InputError(f"--pilot {run}: none of its tasks is closed yet, so there are no rates yet")
        attempts = reader.attempt_count() + reader.attempt_count(superseded=True)
        rows = costs(reader)
        tries = {
            step: sum(row.tries for row in rows if row.step == step.value) / max(1, attempts) for step in Step
        }
        return Pilot(
            whole,
            parts,
            tries,
            {
                (Step(r.step), r.model): r.cost_usd / r.priced
                for r in rows
                if r.cost_usd is not None and r.priced
            },
            {(Step(r.step), r.model): r.mean_latency_s for r in rows if r.mean_latency_s is not None},
            reader.blob_bytes() / max(1, attempts),
        )
