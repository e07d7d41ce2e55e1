"""A build by a rubric of the user's own: frozen by its content, and followed from judge to release."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import CriterionResult, InputError, Observations
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.report.page import write_report
from plantain.roles import JudgeRequest, Reply
from plantain.rubrics import recorded

RUBRIC = """
name = "our-clinic"
version = 1
policy = "weighted"
threshold = 0.7
codes = ["blurred"]
[[criteria]]
name = "done"
weight = 0.5
question = "Was it done?"
[[criteria]]
name = "beauty"
weight = 0.5
scale = [1, 5]
question = "How real does it look?"
[facts]
implant = "Is there an implant?"
"""


class ClinicJudge:
    """Finds every edit as good as real, and gives no number for a cataract."""

    name = "clinic/judge"
    fingerprint = "1"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        assert [criterion.name for criterion in request.rubric.criteria] == ["done", "beauty"]
        beauty = CriterionResult(True, None, (), "sharp", 5.0)
        if request.finding is not None and request.finding.name == "Cataract":
            beauty = CriterionResult(None, evidence="the number is missing")
        done = CriterionResult(True, 0.9, ("blurred",), "it is there")
        return Reply(Observations({"done": done, "beauty": beauty}, {"implant": False}, True, "all well"))


def recipe_in(folder: Path) -> Recipe:
    (folder / "own.toml").write_text(RUBRIC, encoding="utf-8")
    (folder / "recipe.toml").write_text(
        'name = "own"\nrubric = "own.toml"\n[data]\ncatalogue = "catalogue"\nfindings = ["AMD", "Cataract"]\n'
        'directions = ["add"]\n[models]\nwriter = "quick/writer"\neditor = "quick/editor"\njudge = "clinic/judge"\n'
        "[loop]\nmax_rounds = 2\n",
        encoding="utf-8",
    )
    return load_recipe(folder / "recipe.toml")


def test_a_build_uses_the_rubric_from_recipe_to_release(tmp_path: Path) -> None:
    quick_catalogue(tmp_path / "catalogue", images=2)
    recipe, run = recipe_in(tmp_path), tmp_path / "run"
    assert (recipe.loop.policy, recipe.loop.threshold) == ("weighted", 0.7), (
        "the rubric's, where the recipe states none"
    )
    log = CallLog(tmp_path / "calls")
    method = replace(
        quick_method(log, max_rounds=2), judges=(ClinicJudge(),), rubric=recipe.judged_by, policy="weighted"
    )
    asyncio.run(run_build(recipe, run, method=method))
    with JournalReader.open(run) as reader:
        assert recorded(reader.header.frozen) == recipe.judged_by
        judged = [attempt.verdict for attempt in reader.all_attempts() if attempt.verdict is not None]
    # by hand: done 0.5 * 1 and beauty 0.5 * (5 - 1) / 4 make 1; without the number 0.5 to 1 is open: undecided
    assert {(verdict.score, verdict.qualified) for verdict in judged} == {(1.0, True), (None, None)}
    assert {verdict.observations.criteria["beauty"].value for verdict in judged} == {5.0, None}
    assert all(verdict.observations.facts == {"implant": False} for verdict in judged)
    page = write_report(run).read_text(encoding="utf-8")
    assert "Beauty" in page and "the number is missing" in page and "Implant: no" in page
    made = export_run(
        run, tmp_path / "release", ExportOptions(layouts=("parquet", "trajectory"), licences=("CC-BY-4.0",))
    )
    assert "How real does it look?" in (made.out / "README.md").read_text(encoding="utf-8")

    called = len(log.lines())
    asyncio.run(run_build(recipe, run, method=method))
    assert len(log.lines()) == called, "resumed: nothing is asked again"
    (tmp_path / "own.toml").write_text(RUBRIC.replace("Was it done?", "Was it well done?"), encoding="utf-8")
    message = "the rubric.criteria.done.question is now Was it well done?, but this run was started with Was it done?;"
    with pytest.raises(InputError, match=re.escape(message)):
        asyncio.run(run_build(load_recipe(tmp_path / "recipe.toml"), run, method=method))
