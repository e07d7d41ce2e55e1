"""A run that the first edition left killed in the middle of a round goes on, and no call of it is made again."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from journal.test_schema import SCHEMA_3
from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.pipeline.run import run_build


def build(catalogue: Path, run: Path, log: Path, kill_at: int | None = None) -> int:
    """Builds in a child, which dies after its k-th durable event."""
    pid = os.fork()
    if pid == 0:

        def on_commit(events: int) -> None:
            if kill_at is not None and events >= kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        method = quick_method(CallLog(log))
        asyncio.run(run_build(quick_recipe(catalogue), run, method=method, on_commit=on_commit))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def answers(run: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(run / "journal.sqlite") as db:
        return db.execute(
            "SELECT task, round, step, draw, request_hash, outcome, answer FROM call WHERE final = 1 "
            "ORDER BY 1, 2, 3, 4"
        ).fetchall()


def verdicts(run: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(run / "journal.sqlite") as db:
        return [
            *db.execute("SELECT * FROM verdict ORDER BY 1, 2, 3, 4, 5"),
            *db.execute("SELECT * FROM criterion ORDER BY 1, 2, 3, 4, 5, 6"),
        ]


def take_back(run: Path) -> None:
    """The journal as the first edition would have written it: its report is the answer of the judge's call."""
    old = next(line for line in SCHEMA_3.split(";\n") if line.strip().startswith("CREATE TABLE verdict("))
    with sqlite3.connect(run / "journal.sqlite") as db:
        told = db.execute(
            "SELECT v.task, v.generation, v.round, v.judge, v.draw, v.decisive, c.answer, "
            "c.answer ->> '$.criteria.instruction_compliance.passed', "
            "c.answer ->> '$.criteria.structural_plausibility.passed', c.answer ->> '$.criteria.realism.passed', "
            "c.answer ->> '$.criteria.fidelity_preservation.passed', c.answer ->> '$.has_disease', "
            "c.answer ->> '$.other_disease', c.answer ->> '$.opinion', v.qualified_all_pass, v.qualified_weighted, "
            "v.score, v.qualified FROM verdict v JOIN call c USING (task, generation, round, draw) "
            "WHERE c.step = 'judge' AND c.final"
        ).fetchall()
        later = (
            "DROP TABLE sent",
            "DROP TABLE destination",
            "DROP INDEX image_prepared",
            "DROP TABLE session_time",
            "DROP TRIGGER billed_gone",
            "DROP TABLE billed",
            "DROP INDEX call_lost",
        )
        for statement in (*later, "DROP TABLE criterion", "DROP TABLE verdict", old):
            db.execute(statement)
        db.executemany(f"INSERT INTO verdict VALUES ({', '.join('?' * 18)})", told)
        db.execute("UPDATE meta SET value = '3' WHERE key = 'schema_version'")
    db.close()


@pytest.mark.slow
def test_a_run_killed_in_a_round_is_brought_forward_and_asks_nothing_again(tmp_path: Path) -> None:
    catalogue = quick_catalogue(tmp_path / "catalogue")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert build(catalogue, whole, tmp_path / "whole.log") == 0
    assert build(catalogue, killed, tmp_path / "before.log", kill_at=63) == -signal.SIGKILL
    known = answers(killed)
    assert {row[2] for row in known} == {"write", "edit", "judge"}
    take_back(killed)
    assert build(catalogue, killed, tmp_path / "after.log") == 0
    assert (killed / "journal.sqlite.schema-3").exists()
    assert answers(killed) == answers(whole)
    assert verdicts(killed) == verdicts(whole)
    made = len((tmp_path / "after.log").read_text().splitlines())
    assert made == len(answers(whole)) - len(known)
