"""Held money is shown by `status` and released by `run retry --settle-held`; hours count killed processes too."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
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


def test_held_money_is_shown_and_becomes_what_the_bill_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    asyncio.run(make(run))
    # Each of the three counts with its reservation: 3 x 0.30.
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
def test_an_amount_that_is_none_is_refused(
    tmp_path: Path, amount: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(make(tmp_path / "run"))
    assert main(["run", "retry", str(tmp_path / "run"), "--settle-held", amount]) == 2
    assert status(tmp_path / "run", capsys)["calls_held"] == 3


def test_process_that_is_killed_while_nothing_happens_counts(tmp_path: Path) -> None:
    program = (
        "import asyncio, pathlib, sys, time\n"
        "from plantain.journal import Journal, RunHeader\n"
        "journal = Journal.create(pathlib.Path(sys.argv[1]), RunHeader('r', 'r', 1, {}, '0'))\n"
        "print('open', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        begun = time.monotonic()
        time.sleep(2.5)
        process.kill()
        worked = time.monotonic() - begun
    journal = Journal.open(tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        assert worked - 1.5 <= reader.seconds_worked() <= worked + 1.5
    asyncio.run(journal.close())
