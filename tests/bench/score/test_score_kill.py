"""SIGKILL while a hosted judge scores: what is durably recorded is never asked for again, by the provider's count."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from bench.discs import make_bench, make_run, scores
from fakes.gemini_format import gemini_route
from fakes.server import KEY, FakeProvider
from plantain.journal import JournalReader

SEED = 20261122
KILLS = 2


@pytest.mark.slow
def test_no_durable_score_is_asked_for_again_after_a_kill(tmp_path: Path) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    make_run(make_bench(tmp_path / "bench"), tmp_path / "run", ("planted/exact", "planted/shy"))
    images = 3 * 6 - 1  # four baselines and two editors on three samples; one of them refused
    with FakeProvider([gemini_route], latency_s=0.05) as provider:
        settings = tmp_path / "settings.toml"
        settings.write_text(
            f'[limits]\nconcurrency = 4\nbudget_usd = 50.0\n[providers.gemini]\nbase_url = "{provider.url}"\n'
        )
        for _ in range(KILLS):
            process = start(tmp_path)
            target = len(provider.calls) + rng.randint(5, 12)
            while len(provider.calls) < target and process.poll() is None:
                time.sleep(0.003)
            process.kill()
            assert process.wait() == -9, (tmp_path / "out").read_text()
        assert start(tmp_path).wait() == 0, (tmp_path / "out").read_text()
        asked = Counter(request.body for request in provider.calls)
    with JournalReader.open(tmp_path / "run") as reader:
        judged = {
            row[0]: row[1]
            for row in reader.connection.execute(
                "SELECT state, count(*) FROM call WHERE step = 'judge' GROUP BY state"
            )
        }
        left_open = len(reader.open_calls())
        again = reader.connection.execute(
            "SELECT count(*) FROM call a JOIN call b USING (task, generation, round, step, draw) "
            "WHERE a.tries < b.tries AND a.state = 'settled'"
        ).fetchone()[0]
        spent = reader.spent_usd()
    # Each request says its seed and shows its own pictures, so that two alike are one that was sent again; only those
    # whose first answer was not durable when the process died may be.
    assert again == 0
    assert judged["settled"] == 3 * images
    assert left_open >= 1
    assert sum(asked.values()) <= 3 * images + left_open
    assert spent > 0
    found = scores(tmp_path / "run")
    assert found["planted/exact", "0", "ea@gemini/gemini-3.8-flash/P"][0] is not None
    assert found["planted/shy", "1", "ea@gemini/gemini-3.8-flash/P"] == (
        None,
        "refused: the provider declined",
    )


def start(folder: Path) -> subprocess.Popen[bytes]:
    driver = Path(__file__).with_name("score_driver.py")
    arguments = [str(folder / name) for name in ("bench", "run", "settings.toml")]
    with (folder / "out").open("w") as out:
        environment = {**os.environ, "GEMINI_API_KEY": KEY}
        return subprocess.Popen(
            [sys.executable, str(driver), *arguments], stdout=out, stderr=out, env=environment
        )
