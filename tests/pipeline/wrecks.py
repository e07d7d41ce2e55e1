"""Runs that are killed: what their folders must still hold, and the part of them that two equal runs share."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from plantain.journal import BlobRef, BlobStore
from plantain.journal.commit import Committer

EDIT_USD = 0.05
PRICED = {
    "providers": {
        "quick": {
            "prices": {
                "editor": {"image_out_each": EDIT_USD},
                **{key: {"input_per_m": 0.0, "output_per_m": 0.0} for key in ("writer", "judge")},
            }
        }
    }
}
LIMITS = {"concurrency": 3, "budget_usd": 5.0}
"""Of builds that are killed."""

DERIVED = {
    # every column that is not telemetry: ids of rows, tries, times and prices may differ between two runs
    "task": "SELECT id, kind, image_id, modality, finding, direction, generation, state, round, reason "
    "FROM task ORDER BY id",
    "call": "SELECT task, generation, round, step, draw, model, request_hash, outcome, reason, answer FROM call "
    "WHERE final = 1 ORDER BY task, generation, round, step, draw",
    "attempt": "SELECT * FROM attempt ORDER BY task, generation, round",
    "verdict": "SELECT * FROM verdict ORDER BY task, generation, round, judge, draw",
    "criterion": "SELECT * FROM criterion ORDER BY task, generation, round, judge, draw, name",
    "image": "SELECT * FROM image ORDER BY id",
    "blob": "SELECT * FROM blob ORDER BY sha256",
}


def hear_events(heard: Callable[[int], None]) -> None:
    """Call `heard` after each durable event of this process (operation or new blob) with the number of events."""
    events, commit, put = count(1), Committer._commit, BlobStore.put

    def committed(committer: Committer, group: list[Any]) -> None:
        commit(committer, group)
        for _ in (waiting for waiting in group if waiting.error is None):
            heard(next(events))

    def stored(store: BlobStore, data: bytes, media_type: str) -> tuple[BlobRef, bool]:
        reference, is_new = put(store, data, media_type)
        if is_new:
            heard(next(events))
        return reference, is_new

    Committer._commit, BlobStore.put = committed, stored  # type: ignore[method-assign]


def started(driver: str, *words: object) -> subprocess.Popen[str]:
    """Start one of the programs in this folder, which a test talks to line by line."""
    tests = Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, str(tests / "pipeline" / driver), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )


@dataclass(frozen=True)
class Wreck:
    """A build that was killed right after its k-th durable event; `end` is how its process ended, -9."""

    k: int
    run: Path
    end: int
    driver: subprocess.Popen[str]

    def resume(self) -> int:
        """Resume it; return the exit status."""
        assert self.driver.stdin is not None and self.driver.stdout is not None
        print(file=self.driver.stdin, flush=True)
        return int(self.driver.stdout.readline())


def killed_builds(folder: Path, kills: Sequence[int], accepted: int = 0, turns: int = 1) -> Iterator[Wreck]:
    """Build the folder's catalogue with `crash_driver.py`; each wreck must be resumed."""
    with started("killed/crash_driver.py", folder, accepted, turns, *kills) as driver:
        assert driver.stdout is not None
        for k in kills:
            yield Wreck(k, folder / f"killed-{k}", int(driver.stdout.readline()), driver)
    assert driver.returncode == 0


def derived(run: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True) as db:
        return {name: db.execute(sql).fetchall() for name, sql in DERIVED.items()}


def answered(run: Path) -> set[tuple[str, int, str]]:
    """(task, round, step) of every call whose answer is durable."""
    with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True) as db:
        return set(db.execute("SELECT task, round, step FROM call WHERE final = 1"))


def check_wreck(run: Path) -> None:
    with sqlite3.connect(run / "journal.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        hashes = {row[0] for row in db.execute("SELECT sha256 FROM blob")}
        for column in ("edited", "raw", "mask"):
            rows = db.execute(f"SELECT {column} FROM attempt WHERE {column} IS NOT NULL").fetchall()
            assert {row[0] for row in rows} <= hashes
    for sha256 in hashes:
        data = (run / "blobs" / sha256[:2] / sha256).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sha256
