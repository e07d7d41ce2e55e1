"""Stored attempts under other judges: new verdicts in addition to the old ones, no repeated call, no generation."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace

import orjson
import pytest

from audit.stored_run import FINDINGS, RuleJudge, seen, stored_run
from plantain.audit.rejudge import RejudgeRequest, policy_of, run_rejudge, stored_attempts
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.questions.tables import call_outcomes, table1
from plantain.records import InputError, TaskState, Usage
from plantain.rubrics import MED_BANANA
from plantain.runs.terms import Terms


def rejudged(run, *judges, **options):
    return asyncio.run(run_rejudge(run, RejudgeRequest(judges, **options), Terms(())))


def verdicts(run):
    with JournalReader.open(run) as reader:
        return [stored for row in reader.tasks() for stored in reader.verdicts(row.id)]


def test_verdicts_are_stored_in_addition_and_no_call_is_repeated(tmp_path):
    run = stored_run(tmp_path / "run")
    yes = RuleJudge("rule/yes", lambda request: seen(True))
    partly = RuleJudge("rule/partly", lambda request: seen(True, True, None, True))
    done = rejudged(run, yes, partly)
    # Three images, two findings, two rounds.
    assert (yes.asked, partly.asked, done.summary.judged) == (12, 12, 24)
    again = rejudged(run, yes, partly)
    assert (yes.asked, partly.asked, again.summary.made) == (12, 12, 0)
    stored = verdicts(run)
    expected = [("old/judge", True, False), ("rule/partly", False, None), ("rule/yes", False, True)]
    assert sorted({(v.verdict.judge, v.decisive, v.verdict.qualified) for v in stored}) == expected
    # A criterion without an answer has no score: a reader could take a score for a no.
    assert {v.verdict.score for v in stored if v.verdict.judge == "rule/partly"} == {None}
    with JournalReader.open(run) as reader:
        assert table1(reader).total.failed == 6
        assert call_outcomes(reader) == ()  # the run's own calls: it made none


def test_verdicts_that_came_with_a_release_are_no_answers_of_the_same_judge(tmp_path):
    run = stored_run(tmp_path / "run")
    yes = RuleJudge("rule/yes", lambda request: seen(True))
    rejudged(run, yes)
    with sqlite3.connect(run / "journal.sqlite") as journal:  # an import stores verdicts, and no call
        journal.execute("DELETE FROM meta WHERE key = 'audit.juries'")
        journal.execute("DELETE FROM call")
    assert (rejudged(run, yes).summary.made, yes.asked) == (12, 24)


def test_new_fingerprint_is_a_new_column_and_the_old_verdicts_are_kept(tmp_path):
    run = stored_run(tmp_path / "run", images=1)
    rejudged(run, RuleJudge("rule/one", lambda request: seen(True)))
    changed = RuleJudge("rule/one", lambda request: seen(False), fingerprint="2")
    rejudged(run, changed)
    assert changed.asked == 4
    mine = [(v.draw, v.verdict.qualified) for v in verdicts(run) if v.verdict.judge == "rule/one"]
    assert sorted(set(mine)) == [(10_000, True), (20_000, False)]


@pytest.mark.parametrize(
    "loop", [{"policy": "theirs", "threshold": "high"}, {"policy": None}, ["all-pass"], None]
)
def test_a_release_with_an_unknown_policy_is_decided_by_the_rubrics(loop):
    assert policy_of({"loop": loop}, MED_BANANA) == (MED_BANANA.policy, MED_BANANA.threshold)


def test_decisive_judge_decides_how_tasks_end(tmp_path):
    run = stored_run(tmp_path / "run", images=2)
    second = RuleJudge("rule/amd", lambda request: seen("AMD" in request.instruction))
    rejudged(run, second, decisive=True)
    with JournalReader.open(run) as reader:
        ended = {(row.task.finding, row.state, row.round) for row in reader.tasks()}
        assert ended == {("AMD", TaskState.SUCCESS, 1), ("Cataract", TaskState.FAILED, 2)}
        for row in reader.tasks():
            found = reader.verdicts(row.id)
            assert len(found) == 4 and sum(v.decisive for v in found) == 2
            assert {v.verdict.judge for v in found if v.decisive} == {"rule/amd"}


def test_unjudged_attempts_are_listed_and_asked_again_only_on_request(tmp_path):
    run = stored_run(tmp_path / "run", images=2, missing=0)
    moody = RuleJudge("rule/moody", lambda request: None)
    done = rejudged(run, moody)
    assert moody.asked == 4
    assert sorted({why for _, why in done.unjudged}) == [
        "its original is not in this run",
        "refused: not this one",
    ]
    rejudged(run, moody)
    assert moody.asked == 4
    moody.rule = lambda request: seen(True)
    assert rejudged(run, moody, retry=True).summary.judged == 4
    assert moody.asked == 8
    rejudged(run, moody, retry=True)
    assert moody.asked == 8


def test_larger_sample_contains_the_smaller_one(tmp_path):
    run = stored_run(tmp_path / "run")
    with JournalReader.open(run) as reader:
        few, more, everything = ({one.key for one in stored_attempts(reader, n, 7)} for n in (3, 7, None))
        other = {one.key for one in stored_attempts(reader, 3, 8)}
    assert len(few) == 3 and few < more < everything and len(everything) == 3 * len(FINDINGS) * 2
    assert other != few


def test_ids_in_a_file_select_tasks_by_unique_prefix(tmp_path):
    run, ids = stored_run(tmp_path / "run"), tmp_path / "ids.txt"
    with JournalReader.open(run) as reader:
        first, second, *_ = (row.id for row in reader.tasks())
    ids.write_text(f"\ufeff{first}\r\n\n{second[:12]}\n")  # as Windows' Notepad saves it
    yes = RuleJudge("rule/yes", lambda request: seen(True))
    rejudged(run, yes, ids=ids)
    assert yes.asked == 4  # two rounds of each
    judged = {v.task_id for v in verdicts(run) if v.verdict.judge == "rule/yes"}
    assert judged == {first, second}


def test_unknown_id_gives_one_line_and_no_call(tmp_path, capsys):
    run, ids = stored_run(tmp_path / "run"), tmp_path / "ids.txt"
    with JournalReader.open(run) as reader:
        (first, *_) = (row.id for row in reader.tasks())
    ids.write_text(f"{first}\nnone-such\n")
    assert main(["judge", "rejudge", str(run), "--judge", "offline/instruments", "--ids", str(ids)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--ids {ids}: line 2: {run}: no task's id starts with 'none-such'" in line
    ids.write_text("\n")
    with pytest.raises(InputError, match="names no task with a stored edit"):
        rejudged(run, RuleJudge("rule/yes", lambda request: seen(True)), ids=ids)


def test_verdicts_in_flight_at_the_stop_do_not_admit_a_changed_model(tmp_path):
    run = stored_run(tmp_path / "run", images=2)
    rejudged(run, behind_one_name("j-001"), sample=2)
    stopped = rejudged(run, behind_one_name("j-002"))
    assert "is now served by j-002, and this run was made with j-001" in stopped.summary.stopped
    # The run contains the answers of j-002 until then, in the column of j-001.
    for model in ("j-001", "j-002"):
        again = rejudged(run, behind_one_name(model))
        assert "served by j-002, and this run was made with j-001" in again.summary.stopped
        assert "--accept-model-change" in again.summary.stopped
    done = rejudged(run, behind_one_name("j-001"), accept_model_change=True)
    assert done.summary.stopped is None
    with JournalReader.open(run) as reader:
        (change,) = orjson.loads(reader.meta("model_changes"))
    assert (change["model"], change["from"], change["to"]) == ("rule/one", ["j-001"], "j-002")


def behind_one_name(served):
    class Behind(RuleJudge):
        async def judge(self, request):
            return replace(await super().judge(request), usage=Usage(served_model=served))

    return Behind("rule/one", lambda request: seen(True))


def test_missing_originals_advise_an_import_with_them(tmp_path, capsys):
    run = stored_run(tmp_path / "run", images=1, missing=0)
    assert main(["judge", "rejudge", str(run), "--judge", "offline/instruments"]) == 0
    printed = capsys.readouterr().out
    assert "without a verdict: its original is not in this run" in printed
    assert "plantain import RELEASE --run NEW_RUN --originals CATALOGUE" in printed
    run = stored_run(tmp_path / "two", images=2, missing=0)  # two tasks of two rounds for each image
    assert main(["judge", "rejudge", str(run), "--judge", "offline/instruments", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "4 stored attempts\noffline/instruments: at most 4 calls\n" in printed
    assert "4 left out: its original is not in this run" in printed
