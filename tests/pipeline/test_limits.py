"""Caps on money, calls and hours, and changes behind a model's name, in whole builds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from pipeline.quick import CallLog, QuickEditor, QuickJudge, quick_method, quick_recipe
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Method, Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, Observations, TaskState, Usage
from plantain.roles import EditedImage, EditRequest, JudgeRequest, Reply
from plantain.runs.progress import RunSummary

PRICES = {
    "writer": {"input_per_m": 1.0, "output_per_m": 10.0},
    "editor": {"image_out_each": 0.05},
    "judge": {"input_per_m": 1.0, "output_per_m": 10.0},
}


def priced_recipe(catalogue: Path, **limits: object) -> Recipe:
    section = {"prices": PRICES, "max_output_tokens": 1000}
    return quick_recipe(catalogue, limits=limits, parts={"providers": {"quick": section}})


class Billed(QuickEditor):
    """An editor whose provider reports its usage."""

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        reply = await super().edit(request)
        return replace(reply, usage=Usage(input_tokens=0, images=1 if reply.outcome.ok else 0))


def build(recipe: Recipe, run: Path, method: Method | None = None, **options: bool) -> RunSummary:
    method = method or replace(quick_method(CallLog(None)), editor=Billed(CallLog(None)))
    return asyncio.run(run_build(recipe, run, method=method, **options))


def test_budget_stops_the_run_and_a_higher_one_continues_it(catalogue: Path, tmp_path: Path) -> None:
    first = build(priced_recipe(catalogue, budget_usd=0.4), tmp_path / "run")
    assert not first.failed and first.stopped is not None
    assert (
        first.stopped.startswith("limits.budget_usd = 0.4: $") and "raise limits.budget_usd" in first.stopped
    )
    with JournalReader.open(tmp_path / "run") as reader:
        assert 0.0 < reader.spent_usd() <= 0.4
        assert reader.counts()[TaskState.PENDING] > 0
        made = sum(reader.outcomes().values())
    second = build(priced_recipe(catalogue, budget_usd=50.0), tmp_path / "run")
    assert second.stopped is None and second.made > 0
    with JournalReader.open(tmp_path / "run") as reader:
        assert sum(reader.outcomes().values()) == made + second.made


def test_cap_on_calls_holds_over_processes(catalogue: Path, tmp_path: Path) -> None:
    for cap in (5, 9):
        summary = build(priced_recipe(catalogue, max_calls=cap), tmp_path / "run")
        assert summary.stopped is not None and f"limits.max_calls = {cap}" in summary.stopped
        assert not summary.failed
        with JournalReader.open(tmp_path / "run") as reader:
            assert sum(reader.outcomes().values()) == cap
    assert build(priced_recipe(catalogue), tmp_path / "run").stopped is None


class Served(QuickJudge):
    def __init__(self, served: str) -> None:
        super().__init__(CallLog(None))
        self.served = served

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        return replace(await super().judge(request), usage=Usage(served_model=self.served))


def served_by(model: str) -> Method:
    return replace(quick_method(CallLog(None)), judges=(Served(model),))


def test_another_model_behind_the_name_stops_the_run_until_it_is_accepted(
    catalogue: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    asyncio.run(run_build(priced_recipe(catalogue), run, method=served_by("j-001"), limit=2))
    stopped = build(priced_recipe(catalogue), run, served_by("j-002"))
    assert stopped.failed and stopped.stopped is not None
    assert "quick/judge is now served by j-002, and this run was made with j-001" in stopped.stopped
    assert "--accept-model-change" in stopped.stopped
    # and again, until the change is accepted
    assert build(priced_recipe(catalogue), run, served_by("j-002")).failed
    # whose run holds what j-002 answered till then
    back = build(priced_recipe(catalogue), run, served_by("j-001"))
    assert back.stopped is not None
    assert "quick/judge was once served by j-002, and this run was made with j-001" in back.stopped
    assert build(priced_recipe(catalogue), run, served_by("j-002"), accept_model_change=True).stopped is None
    with JournalReader.open(run) as reader:
        (change,) = orjson.loads(reader.meta("model_changes") or "[]")
    assert (change["model"], change["from"], change["to"]) == ("quick/judge", ["j-001"], "j-002")


GOOD = """
name = "pilot"
seed = 7
[data]
catalogue = "catalogue"
findings = ["Pneumothorax"]
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_recipe_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD))
    assert recipe.data.catalogue == tmp_path.resolve() / "catalogue"
    assert recipe.loop.max_rounds == 5 and recipe.models.judges == ("offline/instruments",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GOOD + "[loop]\nmax_round = 3\n",
            r"recipe.toml: unknown key 'loop.max_round'; did you mean 'max_rounds'\?",
        ),
        (
            GOOD + '[models]\njudge = ["offline/instruments", "offline/instruments"]\n',
            r"recipe.toml: models.judge: offline/instruments is named 2 times but answers the same each time",
        ),
        (GOOD + "[loop]\nmax_rounds = 0\n", r"loop.max_rounds: input should be greater than or equal to 1"),
        ("name = \n", r"is not valid TOML"),
        (GOOD + '[data.consent]\nby = "A person"\n', r"data.consent.agreement: field required"),
    ],
)
def test_recipe_faults_are_one_line_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_recipe(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_recipe_freezes_sampling_and_leaves_limits_prices_and_address_free(tmp_path: Path) -> None:
    text = (
        GOOD
        + """
    [providers.gemini]
    requests_per_minute = 1000
    base_url = "http://127.0.0.1:1"
    temperature = 0.4
    [providers.gemini.prices."gemini-9"]
    input_per_m = 1.0
    """
    )
    frozen = load_recipe(write(tmp_path, text)).frozen_part()
    assert frozen["sampling"] == {"gemini": {"temperature": 0.4}}
    assert load_recipe(write(tmp_path, GOOD)).frozen_part()["sampling"] == {}
