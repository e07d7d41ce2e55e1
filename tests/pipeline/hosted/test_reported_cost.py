"""The cost that a server reports, in addition to the cost by the recipe's prices.

`usage` has the fields of OpenRouter's page on usage accounting (openrouter.ai/docs/use-cases/usage-accounting, read on
2026-11-26): `cost` is the amount charged to the account. The figures are ours.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.server import Answer, FakeProvider, Request
from pipeline.quick import quick_recipe
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.report.page import write_report

OURS = 0.0021
"""Dollars of the server's usual answer: 900 tokens at 1 and 120 at 10 dollars per million (`fakes.openai_format`)."""


def charging(cost: object) -> object:
    def spoil(request: Request, good: Answer) -> Answer:
        if not request.path.endswith("/chat/completions"):
            return good
        body = json.loads(good.body)
        body["usage"] |= {
            "completion_tokens_details": {"reasoning_tokens": 0},
            "cost": cost,
            "cost_details": {"upstream_inference_cost": None},
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
        }
        return replace(good, body=json.dumps(body).encode())

    return spoil


def built(server: FakeProvider, catalogue: Path, folder: Path, cost: object) -> Path:
    server.spoil = charging(cost)  # type: ignore[assignment]
    priced = {name: {"input_per_m": 1.0, "output_per_m": 10.0} for name in ("vendor/w", "vendor/j")}
    priced["vendor/e"] = {"image_out_each": 0.04}
    names = {"writer": "vendor/w", "editor": "vendor/e", "judge": "vendor/j"}
    parts = {
        "models": {role: f"openai-compatible/{name}" for role, name in names.items()},
        "providers": {"openai-compatible": {"base_url": f"{server.url}/v1", "prices": priced}},
    }
    recipe = quick_recipe(catalogue, findings=("AMD",), limits={"budget_usd": 1.0}, parts=parts, max_rounds=1)
    asyncio.run(run_build(recipe, folder / "run"))
    return folder / "run"


def status_of(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    assert main(["status", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["status", str(run)]) == 0
    return document, " ".join(capsys.readouterr().out.split())


def test_reported_cost_is_shown_and_the_budget_uses_ours(
    server: FakeProvider, one_image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = built(server, one_image, tmp_path, 0.00225)
    document, shown = status_of(run, capsys)
    assert document["cost_usd"] == pytest.approx(0.04 + 2 * OURS)  # an edit; a writer's and a judge's call
    assert document["cost_reported"] == {"usd": 0.0045, "computed_usd": 0.0042, "calls": 2, "differs": True}
    assert "$0.0045 for 2 calls; computed by their prices: $0.0042" in shown
    with JournalReader.open(run) as reader:
        assert reader.spent_usd() == pytest.approx(0.04 + 2 * OURS)
        calls = [call for row in reader.tasks() for call in reader.calls(row.id)]
    assert [call.usage.reported_usd for call in calls] == [0.00225, None, 0.00225]  # the edit has no `cost`
    write_report(run)
    costs = json.loads((run / "report.telemetry.json").read_text())["costs"]
    assert [row["reported_usd"] for row in costs] == [0.00225, None, 0.00225]


@pytest.mark.parametrize(
    ("cost", "reported"), [(OURS, {"usd": 0.0042, "computed_usd": 0.0042, "calls": 2, "differs": False})]
    + [(wrong, None) for wrong in (None, "0.1", -1, True)]
)  # fmt: skip
def test_reported_cost_that_agrees_or_is_none_is_not_shown(
    server: FakeProvider,
    one_image: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cost: object,
    reported: dict[str, object] | None,
) -> None:
    run = built(server, one_image, tmp_path, cost)
    document, shown = status_of(run, capsys)
    assert document["cost_reported"] == reported and "reported cost" not in shown
