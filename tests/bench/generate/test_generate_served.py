"""Named endpoints of served models in a benchmark and in an audit: the same settings file, the same door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.small_bench import small_bench
from fakes.served import Served, still_loading
from plantain.audit.asking import asking
from plantain.audit.pictures import package_pictures
from plantain.audit.run import AuditPlan, run_audit
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.runs.settings.terms import load_terms

SETTINGS = """
[limits]
concurrency = 4
[settings.editor]
steps = 4
mask = true
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


@pytest.fixture
def servers() -> Iterator[tuple[Served, Served]]:
    with Served("sglang", "klein", edits=True) as editor, Served("vllm", "judge-m") as judge:
        yield editor, judge


def test_generate_and_score_with_named_endpoints(
    servers: tuple[Served, Served], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    editor, judge = servers
    editor.trouble = lambda number: still_loading() if number <= 2 else None
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS.format(editor=editor.url, judge=judge.url))
    small_bench(tmp_path / "bench", 3)
    where = [str(tmp_path / "bench"), "--run", str(tmp_path / "run"), "--settings", str(settings)]
    assert main(["bench", "generate", *where, "--editor", "editors/klein"]) == 0, capsys.readouterr()
    assert len(editor.forms) == 3
    assert {tuple(files) for _, files in editor.forms} == {("image", "mask")}
    score = [str(tmp_path / "run"), "--settings", str(settings), "--judge", "judge-a/judge-m", "--draws", "1"]
    assert main(["bench", "score", *score, "--metrics", "psnr"]) == 0, capsys.readouterr()
    assert len(judge.asked) == 15 and {call.fields["temperature"] for call in judge.asked} == {0.0}
    with JournalReader.open(tmp_path / "run") as reader:
        served = json.loads(reader.meta("served_models") or "{}")
        assert {name: who for name, who in served.items() if who} == {
            "editors/klein": ["klein sglang 0.6.1"],
            "judge-a/judge-m": ["judge-m vllm 0.30.0"],
        }


@pytest.mark.slow
def test_audit_of_a_named_endpoint(servers: tuple[Served, Served], tmp_path: Path) -> None:
    judge = servers[1]
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS.format(editor=judge.url, judge=judge.url))

    async def audited() -> int:
        terms = load_terms(settings, ("judge-a/judge-m",))
        plan = AuditPlan(pairs=1, seed=17, findings=("AMD",), kinds=("clean", "blob"))
        async with asking("judge-a/judge-m", terms, tmp_path / "audit") as asked:
            pictures = package_pictures("held-out")
            _, answers = await run_audit(asked, pictures, load_taxonomy(), plan)
        return len(answers)

    assert asyncio.run(audited()) == len(judge.asked) > 0
