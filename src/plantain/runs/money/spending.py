"""What a run has spent and may still spend: its budget, restored from the journal, and its hours."""

from __future__ import annotations

from plantain.calls import Budget
from plantain.calls.budget import StepCosts
from plantain.journal import JournalReader
from plantain.journal.money import money_by_step, seconds_worked
from plantain.records import Step
from plantain.runs.settings.terms import Limits


def budget_of(limits: Limits, reader: JournalReader) -> Budget:
    """The run's budget as the journal has it: what settled calls cost, and what others may have cost.

    Calls that a kill left open, and calls whose answer never arrived, count with what such calls usually cost until
    `plantain retry --settle-held` records their cost. Calls that a batch job still answers count with the most that
    they can cost.
    """
    return Budget(
        limits.budget_usd,
        reader.spent_usd(),
        costs_of(reader),
        max_calls=limits.max_calls,
        calls=sum(reader.outcomes().values()) + len(reader.open_calls()),
    )


def costs_of(reader: JournalReader) -> dict[tuple[str, Step], StepCosts]:
    """What each model and step has cost so far, and what is held for calls of unknown cost."""
    return {
        key: StepCosts(
            money.latest,
            lost=money.lost,
            lost_most=money.lost_most,
            in_jobs_usd=money.in_jobs_usd,
        )
        for key, money in money_by_step(reader).items()
    }


def seconds_left(limits: Limits, reader: JournalReader) -> float | None:
    """Seconds until `limits.max_hours`, counted over all earlier processes; None without such a cap.

    A process that was killed counts up to a second before its end.
    """
    return None if limits.max_hours is None else limits.max_hours * 3600.0 - seconds_worked(reader)
