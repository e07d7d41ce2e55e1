"""SIGKILL after every durable event of a run: nothing corrupt, nothing lost, nothing bought twice."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from quick import quick_catalogue

from plantain.report.page import write_report

KILLS = 44
"""Of the 50 events of two tasks, one of which is refused an edit and fails: the last few come after the last call."""

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


@pytest.mark.slow
def test_build_killed_after_every_durable_event_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    driver = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("crash_driver.py")), str(tmp_path), "1", str(KILLS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdin is not None and driver.stdout is not None
    killed = 0
    expected = None
    for k in range(1, KILLS + 1):
        line = driver.stdout.readline().split()
        assert line, f"the driver ended at k = {k}"
        run = tmp_path / f"killed-{k}"
        killed += line[1] == "-9"
        before: set[tuple[str, int, str]] = set()
        if (run / "journal.sqlite").exists():
            check_wreck(run)
            before = answered(run)
        driver.stdin.write("go\n")
        driver.stdin.flush()
        assert driver.stdout.readline().strip() == "resumed"
        check_wreck(run)
        expected = expected or derived(tmp_path / "undisturbed")
        assert derived(run) == expected, f"k = {k}"
        if k % 16 == 0:
            assert page(run) == page(tmp_path / "undisturbed"), f"k = {k}"
        made_again = calls_made(run, tmp_path / f"after-{k}.log") & before
        assert not made_again, f"k = {k}: asked again {made_again}"
    assert driver.wait() == 0
    assert killed >= 0.9 * KILLS, (
        f"only {killed} of {KILLS} runs were killed before they ended: enlarge the recipe"
    )


def page(run: Path) -> tuple[bytes, bytes]:
    report = write_report(run)
    return report.read_bytes(), report.with_suffix(".json").read_bytes()


def calls_made(run: Path, log: Path) -> set[tuple[str, int, str]]:
    """(task, round, step) of the calls in a log; editor and judge calls are found by their instruction."""
    with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True) as db:
        rounds = {
            text: (task, n) for task, n, text in db.execute("SELECT task, round, instruction FROM attempt")
        }
    made = set()
    for line in log.read_text().splitlines() if log.exists() else []:
        first, second, third = line.split("\t")
        if third == "write":
            made.add((first, int(second), "write"))
        else:
            made.add((*rounds[first], second))
    return made
