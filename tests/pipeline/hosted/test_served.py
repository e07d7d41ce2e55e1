"""Writer, editor and judge served on ports of their own: a whole build, with one of two editors failing for a while."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fakes.served import Served, queue_full, still_loading
from fakes.server import Answer
from pipeline.quick import NoText, quick_catalogue
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import Step, TaskState
from plantain.runs.summary import RunSummary

RECIPE = """
name = "served"
seed = 3
[data]
catalogue = "{catalogue}"
findings = ["AMD", "Diabetes", "Cataract"]
directions = ["add"]
[models]
writer = "words/Qwen/Qwen3-VL-8B"
editor = "editors/Qwen/Qwen-Image-Edit-2511"
judge = "judge-a/lingshu-32b"
[loop]
max_rounds = 2
[limits]
concurrency = 4
[settings.editor]
steps = 4
true_cfg_scale = 4.0
quality = "high"
[settings.judge]
temperature = 0.0
effort = "low"
size = 512
[providers.words]
kind = "openai-compatible"
server = "vllm"
base_url = "{words}"
[providers.editors]
kind = "openai-compatible"
server = "vllm"
base_url = ["{first}", "{second}"]
concurrency = 2
[providers.judge-a]
kind = "openai-compatible"
server = "llama.cpp"
base_url = "{judge}"
on_premises = true
requests_per_minute = 60000
"""


class Bench:
    """Four servers, and recipes over them."""

    def __init__(self, stack: ExitStack, catalogue: Path) -> None:
        self.words = stack.enter_context(Served("vllm", "Qwen/Qwen3-VL-8B"))
        self.first = stack.enter_context(Served("vllm", "Qwen/Qwen-Image-Edit-2511", edits=True))
        self.second = stack.enter_context(Served("vllm", "Qwen/Qwen-Image-Edit-2511", edits=True))
        self.judge = stack.enter_context(Served("llama.cpp", "lingshu-32b"))
        self.catalogue = catalogue

    def text(self) -> str:
        urls = {name: getattr(self, name).url for name in ("words", "first", "second", "judge")}
        return RECIPE.format(catalogue=self.catalogue, **urls)

    def recipe(self, folder: Path, text: str = "") -> Recipe:
        (folder / "recipe.toml").write_text(text or self.text())
        return load_recipe(folder / "recipe.toml")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("served") / "catalogue", images=2)


@pytest.fixture
def bench(catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    for name in ("OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(name, "sk-somebodys-account-0123456789abcdef")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-of-somebody")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Account: somebody")
    with ExitStack() as stack:
        yield Bench(stack, catalogue)


def build(recipe: Recipe, run: Path) -> RunSummary:
    return asyncio.run(run_build(recipe, run, text_reader=NoText()))


def test_build_on_served_models_while_one_editor_fails_for_a_while(bench: Bench, tmp_path: Path) -> None:
    """The second editor is still loading, then its queue is full, then it works: no task is stopped for that."""

    def trouble(number: int) -> Answer | None:
        return still_loading() if number <= 2 else queue_full() if number <= 4 else None

    bench.second.trouble = trouble
    summary = build(bench.recipe(tmp_path), tmp_path / "run")
    assert summary.stopped is None and summary.closed[TaskState.STOPPED] == 0
    with JournalReader.open(tmp_path / "run") as reader:
        calls = [call for row in reader.tasks() for call in reader.calls(row.id, row.generation)]
        states = Counter(row.state for row in reader.tasks())
        served = json.loads(reader.meta("served_models") or "{}")
        raws = [json.loads(call.raw) for call in calls if call.key.step is Step.EDIT]
    assert states[TaskState.STOPPED] == 0 and sum(states.values()) == 6
    assert all(call.outcome is not None and call.outcome.ok for call in calls)  # a failure cost no try
    edits = [call for call in calls if call.key.step is Step.EDIT]
    assert len(bench.first.forms) + len(bench.second.forms) == len(edits)
    assert bench.first.forms
    assert {raw["answers"][0]["_endpoint"] for raw in raws} <= {bench.first.url, bench.second.url}
    assert served == {
        "words/Qwen/Qwen3-VL-8B": ["Qwen/Qwen3-VL-8B vllm 0.30.0"],
        "editors/Qwen/Qwen-Image-Edit-2511": ["Qwen/Qwen-Image-Edit-2511 vllm 0.30.0"],
        "judge-a/lingshu-32b": ["lingshu-32b llama.cpp b7000-abc"],
    }
    # What each was sent: its own names, nothing that it does not know, nothing of an account.
    fields, files = bench.first.forms[0]
    assert fields >= {"seed", "num_inference_steps", "true_cfg_scale", "response_format"} and files == [
        "image"
    ]
    assert "quality" not in fields and "left_out=quality" in raws[0]["sampling"]
    asked = [
        call for served in (bench.words, bench.first, bench.second, bench.judge) for call in served.asked
    ]
    assert all(call.key == "none" for call in asked)
    assert not {name for call in asked for name in call.headers} & {
        "openai-organization",
        "openai-project",
        "x-account",
    }
    assert {call.fields["max_completion_tokens"] for call in bench.words.asked} == {8192}
    assert {call.fields["max_tokens"] for call in bench.judge.asked} == {8192}
    judged = bench.judge.asked[0].fields
    assert (judged["temperature"], judged["reasoning_effort"]) == (0.0, "low")
    assert all("temperature" not in call.fields for call in bench.words.asked)


def test_a_server_that_came_back_with_another_model_stops_the_run(bench: Bench, tmp_path: Path) -> None:
    recipe = bench.recipe(tmp_path)
    bench.first.version = ("/version", {"version": "0.31.0"})
    summary = build(recipe, tmp_path / "run")
    assert summary.stopped is not None and "is now served by" in summary.stopped
    assert "vllm 0.31.0" in summary.stopped and "vllm 0.30.0" in summary.stopped


def test_a_field_that_a_server_does_not_know_stops_the_run_at_once(bench: Bench, tmp_path: Path) -> None:
    """The recipe says that it is a vLLM and it is not: 422 to each edit, and no round is spent on that."""
    for editor in (bench.first, bench.second):
        editor.kind = "other"
    summary = build(bench.recipe(tmp_path), tmp_path / "run")
    assert summary.stopped is not None and "say what kind of server it is" in summary.stopped
    assert len(bench.first.forms) + len(bench.second.forms) <= 4
