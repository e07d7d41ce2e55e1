"""Pictures that come back: the same bytes in a later round, asked for with the same words or with others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from pipeline.quick import CallLog, QuickEditor, QuickJudge, QuickWriter, drawn, quick_method, quick_recipe
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.verify import verify
from plantain.pipeline.method import Method
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Criterion, CriterionResult, Observations, Outcome, OutcomeKind, TaskState
from plantain.report.page import write_report
from plantain.roles import EditedImage, EditRequest, JudgeRequest, Reply, WriteRequest, failed
from plantain.runs.progress import RunSummary

ROUNDS = 4


def build(catalogue: Path, run: Path, method: Method) -> RunSummary:
    whole = quick_recipe(catalogue, findings=("AMD",), max_rounds=ROUNDS)
    recipe: Recipe = whole.model_copy(update={"data": whole.data.model_copy(update={"per_finding": 1})})
    return asyncio.run(run_build(recipe, run, method=method))


class Says(QuickWriter):
    """Writes the next of some instructions, by the round."""

    def __init__(self, *words: str) -> None:
        super().__init__(CallLog(None))
        self.words = words

    async def write(self, request: WriteRequest) -> Reply[str]:
        return Reply(self.words[request.round - 1])


class Repeats(QuickEditor):
    """Draws the same picture whatever it is asked."""

    def __init__(self) -> None:
        super().__init__(CallLog(None))
        self.rounds: list[int] = []

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.rounds.append(request.round)
        return Reply(drawn(request.original.data, 4))


class Refuses(QuickJudge):
    """Qualifies nothing, and counts what it was asked; from its `dies`-th call on it ends the run."""

    def __init__(self, name: str = "quick/judge", dies: int = 99) -> None:
        super().__init__(CallLog(None))
        self.name = name
        self.dies = dies
        self.asked: list[str] = []

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.asked.append(request.instruction)
        if len(self.asked) >= self.dies:
            return failed(Outcome(OutcomeKind.TRANSPORT, "quota is gone", fatal=True))
        results = {c: CriterionResult(False, 0.5, (), f"seen {len(self.asked)}") for c in Criterion}
        return Reply(Observations(results, {"has_disease": False}, False, f"call {len(self.asked)}"))


def method_of(*judges: QuickJudge, words: tuple[str, ...]) -> Method:
    plain = quick_method(CallLog(None))
    return replace(plain, writer=Says(*words), editor=Repeats(), judges=judges, max_rounds=ROUNDS)


def test_with_the_same_words_the_verdict_is_the_stored_one_and_with_others_it_is_judged_again(
    catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge, run = Refuses(), tmp_path / "run"
    method = method_of(judge, words=("draw it", "draw it", "draw it larger", "draw it"))
    build(catalogue, run, method)
    assert isinstance(method.editor, Repeats) and method.editor.rounds == [1, 2, 3, 4]
    assert judge.asked == ["draw it", "draw it larger"]
    with JournalReader.open(run) as reader:
        (row,) = reader.tasks()
        assert (row.state, row.round) == (TaskState.FAILED, ROUNDS)
        told = [a.verdict.observations.reason if a.verdict else None for a in reader.attempts(row.task.id)]
        assert told == ["call 1", "call 1", "call 2", "call 1"]
        assert all(a.judge_outcome and a.judge_outcome.ok for a in reader.attempts(row.task.id))
        assert verify(reader).ok

    def said(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert said("show", str(run), row.task.id).count("came back unchanged: the image of round 1") == 3
    assert orjson.loads(said("status", str(run), "--json"))["came_back_unchanged"] == 3
    assert "4, 3 came back unchanged" in said("status", str(run))
    page = write_report(run).read_text()
    assert "In 3 the image <strong>came back unchanged</strong>" in page
    assert page.count("Came back unchanged: the image of round 1.") == 3
    assert orjson.loads((run / "report.json").read_bytes())["judged"]["came_back"] == 3
