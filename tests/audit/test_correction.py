"""A verdict corrected by hand is stored next to the judge's and changes no decision and no count."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from audit.stored_run import stored_run
from plantain.audit.correction import correct_verdict
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.questions.tables import table1, table2
from plantain.journal.questions.tasks import anything_judged, corrected_edits, corrections_line
from plantain.journal.rows import dumps
from plantain.records import InputError
from plantain.report.page import write_report
from plantain.rubrics import MED_BANANA


@pytest.fixture(scope="module")
def uncorrected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored_run(tmp_path_factory.mktemp("corrected") / "run", images=2)


@pytest.fixture
def run(uncorrected: Path, tmp_path: Path) -> Path:
    return shutil.copytree(uncorrected, tmp_path / "run")


def first_task(run: Path) -> str:
    with JournalReader.open(run) as reader:
        return next(reader.tasks()).id


def decisions(run: Path) -> tuple[object, ...]:
    """All counted results: tasks, attempts with their decisive verdicts, and both tables of the paper."""
    weights = {c.name: c.weight for c in MED_BANANA.criteria}
    with JournalReader.open(run) as reader:
        attempts = dumps(list(reader.all_attempts(superseded=True)))
        return list(reader.tasks()), attempts, reader.counts(), table1(reader), table2(reader, weights)


def test_corrections_change_no_decision_and_are_all_kept(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, before = first_task(run), decisions(run)
    words = ["judge", "override", str(run), task, "--by", "RT"]
    assert main([*words, "--set", "qualified", "--why", "I see the drusen"]) == 0
    assert capsys.readouterr().out.endswith(f"\nnext: plantain report {run}\n")
    assert main([*words, "--set", "failed", "--why", "on a second look they are noise", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["correction"]["set"] == "failed" and printed["judge"] == {
        "judge": "old/judge",
        "qualified": False,
    }
    asyncio.run(correct_verdict(run, task, qualified=True, by="MK", why="plain to see"))
    assert decisions(run) == before
    with JournalReader.open(run) as reader:
        stored = [v for v in reader.verdicts(task) if v.verdict.judge.startswith("person/")]
        assert [(v.verdict.judge, v.draw, v.round, v.decisive) for v in stored] == [
            *(("person/MK", 0, 2, False), ("person/RT", 0, 2, False), ("person/RT", 1, 2, False))
        ]
        edits = corrected_edits(reader)
    # RT's second correction counts, and agrees with the judge; MK's disagrees.
    assert [(one.by, one.round, one.set, one.decided) for one in edits] == [
        ("MK", 2, "qualified", False),
        ("RT", 2, "failed", False),
    ]
    assert "0 accepted called failed, 1 rejected called qualified, 1 confirmed" in corrections_line(edits)


def test_show_and_report_name_the_author_of_a_correction(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = first_task(run)
    asyncio.run(correct_verdict(run, task, qualified=True, by="VS", why="<b>clear</b> drusen"))
    assert main(["show", str(run), task]) == 0
    assert "corrected by hand by VS: qualified: <b>clear</b> drusen" in capsys.readouterr().out
    page = write_report(run)
    assert "Corrected by hand" in page.read_text() and "&lt;b&gt;clear" in page.read_text()
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert {"by": "VS", "why": "<b>clear</b> drusen"}.items() <= next(
        one for one in numbers["corrections"] if one["by"] == "VS"
    ).items()


def test_correction_does_not_make_a_run_judged(run: Path) -> None:
    with sqlite3.connect(run / "journal.sqlite") as connection:
        connection.execute("DELETE FROM criterion")
        connection.execute("DELETE FROM verdict")
    connection.close()
    asyncio.run(correct_verdict(run, first_task(run), qualified=True, by="RT", why="fine"))
    with JournalReader.open(run) as reader:
        assert not anything_judged(reader)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"by": "R T"}, "--by 'R T': a code of 1 to 32"),
        ({"why": "  \n"}, "--why: give the reason in 1 to 2,000"),
    ],
)
def test_invalid_correction_gives_one_line_and_changes_nothing(
    run: Path, changed: dict[str, object], message: str
) -> None:
    correction = {"task": first_task(run), "qualified": True, "by": "RT", "why": "fine", **changed}
    with JournalReader.open(run) as reader:
        before = len(reader.verdicts(first_task(run)))
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        asyncio.run(correct_verdict(run, **correction))  # type: ignore[arg-type]
    assert message in str(refused.value)
    with JournalReader.open(run) as reader:
        assert len(reader.verdicts(first_task(run))) == before
