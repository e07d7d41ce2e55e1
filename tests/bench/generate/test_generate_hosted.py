"""Generating with hosted models: a provider on this machine, kills, interrupts, money, and the few-shot study."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.small_bench import small_bench
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import blocked_before, gemini_route, images_sent
from fakes.openai_format import MODEL, openai_route
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pixels.decode import decode
from plantain.runs.progress import RunSummary
from plantain.runs.terms import load_terms

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


def test_hosted_outputs_cost_money_and_refusals_are_outputs_without_an_image(
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


def test_study_sends_nested_demonstrations_for_the_same_samples(tmp_path: Path, server: FakeProvider) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 16, tasks=2), tmp_path / "run"
    wanted = ArmRequest(editors=(EDITOR,), shots=(0, 1, 2, 3))
    summary = made(benchmark, run, wanted, settings(tmp_path, server))
    assert summary.stopped is None
    with BenchRun.open(run) as bench:
        arms = [arm for arm in bench.arms.values() if arm.shots is not None]
        assert [arm.label for arm in arms] == [f"{EDITOR}+{n}shot" for n in range(4)]
        assert len({arm.samples for arm in arms}) == 1
        held_out = arms[0].samples or ()
        seeds = {arm.label: {o.sample_id for o in bench.outputs(arm.label)} for arm in arms}
        assert set(map(frozenset, seeds.values())) == {frozenset(held_out)}
    sent = Counter(len(images_sent(call)) for call in server.calls)
    assert sent == {1: len(held_out), 3: len(held_out), 5: len(held_out), 7: len(held_out)}
    by_case: dict[bytes, list[list[bytes]]] = defaultdict(list)
    for call in sorted(server.calls, key=lambda call: len(images_sent(call))):
        *demonstrations, case = images_sent(call)
        by_case[case].append(demonstrations)
    for ladder in by_case.values():
        assert [len(shown) for shown in ladder] == [0, 2, 4, 6]
        assert all(more[: len(fewer)] == fewer for fewer, more in itertools.pairwise(ladder))
    calls = len(server.calls)
    again = made(benchmark, run, wanted, settings(tmp_path, server))
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


SETTINGS = """
[limits]
concurrency = 4
[settings.editor]
steps = 4
[settings.judge]
temperature = 0.0
[providers.editors]
kind = "openai-compatible"
server = "sglang"
base_url = "{editor}"
[providers.judge-a]
kind = "openai-compatible"
server = "vllm"
base_url = "{judge}"
"""


def test_generate_and_score_with_named_endpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nothing(path: str) -> bool:
        return False

    with (
        FakeProvider([openai_route], checks_key=nothing) as editor,
        FakeProvider([openai_route], checks_key=nothing) as judge,
    ):
        settings = tmp_path / "settings.toml"
        settings.write_text(SETTINGS.format(editor=f"{editor.url}/v1", judge=f"{judge.url}/v1"))
        small_bench(tmp_path / "bench", 3)
        where = [str(tmp_path / "bench"), "--run", str(tmp_path / "run"), "--settings", str(settings)]
        assert main(["bench", "generate", *where, "--editor", "editors/klein"]) == 0, capsys.readouterr()
        assert [list(call.files) for call in editor.calls] == [["image"]] * 3
        score = [str(tmp_path / "run"), "--settings", str(settings)]
        score += ["--judge", "judge-a/judge-m", "--draws", "1"]
        assert main(["bench", "score", *score, "--metrics", "psnr"]) == 0, capsys.readouterr()
        assert len(judge.calls) == 15 and {call.fields["temperature"] for call in judge.calls} == {0.0}
    with JournalReader.open(tmp_path / "run") as reader:
        served = json.loads(reader.meta("served_models") or "{}")
        assert {name: who for name, who in served.items() if who} == {"judge-a/judge-m": [MODEL]}
