"""Pictures that come back: the same bytes in a later round, asked for with the same words or with others."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from fakes import gemini_format
from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import gemini_route
from fakes.server import KEY, Answer, FakeProvider, Request
from pipeline.batched import check_whole, recipe
from pipeline.batched import run as run_in
from pipeline.quick import (
    CallLog,
    QuickEditor,
    QuickJudge,
    QuickWriter,
    drawn,
    quick_catalogue,
    quick_method,
    quick_recipe,
)
from pipeline.wrecks import derived
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.verify import verify
from plantain.pipeline import rounds
from plantain.pipeline.method import Method
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Criterion, CriterionResult, Observations, Outcome, OutcomeKind, TaskState
from plantain.report.page import write_report
from plantain.roles import EditedImage, EditRequest, JudgeRequest, Reply, WriteRequest, failed
from plantain.runs.summary import RunSummary

ROUNDS = 4


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("quick") / "catalogue")


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

    assert said("show", str(run), row.task.id).count("came back unchanged: the picture of round 1") == 3
    assert orjson.loads(said("status", str(run), "--json"))["came_back_unchanged"] == 3
    assert "4, 3 came back unchanged" in said("status", str(run))
    page = write_report(run).read_text()
    assert "In 3 the picture <strong>came back unchanged</strong>" in page
    assert page.count("Came back unchanged: the picture of round 1.") == 3
    assert orjson.loads((run / "report.json").read_bytes())["judged"]["came_back"] == 3


def test_a_panel_is_not_asked_again_and_its_members_verdicts_are_stored(
    catalogue: Path, tmp_path: Path
) -> None:
    panel = [Refuses(f"quick/judge-{n}") for n in range(3)]
    build(catalogue, tmp_path / "run", method_of(*panel, words=("draw it",) * ROUNDS))
    assert [len(member.asked) for member in panel] == [1, 1, 1]
    with JournalReader.open(tmp_path / "run") as reader:
        (row,) = reader.tasks()
        stored = [(v.round, v.verdict.judge) for v in reader.verdicts(row.task.id)]
    everyone = [f"quick/judge-{n}" for n in range(3)] + ["panel"]
    assert stored == [(number, name) for number in range(1, ROUNDS + 1) for name in everyone]


def test_a_run_that_judged_it_twice_goes_on_with_both_verdicts(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, words = tmp_path / "run", ("draw it",) * ROUNDS
    with monkeypatch.context() as first_edition:
        first_edition.setattr(rounds, "_same_edit", lambda earlier, attempt: False)
        halted = build(catalogue, run, method_of(Refuses(dies=3), words=words))
        assert halted.failed
    judge = Refuses()
    again = build(catalogue, run, method_of(judge, words=words))
    assert again.stopped is None and not judge.asked  # rounds 3 and 4 are known, 2 has its own verdict
    with JournalReader.open(run) as reader:
        (row,) = reader.tasks()
        told = [a.verdict.observations.reason if a.verdict else None for a in reader.attempts(row.task.id)]
    assert told == ["call 1", "call 2", "call 1", "call 1"]


def test_a_picture_that_comes_back_in_jobs_is_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer repeats itself and the editor draws the same picture: one judgement a task, in whatever round."""

    def repeats(request: Request) -> Answer | None:
        if request.path.endswith(":generateContent") and gemini_format.step_of(request) == "write":
            return gemini_format.text_answer("Brighten the macula.")
        return gemini_route(request)

    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    catalogue = quick_catalogue(tmp_path / "catalogue", images=3)
    jobs = FakeJobs(repeats)
    with FakeProvider([jobs, repeats]) as server:
        online = run_in(recipe(catalogue, server.url, "gemini", "online", rounds=2), tmp_path / "online")
        summary = run_in(recipe(catalogue, server.url, "gemini", rounds=2), tmp_path / "jobs")
    check_whole(tmp_path / "jobs", summary, jobs)
    asked = Counter(job.model for job in jobs.jobs.values() for _ in job.lines)
    with JournalReader.open(tmp_path / "jobs") as reader:
        tasks = list(reader.tasks())
        later = [a for row in tasks for a in reader.attempts(row.task.id) if a.round == 2]
    assert later and all(attempt.verdict is not None for attempt in later)
    assert asked == {"w": 9 + len(later), "e": 9 + len(later), "j": 9}
    assert online.closed == summary.closed and derived(tmp_path / "jobs") == derived(tmp_path / "online")
