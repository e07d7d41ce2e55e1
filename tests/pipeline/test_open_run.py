"""A whole build with nothing hosted: open weights edit in their device's process, a server on this machine judges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pipeline.quick import quick_catalogue

pytest.importorskip("diffusers")

from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.journal import JournalReader
from plantain.pipeline.recipe import load_recipe
from plantain.pipeline.run import run_build
from plantain.pixels.decode import decode
from plantain.records import InputError, TaskState
from plantain.runs.summary import RunSummary

RECIPE = """
name = "open"
seed = 3
[data]
catalogue = "catalogue"
findings = ["AMD", "Cataract"]
directions = ["add"]
check_text = false
[models]
writer = "offline/templates"
editor = "diffusers/{folder}"
judge = "openai-compatible/local"
[loop]
max_rounds = 2
[limits]
concurrency = 4
budget_usd = 1.0
[providers.diffusers]
device = "cpu"
steps = {steps}
side = 64
batch_size = 2
[providers.openai-compatible]
base_url = "{url}/v1"
[providers.openai-compatible.prices.local]
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    from fakes.server import KEY

    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with FakeProvider([openai_route]) as provider:
        yield provider


def run(path: Path, **said: object) -> RunSummary:
    (path / "recipe.toml").write_text(RECIPE.format(folder=path / "tiny", **said))
    return asyncio.run(run_build(load_recipe(path / "recipe.toml"), path / "run"))


@pytest.mark.slow
def test_open_editor_and_local_judge_walk_the_whole_loop(server: FakeProvider, tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    tiny_instruct_pix2pix().save_pretrained(tmp_path / "tiny")
    summary = run(tmp_path, url=server.url, steps=2)
    assert summary.stopped is None, summary
    assert sum(summary.closed.values()) == 4
    assert set(summary.closed) <= {TaskState.SUCCESS, TaskState.FAILED}
    with JournalReader.open(tmp_path / "run") as reader:
        assert not reader.spent_usd()
        for row in reader.tasks():
            _, edit, judge = reader.calls(row.task.id)[:3]
            assert edit.usage.served_model.endswith("float32 cpu")
            told = orjson.loads(edit.raw)
            assert (told["settings"]["steps"], told["geometry"]["canvas_width"]) == (2, 64)
            assert judge.usage.served_model == "gpt-fake-2026"
            (attempt, *_) = reader.attempts(row.task.id)
            assert attempt.edited is not None
            assert decode(reader.read_blob(attempt.edited)).shape == (1024, 1024, 3)
            assert attempt.verdict is not None

    again = run(tmp_path, url=server.url, steps=2)
    assert (again.made, again.stopped) == (0, None)
    with pytest.raises(InputError, match="frozen in a run"):
        run(tmp_path, url=server.url, steps=3)
