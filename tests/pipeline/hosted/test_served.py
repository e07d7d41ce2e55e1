"""Writer, editor and judge served on ports of their own: a whole build, with the editor failing for a while."""

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
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, OutcomeKind, Step, TaskState
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
base_url = "{editor}"
concurrency = 2
[providers.judge-a]
kind = "openai-compatible"
server = "llama.cpp"
base_url = "{judge}"
on_premises = true
requests_per_minute = 60000
"""


class Bench:
    """Three servers, and recipes over them."""

    def __init__(self, stack: ExitStack, catalogue: Path) -> None:
        self.words = stack.enter_context(Served("vllm", "Qwen/Qwen3-VL-8B"))
        self.editor = stack.enter_context(Served("vllm", "Qwen/Qwen-Image-Edit-2511", edits=True))
        self.judge = stack.enter_context(Served("llama.cpp", "lingshu-32b"))
        self.catalogue = catalogue

    def text(self) -> str:
        urls = {name: getattr(self, name).url for name in ("words", "editor", "judge")}
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


def test_build_on_served_models_while_the_editor_fails_for_a_while(bench: Bench, tmp_path: Path) -> None:
    """The editor is still loading, then its queue is full, then it works: no task is stopped for that."""

    def trouble(number: int) -> Answer | None:
        return still_loading() if number <= 2 else queue_full() if number <= 4 else None

    bench.editor.trouble = trouble
    summary = build(bench.recipe(tmp_path), tmp_path / "run")
    assert summary.stopped is None and summary.closed[TaskState.STOPPED] == 0
    with JournalReader.open(tmp_path / "run") as reader:
        calls = [call for row in reader.tasks() for call in reader.calls(row.id, row.generation)]
        states = Counter(row.state for row in reader.tasks())
        served = json.loads(reader.meta("served_models") or "{}")
        raws = [json.loads(call.raw) for call in calls if call.key.step is Step.EDIT]
    assert states[TaskState.STOPPED] == 0 and sum(states.values()) == 6
    edits = [call for call in calls if call.key.step is Step.EDIT]
    kinds = Counter(call.outcome.kind for call in edits if call.outcome is not None and not call.outcome.ok)
    assert set(kinds) == {OutcomeKind.TRANSPORT}
    assert len(bench.editor.forms) == len(edits) - kinds.total()
    assert served == {
        "words/Qwen/Qwen3-VL-8B": ["Qwen/Qwen3-VL-8B vllm 0.30.0"],
        "editors/Qwen/Qwen-Image-Edit-2511": ["Qwen/Qwen-Image-Edit-2511 vllm 0.30.0"],
        "judge-a/lingshu-32b": ["lingshu-32b llama.cpp b7000-abc"],
    }
    # What each was sent: its own names, nothing that it does not know, nothing of an account.
    fields, files = bench.editor.forms[0]
    assert fields >= {"seed", "num_inference_steps", "true_cfg_scale", "response_format"} and files == [
        "image"
    ]
    assert "quality" not in fields and "left_out=quality" in raws[0]["sampling"]
    asked = [call for served in (bench.words, bench.editor, bench.judge) for call in served.asked]
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
    def restarted(number: int) -> Answer | None:
        if number != 2:
            return None
        bench.editor.version = ("/version", {"version": "0.31.0"})
        return still_loading()

    bench.editor.trouble = restarted
    summary = build(bench.recipe(tmp_path), tmp_path / "run")
    assert summary.stopped is not None and "is now served by" in summary.stopped
    assert "vllm 0.31.0" in summary.stopped and "vllm 0.30.0" in summary.stopped


def test_a_field_that_a_server_does_not_know_stops_the_run_at_once(bench: Bench, tmp_path: Path) -> None:
    """The recipe says that it is a vLLM and it is not: 422 to each edit, and no round is spent on that."""
    bench.editor.kind = "other"
    summary = build(bench.recipe(tmp_path), tmp_path / "run")
    assert summary.stopped is not None and "say what kind of server it is" in summary.stopped
    assert len(bench.editor.forms) <= 4


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            'server = "vllm"',
            'server = "vlm"',
            r"providers.words.server: no server 'vlm' is known; did you mean 'vllm'",
        ),
        (
            'kind = "openai-compatible"',
            'kind = "openai-compatibel"',
            r"providers.words.kind: 'openai-compatibel'; did you mean 'openai-compatible'",
        ),
        (
            "[providers.words]",
            "[providers.gemini]",
            r"providers.gemini.kind: gemini is a provider of its own",
        ),
        ("[providers.words]", "[providers.python]", r"providers.python: give the endpoint another name"),
        ("effort =", "efort =", r"unknown key 'settings.judge.efort'; did you mean 'effort'\?"),
        ("[settings.judge]", "[settings.jugde]", r"settings.jugde"),
        ('effort = "low"', 'effort = "lwo"', r"settings.judge.effort: 'lwo'; did you mean 'low'\?"),
        ("size = 512", 'size = "small"', r"settings.judge.size: 'small'; say the longer side in pixels"),
        (
            "[settings.judge]\n",
            "[settings.judge]\nsteps = 3\n",
            r"settings.judge.steps: is a setting of editors",
        ),
        (
            "[settings.editor]\n",
            '[settings.editor]\neffort = "low"\n',
            r"settings.editor.effort: is a setting of wri",
        ),
        (
            "[settings.editor]\n",
            '[settings.editor]\nsafety = "OFF"\n',
            r"unknown key 'settings.editor.safety'; editors takes",
        ),
        ('"{editor}"', "[]", r"providers.editors.base_url"),
    ],
)
def test_slips_are_named(was: str, now: str, said: str, bench: Bench, tmp_path: Path) -> None:
    urls = dict.fromkeys(("words", "editor", "judge"), "http://127.0.0.1:9/v1")
    text = RECIPE.replace(was, now, 1).format(catalogue=bench.catalogue, **urls)
    with pytest.raises(InputError, match=said) as caught:
        build(bench.recipe(tmp_path, text), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_probe_tells_of_each_server(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.editor.model = "another"
    text = bench.text() + '[providers.gone]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n'
    bench.recipe(tmp_path, text)
    assert main(["models", "--probe", str(tmp_path / "recipe.toml"), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["ok"], row["said"]) for row in rows] == [
        ("words/Qwen/Qwen3-VL-8B", True, "vllm 0.30.0: Qwen/Qwen3-VL-8B"),
        (
            "editors/Qwen/Qwen-Image-Edit-2511",
            False,
            "there is no 'Qwen/Qwen-Image-Edit-2511' at this address; vllm 0.30.0: another",
        ),
        ("judge-a/lingshu-32b", True, "llama.cpp b7000-abc: lingshu-32b"),
        ("gone/", False, "could not connect"),
    ]
    assert not bench.words.asked + bench.editor.asked + bench.judge.asked
    assert main(["models", "--probe", str(tmp_path / "recipe.toml")]) == 1
    assert "gone/: did not answer: could not connect" in capsys.readouterr().out
