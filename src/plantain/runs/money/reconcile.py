"""Held money, settled by a provider's bill: by the ids of calls where it has them, else by provider, model and day."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plantain.journal import Journal
from plantain.journal.money import BilledCall, billed_calls
from plantain.records import InputError
from plantain.runs.money.bills import BillRow, read_bill

NEAR = timedelta(hours=1)
"""A row of the bill that names no answer of ours belongs to a lost call of its model sent so long before it at most."""

_VERSION = re.compile(r"[-@:](\d{3,}|\d{4}-\d\d-\d\d|v\d+|latest|preview|exp)([-.:]\w+)*", re.IGNORECASE)
"""What stands behind a model's name: -001, -20250929-v1:0, -preview-05-20. Not -image, -mini, .5: other products."""

SHORT = 0.99
"""A day's total below this share of what the day's answered calls cost does not hold all of them."""


@dataclass(slots=True)
class Reconciled:
    """What a bill settled.

    Attributes:
        costs: calls by their id in the journal, and what the bill says of each.
        settled: how many of them had no known cost before; `settled_usd` is what they are now known to have cost.
        still_held: lost calls of which the bill says nothing.
        foreign_usd: dollars of the bill that no call of this run accounts for.
        short: days whose totals are below what their answered calls are known to have cost; they settle nothing.
        changed: calls whose cost is another now.
    """

    costs: dict[int, float] = field(default_factory=dict)
    settled: int = 0
    settled_usd: float = 0.0
    still_held: int = 0
    foreign_usd: float = 0.0
    short: list[str] = field(default_factory=list)
    changed: int = 0


async def reconcile(run: Path, bill: Path, provider: str = "", zone: str = "") -> Reconciled:
    """Settles a run's calls by a bill; done twice, it changes nothing.

    Args:
        run: the run's folder.
        bill: the provider's table in CSV.
        provider: whose bill it is, where it does not say so itself.
        zone: the time zone of its days, e.g. "America/Los_Angeles"; UTC where none is named.

    Raises:
        InputError: the bill cannot be read, may be of several providers, or no call went to the one that was named.
    """
    rows = read_bill(bill, _zone(zone))
    journal = Journal.open(run)
    try:
        calls = billed_calls(journal.reader)
        _check_provider(provider, calls)
        found = match(rows, calls, provider or _only_provider(rows, calls, bill))
        found.changed = await journal.settle_by_bill(found.costs)
    finally:
        await journal.close()
    return found


def match(rows: list[BillRow], calls: list[BilledCall], provider: str) -> Reconciled:
    """What a bill says of which calls. Rows without a provider are this one's."""
    found = Reconciled()
    _by_id([row for row in rows if row.id], calls, provider, found)
    _by_day([row for row in rows if not row.id], calls, provider, found)
    lost = [call for call in calls if call.lost]
    found.settled = sum(call.id in found.costs for call in lost)
    found.settled_usd = sum(found.costs[call.id] for call in lost if call.id in found.costs)
    found.still_held = sum(call.id not in found.costs and call.cost_usd is None for call in lost)
    return found


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"--zone {name}: no time zone of that name; e.g. America/Los_Angeles") from None


def _check_provider(provider: str, calls: Iterable[BilledCall]) -> None:
    """Raises InputError where no call went to the provider that was named."""
    providers = {_provider(call) for call in calls}
    if provider and providers and provider not in providers:
        raise InputError(f"--provider {provider}: the run's calls went to {', '.join(sorted(providers))}")


def _only_provider(rows: Iterable[BillRow], calls: Iterable[BilledCall], bill: Path) -> str:
    providers = sorted({_provider(call) for call in calls})
    if len(providers) > 1 and not all(row.provider or row.id for row in rows):
        raise InputError(f"{bill}: says not whose bill it is; add --provider, one of {', '.join(providers)}")
    return providers[0] if len(providers) == 1 else ""


def _provider(call: BilledCall) -> str:
    return call.model.partition("/")[0]


