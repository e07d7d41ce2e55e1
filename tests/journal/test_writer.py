"""The writer's operations, as another process's reader sees them."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import sqlite3
from pathlib import Path

import pytest

from journal.examples import HEADER, VERDICT, Do, a_call, a_task, an_image, one_round
from plantain.journal import CallResult, Journal, JournalReader, RunLocked, StoredScore, StoredVerdict
from plantain.journal.commit import WriterClosed
from plantain.records import (
    OK,
    Attempt,
    InputError,
    Outcome,
    OutcomeKind,
    Score,
    Step,
    TaskState,
    Usage,
    unscored,
)


def test_create_refuses_the_folder_of_a_run(do: Do, journal: Journal, tmp_path: Path) -> None:
    for another in (lambda: Journal.create(tmp_path, HEADER), lambda: Journal.open(tmp_path)):
        with pytest.raises(RunLocked):
            another()
    do(journal.close())
    with pytest.raises(InputError, match="already contains a run"):
        Journal.create(tmp_path, HEADER)
    do(Journal.open(tmp_path).close())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "journal.sqlite", "lock"]


def test_images_are_added_once_and_keep_their_pixels(do: Do, journal: Journal) -> None:
    same = journal.put_blob(b"prepared", "image/jpeg")
    noted = dataclasses.replace(an_image(same), note="not a healthy chest")
    assert do(journal.add_images([(noted, same)])) == 0
    assert journal.reader.image("i0") == noted
    other = journal.put_blob(b"another", "image/jpeg")
    with pytest.raises(InputError, match=r"'i0'.*another image"):
        do(journal.add_images([(an_image(other), other)]))
    with pytest.raises(InputError, match="prepared_sha256"):
        do(journal.add_images([(an_image(same, "i1"), other)]))
    assert list(journal.reader.images()) == [noted]


def test_a_round_comes_back_whole(do: Do, journal: Journal, tmp_path: Path) -> None:
    task = a_task(0).id
    attempt = do(one_round(journal, task))
    with JournalReader.open(tmp_path) as reader:  # another connection: it is committed
        assert reader.attempts(task) == [attempt]
        assert reader.verdicts(task) == [StoredVerdict(task, 0, 1, VERDICT)]
        calls = reader.calls(task)
        assert [call.key.step for call in calls] == [Step.WRITE, Step.EDIT, Step.JUDGE]
        assert calls[1].usage == Usage("m", 10, 20, images=1)
        assert (calls[1].cost_usd, calls[1].latency_s, calls[1].raw) == (0.2, 1.5, "raw")
        assert (calls[0].answer, calls[0].outcome, calls[0].final) == (attempt.instruction, OK, True)
        assert attempt.edited is not None
        assert reader.read_blob(attempt.edited) == f"{task} 0 1".encode()
        assert math.isclose(reader.spent_usd(), 0.25)  # 0.2 for the edit, 0.05 for the judge
        assert reader.outcomes() == {OutcomeKind.OK: 3}


def test_every_outcome_comes_back_exactly(do: Do, journal: Journal) -> None:
    outcomes = [
        Outcome(OutcomeKind.RATE_LIMITED, "slow down", 53.5),
        Outcome(OutcomeKind.REFUSED, "medical \ud83d image"),
        Outcome(OutcomeKind.TRANSPORT, "key revoked", None, fatal=True),
    ]
    task = a_task(0).id
    for tries, outcome in enumerate(outcomes, 1):
        call = do(journal.start_call(a_call(task, tries=tries)))
        attempt = Attempt(task, 0, 1, "add", outcome, judge_outcome=outcome)
        do(journal.settle_call(CallResult(call, outcome, tries == 3, attempt=attempt)))
        kept = dataclasses.replace(outcome, reason=outcome.reason.replace("\ud83d", "?"))
        assert journal.reader.calls(task)[-1].outcome == kept
        assert journal.reader.attempts(task)[0].edit_outcome == kept
        assert journal.reader.attempts(task)[0].judge_outcome == kept
    assert [call.final for call in journal.reader.calls(task)] == [False, False, True]


def test_retry_opens_a_generation_and_marks_the_old_one(do: Do, journal: Journal) -> None:
    task, pending = a_task(0).id, a_task(1).id
    do(one_round(journal, task))
    do(journal.close_task(task, TaskState.FAILED, 1, "five rounds"))
    assert do(journal.reopen_tasks([task, pending, "unknown"])) == 1
    row = journal.reader.task(task)
    assert (row.generation, row.state, row.round, row.reason) == (1, TaskState.PENDING, 0, "")
    assert journal.reader.task(pending).generation == 0
    again = do(one_round(journal, task, generation=1))
    old, new = journal.reader.attempts(task)
    assert (old.superseded, new) == (True, again)
    assert list(journal.reader.all_attempts()) == [again]
    assert list(journal.reader.all_attempts(superseded=True)) == [old, again]
    assert journal.reader.attempts(task, generation=0) == [old]
    assert journal.reader.attempt_count() == 1
    assert journal.reader.attempt_count(superseded=True) == 1


def test_scores_keep_the_unscored(do: Do, journal: Journal) -> None:
    task = a_task(0).id
    do(one_round(journal, task))
    scores = [
        StoredScore(task, 0, 1, "masked_ssim", unscored("roi covers image")),
        StoredScore(task, 0, 1, "psnr", Score(31.5), {"channel": [0, 1]}),
    ]
    assert do(journal.add_scores(scores)) == 2
    assert journal.reader.scores(task) == scores
    again = dataclasses.replace(scores[1], score=Score(30.0))
    do(journal.add_scores([again]))
    assert journal.reader.scores(task) == [scores[0], again]
    with pytest.raises(ValueError, match="psnr is nan"):
        do(journal.add_scores([dataclasses.replace(again, score=Score(math.nan))]))
    with pytest.raises(sqlite3.IntegrityError):
        do(journal.add_scores([dataclasses.replace(again, round=9)]))


def test_wrong_operations_are_refused_and_change_nothing(do: Do, journal: Journal) -> None:
    task = a_task(0).id
    call = do(journal.start_call(a_call(task)))
    with pytest.raises(ValueError, match="cannot start try 1"):
        do(journal.start_call(a_call(task)))
    with pytest.raises(ValueError, match="cannot start"):
        do(journal.start_call(a_call("no such task")))
    unknown = Attempt(task, 0, 1, "add", OK, edited="f" * 64)
    with pytest.raises(sqlite3.IntegrityError):  # its bytes were never stored
        do(journal.settle_call(CallResult(call, OK, True, attempt=unknown)))
    with pytest.raises(ValueError, match="cost_usd is inf"):
        do(journal.settle_call(CallResult(call, OK, True, cost_usd=math.inf)))
    assert len(journal.reader.open_calls()) == 1
    assert not journal.reader.attempts(task)
    do(journal.settle_call(CallResult(call, OK, True)))
    with pytest.raises(ValueError, match="not open"):
        do(journal.settle_call(CallResult(call, OK, True)))
    with pytest.raises(ValueError, match="no task"):
        do(journal.close_task("unknown", TaskState.FAILED, 1, ""))
    do(journal.set_meta("plan_digest", "abc"))
    do(journal.set_meta("plan_digest", "abd"))
    assert journal.reader.meta("plan_digest") == "abd"
    assert journal.reader.meta("nothing") is None
    do(journal.close())
    with pytest.raises(WriterClosed):
        do(journal.set_meta("plan_digest", "abe"))


def test_an_operation_that_fails_in_a_group_leaves_the_others_whole(do: Do, journal: Journal) -> None:
    task, other = a_task(0).id, a_task(1).id
    call = do(journal.start_call(a_call(task)))
    unknown = Attempt(task, 0, 1, "add", OK, edited="f" * 64)  # found out after its call was settled

    async def together() -> list[object]:
        return await asyncio.gather(
            journal.start_call(a_call(other)),
            journal.start_call(a_call(other)),
            journal.settle_call(CallResult(call, OK, True, attempt=unknown)),
            journal.set_meta("a", "1"),
            return_exceptions=True,
        )

    first, twice, undone, last = do(together())
    assert isinstance(twice, ValueError) and isinstance(undone, sqlite3.IntegrityError) and last is None
    assert [row.id for row in journal.reader.open_calls()] == [call, first]
    assert journal.reader.meta("a") == "1" and not journal.reader.attempts(task)


def test_an_operation_of_a_cancelled_coroutine_is_completed(do: Do, journal: Journal) -> None:
    async def cancelled() -> bool:
        waiting = asyncio.create_task(journal.set_meta("a", "1"))
        await asyncio.sleep(0)
        waiting.cancel()
        await journal.set_meta("b", "2")
        return waiting.cancelled()

    assert do(cancelled())
    assert (journal.reader.meta("a"), journal.reader.meta("b")) == ("1", "2")
