"""What a run has spent and may still spend: its budget, restored from the journal, and its hours."""

from __future__ import annotations

import orjson

from plantain.calls import Budget
from plantain.calls.budget import StepCosts
from plantain.calls.ledger import Ledger
from plantain.journal import JournalReader
from plantain.journal.merging import JOINED
from plantain.journal.money import money_by_step, seconds_worked
from plantain.records import Step
from plantain.runs.settings.terms import Limits


def budget_of(limits: Limits, reader: JournalReader) -> Budget:
    """The run's budget as the journal has it: what settled calls cost, and what others may have cost.

    Calls that a kill left open, and calls whose answer never arrived, count with what such calls usually cost, unless
    the limits say that their costs are known to be nothing more (`limits.unknown_costs = "ignore"`). Calls that a
    batch job still answers count in any case, with the most that they can cost.
    """
    budget = Budget(
        limits.budget_usd,
        reader.spent_usd(),
        costs_of(limits, reader),
        max_calls=limits.max_calls,
        calls=sum(reader.outcomes().values()) + len(reader.open_calls()),
    )
    if limits.ledger is not None:
        joined = orjson.loads(reader.meta(JOINED) or "[]")
        budget.ledger = Ledger(limits.ledger, reader.header.run_id, reader.run, budget.committed_usd, joined)
    return budget


def costs_of(limits: Limits, reader: JournalReader) -> dict[tuple[str, Step], StepCosts]:
    """What each model and step has cost so far, and what is held for calls of unknown cost."""
    held = limits.unknown_costs == "reserve"
    return {
        key: StepCosts(
            money.latest,
            lost=money.lost if held else 0,
            lost_most=money.lost_most if held else 0.0,
            in_jobs_usd=money.in_jobs_usd,
        )
        for key, money in money_by_step(reader).items()
    }


def seconds_left(limits: Limits, reader: JournalReader) -> float | None:
    """Seconds until `limits.max_hours`, counted over all earlier processes; None without such a cap.

    A process that was killed counts up to a second before its end.
    """
    return None if limits.max_hours is None else limits.max_hours * 3600.0 - seconds_worked(reader)
