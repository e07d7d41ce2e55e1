"""One budget for several runs: a file that they share, in which each says how much of it is its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from plantain.records import InputError

APPLICATION_ID = 0x706C6E6C
"""Marks the file as ours ("plnl")."""

TABLE = "CREATE TABLE claim(page TEXT PRIMARY KEY, usd REAL NOT NULL CHECK (usd >= 0)) STRICT, WITHOUT ROWID"
"""All that a ledger holds."""

BUSY_S = 60.0
BLOCK = 0.01
"""A run claims this share of the budget at a time, so that few calls wait for a disk; what it did not use it gives back
when it ends, or takes up again when it goes on."""


class Ledger:
    """One run's page in the shared file. Every claim is one locked transaction, durable before a call is sent.

    What a killed run had claimed stays claimed until it goes on: it covers whatever was in flight.

    Args:
        path: the file; made where there is none.
        run_id, run: which run this is, and its folder. A copy of a run has a page of its own.
        committed_usd: what the run's journal says that it has spent and holds.
        joined: the ids of the runs that it was merged from, whose calls it counts as its own.

    Raises:
        InputError: the file is something else.
    """

    def __init__(
        self, path: Path, run_id: str, run: Path, committed_usd: float, joined: Collection[str] = ()
    ) -> None:
        self._path = path
        self._page = f"{run_id} {run.resolve()}"
        with self._locked() as ledger:
            self._take_over_moved(ledger, run_id)
            self._take_over_joined(ledger, joined)
            ledger.execute(
                "INSERT INTO claim(page, usd) VALUES (?, ?) "
                "ON CONFLICT(page) DO UPDATE SET usd = max(usd, excluded.usd)",
                (self._page, committed_usd),
            )
            self._claimed = self._own(ledger)

    def covers(self, committed_usd: float, budget_usd: float) -> bool:
        """Whether the run may commit as much as this in all, beside what the others have claimed; claims it if so."""
        if committed_usd <= self._claimed:
            return True
        with self._locked() as ledger:
            others = self._others(ledger)
            if others + committed_usd > budget_usd:
                return False
            wanted = min(budget_usd - others, committed_usd + BLOCK * budget_usd)
            self._claim(ledger, wanted)
        return True

    def others_usd(self) -> float:
        """What other runs have claimed."""
        with self._locked() as ledger:
            return self._others(ledger)

    def give_back(self, committed_usd: float) -> None:
        """The run ends: it keeps what it has committed."""
        with self._locked() as ledger:
            self._claim(ledger, committed_usd)

    def _claim(self, ledger: sqlite3.Connection, usd: float) -> None:
        ledger.execute(
            "INSERT INTO claim(page, usd) VALUES (?, ?) ON CONFLICT(page) DO UPDATE SET usd = excluded.usd",
            (self._page, usd),
        )
        self._claimed = usd

    def _others(self, ledger: sqlite3.Connection) -> float:
        """Claims below zero, which SQLite lets in where it is told to check nothing, hide none of the others."""
        total = ledger.execute("SELECT TOTAL(max(usd, 0)) FROM claim WHERE page <> ?", (self._page,))
        return float(total.fetchone()[0])

    def _own(self, ledger: sqlite3.Connection) -> float:
        return float(ledger.execute("SELECT usd FROM claim WHERE page = ?", (self._page,)).fetchone()[0])

    def _take_over_moved(self, ledger: sqlite3.Connection, run_id: str) -> None:
        """A run whose folder was moved goes on with its page."""
        for (page,) in ledger.execute("SELECT page FROM claim").fetchall():
            whose, _, folder = page.partition(" ")
            if whose == run_id and page != self._page and not Path(folder).exists():
                ledger.execute("UPDATE OR IGNORE claim SET page = ? WHERE page = ?", (self._page, page))

    def _take_over_joined(self, ledger: sqlite3.Connection, joined: Collection[str]) -> None:
        """A merged run that begins its page closes those of its parts. One of them that goes on opens its own anew."""
        pages = [page for (page,) in ledger.execute("SELECT page FROM claim")]
        if self._page in pages:
            return
        for page in pages:
            if page.partition(" ")[0] in joined:
                ledger.execute("DELETE FROM claim WHERE page = ?", (page,))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        """The file within one transaction that nobody else can be in."""
        try:
            with contextlib.closing(
                sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
            ) as ledger:
                ledger.execute("PRAGMA synchronous = FULL")
                ledger.execute("BEGIN IMMEDIATE")
                self._check(ledger)
                yield ledger
                ledger.execute("COMMIT")
        except sqlite3.Error as error:
            raise InputError(f"limits.ledger: {self._path} cannot be used as a ledger: {error}") from error

    def _check(self, ledger: sqlite3.Connection) -> None:
        """Makes a new ledger of an empty file, and refuses anything else that is none."""
        there = ledger.execute("SELECT name, sql FROM sqlite_schema").fetchall()
        if ledger.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID and there == [
            ("claim", TABLE)
        ]:
            return
        if there:
            raise InputError(f"limits.ledger: {self._path} is a database, but not a ledger of plantain")
        ledger.execute(TABLE)
        ledger.execute(f"PRAGMA application_id = {APPLICATION_ID}")
