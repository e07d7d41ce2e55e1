"""Held money is shown by `status` and released by `run retry --settle-held`; hours count killed processes too."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import orjson
import pytest

from plantain.cli import main
from plantain.journal import CallResult, Journal, JournalReader, RunHeader, StartedCall
from plantain.records import OK, CallKey, Direction, EditTask, Outcome, OutcomeKind, Step, Usage
from plantain.runs.settings_file import Limits
from plantain.runs.terms import budget_of

LOST = Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)")


async def make(run: Path) -> None:
    """Two judge calls answered at ten cents each, two cut off, one left open by a kill; 30 cents reserved for each."""
    async with Journal.create(run, RunHeader("r", "r", 1, {}, "0")) as journal:
        await journal.add_tasks([EditTask("t", "image", "fundus", "AMD", Direction.ADD)])
        for draw, ended in enumerate((OK, OK, LOST, LOST, None)):
            key = CallKey("t", 1, 1, Step.JUDGE, draw)
            call = await journal.start_call(StartedCall(key, 1, "gemini/m", "hash", 0.30))
            if ended is not None:
                await journal.settle_call(CallResult(call, ended, True, Usage(), 0.10 if ended.ok else None))


def status(run: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    capsys.readouterr()
    assert main(["status", str(run), "--json"]) == 0
    found = orjson.loads(capsys.readouterr().out)
    return {name: found[name] for name in ("cost_usd", "held_usd", "calls_held")}


def test_held_money_is_shown_and_settled_by_the_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    asyncio.run(make(run))
    # Two costs are too few to estimate from, so each of the three counts with its reservation: 3 x 0.30.
    assert status(run, capsys) == {"cost_usd": 0.2, "held_usd": 0.9, "calls_held": 3}
    assert main(["status", str(run)]) == 0
    assert f"plantain run retry {run} --settle-held USD\n" in capsys.readouterr().out

    assert main(["run", "retry", str(run), "--settle-held", "0.12", "--dry-run"]) == 0
    assert "would be released" in capsys.readouterr().err
    assert status(run, capsys)["calls_held"] == 3

    assert main(["run", "retry", str(run), "--settle-held", "0.12"]) == 0
    assert "$0.9000 held for 3 calls are released; $0.1200 are recorded as spent" in capsys.readouterr().err
    assert status(run, capsys) == pytest.approx({"cost_usd": 0.32, "held_usd": 0.0, "calls_held": 0})
    with JournalReader.open(run) as reader:
        budget = budget_of(Limits(budget_usd=1.0), reader)
        assert budget.spent_usd == pytest.approx(0.32) and budget.held_usd == 0.0
        assert budget.fits(0.68) and not budget.fits(0.69)

    assert main(["run", "retry", str(run), "--settle-held", "5"]) == 0
    assert "no money is held" in capsys.readouterr().err
    assert status(run, capsys)["cost_usd"] == pytest.approx(0.32)


@pytest.mark.parametrize("amount", ["-1", "nan", "inf"])
def test_an_invalid_amount_is_refused(
    tmp_path: Path, amount: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(make(tmp_path / "run"))
    assert main(["run", "retry", str(tmp_path / "run"), "--settle-held", amount]) == 2
    assert status(tmp_path / "run", capsys)["calls_held"] == 3


def test_hours_count_every_earlier_process_and_a_killed_one_to_its_last_call(tmp_path: Path) -> None:
    run = tmp_path / "run"
    asyncio.run(make(run))
    asyncio.run(Journal.open(run).close())
    with sqlite3.connect(run / "journal.sqlite") as database:
        when = "2026-01-01T0{}:00:00.000+00:00".format
        database.execute("UPDATE session SET started_at = ?, ended_at = ?", (when(6), when(9)))
        database.execute("UPDATE session SET started_at = ?, ended_at = NULL WHERE id = 1", (when(1),))
        database.execute("UPDATE call SET started_at = ?", (when(3),))
    asyncio.run(Journal.open(run).close())
    with JournalReader.open(run) as reader:
        assert reader.seconds_worked() == pytest.approx(5 * 3600)  # 1 to 3 o'clock, and 6 to 9
