"""A whole run against the bill of its provider: a loopback server that bills each answer by its id, lost ones too."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes import gemini_format, openai_format
from fakes.faults import FAULTS
from fakes.server import Answer, FakeProvider, Request
from pipeline.hosted.test_hosted_run import run
from pipeline.quick import quick_catalogue
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.records import Usage

WORDS = ["cut words, flex", "flex", "cut words", "500", "dropped", "cut words", "dropped", "cut words, flex"]
"""What becomes of a step's first answers in words; those after them are good."""
PICTURES = ["", "dropped", "flex", "500", "dropped"]

MODELS = {
    "gemini": ("gemini/gemini-3.1-pro-preview", "gemini/gemini-3.1-flash-image"),
    "openai": ("openai/gpt-5.4", "openai/gpt-image-2"),
}


class BillingProvider:
    """Spoils answers and writes the bill: dollars of each answer by its id, as the providers' price pages have it."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.formats = gemini_format if form == "gemini" else openai_format
        self.bill: dict[str, float] = {}
        self.dropped: set[str] = set()
        self._numbers = itertools.count(1)
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Request, good: Answer) -> Answer:
        step = self.formats.step_of(request)
        plan = PICTURES if step == "edit" else WORDS
        self._asked[step] += 1
        fate = plan[self._asked[step] - 1] if self._asked[step] <= len(plan) else ""
        if fate == "500":
            spoil = FAULTS["500"](self.form)
            assert spoil is not None
            return spoil(request, good)
        if "cut words" in fate:
            cut = FAULTS["cut words"](self.form)
            assert cut is not None
            good = cut(request, good)
        name, tier = f"answer-{next(self._numbers)}", "flex" if "flex" in fate else "default"
        body: dict[str, Any] = json.loads(good.body)
        if self.form == "gemini":
            body["responseId"], body["usageMetadata"]["serviceTier"] = (
                name,
                tier.replace("default", "standard"),
            )
        else:
            body["service_tier"] = tier if step != "edit" else "default"
            body |= {"id": name} if step != "edit" else {}
        self.bill[name] = self._dollars(step, body)
        if fate == "dropped":
            self.dropped.add(name)
            return Answer(close=True)
        headers = {**good.headers, "x-request-id": name}
        return replace(good, body=json.dumps(body).encode(), headers=headers)

    def _dollars(self, step: str, body: dict[str, Any]) -> float:
        """By hand: tokens of the fakes' answers at the rates of ai.google.dev and platform.openai.com."""
        if self.form == "gemini":
            flex = 0.5 if body["usageMetadata"]["serviceTier"] == "flex" else 1.0
            if step == "edit":  # 1,200 read at $0.50; 1,290 of a picture at $60, 40 of thinking at $3
                return flex * (1_200 * 0.5 + 1_290 * 60 + 40 * 3) / 1e6
            return flex * (1_200 * 2 + (150 + 40) * 12) / 1e6
        if step == "edit":  # 77 words at $5 and a picture of 323 at $8; a picture of 1,056 at $30
            return (77 * 5 + 323 * 8 + 1_056 * 30) / 1e6
        flex = 0.5 if body["service_tier"] == "flex" else 1.0
        return flex * (800 * 2.5 + 100 * 0.25 + 120 * 15) / 1e6  # 100 of the 900 were cached


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("billed") / "catalogue", images=2)


@pytest.fixture(params=["gemini", "openai"])
def provider(request: pytest.FixtureRequest) -> Iterator[tuple[FakeProvider, BillingProvider]]:
    billing = BillingProvider(request.param)
    with FakeProvider([gemini_format.gemini_route, openai_format.openai_route], spoil=billing) as server:
        yield server, billing


def test_every_call_of_a_run_costs_what_the_bill_says_of_its_answers(
    catalogue: Path, provider: tuple[FakeProvider, BillingProvider], tmp_path: Path
) -> None:
    server, billing = provider
    words, pictures = MODELS[billing.form]
    url = server.url if billing.form == "gemini" else f"{server.url}/v1"
    recipe = Recipe.model_validate(
        {
            "name": "billed",
            "seed": 3,
            "data": {"catalogue": catalogue, "findings": ["AMD", "Cataract"], "directions": ["add"]},
            "models": {"writer": words, "editor": pictures, "judge": [words]},
            "loop": {"max_rounds": 2},
            "limits": {"concurrency": 4, "budget_usd": 50.0},
            "providers": {billing.form: {"base_url": url}},
        }
    )
    summary = run(recipe, tmp_path / "run")
    assert summary.stopped is None
    with JournalReader.open(tmp_path / "run") as reader:
        calls = [call for row in reader.tasks() for call in reader.calls(row.task.id)]
        spent = reader.spent_usd()
    named: dict[bool, list[str]] = defaultdict(list)
    for call in calls:
        ids = answers_of(call.usage)
        named[call.cost_usd is None] += ids
        if call.cost_usd is not None:
            assert call.cost_usd == pytest.approx(sum(billing.bill[name] for name in ids), abs=1e-9), call
    # Each answer that came stands in one call, and each that was lost leaves one call of unknown cost.
    assert sorted(named[True] + named[False]) == sorted(billing.bill.keys() - billing.dropped)
    assert sum(call.cost_usd is None for call in calls) == len(billing.dropped) >= 2
    assert spent == pytest.approx(sum(billing.bill[name] for name in named[False]), abs=1e-6)
    assert any(len(answers_of(call.usage)) == 2 and call.cost_usd for call in calls)


def answers_of(usage: Usage) -> list[str]:
    """Ids of the answers that a call was told."""
    return [one.response_id for one in usage.asks or (usage,) if one.response_id]
