"""SIGKILL while jobs are collected, made, waited for and read: nothing is sent twice, by the provider's own count."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from fakes.batch_jobs import FakeJob, FakeJobs
from fakes.server import FakeProvider
from pipeline.batched import recipe, rows, run
from pipeline.quick import quick_catalogue
from pipeline.wrecks import check_wreck, derived, started

SEED = 20261122
MOST_KILLS = 60


@pytest.mark.slow
def test_killed_again_and_again_a_run_sends_nothing_twice(
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
    # every body differs by its seed or pictures: one that was in two jobs would have been paid for twice
    assert set(jobs.asked.values()) == {1}
    assert set(jobs.keys.values()) == {1}
    run(recipe(catalogue, server.url, form, "online", rounds=2), tmp_path / "online")
    assert derived(folder) == derived(tmp_path / "online")
    assert rows(folder, "SELECT count(*) FROM call WHERE final = 1") == [(sum(jobs.asked.values()),)]
    assert rows(folder, "SELECT DISTINCT state FROM batch_job") == [("closed",)]
    assert list((folder / "batch").iterdir()) == []
