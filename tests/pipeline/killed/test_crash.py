"""SIGKILL after every durable event of a run: nothing corrupt, nothing lost, nothing bought twice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.quick import quick_catalogue
from pipeline.wrecks import answered, check_wreck, derived
from plantain.report.page import write_report

KILLS = 44
"""Of the 50 events of two tasks, one of which is refused an edit and fails: the last few come after the last call."""


@pytest.mark.slow
def test_build_killed_after_every_durable_event_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    driver = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("crash_driver.py")), str(tmp_path), "1", str(KILLS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
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
