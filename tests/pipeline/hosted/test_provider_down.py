"""A provider that is down: a real server on loopback, and a budget that must survive it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fakes.faults import status
from fakes.server import Answer, FakeProvider, Request
from pipeline.quick import NoText, quick_catalogue
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import TaskState
from plantain.runs.summary import RunSummary

PRICES = {
    "w": {"input_per_m": 2.0, "output_per_m": 12.0},
    "e": {"input_per_m": 2.0, "image_out_each": 0.13},
    "j": {"input_per_m": 2.0, "output_per_m": 12.0},
}
"""List prices of the size that the models of 2026 have: a writer's call can then cost $0.29."""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("outage") / "catalogue", images=6)


def recipe_of(catalogue: Path, server: FakeProvider, **limits: object) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "outage",
            "seed": 3,
            "data": {
                "catalogue": catalogue,
                "findings": ["AMD", "Diabetes", "Cataract"],
                "directions": ["add"],
            },
            "models": {"writer": "gemini/w", "editor": "gemini/e", "judge": ["gemini/j"]},
            "loop": {"max_rounds": 1},
            "limits": {"concurrency": 32, "budget_usd": 5.0, **limits},
            "providers": {
                "gemini": {"base_url": server.url, "prices": PRICES, "on_premises": True},
            },
        }
    )


def run(recipe: Recipe, folder: Path) -> RunSummary:
    return asyncio.run(run_build(recipe, folder, text_reader=NoText()))


def test_outage_costs_nothing_and_the_run_goes_on_when_it_ends(
    catalogue: Path, server: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every answer is a 503 for a second and a half; then the server is healthy.

    Before calls were held by evidence, 18 tasks of five tries each held $0.29 a try, and the run stopped at $5.
    """
    monkeypatch.setattr("plantain.calls.policy.FIRST_PAUSE_S", 0.2)
    refuse = status(503, "the model is overloaded", "UNAVAILABLE", "overloaded")("gemini")
    refused: list[Request] = []

    def spoil(request: Request, good: Answer) -> Answer:
        if refused and request.at > refused[0].at + 1.5:
            return good
        refused.append(request)
        return refuse(request, good)

    server.spoil = spoil
    summary = run(recipe_of(catalogue, server), tmp_path / "run")
    assert summary.stopped is None, summary
    with JournalReader.open(tmp_path / "run") as reader:
        counts = reader.counts()
        assert counts[TaskState.PENDING] == counts[TaskState.STOPPED] == 0
        assert reader.spent_usd() < 5.0
    # everything that was in flight, three tries of those that had not heard of it yet, and four probes at most
    assert len(refused) <= 18 + 2 * 5 + 4
