"""One budget for several runs: processes at once, kills, moved and copied folders, and files that are no ledger."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from plantain.calls import AdmissionController, Budget, ModelLimits, RunHalted
from plantain.calls.ledger import APPLICATION_ID, BLOCK, TABLE, Ledger
from plantain.records import OK, InputError, Price, Step, Usage
from simulated.clock import run_simulated

PROGRAM = """
import sys
from pathlib import Path
from plantain.calls.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[2]), 0.0)
spent = 0.0
while ledger.covers(spent + 0.25, 20.0):
    spent += 0.25
ledger.give_back(spent)
print(spent)
"""


def test_processes_at_once_never_spend_more_than_the_budget_together(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "ledger"), f"run{number}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    spent = [float(process.communicate()[0]) for process in runs]
    assert [process.returncode for process in runs] == [0] * 4
    # what the others had claimed and not used when a run gave up is a block of each, and less than a call's money
    assert 20.0 - 4 * (0.25 + BLOCK * 20.0) <= sum(spent) <= 20.0
    with_room = Ledger(tmp_path / "ledger", "another", tmp_path / "another", 0.0)
    assert with_room.covers(20.0 - sum(spent), 20.0) and not with_room.covers(20.5 - sum(spent), 20.0)


def test_killed_run_keeps_what_it_claimed_and_takes_it_up_again(tmp_path: Path) -> None:
    killed = Ledger(tmp_path / "ledger", "a", tmp_path / "a", 0.0)
    assert killed.covers(6.0, 10.0)
    other = Ledger(tmp_path / "ledger", "b", tmp_path / "b", 0.0)
    assert not other.covers(4.1, 10.0) and other.covers(3.9, 10.0)
    again = Ledger(tmp_path / "ledger", "a", tmp_path / "a", 2.0)  # its journal says that it spent 2
    assert again.covers(6.0, 10.0)
    again.give_back(2.0)
    assert other.covers(8.0, 10.0)


def test_moved_run_goes_on_with_its_page_and_a_copy_gets_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    Ledger(tmp_path / "ledger", "id", tmp_path / "a", 5.0)
    (tmp_path / "a").rename(tmp_path / "moved")
    moved = Ledger(tmp_path / "ledger", "id", tmp_path / "moved", 5.0)
    assert moved.others_usd() == 0.0
    (tmp_path / "copy").mkdir()
    assert Ledger(tmp_path / "ledger", "id", tmp_path / "copy", 5.0).others_usd() == 5.0


def test_merged_run_counts_what_its_parts_claimed_as_its_own_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    parts = [Ledger(path, name, tmp_path / name, 3.0) for name in ("a", "b")]
    Ledger(path, "else", tmp_path / "else", 1.0)
    merged = Ledger(path, "ab", tmp_path / "ab", 6.0, ["a", "b"])
    assert merged.others_usd() == 1.0  # 7.0 where the parts' pages stayed beside it: $13 of a budget of $10
    assert merged.covers(9.0, 10.0)
    # A part that goes on all the same spends money of its own: its page is there again, for good.
    assert not parts[0].covers(3.1, 10.0)
    merged.give_back(6.0)
    assert parts[0].covers(3.0, 10.0) and parts[0].covers(3.0 - 1e-9, 10.0)
    assert Ledger(path, "a", tmp_path / "a", 3.0).covers(3.0, 10.0)
    assert Ledger(path, "ab", tmp_path / "ab", 6.0, ["a", "b"]).others_usd() == 4.0


def test_budget_asks_the_ledger(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", "other", tmp_path / "other", 7.0)
    budget = Budget(10.0, 1.0, ledger=Ledger(tmp_path / "ledger", "mine", tmp_path / "mine", 1.0))
    assert budget.fits(2.0) and not budget.fits(2.1)
    costs = budget.costs("m/e", Step.EDIT)
    costs.bound, costs.in_flight = 2.0, 1
    budget.settle(costs, 0.5)
    budget.rest()
    assert Ledger(tmp_path / "ledger", "third", tmp_path / "third", 0.0).others_usd() == pytest.approx(8.5)


def test_a_ledger_that_breaks_lets_calls_in_flight_end_and_be_paid(tmp_path: Path) -> None:
    """Nine dollars in calls of one, three at a time; then the file is no ledger any more, as on a disk that is full."""
    path, ended = tmp_path / "ledger", []
    budget = Budget(900.0, ledger=Ledger(path, "mine", tmp_path / "mine", 0.0))
    rules = ModelLimits(3, price=Price(image_out_each=1.0), max_output_tokens=1, slow_start=False)
    controller = AdmissionController(lambda model: rules, budget)

    async def caller(place: int) -> None:
        while True:
            async with controller.admit("hosted/m", Step.EDIT) as ticket:
                ticket.started = True
                await asyncio.sleep(1.0 + place / 10)
                if len(ended) == 6:
                    path.write_bytes(b"full" * 200)
                ticket.settle(OK, Usage(images=1))
                ended.append(place)

    async def scene() -> list[BaseException | None]:
        return await asyncio.gather(*(caller(place) for place in range(3)), return_exceptions=True)

    told = run_simulated(scene())
    assert all(isinstance(why, RunHalted) and "cannot be used as a ledger" in str(why) for why in told)
    assert budget.spent_usd == len(ended) and budget.held_usd == budget.reserved_usd == 0.0
    controller.rest()


@pytest.mark.parametrize("usd", [-1.0, float("nan")])
def test_impossible_claims_are_refused(tmp_path: Path, usd: float) -> None:
    ledger = Ledger(tmp_path / "ledger", "a", tmp_path / "a", 1.0)
    with pytest.raises(InputError, match=r"limits\.ledger"):
        ledger.give_back(usd)
    assert Ledger(tmp_path / "ledger", "b", tmp_path / "b", 0.0).others_usd() == 1.0


def test_file_that_is_no_ledger_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("not a database, but a page of notes " * 40)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        Ledger(file, "a", tmp_path / "a", 0.0)
    assert file.read_text().startswith("not a database")


@pytest.mark.parametrize(
    "made",
    [
        # bytes where text belongs, and a claim below zero, by which the others' would be hidden
        "CREATE TABLE claim(page TEXT PRIMARY KEY, usd REAL); INSERT INTO claim VALUES (x'00ff', -1e12)",
        f"{TABLE}; CREATE TRIGGER t AFTER INSERT ON claim BEGIN DELETE FROM claim; END",
        "CREATE VIEW claim AS SELECT 'a' AS page, 0.0 AS usd",
    ],
)
def test_strangers_ledger_of_another_make_is_refused(tmp_path: Path, made: str) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger")) as file:
        file.executescript(f"{made}; PRAGMA application_id = {APPLICATION_ID}")
    with pytest.raises(InputError, match="not a ledger of plantain"):
        Ledger(tmp_path / "ledger", "a", tmp_path / "a", 0.0)


def test_claim_below_zero_hides_no_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", "a", tmp_path / "a", 6.0)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger", isolation_level=None)) as file:
        file.execute("PRAGMA ignore_check_constraints = ON")
        file.execute("INSERT INTO claim VALUES ('b /b', -1e12)")
    second = Ledger(tmp_path / "ledger", "c", tmp_path / "c", 0.0)
    assert second.others_usd() == 6.0
    assert not second.covers(5.0, 10.0) and ledger.covers(6.0, 10.0)