def _is_of(call: BilledCall, row: BillRow, provider: str) -> bool:
    """Whether a row can be about a call's provider and model."""
    whose = (row.provider or provider).casefold()
    return (not whose or whose == _provider(call).casefold()) and _names_model(row, call)


def _names_model(row: BillRow, call: BilledCall) -> bool:
    """Whether a row can be about a call's model. Bills name a model without its provider, often with its version."""
    name = call.model.partition("/")[2].casefold().rpartition("/")[2]
    model = row.model.casefold().rpartition("/")[2]
    return not model or _is_version(model, name) or _is_version(name, model)


def _is_version(model: str, name: str) -> bool:
    """Whether a model's name is another one, or that and a version behind it."""
    return model.startswith(name) and bool(re.fullmatch(f"({_VERSION.pattern})?", model[len(name) :], re.I))


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
    left: list[BillRow] = []
    for row in sorted(unnamed, key=lambda row: (row.at is None, row.at, row.number)):
        call = next((call for call in lost if _near(call, row) and _is_of(call, row, provider)), None)
        if call is None:
            found.foreign_usd += row.usd
            left.append(row)
        else:
            lost.remove(call)
            found.costs[call.id] = came[call.id] + row.usd
    for call in lost:
        # A gateway's bill may call the provider by another name: such a row near by could be this call's.
        if any(_near(call, row) and _names_model(row, call) for row in left):
            continue
        if _holds_all_around(call, rows, calls, billed):
            found.costs[call.id] = came[call.id]


def _near(call: BilledCall, row: BillRow) -> bool:
    """Whether a row is of the hour after a call was sent."""
    return row.at is not None and not row.whole_day and call.started_at <= row.at <= call.started_at + NEAR


def _holds_all_around(
    call: BilledCall, rows: Sequence[BillRow], calls: Sequence[BilledCall], billed: Mapping[str, float]
) -> bool:
    """Whether a bill has every answer of the call's model before and after it: then it would have this one, too.

    A bill of another provider or model, of other days, or one that was cut off, has not.
    """
    times = [row.at for row in rows if row.at is not None and not row.whole_day]
    if not times or not min(times) <= call.started_at or not call.started_at + NEAR <= max(times):
        return False
    beside = [
        name
        for other in calls
        if other.model == call.model and abs(other.started_at - call.started_at) <= NEAR
        for name in other.response_ids
        if name
    ]
    return bool(beside) and all(name in billed for name in beside)


def _by_day(rows: list[BillRow], calls: list[BilledCall], provider: str, found: Reconciled) -> None:
    """A day's total less what is known of it is what its lost calls cost together: no more than was set aside."""
    days: dict[tuple[date, str, str], list[BillRow]] = defaultdict(list)
    for row in rows:
        assert row.at is not None
        days[row.at.date(), row.provider, row.model].append(row)
    taken: set[int] = set()
    # A row that names the very model comes before one that names its family, and that before one of all models.
    for (day, _, model), group in sorted(days.items(), key=lambda one: (one[0][0], -len(one[0][2]), one[0])):
        zone = group[0].at.tzinfo if group[0].at is not None else UTC
        that_day = [
            call
            for call in calls
            if call.started_at.astimezone(zone).date() == day
            and call.id not in taken
            and _is_of(call, group[0], provider)
        ]
        taken |= {call.id for call in that_day}
        lost = [call for call in that_day if call.lost and call.id not in found.costs]
        known = sum(found.costs.get(call.id, call.cost_usd or 0.0) for call in that_day if call not in lost)
        total = sum(row.usd for row in group)
        if lost and total < SHORT * known:
            found.short.append(f"{day}{f' ({model})' if model else ''}")
            continue
        rest = max(0.0, total - known)
        most = sum(call.reserved_usd for call in lost)
        share = min(1.0, rest / most) if most else 0.0
        for call in lost:
            found.costs[call.id] = share * call.reserved_usd
        found.foreign_usd += max(0.0, rest - most)
