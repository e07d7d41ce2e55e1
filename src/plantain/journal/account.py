"""A run's account: the cost of its calls (settled, open and unknown), and its withdrawals."""

from __future__ import annotations

import hashlib
import hmac
import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plantain.journal.rows import from_json
from plantain.records import Step

if TYPE_CHECKING:
    from plantain.journal.reader import JournalReader

UPPER, LEARNED = 0.95, 5
"""A call of unknown cost is assumed to have cost this quantile of its step's known costs, once there are as many of
them; until then the most that it can have cost."""

REMEMBERED = 200
"""Known costs that count: the latest ones, since prompts grow from round to round and prices change."""

LOOKED_AT = 2_000
"""Calls, the latest ones, from whose costs the cost of such calls is estimated."""

_IN_JOBS = "SELECT call FROM batch_request WHERE job IS NOT NULL"
_IS_LOST = f"cost_usd IS NULL AND reserved_usd IS NOT NULL AND (state = 'settled' OR id NOT IN ({_IN_JOBS}))"
_LOST = f"SELECT model, step, count(*), TOTAL(reserved_usd) FROM call WHERE {_IS_LOST} AND {{}} GROUP BY 1, 2"
_STILL_IN_JOBS = (
    "SELECT model, step, TOTAL(reserved_usd) FROM call WHERE state = 'started' AND reserved_usd IS NOT NULL "
    f"AND id IN ({_IN_JOBS}) GROUP BY 1, 2"
)
_LATEST = "SELECT model, step, cost_usd FROM call WHERE cost_usd > 0 ORDER BY id DESC LIMIT ?"


@dataclass(slots=True)
class StepMoney:
    """Calls of one step to one model.

    Attributes:
        latest: dollars of the latest calls that cost anything, oldest first.
        lost: calls that may have been billed at an unknown cost: cut off, or open when a process was killed.
        lost_most: dollars that were reserved for them.
        in_jobs_usd: reserved for calls that batch jobs still answer.
    """

    latest: list[float] = field(default_factory=list)
    lost: int = 0
    lost_most: float = 0.0
    in_jobs_usd: float = 0.0


def assumed_usd(latest: Collection[float], lost: int, most: float) -> float:
    """Return what `lost` calls of unknown cost are assumed to have cost, given the latest costs of calls like them.

    `most` is the most that all of them together can have cost.
    """
    if not lost or len(latest) < LEARNED:
        return most
    known = sorted(latest)
    return min(most, lost * known[math.ceil(UPPER * len(known)) - 1])


def money_by_step(connection: sqlite3.Connection, lost: str = "TRUE") -> dict[tuple[str, Step], StepMoney]:
    """Return the money of every model and step that has any; of the lost calls those of which `lost` is true in SQL."""
    found: dict[tuple[str, Step], StepMoney] = defaultdict(StepMoney)
    run = connection.execute
    for model, step, cost in run(_LATEST, (LOOKED_AT,)):
        found[model, Step(step)].latest.insert(0, cost)
    for model, step, calls, usd in run(_LOST.format(lost)):
        found[model, Step(step)].lost, found[model, Step(step)].lost_most = calls, usd
    for model, step, usd in run(_STILL_IN_JOBS):
        found[model, Step(step)].in_jobs_usd = usd
    return dict(found)


def keep_assumed(connection: sqlite3.Connection) -> None:
    """Reserve the assumed cost of each call of unknown cost, in the writer's transaction.

    A withdrawal removes known costs by which the others are estimated: what those are charged must not rise.
    """
    connection.executemany(
        f"UPDATE call SET reserved_usd = ? WHERE model = ? AND step = ? AND {_IS_LOST}",
        [
            (assumed_usd(money.latest[-REMEMBERED:], money.lost, money.lost_most) / money.lost, model, step)
            for (model, step), money in money_by_step(connection).items()
            if money.lost
        ],
    )


def settle_lost(connection: sqlite3.Connection, usd: float) -> int:
    """Divide dollars evenly among calls of unknown cost, in the writer's transaction; return their number."""
    lost = [call for (call,) in connection.execute(f"SELECT id FROM call WHERE {_IS_LOST}")]
    connection.executemany(
        "UPDATE call SET cost_usd = ? WHERE id = ?", [(usd / len(lost), call) for call in lost]
    )
    return len(lost)


def seconds_worked(reader: JournalReader) -> float:
    """Return the seconds that earlier processes worked on the run: all but the one that writes now."""
    query = "SELECT TOTAL(seconds) FROM session WHERE id < (SELECT max(id) FROM session)"
    return float(reader.connection.execute(query).fetchone()[0])


WITHDRAWN = "withdrawn"
"""Key of the run's meta: its `Account`, as JSON."""

_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Account:
    """The run's record of everything withdrawn from it; it contains no readable id.

    Attributes:
        salt, marks: keyed hashes of groups, images and tasks, and their key; `others` those of merged runs, by key.
        releases: paths of releases that contain something of a group or image, by its mark.
        calls, cost_usd: number and cost of the removed calls, as the budget assumes it where it is unknown.
    """

    salt: str = ""
    marks: tuple[str, ...] = ()
    releases: dict[str, list[str]] = field(default_factory=dict)
    calls: int = 0
    cost_usd: float = 0.0
    others: dict[str, list[str]] = field(default_factory=dict)

    def mark(self, text: str) -> str:
        return keyed_mark(self.salt, text)

    def marks_of(self, text: str) -> list[str]:
        """Return the marks under which what this text names was withdrawn; empty if it was not."""
        known = {**self.others, **({self.salt: list(self.marks)} if self.salt else {})}
        return [mark for salt, marks in known.items() if (mark := keyed_mark(salt, text)) in marks]

    def holds(self, text: str) -> bool:
        """Return True if what this text names was withdrawn."""
        return bool(self.marks_of(text))


def keyed_mark(salt: str, text: str) -> str:
    """Return the keyed hash under which a withdrawn name is remembered, from which it cannot be read."""
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()[: 2 * _ID_BYTES]


def joined_accounts(accounts: Iterable[Account]) -> Account:
    """Return one account of runs that are merged: the marks keep the keys that they were made with."""
    joined = Account()
    for account in accounts:
        own = {account.salt: list(account.marks)} if account.salt else {}
        joined = replace(
            joined,
            releases=joined.releases | account.releases,
            calls=joined.calls + account.calls,
            cost_usd=joined.cost_usd + account.cost_usd,
            others=joined.others | account.others | own,
        )
    return joined


def account_of(connection: sqlite3.Connection) -> Account:
    """Return the run's account of withdrawals; an empty one if there was none."""
    text = meta_value(connection, WITHDRAWN)
    return Account() if text is None else from_json(Account, text)


def meta_value(connection: sqlite3.Connection, key: str) -> str | None:
    """Return a value of the run's meta, while it is held for a withdrawal."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])
