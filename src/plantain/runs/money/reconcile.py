"""Held money, settled by a provider's bill: by the ids of calls where it has them, else by provider, model and day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from plantain.journal import Journal
from plantain.journal.money import BilledCall, billed_calls
from plantain.records import InputError
from plantain.runs.money.bills import BillRow, read_bill

NEAR = timedelta(hours=1)
"""A row of the bill that names no answer of ours belongs to a lost call of its model sent so long before it at most."""


@dataclass(slots=True)
class Reconciled:
    """What a bill settled.

    Attributes:
        costs: calls by their id in the journal, and what the bill says of each.
        settled: how many of them had no known cost before; `settled_usd` is what they are now known to have cost.
        still_held: lost calls of which the bill says nothing.
        foreign_usd: dollars of the bill that no call of this run accounts for.
        changed: calls whose cost is another now.
    """

    costs: dict[int, float] = field(default_factory=dict)
    settled: int = 0
    settled_usd: float = 0.0
    still_held: int = 0
    foreign_usd: float = 0.0
    changed: int = 0


async def reconcile(run: Path, bill: Path, provider: str = "") -> Reconciled:
    """Settles a run's calls by a bill; done twice, it changes nothing.

    Args:
        run: the run's folder.
        bill: the provider's table in CSV; days are taken as UTC.
        provider: whose bill it is, where it does not say so itself.

    Raises:
        InputError: the bill cannot be read, or may be of several providers.
    """
    rows = read_bill(bill)
    journal = Journal.open(run)
    try:
        calls = billed_calls(journal.reader)
        found = match(rows, calls, provider or _only_provider(rows, calls, bill))
        found.changed = await journal.settle_by_bill(found.costs)
    finally:
        await journal.close()
    return found


def match(rows: list[BillRow], calls: list[BilledCall], provider: str) -> Reconciled:
    """What a bill says of which calls. Rows without a provider are this one's."""
    found = Reconciled()
    named = [row for row in rows if row.id]
    _by_id(named, calls, provider, found)
    _by_day([row for row in rows if not row.id], calls, provider, found)
    lost = [call for call in calls if call.lost]
    found.settled = sum(call.id in found.costs for call in lost)
    found.settled_usd = sum(found.costs[call.id] for call in lost if call.id in found.costs)
    found.still_held = sum(call.id not in found.costs and call.cost_usd is None for call in lost)
    return found


def _only_provider(rows: Iterable[BillRow], calls: Iterable[BilledCall], bill: Path) -> str:
    providers = sorted({_provider(call) for call in calls})
    if len(providers) > 1 and not all(row.provider or row.id for row in rows):
        raise InputError(f"{bill}: says not whose bill it is; add --provider, one of {', '.join(providers)}")
    return providers[0] if len(providers) == 1 else ""


def _provider(call: BilledCall) -> str:
    return call.model.partition("/")[0]


def _is_of(call: BilledCall, row: BillRow, provider: str) -> bool:
    """Whether a row can be about a call's model. Bills name a model without its provider, often with its version."""
    whose = (row.provider or provider).casefold()
    name = call.model.partition("/")[2].casefold()
    model = row.model.casefold().rpartition("/")[2]
    return (not whose or whose == _provider(call)) and (
        not model or model.startswith(name) or name.startswith(model)
    )


def _by_id(rows: list[BillRow], calls: list[BilledCall], provider: str, found: Reconciled) -> None:
    billed = {row.id: row.usd for row in rows}
    ours = {name for call in calls for name in call.response_ids}
    unnamed = [row for row in rows if row.id not in ours]
    for answered in calls:
        if all(name in billed for name in answered.response_ids):
            found.costs[answered.id] = sum(billed[name] for name in answered.response_ids)
    lost = [call for call in calls if call.lost and call.id not in found.costs]
    # What the bill says of a lost call's answers that did come.
    came = {call.id: sum(billed.get(name, 0.0) for name in call.response_ids) for call in lost}
    for row in sorted(unnamed, key=lambda row: (row.at is None, row.at, row.number)):
        fits = (
            call
            for call in lost
            if row.at is not None
            and not row.whole_day
            and call.started_at <= row.at <= call.started_at + NEAR
            and _is_of(call, row, provider)
        )
        call = next(fits, None)
        if call is None:
            found.foreign_usd += row.usd
        else:
            lost.remove(call)
            found.costs[call.id] = came[call.id] + row.usd
    times = [row.at for row in rows if row.at is not None and not row.whole_day]
    for call in lost:  # a bill of every call around this one that does not have it: it was not billed
        if times and min(times) <= call.started_at and call.started_at + NEAR <= max(times):
            found.costs[call.id] = came[call.id]


def _by_day(rows: list[BillRow], calls: list[BilledCall], provider: str, found: Reconciled) -> None:
    """A day's total less what is known of it is what its lost calls cost together: no more than was set aside."""
    days: dict[tuple[date, str, str], list[BillRow]] = defaultdict(list)
    for row in rows:
        assert row.at is not None
        days[row.at.date(), row.provider, row.model].append(row)
    taken: set[int] = set()
    for (day, _, _), group in sorted(days.items()):
        that_day = [
            call
            for call in calls
            if call.started_at.date() == day and call.id not in taken and _is_of(call, group[0], provider)
        ]
        taken |= {call.id for call in that_day}
        lost = [call for call in that_day if call.lost and call.id not in found.costs]
        known = sum(found.costs.get(call.id, call.cost_usd or 0.0) for call in that_day if call not in lost)
        rest = max(0.0, sum(row.usd for row in group) - known)
        most = sum(call.reserved_usd for call in lost)
        share = min(1.0, rest / most) if most else 0.0
        for call in lost:
            found.costs[call.id] = share * call.reserved_usd
        found.foreign_usd += max(0.0, rest - most)
