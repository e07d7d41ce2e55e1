"""SIGKILL while hosted models answer: what is durably recorded is never asked for again, by the provider's count."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from fakes.gemini_format import gemini_route
from fakes.server import KEY, FakeProvider
from pipeline.quick import quick_catalogue
from plantain.journal import JournalReader
from plantain.records import TaskState

SEED = 20261121
KILLS = 2


@pytest.mark.slow
def test_no_durable_answer_is_asked_for_again_after_a_kill(tmp_path: Path) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    quick_catalogue(tmp_path / "catalogue", images=3)
    doomed: list[subprocess.Popen[bytes]] = []
    left = [0]

    def deadly(request: object) -> object:
        """Kills who asks at the chosen request, whatever the machine has to do beside; others are in flight then."""
        left[0] -= 1
        if left[0] == 0:
            doomed[-1].kill()
        return gemini_route(request)

    with FakeProvider([deadly], latency_s=0.05) as provider:
        for _ in range(KILLS):
            left[0] = rng.randint(8, 16)
            doomed.append(start(tmp_path, provider.url))
            assert doomed[-1].wait() == -9, "the run ended before it could be killed: enlarge it"
        assert start(tmp_path, provider.url).wait() == 0, (tmp_path / "out").read_text()
        asked = Counter(request.body for request in provider.calls)
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.counts()[TaskState.PENDING] == 0
        answered = sum(reader.outcomes().values())
        left_open = len(reader.open_calls())
        again = reader.connection.execute(
            "SELECT count(*) FROM call a JOIN call b USING (task, generation, round, step, draw) "
            "WHERE a.tries < b.tries AND a.state = 'settled'"
        ).fetchone()[0]
    # every request says its seed, so that no two calls are alike: a request that the provider saw twice is one whose
    # first answer was not durable when the process died (or that died before it was sent whole)
    assert again == 0
    assert left_open >= 1
    assert answered <= sum(asked.values()) <= answered + left_open
    assert sum(n - 1 for n in asked.values()) <= left_open


def start(folder: Path, url: str, *form: str) -> subprocess.Popen[bytes]:
    driver = Path(__file__).with_name("online_driver.py")
    command = [sys.executable, str(driver), str(folder / "catalogue"), str(folder / "run"), url, *form]
    environment = {**os.environ, "GEMINI_API_KEY": KEY, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "out").open("w") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=environment)
