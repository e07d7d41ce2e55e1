"""Pictures that come back: the same bytes in a later round, asked for with the same words or with others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path

import orjson
import pytest

from pipeline.quick import CallLog, Draws, Judges, QuickWriter, drawn, observed, quick_method, quick_recipe
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.verify import verify
from plantain.pipeline.run import run_build
from plantain.records import TaskState
from plantain.report.page import write_report
from plantain.roles import Reply, WriteRequest

ROUNDS = 4


class Says(QuickWriter):
    """Writes the next of some instructions, by the round."""

    def __init__(self, *words: str) -> None:
        super().__init__(CallLog())
        self.words = words

    async def write(self, request: WriteRequest) -> Reply[str]:
        return Reply(self.words[request.round - 1])


def test_with_the_same_words_the_verdict_is_the_stored_one_and_with_others_it_is_judged_again(
    catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls, run = count(1), tmp_path / "run"
    judge = Judges(lambda request: observed(False, f"call {next(calls)}"))
    editor = Draws(lambda request: drawn(request.original.data, 4))
    writer = Says("draw it", "draw it", "draw it larger", "draw it")
    method = replace(
        quick_method(CallLog(), max_rounds=ROUNDS), writer=writer, editor=editor, judges=(judge,)
    )
    recipe = quick_recipe(catalogue, findings=("AMD",), data={"per_finding": 1}, max_rounds=ROUNDS)
    asyncio.run(run_build(recipe, run, method=method))
    assert [request.round for request in editor.requests] == [1, 2, 3, 4]
    assert [request.instruction for request in judge.requests] == ["draw it", "draw it larger"]
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
