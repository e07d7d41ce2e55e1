"""Generating with hosted models: a provider on this machine, kills, interrupts, money, and the few-shot study."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench.small_bench import Brightener, small_bench
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import blocked_before, gemini_route, picture_answer, pictures_sent
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.generate.shots import METRIC
from plantain.cli import main
from plantain.journal import JournalReader, verify
from plantain.pixels.decode import decode
from plantain.records import OutcomeKind, TaskState
from plantain.roles import EditedImage, EditRequest, Reply
from plantain.runs.settings.terms import Terms, load_terms
from plantain.runs.summary import RunSummary

SEED = 20261122
KILLS = 1
EDITOR = "gemini/gemini-3.1-flash-image"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route]) as provider:
        yield provider


def settings(folder: Path, server: FakeProvider, limits: str = "concurrency = 4") -> Path:
    path = folder / "settings.toml"
    path.write_text(f'[limits]\n{limits}\n[providers.gemini]\nbase_url = "{server.url}"\n')
    return path


def made(benchmark: Benchmark, run: Path, wanted: ArmRequest, file: Path, **options: object) -> RunSummary:
    terms = load_terms(file, wanted.models)
    return asyncio.run(generate(benchmark, run, wanted, terms, **options))  # type: ignore[arg-type]


def test_hosted_outputs_cost_money_and_refusals_stay_outputs_without_image(
    tmp_path: Path, server: FakeProvider
) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 3), tmp_path / "run"

    turns = itertools.count()

    def declines(request: Request, good: Answer) -> Answer:
        return blocked_before() if next(turns) == 1 else good

    server.spoil = declines
    wanted = ArmRequest(presets=("gemini/medebench-gemini",), seeds=2)
    summary = made(benchmark, run, wanted, settings(tmp_path, server, "budget_usd = 5.0"))
    assert summary.stopped is None
    assert len(server.calls) == 6
    assert all("You are good at image editing." in str(call.fields["contents"]) for call in server.calls)
    with BenchRun.open(run) as bench:
        outputs = list(bench.outputs("gemini/medebench-gemini"))
        assert bench.arms["gemini/medebench-gemini"].model == EDITOR
        assert Counter(one.reason.partition(":")[0] for one in outputs) == {"": 5, "refused": 1}
        assert bench.reader.spent_usd() > 0.1
        assert {decode(bench.read(one)).shape for one in outputs if one.edited} == {(96, 120, 3)}
    assert made(benchmark, run, wanted, settings(tmp_path, server)).made == 0
    assert len(server.calls) == 6


def test_budget_stops_the_run_and_more_money_goes_on(
    tmp_path: Path, server: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    small_bench(tmp_path / "bench", 4)
    arguments = [
        "bench",
        "generate",
        str(tmp_path / "bench"),
        "--run",
        str(tmp_path / "run"),
        "--editor",
        EDITOR,
    ]
    few = settings(tmp_path, server, "max_calls = 10")
    assert main([*arguments, "--settings", str(few)]) == 3
    assert "max_calls" in capsys.readouterr().err
    enough = settings(tmp_path, server, "max_calls = 40")
    assert main([*arguments, "--settings", str(enough)]) == 0
    assert len(server.calls) == 4
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.counts()[TaskState.SUCCESS] == 20


def test_study_shows_nested_demonstrations_of_the_task_and_never_of_the_source(
    tmp_path: Path, server: FakeProvider
) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 16, tasks=2), tmp_path / "run"
    summary = made(
        benchmark, run, ArmRequest(editors=(EDITOR,), shots=(0, 1, 2, 3)), settings(tmp_path, server)
    )
    assert summary.stopped is None
    with BenchRun.open(run) as bench:
        arms = [arm for arm in bench.arms.values() if arm.shots is not None]
        assert [arm.label for arm in arms] == [f"{EDITOR}+{n}shot" for n in range(4)]
        assert len({arm.samples for arm in arms}) == 1
        held_out = arms[0].samples or ()
        for task, shown in arms[0].demonstrations.items():
            clusters = {bench.samples[one].cluster for one in shown}
            tested = {
                facts.cluster
                for facts in bench.samples.values()
                if facts.id in held_out and facts.task == task
            }
            assert len(shown) == 3
            assert not clusters & tested
        seeds = {arm.label: {o.sample_id for o in bench.outputs(arm.label)} for arm in arms}
        assert set(map(frozenset, seeds.values())) == {frozenset(held_out)}
        for arm in arms:
            for output in bench.outputs(arm.label):
                (score,) = [s for s in bench.reader.scores(output.task_id) if s.metric == METRIC]
                assert score.score.value is not None
                assert score.detail["shown"] == arm.shots
    sent = Counter(len(pictures_sent(call)) for call in server.calls)
    assert sent == {1: len(held_out), 3: len(held_out), 5: len(held_out), 7: len(held_out)}
    by_case: dict[bytes, list[list[bytes]]] = defaultdict(list)
    for call in sorted(server.calls, key=lambda call: len(pictures_sent(call))):
        *shown_pictures, case = pictures_sent(call)
        by_case[case].append(shown_pictures)
    for ladder in by_case.values():
        assert [len(shown) for shown in ladder] == [0, 2, 4, 6]
        assert all(more[: len(fewer)] == fewer for fewer, more in itertools.pairwise(ladder))
    calls = len(server.calls)
    again = made(
        benchmark, run, ArmRequest(editors=(EDITOR,), shots=(0, 1, 2, 3)), settings(tmp_path, server)
    )
    assert (again.made, len(server.calls)) == (0, calls)


def test_outputs_of_one_sample_share_a_batch_job(tmp_path: Path) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 2), tmp_path / "run"
    jobs = FakeJobs(gemini_route)
    with FakeProvider([jobs, gemini_route]) as server:
        file = settings(tmp_path, server)
        file.write_text(
            file.read_text()
            + 'transport = "batch"\n[providers.gemini.batch]\nrequests = 6\nimages = 6\nquiet_s = 60.0\npoll_s = 0.03\n'
        )
        wanted = ArmRequest(editors=(EDITOR,), seeds=3)
        summary = made(benchmark, run, wanted, file)
        assert (summary.stopped, summary.left) == (None, "")
        assert len(jobs.jobs) == 1  # three seeds of two samples
        assert made(benchmark, run, wanted, file).made == 0
    with BenchRun.open(run) as bench:
        assert sum(one.edited is not None for one in bench.outputs(EDITOR)) == 6


@dataclass(eq=False)
class Confused(Brightener):
    """Draws the first example it is shown instead of the new case."""

    name: str = "offline/confused"
    most_demonstrations: int = 3
    shown: list[int] = field(default_factory=list)

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.shown.append(len(request.demonstrations))
        if request.demonstrations:
            return Reply(EditedImage(request.demonstrations[0].after))
        return await super().edit(request)


def test_drawing_an_example_is_told_from_editing_the_case(tmp_path: Path) -> None:
    benchmark, run, editor = small_bench(tmp_path / "bench", 12), tmp_path / "run", Confused()
    wanted = ArmRequest(own={editor.name: editor}, shots=(0, 1))
    asyncio.run(generate(benchmark, run, wanted, Terms(wanted.models)))
    values: dict[int, list[float]] = defaultdict(list)
    with BenchRun.open(run) as bench:
        for shots in (0, 1):
            for output in bench.outputs(f"offline/confused+{shots}shot"):
                (score,) = bench.reader.scores(output.task_id)
                assert score.score.value is not None
                values[shots].append(score.score.value)
    assert max(values[0]) < 0.1  # the edit moved no closer to any example than its input was
    assert min(values[1]) > 0.3


@pytest.mark.slow
def test_kills_and_an_interrupt_ask_for_no_durable_answer_again(tmp_path: Path, server: FakeProvider) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    server.latency_s = 0.05
    small_bench(tmp_path / "bench", 12)
    file = settings(tmp_path, server, "concurrency = 6\nbudget_usd = 50.0")
    for turn in range(KILLS + 1):
        process = start(tmp_path, file)
        target = len(server.calls) + rng.randint(6, 9)
        while len(server.calls) < target and process.poll() is None:
            time.sleep(0.003)
        if turn < KILLS:
            process.kill()
            assert process.wait() == -9, "the run ended before it could be killed: enlarge it"
        else:
            process.send_signal(signal.SIGINT)
            assert process.wait() == 3, (tmp_path / "out").read_text()
            assert "finishing what is in flight" in (tmp_path / "out").read_text()
            with JournalReader.open(tmp_path / "run") as reader:
                interrupted = len(reader.open_calls())
    assert start(tmp_path, file).wait() == 0, (tmp_path / "out").read_text()
    asked = Counter(request.body for request in server.calls)
    with BenchRun.open(tmp_path / "run") as bench:
        reader = bench.reader
        outputs = list(bench.outputs(EDITOR))
        assert len(outputs) == 36
        assert all(one.edited for one in outputs)
        assert reader.counts()[TaskState.PENDING] == 0
        left_open = len(reader.open_calls())
        hosted = reader.connection.execute(
            "SELECT count(*) FROM call WHERE model = ? AND final = 1", (EDITOR,)
        )
        assert hosted.fetchone()[0] == 36
        again = reader.connection.execute(
            "SELECT count(*) FROM call a JOIN call b USING (task, generation, round, step, draw) "
            "WHERE a.tries < b.tries AND a.state = 'settled'"
        ).fetchone()[0]
        assert verify(reader).ok
    # every request says its seed, so that no two are alike: one that the provider saw twice is one whose first answer
    # was not durable when the process died, or that was not sent whole
    assert again == 0
    assert interrupted == left_open  # an interrupt leaves nothing open that the kills had not
    assert 36 <= sum(asked.values()) <= 36 + left_open
    assert sum(n - 1 for n in asked.values()) <= left_open


def start(folder: Path, file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plantain", "bench", "generate", str(folder / "bench")]
    command += ["--run", str(folder / "run"), "--editor", EDITOR, "--seeds", "3", "--settings", str(file)]
    with (folder / "out").open("w") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "GEMINI_API_KEY": KEY})


def test_answer_of_another_shape_is_malformed_and_says_so(tmp_path: Path, server: FakeProvider) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 1), tmp_path / "run"
    good = cv2.imencode(".png", np.zeros((64, 200, 3), np.uint8))[1].tobytes()

    def wide(request: Request, answer: Answer) -> Answer:
        return picture_answer(good)

    server.spoil = wide
    summary = made(benchmark, run, ArmRequest(editors=(EDITOR,)), settings(tmp_path, server))
    assert summary.closed[TaskState.FAILED] == 1
    with BenchRun.open(run) as bench:
        (output,) = bench.outputs(EDITOR)
    assert output.attempt is not None
    assert output.attempt.edit_outcome is not None
    assert output.attempt.edit_outcome.kind is OutcomeKind.MALFORMED
    assert "200x64 pixels, not a square" in output.reason
