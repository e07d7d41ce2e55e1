"""SIGKILL and SIGINT while hosted models answer: by the provider's count, no stored answer is requested again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.small_bench import SHY, made, planted, scores, small_bench
from fakes.gemini_format import gemini_route
from fakes.server import KEY, FakeProvider
from plantain.bench.generate.runfile import BenchRun
from plantain.journal import JournalReader, verify
from plantain.records import TaskState

SEED = 20261122
EDITOR, JUDGE = "gemini/gemini-3.1-flash-image", "gemini/gemini-3.8-flash"

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route], latency_s=0.05) as provider:
        limits = "[limits]\nconcurrency = 6\nbudget_usd = 50.0\n"
        address = f'[providers.gemini]\nbase_url = "{provider.url}"\n'
        (tmp_path / "settings.toml").write_text(limits + address)
        yield provider


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plantain", "bench", *words]
    environment = {**os.environ, "GEMINI_API_KEY": KEY}
    with (folder / "out").open("w") as out:
        return subprocess.Popen(
            [*command, "--settings", str(folder / "settings.toml")], stdout=out, stderr=out, env=environment
        )


def wait_for(process: subprocess.Popen[bytes], server: FakeProvider, calls: int) -> None:
    """Wait for `calls` more requests at the provider."""
    target = len(server.calls) + calls
    while len(server.calls) < target and process.poll() is None:
        time.sleep(0.003)


def killed(process: subprocess.Popen[bytes], server: FakeProvider, calls: int) -> None:
    wait_for(process, server, calls)
    process.kill()
    assert process.wait() == -9, "the run ended before it could be killed: enlarge it"


def asked_again(reader: JournalReader) -> int:
    return int(
        reader.connection.execute(
            "SELECT count(*) FROM call a JOIN call b USING (task, generation, round, step, draw) "
            "WHERE a.tries < b.tries AND a.state = 'settled'"
        ).fetchone()[0]
    )


def test_generating_resumes_after_a_kill_and_an_interrupt(tmp_path: Path, server: FakeProvider) -> None:
    rng, run = random.Random(SEED), tmp_path / "run"
    small_bench(tmp_path / "bench", 12)
    words = ("generate", str(tmp_path / "bench"), "--run", str(run), "--editor", EDITOR, "--seeds", "3")
    killed(start(tmp_path, *words), server, rng.randint(6, 9))
    process = start(tmp_path, *words)
    wait_for(process, server, rng.randint(6, 9))
    process.send_signal(signal.SIGINT)
    assert process.wait() == 3, (tmp_path / "out").read_text()
    assert "finishing the calls in flight" in (tmp_path / "out").read_text()
    with JournalReader.open(run) as reader:
        interrupted = len(reader.open_calls())
    assert start(tmp_path, *words).wait() == 0, (tmp_path / "out").read_text()
    asked = Counter(request.body for request in server.calls)
    with BenchRun.open(run) as bench:
        reader, outputs = bench.reader, list(bench.outputs(EDITOR))
        assert len(outputs) == 36 and all(one.edited for one in outputs)
        assert reader.counts()[TaskState.PENDING] == 0
        assert asked_again(reader) == 0
        assert verify(reader).ok
        left_open = len(reader.open_calls())
    assert interrupted == left_open  # the interrupt leaves no further call open
    # Every request contains its seed: the provider sees one twice only if its first answer was not stored.
    assert 36 <= sum(asked.values()) <= 36 + left_open
    assert sum(n - 1 for n in asked.values()) <= left_open


def test_scoring_resumes_after_kills(tmp_path: Path, server: FakeProvider) -> None:
    rng, run = random.Random(SEED), tmp_path / "run"
    benchmark = small_bench(tmp_path / "bench", 3)
    made(benchmark, run, planted(benchmark, "planted/exact"))
    images = 3 * 6 - 1  # four baselines and two editors on three samples; one of them refused
    words = ("score", str(run), "--judge", JUDGE, "--variant", "P", "--draws", "3", "--metrics", "psnr")
    for _ in range(2):
        killed(start(tmp_path, *words), server, rng.randint(5, 12))
    assert start(tmp_path, *words).wait() == 0, (tmp_path / "out").read_text()
    asked = Counter(request.body for request in server.calls)
    with JournalReader.open(run) as reader:
        settled = reader.connection.execute(
            "SELECT count(*) FROM call WHERE step = 'judge' AND state = 'settled'"
        ).fetchone()[0]
        left_open = len(reader.open_calls())
        assert asked_again(reader) == 0
        assert reader.spent_usd() > 0
    assert settled == 3 * images
    assert left_open >= 1
    assert sum(asked.values()) <= 3 * images + left_open
    found = scores(run)
    assert found["planted/exact", "1", f"ea@{JUDGE}/P"][0] is not None
    assert found[SHY, "2", f"ea@{JUDGE}/P"] == (None, "refused: not this one")
