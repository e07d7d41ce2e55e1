"""What a run folder must still hold after a kill, and the part of it that two equal runs share."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

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
