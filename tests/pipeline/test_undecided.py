"""A judge that cannot tell ends the task as undecided, which is neither a success nor a negative example."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from fakes.commands import json_of
from pipeline.quick import CallLog, Draws, Judges, quick_method, quick_recipe
from plantain.api.run import Run
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.questions.browsing import TaskQuery, page_of
from plantain.journal.verify import verify
from plantain.pipeline.run import run_build
from plantain.records import Criterion, CriterionResult, Observations, TaskState
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.roles import JudgeRequest

WHY = "the borders of the finding cannot be certified"
VERDICTS = {"Diabetes": (None,), "AMD": (False, None), "Cataract": (False, True)}
"""By finding, the judge's verdict on instruction compliance, round by round."""


def judge() -> Judges:
    left = {finding: list(verdicts) for finding, verdicts in VERDICTS.items()}

    def answer(request: JudgeRequest) -> Observations:
        assert request.finding is not None
        results = dict.fromkeys(Criterion, CriterionResult(True))
        passed = left[request.finding.name].pop(0)
        results[Criterion.INSTRUCTION_COMPLIANCE] = CriterionResult(passed, evidence=WHY)
        return Observations(results)

    return Judges(answer)


@pytest.fixture(scope="module")
def run(one_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undecided")
    recipe = quick_recipe(one_image)
    method = replace(quick_method(CallLog()), editor=Draws(), judges=(judge(),))
    summary = asyncio.run(run_build(recipe, folder / "run", method=method))
    assert summary.stopped is None
    return folder / "run"


def test_task_ends_in_the_round_in_which_the_judge_cannot_tell(run: Path) -> None:
    with JournalReader.open(run) as reader:
        ends = {row.task.finding: (row.state, row.round, row.reason) for row in reader.tasks()}
        assert verify(reader).ok
    why = f"instruction compliance: {WHY}"
    assert ends == {
        "Diabetes": (TaskState.UNDECIDED, 1, why),
        "AMD": (TaskState.UNDECIDED, 2, why),
        "Cataract": (TaskState.SUCCESS, 2, ""),
    }


def test_undecided_tasks_are_counted_and_listed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(run), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["tasks"]
    assert (counts["undecided"], counts["failed"], counts["total"]) == (2, 0, 3)
    assert main(["status", str(run)]) == 0
    assert "2 undecided" in capsys.readouterr().out
    assert main(["show", str(run), "--state", "undecided", "--json"]) == 0
    assert [task["state"] for task in json.loads(capsys.readouterr().out)["tasks"]] == ["undecided"] * 2
    page = Run(run).report()
    assert "Undecided" in page.read_text()
    numbers = json.loads(page.with_suffix(".json").read_text())
    total = numbers["composition"]["total"]
    assert (total["undecided"], total["failed"], total["success"]) == (2, 0, 1)
    assert total["rate"]["n"] == 1  # a rate is over success and failed
    with JournalReader.open(run) as reader:
        assert len(page_of(reader, TaskQuery(state="undecided", text="Diabetes"), size=9).tasks) == 1
    retried = json_of(
        "run", "retry", run, "--outcome", "refused", "--state", "failed,not_applicable", "--dry-run"
    )
    assert retried["tasks"] == []


def test_undecided_edits_are_no_negative_examples(run: Path, tmp_path: Path) -> None:
    layouts = ("med-banana", "parquet", "preference", "trajectory")
    export_run(run, tmp_path / "release", ExportOptions(layouts, licences=("CC-BY-4.0",)))
    tables = {path.parent.name: path for path in (tmp_path / "release").rglob("*.parquet")}
    rows = {name: pq.read_table(path).to_pylist() for name, path in tables.items()}
    with JournalReader.open(run) as reader:
        finding = {row.id: row.task.finding for row in reader.tasks()}
    found = {
        (finding[row["task_id"]], row["round"], row["qualified"], config)
        for config in ("success", "failed", "undecided")
        for row in (row for name, own in rows.items() if name.startswith(config) for row in own)
    }
    assert found == {
        ("Diabetes", 1, None, "undecided"),
        ("AMD", 1, False, "failed"),
        ("AMD", 2, None, "undecided"),
        ("Cataract", 1, False, "failed"),
        ("Cataract", 2, True, "success"),
    }
    pairs = [row for name, own in rows.items() if "preference" in name for row in own]
    assert {finding[row["task_id"]] for row in pairs} == {"Cataract"}
    (conversations,) = (tmp_path / "release").rglob("all_conversations.json")
    outcomes = {one["disease"]: one["outcome"] for one in orjson.loads(conversations.read_bytes()).values()}
    assert outcomes == {"Diabetes": "undecided", "AMD": "undecided", "Cataract": "success"}
    (summary,) = (tmp_path / "release").rglob("failed_summary.json")
    assert orjson.loads(summary.read_bytes()) == []
