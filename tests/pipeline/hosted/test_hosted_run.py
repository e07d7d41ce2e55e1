"""Whole runs with hosted models: the real SDKs, a loopback provider, and faults of every kind on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from fakes import gemini_format, openai_format
from fakes.caller import set_keys
from fakes.faults import FAULTS, STEPS
from fakes.server import Answer, FakeProvider, Request
from pipeline.quick import at_url, quick_catalogue, quick_recipe
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import OutcomeKind, TaskState
from plantain.runs.progress import RunSummary

WAITING = {"429 seconds", "503", "hung", "dripping", "429 ms", "429 bare"}
"""Faults that cost a test more time than they are worth here; the matrix of outcomes has them."""

MODELS = {
    "gemini": {"writer": "gemini/w", "editor": "gemini/e", "judge": ["gemini/j"]},
    "openai": {"writer": "openai-compatible/w", "editor": "openai/e", "judge": ["openai/j"]},
}


@pytest.fixture(scope="module")
def wide_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("hosted") / "wide", images=6)


def hosted_recipe(catalogue: Path, server: FakeProvider, form: str) -> Recipe:
    parts = {"seed": 3, "models": MODELS[form], "providers": at_url(server.url)}
    return quick_recipe(catalogue, limits={"concurrency": 4}, parts=parts)


def run(recipe: Recipe, folder: Path) -> RunSummary:
    return asyncio.run(run_build(recipe, folder))


class Trouble:
    """Spoils every second answer of each step, each fault of the format once.

    Steps are counted apart, so that how many answers are spoilt does not hang on which call comes first.
    """

    def __init__(self, form: str) -> None:
        self.format = gemini_format if form == "gemini" else openai_format
        self.waiting = {
            name: spoil
            for name, fault in FAULTS.items()
            if name not in WAITING and not halts(name) and (spoil := fault(form)) is not None
        }
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request, good: Answer) -> Answer:
        step = self.format.step_of(request)
        self.asked[step] += 1
        fits = [name for name in self.waiting if step in STEPS.get(name, (step,))]
        if self.asked[step] % 2 or not fits:
            return good
        name = fits[-1] if self.asked[step] % 4 else fits[0]
        return self.waiting.pop(name)(request, good)


def halts(name: str) -> bool:
    return name in ("400 bad key", "400 setting", "401", "403", "404 retired", "429 no quota", "429 spent")


@pytest.mark.parametrize("form", ["gemini", "openai"])
def test_run_full_of_faults_accounts_for_every_task(
    form: str, wide_catalogue: Path, server: FakeProvider, tmp_path: Path
) -> None:
    trouble = server.spoil = Trouble(form)
    folder = tmp_path / "run"
    summary = run(hosted_recipe(wide_catalogue, server, form), folder)
    assert summary.stopped is None, summary
    assert sum(summary.closed.values()) == 18
    with JournalReader.open(folder) as reader:
        assert {state: n for state, n in reader.counts().items() if n} == summary.closed
        assert not list(reader.open_calls())
        kinds = {
            call.outcome.kind for row in reader.tasks() for call in reader.calls(row.task.id) if call.outcome
        }
    assert {OutcomeKind.OK, OutcomeKind.TRANSPORT, OutcomeKind.MALFORMED} <= kinds
    assert not trouble.waiting


@pytest.mark.parametrize("form", ["gemini", "openai"])
def test_bad_key_halts_the_run_with_what_to_do_and_without_the_key(
    form: str, catalogue: Path, server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "sk-not-the-one-abcdef0123456789"
    set_keys(monkeypatch, wrong)
    summary = run(hosted_recipe(catalogue, server, form), tmp_path / "run")
    assert summary.failed
    assert summary.stopped is not None
    assert "key was not accepted" in summary.stopped
    assert wrong not in summary.stopped
    assert len(server.calls) <= 4
    assert files_with(wrong, tmp_path) == []
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.counts()[TaskState.PENDING] == 9


def files_with(secret: str, folder: Path) -> list[str]:
    """Files under a folder whose bytes hold the secret."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in found if secret.encode() in path.read_bytes()]
