"""Named endpoints of served models in a benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.small_bench import small_bench
from fakes.served import Served, still_loading
from plantain.cli import main
from plantain.journal import JournalReader

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
