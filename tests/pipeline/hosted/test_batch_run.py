"""Whole runs in batch jobs: the real SDKs, a loopback provider, every fate of a job, and the same results as online."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes import gemini_format
from fakes.batch_jobs import FakeJob, FakeJobs
from fakes.gemini_format import gemini_route
from fakes.server import Answer, FakeProvider, Request, json_answer
from pipeline.batched import BUDGET, check_whole, recipe, rows, run
from pipeline.quick import quick_catalogue
from pipeline.wrecks import derived
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.records import InputError, OutcomeKind
from plantain.runs.progress import ProgressObserver

EDITS = "SELECT usage FROM call WHERE step = 'edit'"


@pytest.mark.parametrize("form", ["gemini", "openai"])
def test_run_in_jobs_equals_the_online_run_at_half_the_price(
    form: str, catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    online = run(recipe(catalogue, server.url, form, "online", rounds=3), tmp_path / "online")
    posted = [call for call in server.calls if call.method == "POST"]
    summary = run(recipe(catalogue, server.url, form, rounds=3, images=4), tmp_path / "jobs")
    check_whole(tmp_path / "jobs", summary, jobs)
    assert derived(tmp_path / "jobs") == derived(tmp_path / "online")
    if form == "openai":  # an edit's answer names no request; the line of the file of answers does
        ids = [json.loads(usage)["response_id"] for (usage,) in rows(tmp_path / "jobs", EDITS)]
        assert ids and all(one.startswith("req_") for one in ids) and len(set(ids)) == len(ids)
    assert online.closed == summary.closed
    assert len(posted) == sum(jobs.asked.values())
    cost = "SELECT sum(cost_usd) FROM call"
    (full,), (half,) = rows(tmp_path / "online", cost)[0], rows(tmp_path / "jobs", cost)[0]
    assert half == pytest.approx(full / 2)
    edits = [len(job.lines) for job in jobs.jobs.values() if job.model in ("e", "/v1/images/edits")]
    assert max(edits) <= 4
    again = run(recipe(catalogue, server.url, form, rounds=3), tmp_path / "jobs")
    assert again.made == 0


FATES = {
    "junk lines": set(),
    "missing": {OutcomeKind.TRANSPORT},
    "line errors": {OutcomeKind.TRANSPORT},
    "expired": {OutcomeKind.RATE_LIMITED},
    "lost": {OutcomeKind.TRANSPORT},
}


@pytest.mark.parametrize(
    ("form", "fate"),
    [("gemini", fate) for fate in FATES if fate != "line errors"] + [("openai", "line errors")],
)
def test_fate_of_a_job_costs_tries_and_no_results(
    form: str, fate: str, catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    jobs.fates = [fate, "done", fate]
    summary = run(recipe(catalogue, server.url, form, limits=BUDGET), tmp_path / "run")
    check_whole(tmp_path / "run", summary, jobs)
    ends = {OutcomeKind(kind) for (kind,) in rows(tmp_path / "run", "SELECT DISTINCT outcome FROM call")}
    assert ends == {OutcomeKind.OK} | FATES[fate]
    if fate in ("expired", "line errors"):  # unanswered requests are not billed and hold no money
        assert rows(tmp_path / "run", "SELECT count(*) FROM call WHERE cost_usd IS NULL") == [(0,)]


class Notes(ProgressObserver):
    """Collects the lines for the user."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(
    ("form", "created"), [("gemini", ":batchGenerateContent"), ("openai", "/v1/batches")]
)
def test_first_of_two_answers_counts_and_the_other_is_named_and_paid_for_once(
    form: str, created: str, catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    once, made = tmp_path / "once", recipe(catalogue, server.url, form, limits=BUDGET)
    run(made, once)
    before = list(jobs.jobs)
    jobs.fates, jobs.listed = ["answered twice"] * 9, 2
    spoiled(server, created, "POST", [lambda good: Answer(close=True)])  # the job is found in the list
    notes = Notes()
    summary = asyncio.run(run_build(made, tmp_path / "twice", observer=notes))
    check_whole(tmp_path / "twice", summary, jobs)
    assert derived(tmp_path / "twice") == derived(once)
    calls = "SELECT count(*), round(sum(cost_usd), 9) FROM call"
    assert rows(tmp_path / "twice", calls) == rows(once, calls)
    # of three lines too many: two to the first request of the job, one to a request of no job
    assert sorted(notes.lines) == sorted(
        f"batch job {job}: ignored 2 further answers to answered requests, "
        "and 1 answer to requests that were not in the job"
        for job in jobs.jobs
        if job not in before
    )


def test_cancelled_job_halts_the_run_keeps_its_answers_and_is_resumed(
    catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    form = "gemini"
    jobs.fates = ["cancelled"]
    first = run(recipe(catalogue, server.url, form, quiet_s=60.0), tmp_path / "run")
    assert first.failed
    assert "was cancelled at the provider" in (first.stopped or "")
    answered = rows(tmp_path / "run", "SELECT count(*) FROM call WHERE final = 1")[0][0]
    assert answered == 4  # of the nine instructions, in one job
    second = run(recipe(catalogue, server.url, form), tmp_path / "run")
    check_whole(tmp_path / "run", second, jobs)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("openai", "was not accepted: invalid_json_line"),
        ("gemini", "failed: 3: The request file has an invalid line."),
    ],
)
def test_job_that_is_refused_halts_the_run_with_the_reason(
    form: str, message: str, catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    jobs.fates = ["failed"]
    summary = run(recipe(catalogue, server.url, form), tmp_path / "run")
    assert summary.failed
    assert message in (summary.stopped or "")
    check_whole(tmp_path / "run", run(recipe(catalogue, server.url, form), tmp_path / "run"), jobs)


def spoiled(
    server: FakeProvider, part: str, method: str, answers: list[Callable[[Answer], Answer]]
) -> list[str]:
    """Replace the answers to the first requests of a kind; return the paths replaced so far."""
    done: list[str] = []

    def spoil(request: Request, good: Answer) -> Answer:
        if part in request.path and request.method == method and len(done) < len(answers):
            done.append(request.path)
            return answers[len(done) - 1](good)
        return good

    server.spoil = spoil
    return done


BROKEN: list[Callable[[Answer], Answer]] = [
    lambda good: json_answer({"error": {"code": 503}}, 503),
    lambda good: Answer(close=True),
]


@pytest.mark.parametrize(
    ("form", "part", "method"),
    [("gemini", ":batchGenerateContent", "POST"), ("openai", "/v1/batches/", "GET")],
)
def test_network_faults_are_retried_and_no_job_is_made_twice(
    form: str, part: str, method: str, catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    done = spoiled(server, part, method, BROKEN)
    summary = run(recipe(catalogue, server.url, form), tmp_path / "run")
    check_whole(tmp_path / "run", summary, jobs)
    assert len(done) == len(BROKEN)
    assert set(jobs.asked.values()) == {1}
    assert rows(tmp_path / "run", "SELECT DISTINCT outcome FROM call") == [("ok",)]


@pytest.mark.parametrize("form", ["openai"])
def test_interrupt_leaves_jobs_running_and_another_process_collects_them(
    form: str,
    catalogue: Path,
    server: FakeProvider,
    jobs: FakeJobs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs.looks = 10_000
    made = recipe(catalogue, server.url, form, limits=BUDGET, quiet_s=60.0)
    known = "SELECT count(*) FROM batch_job WHERE state = 'running'"
    under_way = lambda: bool(jobs.jobs) and rows(tmp_path / "run", known) == [(1,)]  # noqa: E731
    first = threading.Thread(target=_interrupt_when, args=(under_way,))
    first.start()
    stopped = run(made, tmp_path / "run")
    first.join()
    assert stopped.stopped == "interrupted"
    assert not stopped.failed
    (job,) = jobs.jobs.values()
    assert stopped.left == (
        f"9 requests wait in 1 batch job at the provider, which will continue: {job.id}; "
        "resume to collect the answers"
    )
    assert main(["status", str(tmp_path / "run"), "--json"]) == 0
    (seen,) = json.loads(capsys.readouterr().out)["batch_jobs"]
    assert (seen["id"], seen["state"], seen["requests"], seen["trouble"]) == (job.id, "running", 9, "")
    with JournalReader.open(tmp_path / "run") as reader:
        assert len(reader.open_calls()) == 9
        assert any(call.reserved_usd for call in reader.open_calls())
    with pytest.raises(InputError, match=r'9 requests to .* still in batch job .* transport = "batch"'):
        run(recipe(catalogue, server.url, form, "online"), tmp_path / "run")
    jobs.looks = 1
    summary = run(made, tmp_path / "run")
    check_whole(tmp_path / "run", summary, jobs)
    assert set(jobs.asked.values()) == {1}
    assert rows(tmp_path / "run", "SELECT max(tries) FROM call") == [(1,)]


def _interrupt_when(ready: Callable[[], bool]) -> None:
    while not ready():
        time.sleep(0.01)
    time.sleep(0.2)
    signal.raise_signal(signal.SIGINT)


def test_second_question_of_one_call_is_found_again_after_an_interrupt(
    catalogue: Path, server: FakeProvider, jobs: FakeJobs, tmp_path: Path
) -> None:
    def mumbles(request: Request) -> Answer | None:
        """Judges answer the first question with words that hold no report."""
        good = gemini_route(request)
        if gemini_format.step_of(request) == "judge" and len(gemini_format.prompt_parts(request)) == 3:
            return gemini_format.text_answer("It looks fine to me.")
        return good

    def stall(job: FakeJob) -> None:
        jobs.looks = 10_000 if len(jobs.jobs) >= 4 else 1

    jobs.online, jobs.on_create = mumbles, stall
    made = recipe(catalogue, server.url, "gemini", quiet_s=5.0)
    first = threading.Thread(target=_interrupt_when, args=(lambda: len(jobs.jobs) >= 4,))
    first.start()
    stopped = run(made, tmp_path / "run")
    first.join()
    assert stopped.stopped == "interrupted"
    jobs.on_create, jobs.looks = None, 1
    check_whole(tmp_path / "run", run(made, tmp_path / "run"), jobs)
    # nine instructions, nine edits, nine reports requested twice, and none of these 36 questions sent again
    assert list(jobs.asked.values()) == [1] * 36
    assert rows(tmp_path / "run", "SELECT count(*), max(tries) FROM call") == [(27, 1)]
    assert rows(tmp_path / "run", "SELECT DISTINCT outcome FROM call") == [("ok",)]


@pytest.mark.parametrize("form", ["gemini"])
def test_files_that_could_not_be_deleted_are_named_by_withdraw_and_deleted_by_the_next_process(
    form: str, server: FakeProvider, jobs: FakeJobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They contain images: a provider that fails to delete once must not keep them for good without a message."""
    catalogue = quick_catalogue(tmp_path / "catalogue", images=1)
    made, folder = recipe(catalogue, server.url, form, requests=3, images=3), tmp_path / "run"
    server.routes.insert(0, lambda request: json_answer({}, 500) if request.method == "DELETE" else None)
    summary = run(made, folder)
    assert summary.stopped is None and not jobs.deleted
    requests = {name for name in jobs.files if not name.endswith(("-out", "-err"))}
    assert requests
    with JournalReader.open(folder) as reader:
        image = next(iter(reader.images())).id
    for options in (["--json", "--dry-run"], ["--json"]):
        assert main(["run", "withdraw", str(folder), "--image", image, *options]) == 0
        (withdrawn,) = json.loads(capsys.readouterr().out)["folders"]
        assert set(withdrawn["batch_jobs"]) == set(jobs.jobs)
    del server.routes[0]
    run(made, folder)
    assert requests <= set(jobs.deleted)
    assert rows(folder, "SELECT DISTINCT state, reason FROM batch_job") == [("closed", "")]
