"""SIGKILL after every durable event of a run: nothing corrupt, nothing lost, nothing bought twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from pathlib import Path

import pytest

from fakes.batch_jobs import FakeJob, FakeJobs
from fakes.server import FakeProvider
from pipeline.batched import recipe, rows, run
from pipeline.quick import quick_catalogue
from pipeline.wrecks import EDIT_USD, LIMITS, answered, check_wreck, derived, killed_builds, started
from plantain.journal import JournalReader
from plantain.report.page import write_report
from plantain.runs.settings_file import Limits
from plantain.runs.terms import budget_of

KILLS = 44
"""Of the 50 events of two tasks, one of which is refused an edit and fails: the last few come after the last call."""


@pytest.mark.slow
def test_build_killed_after_every_durable_event_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    killed, expected = 0, None
    for wreck in killed_builds(tmp_path, range(1, KILLS + 1)):
        k, run = wreck.k, wreck.run
        killed += wreck.end == -9
        before: set[tuple[str, int, str]] = set()
        if (run / "journal.sqlite").exists():
            check_wreck(run)
            before = answered(run)
            assert billed(tmp_path, k) - 1e-9 <= committed(run) <= LIMITS["budget_usd"], f"k = {k}"
        assert wreck.resume() == 0
        check_wreck(run)
        assert billed(tmp_path, k) - 1e-9 <= committed(run) <= LIMITS["budget_usd"], f"k = {k}"
        expected = expected or derived(tmp_path / "undisturbed")
        assert derived(run) == expected, f"k = {k}"
        if k % 16 == 0:
            assert page(run) == page(tmp_path / "undisturbed"), f"k = {k}"
        made_again = calls_made(run, tmp_path / f"after-{k}.log") & before
        assert not made_again, f"k = {k}: asked again {made_again}"
    assert killed >= 0.9 * KILLS, (
        f"only {killed} of {KILLS} runs were killed before they ended: enlarge the recipe"
    )


@pytest.mark.slow
def test_build_killed_between_or_within_turns_asks_no_recorded_call_again(tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    for wreck in killed_builds(tmp_path, [*range(76, 90, 2), 104, 120], turns=2):
        before = answered(wreck.run)
        assert wreck.end == -9 and wreck.resume() == 0
        check_wreck(wreck.run)
        assert derived(wreck.run) == derived(tmp_path / "undisturbed"), f"k = {wreck.k}"
        assert not calls_made(wreck.run, tmp_path / f"after-{wreck.k}.log") & before
    assert "+turn2-" in str(derived(wreck.run)["task"])


def billed(folder: Path, k: int) -> float:
    """The editor's price of the requested edits: it refuses one in eight, and charges for the others."""
    logs = [folder / f"{when}-{k}.log" for when in ("before", "after")]
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    seeds = [int(line.split("\t")[2]) for line in lines if line.split("\t")[1] == "edit"]
    return EDIT_USD * sum(seed % 8 != 0 for seed in seeds)


def committed(run: Path) -> float:
    """Dollars that the journal admits to, with those held for calls without an answer."""
    with JournalReader.open(run) as reader:
        return budget_of(Limits(**LIMITS), reader).committed_usd


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


SEED = 20261122
MOST_KILLS = 60


@pytest.mark.slow
def test_a_run_killed_repeatedly_sends_nothing_twice(
    server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    form = "openai"
    print("seed", SEED)
    rng = random.Random(SEED)
    catalogue = quick_catalogue(tmp_path / "catalogue", images=2)
    folder = tmp_path / "run"
    driver = started("killed/batch_driver.py", catalogue, folder, server.url, form)
    assert driver.stdin is not None and driver.stdout is not None
    at_create = {1, 4}  # and there once right after a job was made, before the client knows
    doomed: list[int] = []

    def on_create(job: FakeJob) -> None:
        if len(jobs.jobs) in at_create:
            at_create.discard(len(jobs.jobs))
            os.kill(doomed[-1], signal.SIGKILL)

    jobs.on_create = on_create
    ends: list[int] = []
    while not ends or ends[-1] == -signal.SIGKILL:
        assert len(ends) < MOST_KILLS
        driver.stdin.write(f"{rng.randint(10, 32)}\n")
        driver.stdin.flush()
        doomed.append(int(driver.stdout.readline()))
        ends.append(int(driver.stdout.readline()))
        if (folder / "journal.sqlite").exists():
            check_wreck(folder)
    driver.stdin.close()
    assert driver.wait() == 0
    assert ends[-1] == 0
    print(len(ends) - 1, "kills", len(jobs.jobs), "jobs")
    assert len(ends) > 5
    assert at_create == set()
    # every body differs by its seed or images: one that was in two jobs would have been paid for twice
    assert set(jobs.asked.values()) == {1}
    assert set(jobs.keys.values()) == {1}
    run(recipe(catalogue, server.url, form, "online", rounds=2), tmp_path / "online")
    assert derived(folder) == derived(tmp_path / "online")
    assert rows(folder, "SELECT count(*) FROM call WHERE final = 1") == [(sum(jobs.asked.values()),)]
    assert rows(folder, "SELECT DISTINCT state FROM batch_job") == [("closed",)]
    assert list((folder / "batch").iterdir()) == []
